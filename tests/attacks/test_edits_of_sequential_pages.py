"""Edits of a folder of `label report`: its pages say what its JSON says, or verify fails."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from groundfault.cli.main import cli
from groundfault.sequential import Certificate, Confirmation, Pool, SequentialAudit
from groundfault.sequential.answers import replay
from groundfault.sequential.verification import verify_certificate, verify_confirmation

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0" / "sequential"


def write_pages(result: Certificate | Confirmation, folder: Path) -> Path:
    folder.mkdir()
    result.to_json(folder / f"{type(result).__name__.lower()}.json")
    result.to_markdown(folder / "report.md")
    result.to_html(folder / "report.html")
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of an audit that this version made, without a ledger."""
    pool = Pool.from_arrays(
        [f"c{i:02d}" for i in range(24)],
        {"in": ["a", "b"] * 12},
        scores=[1.0, 0.0] * 12,
    )
    audit = SequentialAudit(
        pool, threshold=0.85, policy="stratified", seed=1, burn_in=10, ledger=None
    )
    audit.run(replay(pool))
    return write_pages(audit.certificate(), tmp_path_factory.mktemp("pages") / "report")


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "report")


def verify(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["verify", *map(str, arguments)])


def test_what_was_written_reproduces(folder: Path) -> None:
    result = verify(folder, "--no-ledger")
    assert result.exit_code == 0, result.output
    assert "pages passed: made again from certificate.json, every page" in result.output
    assert "recomputation passed" in result.output
    assert verify_certificate(folder, ledger=None).reproduces


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("report.html", "Labelled", "Labeled"),
        ("report.html", "Failure mode", "Success"),
        ("report.md", "0.85", "0.95"),
        ("report.md", "c01", "c00"),
        ("certificate.json", '"alpha": 0.05', '"alpha": 0.050'),
    ],
)
def test_an_edit_of_a_page_is_named(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text(encoding="utf-8")
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    check = verify_certificate(folder, ledger=None)
    assert check.verdict == "does NOT reproduce"
    assert [c.status for c in check.checks if c.name == "pages"] == ["failed"]
    assert any(line.startswith(f"{name}: ") for line in check.differences)


def test_an_edit_of_a_number_is_seen_though_all_pages_were_made_again(folder: Path) -> None:
    content = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    content["labelled"] += 1
    shutil.rmtree(folder)
    write_pages(Certificate.from_dict(content), folder)
    check = verify_certificate(folder, ledger=None)
    assert {c.name: c.status for c in check.checks} == {
        "recomputation": "failed",
        "ledger": "waived",
        "pages": "passed",
    }
    assert verify(folder, "--no-ledger").exit_code == 1


def test_pages_of_another_audit_and_lost_pages_fail(folder: Path) -> None:
    Certificate.load(STORED / "certificate.json").to_html(folder / "report.html")
    (folder / "report.md").unlink()
    lines = verify_certificate(folder, ledger=None).differences
    assert [line.partition(":")[0] for line in lines] == ["report.md", "report.html"]
    assert "report.md: missing" in lines


def test_pages_of_another_version_are_not_called_forged(tmp_path: Path) -> None:
    folder = write_pages(Certificate.load(STORED / "certificate.json"), tmp_path / "report")
    statuses = {c.name: c.status for c in verify_certificate(folder, ledger=None).checks}
    assert statuses["pages"] == "passed"
    (folder / "report.md").write_text("as 0.1.0 put it", encoding="utf-8")
    assert verify(folder, "--ledger", tmp_path / "none.db").exit_code == 3


def test_of_a_confirmation_the_pages_are_checked_and_the_rest_is_said(tmp_path: Path) -> None:
    folder = write_pages(Confirmation.load(STORED / "confirm.json"), tmp_path / "report")
    result = verify(folder)
    assert result.exit_code == 3, result.output
    assert "pages passed: made again from confirmation.json, every page" in result.output
    assert "recomputation unchecked" in result.output
    page = folder / "report.html"
    page.write_text(page.read_text(encoding="utf-8").replace("German", "French"), encoding="utf-8")
    check = verify_confirmation(folder / "confirmation.json")
    assert check.verdict == "does NOT reproduce"


def test_a_folder_of_both_names_the_other(folder: Path) -> None:
    shutil.copy(STORED / "confirm.json", folder / "confirmation.json")
    assert "differs: confirmation.json: added" in verify(folder).output
