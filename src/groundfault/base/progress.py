"""Progress of long work, in words; whoever does not listen is not told."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], object]


def listener(progress: Progress | None) -> Progress:
    """The function to call with a message: the one that was passed, or one that does nothing."""
    return progress or _ignore


def _ignore(message: str) -> None:
    """Nobody listens."""
