"""Checks of every request: by what name, from which page, by whom and how fast; and the headers of the answer.

Starlette's middleware checks the name of the host and the token.
"""

import asyncio
import hmac
import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from fastapi.security.utils import get_authorization_scheme_param
from starlette.authentication import AuthenticationBackend, AuthenticationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "graphormer-sepnorm-token"
READING = ("GET", "HEAD")
MOST_BYTES_WITHOUT_TOKEN = 10_000
SECONDS_FOR_BODY = 20.0
LEAST_BYTES_PER_SECOND = 5_000  # that let a body take longer
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without one, browsers send the origin "null" with forms of this page
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# The description of the addresses, as FastAPI has it, is shown by a script of Swagger's, which comes from there.
DOCS_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' https://cdn.jsdelivr.net; "
    "style-src 'unsafe-inline' https://cdn.jsdelivr.net; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def middleware(most_bytes: int, token: str | None = None, names: Sequence[str] | None = None) -> list[Middleware]:
    """The middleware of requests, in this order.

    Args:
        most_bytes: of a request.
        token: that a request has to show, as a cookie or as ``Authorization: Bearer``; None: nothing.
        names: of this machine in requests, which other names that are made to point here are not; None: any.
    """
    found = [Middleware(SafeHeaders)]
    if names is not None:
        hosts = [f"[{name}]" if ":" in name else name for name in names]
        found.append(Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False))
    found.append(Middleware(SameOriginOnly))
    if token is not None:
        tokens = TokenBackend(token)
        found.append(Middleware(AuthenticationMiddleware, backend=tokens, on_error=tokens.refuse))
    return [*found, Middleware(BodyLimits, most_bytes=most_bytes)]


def is_local(host: str) -> bool:
    """Whether an address is reached only from this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class SafeHeaders:
    """Adds headers that keep a page to itself, where an answer has none of that name."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if scope["path"] == "/docs":
                    headers["Content-Security-Policy"] = DOCS_POLICY
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_safely)


class SameOriginOnly:
    """Refuses what a page of another server sends; programs say nothing of pages."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in READING and not is_of_this_page(Headers(scope=scope)):
            refused = refusal(scope["path"], 403, "this request comes from another page")
            await refused(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def is_of_this_page(headers: Headers) -> bool:
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return False
    return headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def is_open(path: str) -> bool:
    """Whether a path needs no token."""
    return path == "/enter" or path.startswith("/static/")


class TokenBackend(AuthenticationBackend):
    """Lets those in who show the token."""

    def __init__(self, token: str):
        self.token = token

    async def authenticate(self, conn: HTTPConnection) -> None:
        """Raises AuthenticationError for a request that may not pass."""
        if not is_open(conn.url.path) and not self.is_known(conn):
            raise AuthenticationError("give the token: Authorization: Bearer TOKEN")

    def is_known(self, conn: HTTPConnection) -> bool:
        kind, given = get_authorization_scheme_param(conn.headers.get("authorization"))
        if kind.lower() == "bearer" and same(given, self.token):
            return True
        return same(conn.cookies.get(cookie_of(conn), ""), self.token)

    def refuse(self, conn: HTTPConnection, error: Exception) -> Response:
        """Leads a person to the page that asks for the token, or on where the address has it; a program is told."""
        if conn.scope["method"] == "GET" and same(conn.query_params.get("token", ""), self.token):
            rest = conn.url.remove_query_params("token")
            return admit(conn, rest.path + (f"?{rest.query}" if rest.query else ""), self.token)
        if conn.url.path.startswith("/api/"):
            return refusal(conn.url.path, 401, str(error), {"WWW-Authenticate": "Bearer"})
        if "hx-request" in conn.headers:  # for a part of a page
            return Response(status_code=401, headers={"HX-Redirect": "/enter"})
        return RedirectResponse("/enter", 303)


def cookie_of(conn: HTTPConnection) -> str:
    """The name of the cookie, which has the port: browsers send one server's cookies to all ports of its host."""
    return f"{COOKIE}-{conn.url.port or 80}"


def admit(conn: HTTPConnection, path: str, token: str) -> Response:
    """Gives the cookie and leads on to a page of this server."""
    response = RedirectResponse("/" + path.lstrip("/\\"), 303)
    response.set_cookie(cookie_of(conn), token, httponly=True, samesite="strict")
    return response


def same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), token.encode())


def refusal(path: str, status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """A sentence, as JSON below ``/api`` and as text elsewhere."""
    if path.startswith("/api/"):
        return JSONResponse({"detail": sentence}, status, headers)
    return PlainTextResponse(sentence, status, headers)


class BodyLimits:
    """Bounds the body of a request: in size, smaller where anybody may send one, and in time.

    It takes at most ``SECONDS_FOR_BODY``, and longer as far as it comes fast enough.
    """

    def __init__(self, app: ASGIApp, most_bytes: int):
        self.app, self.most_bytes = app, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        most = min(self.most_bytes, MOST_BYTES_WITHOUT_TOKEN) if is_open(scope["path"]) else self.most_bytes
        sentence = f"this is too large: a request has at most {most / 1e6:g} MB"
        stated = Headers(scope=scope).get("content-length", "")
        if stated.isdecimal() and int(stated) > most:
            return await refusal(scope["path"], 413, sentence)(scope, receive, send)
        started = asyncio.get_running_loop().time()
        seen, is_whole = 0, False

        async def receive_within_limits() -> Message:
            nonlocal seen, is_whole
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout_at(started + SECONDS_FOR_BODY + seen / LEAST_BYTES_PER_SECOND):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "the request came too slowly", {"Connection": "close"}) from None
            seen += len(message.get("body", b""))
            if seen > most:
                raise HTTPException(413, sentence)
            is_whole = not message.get("more_body", False)
            return message

        await self.app(scope, receive_within_limits, send)
