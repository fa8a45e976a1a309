"""One ledger: every command that looks at outcomes has the same options and the same default."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from groundfault.base.holdout_events import OPENED
from groundfault.base.ledger import Ledger
from groundfault.cli.audit import audit, compare
from groundfault.cli.label import label
from groundfault.cli.main import cli
from groundfault.cli.reading import choose_ledger
from groundfault.errors import PlanError
from groundfault_lab.commands.probe_report import report
from groundfault_lab.commands.taxonomy import taxonomy

COMMANDS = {
    "audit": audit,
    "compare": compare,
    "lab taxonomy fit": taxonomy.commands["fit"],
    "label confirm": label.commands["confirm"],
    "label run": label.commands["run"],
    "lab probe report": report,
}
NONE = {"ledger": None, "no_ledger": False, "reopen": None}


def walk(group: click.Group, path: str = "") -> dict[str, click.Command]:
    """All commands by their words."""
    context = click.Context(group)
    found: dict[str, click.Command] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        words = f"{path} {name}".strip()
        found |= walk(command, words) if isinstance(command, click.Group) else {words: command}
    return found


def test_whoever_records_has_the_same_options() -> None:
    recording = {
        words: command
        for words, command in walk(cli).items()
        if any("--reopen" in option.opts for option in command.params)
    }
    assert recording.keys() == COMMANDS.keys()
    for name in NONE:
        options = [
            next(option for option in command.params if option.name == name)
            for command in recording.values()
        ]
        assert len({(o.help, o.default, o.metavar) for o in options}) == 1, name


def test_the_default_is_the_variables_or_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_ledger(**NONE) is None, "off"
    monkeypatch.delenv("GROUNDFAULT_LEDGER")
    assert choose_ledger(**NONE).place == str(tmp_path / "groundfault-ledger.db")
    monkeypatch.setenv("GROUNDFAULT_LEDGER", "team.db")
    assert choose_ledger(**NONE).place == str(tmp_path / "team.db")
    assert choose_ledger(**{**NONE, "ledger": "mine.db"}).place == str(tmp_path / "mine.db")
    assert choose_ledger(**{**NONE, "no_ledger": True}) is None
    for other in ("ledger", "reopen"):
        with pytest.raises(PlanError, match="--no-ledger goes neither"):
            choose_ledger(**{**NONE, "no_ledger": True, other: "x"})


def test_an_old_ledger_beside_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GROUNDFAULT_LEDGER")
    Ledger("audit.db").append(OPENED, {})
    choose_ledger(**NONE)
    assert "note: audit.db holds looks that an earlier groundfault" in capsys.readouterr().err
    Ledger("runs.db").append(OPENED, {})
    choose_ledger(**NONE, earlier=["runs.db"])
    assert "note: runs.db" in capsys.readouterr().err
