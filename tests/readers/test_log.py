"""Tables of observations: clashes of names, numbers too large, values nested without end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation, stack


def table(*attributes: dict[str, Any], measurements: dict[str, Any] | None = None) -> pl.DataFrame:
    rows = [
        Observation(str(i), attributes=each, measured=measurements or {})
        for i, each in enumerate(attributes)
    ]
    [(frame, _)] = Log(rows).tables()
    return frame


def test_names_that_are_taken_are_told_apart() -> None:
    frame = table({"prompt": 1, "prompt_given": 2, "judge": 3, "": 4}, measurements={"judge": "a"})
    assert frame.row(0, named=True) | {
        "prompt_given": 1,
        "prompt_given_given": 2,
        "judge_given": 3,
        "_": 4,
    } == frame.row(0, named=True)
    assert frame["judge"].to_list() == ["a"]


def test_nested_mappings_are_columns_of_their_own() -> None:
    frame = table({"doc": {"level": 1, "more": {"x": "a"}}}, {"doc": 5}, {"doc": {"level": 2}})
    assert frame["doc_level"].to_list() == [1, None, 2]
    assert frame["doc_more_x"].to_list() == ["a", None, None]
    assert frame["doc"].to_list() == [None, 5, None]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, None, 3], pl.Int64),
        ([1, 2.5], pl.Float64),
        ([2**63, 1], pl.Float64),
        ([10**400, 1], pl.String),
        ([10**400, 1.5], pl.String),
        ([True, None], pl.Boolean),
        ([True, 1], pl.String),
        ([[1, 2], "a"], pl.String),
        ([float("nan"), 1.0], pl.Float64),
    ],
)
def test_a_column_has_the_type_that_holds_it(values: list[Any], dtype: Any) -> None:
    assert table(*({"a": value} for value in values))["a"].dtype == dtype


def test_what_was_found_before_is_no_attribute() -> None:
    frame = table({"groundfault": {"long": True}, "level": 1})
    assert [c for c in frame.columns if c.startswith("groundfault")] == []
    assert frame["level"].to_list() == [1]


def test_too_deep_and_too_many_are_one_line() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(InputError, match="nested too deeply"):
        table({"a": deep})
    with pytest.raises(InputError, match="over 2000 attributes"):
        table({f"a{i}": i for i in range(2001)})


def test_scores_of_one_answer_may_share_what_describes_it() -> None:
    shared = {"level": 3, "tags": ["a", "b"], "more": {"de": None}}
    other = {"level": "high"}
    rows = [shared, shared, other, shared]

    def tabulate(attributes: list[dict[str, Any]]) -> pl.DataFrame:
        log = Log([Observation(str(i), attributes=row) for i, row in enumerate(attributes)])
        ((frame, _),) = log.tables()
        return frame

    assert tabulate(rows).equals(tabulate([dict(row) for row in rows]))
    assert tabulate(rows)["level"].to_list() == ["3", "3", "high", "3"]


def test_collection_of_garbage_goes_on_as_it_was() -> None:
    def break_off() -> Iterator[Observation]:
        yield Observation("a")
        raise InputError("cut short")

    with pytest.raises(InputError, match="cut short"):
        list(Log(break_off()).tables())
    assert gc.isenabled()


def test_a_column_that_is_empty_in_one_part_of_a_log_has_the_type_of_the_others() -> None:
    empty = pl.DataFrame({"n": [None, None], "flag": [None, None]}).cast({"n": pl.Boolean})
    table = stack([empty, pl.DataFrame({"n": [1.5], "flag": [True]}), empty])
    assert table.schema == {"n": pl.Float64, "flag": pl.Boolean}
    assert table["n"].to_list() == [None, None, 1.5, None, None]
