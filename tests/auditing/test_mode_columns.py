"""Which columns the rules of failure modes may name."""

from __future__ import annotations

import polars as pl

from groundfault import Evidence
from groundfault.auditing.failure_modes import tabulate_attributes
from groundfault.auditing.preparation import prepare


def columns_of(**columns: list[str]) -> tuple[list[str], tuple[str, ...]]:
    table = pl.DataFrame({"id": range(900), "error": [0, 0, 1] * 300, "n": [1, 2] * 450, **columns})
    audit = prepare(Evidence.from_table(table, id="id", outcome="error"))
    names, remarks = tabulate_attributes(audit)
    return names.columns, remarks


def test_a_column_of_many_values_that_repeat_is_used() -> None:
    columns, remarks = columns_of(language=[f"l{i % 90}" for i in range(900)])
    assert columns == ["n", "language"]
    assert remarks == ()


def test_a_column_whose_values_are_rare_is_not_used_and_said() -> None:
    columns, remarks = columns_of(code=[f"c{i % 300}" for i in range(900)], same=["x"] * 900)
    assert columns == ["n"]
    assert remarks == ("not used in rules, because they are ids, codes, dates or lists: code",)
