"""uvicorn, with a time limit for the head of a request, which it has none for."""

import asyncio
import contextlib

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

SECONDS_FOR_HEAD = 10.0
MOST_CONNECTIONS = 2000


def make_server(app: ASGIApp) -> uvicorn.Server:
    """The server that accepts requests."""
    allow_open_files(2 * MOST_CONNECTIONS)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        http=PunctualProtocol,
    )
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
