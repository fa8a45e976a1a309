"""``verify``, ``anchor``, ``show``, ``gate`` and ``export``: commands that read a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import msgspec

from groundfault.auditing.gating import FAIL_ON, LEVEL, Gate
from groundfault.auditing.history import RUN_LENGTH
from groundfault.base.files import write_text
from groundfault.base.ledgers import VARIABLE, find_ledger
from groundfault.cli import shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result, require_writable
from groundfault.cli.reading import name_ledger
from groundfault.cli.settings import Flag, OutFile, call, derive_options, own_options
from groundfault.errors import InputError, PlanError
from groundfault.modes.mode import Side
from groundfault.render.words import name_candidate, plural

if TYPE_CHECKING:
    from groundfault.auditing.history import Trend
    from groundfault.auditing.verification_checks import Verification
    from groundfault.base.anchors import AnchorFiles

# 2 is bad input, as for every command
_STATUSES = {"reproduces": 0, "does NOT reproduce": 1, "cannot be verified": 3}


def _choose_anchor(
    *,
    anchor: str | None = None,
    signer: str | None = None,
    time_stamp: str | None = None,
    authority: str | None = None,
) -> AnchorFiles | None:
    """Return the anchor that options name.

    Output
    ------
    anchor : FILE
        Signed state of the ledger, to check that no event was erased; see groundfault lab anchor.
    signer : FILE
        Public SSH key that the anchor is signed with.
    time_stamp : FILE
        RFC 3161 time stamp of the anchor.
    authority : FILE
        Certificates of the time stamp's authority.
    """
    if anchor is None:
        if signer or time_stamp or authority:
            raise PlanError("--signer, --time-stamp and --authority belong to an --anchor")
        return None
    if signer is None:
        raise PlanError("--anchor needs --signer: the public key that it has to be signed with")
    from groundfault.base.anchors import AnchorFiles

    return AnchorFiles(anchor, signer, time_stamp, authority)


@command()
@shared.moved_option
@own_options
@derive_options(_choose_anchor)
def verify(
    source: str,
    *,
    evidence: tuple[str, ...],
    ledger: Annotated[str | None, Flag(in_file=True)] = None,
    no_ledger: bool = False,
    options: Options,
) -> Result:
    """Recompute a stored result and check every number.

    It also checks the files, the pages, the entry in the ledger, and that the folder holds nothing
    else. SOURCE is the directory of a report, a sequential report, a case, a taxonomy, a package of
    probes or imported evidence, or the JSON file of a certificate, a confirmation or a gate. Exit
    status 0: all passed. 1: a check failed. 3: a check could not run.

    Output
    ------
    ledger : FILE|URL
        Ledger to check the report against; default $GROUNDFAULT_LEDGER, else groundfault-ledger.db
        if the report names that one, else a file of the name that it states in its own folder.
    no_ledger
        Skip the checks that need a ledger.
    """
    from groundfault.auditing.verification import verify as run

    files = call(_choose_anchor, options)
    choice = name_ledger(ledger, no_ledger)
    verification = run(source, evidence=evidence, ledger=choice, anchor=files)
    return Result(_list_checks(verification), status=_STATUSES[verification.verdict])


def _list_checks(verification: Verification) -> Iterator[str]:
    if draws := getattr(verification, "draws", ""):
        yield f"draws: {draws}"
    for check in verification.checks:
        yield from (f"differs: {difference}" for difference in check.differences)
        yield f"{check.name} {check.status}: {check.detail}"
    yield verification.verdict


@command()
@own_options
def anchor(
    key: str,
    *,
    ledger: Annotated[str | None, Flag(in_file=True)] = None,
    out: Annotated[str | None, Flag("-o --out")] = None,
) -> Result:
    """Sign a ledger, so that others notice if it is erased.

    ssh-keygen signs the last event with your SSH key KEY. Give the anchor and its signature to
    anybody who will check the ledger later: groundfault verify --anchor FILE --signer KEY.pub. Keep
    them apart from the ledger, or they are erased along with it.

    \b
    groundfault lab anchor ~/.ssh/id_ed25519

    Output
    ------
    ledger : FILE|URL
        Ledger to sign; default $GROUNDFAULT_LEDGER, or groundfault-ledger.db.
    out : FILE
        Where to write the anchor; default beside the ledger, with the number of its events.
    """
    from groundfault.base.anchors import sign_head

    book = find_ledger(ledger or True)
    if book is None:
        raise PlanError(f"${VARIABLE} is off; name the ledger to sign with --ledger")
    place = sign_head(book, key, out)
    return Result([f"signed: {place} and {place.name}.sig"])


@command()
@own_options
@shared.moved_option
@shared.json_option("the examples")
def show(
    report: str,
    mode: str | None = None,
    *,
    passing: bool = False,
    near: bool = False,
    run: str | None = None,
    why: bool = False,
    count: Annotated[int, click.IntRange(1, 200), Flag("-n --count")] = 20,
    evidence: tuple[str, ...],
) -> Result:
    """Show examples of a failure mode of REPORT.

    Unless you ask for others, they are failing ones, typical and different ones first. REPORT is a
    folder that audit --out wrote. MODE is the number of a failure mode, from 1, or the name of a
    finding; without it, see examples of the whole log. The examples are read from the evidence of
    the report, which has to be there unchanged; words that the rule names are highlighted.

    \b
    groundfault show report/
    groundfault show report/ --why
    groundfault show report/ 1
    groundfault show report/ 2 --passing -n 5
    groundfault show report/ 'task = add' --near --evidence moved.parquet

    Output
    ------
    passing
        Show passing examples that match the rule.
    near
        Show near misses: examples that match all conditions but one.
    run : ID
        Show a failing and a passing run of the example ID, step by step.
    why
        Show the report instead: all modes and findings, and how sure they are.
    count : N
        Largest number of examples to show.
    """

    from groundfault.auditing.report import Report, report_path
    from groundfault.auditing.report_examples import look_up_examples, look_up_runs
    from groundfault.render.audit_page import make_summary
    from groundfault.render.mode_page import make_example_page
    from groundfault.render.transcript_page import make_run_page

    if run is not None:
        runs = look_up_runs(report, run, evidence=evidence or None)
        told = {side: steps.rows(named=True) for side, steps in runs.items()}
        return Result([make_run_page(run, runs)], told)
    if why:
        whole = Report.load(report)
        return Result(
            [make_summary(whole, report_path(report).with_name("report.html"), why=True)], whole
        )
    if passing and near:
        raise click.UsageError("--passing and --near exclude each other; choose one")
    side: Side = "passing" if passing else "near" if near else "failing"
    name = int(mode) if mode and mode.isdecimal() else mode
    lookup = look_up_examples(report, name, side=side, count=count, evidence=evidence or None)
    subject = lookup.subject
    content = {
        "name": mode,
        **{key: getattr(subject, key, None) for key in ("rule", "meaning", "outcome")},
        "side": side,
        "examples": msgspec.to_builtins(lookup.examples),
    }
    return Result([make_example_page(lookup, side)], content)


@command()
@own_options
@shared.moved_option
@shared.json_option("the verdict")
def gate(
    report: str,
    *,
    fail_on: Annotated[str, Flag(in_file="gate_fail_on")] = FAIL_ON,
    baseline: str | None = None,
    level: Annotated[float, Flag(in_file="gate_level")] = LEVEL,
    must_detect: Annotated[float | None, Flag(in_file="gate_must_detect")] = None,
    junit: OutFile | None = None,
    markdown: Annotated[OutFile | None, Flag("--markdown --summary")] = None,
    history: OutFile | None = None,
    build: str | None = None,
    trends: OutFile | None = None,
    run_length: Annotated[int, click.IntRange(1)] = RUN_LENGTH,
    evidence: tuple[str, ...],
) -> Result:
    """Fail a build if REPORT has new failures.

    The exit status is 1 if a finding or failure mode meets --fail-on. With --baseline it is 1 if
    failures rose beyond chance since that report, under a rule or overall. REPORT and the baseline
    are files of audit --json, or folders of audit --out; the table of REPORT is read again. The
    condition is SQL over name, rule, meaning, source, outcome, model, verdict, confirmed, reason,
    representative, n_on, n_off, lift, p, p_adjusted, low, high, discovery_lift, frequency and kind.
    The kind is 'finding', 'mode' or, of a change, 'overall'; a mode counts as confirmed.

    \b
    groundfault gate report.json --baseline main/report.json --junit gate.xml
    groundfault gate report/ --history history.json --trends trends.html

    Output
    ------
    fail_on : SQL
        Condition on a finding, failure mode or overall change that fails the gate.
    baseline : FILE
        Earlier report; only what got worse since fails the gate.
    level
        Share of false alarms of a gate with a baseline.
    must_detect : LIFT
        Also fail if a difference of this size, such as 0.25, could have been missed.
    junit : FILE
        Write the verdict as JUnit XML.
    markdown : FILE
        Write a Markdown summary, for a pull request or a step summary.
    history : FILE
        Add the report to this file of earlier builds, say which failure modes are new, gone or
        growing, and fail on those that are growing.
    build : NAME
        Name of this build in the history; default its number.
    trends : FILE
        Write a page of failure rates over the builds of the history.
    run_length : BUILDS
        Builds until a false alarm about a growing mode, at least and on average.
    """
    from groundfault.auditing.gating import gate as run
    from groundfault.auditing.history import add_build, list_trends
    from groundfault.render import gate as render
    from groundfault.render.html import html

    verdict = run(
        report,
        fail_on,
        baseline=baseline,
        evidence=evidence or None,
        must_detect=must_detect,
        level=level,
    )
    if "://" in str(history):
        raise click.UsageError(
            "a history is a file of this machine: download it, name the file, and store it again "
            "after the gate"
        )
    if history is None and (trends or build):
        raise click.UsageError("--trends and --build need --history FILE")
    told: list[Trend] = []
    content, notes = verdict.to_dict(), []
    if history:
        past = add_build(history, report, name=build, evidence=evidence or None)
        told = list_trends(past, run_length)
        notes = list(render.list_trend_lines(past, told))
        content["trends"] = [{"status": one.status, **vars(one)} for one in told]
        if trends:
            write_text(Path(trends), html(render.make_trend_page(past, told, run_length)))
    if junit:
        write_text(Path(junit), render.junit(verdict, told))
    if markdown:
        write_text(Path(markdown), render.markdown(verdict, told, notes))
    failed = not verdict.passed or any(one.is_growing for one in told)
    return Result([*_list_matches(verdict, told), *notes], content, int(failed))


def _list_matches(verdict: Gate, told: Sequence[Trend]) -> Iterator[str]:
    from groundfault.render import gate as render

    yield render.headline(verdict, told)
    for number, finding in enumerate(verdict.new[: render.MAX_ROWS], 1):
        name = f"{name_candidate(finding.name, finding.outcome)}: " * (finding.kind == "finding")
        yield f"{number}. {name}{render.describe_match(finding)}"
    if verdict.new[render.MAX_ROWS :]:
        yield f"The first {render.MAX_ROWS} are shown; --json FILE lists all {len(verdict.new):,}."
    yield from render.lines(verdict)


@command()
@own_options
@shared.moved_option
def export(
    report: str,
    *,
    to: str,
    out: Annotated[str, Flag("-o --out")],
    log: tuple[str, ...] = (),
    all_candidates: bool = False,
    no_text: bool = False,
    evidence: tuple[str, ...],
) -> Result:
    """Write the modes and slices of REPORT for another tool.

    The tool gets the examples of each failure mode and confirmed slice. REPORT is the directory
    that audit --out wrote; the evidence is read again and must be unchanged.

    \b
    inspect       copies of the Inspect logs, with slices as sample metadata and
                  findings as log metadata; OUT is a directory
    eee           Every Eval Ever instance records, with slices as metadata;
                  OUT is a .jsonl file
    label-studio  tasks for the examples on the slices, without their scores;
                  OUT is a .json file
    langfuse      scores of the traces in each failure mode, for its client to
                  upload; OUT is a .jsonl file
    phoenix       annotations of the spans in each failure mode, likewise
    memberships   a table with one column for each slice; OUT is a .csv, .parquet
                  or .jsonl file
    brief         one page of A4 for readers who decide: a chart and three
                  examples; OUT is a .html file
    html-explorer one .html file that shows the report and its examples in any
                  browser, without a server; of a report with a holdout, the
                  discovery rows

    Installed packages may add names.

    \b
    groundfault export report/ --to inspect -o annotated/
    groundfault export report/ --to memberships -o slices.csv
    groundfault export report/ --to html-explorer -o report.html

    Output
    ------
    to : NAME
        Tool to write for.
    out : OUT
        File to write, or folder for inspect.
    log : FILE
        Log to copy, for inspect; repeatable; by default every log of the evidence.
    all_candidates
        Export all candidates, not only the confirmed ones.
    no_text
        Leave columns of texts out, for html-explorer.
    """
    from groundfault import exports

    if log and to != "inspect":
        raise InputError("--log goes with --to inspect")
    if no_text and to != "html-explorer":
        raise InputError("--no-text goes with --to html-explorer")
    settings: dict[str, object] = {"logs": log} if log else {}
    exporter = exports.get(to, **settings, **({"texts": False} if no_text else {}))
    # OUT of inspect may be one log or a folder of several; its suffix tells
    require_writable(out, directory=to == "inspect" and not Path(out).suffix)
    slices = exports.ReportSlices.load(report, evidence or None, every=all_candidates)
    result = exporter.export(slices, Path(out))
    modes = len(slices.report.modes)
    named = f"{plural(modes, 'failure mode')} and " if modes else ""
    return Result([f"{named}{plural(len(slices.library), 'slice')}: wrote {result} to {out}"])
