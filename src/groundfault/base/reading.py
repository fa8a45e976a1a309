"""Reading: whole files, up to a stated number of bytes.

A path may come from a stranger's report or a typing error, and name an endless file. This module
reads the files that groundfault reads as a whole; `groundfault.readers.safely` reads logs, which
may be far larger, in parts.
"""

from __future__ import annotations

import glob
import json
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from groundfault.errors import InputError, first_line, shorten

MAX_DOCUMENT = 512 << 20
"""Bytes of a file that is read as a whole: a library, a plan, a configuration, a sheet."""
MAX_ROWS = 2 << 30
"""Bytes of a file of rows that groundfault wrote."""

_PART = 1 << 20  # bytes read at a time, so that a file that grows is noticed
_MAX_DIGITS = 300  # a float holds numbers below 1.8e308
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def read_bytes(path: str | Path, limit: int = MAX_DOCUMENT) -> bytes:
    """Return the content of a file or a pipe.

    Parameters
    ----------
    path : path
    limit : int
        Most bytes, at least 0.

    Raises
    ------
    InputError
        If it is a device, or has more than ``limit`` bytes.
    OSError
        If the path is missing, is a folder, or must not be read.
    """
    place, parts = Path(path), []
    status = place.stat()
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise InputError(f"{place} is a device, which may never end; name a file")
    size = 0
    too_large = InputError(f"{place} is larger than {limit:,} bytes, the most that is read")
    if status.st_size > limit:
        raise too_large
    # also counted while reading: a pipe states no size, and a file may grow
    with place.open("rb") as stream:
        while part := stream.read(_PART):
            parts.append(part)
            size += len(part)
            if size > limit:
                raise too_large
    return b"".join(parts)


def read_text(path: str | Path, limit: int = MAX_DOCUMENT) -> str:
    """Return the content of a file or a pipe as text; a byte-order mark is left out.

    Raises
    ------
    InputError, OSError
        As `read_bytes`.
    UnicodeDecodeError
        If it is not UTF-8.
    """
    return read_bytes(path, limit).decode("utf-8-sig")


def read_beside(module: str, name: str) -> str:
    """Return a text that the package ships beside a module, whose ``__file__`` is given."""
    return Path(module).with_name(name).read_text(encoding="utf-8")


def decode_json(text: str, where: str) -> Any:
    """Return the value of JSON that groundfault wrote; readers of logs are less strict.

    A reader of logs takes the last of two values of one key, like the tool that wrote the log.

    Parameters
    ----------
    text : str
    where : str
        Its name in messages.

    Raises
    ------
    InputError
        If the text is not JSON, is nested too deeply, repeats a key of an object (readers differ in
        the value they take), or holds a number of over 300 digits, which no float holds, or half of
        a surrogate pair, which no file holds.
    """
    try:
        data = json.loads(text, parse_int=_parse_int, object_pairs_hook=_make_object)
        if _HALF_PAIR.search(text):
            json.dumps(data, ensure_ascii=False).encode()
        return data
    except RecursionError:
        raise InputError(f"{where} is JSON nested too deeply") from None
    except UnicodeEncodeError:
        raise InputError(f"{where} holds half of a surrogate pair, which is not text") from None
    except _Refusal as error:
        raise InputError(f"{where} {error}") from None
    except ValueError as error:
        raise InputError(f"{where} is not JSON, or is cut short: {first_line(error)}") from None


def read_json_object(path: str | Path, limit: int = MAX_DOCUMENT) -> dict[str, Any]:
    """Return the JSON object in a file that groundfault wrote; see `decode_json`.

    Raises
    ------
    InputError
        If it cannot be read, or is something else.
    """
    place = Path(path)
    with readable(place):
        content = read_bytes(place, limit)
    try:
        data = decode_json(content.decode("utf-8-sig"), str(place))
    except UnicodeDecodeError:
        raise InputError(f"{place} is not UTF-8 text") from None
    if not isinstance(data, dict):
        raise InputError(f"{place} is not laid out as expected: it is no JSON object")
    return data


class _Refusal(ValueError):
    """A fault of JSON that Python would accept."""


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise _Refusal(f"names the key {json.dumps(shorten(twice))} twice in one object")
    return made


def _parse_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _Refusal(f"holds a number of {len(digits):,} digits")
    return int(digits)


class readable:
    """Turn errors of the file system into an `InputError` of one line.

    A pipe or a device, which may never end, is refused too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
            raise InputError(f"{self.path} is neither a file nor a folder")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise InputError(f"cannot read {self.path}: {error.strerror or error}") from None


def is_inside(place: str | Path, folders: Iterable[str | Path]) -> bool:
    """Return whether a place named in a file lies in one of some folders; links are followed.

    Parameters
    ----------
    place : path
        A path, or a pattern of paths. URLs and paths on a server (``//server/share``) lie in no
        folder; the server is not contacted.
    folders : iterable of path
    """
    text = str(place)
    if "://" in text or "\0" in text or text.startswith(("//", "\\\\")):
        return False
    parts = Path(text).parts
    fixed = [part for part in parts if not glob.has_magic(part)]
    if len(fixed) < len(parts):
        # behind a wildcard ".." leads to an unchecked place
        if ".." in parts:
            return False
        fixed = fixed[: next(i for i, part in enumerate(parts) if glob.has_magic(part))]
    real = Path(os.path.realpath(Path(*fixed)))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)
