"""``case``: one investigation as a folder, from the first table to the last label."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import click

from groundfault.base.long_work import Progress
from groundfault.case.case import REPORT, Case
from groundfault.case.folder import AUDIT
from groundfault.case.simulation import plan_budget
from groundfault.cli import shared
from groundfault.cli.command import RULE, Group, Options
from groundfault.cli.labelling import label_holdout, require_program
from groundfault.cli.output import Result, echo_warnings
from groundfault.cli.reading import read_evidence
from groundfault.cli.settings import Flag, call, derive_options, own_options


@click.group(cls=Group)
def case() -> None:
    """Find failure modes, and confirm them on fresh labels.

    A case is one folder with one ledger.

    \b
    groundfault case new DIR --from results.parquet --id item_id --outcome error
    groundfault audit --case DIR
    groundfault case status DIR
    groundfault case plan DIR --budget 200
    groundfault label confirm --case DIR --label ask
    groundfault lab probe init --case DIR --question COL --target COL
    groundfault lab probe run --case DIR --model NAME
    groundfault label review --case DIR --reviewer NAME
    groundfault case report DIR
    groundfault verify DIR
    """


@case.command(first="sources outcome id positive_is_good alpha keep grader")
@own_options
@shared.case_options
@shared.WHERE
@derive_options(
    Case.create,
    "grader keep alpha seed",
    group=RULE,
    grader={"metavar": "COL"},
    keep={"metavar": "SHARE"},
)
def new(
    folder: Annotated[str, Flag("DIR")],
    *,
    sources: Annotated[tuple[str, ...], Flag("--from")],
    progress: Progress,
    options: Options,
) -> Result:
    """Begin a case: divide the rows, decide the error level.

    The audit names failure modes on one part. The other part is fresh: examples without an outcome
    (--null-outcome missing), or else a random share whose outcomes the audit does not get.

    \b
    groundfault case new case/ --from results.parquet --id item_id --outcome error
    groundfault case new case/ --from results.csv --id id --outcome human --null-outcome missing \\
        --grader cheap

    Input
    -----
    sources : SOURCE
        Table or logs, as groundfault audit takes them; repeatable for logs.
    """
    evidence = read_evidence({**options, "sources": sources, "split": None}, progress)
    settings = call(Case.create, options, folder, evidence).settings
    return Result(
        [
            f"{settings.audit_units:,} examples to audit, {settings.fresh_units:,} fresh "
            f"({settings.freshness})"
        ],
        then=("audit", "--case", folder),
    )


@case.command()
@click.argument("folder", metavar="DIR", type=click.Path())
@shared.json_option("the state of the case")
def status(folder: str) -> Result:
    """Show the state of the case in DIR, and the next step.

    It also says how many labels that step costs, and which result it can give.
    """
    from groundfault.render.case_page import make_status_page

    here = Case(folder)
    # lazily: the page simulates the next step
    return Result(map(make_status_page, [here]), here.summarize())


@case.command()
@click.argument("folder", metavar="DIR")
@derive_options(plan_budget, "budget lift runs", lift={"metavar": "X"})
@shared.json_option("the plan")
def plan(folder: str, *, progress: Progress, options: Options) -> Result:
    """Say which failure modes a number of labels can confirm.

    A mode counts if it is confirmed in four of five simulations. The weakest mode is left out until
    all others reach that. This takes seconds to minutes and records nothing.

    \b
    groundfault case plan case/ --budget 200
    groundfault case plan case/ --budget 200 --lift 0.2
    """
    from groundfault.render.case_page import describe_plan

    here = Case(folder)
    result = call(plan_budget, options, here, progress=progress)
    return Result(describe_plan(result, here), result)


@case.command()
@click.argument("folder", metavar="DIR", type=click.Path())
def report(folder: str) -> Result:
    """Write a page of the results of the case in DIR.

    DIR/report says which failure modes were confirmed, and which rows are still unread. It is made
    from the audit and the ledger, and groundfault verify DIR checks that.
    """
    from groundfault.render.case_page import make_case_page

    here = Case(folder)
    here.write_confirmation()
    summary = here.write_report()
    line = f"Report: {here.folder / REPORT / 'report.html'}"
    return Result([make_case_page(summary), line], then=("verify", folder))


def audit_case(folder: str, options: Options) -> Result:
    """Audit the rows of a case."""
    from groundfault.render.audit_page import make_summary

    report = Case(folder).audit(texts=not options["no_text"], progress=options["progress"])
    return Result([make_summary(report, Path(folder) / AUDIT / "report.html")], report)


def confirm_case(folder: str, options: Options) -> Result:
    """Label fresh rows of a case for its modes."""

    if options["label"] == "cmd":
        require_program(options)
    case = Case(folder)
    if options["label"] == "file":
        case.require_answers()
    with echo_warnings():
        confirmation = case.confirm(options["modes"] or None, options["budget"])
    try:
        one_is_pass = case.fresh_evidence.roles.positive_is_good
        result = label_holdout(confirmation, options, case.look_up, one_is_pass=one_is_pass)
    finally:
        case.write_confirmation()
    return replace(result, then=("case", "report", folder))
