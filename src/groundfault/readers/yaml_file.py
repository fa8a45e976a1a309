"""YAML from outside, opened with care: no tags, a bounded size, and no aliases that multiply."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from groundfault.base.reading import read_bytes, readable
from groundfault.errors import InputError, MissingExtraError, first_line

T = TypeVar("T")

MAX_YAML = 256 << 20
"""Bytes of one document: its parser is slower than that of JSON, and takes more memory."""
MAX_PARTS = 20_000_000
"""Values in a document, each counted as often as an alias repeats it."""


def yaml_file(path: Path, type: type[T]) -> T:
    """A whole YAML document, decoded into a type.

    Raises
    ------
    InputError
        If it is too large, no YAML, nested too deeply, or not of the type.
    MissingExtraError
        If PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise MissingExtraError(
            f"{path} is YAML, which needs PyYAML: pip install 'groundfault[yaml]', or write JSON"
        ) from None
    # the safe loader makes no objects of any class; the one in C is some ten times faster
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with readable(path):
        data = read_bytes(path, MAX_YAML)
    try:
        content = yaml.load(data, loader)
        if _count_parts(content, {}) > MAX_PARTS:
            raise InputError(f"{path} has over {MAX_PARTS:,} values, most of them by aliases")
        return msgspec.convert(content, type)
    except RecursionError:
        raise InputError(f"{path} is YAML nested too deeply") from None
    except msgspec.ValidationError as error:
        raise InputError(f"{path} is not laid out as expected: {first_line(error)}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{path} is not YAML, or is cut short: {first_line(error)}") from None


def _count_parts(value: Any, known: dict[int, int]) -> int:
    """How many values there are once every alias is written out; each object is visited once."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        # while it is counted, a list that holds itself has no end
        known[id(value)] = MAX_PARTS + 1
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_count_parts(part, known) for part in parts)
    return known[id(value)]
