"""A cell that a stranger wrote is no formula in any sheet that a command writes."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from groundfault import Candidate, Evidence, Plan, audit
from groundfault.cli.main import cli
from groundfault_lab.probes.evidence import write as write_rows

EVIL = '=HYPERLINK("http://evil","x")'
STARTS = ("=", "+", "-", "@", "\t", "\r")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evidence whose ids and names of columns are formulas."""
    path = tmp_path_factory.mktemp("evil") / "table.parquet"
    texts = [f"{EVIL}{i}" for i in range(80)]
    frame = pl.DataFrame(
        {"=id": texts, "=text": texts, "n": range(80), "error": [i % 2 for i in range(80)]}
    )
    frame.write_parquet(path)
    return path


def require_no_formula(path: Path) -> None:
    rows = list(csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline="")))
    cells = [cell for row in rows for cell in row]
    assert any(EVIL in cell for cell in cells)
    assert not [cell for cell in cells if cell.startswith(STARTS)]


def test_features(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    args = ["lab", "features", str(table), "--text", "=text", "--text-attributes", "-o", str(out)]
    CliRunner().invoke(cli, args, catch_exceptions=False)
    require_no_formula(out)


def test_memberships(table: Path, tmp_path: Path) -> None:
    evidence = Evidence.from_table(table, id="=id", outcome="error")
    report = audit(evidence, Plan(judge="holm"), [Candidate("=many", "n > 40")], ledger=False)
    report.write(tmp_path / "report")
    out = tmp_path / "m.csv"
    args = ["export", str(tmp_path / "report"), "--to", "memberships", "--all-candidates"]
    args += ["--evidence", str(table), "-o", str(out)]
    CliRunner().invoke(cli, args, catch_exceptions=False)
    require_no_formula(out)


def test_evidence_of_probes(table: Path, tmp_path: Path) -> None:
    evidence = Evidence.from_table(table, id="=id", outcome="error")
    write_rows(evidence, [Candidate("many", "n > 40")], tmp_path / "rows.csv")
    require_no_formula(tmp_path / "rows.csv")
