"""MINT: results of multi-turn episodes with tools, one JSON object a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from groundfault.core.status import Status
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_lines
from groundfault.readers.values import mapping, text, texts_by

_NAME = re.compile(r"(?P<model>.+)_max\d+_(?P<task>.+)\.results")


class _State(msgspec.Struct):
    success: bool | None = None
    history: list[dict[str, Any]] = []
    terminate_reason: str | None = None
    error: Any = None
    agent_action_count: dict[str, Any] | None = None
    token_counter: dict[str, Any] | None = None


class _Task(msgspec.Struct):
    task_id: int | str
    prompt: str | None = None
    reference: Any = None
    metadata: dict[str, Any] = {}
    task_name: str = ""


class _Row(msgspec.Struct):
    state: _State
    task: _Task


class Mint:
    """Reads ``results.jsonl``; an episode that an error of the service ended is ``error``.

    The file does not name the model: it is taken from
    ``<model>/F=.../max5_.../<task>/results.jsonl``, or from ``<model>_max5_<task>.results.jsonl``.
    """

    def sniff(self, path: Path) -> bool:
        """Whether the first line has a state with a terminate reason, and a task."""
        first = head(path).partition(b"\n")[0]
        return path.suffix == ".jsonl" and first.startswith(b'{"state": {"history"')

    def read(self, path: Path) -> Log:
        """One observation an episode."""
        name_match = _NAME.fullmatch(path.stem)
        if name_match:
            return Log(_observations(path, name_match["model"], name_match["task"]), "mint")
        parts = path.resolve().parts
        turn = next((i for i, part in enumerate(parts) if part.startswith("F=")), 0)
        return Log(
            _observations(path, parts[turn - 1] if turn else "", path.resolve().parent.name), "mint"
        )


def _observations(path: Path, model: str, task: str) -> Iterator[Observation]:
    for position, row in enumerate(json_lines(path, _Row), 1):
        state, counts, tokens = (
            row.state,
            mapping(row.state.agent_action_count),
            mapping(row.state.token_counter),
        )
        # success is false then, but the agent was stopped, not wrong
        is_error = state.error is not None or state.terminate_reason == "error"
        value = None if is_error or state.success is None else float(state.success)
        turns = texts_by(state.history, "assistant")
        yield Observation(
            str(row.task.task_id),
            value,
            Status.ERROR if is_error else Status.MISSING if value is None else Status.SCORED,
            scorer="success",
            model=model,
            task=task,
            prompt=row.task.prompt,
            response=turns[-1] if turns else None,
            target=text(row.task.reference),
            attributes={"task_type": row.task.task_name, **row.task.metadata},
            measured={
                "position": position,
                "terminate_reason": state.terminate_reason,
                "turns": len(turns),
                "tool_calls": counts.get("use_tool"),
                "invalid_actions": counts.get("invalid_action"),
                "input_tokens": tokens.get("prompt_tokens"),
                "output_tokens": tokens.get("completion_tokens"),
            },
        )
