"""One row a unit, and the strata that columns held fixed make."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from groundfault import Evidence, InputError
from groundfault.auditing.prepared_audit import number_strata, tabulate_units


def make_grouped() -> Evidence:
    frame = pl.DataFrame(
        {
            "id": ["a2", "a1", "b1", "c1", "b2", "c2"],
            "group": ["a", "a", "b", "c", "b", "c"],
            "topic": ["x", "x", "y", None, "y", None],
            "row": [1, 2, 3, 4, 5, 6],
            "error": [0, 1, 0, 1, 1, 0],
        }
    )
    return Evidence.from_table(frame, id="id", group="group", outcome="error")


def test_a_row_a_unit_of_what_does_not_vary_in_it() -> None:
    evidence = make_grouped()
    table, varying = tabulate_units(evidence, ["topic", "row"])
    assert evidence.unit_names.to_list() == ["a", "b", "c"]
    assert table.to_dict(as_series=False) == {"topic": ["x", "y", None]}
    assert varying == ("row",)
    assert tabulate_units(evidence, [])[0].width == 0


def test_rows_are_in_the_order_of_units_where_ids_sort_otherwise() -> None:
    frame = pl.DataFrame({"id": [10, 9, 1], "x": [10, 9, 1], "error": [0, 1, 0]})
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    table, varying = tabulate_units(evidence, ["x"])
    assert [str(x) for x in table["x"]] == evidence.unit_names.to_list()
    assert varying == ()


def test_strata_join_columns_and_sizes_and_a_missing_value_is_one() -> None:
    frame = pl.DataFrame(
        {
            "a": ["x", "x", "y", None, None, "y"],
            "b": [True, False, True, True, True, True],
            "error": [0, 1, 0, 1, 1, 0],
        }
    )
    evidence = Evidence.from_table(frame, outcome="error")
    strata = number_strata(evidence, ("a", "b"), None)
    assert strata is not None
    expected = [[i == j for j in strata] for i in strata]
    same = [[r == s for s in frame.select("a", "b").rows()] for r in frame.select("a", "b").rows()]
    assert expected == same
    sizes = np.array([1, 1, 1, 2, 1, 1])
    finer = number_strata(evidence, ("a", "b"), sizes)
    assert finer is not None
    assert finer[3] != finer[4]
    assert number_strata(evidence, (), sizes) is sizes


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("colour", "there is no column 'colour'"),
        ("error", "says how an example was scored"),
        ("row", "differs between rows of one group"),
        ("group", "every unit has different values"),
    ],
)
def test_columns_that_cannot_be_held_fixed(column: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        number_strata(make_grouped(), (column,), None)


def test_lists_cannot_be_held_fixed() -> None:
    frame = pl.DataFrame({"tags": [["a"], ["b"]], "error": [0, 1]})
    with pytest.raises(InputError, match="holds lists"):
        number_strata(Evidence.from_table(frame, outcome="error"), ("tags",), None)
