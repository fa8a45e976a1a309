"""Kinds of stored results: by which file one is known, and what its folder may hold."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import groundfault
from groundfault.auditing.stored_kinds import KINDS, find_kind, list_unlisted
from groundfault.base.registry import load_object
from groundfault.errors import InputError, PlanError

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0"


@pytest.mark.parametrize(
    ("place", "file"),
    [
        ("confirmed/report", "report.json"),
        ("confirmed/report/report.json", "certificate.json"),
        ("sequential/certificate.json", "certificate.json"),
        ("sequential/panel.certificate.json", "certificate.json"),
        ("sequential/confirm.json", "confirmation.json"),
        ("probe/package", "MANIFEST.json"),
        ("taxonomy/fit", "taxonomy.json"),
        ("imported/evidence", "evidence.json"),
        ("frozen/gate.json", "gate.json"),
        ("confirmed/ledger.db", "ledger.db"),
        ("probe/runs/reviews.db", "ledger.db"),
        ("sequential", "certificate.json"),
        ("graded", "report.json"),
    ],
)
def test_a_result_is_known_by_its_file_or_its_key(place: str, file: str) -> None:
    assert find_kind(STORED / place).file == file


def test_every_kind_has_somebody_who_verifies_it() -> None:
    assert len({kind.file for kind in KINDS}) == len(KINDS) == 9
    for kind in KINDS:
        assert callable(load_object(kind.verify))


def test_what_no_pattern_covers_is_listed_by_its_top(tmp_path: Path) -> None:
    for name in ("a.json", "b/c.json", "b/d.txt", "e/f/g.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert list_unlisted(tmp_path, ("*.json", "*/*.json")) == ["b/d.txt", "e"]
    assert list_unlisted(tmp_path, ("a.json", "b/*", "e/*/g.txt")) == []


def test_an_option_that_a_kind_does_not_take_is_refused() -> None:
    with pytest.raises(PlanError, match="leave out --evidence"):
        groundfault.verify(STORED / "probe" / "package", evidence="x.csv")
    with pytest.raises(InputError, match="there is no report"):
        groundfault.verify(STORED / "graded")


def test_a_record_that_was_edited_is_named(tmp_path: Path) -> None:
    for name in ("confirmed/ledger.db", "probe/runs/reviews.db", "sequential/audit.db"):
        copy = tmp_path / Path(name).name
        shutil.copy(STORED / name, copy)
        assert groundfault.verify(copy).reproduces
        with closing(sqlite3.connect(copy)) as book:
            book.execute("UPDATE groundfault_ledger SET actor = 'x' WHERE seq = 1")
            book.commit()
        assert groundfault.verify(copy).verdict == "does NOT reproduce"
