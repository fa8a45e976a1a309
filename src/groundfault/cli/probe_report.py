"""``probe report``, ``release`` and ``arena``: runs reported and released, policies compared."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from groundfault.base.files import write_text
from groundfault.cli.command import GroupedCommand, option
from groundfault.cli.options import jobs_option, json_option, ledger_options, store_option
from groundfault.cli.output import (
    require_writable,
    show_page,
    show_progress,
    show_table,
    write_json,
    write_result,
)
from groundfault.cli.reading import choose_ledger
from groundfault.cli.settings import Flag, Whole, call, derive_options, own_options
from groundfault.errors import InputError, PlanError
from groundfault.probes.use.arena import LeaderboardRow
from groundfault.probes.use.arena import arena as run_arena

if TYPE_CHECKING:
    from collections.abc import Mapping

    from groundfault.auditing.report import Report
    from groundfault.probes.review.reviewed_runs import ReviewedRuns
    from groundfault.probes.use.release import Package
    from groundfault.probes.use.summary import Summary

unblind_option = option(
    "--unblind",
    metavar="REASON",
    help="Reason for ending the blind review; it is recorded.",
)


@click.command(
    cls=GroupedCommand,
    first="html md json_path control audit_dir unblind store ledger",
)
@own_options
@json_option("all numbers")
@unblind_option
@store_option
@ledger_options
def report(
    runs: str,
    *,
    md: str | None = None,
    html: str | None = None,
    control: str | None = None,
    evidence: str | None = None,
    audit_dir: Annotated[str | None, Flag("--audit")] = None,
    policy: str | None = None,
    seed: Whole = 0,
    **options: Any,
) -> None:
    """Report the results of RUNS after review.

    They stand apart from the signals that routed to it. The report begins with what is still
    unreviewed or disputed. It shows which policy asked what, so it ends the blind review: the first
    report asks for a reason, which is recorded, and later decisions are marked.

    \b
    groundfault probe report runs/ --unblind "review is finished" --html report.html
    groundfault probe report runs/ --audit audited/

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
    from groundfault.probes.running.runs import LEDGER
    from groundfault.probes.use import evidence as source
    from groundfault.probes.use.summary import ProbeSummary, ReviewCounts
    from groundfault.render import probe_page
    from groundfault.render.html import html as set_html
    from groundfault.render.markdown import markdown
    from groundfault.render.probe_page import make_page, make_review_sections

    for path in (md, html, evidence, options["json_path"]):
        require_writable(path)
    require_writable(audit_dir, directory=True)
    audit, summary = _open_review(runs, options["store"], options["unblind"], control)
    title = Path(runs).absolute().name
    content = make_page(summary, title, make_review_sections(audit))
    for path, write in ((md, markdown), (html, set_html)):
        if path:
            write_text(Path(path), write(content))
    result = ProbeSummary.of(
        summary.tables,
        open=tuple(probe_page.list_open_points(summary)),
        conclusions=tuple(probe_page.draw_conclusions(summary)),
        review=ReviewCounts.of(audit),
    )
    quiet = write_json(result.to_json(), options["json_path"])
    if not quiet:
        show_page(content)
    if not evidence and not audit_dir:
        return
    rows = source.select_rows(summary, policy or summary.control)
    click.echo(source.ASSUMPTION, err=quiet)
    if evidence:
        _write_evidence(rows, summary, Path(evidence), err=quiet)
    if audit_dir:
        # where looks were recorded by 0.1, beside what the run itself records
        ledger = call(choose_ledger, options, earlier=[audit.runs.folder / LEDGER])
        reports = source.run_audits(
            rows, summary, seed=seed, ledger=ledger, reopen=options["reopen"]
        )
        _write_audits(reports, Path(audit_dir), err=quiet)


@click.command()
@own_options
@unblind_option
@store_option
def release(
    runs: str,
    *,
    out: str | None = None,
    check: bool = False,
    unblind: str | None,
    store: str | None,
) -> None:
    """Write a package of RUNS to publish.

    It has prompts, response hashes, audit rows and tables. It contains no response or part of one,
    no reviewer's name or note, and no local path. With --check, exit status 1 if a package does not
    reproduce.

    \b
    groundfault probe release runs/ --out public/
    groundfault probe release --check public/

    Output
    ------
    out : DIR
        Write the package to this folder.
    check
        Take RUNS as a package and recompute its hashes, counts and tables.
    """
    from groundfault.probes.use import release as package

    if check:
        if out or unblind or store:
            raise PlanError("--check reads a package and goes with no other option")
        result = package.check(Path(runs), _tables)
        for problem in result.problems:
            click.echo(f"differs: {problem}")
        click.echo(
            f"{result.files} files, {result.rows:,} rows, "
            f"{result.keys:,} unique audited prompt keys"
        )
        click.echo("reproduces" if not result.problems else "does NOT reproduce")
        sys.exit(1 if result.problems else 0)
    if out is None:
        raise PlanError("say where the package goes: --out DIR; or --check, to check one")
    require_writable(out, directory=True)
    audit, _ = _open_review(runs, store, unblind, None)
    click.echo(f"wrote {package.release(audit, Path(out), _tables)}")
    click.echo(f"next: groundfault probe release --check {out}")


def _open_review(
    runs: str, store: str | None, reason: str | None, control: str | None
) -> tuple[ReviewedRuns, Summary]:
    """Return the runs and their summary; unblinds the review, on record, where it is blind."""
    from groundfault.probes.review.reviewed_runs import ReviewedRuns
    from groundfault.probes.use.summary import Summary

    audit = ReviewedRuns(runs, store)
    summary = Summary.of(audit, control)
    summary.control  # noqa: B018  (what cannot be reported is not opened)
    if audit.is_blind:
        if reason is None and sys.stdin.isatty() and sys.stdout.isatty():
            click.echo(
                "This ends the blind review. It is recorded, and later decisions are marked."
            )
            reason = click.prompt("Why now")
        if reason is None:
            raise InputError(
                "a review has begun, and a report ends it: finish the review, then give the reason "
                '(--unblind "review is finished"); it is recorded, and later decisions are marked'
            )
        audit.unblind(getpass.getuser(), reason)
    return audit, summary


def _tables(package: Package) -> str:
    """Return the tables of a package, from what is published alone."""
    from groundfault.render.markdown import markdown
    from groundfault.render.probe_page import make_page, make_review_section
    from groundfault.review.decision import summarize_agreement

    seed = int(package.config["review"]["seed"])
    more = (
        [
            make_review_section(
                package.resolutions, summarize_agreement(package.decisions, seed=seed)
            )
        ]
        if package.decisions
        else []
    )
    return markdown(make_page(package.summary, "published probes", more))


def _write_evidence(rows: Any, summary: Summary, place: Path, *, err: bool) -> None:
    """Write components and families as a table, and say how to judge them."""
    from groundfault.probes.use import evidence as source

    evidence = source.evidence(rows, summary.statuses, summary.grammar)
    command = source.write(evidence, source.candidates(rows, summary.grammar), place)
    click.echo(
        f"wrote {place}: {len(evidence):,} rows; to judge the components:\n  {command}", err=err
    )


def _write_audits(reports: Mapping[str, Report], place: Path, *, err: bool) -> None:
    for name, report in reports.items():
        report.write(place / name)
        counts = f"{report.counts()['confirmed']} of {len(report.findings)} {name} confirmed"
        click.echo(f"{counts}; {place / name / 'report.html'}", err=err)
        for finding in report.findings:
            click.echo(f"  {finding.key}: {str(finding.verdict).replace('_', ' ')}", err=err)


@click.command()
@own_options
@store_option
@derive_options(
    run_arena,
    "control batch landscapes seed",
    control={"metavar": "NAME"},
)
@jobs_option(1)
@json_option("the standings")
def arena(
    *,
    policies: Annotated[tuple[str, ...], Flag("--policy")] = (),
    worlds: Annotated[tuple[str, ...], Flag("--world")] = (),
    replay: str | None = None,
    budgets: Annotated[tuple[int, ...], Flag("--budget")] = (),
    **options: Any,
) -> None:
    """Compare policies by the failing prompts that they find.

    A prompt counts once, and budgets and tasks are equal. Each line gives unique audited keys,
    their paired difference from the control and their ratio to it with 95% intervals, distinct
    tasks, confirmed rows (repeats included), and keys that the review rejects as artefacts.

    Landscapes are simulated, or replayed from a run in which every valid prompt was asked. There an
    error is what a person confirmed; until the review is complete, every mismatch counts instead,
    and the table says that this is a proxy.

    \b
    groundfault probe arena --policy gp --policy "caps, prior=stressor" --jobs 2
    groundfault probe arena --replay runs/ --budget 90 --budget 192

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
    from groundfault.probes.use.arena import load_replay
    from groundfault.render.words import clean

    require_writable(options["json_path"])
    landscape = load_replay(replay, options["store"]) if replay else None
    names = {"policies": policies, "worlds": worlds, "replay": landscape}
    standings: list[LeaderboardRow] = []
    with show_progress(options["json_path"] == "-") as progress:
        for budget in budgets or (192,):
            standings += call(run_arena, options | names, budget=budget, progress=progress)
    # without reviews a mismatch may be the prompt's fault or the extraction's, not the model's
    errors = "audited" if landscape is None or landscape.audited else "proxy"
    settings = {name: options[name] for name in ("control", "batch", "landscapes", "seed", "jobs")}
    settings |= {"replay": replay, "errors": errors}
    content = {"settings": settings, "standings": [each.to_dict() for each in standings]}
    if write_result(content, options["json_path"]):
        return
    if errors == "proxy":
        click.echo("proxy: not all of this run was reviewed, so every mismatch counts as an error")
    _show_standings(standings, options["control"])
    click.echo(
        f"means; difference and ratio are to {clean(options['control'])} on the same landscapes, "
        "with 95% intervals"
    )


def _show_standings(standings: list[LeaderboardRow], control: str) -> None:
    from groundfault.render.page import make_table

    heads = "landscape policy budget keys difference ratio tasks rows artefacts".split()
    rows = [
        (
            each.world,
            each.policy,
            f"{each.budget:,}",
            f"{each.keys:.1f}",
            "control"
            if each.policy == control
            else _set_interval(f"{each.gain:+.1f}", each.gain_interval, "+.1f"),
            ""
            if each.ratio is None
            else _set_interval(f"{each.ratio:.2f}", each.ratio_interval, ".2f"),
            f"{each.tasks:.1f}",
            f"{each.rows:.1f}",
            f"{each.artefacts:.1f}",
        )
        for each in standings
    ]
    show_table(make_table("", "ttnnnnnnn", heads, rows))


def _set_interval(value: str, ends: tuple[float, float] | None, form: str) -> str:
    return f"{value} [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else value
