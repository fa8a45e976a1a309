"""Open files from outside: every size is bounded, every failure is one clear line.

Logs come from other people's machines. groundfault never unpickles, unpacks no archive to disk, and
decodes JSON into typed structures. A file that is too large, too deep, truncated or not UTF-8
raises an `InputError` that names the file.
"""

from __future__ import annotations

import gc
import glob
import json
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeVar

import msgspec

from groundfault.base.reading import read_bytes, readable
from groundfault.errors import InputError, first_line

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

T = TypeVar("T")

JsonObject = dict[str, object]
"""An object of JSON, as it was decoded: read each value by `groundfault.readers.values`."""

# far above any honest log, and bounded at all because a document takes several times its size in
# memory once it is decoded
MAX_LINE = 64 << 20
"""Bytes of one line of JSONL."""
MAX_JSON = 2 << 30
"""Bytes of one JSON document."""
MAX_ENTRY = 512 << 20
"""Bytes of one entry of an archive, uncompressed."""
# far above any honest log: one of Inspect has an entry, or a few, for each sample
MAX_ENTRIES = 1_000_000
MAX_RATIO = 250
"""Uncompressed to compressed bytes of an archive, beyond its first 256 MB.

Logs, which repeat themselves, stay below; archives made to fill a memory reach a thousand.
"""

_TOO_LONG = f"longer than {MAX_LINE:,} bytes, the most that is read"
POINTER = "a Git LFS pointer in the place of a file: git lfs pull fetches it"

# bytes read at a time: a line of a log is often as long as the usual 8 KB
_BUFFER = 1 << 20
_BOM = b"\xef\xbb\xbf"
# the method's number in the ZIP specification
_ZSTD = 93
# a zstd frame names the window to allocate: unbounded, a tiny file could ask for gigabytes
_WINDOW: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 28}
_LOCAL_HEADER = struct.Struct("<4s22xHH")
# first bytes of gzip, zstd and zlib
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda")
# values that Python's json writes although JSON does not allow them
_LENIENT = re.compile(rb"NaN|Infinity|\\u[dD][89a-fA-F]")


@contextmanager
def pause_collection() -> Iterator[None]:
    """Pause the search for circles of objects: rows have none, and it takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@lru_cache(maxsize=8)
def _head(path: str, size: int, modified: int) -> bytes:  # noqa: ARG001
    with Path(path).open("rb") as stream:
        return stream.read(size)


def head(path: Path, size: int = 1 << 16) -> bytes:
    """Return the first bytes of a file without a byte-order mark; empty for an unreadable file.

    Some twenty readers sniff each file of a folder, so the last few results are remembered.
    """
    try:
        if not path.is_file():
            return b""
        return _head(str(path), size, path.stat().st_mtime_ns).removeprefix(_BOM)
    except OSError:
        return b""


def is_pointer(path: Path) -> bool:
    """Return whether a file is a pointer that Git LFS puts in the place of a large one."""
    return head(path).startswith(b"version https://git-lfs.github.com/spec/")


def json_file(path: Path, type: type[T]) -> T:
    """Return a whole JSON document, decoded into a type.

    Raises
    ------
    InputError
        If it is too large, not UTF-8, no JSON, nested too deeply, or not of the type.
    """
    with readable(path):
        data = read_bytes(path, MAX_JSON)
    with pause_collection():
        return decode(data.removeprefix(_BOM), type, str(path))


def json_lines(path: Path, type: type[T], usual: object = None) -> Iterator[T]:
    """Return the lines of a JSONL file, decoded one at a time; blank lines are skipped.

    Parameters
    ----------
    path : Path
    type : type
    usual : type, optional
        A type of fewer fields that is tried first; numbers in quotes are numbers for it.

    Raises
    ------
    InputError
        If a line is longer than 64 MB, or cannot be decoded into the type.
    """
    decoder = msgspec.json.Decoder(type)
    first = (decoder if usual is None else msgspec.json.Decoder(usual, strict=False)).decode
    for number, line in read_lines(path):
        try:
            value = first(line)
        except (ValueError, RecursionError):
            # again with the lenient decoder, which gives one message for all faults
            value = decode(line, type, f"{path}, line {number}", decoder)
        yield value


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a JSONL file with their numbers, from 1; blank lines are skipped.

    Raises
    ------
    InputError
        If a line is longer than 64 MB.
    """
    with readable(path), path.open("rb", buffering=_BUFFER) as stream:
        for number, line in enumerate(iter(partial(stream.readline, MAX_LINE + 1), b""), 1):
            if len(line) > MAX_LINE:
                raise InputError(f"{path}, line {number} is {_TOO_LONG}")
            own = line.removeprefix(_BOM) if number == 1 else line
            # not strip, which copies every line
            if own and not own.isspace():
                yield number, own


def escape_pattern(path: Path) -> str | IO[bytes]:
    """Return a path for polars, escaped, since it reads brackets and stars as a pattern.

    polars takes only UTF-8 paths in any locale; a file with another name is opened for it.
    """
    name = os.fsencode(path)
    try:
        return glob.escape(name.decode())
    except UnicodeDecodeError:
        return Path(path).open("rb")


def check_lines(path: Path) -> None:
    """Check the length of a text file's lines before another library reads it as a whole.

    Raises
    ------
    InputError
        If it is no file, is compressed, or a line is longer than 64 MB.
    """
    if head(path).startswith(_COMPRESSED):
        # polars would unpack it, to any size
        raise InputError(f"{path} is compressed; unpack it first, and name the unpacked file")
    if head(path).startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path} is UTF-16 text; convert it first (iconv -f UTF-16 -t UTF-8)")
    length = 0
    with readable(path), path.open("rb") as stream:
        while part := stream.read(1 << 24):
            first, last = part.find(b"\n"), part.rfind(b"\n")
            if length + (first if first >= 0 else len(part)) > MAX_LINE:
                raise InputError(f"{path} has a line {_TOO_LONG}")
            length = length + len(part) if last < 0 else len(part) - last - 1


def decode(data: bytes, type: type[T], where: str, decoder: Any = None) -> T:
    """Return JSON bytes decoded into a type; NaN, Infinity and half surrogate pairs are accepted.

    Raises
    ------
    InputError
        If that is impossible; the message begins with ``where``.
    """
    if not data.strip():
        raise InputError(f"{where} is empty")
    try:
        try:
            return (decoder or msgspec.json.Decoder(type)).decode(data)  # type: ignore[no-any-return]
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            # Python's own decoder is slower and takes more memory: use it only for its extensions
            if not _LENIENT.search(data):
                raise
            return msgspec.convert(json.loads(data), type)
    except RecursionError:
        raise InputError(f"{where} is JSON nested too deeply") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{where} is not UTF-8 text; convert it first (iconv -f LATIN1 -t UTF-8)"
        ) from None
    except msgspec.ValidationError as error:
        raise InputError(f"{where} is not laid out as expected: {first_line(error)}") from None
    except ValueError as error:
        raise InputError(f"{where} is not JSON, or is cut short: {first_line(error)}") from None


class Archive:
    """A ZIP archive read entry by entry, deflated or zstd-compressed; nothing is unpacked to disk.

    Raises
    ------
    InputError
        If it is truncated or not an archive, has names that lead out of it, or overlapping entries,
        or is too large.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                entries = archive.infolist()
        except (
            zipfile.BadZipFile,
            OSError,
            ValueError,
            NotImplementedError,
            struct.error,
        ) as error:
            raise InputError(
                f"{path} is not a readable ZIP archive, or is cut short: {first_line(error)}"
            ) from None
        self._entries = {entry.filename: entry for entry in entries}
        self._check(entries)

    def _check(self, entries: list[zipfile.ZipInfo]) -> None:
        if len(entries) > MAX_ENTRIES:
            raise InputError(
                f"{self.path} has {len(entries):,} entries; at most {MAX_ENTRIES:,} are read"
            )
        for entry in entries:
            name = PurePosixPath(entry.filename.replace("\\", "/"))
            if name.is_absolute() or ".." in name.parts:
                raise InputError(
                    f"{self.path} has an entry named {entry.filename!r}, which leads out of the "
                    "archive"
                )
            if entry.flag_bits & 1:
                raise InputError(
                    f"{self.path} has an encrypted entry, {entry.filename!r}; decrypt it first"
                )
            if entry.file_size > MAX_ENTRY:
                raise InputError(
                    f"{self.path}: {entry.filename!r} has {entry.file_size:,} bytes; at most "
                    f"{MAX_ENTRY:,} are read"
                )
        # entries that together are longer than the file share bytes: a bomb of overlapping entries
        size = self.path.stat().st_size
        full, packed = (sum(getattr(e, k) for e in entries) for k in ("file_size", "compress_size"))
        if packed > size or full > (256 << 20) + MAX_RATIO * size:
            raise InputError(
                f"{self.path}: {size:,} bytes that claim to hold {full:,}; it is not read"
            )

    def names(self) -> list[str]:
        """Return names of the entries, in their order."""
        return list(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def read(self, name: str) -> bytes:
        """Read one entry, uncompressed.

        Raises
        ------
        InputError
            If it is damaged, or larger than the archive's directory says.
        """
        entry = self._entries[name]
        where = f"{self.path}: {name!r}"
        try:
            packed = self._read_packed(entry)
            data = _unpack(packed, entry, where)
        except (zlib.error, zstd.ZstdError, struct.error, OSError) as error:
            raise InputError(f"{where} is damaged or cut short: {first_line(error)}") from None
        if len(data) != entry.file_size or zlib.crc32(data) != entry.CRC:
            raise InputError(f"{where} is damaged: its length or checksum is wrong")
        return data

    def json(self, name: str, type: type[T]) -> T:
        """Return one entry decoded into a type."""
        return decode(self.read(name), type, f"{self.path}: {name!r}")

    def _read_packed(self, entry: zipfile.ZipInfo) -> bytes:
        with self.path.open("rb") as stream:
            stream.seek(entry.header_offset)
            magic, name_size, extra_size = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
            # zipfile cannot read zstd before Python 3.14, so the local header is read here
            if magic != b"PK\x03\x04":
                raise OSError("no entry where the directory says")
            stream.seek(name_size + extra_size, 1)
            return stream.read(entry.compress_size)


def _unpack(packed: bytes, entry: zipfile.ZipInfo, where: str) -> bytes:
    # one byte more than declared: an entry that goes on is found out without unpacking the rest
    max_bytes = entry.file_size + 1
    if entry.compress_type == zipfile.ZIP_STORED:
        return packed
    if entry.compress_type == zipfile.ZIP_DEFLATED:
        return zlib.decompressobj(-15).decompress(packed, max_bytes)
    if entry.compress_type == _ZSTD:
        data = b""
        while packed and len(data) < max_bytes:
            frame = zstd.ZstdDecompressor(options=_WINDOW)
            data += frame.decompress(packed, max_bytes - len(data))
            packed = frame.unused_data
        return data
    raise InputError(
        f"{where} is compressed by method {entry.compress_type}, which is not read; deflate or "
        "zstd are"
    )
