"""``audit``, ``check`` and ``verify``: batch audits."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundfault.base.ledgers import DEFAULT, VARIABLE
from groundfault.base.machine import use_workers
from groundfault.cli.anchor import choose_anchor
from groundfault.cli.case_option import step_of_case
from groundfault.cli.command import INPUT, RULE, GroupedCommand, option
from groundfault.cli.engines import ENGINE, TABLE, read_lazy_evidence
from groundfault.cli.extra_options import jobs_option, json_option, workers_option
from groundfault.cli.ledger_options import choose_ledger, ledger_options
from groundfault.cli.options import (
    WHERE,
    candidate_options,
    evidence_options,
    plan_options,
    step_options,
)
from groundfault.cli.output import (
    claim_folder,
    echo_warnings,
    require_writable,
    show_progress,
    write_json,
)
from groundfault.cli.reading import read_candidates, read_evidence, read_plan
from groundfault.cli.scorers import audit_every_scorer, show_audits
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.auditing.report import Report
    from groundfault.auditing.verification_result import Verification
    from groundfault.base.anchors import AnchorFiles
    from groundfault.base.ledgers import LedgerChoice

_STATUSES = {"reproduces": 0, "does NOT reproduce": 1, "cannot be verified": 3}


@click.command(
    cls=GroupedCommand,
    first="outcome id positive_is_good group candidate finders judge out",
)
@step_of_case("groundfault.cli.case:audit_case", "no_text", "json_path")
@step_options
@WHERE
@ENGINE
@TABLE
@option(
    "--compare",
    nargs=2,
    metavar="A B",
    group=INPUT,
    help="Judge what changed from model or configuration A to B on the same examples.",
)
@option(
    "--every-scorer",
    is_flag=True,
    group=INPUT,
    help="Audit the logs once by each scorer, at a level that holds for all, and compare.",
)
@candidate_options
@plan_options
@option(
    "--robustness",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    group=RULE,
    help="Number of random splits to repeat the audit on; default 0.",
)
@jobs_option()
@workers_option()
@option(
    "--out",
    type=click.Path(),
    metavar="DIR",
    help="Write report.html, report.md, report.json, library.json and SHA256SUMS to this folder.",
)
@option(
    "--no-text",
    is_flag=True,
    help="Leave the texts of examples out of the report; their ids stay.",
)
@json_option("the report")
@ledger_options()
def audit(**options: Any) -> None:
    """Name the failure modes in SOURCE, and say which explanations of them hold up.

    SOURCE is a CSV, JSONL, Parquet or Arrow file, or a directory of them, with its outcome column
    named by --outcome; or logs of an evaluation tool, folders of logs or patterns, which need no
    --outcome. NAME=SOURCE gives a configuration of a model a name. Failure modes are readable rules
    over the other columns, few and in order. Beside them candidates are judged one by one: without
    --candidate, --declare or --finders those of the default finders, which are measurements of the
    answer, 0/1 columns, thresholds, categories and text features.

    \b
    groundfault audit results.parquet --id item_id --outcome error --out report/
    groundfault audit results.csv --id id --model-column model --model gpt-4o \\
        --outcome correct --positive-is-good
    groundfault audit results.csv --id id --outcome error --candidate 'long: n_words > 400' \\
        --finders thresholds
    groundfault audit results.csv --id id --outcome error --within benchmark
    groundfault audit logs/2026-11-20_gsm8k.eval --scorer match
    groundfault audit logs/ --every-scorer --out reports/
    groundfault audit base=logs/a new=logs/b --compare base new
    groundfault audit parquet/ --id id --outcome error --engine polars --out report/
    """
    from groundfault.auditing.flow import audit as run

    require_writable(options["json_path"])
    quiet = options["json_path"] == "-"
    plan = read_plan(options)
    candidates, finders = read_candidates(options)
    # before the holdout is opened: a report that cannot be written would have used it for nothing
    with (
        claim_folder(options["out"]) as place,
        echo_warnings(),
        show_progress(quiet) as progress,
        use_workers(options["workers"]),
    ):
        settings: dict[str, Any] = {
            "finders": finders,
            "compare": options["compare"] or None,
            "ledger": choose_ledger(options),
            "reopen": options["reopen"],
            "robustness": options["robustness"],
            "jobs": options["jobs"],
            "texts": not options["no_text"],
            "progress": progress,
        }
        if options["every_scorer"]:
            audits = audit_every_scorer(options, plan, candidates, settings, place)
        else:
            audits = None
            read = (
                read_lazy_evidence
                if options["engine"] or options["table"]
                else partial(read_evidence, progress=progress)
            )
            report = run(read(options), plan, candidates, **settings)
            if place:
                report.write(place)
            if options["json_path"] and not quiet:
                report.to_json(options["json_path"])
    if audits is None:
        show_report(report, quiet, options["out"])
    else:
        show_audits(audits, options)


@click.command(
    cls=GroupedCommand,
    first="outcome id positive_is_good group candidate finders judge freeze",
)
@evidence_options
@WHERE
@option(
    "--compare",
    nargs=2,
    metavar="A B",
    group=INPUT,
    help="Compare models A and B on the same examples.",
)
@candidate_options
@plan_options
@option(
    "--freeze",
    metavar="FILE",
    help="Freeze the candidates in this library, for audit --library.",
)
@json_option("the check")
def check(**options: Any) -> None:
    """Say which candidates SOURCE can test, and how large a lift it could detect.

    Uses the error rate of the discovery part and no held-out outcome, and records nothing: the
    holdout stays unopened. A judge that holds nothing out uses the error rate of all units.
    """
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

    from groundfault.render.preview_pages import make_check_page
    from groundfault.render.terminal import show

    show(make_check_page(result), Console())


@click.command()
@click.argument("source", type=click.Path())
@click.option(
    "--evidence",
    metavar="SRC",
    multiple=True,
    help="Where the evidence is now, if it has moved; repeatable, in the order of the report's "
    "sources.",
)
@click.option(
    "--ledger",
    metavar="FILE|URL",
    help=f"Ledger to check the report against; default ${VARIABLE}, else {DEFAULT} if the report "
    "names that one, else a file of the name that it states in its own folder.",
)
@click.option("--no-ledger", is_flag=True, help="Do without a ledger, and check the rest.")
@click.option(
    "--anchor",
    metavar="FILE",
    help="Signed head of the ledger, which it has to hold still; see groundfault anchor.",
)
@click.option("--signer", metavar="FILE", help="Public SSH key that the anchor is signed with.")
@click.option("--time-stamp", metavar="FILE", help="RFC 3161 time stamp of the anchor.")
@click.option("--authority", metavar="FILE", help="Certificates of the time stamp's authority.")
def verify(
    source: str,
    evidence: tuple[str, ...],
    ledger: str | None,
    no_ledger: bool,
    anchor: str | None,
    signer: str | None,
    time_stamp: str | None,
    authority: str | None,
) -> None:
    """Check every statement of a report: its numbers, files, pages and its opening in the ledger.

    SOURCE is the directory of a report, of a sequential report or of a case, or the certificate
    file of a sequential audit. Exit status 0 if every check passed, 1 if one failed, and 3 if none
    did but one could not be made.
    """
    from groundfault.render.words import clean

    if no_ledger and ledger:
        raise PlanError("--no-ledger does not go with --ledger")
    choice = None if no_ledger else ledger or True
    files = choose_anchor(anchor, signer, time_stamp, authority)
    verification = _verify(source, evidence, choice, files)
    for check in verification.checks:
        for difference in check.differences:
            click.echo(clean(f"differs: {difference}"))
        # a report may come from anybody, and name a ledger or a file as it likes
        click.echo(clean(f"{check.name} {check.status}: {check.detail}"))
    click.echo(verification.verdict)
    sys.exit(_STATUSES[verification.verdict])


def _verify(
    source: str, evidence: tuple[str, ...], choice: LedgerChoice, files: AnchorFiles | None
) -> Verification:
    from groundfault.sequential.verification import CONFIRMATION, find_result, verify_confirmation

    if (Path(source) / "case.json").is_file():
        return _verify_case(source, evidence, choice, files)
    # only reports have evidence that may have moved
    result = find_result(source)
    if result is not None and result.name == CONFIRMATION and not evidence:
        if files is not None:
            raise PlanError("an anchor is of a ledger's head, and a confirmation states none")
        return verify_confirmation(result, ledger=choice)
    if (result is not None or Path(source).is_file()) and not evidence:
        from groundfault.sequential import verify_certificate

        check = verify_certificate(source, ledger=choice, anchor=files)
        click.echo(f"draws: {check.draws}")
        return check
    from groundfault.auditing.verification import verify as run

    return run(source, evidence=evidence or None, ledger=choice, anchor=files)


def _verify_case(
    folder: str, evidence: tuple[str, ...], choice: LedgerChoice, files: AnchorFiles | None
) -> Verification:
    from groundfault.case.verification import verify_case

    if evidence or choice is not True or files is not None:
        raise PlanError(
            "a case has its evidence and its ledger in its folder: leave out --evidence, --ledger, "
            "--no-ledger and --anchor; to check an anchor, name its audit folder and ledger.db"
        )
    return verify_case(folder)


def show_report(report: Report, quiet: bool, out: str | None) -> None:
    """Print what matters most of a report, or all of it as JSON."""
    if quiet:
        write_json(report.to_json(), "-")
        return
    from rich.console import Console

    from groundfault.render.audit_page import make_summary
    from groundfault.render.terminal import show

    show(make_summary(report, Path(out) / "report.html" if out else None), Console())
