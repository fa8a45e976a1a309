"""``probe report``, ``release`` and ``arena``: runs reported and released, policies compared."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from groundfault.base.files import write_text
from groundfault.base.ledger import name_user
from groundfault.base.long_work import Progress
from groundfault.cli import shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result
from groundfault.cli.reading import choose_ledger
from groundfault.cli.settings import (
    Flag,
    OutFile,
    OutFolder,
    Whole,
    call,
    derive_options,
    own_options,
)
from groundfault.errors import InputError, PlanError
from groundfault.probes.running.runs import LEDGER
from groundfault.render.page import Number, Table, Words, tabulate
from groundfault_lab.probes.arena import LeaderboardRow, arena as run_arena, load_replay

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import ReviewedRuns
    from groundfault_lab.probes.release import PackageCheck
    from groundfault_lab.probes.summary import Summary


def _open_review(
    runs: str, store: str | None, control: str | None = None, *, unblind: str | None = None
) -> tuple[ReviewedRuns, Summary]:
    """Return the runs and their summary; unblinds the review, on record, where it is blind.

    Output
    ------
    unblind : REASON
        Reason for ending the blind review; it is recorded.
    """
    from groundfault.probes.review.reviewed_runs import ReviewedRuns
    from groundfault_lab.probes.summary import Summary

    audit = ReviewedRuns(runs, store)
    summary = Summary.of(audit, control)
    summary.control  # noqa: B018  (what cannot be reported is not opened)
    if audit.is_blind:
        if unblind is None and sys.stdin.isatty() and sys.stdout.isatty():
            click.echo(
                "This ends the blind review. It is recorded, and later decisions are marked."
            )
            unblind = click.prompt("Why now")
        if unblind is None:
            raise InputError(
                "a review has begun, and a report ends it: finish the review, then give the reason "
                '(--unblind "review is finished"); it is recorded, and later decisions are marked'
            )
        audit.unblind(name_user().partition("@")[0], unblind)
    return audit, summary


@command(first="html md json_path control audit_dir unblind store ledger")
@own_options
@shared.json_option("all numbers")
@derive_options(_open_review)
@shared.store_option
@shared.ledger_options
def report(
    runs: str,
    *,
    md: OutFile | None = None,
    html: OutFile | None = None,
    control: str | None = None,
    evidence: OutFile | None = None,
    audit_dir: Annotated[OutFolder | None, Flag("--audit")] = None,
    policy: str | None = None,
    seed: Whole = 0,
    options: Options,
) -> Result:
    """Report the results of RUNS after review.

    They stand apart from the signals that routed to it. The report begins with what is still
    unreviewed or disputed. It shows which policy asked what, so it ends the blind review: the first
    report asks for a reason, which is recorded, and later decisions are marked.

    \b
    groundfault lab probe report runs/ --unblind "review is finished" --html report.html
    groundfault lab probe report runs/ --audit audited/

    Output
    ------
    md : FILE
        Write the report as Markdown.
    html : FILE
        Write the report as one self-contained page.
    control : NAME
        Policy to compare with; by default one that does not use signals.
    evidence : FILE
        Write audited rows as a table (.parquet, .csv) for groundfault audit.
    audit_dir : DIR
        Audit components and task families, and write the two reports to this folder.
    policy : NAME
        Policy whose rows become evidence; by default the control.
    seed : N
        Seed of the permutations that judge components and families.
    """
    from groundfault.render.html import html as set_html
    from groundfault.render.markdown import markdown
    from groundfault_lab.pages import probe_page
    from groundfault_lab.probes.summary import ProbeSummary, ReviewCounts

    audit, summary = _open_review(runs, options["store"], control, unblind=options["unblind"])
    title = Path(runs).absolute().name
    sections = probe_page.make_review_sections(audit)
    page = probe_page.make_page(summary, title, sections)
    for path, write in ((md, markdown), (html, set_html)):
        if path:
            write_text(Path(path), write(page))
    result = ProbeSummary.of(
        summary.tables,
        open=tuple(probe_page.list_open_points(summary)),
        conclusions=tuple(probe_page.draw_conclusions(summary)),
        review=ReviewCounts.of(audit),
    )
    notes: list[str] = []
    if evidence or audit_dir:
        from groundfault_lab.probes import evidence as source

        rows = source.select_rows(summary, policy or summary.control)
        notes.append(source.ASSUMPTION)
        if evidence:
            notes += _write_evidence(rows, summary, Path(evidence))
        if audit_dir:
            settings = options | {"seed": seed}
            notes += _write_audits(rows, summary, audit, settings, Path(audit_dir))
    return Result([page], result, notes=notes)


@command()
@own_options
@derive_options(_open_review)
@shared.store_option
def release(
    runs: str,
    *,
    out: OutFolder | None = None,
    check: bool = False,
    unblind: str | None,
    store: str | None,
) -> Result:
    """Write a package of RUNS to publish.

    It has prompts, response hashes, audit rows and tables. It contains no response or part of one,
    no reviewer's name or note, and no local path. With --check, exit status 1 if a package does not
    reproduce.

    \b
    groundfault lab probe release runs/ --out public/
    groundfault lab probe release --check public/

    Output
    ------
    out : DIR
        Write the package to this folder.
    check
        Take RUNS as a package and recompute its hashes, counts and tables.
    """
    from groundfault_lab.pages.probe_page import set_tables
    from groundfault_lab.probes import release as package

    if check:
        if out or unblind or store:
            raise PlanError("--check reads a package and goes with no other option")
        result = package.check(Path(runs), set_tables)
        return Result(_list_differences(result), status=int(bool(result.problems)))
    if out is None:
        raise PlanError("say where the package goes: --out DIR; or --check, to check one")
    audit, _ = _open_review(runs, store, unblind=unblind)
    wrote = f"wrote {package.release(audit, Path(out), set_tables)}"
    return Result([wrote], then=("lab", "probe", "release", "--check", out))


def _list_differences(result: PackageCheck) -> Iterator[str]:
    yield from (f"differs: {problem}" for problem in result.problems)
    yield (
        f"{result.files} files, {result.rows:,} rows, {result.keys:,} unique audited prompt keys"
    )
    yield "reproduces" if not result.problems else "does NOT reproduce"


def _write_evidence(rows: Any, summary: Summary, place: Path) -> Iterator[str]:
    """Write components and families as a table, and say how to judge them."""
    from groundfault_lab.probes import evidence as source

    evidence = source.evidence(rows, summary.statuses, summary.grammar)
    judge = source.write(evidence, source.candidates(rows, summary.grammar), place)
    yield f"wrote {place}: {len(evidence):,} rows; to judge the components:"
    yield f"  {judge}"


def _write_audits(
    rows: Any, summary: Summary, audit: ReviewedRuns, options: Options, place: Path
) -> Iterator[str]:
    """Audit components and families, and write a report of each."""
    from groundfault_lab.probes.evidence import run_audits

    # where looks were recorded by 0.1, beside what the run itself records
    ledger = call(choose_ledger, options, earlier=[audit.runs.folder / LEDGER])
    seed, reopen = options["seed"], options["reopen"]
    reports = run_audits(rows, summary, seed=seed, ledger=ledger, reopen=reopen)
    for name, report in reports.items():
        report.write(place / name)
        counts = f"{report.counts()['confirmed']} of {len(report.findings)} {name} confirmed"
        yield f"{counts}; {place / name / 'report.html'}"
        for finding in report.findings:
            yield f"  {finding.key}: {str(finding.verdict).replace('_', ' ')}"


@command()
@own_options
@shared.store_option
@derive_options(run_arena, "control batch landscapes seed", control={"metavar": "NAME"})
@shared.jobs_option(1)
@shared.json_option("the standings")
def arena(
    *,
    policies: Annotated[tuple[str, ...], Flag("--policy")] = (),
    worlds: Annotated[tuple[str, ...], Flag("--world")] = (),
    replay: str | None = None,
    budgets: Annotated[tuple[int, ...], Flag("--budget")] = (),
    progress: Progress,
    options: Options,
) -> Result:
    """Compare policies by the failing prompts that they find.

    A prompt counts once, and budgets and tasks are equal. Each line gives unique audited keys,
    their paired difference from the control and their ratio to it with 95% intervals, distinct
    tasks, confirmed rows (repeats included), and keys that the review rejects as artefacts.

    Landscapes are simulated, or replayed from a run in which every valid prompt was asked. There an
    error is what a person confirmed; until the review is complete, every mismatch counts instead,
    and the table says that this is a proxy.

    \b
    groundfault lab probe arena --policy gp --policy "caps, prior=stressor" --jobs 2
    groundfault lab probe arena --replay runs/ --budget 90 --budget 192

    Output
    ------
    policies : NAME
        Policy to compare; repeatable; by default all.
    worlds : NAME
        Landscape, or model of a replay, to compare on; repeatable; by default all.
    replay : RUNS
        Exhaustive run, or JSONL file, to replay as the landscape.
    budgets : N
        Number of queries in a run; repeatable; by default 192.
    """

    landscape = load_replay(replay, options["store"]) if replay else None
    names = {"policies": policies, "worlds": worlds, "replay": landscape}
    standings: list[LeaderboardRow] = []
    for budget in budgets or (192,):
        standings += call(run_arena, options | names, budget=budget, progress=progress)
    # without reviews a mismatch may be the prompt's fault or the extraction's, not the model's
    errors = "audited" if landscape is None or landscape.audited else "proxy"
    settings = {name: options[name] for name in ("control", "batch", "landscapes", "seed", "jobs")}
    settings |= {"replay": replay, "errors": errors}
    content = {"settings": settings, "standings": [each.to_dict() for each in standings]}
    return Result(_outline_standings(standings, options["control"], errors), content)


def _outline_standings(
    standings: list[LeaderboardRow], control: str, errors: str
) -> Iterator[str | Table]:

    if errors == "proxy":
        yield "proxy: not all of this run was reviewed, so every mismatch counts as an error"

    def compare(each: LeaderboardRow) -> str:
        if each.policy == control:
            return "control"
        return _set_interval(f"{each.gain:+.1f}", each.gain_interval, "+.1f")

    def divide(each: LeaderboardRow) -> str:
        return (each.ratio and _set_interval(f"{each.ratio:.2f}", each.ratio_interval, ".2f")) or ""

    yield tabulate(
        "Standings",
        standings,
        Words("landscape", lambda each: each.world),
        Words("policy", lambda each: each.policy),
        Number("budget", lambda each: each.budget),
        Number("keys", lambda each: f"{each.keys:.1f}"),
        Number("difference", compare),
        Number("ratio", divide),
        Number("tasks", lambda each: f"{each.tasks:.1f}"),
        Number("rows", lambda each: f"{each.rows:.1f}"),
        Number("artefacts", lambda each: f"{each.artefacts:.1f}"),
    )
    yield (
        f"means; difference and ratio are to {control} on the same landscapes, with 95% intervals"
    )


def _set_interval(value: str, ends: tuple[float, float] | None, form: str) -> str:
    return f"{value} [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else value
