"""The size of a table before it is read, from the sizes that Parquet and Arrow files state.

A small file may unpack to any size, because equal values are counted and compressed. Both formats
state the size of each part. groundfault refuses a file that unpacks to far more than its size, and
warns of a table larger than memory. For the layouts see
https://parquet.apache.org/docs/file-format and https://arrow.apache.org/docs/format/Columnar.html.
"""

from __future__ import annotations

import mmap
import struct
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from groundfault.base.long_work import measure_free_memory
from groundfault.base.reading import readable
from groundfault.errors import InputError
from groundfault.readers.safely import MAX_RATIO

PARQUET = (".parquet", ".pq")
_PACKED = (*PARQUET, ".arrow", ".feather", ".ipc")
# the table, and the rows of discovery or of the comparison of its rows
_COPIES = 2
# a table that takes less does no harm, however small its file
_SMALL_TABLE = 2 << 30
# extra bytes of a page or buffer, so that millions of empty ones are not read forever
_PART = 1 << 10
# bytes in memory of a value of each physical type of Parquet
_WIDTHS = (1 / 8, 4, 8, 8, 4, 8, 16, 16)
# types of Parquet whose values are of any length
_TEXTS = (6, 7)
# DELTA_BYTE_ARRAY stores only differences from the text before: each may be as long as its page
_DELTA_TEXTS = 7
_ARROW_FILE = b"ARROW1"
# kinds of Arrow's messages
_ARROW_DICTIONARY, _ARROW_ROWS = 2, 3
# of parts that are not of their types, or lie outside the file
_ODD = (
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    RuntimeError,
    struct.error,
)
_I32, _I64 = struct.Struct("<i"), struct.Struct("<q")


def warn_of_size(files: Sequence[Path]) -> None:
    """Warn if a table from these files takes more memory than is free.

    Most machines kill a process that needs more, without a message.

    Raises
    ------
    InputError
        If a file is damaged, or states far more than it has.
    """
    packed = [path for path in files if path.suffix.lower() in _PACKED]
    size = measure_table(*packed) + sum(p.stat().st_size for p in files if p not in packed)
    free = measure_free_memory()
    if free is None or size * _COPIES <= free:
        return
    place = files[0] if len(files) == 1 else files[0].parent
    warnings.warn(
        f"{place} takes about {size / 1e9:.1f} GB in memory, its audit at least {_COPIES} times as "
        f"much, and {free / 1e9:.1f} GB are free: --engine polars (LazyEvidence) counts in Parquet "
        "files without reading them",
        stacklevel=2,
    )


def measure_table(*files: Path) -> int:
    """Return bytes that Parquet or Arrow files take in memory, from the stated sizes of parts.

    Raises
    ------
    InputError
        If they take far more than the files have, a part exceeds memory, or a file is damaged.
    """
    free, claimed, parts = measure_free_memory(), 0.0, 0
    stored = sum(path.stat().st_size for path in files)
    most = min(_SMALL_TABLE, free or _SMALL_TABLE) + MAX_RATIO * stored
    for path in files:
        for part, size in _list_parts(path):
            parts += part
            claimed += max(size, 0)
            if claimed + parts * _PART > most:
                raise InputError(
                    f"{path}: {stored:,} bytes that claim to hold over {most:,}; it is not read. "
                    "If that is right, write the table as CSV, or use --engine duckdb --table NAME"
                )
            if free is not None and size > free:
                raise InputError(
                    f"{path} has a part of {size / 1e9:.1f} GB, and {free / 1e9:.1f} GB of memory "
                    "are free; write it anew in smaller row groups"
                )
    return int(claimed)


def _list_parts(path: Path) -> Iterator[tuple[int, float]]:
    """Yield how many parts are new, and bytes in memory of a column of a row group, or a buffer."""
    measure = _list_parquet if path.suffix.lower() in PARQUET else _list_arrow
    try:
        with (
            readable(path),
            path.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            yield from measure(data)
    except _ODD:
        raise InputError(f"{path} is damaged or cut short, and cannot be read as a table") from None


def check_texts(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return a table whose texts fit into memory, although a file may hold one text for many rows.

    Raises
    ------
    InputError
        If the texts do not fit.
    """
    sizes = frame.select(pl.col(pl.String).str.len_bytes().cast(pl.UInt64).sum())
    total, free = sum(sizes.row(0)) if sizes.width else 0, measure_free_memory()
    if free is not None and total > free:
        raise InputError(
            f"the texts of {path} have {total:,} bytes, and {free:,} are free; it is not read"
        )
    return frame


def _list_parquet(data: mmap.mmap) -> Iterator[tuple[int, float]]:
    """Yield one for each page, and bytes in memory of each chunk of a column."""
    size = _I32.unpack_from(data, len(data) - 8)[0]
    if data[-4:] != b"PAR1" or not 0 < size < len(data):
        raise ValueError
    for group in _read_struct(data, len(data) - 8 - size)[0].get(4, ()):
        for chunk in group[1]:
            column = chunk[3]
            at = column.get(11) or column[9]
            end, values, unpacked = at + column[7], 0, 0
            if not 0 < at <= column[9]:
                raise ValueError
            while at < end:
                page, at = _read_struct(data, at)
                # of a page of values of the first version, and of the second
                one, two = (page.get(key, {1: 0}) for key in (5, 8))
                number = max(one[1], two[1])
                is_delta = _DELTA_TEXTS in (one.get(2), two.get(4))
                if min(page[2], page[3], number) < 0:
                    raise ValueError
                values += number
                unpacked += page[2] * (number if is_delta else 1)
                at += page[3]
                yield 1, 0
            width = max(values, column[5]) * _WIDTHS[column[1]]
            yield 0, width + unpacked if column[1] in _TEXTS else max(width, unpacked)


def _read_struct(data: mmap.mmap, at: int) -> tuple[dict[int, Any], int]:
    """Read a struct of Thrift's compact protocol by numbers of fields, and where it ends."""
    fields: dict[int, object] = {}
    number = 0
    while mark := data[at]:
        at += 1
        if mark >> 4:
            number += mark >> 4
        else:
            number, at = _read_number(data, at)
        fields[number], at = _read_value(data, at, mark & 15)
    return fields, at + 1


def _read_value(data: mmap.mmap, at: int, kind: int) -> tuple[object, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind in (4, 5, 6):
        return _read_number(data, at)
    if kind in (3, 7):
        return None, at + (1 if kind == 3 else 8)
    if kind == 12:
        return _read_struct(data, at)
    size, at = (data[at] >> 4, at + 1) if kind in (9, 10) else _read_varint(data, at)
    if kind == 8:
        return None, at + size
    if kind not in (9, 10):
        raise ValueError
    inner = data[at - 1] & 15
    if size == 15:
        size, at = _read_varint(data, at)
    if size > len(data):
        raise ValueError
    values = []
    for _ in range(size):
        # in a list a truth value is a byte
        value, at = (None, at + 1) if inner in (1, 2) else _read_value(data, at, inner)
        values.append(value)
    return values, at


def _read_number(data: mmap.mmap, at: int) -> tuple[int, int]:
    value, at = _read_varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _read_varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while (part := data[at]) & 128:
        if shift > 63:
            raise ValueError
        value |= (part & 127) << shift
        shift, at = shift + 7, at + 1
    return value | part << shift, at + 1


def _list_arrow(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield one for each buffer of an Arrow file or stream, and its bytes."""
    for message, body in _list_messages(data):
        kind, batch = data[_find_field(data, message, 1)], _find_table(data, message, 2)
        if kind == _ARROW_DICTIONARY:
            batch = _find_table(data, batch, 1)
        elif kind != _ARROW_ROWS:
            continue
        is_packed = _find_field(data, batch, 3)
        # columns without any value take no buffer
        yield 0, _I64.unpack_from(data, _find_field(data, batch, 0))[0]
        for at in _list_structs(data, _find_field(data, batch, 2), 16):
            offset, size = struct.unpack_from("<qq", data, at)
            if is_packed and size:
                size = max(size, _I64.unpack_from(data, body + offset)[0])
            if offset < 0 or size < 0:
                raise ValueError
            yield 1, size


def _list_messages(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield where each message of an Arrow file begins, and where its body does."""
    if data[: len(_ARROW_FILE)] == _ARROW_FILE:
        size = _I32.unpack_from(data, len(data) - 10)[0]
        start = len(data) - 10 - size
        footer = start + _I32.unpack_from(data, start)[0]
        for number in (2, 3):
            for block in _list_structs(data, _find_field(data, footer, number), 24):
                at, head_size = struct.unpack_from("<qi", data, block)
                at_root = at + (8 if data[at : at + 4] == b"\xff" * 4 else 4)
                yield at_root + _I32.unpack_from(data, at_root)[0], at + head_size
        return
    at = 0
    while at < len(data):
        at += 4 if data[at : at + 4] == b"\xff" * 4 else 0
        size, at = _I32.unpack_from(data, at)[0], at + 4
        if size <= 0:
            return
        message = at + _I32.unpack_from(data, at)[0]
        yield message, at + size
        length = _find_field(data, message, 3)
        at += size + (max(_I64.unpack_from(data, length)[0], 0) if length else 0)


def _find_field(data: mmap.mmap, table: int, number: int) -> int:
    """Return where a field of a table of FlatBuffers is, 0 where it is left out."""
    slots = table - _I32.unpack_from(data, table)[0]
    size, at = struct.unpack_from("<H", data, slots)[0], 4 + 2 * number
    offset = struct.unpack_from("<H", data, slots + at)[0] if at < size else 0
    return table + offset if offset else 0


def _find_table(data: mmap.mmap, table: int, number: int) -> int:
    field = _find_field(data, table, number)
    return field + int(_I32.unpack_from(data, field)[0])


def _list_structs(data: mmap.mmap, field: int, width: int) -> Iterator[int]:
    if field:
        start = field + _I32.unpack_from(data, field)[0]
        count = _I32.unpack_from(data, start)[0]
        yield from range(start + 4, start + 4 + width * count, width)
