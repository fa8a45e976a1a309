"""Commands that 0.1.0 wrote JSON with: given again, they write the same bytes."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from groundfault.cli.main import cli

STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0"
TABLE = "confirmed/evidence.csv --id item --outcome error"
COMMANDS = {
    "gate.json": ("gate confirmed/report --fail-on confirmed", 1),
    "gate-baseline.json": (
        "gate confirmed/report --fail-on confirmed --baseline confirmed/report",
        0,
    ),
    "check.json": (f"check {TABLE} --library frozen/library.json --judge janus", 0),
    "slices.json": (f"lab slices {TABLE} --finder sliceline -k 3 --permutations 20", 0),
}
NEW = {
    "gate.json": ("rule", "asked"),
    # what a baseline knew already is matched in comparisons alone
    "gate-baseline.json": ("rule", "known", "notes", "asked"),
    # a search had no bound by default, and ends long before it here
    "slices.json": ("searches", "chance", "max_parents"),
    # the least lifts are computed in another way since: by what the judge asks
    "check.json": ("columns", "minimum_detectable_lift", "unit"),
}
"""Keys that later versions add or compute anew, after which the rest is the same."""


def drop(value: Any, keys: Sequence[str]) -> Any:
    """JSON without some keys, on any level."""
    if isinstance(value, list):
        return [drop(one, keys) for one in value]
    if isinstance(value, dict):
        return {key: drop(one, keys) for key, one in value.items() if key not in keys}
    return value


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
    content = Path("new.json").read_text(encoding="utf-8")
    stored = (STORED / "frozen" / name).read_text(encoding="utf-8")
    stored = stored.replace('"least_share"', '"min_share"')  # its name since 0.2
    if name in NEW:
        content, stored = (
            json.dumps(drop(json.loads(text), NEW[name]), indent=1, ensure_ascii=False)
            for text in (content, stored)
        )
    assert content == stored
