"""Packed rows are the rows that came, in their order, and read by parts as they are as a whole."""

from __future__ import annotations

import polars as pl
import pytest

from groundfault.readers import log
from groundfault.readers.log import Log, Observation, PackedRows, stack

TABLES = [
    pl.DataFrame({"id": ["a", "b"], "x": [1, 2]}),
    pl.DataFrame({"id": ["c"], "x": [3]}),
    pl.DataFrame({"id": ["d"], "x": [0.5], "y": ["über"]}),
    pl.DataFrame({"id": ["e"], "x": pl.Series([None], dtype=pl.String), "y": [None]}),
]


@pytest.mark.parametrize("most", [1, 3, 50_000])
def test_packed_rows_are_the_tables_one_under_the_other(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "CHUNK", most)
    packed = PackedRows()
    assert not packed
    for table in TABLES:
        packed.add(table)
    whole = packed.stack()
    assert packed
    assert whole.collect().equals(stack(TABLES))
    assert whole.collect_schema() == stack(TABLES).schema
    for start in range(5):
        assert whole.slice(start, 2).collect().equals(stack(TABLES).slice(start, 2))


def test_whole_numbers_become_text_as_they_are_not_by_way_of_fractions() -> None:
    packed = PackedRows()
    for values in ([1], [0.5], ["x"]):
        packed.add(pl.DataFrame({"x": values}))
    assert packed.stack().collect()["x"].to_list() == ["1", "0.5", "x"]


def test_many_rows_take_a_fraction_of_their_memory() -> None:
    table = pl.DataFrame({"text": ["the same words again and again"] * 5_000})
    packed = PackedRows()
    for _ in range(20):
        packed.add(table)
    size = sum(len(file) for _, file in packed._packed)
    assert 0 < size < table.estimated_size()
    assert packed.stack().select(pl.len()).collect().item() == 100_000


VALUES = {
    "a number, later a word": [1, 2, 3, "x", 5],
    "a word, later a number": ["x", "1", 0.5, None, 2],
    "nothing first": [None, None, 7, 8, 9],
    "nothing first, then words": [None, None, None, "x", "y"],
    "a whole number, later a fraction": [1, 2, 0.5, 4, 5],
    "true, later a number": [True, False, 1, 0, None],
    "true, later a word": [True, None, "x", False, "y"],
    "a list, later a word": [["a", 1], [], "x", None, ["b"]],
    "lists of other types": [[1, 2], [3], ["x"], [None], []],
    "a mapping, later another": [{"a": 1}, {"a": 2}, {"a": "x", "b": {"c": 1}}, {}, {"b": 2}],
    "a word, later a mapping": ["x", None, {"a": 1}, {"a": [1]}, "y"],
}


@pytest.mark.parametrize("case", VALUES)
def test_packed_parts_of_several_types_are_the_table_read_whole(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Observation(f"q{i}", 1.0, attributes={"x": x}) for i, x in enumerate(VALUES[case])]
    ((whole, _),) = Log(rows).tables()
    monkeypatch.setattr(log, "CHUNK", 2)
    packed = PackedRows()
    for part, _ in Log(rows).tables():
        packed.add(part)
    table = packed.stack().collect()
    # a column that only a later part has comes after those of the earlier ones
    assert sorted(table.columns) == sorted(whole.columns)
    assert table.select(whole.columns).equals(whole)
