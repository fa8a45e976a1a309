"""Progress of long work: messages to a function that the caller may pass."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], object]


def listener(progress: Progress | None) -> Progress:
    """The function to call with a message: the one that was passed, or one that does nothing."""
    return progress or _ignore


def _ignore(message: str) -> None:
    """Do nothing: the caller passed no function."""
