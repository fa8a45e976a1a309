"""Files written to a temporary name and renamed, so that no reader sees half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from groundfault.errors import InputError


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path``, whole or not at all.

    Raises
    ------
    InputError
        If the place cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # beside the target, as a rename is one step only within one file system
        handle, temporary = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"
        )
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                # to the disk before the rename, or a power cut could leave an empty file
                os.fsync(stream.fileno())
            # mkstemp makes files that only their owner reads
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; choose a place that can be written"
        ) from None


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def save_text(text: str, path: str | Path | None) -> str:
    """The text itself; also written to the path, where there is one."""
    if path is not None:
        write_text(Path(path), text)
    return text


def _umask() -> int:
    # the mask can be read only by setting it
    mask = os.umask(0)
    os.umask(mask)
    return mask
