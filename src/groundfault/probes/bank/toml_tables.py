"""Banks and grammars as TOML: strict reading, plain writing, and a hash that shows changes."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundfault.base.files import write_text
from groundfault.base.reading import read_text
from groundfault.errors import InputError, first_line

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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


def require_known(table: Mapping[str, Any], names: Collection[str], where: str) -> None:
    """Raise `InputError` for an unknown key, which may be a misspelt one."""
    strange = [key for key in table if key not in names]
    if strange:
        raise InputError(
            f"{where}: there is no {strange[0]!r}; what there can be is {', '.join(names)}"
        )


def text(table: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    """Return a string of a table; the default where it is left out."""
    value = table.get(key, default)
    if not isinstance(value, str):
        raise InputError(
            f'{where}: {key} is {"missing" if value is None else "not text"}; write {key} = "..."'
        )
    return value


def flag(table: Mapping[str, Any], key: str, where: str, default: bool) -> bool:
    """Return a truth value of a table; the default where it is left out."""
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise InputError(f"{where}: {key} is neither true nor false; write {key} = true or false")
    return value


def texts(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Return a list of strings of a table; none where it is left out."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f'{where}: {key} must be a list of texts, such as {key} = ["..."]')
    return tuple(value)


def slots(table: Mapping[str, Any], key: str, where: str) -> dict[str, str]:
    """Return the texts by name of a table; none where it is left out."""
    value = table.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise InputError(
            f'{where}: {key} must be texts by name, as in {key} = {{ shortcut = "10" }}'
        )
    return value


def number(table: Mapping[str, Any], key: str, where: str) -> Fraction:
    """Return a number that a table holds as text; 0 where it is left out."""
    try:
        return Fraction(text(table, key, where, "0"))
    except (ValueError, ZeroDivisionError):
        raise InputError(f'{where}: {key} must be a number in quotes, such as "0.01"') from None


_READERS: dict[str, Callable[[Mapping[str, Any], str, str], Any]] = {
    "str": text,
    "tuple[str, ...]": texts,
    "Mapping[str, str]": slots,
    "Fraction": number,
}
"""Readers of values, by the annotation of the field that takes them."""


def read_fields(
    form: type[DataclassInstance], table: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Return the values of a dataclass's fields that a table holds; others have a default.

    Raises
    ------
    InputError
        If the table holds something else, lacks a field without a default, or a value is of
        another type.
    """
    form_fields = fields(form)
    require_known(table, [field.name for field in form_fields], where)
    return {
        field.name: _READERS[str(field.type)](table, field.name, where)
        for field in form_fields
        if field.name in table or field.default is field.default_factory is MISSING
    }


def tables(data: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """Return the tables under ``[[key]]``."""
    value = data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise InputError(f"{where}: {key} must be written as [[{key}]] tables")
    return value


def sha256(content: Any) -> str:
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


def pairs(table: Mapping[str, Any]) -> list[str]:
    """Return lines of ``key = value``; what is empty is left out."""
    return [
        f"{key} = {_value(value)}"
        for key, value in table.items()
        if value not in ("", (), {}, [], None)
    ]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_value(key)} = {_value(each)}" for key, each in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_value, value)) + "]"
    # a string of JSON is one of TOML, but for one character that TOML wants escaped
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
