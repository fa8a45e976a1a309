"""How much memory a table takes, said before it is read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from groundfault.base.memory import measure_free_memory
from groundfault.readers.safely import escape_pattern

_ROWS = 10_000
# Parquet files take up to so many times their size once they are read
_LARGEST_RATIO = 50
# the table, and the rows of discovery or of the comparison of its rows
_COPIES = 2


def warn_of_size(files: Sequence[Path]) -> None:
    """Warn where a table, read from these files, takes more memory than is free.

    A process that needs more is killed without a word on most machines.
    """
    free = measure_free_memory()
    stored = sum(path.stat().st_size for path in files)
    if free is None or stored * _LARGEST_RATIO < free:
        return
    size = estimate_size(files)
    if size * _COPIES <= free:
        return
    place = files[0] if len(files) == 1 else files[0].parent
    warnings.warn(
        f"{place} takes about {size / 1e9:.1f} GB in memory, its audit at least {_COPIES} times as "
        f"much, and {free / 1e9:.1f} GB are free: --engine polars (LazyEvidence) counts in Parquet "
        "files without reading them",
        stacklevel=2,
    )


def estimate_size(files: Sequence[Path]) -> int:
    """Bytes that a table takes in memory; of other files than Parquet what they take on disk."""
    if any(path.suffix.lower() not in (".parquet", ".pq") for path in files):
        return sum(path.stat().st_size for path in files)
    size = 0.0
    for path in files:
        try:
            scan = pl.scan_parquet(escape_pattern(path))
            rows = int(scan.select(pl.len()).collect().item())
            head = scan.head(_ROWS).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            # what is wrong with it, its reader says
            continue
        size += head.estimated_size() * rows / max(head.height, 1)
    return int(size)
