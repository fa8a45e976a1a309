"""A table larger than memory is named before it is read."""

from __future__ import annotations

import warnings
from pathlib import Path

import polars as pl
import pytest

from groundfault import Evidence
from groundfault.readers import table_size


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pl.DataFrame({"id": range(2000), "error": [0, 1] * 1000, "x": [0.5] * 2000})
    place = tmp_path / "parts"
    place.mkdir()
    table[:1000].write_parquet(place / "a.parquet")
    table[1000:].write_parquet(place / "b.parquet")
    return place


def test_the_size_is_that_of_the_table(folder: Path) -> None:
    size = pl.read_parquet(folder / "*.parquet").estimated_size()
    files = sorted(folder.iterdir())
    assert 0.9 * size < sum(map(table_size.measure_table, files)) < 1.1 * size


@pytest.mark.parametrize(("free", "warns"), [(50_000, True), (200_000, False), (None, False)])
def test_one_line_says_what_it_needs(
    folder: Path, free: int | None, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what is free cannot be set otherwise without putting the test run at risk
    monkeypatch.setattr(table_size, "measure_free_memory", lambda: free)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Evidence.from_table(folder, id="id", outcome="error")
    lines = [str(one.message) for one in caught if "GB in memory" in str(one.message)]
    assert len(lines) == warns
    assert all("--engine polars" in line and str(folder) in line for line in lines)
