"""Connections of the workbench's server: a limit on their number, and a timeout for each."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 64
"""At once: a browser opens six to a host, and a workbench is for one person's tabs."""
REQUEST_SECONDS = 10.0
"""From the first moment of a connection, or of a request's body, to the end of the request."""
READ_SECONDS = 30.0
"""For a reader to take what fills the buffer of a connection, 64 kB."""
_WAITING = frozenset({h11.IDLE, h11.SEND_BODY})


class BoundedProtocol(H11Protocol):
    """A connection that is closed where its request, or its reader, takes too long.

    Half a request, a byte now and then, or an answer that is never read would else hold a place for
    as long as its sender likes.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; one too many is closed at once."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all clocks."""
        for name in list(self._timers):
            self._stop(name)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; they do not set the clock back."""
        super().data_received(data)
        self._expect_request()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._expect_request()

    def pause_writing(self) -> None:
        """Give the reader some time."""
        super().pause_writing()
        self._start("reader", READ_SECONDS)

    def resume_writing(self) -> None:
        """Stop the clock of the reader."""
        super().resume_writing()
        self._stop("reader")

    def _expect_request(self) -> None:
        if self.conn.their_state in _WAITING:
            self._start("request", REQUEST_SECONDS)
        else:
            self._stop("request")

    def _start(self, name: str, seconds: float) -> None:
        if name not in self._timers and not self.transport.is_closing():
            self._timers[name] = self.loop.call_later(seconds, self.transport.abort)

    def _stop(self, name: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()


def bound_connections() -> dict[str, Any]:
    """Return the settings of uvicorn that go with `BoundedProtocol`."""
    return {"http": BoundedProtocol, "ws": "none", "h11_max_incomplete_event_size": 65_536}
