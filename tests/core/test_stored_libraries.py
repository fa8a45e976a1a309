"""Libraries that version 0.1.0 froze: read, equal to the last byte, and with the same hash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groundfault import Evidence
from groundfault.core.candidate import Library
from groundfault.core.units import Marks

STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0"
LIBRARIES = sorted(
    path.relative_to(STORED).as_posix() for path in STORED.rglob("*library.json") if path.is_file()
)


def test_there_are_libraries_of_rules_and_of_fitted_columns() -> None:
    texts = [(STORED / name).read_text(encoding="utf-8") for name in LIBRARIES]
    assert {"derived" in json.loads(text) for text in texts} == {True, False}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_stored_library_is_read_and_written_as_it_was(name: str) -> None:
    text = (STORED / name).read_text(encoding="utf-8")
    library = Library.load(STORED / name)
    assert library.to_json() == text
    assert library.hash == json.loads(text)["hash"]


def test_a_stored_library_applies_to_evidence() -> None:
    evidence = Evidence.from_table(
        STORED / "confirmed" / "evidence.csv", id="item", outcome="error"
    )
    marks = Marks.of(evidence, Library.load(STORED / "frozen" / "library.json"))
    assert not any(marks.unusable)
    assert (marks.counts()[1] > 0).all()
