"""Progress: messages reach who listens, and nobody has to."""

from __future__ import annotations

from groundfault.base.progress import listener


def test_messages_reach_the_listener() -> None:
    messages: list[str] = []
    listener(messages.append)("half done")
    listener(None)("nobody listens")
    assert messages == ["half done"]
