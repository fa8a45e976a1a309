"""Values as logs write them, in the types of an observation."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any


def number(value: Any) -> float | None:
    """A finite number or a true/false; None for anything else, also NaN and numbers in quotes."""
    if isinstance(value, (int, float)):  # also a true/false
        try:
            # a JSON integer may have thousands of digits
            result = float(value)
        except OverflowError:
            return None
        return result if math.isfinite(result) else None
    return None


def text(value: Any) -> str | None:
    """Text as it is, a list of texts joined by `` | ``, anything else as JSON; None for nothing."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " | ".join(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def mapping(value: Any) -> dict[str, Any]:
    """A mapping as it is; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    """A list as it is; an empty one for anything else."""
    return value if isinstance(value, list) else []


def drop_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def texts_by(messages: Any, role: str) -> list[str]:
    """The messages of one role in a conversation; parts that are no text are left out."""
    contents = [
        mapping(m).get("content") for m in listing(messages) if mapping(m).get("role") == role
    ]
    return [words for content in contents if (words := _words(content))]


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        part for each in listing(content) if isinstance(part := mapping(each).get("text"), str)
    )


def name_of(question: str) -> str:
    """An id for a question whose log gives none: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:16]
