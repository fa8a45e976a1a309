"""Honest tables of odd types: drawn by a seed, with names that groundfault's own code uses too."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import polars as pl

# those of a single word are names of groundfault's own columns, too
NAMES = [
    *"count index row len value literal rule n loss unit text word level group stratum".split(),
    *"predicate on columns prompt answer time error2 x y z".split(),
    "a b",
    'q"x',
]
WORDS = ["alpha beta", "gamma", "delta 3", "", "ünï 退还", "x@y+z.de"]
START = dt.datetime(2024, 1, 1)


def draw_table(seed: int) -> pl.DataFrame:
    """Draw one to six columns of any type beside an outcome `error`, in 1 to 400 rows."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([1, 2, 5, 20, 60, 150, 400], p=[0.05, 0.05, 0.1, 0.2, 0.2, 0.2, 0.2]))
    names = rng.permutation(NAMES)[: int(rng.integers(1, 7))]
    columns = {str(name): draw_column(rng, size) for name in names}
    return pl.DataFrame(columns | {"error": draw_outcome(rng, size)})


def draw_outcome(rng: np.random.Generator, size: int) -> pl.Series:
    """Draw even, rare, graded or no failures."""
    kind = rng.integers(0, 4)
    if kind == 3:
        return pl.Series(rng.random(size).round(2))
    return pl.Series((rng.random(size) < (0.5, 0.2, 0.0)[kind]).astype(int))


def draw_column(rng: np.random.Generator, size: int) -> pl.Series:
    """Draw a column of one of some twenty types, often with gaps."""
    small, wide = rng.integers(0, 5, size), rng.integers(0, 999, size)
    normal = rng.normal(size=size)
    huge = normal * 10.0 ** float(rng.integers(-300, 300))
    kinds: list[Callable[[], pl.Series]] = [
        lambda: pl.Series(small),
        lambda: pl.Series(normal),
        lambda: pl.Series(rng.choice(WORDS, size)),
        lambda: pl.Series(small > 2),
        lambda: pl.Series([START + dt.timedelta(hours=int(i) * 7) for i in wide]),
        lambda: pl.Series([START.date() + dt.timedelta(days=int(i)) for i in wide]),
        lambda: pl.Series([dt.time(int(i) % 24) for i in wide]),
        lambda: pl.Series([dt.timedelta(seconds=int(i)) for i in wide]),
        lambda: pl.Series([b"\xff\x00a"[: i % 4] for i in wide], dtype=pl.Binary),
        lambda: pl.Series(small).cast(pl.Int128),
        lambda: pl.Series([Decimal(int(i)) / 4 for i in small], dtype=pl.Decimal(20, 4)),
        lambda: pl.Series([[int(i)] * int(i) for i in small], dtype=pl.List(pl.Int64)),
        lambda: pl.Series([{"a": int(i), "b": f"w{i}"} for i in small]),
        lambda: pl.Series(np.array(list("uvwts"))[small].tolist(), dtype=pl.Categorical),
        lambda: pl.Series(np.array(list("uvwts"))[small].tolist(), dtype=pl.Enum(list("stuvw"))),
        lambda: pl.Series([None] * size),
        lambda: pl.Series([None] * size, dtype=pl.Float64),
        lambda: pl.Series(np.where(rng.random(size) < 0.2, np.inf, huge)),
        lambda: pl.Series(np.where(rng.random(size) < 0.2, np.nan, normal)),
        lambda: pl.Series([object()] * size, dtype=pl.Object),
        lambda: pl.Series(rng.integers(0, 2**63, size), dtype=pl.UInt64),
        lambda: pl.Series(["x"] * size),
        lambda: pl.Series(rng.random((size, 3)), dtype=pl.Array(pl.Float64, 3)),
    ]
    column = kinds[rng.integers(0, len(kinds))]()
    if column.dtype == pl.Object or rng.random() < 0.6:
        return column
    has_value = pl.Series(rng.random(size) < 0.8)
    return pl.select(pl.when(has_value).then(column)).to_series()
