"""JSON files of taxonomies: numbers that may be unknown, values that follow, and versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from groundfault.base.reading import decode_json

T = TypeVar("T")

SCHEMA_VERSION = 1
"""Version of taxonomy.json, labels.json and of a diagnosis; the next one adds a function that
changes version 1 into it."""

if TYPE_CHECKING:
    Numbers = tuple[float, ...]
else:
    # in a file null stands for NaN, which JSON does not have
    Numbers = tuple[float | None, ...]
"""Numbers in a row, NaN where one is not known."""


def set_fields(instance: object, **values: object) -> None:
    """Set fields of a frozen dataclass that follow from its others, while it is made."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def restore_unknown(values: Sequence[float | None]) -> Numbers:
    """Return the numbers with NaN in place of None."""
    return tuple(np.nan if value is None else value for value in values)


class Stored:
    """A result that is written as JSON: itself, or its `data`."""

    @property
    def data(self) -> object:
        """Return all that the file holds."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain words and numbers."""
        return dict(msgspec.json.decode(msgspec.json.encode(self.data)))

    def to_json(self) -> str:
        """Return the text of its file."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)


def decode_versioned(content: bytes, form: type[T], name: str, default: int | None = None) -> T:
    """Read JSON that `to_text` wrote.

    Parameters
    ----------
    content : bytes
    form : type
    name : str
        The key of the version.
    default : int, optional
        The version of a file that names none.

    Raises
    ------
    ValueError
        If it is something else, or of a version that is not known here.
    """
    data = decode_json(content.decode(), "it")
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    version = data.get(name, default)
    if version != SCHEMA_VERSION:
        raise ValueError(
            f"its version is {version}, and {SCHEMA_VERSION} is read here: another version of "
            "groundfault wrote it"
        )
    strange = [key for key in data if key not in form.__annotations__ and key != name]
    if strange:
        raise ValueError(f"it has the unknown field {strange[0]!r}")
    return msgspec.convert(data, form)
