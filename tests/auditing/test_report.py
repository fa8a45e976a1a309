"""Reports: frozen, typed, written, read again, and shown through their pages."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from audit_tables import make_planted_evidence

import groundfault
from groundfault import InputError, Report
from groundfault.auditing.report import parse_report, read_report, report_path
from groundfault.auditing.report_schema import SCHEMA_VERSION


@pytest.fixture(scope="module")
def report() -> Report:
    return groundfault.audit(make_planted_evidence())


def test_a_report_is_read_as_it_was_written(report: Report, tmp_path: Path) -> None:
    report.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "report.html",
        "report.json",
        "report.md",
        "library.json",
        "SHA256SUMS",
    }
    for place in (tmp_path, tmp_path / "report.json"):
        again = Report.load(place)
        assert again == report
        assert again.to_json() == report.to_json() == (tmp_path / "report.json").read_text("utf-8")


def test_a_report_cannot_be_changed(report: Report) -> None:
    with pytest.raises(AttributeError):
        report.error_rate = 0.0  # type: ignore[misc]
    with pytest.raises(AttributeError):
        report.manifest.python = "2.7"  # type: ignore[misc]


def test_a_report_is_a_short_line_in_a_prompt(report: Report) -> None:
    assert repr(report).startswith("<Report: 1 failure mode, 1 of 8 findings confirmed by max-t")
    assert len(repr(report)) < 80


def test_the_table_has_a_row_for_each_finding(report: Report) -> None:
    frame = report.to_frame()
    assert frame["name"].to_list() == [f.name for f in report.findings]
    assert sum(report.counts().values()) == frame.height


@pytest.mark.parametrize("content", ["[]", "{}", "{", json.dumps({"schema_version": True})])
def test_what_is_no_report_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(InputError, match=r"report\.json"):
        Report.load(tmp_path)


def test_a_report_without_its_candidates_is_not_loaded(report: Report, tmp_path: Path) -> None:
    report.to_json(tmp_path / "report.json")
    with pytest.raises(InputError, match=r"library\.json"):
        Report.load(tmp_path)


def test_a_copy_of_a_recorded_report_leaves_its_ledger_behind(tmp_path: Path) -> None:
    recorded = groundfault.audit(
        make_planted_evidence(n=60), ledger=tmp_path / "ledger.db", modes=False
    )
    assert recorded.witness is not None
    again = pickle.loads(pickle.dumps(recorded))
    assert again.witness is None
    assert again.data == recorded.data


STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0" / "confirmed" / "report"


def load() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((STORED / "report.json").read_text(encoding="utf-8"))
    return content


def test_a_folder_and_its_file_are_the_same_report() -> None:
    assert report_path(STORED) == report_path(STORED / "report.json") == STORED / "report.json"
    assert read_report(STORED) == read_report(STORED / "report.json")


def test_version_1_gets_the_names_of_today_and_keeps_every_value() -> None:
    old = load()
    report = parse_report(old)
    assert (report.schema_version, report.data.schema_version) == (1, SCHEMA_VERSION)
    assert [f.representative for f in report.data.findings] == [f["lead"] for f in old["findings"]]
    assert [f.sentence for f in report.data.findings] == [f["sentence"] for f in old["findings"]]
    assert report.data.hashes.evidence == old["hashes"]["evidence"]


def test_the_content_that_is_upgraded_is_left_as_it_was() -> None:
    content = load()
    parse_report(content)
    assert content == load()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": None}, "it has no schema_version"),
        ({"schema_version": True}, "it has no schema_version"),
        ({"schema_version": 0}, "it has no schema_version"),
        ({"schema_version": SCHEMA_VERSION + 1}, "install the groundfault that wrote it"),
        ({"findings": 7}, "the log is not a groundfault report"),
        ({"manifest": {}}, "the log is not a groundfault report"),
    ],
)
def test_what_is_no_report_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        parse_report(load() | changes, "the log")
    assert "\n" not in str(refusal.value)


def test_a_place_without_a_report_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no report .*report\.json"):
        read_report(tmp_path)
