"""uvicorn's protocol with a time limit for the head of a request, which uvicorn has none for."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

SECONDS_FOR_HEAD = 10.0


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
