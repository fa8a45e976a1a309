"""Conversations: values that hold the messages of a run, told by their content."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import polars as pl

from groundfault.core.column_names import holds_question

TRANSCRIPT = "transcript_in_log"
"""Column: the number of the row's conversation among the conversations read from its log."""

_LISTS = ("messages", "traj", "trajectory", "history", "spans", "observations", "turns")
"""Keys that agents' logs put the list of a run under."""
_SPEAKERS = frozenset({"role", "source"})
_SPANS = frozenset({"span_kind", "spanId", "span_id", "traceId", "trace_id"})
_ASKERS = frozenset({"user", "system", "developer"})
"""Speakers in a prompt; a run also has an agent."""
_LOOKED_AT = 5
"""Values of a column to look at: if all are conversations, the column holds conversations."""


def open_conversation(value: Any) -> list[dict[str, Any]]:
    """Return the messages, turns or spans of one run from a log or a cell of a table.

    Parameters
    ----------
    value : str, list or dict
        JSON text is parsed; of a mapping, its list of messages is taken.

    Returns
    -------
    list of dict
        Empty if the value is no conversation.

    Examples
    --------
    >>> open_conversation('{"messages": [{"role": "user", "content": "hi"}]}')
    [{'role': 'user', 'content': 'hi'}]
    """
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError):
            value = _parse_leniently(value)
    if isinstance(value, dict):
        value = next((value[k] for k in _LISTS if isinstance(value.get(k), list)), None)
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def tell_conversation(value: Any) -> str:
    """Return the messages of a run, a line each, with their speakers and the tools they call.

    Examples
    --------
    >>> call = {"function": {"name": "pay"}}
    >>> print(tell_conversation([{"role": "user", "content": "Pay."},
    ...                          {"role": "assistant", "tool_calls": [call]}]))
    user: Pay.
    assistant: calls pay
    """
    lines = []
    for item in open_conversation(value):
        speaker = next((item[k] for k in ("role", "source", "name") if item.get(k)), "step")
        said = next((item[k] for k in ("content", "text", "action", "output") if item.get(k)), "")
        calls = [c for c in item.get("tool_calls") or () if isinstance(c, dict)]
        names = [read_attributes(c.get("function")).get("name") or c.get("name") for c in calls]
        words = said if isinstance(said, str) else msgspec.json.encode(said, enc_hook=str).decode()
        lines.append(
            " ".join([f"{speaker}:", *filter(None, [words]), *(f"calls {n}" for n in names)])
        )
    return "\n".join(lines)


def read_attributes(value: Any) -> dict[str, Any]:
    """Return attributes as a mapping; OTLP writes them as a list of typed values."""
    if isinstance(value, list):
        pairs = [(one.get("key"), one.get("value")) for one in value if isinstance(one, dict)]
        return {str(key): _read_typed(typed) for key, typed in pairs}
    return value if isinstance(value, dict) else {}


def _read_typed(typed: Any) -> Any:
    """Return a value of OTLP, such as ``{"intValue": "3"}``: its whole numbers are in quotes."""
    kind, value = next(iter(typed.items()), ("", None)) if isinstance(typed, dict) else ("", typed)
    is_whole = kind == "intValue" and str(value).lstrip("-").isdecimal()
    return int(str(value)) if is_whole else value


def _parse_leniently(value: str) -> Any:
    """Return a value parsed from JSON that may hold NaN, as Python writes it; None if it fails."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def holds_conversations(values: pl.Series) -> bool:
    """Return whether a column holds conversations of runs, not prompts.

    A column named like a question holds a chat that the model was given.
    """
    if holds_question(values.name):
        return False
    if isinstance(values.dtype, pl.List) and isinstance(values.dtype.inner, pl.Struct):
        return _is_message({field.name for field in values.dtype.inner.fields})
    if values.dtype != pl.String:
        return False
    some = values.drop_nulls().head(_LOOKED_AT)
    if not len(some) or not some.str.contains(r'^\s*[\[{][\s\S]*"').all():
        return False
    return all(
        (items := open_conversation(text))
        and _is_message({*items[0]})
        and any(item.get("role") not in _ASKERS for item in items)
        for text in some
    )


def list_conversations(frame: pl.DataFrame) -> list[str]:
    """Return the columns that hold conversations."""
    return [column.name for column in frame if holds_conversations(column)]


def has_transcripts(frame: pl.DataFrame) -> bool:
    """Return whether rows are runs whose steps can be read, from their logs or from a column."""
    return TRANSCRIPT in frame.columns or bool(list_conversations(frame))


def _is_message(keys: set[str]) -> bool:
    return bool(
        keys & _SPANS
        or (keys & _SPEAKERS and keys & {"content", "tool_calls", "parts", "text"})
        or {"action", "observation"} <= keys
    )
