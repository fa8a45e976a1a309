"""``probe init``, ``probe run`` and ``probe review`` with ``--case``: steps of a case."""

from __future__ import annotations

import shlex
from typing import Any

import click

from groundfault.cli.probe_review import review_runs
from groundfault.cli.probe_run import ask_prompts
from groundfault.errors import PlanError


def begin_probe(folder: str, options: dict[str, Any]) -> None:
    """Write the tasks of a case's modes, and how they are asked."""
    from groundfault.case.case import Case
    from groundfault.case.probing import open_probe
    from groundfault.probes.bank.grammar import Grammar

    lacking = [name for name in ("question", "target") if options[name] is None]
    if lacking:
        raise PlanError(f"say which column of the case holds the {lacking[0]}: --{lacking[0]} COL")
    case, file = Case(folder), options["grammar_file"]
    case.probe(
        options["modes"] or None,
        question=options["question"],
        target=options["target"],
        pairs=options["pairs"],
        grammar=None if file is None else Grammar.load(file),
    )
    bank, grammar = open_probe(case)
    click.echo(
        f"{len(bank)} tasks in pairs, {len(grammar)} wordings: {len(bank) * len(grammar):,} prompts"
    )
    click.echo(f"next: groundfault probe run --case {shlex.quote(folder)} --model NAME")


def run_probe(folder: str, options: dict[str, Any]) -> None:
    """Ask the model of a case its tasks in other words."""
    from groundfault.case.case import Case

    case = Case(folder)
    ask_prompts(lambda target, progress: case.ask(target, progress=progress), options)
    if not options["quiet"] and options["json_path"] != "-":
        click.echo(f"next: groundfault probe review --case {shlex.quote(folder)} --reviewer NAME")


def review_probe(folder: str, options: dict[str, Any]) -> None:
    """Review what the model of a case answered."""
    from groundfault.case.case import Case

    review_runs(lambda: Case(folder).review, options)
