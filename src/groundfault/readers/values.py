"""Convert values in logs to the types of an observation."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from groundfault.base.reading import read_beside
from groundfault.core.status import Status

NO_VALUE = ["n/a", "na", "#n/a", "nan", "none", "null", "-", ""]
"""Words in lower case that a cell of a table has where it has no value."""


@cache
def list_names(tool: str) -> dict[str, Any]:
    """Return the names that a tool gives to columns, lists and metrics of its logs."""
    tables: dict[str, dict[str, object]] = tomllib.loads(read_beside(__file__, "names.toml"))
    return tables[tool]


def number(value: object) -> float | None:
    """Return a finite number or a true/false as a float; None for anything else.

    NaN and numbers in quotes also give None.
    """
    if isinstance(value, (int, float)):  # also a true/false
        try:
            # a JSON integer may have thousands of digits
            result = float(value)
        except OverflowError:
            return None
        return result if math.isfinite(result) else None
    return None


def parse_number(value: object) -> float | None:
    """Return a number like `number`, also from a text, since cells of CSV are texts."""
    try:
        return number(float(value) if isinstance(value, str) else value)
    except ValueError:
        return None


def settle(value: object, reason: str | None = None) -> tuple[float | None, str]:
    """Return the score and the status of an answer; a reason replaces the score.

    An answer without score and reason is missing.
    """
    score = None if reason else number(value)
    return score, reason or (Status.MISSING if score is None else Status.SCORED)


def text(value: object) -> str | None:
    """Return a text unchanged, a list of texts joined by `` | ``, other values as JSON.

    None stays None.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " | ".join(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def mapping(value: object) -> dict[str, Any]:
    """Return a mapping unchanged, and an empty mapping for other values."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """Return a list unchanged, and an empty list for other values."""
    return value if isinstance(value, list) else []


def dig(value: object, *keys: str) -> Any:
    """Return the value at a path of keys in nested mappings; None if it is missing."""
    for key in keys:  # without a call for each: readers dig ten times a row
        value = value.get(key) if isinstance(value, dict) else None
    return value


def add_numbers(values: list[object]) -> float | None:
    """Return the sum of numbers; None for an empty list, or if a value is not a number."""
    numbers = [n for value in values if (n := number(value)) is not None]
    return sum(numbers) if numbers and len(numbers) == len(values) else None


def drop_empty(values: Mapping[str, object]) -> dict[str, Any]:
    """Return the entries that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def texts_by(messages: object, role: str) -> list[str]:
    """Return the messages of one role in a conversation; parts other than text are left out."""
    contents = [dig(m, "content") for m in listing(messages) if dig(m, "role") == role]
    return [words for content in contents if (words := _join_parts(content))]


def last_by(messages: object, role: str) -> str | None:
    """Return the last message of one role in a conversation; None without a message."""
    return next(reversed(texts_by(messages, role)), None)


def _join_parts(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        part for each in listing(content) if isinstance(part := dig(each, "text"), str)
    )


def name_of(question: str) -> str:
    """Return an id for a question without one in its log.

    The id is the first 16 hexadecimal digits of the SHA-256 of the question.
    """
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:16]
