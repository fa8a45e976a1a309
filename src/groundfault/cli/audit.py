"""``audit``, ``check`` and ``verify``: the main job."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.options import (
    candidate_options,
    evidence_options,
    plan_options,
    read_candidates,
    read_evidence,
    read_plan,
    require_writable,
    show_progress,
    echo_warnings,
    write_json,
)
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.auditing.report import Report

LEDGER = "groundfault-ledger.db"


@click.command()
@evidence_options
@click.option(
    "--compare", nargs=2, metavar="A B", help="Judge what changed from model A to model B, paired."
)
@candidate_options
@plan_options
@click.option(
    "--robustness",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Repeat over N random splits.",
)
@click.option(
    "--jobs",
    type=int,
    default=-1,
    show_default=True,
    help="Processes for the repeats (-1: all cores).",
)
@click.option(
    "--ledger",
    metavar="FILE",
    help=f"Where openings are recorded [{LEDGER}, or $GROUNDFAULT_LEDGER].",
)
@click.option(
    "--no-ledger",
    is_flag=True,
    help="Do not record that the holdout was opened; the report says so.",
)
@click.option(
    "--reopen",
    metavar="REASON",
    help="Open again with other candidates; the reason stays in the report.",
)
@click.option(
    "--out",
    type=click.Path(),
    metavar="DIR",
    help="Write report.html, .md, .json and library.json here.",
)
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="Write the report as JSON; - is standard output, alone.",
)
def audit(**options: Any) -> None:
    """Say which explanations of the failures in SOURCE hold up.

    SOURCE is a CSV, JSONL, Parquet or Arrow file, or a directory of them, whose outcome column is
    named by --outcome; or the logs of an evaluation tool, folders or patterns of them, which need
    no more said. Without --declare, --candidate or --finders the default finders propose: what was
    measured with the answer, 0/1 columns, thresholds, categories and text features.

    \b
    groundfault audit results.parquet --id item_id --outcome error --out report/
    groundfault audit results.csv --id id --model-column model --model gpt-4o --outcome correct --positive-is-good
    groundfault audit results.csv --id id --outcome error --candidate 'long: n_words > 400' --finders thresholds
    groundfault audit logs/2026-11-20_gsm8k.eval --scorer match
    """
    from groundfault.auditing.flow import audit as run

    require_writable(options["out"], directory=True)
    require_writable(options["json_path"])
    quiet = options["json_path"] == "-"
    plan = read_plan(options)
    candidates, finders = read_candidates(options)
    with echo_warnings(), show_progress(quiet) as progress:
        evidence = read_evidence(options, progress)
        report = run(
            evidence,
            plan,
            candidates,
            finders=finders,
            compare=options["compare"] or None,
            ledger=_ledger(options),
            reopen=options["reopen"],
            robustness=options["robustness"],
            jobs=options["jobs"],
            progress=progress,
        )
        if options["out"]:
            report.write(options["out"])
        if options["json_path"] and not quiet:
            report.to_json(options["json_path"])
    _say(report, quiet, options["out"])


@click.command()
@evidence_options
@click.option("--compare", nargs=2, metavar="A B", help="Two models to compare, paired.")
@candidate_options
@plan_options
@click.option(
    "--freeze", metavar="FILE", help="Freeze the candidates into this library, for audit --library."
)
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="Write the check as JSON; - is standard output, alone.",
)
def check(**options: Any) -> None:
    """Before the holdout is spent: which candidates can be tested, and what could be found.

    Reads no held-out outcome beyond the overall error rate of the discovery part, and records
    nothing."""
    import json

    from groundfault.auditing.checking import check as run

    require_writable(options["json_path"])
    candidates, finders = read_candidates(options)
    with echo_warnings():
        result = run(
            read_evidence(options),
            read_plan(options),
            candidates,
            finders=finders,
            compare=options["compare"] or None,
        )
    if options["freeze"]:
        result.library.freeze(options["freeze"])
    text = json.dumps(result.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if write_json(text, options["json_path"]):
        return
    from rich.console import Console

    from groundfault.render.terminal import show_check

    show_check(result, Console())


@click.command()
@click.argument("source", type=click.Path())
@click.option("--evidence", metavar="FILE", help="Where the evidence is now, if it has moved.")
@click.option("--ledger", metavar="FILE", help="The ledger to check against.")
def verify(source: str, evidence: str | None, ledger: str | None) -> None:
    """Recompute what SOURCE reports and say whether it reproduces (exit status 1 if it does not).

    SOURCE is the directory of a report, or the file of a sequential audit's certificate.
    """
    if Path(source).is_file() and not evidence:
        from groundfault.sequential.certificate import verify_certificate

        verification: Any = verify_certificate(source, ledger=ledger)
    else:
        from groundfault.auditing.verification import verify as run

        verification = run(source, evidence=evidence, ledger=ledger)
    for difference in verification.differences:
        click.echo(f"differs: {difference}")
    click.echo(verification.ledger)
    click.echo("reproduces" if verification.reproduces else "does NOT reproduce")
    sys.exit(0 if verification.reproduces else 1)


def _ledger(options: dict[str, Any]) -> str | None:
    if options["no_ledger"]:
        if options["ledger"] or options["reopen"]:
            raise PlanError("--no-ledger goes neither with --ledger nor with --reopen")
        return None
    return options["ledger"] or os.environ.get("GROUNDFAULT_LEDGER") or LEDGER


def _say(report: Report, quiet: bool, out: str | None) -> None:
    if quiet:
        click.echo(report.to_json())
        return
    from rich.console import Console

    from groundfault.render.terminal import show

    show(report, Console(), written=Path(out) / "report.html" if out else None)
