"""Reading: files in whole, never more of them than a stated number of bytes.

A path may come from a stranger's report or a slip of the hand, and name what has no end. Files that
groundfault reads as a whole are read here; logs, which may be far larger, are read in parts by
`groundfault.readers.safely`.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from groundfault.errors import InputError

MAX_DOCUMENT = 512 << 20
"""Bytes of a file that is read as a whole: a library, a plan, a configuration, a sheet."""
MAX_ROWS = 2 << 30
"""Bytes of a file of rows that groundfault wrote."""

_PART = 1 << 20


def read_bytes(path: str | Path, limit: int = MAX_DOCUMENT) -> bytes:
    """The content of a file or a pipe.

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
        If it is not there, is a folder, or must not be read.
    """
    place, parts = Path(path), []
    status = place.stat()
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise InputError(f"{place} is a device, which may never end; name a file")
    size = 0
    too_large = InputError(f"{place} is larger than {limit:,} bytes, the most that is read")
    if status.st_size > limit:
        raise too_large
    # counted while it is read, too: a pipe states no size, and a file may grow
    with place.open("rb") as stream:
        while part := stream.read(_PART):
            parts.append(part)
            size += len(part)
            if size > limit:
                raise too_large
    return b"".join(parts)


def read_text(path: str | Path, limit: int = MAX_DOCUMENT) -> str:
    """The content of a file or a pipe as text; a byte-order mark is left out.

    Raises
    ------
    InputError, OSError
        As `read_bytes`.
    UnicodeDecodeError
        If it is not UTF-8.
    """
    return read_bytes(path, limit).decode("utf-8-sig")


class readable:
    """Turn errors of the file system into an `InputError` of one line.

    A pipe or a device, which may never end, is refused too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
            raise InputError(f"{self.path} is neither a file nor a folder")

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError):
            raise InputError(f"cannot read {self.path}: {error.strerror or error}") from None
