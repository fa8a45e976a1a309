"""Roles: which column plays which part, under the names of today and of 0.1.0."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict

import polars as pl
import pytest

from groundfault.core.evidence import Evidence
from groundfault.core.roles import Roles, add_id, list_parts, read_roles
from groundfault.errors import InputError

FRAME = pl.DataFrame({"id": ["a", "b"], "error": [0, 1], "x": [1, 2]})


def test_columns_that_play_a_part_are_listed_once() -> None:
    assert Roles("error", id="id", group="id").columns == ("error", "id")


def test_joining_adds_to_lists_and_replaces_columns() -> None:
    roles = Roles("error", group="g", ignore=("a",))
    both = roles.join(None, "part", {"ignore": ["b", "a"], "allow_leakage": ["x"]})
    assert both == Roles("error", group="g", split="part", ignore=("a", "b"), allow_leakage=("x",))
    assert roles.join("h", None, {}).group == "h"


def test_stored_roles_of_0_1_0_are_read() -> None:
    roles = Roles("error", null_outcome="missing", allow_leakage=("x",))
    record = asdict(roles)
    old = {"empty": record.pop("null_outcome"), "allow_leak": list(record.pop("allow_leakage"))}
    assert Roles(**read_roles(record | old)) == roles
    assert Roles(**read_roles(asdict(roles))) == roles


def test_rows_without_an_id_are_numbered_under_a_free_name() -> None:
    frame = FRAME.rename({"x": "row"})
    roles = add_id(frame, Roles("error"))
    assert roles.id == "_row"
    assert roles.numbered
    assert frame["_row"].to_list() == [0, 1]


def test_a_table_of_somebody_else_stays_as_it_is() -> None:
    """Rows are sorted and numbered in place, but in place of a copy."""
    frame = pl.DataFrame({"x": [2.0, float("nan"), 1.0], "error": [0, 1, 1]})
    before = frame.clone()
    evidence = Evidence.from_table(frame, outcome="error")
    again = Evidence.from_frame(frame, Roles("error", "x"))
    assert evidence.frame.columns == ["row", "x", "error"]
    assert again.frame["error"].to_list() == [1, 0, 1]
    assert frame.equals(before)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (Roles("none"), "no column 'none' .named as outcome"),
        (Roles("error", id="id", ignore=("none",)), "no column 'none' .named as ignore"),
        (Roles("error", id="id", allow_leakage=("none",)), "named as allow_leakage"),
    ],
)
def test_a_column_that_is_not_there_is_named(roles: Roles, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Evidence.from_frame(FRAME, roles)


def test_one_column_has_one_role() -> None:
    table = pl.DataFrame({"id": [1, 2], "error": [0, 1]})
    for roles in ({"id": "id", "repeat": "id"}, {"id": "error"}):
        with pytest.raises(InputError, match="one is named twice: error"):
            Evidence.from_table(table, outcome="error", **roles)


def test_dates_lists_and_structs_give_parts_that_leave_the_hash_as_it_is() -> None:
    start = dt.datetime(2024, 4, 30, 22)
    table = pl.DataFrame(
        {
            "error": [0, 1, 1, 0],
            "at": [start + dt.timedelta(hours=5 * i) for i in range(4)],
            "tags": [["a", "b"], ["b"], [], None],
            "meta": [{"lang": "de", "inner": {"depth": i}} for i in range(4)],
            "vector": [[0.5, 1.0]] * 4,
        }
    )
    evidence = Evidence.from_table(table, outcome="error")
    frame = evidence.frame
    assert frame["at.day"].to_list() == [20240430, 20240501, 20240501, 20240501]
    assert frame["at.weekday"].to_list() == ["Tuesday"] + ["Wednesday"] * 3
    assert frame["at.hour"].to_list() == [22, 3, 8, 13]
    assert frame["tags.length"].to_list() == [2, 1, 0, None]
    assert frame["tags.has b"].to_list() == [True, True, False, None]
    assert "tags.has a" not in frame.columns
    assert frame["meta.inner.depth"].to_list() == [0, 1, 2, 3]
    assert not [name for name in frame.columns if name.startswith("vector.")]
    plain = Evidence.from_frame(table, Roles("error"), parts=False)
    assert plain.hash == evidence.hash
    assert set(list_parts(frame)) == set(frame.columns) - {"row", *table.columns}
    ignored = Evidence.from_table(table, outcome="error", ignore=["at", "tags", "meta"])
    assert list_parts(ignored.frame) == []


@pytest.mark.parametrize(
    ("days", "first"),
    [
        (["13.02.2026", "1.3.2026"], 20260213),
        (["13/02/2026 09:30", "01/03/2026 10:00"], 20260213),
        (["2/13/2026", "3/1/2026"], 20260213),
    ],
)
def test_dates_of_a_country_are_dates_where_one_order_alone_reads_them(
    days: list[str], first: int
) -> None:
    frame = pl.DataFrame({"sent": days, "error": [0, 1]})
    assert Evidence.from_table(frame, outcome="error").frame["sent.day"][0] == first
    unclear = pl.DataFrame({"sent": ["2/3/2026", "3/4/2026"], "error": [0, 1]})
    assert "sent.day" not in Evidence.from_table(unclear, outcome="error").frame.columns
