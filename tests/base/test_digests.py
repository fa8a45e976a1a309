"""Digests differ where values do, and not by how a column is stored."""

from __future__ import annotations

import hashlib

import polars as pl
import pytest

from groundfault.base.digests import feed


def digest(values: pl.Series) -> str:
    whole = hashlib.sha256()
    feed(whole, "column", values)
    return whole.hexdigest()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (pl.Series([1, 2], dtype=pl.Int8), pl.Series([1, 2])),
        (pl.Series(["a", "b"], dtype=pl.Categorical), pl.Series(["a", "b"])),
        (pl.Series([[1], [2]], dtype=pl.Array(pl.Int64, 1)), pl.Series([[1], [2]])),
    ],
)
def test_the_same_values_have_the_same_digest(a: pl.Series, b: pl.Series) -> None:
    assert digest(a) == digest(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (["ab", "c"], ["a", "bc"]),
        (["", "a"], [None, "a"]),
        ([0, 1], [None, 1]),
        ([[1, 2], [3]], [[1], [2, 3]]),
        ([1, 2], [1.0, 2.0]),
    ],
)
def test_other_values_have_another(a: list, b: list) -> None:
    assert digest(pl.Series(a)) != digest(pl.Series(b))
