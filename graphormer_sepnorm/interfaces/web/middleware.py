"""What every request passes: whose page it is for, who may ask, how large it may be, and the headers of the answer."""

import hmac
import ipaddress
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "graphormer-sepnorm-token"
OPEN_PATHS = ("/static/", "/enter")
READING = ("GET", "HEAD")
DRAINED = 10  # times the limit, so that a browser reads why instead of a broken connection
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_local(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Gate:
    """Lets requests through to a page.

    Args:
        app: the page.
        most_bytes: of a request.
        token: what a request has to show, as a cookie or as ``Authorization: Bearer``; None: nothing.
        names: of this machine in requests, which other names that are made to point here are not; None: any.
    """

    def __init__(self, app: ASGIApp, most_bytes: int, token: str | None = None, names: Iterable[str] | None = None):
        self.app, self.most_bytes, self.token = app, most_bytes, token
        self.names = None if names is None else frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            headers = Headers(scope=scope)
            refused = self.refusal(scope, headers)
            if refused is None and too_long(headers, self.most_bytes):
                await drain(receive, DRAINED * self.most_bytes)
                refused = PlainTextResponse(self.size_problem(), 413)
            await (refused or self.app)(scope, self.limited(receive), with_headers(send))

    def size_problem(self) -> str:
        return f"this is too large: a request has at most {self.most_bytes / 1e6:g} MB"

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that may not pass."""
        if self.names is not None and host_name(headers.get("host", "")) not in self.names:
            return PlainTextResponse("this page is not known by that name", 421)
        if scope["method"] not in READING and not is_of_this_page(headers):
            return PlainTextResponse("this request comes from another page", 403)
        if self.token is None or scope["path"].startswith(OPEN_PATHS) or self.is_known(headers):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        given = dict(query).get("token")
        if scope["method"] == "GET" and given is not None and same(given, self.token):
            rest = urlencode([item for item in query if item[0] != "token"])
            return self.admit(scope["path"] + (f"?{rest}" if rest else ""))
        if scope["path"].startswith("/api/"):
            return PlainTextResponse("give the token: Authorization: Bearer TOKEN", 401, {"WWW-Authenticate": "Bearer"})
        return RedirectResponse("/enter", 303)

    def admit(self, path: str) -> Response:
        """Gives the cookie and leads on to a page of this server."""
        assert self.token is not None
        response = RedirectResponse("/" + path.lstrip("/\\"), 303)
        response.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
        return response

    def is_known(self, headers: Headers) -> bool:
        assert self.token is not None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and same(given.strip(), self.token):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and same(cookie.value, self.token)

    def limited(self, receive: Receive) -> Receive:
        """As ``receive``, for requests that do not say how long they are, too."""
        seen = 0

        async def receive_some() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.most_bytes:
                raise HTTPException(413, self.size_problem())
            return message

        return receive_some


def same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), token.encode())


def host_name(host: str) -> str | None:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def is_of_this_page(headers: Headers) -> bool:
    """Whether no page of another server sent this; programs say nothing of pages."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return False
    return headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def too_long(headers: Headers, most_bytes: int) -> bool:
    length = headers.get("content-length", "")
    return length.isdecimal() and int(length) > most_bytes


async def drain(receive: Receive, most_bytes: int) -> None:
    """Takes a request and throws it away, as far as ``most_bytes``."""
    seen = 0
    while seen < most_bytes:
        message = await receive()
        seen += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return


def with_headers(send: Send) -> Send:
    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_safely
