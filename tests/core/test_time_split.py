"""The split by time: the latest examples are held out, and examples of one time stay together."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest

from groundfault import Evidence
from groundfault.core.time_split import earlier_units
from groundfault.errors import InputError


@pytest.mark.parametrize(
    "times",
    [
        [1, 2, 3, 4],
        [1.5, 2.5, 3.5, 4.5],
        ["2025-01-02", "2025-01-03", "2025-02-01", "2025-03-01"],
        ["2025-01-02 09:00", "2025-01-02 10:00", "2025-01-02T11:00", "2025-01-03T00:00"],
        [
            "2025-01-02T09:00:00Z",
            "2025-01-02T12:00:00+02:00",
            "2025-01-02T11:00:00Z",
            "2025-01-03T00:00:00.5Z",
        ],
        [date(2025, 1, 2), date(2025, 1, 3), date(2025, 2, 1), date(2025, 3, 1)],
    ],
)
def test_times_of_many_kinds_are_ordered(times: list[object]) -> None:
    table = pl.DataFrame({"id": list("abcd"), "at": times, "error": [0, 1, 0, 1]})
    evidence = Evidence.from_table(table, id="id", outcome="error")
    assert earlier_units(evidence, "at", 0.5).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["soon", "later", "now", "never"], "must hold numbers, dates or times"),
        ([1, None, 2, 3], "lacks a time"),
        ([7, 7, 7, 7], "one time only"),
    ],
)
def test_columns_that_hold_no_times_are_refused(times: list[object], message: str) -> None:
    table = pl.DataFrame({"id": list("abcd"), "at": times, "error": [0, 1, 0, 1]})
    evidence = Evidence.from_table(table, id="id", outcome="error")
    with pytest.raises(InputError, match=message):
        earlier_units(evidence, "at", 0.5)


def test_a_unit_of_several_times_is_refused() -> None:
    table = pl.DataFrame(
        {"id": list("aabb"), "model": list("xyxy"), "at": [1, 2, 3, 3], "error": [0, 1, 0, 1]}
    )
    evidence = Evidence.from_table(table, id="id", model="model", outcome="error")
    with pytest.raises(InputError, match="'a' has several times"):
        earlier_units(evidence, "at", 0.5)


@pytest.mark.parametrize(("share", "size"), [(0.2, 1), (0.4, 1), (0.6, 3), (0.9, 3)])
def test_ties_stay_together_and_the_share_is_met_as_nearly_as_they_allow(
    share: float, size: int
) -> None:
    table = pl.DataFrame({"id": list("abcd"), "at": [1, 2, 2, 3], "error": [0, 1, 0, 1]})
    evidence = Evidence.from_table(table, id="id", outcome="error")
    assert (~earlier_units(evidence, "at", share)).sum() == size
