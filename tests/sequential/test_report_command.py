"""`label report`: pages of certificates, of confirmations, and of audits in a ledger."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from groundfault.cli.main import cli
from groundfault.errors import GroundfaultError
from groundfault.sequential import verify_certificate

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0" / "sequential"


def report(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["label", "report", *map(str, arguments)])


def test_a_certificate_becomes_a_page_in_three_formats(tmp_path: Path) -> None:
    result = report(STORED / "certificate.json", "--out", tmp_path / "page")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Failure mode found\n")
    assert "88 of 100 cases were never labelled" in result.output
    assert sorted(path.name for path in (tmp_path / "page").iterdir()) == [
        "certificate.json", "report.html", "report.md",
    ]  # fmt: skip
    assert verify_certificate(tmp_path / "page" / "certificate.json").reproduces
    assert "<svg" in (tmp_path / "page" / "report.html").read_text()


def test_a_confirmation_becomes_a_page_too(tmp_path: Path) -> None:
    result = report(STORED / "confirm.json", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("1 confirmed finding\n")
    assert json.loads((tmp_path / "confirmation.json").read_text())["confirmed"] == ["German"]
    assert "German" in (tmp_path / "report.md").read_text()


def test_of_a_ledger_the_present_state_is_shown(tmp_path: Path) -> None:
    shutil.copy(STORED / "unfinished.db", tmp_path / "audit.db")
    result = report(tmp_path / "audit.db")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Inconclusive\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.db"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.json",), "nowhere.json"),
        (("nowhere.db",), "no ledger"),
        ((STORED / "plan.json",), "is not the result of a sequential confirmation"),
        ((STORED / "certificate.json", "--seal", "0415"), "one audit of a ledger"),
        ((STORED / "unfinished.db", "--seal", "zz"), "holds no audit zz"),
    ],
)
def test_what_is_no_result_is_refused(
    arguments: tuple[object, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = report(*arguments, "--out", "page")
    assert isinstance(result.exception, GroundfaultError), result.output
    assert message in str(result.exception)
    assert list(tmp_path.iterdir()) == []
