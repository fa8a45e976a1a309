"""Sheets on which a person decides again: written blank, read back strictly."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from groundfault.descriptions.annotating import MISSING, read_sheet, write_sheet
from groundfault.errors import InputError

TEXTS = ["=SUM(A1)", "two\nlines", 'a "quoted", text']
LINES = ["it is a formula", "it is long"]


def fill(place: Path, *decisions: str, delimiter: str = ",") -> None:
    with place.open(encoding="utf-8-sig", newline="") as file:
        head, *rows = list(csv.reader(file))
    rows = [[*row[:2], word] for row, word in zip(rows, decisions, strict=True)]
    with place.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([head, *rows])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_decisions_come_back_and_blanks_are_missing(tmp_path: Path, delimiter: str) -> None:
    place = tmp_path / "sheet.csv"
    write_sheet(place, TEXTS, LINES)
    assert "'=SUM" in place.read_text(encoding="utf-8-sig")
    assert (read_sheet(place, TEXTS, LINES) == MISSING).all()
    fill(place, "yes", "No", "", "no", " YES", "", delimiter=delimiter)
    assert read_sheet(place, TEXTS, LINES).tolist() == [[1, 0], [MISSING, 0], [1, MISSING]]


def test_what_is_not_of_the_sheet_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "sheet.csv"
    write_sheet(place, TEXTS, LINES)
    with pytest.raises(InputError, match="row 3: the description differs from"):
        read_sheet(place, TEXTS, ["it is a formula", "it is short"])
    fill(place, "perhaps", *[""] * 5)
    with pytest.raises(InputError, match="row 2: holds is 'perhaps'; write yes or no"):
        read_sheet(place, TEXTS, LINES)
    with pytest.raises(InputError, match="row 2: the text differs from"):
        read_sheet(place, TEXTS[1:], LINES)
    place.write_text("text,holds\n")
    with pytest.raises(InputError, match="is it the right file"):
        read_sheet(place, TEXTS, LINES)
    with pytest.raises(InputError, match="cannot read"):
        read_sheet(tmp_path / "nowhere.csv", TEXTS, LINES)
