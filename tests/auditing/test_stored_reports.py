"""Reports that version 0.1.0 stored are read, verified, rendered and gated by this version."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

import groundfault
from groundfault import InputError, Report
from groundfault.auditing.gating import gate
from groundfault.auditing.report import parse_report, read_report
from groundfault.auditing.report_schema import SCHEMA_VERSION

STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0"
PLACES = sorted(
    path.parent.relative_to(STORED).as_posix()
    for path in STORED.rglob("report.json")
    if (path.parent / "library.json").exists()
)
COMPARISON = "models/compare"
"""Made by a rule that is withdrawn: it is read and shown, and not made again."""
EXCESS = "taxonomy/fit/excess"
"""Of fitted losses to the last bit, hence of one kind of processor: see test_stored_taxonomies."""
LEDGERS = {"confirmed/report": "confirmed/ledger.db", "confirmed/reopened": "confirmed/ledger.db"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the stored results: reading a ledger may leave files beside it."""
    place = tmp_path_factory.mktemp("stored") / "v0_1_0"
    shutil.copytree(STORED, place)
    return place


def test_there_are_reports_of_every_way_to_make_one() -> None:
    assert len(PLACES) == 25


@pytest.mark.parametrize("place", [place for place in PLACES if place != EXCESS])
def test_a_stored_report_reproduces(
    place: str, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "fitted/language" and find_spec("spacy") is None:
        pytest.skip("needs spaCy")
    monkeypatch.chdir(desk)
    if place == COMPARISON:
        with pytest.raises(InputError, match="counted each direction by itself"):
            groundfault.verify(place)
        return
    verification = groundfault.verify(place, ledger=LEDGERS.get(place))
    states = {check.name: check.status for check in verification.checks}
    assert states["recomputation"] == "passed", verification.differences
    assert "failed" not in states.values()
    # its ledger holds no digests of what was written: that nobody edited it, nobody can say
    assert verification.reproduces == (place not in LEDGERS)
    assert (states["ledger"] == "passed") == (place in LEDGERS)


@pytest.mark.parametrize("place", PLACES)
def test_a_stored_report_is_read_whole(place: str) -> None:
    old = json.loads((STORED / place / "report.json").read_text(encoding="utf-8"))
    report = Report.load(STORED / place)
    new = report.to_dict()
    assert new["schema_version"] == SCHEMA_VERSION
    assert new["candidates"] == old["library"]
    assert new["plan"] == old["plan"]
    assert report.plan.to_plan().seal() == old["hashes"]["plan"] == report.hashes.plan
    assert report.library.hash == report.hashes.library
    for before, after in zip(old["findings"], new["findings"], strict=True):
        later = {k: None for k in after.keys() - before.keys() if k != "representative"}
        assert after == {k: v for k, v in before.items() if k != "lead"} | later | {
            "representative": before["lead"]
        }
    if old["ledger"]:
        assert old["ledger"].items() <= new["ledger"].items()
    unchanged = set(old) - {"schema_version", "library", "manifest", "findings", "ledger"}
    assert {key: new[key] for key in unchanged} == {key: old[key] for key in unchanged}
    assert parse_report(json.loads(report.to_json())).data == report.data, "written and read again"


def test_a_number_that_was_changed_is_noticed(
    desk: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(desk)
    shutil.copytree("graded/report", tmp_path / "report")
    path = tmp_path / "report" / "report.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    report["findings"][0]["full"]["on"] += 1
    path.write_text(json.dumps(report), encoding="utf-8")
    (difference,) = groundfault.verify(tmp_path / "report").differences
    assert difference.startswith("findings[0].full.on: ")


def test_a_stored_report_is_gated_and_rendered() -> None:
    result = gate(STORED / "confirmed/report", baseline=STORED / "confirmed/report")
    assert result.passed
    assert not result.known, "that nothing changed is not said of what failed twice"
    report = Report.load(STORED / "confirmed/report")
    assert report.to_markdown().startswith("# 1 confirmed finding\n"), "the other is a strength"
    assert "<!doctype html>" in report.to_html()


def test_a_report_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    report = json.loads((STORED / "graded/report/report.json").read_text(encoding="utf-8"))
    report["schema_version"] = SCHEMA_VERSION + 1
    (tmp_path / "report.json").write_text(json.dumps(report), encoding="utf-8")
    with pytest.raises(InputError, match="install the groundfault that wrote it"):
        read_report(tmp_path)
