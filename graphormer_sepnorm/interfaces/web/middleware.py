"""Checks of every request: by what name, from which page, by whom and how fast; and the headers of the answer."""

import asyncio
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import urlsplit

from fastapi.security.utils import get_authorization_scheme_param
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "graphormer-sepnorm-token"
READING = ("GET", "HEAD")
MOST_BYTES_WITHOUT_TOKEN = 10_000
SECONDS_FOR_BODY = 20.0
LEAST_BYTES_PER_SECOND = 5_000  # that let a body take longer
POLICY = (
    "default-src 'none'; script-src {code}; style-src {code}; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY.format(code="'self'"),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without one, browsers send the origin "null" with forms of this page
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# The description of the addresses, as FastAPI has it, is shown by a script of Swagger's, which comes from there.
DOCS_POLICY = POLICY.format(code="'unsafe-inline' https://cdn.jsdelivr.net")


def middleware(most_bytes: int, token: str | None = None, names: Sequence[str] | None = None) -> list[Middleware]:
    """The middleware of requests of at most so many bytes, in this order.

    A request shows the ``token`` as a cookie or as ``Authorization: Bearer``. It calls this machine by one of the
    ``names``, which other names that are made to point here are not.
    """

    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        answer = refused(request, token) or await call_next(request)
        if request.scope["path"] == "/docs":
            answer.headers["Content-Security-Policy"] = DOCS_POLICY
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    hosts = ["*"] if names is None else [f"[{name}]" if ":" in name else name for name in names]
    return [
        Middleware(BaseHTTPMiddleware, dispatch=guard),
        Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False),
        Middleware(BodyLimits, most_bytes=most_bytes),
    ]


def is_local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refused(request: Request, token: str | None) -> Response | None:
    """The answer to a request that may not pass: one of a page of another server, or one without the token.

    A person is led to the page that asks for the token, or on where the address has it; a program is told.
    """
    path = request.scope["path"]
    if request.method not in READING and not is_of_this_page(request.headers):
        return refusal(path, 403, "this request comes from another page")
    if token is None or is_open(path) or is_known(request, token):
        return None
    if request.method == "GET" and same(request.query_params.get("token", ""), token):
        rest = request.url.remove_query_params("token")
        return admit(request, rest.path + (f"?{rest.query}" if rest.query else ""), token)
    if path.startswith("/api/"):
        return refusal(path, 401, "give the token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
    if "hx-request" in request.headers:  # for a part of a page
        return Response(status_code=401, headers={"HX-Redirect": "/enter"})
    return RedirectResponse("/enter", 303)


def is_of_this_page(headers: Headers) -> bool:
    """Whether a page of this server sends it, or a program, which says nothing of pages."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return False
    return headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def is_open(path: str) -> bool:
    return path == "/enter" or path.startswith("/static/")


def is_known(request: Request, token: str) -> bool:
    kind, given = get_authorization_scheme_param(request.headers.get("authorization"))
    return (kind.lower() == "bearer" and same(given, token)) or same(request.cookies.get(cookie_of(request), ""), token)


def cookie_of(request: Request) -> str:
    """The name of the cookie, which has the port: browsers send one server's cookies to all ports of its host."""
    return f"{COOKIE}-{request.url.port or 80}"


def admit(request: Request, path: str, token: str) -> Response:
    response = RedirectResponse("/" + path.lstrip("/\\"), 303)
    response.set_cookie(cookie_of(request), token, httponly=True, samesite="strict")
    return response


def same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), token.encode())


def refusal(path: str, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
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
