"""What is done is kept line by line, and a line that a kill cut off is worked out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundfault_studies.resuming import Rows, resume_parts, resume_rounds, resume_tables
from groundfault_studies.tables import PaperRow, PaperTable


def square(number: int) -> Rows:
    return [{"square": number * number}]


TODO = {str(number): (number,) for number in range(4)}


def test_parts_go_on_behind_a_line_that_was_cut_off(tmp_path: Path) -> None:
    keep = tmp_path / "rows.jsonl"
    whole = resume_parts(TODO, square, keep)
    lines = keep.read_text().splitlines(keepends=True)
    keep.write_text("".join(lines[:2]) + lines[2][:9])
    messages: list[str] = []
    assert resume_parts(TODO, square, keep, progress=messages.append) == whole
    assert messages == ["1 of 2: 2", "2 of 2: 3"]
    assert resume_parts(TODO, square, keep, progress=pytest.fail) == whole
    assert resume_parts(TODO, square, None) == whole


def test_rounds_are_shown_on_the_way_and_not_twice(tmp_path: Path) -> None:
    keep = tmp_path / "rows.jsonl"
    rounds = [{str(number): (number,)} for number in range(4)]
    counts: list[int] = []

    def show(rows: Rows, count: int) -> None:
        assert len(rows) == count
        counts.append(count)

    whole = resume_rounds(rounds, square, keep, 1, str, show)
    assert counts == [1, 2]
    assert resume_rounds(rounds, square, keep, 1, str, show) == whole
    assert counts == [1, 2]


def test_a_table_is_read_back_as_it_was(tmp_path: Path) -> None:
    row = PaperRow("a", {"p": 1.0, "n": 2, "range": (0.1, 2.0), "text": "b", "none": None})
    table = PaperTable("T", "note", {"p": ("p", "p"), "n": ("n", "count")}, (row,))
    keep = tmp_path / "rows.jsonl"
    first = resume_tables({"one": lambda: table}, keep, str)
    again = resume_tables({"one": lambda: pytest.fail("it is done")}, keep, str)
    assert first == again == (table,)
    assert again[0].format_row(again[0].rows[0]) == table.format_row(row)
    assert resume_tables({"two": lambda: (table, table)}, keep, str) == (table, table)
