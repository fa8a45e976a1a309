"""Targets: models and recordings that answer questions. `get` finds one by name."""

from __future__ import annotations

import re
from typing import Protocol, runtime_checkable

from groundfault.base.registry import open_registry
from groundfault.errors import PlanError
from groundfault.models.question import Question, Response

_REGISTRY = open_registry("target", "groundfault.targets")


@runtime_checkable
class Target(Protocol):
    """Answers questions; several calls may run at once.

    Attributes
    ----------
    name : str
        Its key in a record: all settings that decide its answers, without secrets.

    Notes
    -----
    A target tries once and waits for the reply. `groundfault.models.ask` retries, stops on
    time-outs, bounds concurrency and records. A failure on the way to the model is a `Response`
    with an ``error``, not an exception.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    async def answer(self, question: Question) -> Response:
        """Make one attempt."""
        ...


def get(name: str | Target, **options: object) -> Target:
    """Return the target with a name, such as ``openai/gpt-4o-mini`` or ``replay:calls.jsonl``.

    Parameters
    ----------
    name : str or Target
        A built-in kind, or one registered under the entry-point group ``groundfault.targets``; then
        a slash or a colon, and the model or file. A target object is returned unchanged.
    **options
        Options of the kind: ``base_url`` and ``api_key`` for openai, ``target`` for replay,
        arguments of ``get_model`` for inspect and hf.

    Raises
    ------
    PlanError
        If the kind is unknown, or does not take the options.
    MissingExtraError
        If the kind needs a library that is not installed.
    """
    if not isinstance(name, str):
        return name
    parts = re.fullmatch(r"([\w-]+)[:/](.+)", name, re.DOTALL)
    if parts is None:
        raise PlanError(
            f"{name!r} names no target; write openai/<model>, hf/<path> or replay:<file>"
        )
    make = _REGISTRY.get(parts[1])
    try:
        target = make(parts[2], **options)
    except TypeError as error:
        raise PlanError(f"the target {parts[1]} does not take these options: {error}") from None
    assert isinstance(target, Target)
    return target
