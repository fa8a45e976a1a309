"""Digests differ where values do, and not by how a column is stored."""

from __future__ import annotations

import hashlib
from datetime import date

import polars as pl
import pytest

from groundfault.core.evidence import feed


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


def test_digests_are_those_of_version_0_1_0() -> None:
    """Ledgers know outcomes by them: a faster way has to give the same bytes."""
    columns = [
        pl.Series([True, None, False] * 3),
        pl.Series([True, False] * 5),
        pl.Series([1, 2, None], dtype=pl.Int8),
        pl.Series([0.5, -0.0, None]),
        pl.Series([0.5, 1.5]),
        pl.Series(["ä", "", None, "bc"]),
        pl.Series(["a", "b", "a"], dtype=pl.Categorical),
        pl.Series([None, None], dtype=pl.String),
        pl.Series([], dtype=pl.String),
        pl.Series([date(2026, 1, 2), None]),
        pl.Series([[1, 2], [], None]),
        pl.Series([{"a": 1}, {"a": 2}]),
        pl.Series([2**64 - 1], dtype=pl.UInt64),
    ]
    whole = hashlib.sha256()
    for column in columns:
        feed(whole, "column", column)
    stored = "e2824d4b301c1bb17e624adcc46f23c23b2d0cc0e4a44c3ef90491a06acaa457"
    assert whole.hexdigest() == stored
