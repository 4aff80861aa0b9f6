"""The page and its JSON as an ASGI application, and what is answered where there is no answer."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from graphormer_sepnorm.errors import InputError, as_text
from graphormer_sepnorm.interfaces.web.api import PROBLEMS, add_pictures, add_results, add_tables
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue, QueueFull
from graphormer_sepnorm.interfaces.web.middleware import is_open, middleware, refusal
from graphormer_sepnorm.interfaces.web.pages import Pages, add_entrance, add_pages, add_table_pages
from graphormer_sepnorm.interfaces.web.trainings import Trainings, add_training
from graphormer_sepnorm.version import __version__

NOT_FOUND = HTTPStatus.NOT_FOUND.phrase  # the words of Starlette if no route has the address
MOST_SHOWN_OF_PATH = 100
SECONDS_FOR_HEAD = 10.0
MOST_CONNECTIONS = 2000


def add_problems(app: FastAPI, pages: Pages) -> None:
    """Errors: a sentence, as JSON below ``/api`` and as a page elsewhere."""

    def problem(request: Request, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
        sentence, path = as_text(sentence), request.url.path
        if is_open(path) or path.startswith("/api/"):  # an open one says nothing of the models
            return refusal(path, status, sentence, headers)
        name = "problem.html" if "hx-request" in request.headers else "page.html"
        return pages(name, status, headers=headers, problem=sentence)

    @app.exception_handler(HTTPException)
    async def of_request(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404 and error.detail == NOT_FOUND and not is_open(request.url.path):
            return missing(request, pages)
        return problem(request, error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def of_form(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return problem(request, 422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    @app.exception_handler(InputError)
    async def of_input(request: Request, error: InputError) -> Response:
        return problem(request, 422, error.sentence)

    @app.exception_handler(QueueFull)
    async def of_queue(request: Request, error: QueueFull) -> Response:
        return problem(request, 503, "too much is waiting to be computed: try again in a while")

    @app.exception_handler(Exception)
    async def of_program(request: Request, error: Exception) -> Response:
        return problem(request, 500, "the page failed here: the terminal of the server says where")


def missing(request: Request, pages: Pages) -> Response:
    """The answer to an address that does not exist: a page with a link to the start, or JSON below ``/api``."""
    path = request.url.path
    shown = path if len(path) <= MOST_SHOWN_OF_PATH else f"{path[:MOST_SHOWN_OF_PATH]}..."
    if f"{path}/".startswith("/api/"):
        return JSONResponse({"detail": f"there is no address {shown}: /docs lists the addresses below /api"}, 404)
    return pages("missing.html", 404, path=shown)


def make_app(
    queue: JobQueue,
    token: str | None = None,
    names: tuple[str, ...] | None = None,
    trainings: Trainings | None = None,
    use: Callable[[list[str]], None] | None = None,
) -> FastAPI:
    """The page as an ASGI application; ``use`` exchanges the models, without ``trainings`` it offers none."""
    app = FastAPI(
        title="graphormer-sepnorm",
        version=__version__,
        description="Predictions for molecules. A table is given in, its progress asked for, and its rows fetched.",
        openapi_url="/api/openapi.json",
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        responses=PROBLEMS,
        middleware=middleware(queue.limits.upload_bytes, token, names),
    )
    app.state.queue = queue  # for ``api.known``
    pages = Pages(queue)
    for add in (add_tables, add_results, add_pictures):
        add(app, queue)
    add_pages(app, queue, pages)
    add_table_pages(app, queue, pages)
    add_training(app, queue, pages, trainings, use)
    add_entrance(app, pages, token)
    add_problems(app, pages)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    return app


class Page:
    """The page of models by their names, whose place others can take, as an ASGI application."""

    def __init__(
        self,
        open_queue: Callable[[list[str]], JobQueue],
        models: list[str],
        token: str | None = None,
        names: tuple[str, ...] | None = None,
        trainings: Trainings | None = None,
    ):
        self.open_queue, self.models = open_queue, models
        self.queue = open_queue(models)
        self.make = partial(make_app, token=token, names=names, trainings=trainings, use=self.use)
        self.app = self.make(self.queue)
        self.exchanging = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    def use(self, models: list[str]) -> None:
        """Exchanges the models for others, or if there are none, for those at the beginning.

        Raises InputError if tables are being computed, or the models cannot be loaded; those before stay then.
        """
        with self.exchanging:
            if self.queue.is_computing:
                raise InputError("tables are being computed with this model: wait for them, or cancel them")
            queue, before = self.open_queue(models or self.models), self.queue
            self.queue, self.app = queue, self.make(queue)
            before.close()

    def close(self) -> None:
        self.queue.close()


def make_server(app: ASGIApp) -> uvicorn.Server:
    allow_open_files(2 * MOST_CONNECTIONS)
    quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    config = uvicorn.Config(app, limit_concurrency=MOST_CONNECTIONS, http=PunctualProtocol, **quiet)
    return uvicorn.Server(config)


def allow_open_files(number: int) -> None:
    """Lets this process have so many files and sockets open, as far as the system permits."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = number if hard == resource.RLIM_INFINITY else min(number, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class PunctualProtocol(H11Protocol):
    """Closes a connection on which no whole head of a request comes ``SECONDS_FOR_HEAD`` after it is due.

    It is due when the connection is made, and when the answer before it is complete.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.expect_request()

    def on_response_complete(self) -> None:
        self.expect_request()
        super().on_response_complete()

    def expect_request(self) -> None:
        self.loop.call_later(SECONDS_FOR_HEAD, self.close_unless_requested, self.cycle)

    def close_unless_requested(self, last: RequestResponseCycle | None) -> None:
        if self.cycle is last:
            self.timeout_keep_alive_handler()
