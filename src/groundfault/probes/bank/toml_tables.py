"""Banks and grammars as TOML: strict reading, plain writing, and a hash that shows changes."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from groundfault.base.files import write_text
from groundfault.base.reading import read_text
from groundfault.errors import InputError, first_line

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

_MAX_BYTES = 256 << 20  # half of what is read of other documents: tables take more when parsed


def read(path: Path, what: str) -> dict[str, Any]:
    """Read the tables of a TOML file.

    Raises
    ------
    InputError
        If it cannot be read, is not UTF-8, or is no TOML.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; name the file of the {what} in it")
        return tomllib.loads(read_text(path, _MAX_BYTES))
    except UnicodeDecodeError:
        raise InputError(
            f"the {what} {path} is not UTF-8 text; convert it first (iconv -f LATIN1 -t UTF-8)"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read the {what} {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the {what} {path} is not TOML: {first_line(error)}") from None


@contextmanager
def locate_errors(where: str) -> Iterator[None]:
    """Prefix the message of an error raised within by the file's name, once."""
    try:
        yield
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(where) else f"{where}: {message}") from None


def require_known(table: Mapping[str, object], names: Collection[str], where: str) -> None:
    """Raise `InputError` for an unknown key, which may be a misspelt one."""
    strange = [key for key in table if key not in names]
    if strange:
        raise InputError(f"{where}: there is no {strange[0]!r}; name one of {', '.join(names)}")


def convert(table: Mapping[str, object], form: type[T], where: str, of: str = "") -> T:
    """Read a table of the file as a dataclass whose fields have one of the types of `_HINTS`.

    Raises
    ------
    InputError
        Naming ``where``, the key, and the form in which to write it; or as the dataclass refuses
        its fields, with ``where`` in place of ``of``.
    """
    require_known(table, form.__annotations__, where)
    try:
        # made once more, for msgspec leaves fields at their default out of the instance's __dict__
        return replace(msgspec.convert(table, form, dec_hook=_read_number))
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InputError):
            problem = str(error.__cause__).removeprefix(of).lstrip(": ")
            raise InputError(f"{where}: {problem}") from None
        missing = re.search(r"missing required field `(\w+)`", str(error))
        place = missing or re.search(r"`\$\.(\w+)", str(error))
        key = place[1] if place else ""
        hint = _HINTS[form.__annotations__[key]].format(key=key)
        raise InputError(
            f"{where}: {key} " + (hint.replace("is not text", "is missing") if missing else hint)
        ) from None


_HINTS = {
    "str": 'is not text; write {key} = "..."',
    "bool": "is neither true nor false; write {key} = true or false",
    "int": "must be a whole number; write {key} = 1",
    "tuple[str, ...]": 'must be a list of texts, such as {key} = ["..."]',
    "Mapping[str, str]": 'must be texts by name, as in {key} = {{ shortcut = "10" }}',
    "Fraction": 'must be a number in quotes, such as "0.01"',
    "list[dict[str, Any]]": "must be written as [[{key}]] tables",
}
"""How a value is written in the file, by the annotation of the field that takes it."""


def _read_number(_: type, value: object) -> Fraction:
    try:
        return Fraction(str(value)) if isinstance(value, str) else Fraction("")
    except ZeroDivisionError:
        raise ValueError(value) from None


def sha256(content: object) -> str:
    """Hash content as canonical JSON: comments and layout of a file do not count."""
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, ensure_ascii=False).encode()
    ).hexdigest()


def check_frozen(stored_hash: str, content_hash: str, where: str) -> None:
    """Raise `InputError` if the hash in a file is not that of its content."""
    if stored_hash and stored_hash != content_hash:
        raise InputError(
            f"{where} was frozen as {stored_hash[:12]} and is now {content_hash[:12]}: undo the "
            "change, or make it a version "
            f'of its own with sha256 = "{content_hash}"'
        )


def write(path: Path, lines: list[str]) -> None:
    """Write lines of TOML, whole or not at all."""
    write_text(path, "\n".join(lines) + "\n")


def pairs(table: Mapping[str, object]) -> list[str]:
    """Return lines of ``key = value``, without empty values."""
    return [
        f"{key} = {_value(value)}"
        for key, value in table.items()
        if value not in ("", (), {}, [], None)
    ]


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_value(key)} = {_value(each)}" for key, each in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_value, value)) + "]"
    # a string of JSON is one of TOML, but for one character that TOML wants escaped
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
