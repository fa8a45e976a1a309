"""Commands that 0.1.0 wrote JSON with: given again, they write the same bytes."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from groundfault.cli.main import cli

STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0"
TABLE = "confirmed/evidence.csv --id item --outcome error"
COMMANDS = {
    "gate.json": ("gate confirmed/report", 1),
    "gate-baseline.json": ("gate confirmed/report --baseline confirmed/report", 0),
    "check.json": (f"check {TABLE} --library frozen/library.json --judge janus", 0),
    "slices.json": (f"slices {TABLE} --finder sliceline -k 3 --permutations 20", 0),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_stored_result_is_written_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("confirmed", "frozen"):
        shutil.copytree(STORED / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    command, status = COMMANDS[name]
    result = CliRunner().invoke(cli, [*shlex.split(command), "--json", "new.json"])
    assert result.exit_code == status, result.output
    assert Path("new.json").read_bytes() == (STORED / "frozen" / name).read_bytes()
