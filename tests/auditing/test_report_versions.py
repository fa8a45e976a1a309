"""Reading report.json: older versions of its form are upgraded, all else is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groundfault.auditing.report_schema import SCHEMA_VERSION
from groundfault.auditing.report_versions import parse_report, read_report, report_path
from groundfault.errors import InputError

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
