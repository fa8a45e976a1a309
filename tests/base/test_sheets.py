"""Sheets: no text in a CSV file is a formula, and only one place writes CSV."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples

import groundfault
import groundfault_studies
from groundfault.base.sheets import escape_cell, format_csv, write_table
from groundfault.errors import InputError

FORMULAS = (
    '=HYPERLINK("http://evil","x")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\uff1d1",
)


def parse(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum([*FORMULAS, "a=1"])])
def test_texts_and_names_are_no_formulas_and_numbers_stay(dtype: pl.DataType) -> None:
    texts = pl.Series("=cmd", [*FORMULAS, "a=1", None], dtype=pl.String).cast(dtype)
    frame = pl.DataFrame([texts, pl.Series("n", [-1.5] * 9)])
    header, *rows = parse(format_csv(frame))
    assert header == ["'=cmd", "n"]
    assert [row[0] for row in rows] == [*(f"'{text}" for text in FORMULAS), "a=1", ""]
    assert {row[1] for row in rows} == {"-1.5"}


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5))
@settings(max_examples=count_examples(30), deadline=None)
def test_every_text_comes_back_but_for_the_apostrophe(texts: list[str]) -> None:
    frame = pl.DataFrame({"n": range(len(texts)), "text": texts})
    for for_excel in (False, True):
        rows = parse(format_csv(frame, for_excel=for_excel))[1:]
        assert [row[1] for row in rows] == [escape_cell(text) for text in texts]


def test_what_csv_cannot_hold_is_refused_and_parquet_holds_it(tmp_path: Path) -> None:
    frame = pl.DataFrame({"many": [[1, 2], [3]]})
    with pytest.raises(InputError, match=r"'many' holds List.*parquet"):
        write_table(frame, tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []
    write_table(frame, tmp_path / "x.parquet")
    assert pl.read_parquet(tmp_path / "x.parquet").equals(frame)


def test_no_other_place_writes_csv() -> None:
    writers = re.compile(r"write_csv|csv\.writer|DictWriter|to_csv|sink_csv|write_excel")
    packages = [Path(p.__file__ or "").parent for p in (groundfault, groundfault_studies)]
    files = [path for package in packages for path in package.rglob("*.py")]
    assert [path.name for path in files if writers.search(path.read_text())] == ["sheets.py"]
