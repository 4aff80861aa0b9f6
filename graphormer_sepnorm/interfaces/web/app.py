"""The page and its JSON as an ASGI application: what it answers where there is no answer, and whom it answers at all.

Every request is checked: by what name, from which page, by whom and how fast.
"""

import asyncio
import contextlib
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import Depends, FastAPI, Form, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from graphormer_sepnorm.errors import InputError, as_text
from graphormer_sepnorm.interfaces.web.api import add_pictures, add_tables, problems
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue
from graphormer_sepnorm.interfaces.web.pages import Pages, add_pages, make_pages
from graphormer_sepnorm.interfaces.web.trainings import Trainings, add_training
from graphormer_sepnorm.version import __version__

MOST_SHOWN_OF_PATH = 100
SECONDS_FOR_HEAD = 10.0
MOST_CONNECTIONS = 2000
COOKIE = "graphormer-sepnorm-token"
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
# The description of the addresses is shown by a script of Swagger's, which comes from there.
DOCS_POLICY = POLICY.format(code="'unsafe-inline' https://cdn.jsdelivr.net")


def middleware(most_bytes: int, token: str = "", names: Sequence[str] = (), root: str = "") -> list[Middleware]:
    """The middleware of requests of at most so many bytes, in this order.

    A request calls this machine by one of the ``names``, which other names that are made to point here are not.
    Browsers have ``root`` before each address, which a proxy takes away. Without a token, none is asked for.
    """
    hosts = [f"[{name}]" if ":" in name else name for name in names]

    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        host = re.sub(r":\d+$", "", request.headers.get("host", ""))
        if hosts and host not in hosts:
            sentence = f"the server does not answer to the name {host!r}: use one of {', '.join(hosts)}, or see --host"
            answer = refusal(request.scope["path"], 400, sentence)
        else:
            answer = refused(request, token, root) or await call_next(request)
        for name in ("location", "hx-redirect", "hx-push-url"):
            if (address := answer.headers.get(name, "").removeprefix(str(request.base_url)[:-1])).startswith("/"):
                answer.headers[name] = root + address
        own = {"Content-Security-Policy": DOCS_POLICY} if request.scope["path"] == "/docs" else {}
        for name, value in (HEADERS | own).items():
            answer.headers.setdefault(name, value)
        return answer

    return [Middleware(BaseHTTPMiddleware, dispatch=guard), Middleware(BodyLimits, most_bytes=most_bytes)]


def is_local(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    return False


def refused(request: Request, token: str, root: str) -> Response | None:
    """The answer to a request of another server's page, or without the token as cookie or ``Authorization: Bearer``.

    A program says nothing of pages.
    """
    path, headers = request.scope["path"], request.headers
    is_other = "origin" in headers and urlsplit(headers["origin"]).netloc != headers.get("host")
    is_other |= headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    if is_other and request.method not in ("GET", "HEAD"):
        return refusal(path, 403, "this request comes from another page")
    kind, _, bearer = headers.get("authorization", "").partition(" ")
    credentials = bearer.strip() * (kind.lower() == "bearer"), request.cookies.get(cookie_of(request), "")
    if not token or is_open(path) or any(same(each, token) for each in credentials):
        return None
    if request.method == "GET" and same(request.query_params.get("token", ""), token):
        rest = request.url.remove_query_params("token")
        return admit(request, rest.path + (f"?{rest.query}" if rest.query else ""), token, root)
    if path.startswith("/api/"):
        return refusal(path, 401, "give the token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
    if "hx-request" in headers:  # for a part of a page
        return Response(status_code=401, headers={"HX-Redirect": "/enter"})
    return RedirectResponse("/enter", 303)


def is_open(path: str) -> bool:
    return path in ("/enter", "/healthz") or path.startswith("/static/")


def cookie_of(request: Request) -> str:
    """The name of the cookie, which has the port: browsers send one server's cookies to all ports of its host."""
    return f"{COOKIE}-{request.url.port or 80}"


def admit(request: Request, path: str, token: str, root: str) -> Response:
    response, is_secure = RedirectResponse("/" + path.lstrip("/\\"), 303), request.url.scheme == "https"
    response.set_cookie(cookie_of(request), token, path=root or "/", secure=is_secure, httponly=True, samesite="strict")
    return response


def same(sent: str, token: str) -> bool:
    return hmac.compare_digest(sent.encode(errors="replace"), token.encode())


def refusal(path: str, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """A sentence, as JSON below ``/api`` and as text elsewhere."""
    if path.startswith("/api/"):
        return JSONResponse({"detail": sentence}, status, headers)
    return PlainTextResponse(sentence, status, headers)


class BodyLimits:
    """Bounds the body of a request: in size, smaller where anybody may send one, and in time unless it comes fast."""

    def __init__(self, app: ASGIApp, most_bytes: int):
        self.app, self.most_bytes = app, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        most = min(self.most_bytes, MOST_BYTES_WITHOUT_TOKEN) if is_open(scope["path"]) else self.most_bytes
        sentence = f"this is too large: a request has at most {most / 1e6:g} MB"
        started, seen, is_whole = asyncio.get_running_loop().time(), 0, False

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

        as_get = {"method": "GET"} if scope.get("method") == "HEAD" else {}  # whose body uvicorn leaves out
        await self.app({**scope, **as_get}, receive_within_limits, send)


def add_entrance(app: FastAPI, pages: Pages, true_token: str, root: str) -> None:
    app.add_api_route("/enter", lambda: pages("enter.html"), include_in_schema=False)

    @app.post("/enter", include_in_schema=False)
    def enter(request: Request, token: Annotated[str, Form()] = "") -> Response:
        if true_token and not same(token, true_token):
            return pages("enter.html", 401, problem="This is not the token.")
        return admit(request, "/", true_token, root) if true_token else RedirectResponse("/", 303)


def add_problems(app: FastAPI, pages: Pages) -> None:
    """Errors: a sentence, as JSON below ``/api`` and as a page elsewhere."""

    async def answer(request: Request, error: Exception) -> Response:
        path, status, headers = request.url.path, getattr(error, "status_code", 422), getattr(error, "headers", None)
        match error:
            case HTTPException():
                sentence = error.detail
            case RequestValidationError():
                sentence = f"{'.'.join(map(str, error.errors()[0]['loc']))}: {error.errors()[0]['msg']}"
            case InputError():
                sentence = error.sentence
            case _:
                status, sentence = 500, "the page failed here: the terminal of the server says where"
        excerpt = path if len(path) <= MOST_SHOWN_OF_PATH else f"{path[:MOST_SHOWN_OF_PATH]}..."
        is_for_programs = f"{path}/".startswith("/api/")
        is_missing = status == 404 and sentence == HTTPStatus.NOT_FOUND.phrase  # of Starlette, for no route
        if is_missing and is_for_programs:
            sentence = f"there is no address {excerpt}: /docs lists the addresses below /api"
        if is_for_programs or is_open(path):  # which says nothing of the models
            return refusal(f"{path}/", status, as_text(sentence), headers)
        if is_missing:
            return pages("missing.html", 404, path=excerpt)
        name = "problem.html" if "hx-request" in request.headers else "page.html"
        return pages(name, status, headers=headers, problem=as_text(sentence))

    for kind in (HTTPException, RequestValidationError, InputError, Exception):
        app.add_exception_handler(kind, answer)


def make_app(
    queue: JobQueue, token: str = "", names: Sequence[str] = (), trainings: Trainings | None = None, root: str = ""
) -> FastAPI:
    """The page as an ASGI application, which offers no trainings without ``trainings``."""
    app = FastAPI(
        title="graphormer-sepnorm",
        version=__version__,
        description="Predictions for molecules. A table is given in, its progress asked for, and its rows fetched.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        servers=[{"url": root}] if root else None,
        dependencies=[Depends(HTTPBearer(auto_error=False))] if token else [],
        responses=problems(400, 401),
        middleware=middleware(queue.limits.upload_bytes, token, names, root),
    )
    app.state.queue = queue  # for ``api.job_of``
    pages = make_pages(queue, root)
    add_tables(app, queue)
    add_pictures(app, queue)
    add_pages(app, queue, pages)
    add_training(app, queue, pages, trainings)
    add_entrance(app, pages, token, root)
    add_problems(app, pages)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    return app


def make_server(app: ASGIApp) -> uvicorn.Server:
    with contextlib.suppress(ImportError, OSError, ValueError):  # open files and sockets: as many as the system permits
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = 2 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    return uvicorn.Server(uvicorn.Config(app, limit_concurrency=MOST_CONNECTIONS, http=PunctualProtocol, **quiet))


class PunctualProtocol(H11Protocol):
    """Closes a connection without a whole head of a request ``SECONDS_FOR_HEAD`` after its start or the last answer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(SECONDS_FOR_HEAD, self.close_unless_requested, self.cycle)

    def on_response_complete(self) -> None:
        self.loop.call_later(SECONDS_FOR_HEAD, self.close_unless_requested, self.cycle)
        super().on_response_complete()

    def close_unless_requested(self, last: RequestResponseCycle | None) -> None:
        if self.cycle is last:
            self.timeout_keep_alive_handler()
