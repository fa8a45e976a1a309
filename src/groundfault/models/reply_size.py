"""Size of replies: a server's reply is cut while it arrives, before it fills the memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from importlib import import_module
from typing import Any

MAX_REPLY = 4 << 20
"""Bytes of a reply: a million tokens, or any error."""
MAX_REPLY_WITH_LOGPROBS = 64 << 20
"""Bytes of a reply with log-probabilities, which are some hundred times as long as its text."""


class ReplyTooLargeError(Exception):
    """A reply that is not read to its end."""


class _BoundedStream:
    """The bytes of a reply as they come, up to a bound."""

    def __init__(self, stream: Any, limit: int) -> None:
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > self._limit:
                raise ReplyTooLargeError(
                    f"the reply has more than {self._limit >> 20} MB, the most that is read"
                )
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def ask_uncompressed(request: Any) -> None:
    """Ask for a reply as it is: a compressed one may unpack to a thousand times its size."""
    request.headers["accept-encoding"] = "identity"


async def bound_reply(response: Any) -> None:
    """Let no more be read of a reply than belongs to its request.

    Raises
    ------
    ReplyTooLargeError
        If it is compressed although that was not asked for; while it is read, if it is too large.
    """
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise ReplyTooLargeError(
            f"the reply is compressed ({encoding[:40]}), which was not asked for, so that its size "
            "is not known"
        )
    # httpx, or the copy of it that newer clients bring along: a stream has to be one of its own
    library = import_module(type(response).__module__.partition(".")[0])
    kind = type("BoundedStream", (_BoundedStream, library.AsyncByteStream), {})
    response.stream = kind(response.stream, _find_limit(response.request.content))


def event_hooks() -> dict[str, list[Callable[[Any], Coroutine[Any, Any, None]]]]:
    """Both, as a client of httpx takes them."""
    return {"request": [ask_uncompressed], "response": [bound_reply]}


def _find_limit(body: bytes) -> int:
    asked = json.loads(body) if body else {}  # none after some redirects
    return MAX_REPLY_WITH_LOGPROBS if asked.get("logprobs") else MAX_REPLY
