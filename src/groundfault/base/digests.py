"""Digests: columns as bytes that are equal on every machine, and differ if values differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl


def feed(digest: Any, name: str, series: pl.Series) -> None:
    """Add a column to a digest: integers as int64, floats as float64, all else as text."""
    dtype = series.dtype
    if isinstance(dtype, pl.List | pl.Array):  # the text of a long list leaves out its middle
        lists = series if isinstance(dtype, pl.List) else series.arr.to_list()
        feed(digest, f"{name} lengths", lists.list.len())
        feed(digest, f"{name} values", lists.explode())
        return
    if dtype.is_integer():
        series = series.cast(pl.Int64, strict=False)
    elif dtype.is_float():
        series = series.cast(pl.Float64) + 0.0  # one zero, not two
    elif dtype == pl.Boolean:
        series = series.cast(pl.Int64)
    elif dtype.is_nested():
        series = (
            series.struct.json_encode()
            if dtype == pl.Struct
            else pl.Series([repr(v) for v in series])
        )
    else:
        series = series.cast(pl.String)
    # name, type and length in front: no two tables give the same bytes
    kind = "text" if series.dtype == pl.String else str(series.dtype)
    digest.update(f"{name}\0{kind}\0{len(series)}\0".encode())
    # in parts, which bounds memory; bytes of the parts are the bytes of the whole
    for start in range(0, len(series), 1 << 18):
        part = series.slice(start, 1 << 18)
        if part.dtype == pl.String:
            # lengths first, so that ["ab", "c"] and ["a", "bc"] differ, and NULL (-1) from ""
            lengths = part.str.len_bytes().cast(pl.Int64).fill_null(-1)
            digest.update(np.ascontiguousarray(lengths.to_numpy()))
            digest.update((part.str.join("").item() or "").encode())
        elif part.null_count():
            # the mask of missing values, as they are stored as 0 below
            digest.update(np.packbits(part.is_null().to_numpy()))
            digest.update(np.ascontiguousarray(part.fill_null(0).to_numpy()))
        else:
            digest.update(bytes((len(part) + 7) // 8))
            digest.update(np.ascontiguousarray(part.to_numpy()))
