"""Probe runs: matched budgets, what is written, resuming, refusals of changed inputs, failures of the service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groundfault import probes
from groundfault.cli.main import cli
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.ledger import Ledger
from groundfault.models import Question, Record, Response
from groundfault.probes import Bank, Config, Grammar, run
from groundfault.probes.bank import SHIPPED


class Brittle:
    """A model that errs where a shortcut is offered, and keeps count of what it is asked."""

    name = "scripted/brittle"

    def __init__(self, bank: Bank | None = None, grammar: Grammar | None = None) -> None:
        self.asked: list[Question] = []
        bank, grammar = bank or Bank.shipped(), grammar or Grammar.shipped()
        self.keys = {probe.prompt: probe for probe in probes.probes(bank, grammar)}

    async def answer(self, question: Question) -> Response:
        self.asked.append(question)
        probe = self.keys[question.messages[0]["content"]]
        wrong = "shortcut" in probe.assignment and len(probe.task.id) % 2
        return self.says(probe, f"Answer: {probe.task.slots['shortcut'] if wrong else probe.task.answer}")

    def says(self, probe: probes.Probe, text: str) -> Response:
        return Response(text)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Bank, grammar and config of the example."""
    for name in ("bank.toml", "grammar.toml", "config.toml"):
        (tmp_path / name).write_bytes((SHIPPED / name).read_bytes())
    return tmp_path


def config(home: Path, **changed: Any) -> Config:
    settings = {"policies": ["stratified", "caps, repeats"], "seeds": [0, 1], "iterations": 3, "batch": 2, **changed}
    return Config(bank=home / "bank.toml", grammar=home / "grammar.toml", **settings)


def written(folder: Path) -> dict[str, bytes]:
    """The files that must come out the same, whatever happened in between."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl", ".toml"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_every_policy_and_seed_gets_the_same_budget(home: Path) -> None:
    found = run(config(home), Brittle())
    assert len(found.rows) == 2 * 2 * 3 * 2
    for policy in ("stratified", "caps, repeats"):
        for seed in (0, 1):
            queries = [row.query for row in found.rows if (row.policy, row.seed) == (policy, seed)]
            assert queries == list(range(1, 7))
    assert found.manifest["budget"] == 6
    assert {row.signal for row in found.rows} == {"match", "mismatch"}


def test_running_again_asks_nothing_and_changes_nothing(home: Path) -> None:
    runs, model = run(config(home), Brittle()), Brittle()
    before, head = written(runs.folder), Ledger(runs.folder / "ledger.db").head
    run(config(home), model)
    assert model.asked == []
    assert written(runs.folder) == before
    assert Ledger(runs.folder / "ledger.db").head == head
