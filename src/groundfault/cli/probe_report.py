"""``probe report`` and ``probe release``: what runs came to after audit, and what of it may be
published.
"""

from __future__ import annotations

import getpass
import json
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundfault.base.files import write_text
from groundfault.cli.options import require_writable, write_json
from groundfault.errors import InputError, PlanError

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import ReviewedRuns
    from groundfault.probes.use.release import Package
    from groundfault.probes.use.summary import Summary

_STORE = click.option(
    "--store", metavar="FILE|URL", help="Where decisions are kept [reviews.db in RUNS]."
)
_REASON = click.option(
    "--unblind", metavar="REASON", help="Why reviews are opened against policies; stays on record."
)


@click.command()
@click.argument("runs", type=click.Path())
@click.option("--md", metavar="FILE", help="Write the report as Markdown.")
@click.option("--html", metavar="FILE", help="Write it as one page that needs nothing else.")
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="Write all numbers as JSON; - is standard output, alone.",
)
@click.option(
    "--control",
    metavar="NAME",
    help="The policy to compare with [one that does not look at signals].",
)
@click.option(
    "--evidence",
    metavar="FILE",
    help="Write audited rows as a table (.parquet, .csv) for groundfault audit.",
)
@click.option(
    "--audit",
    "audit_dir",
    metavar="DIR",
    help="Judge components and families; write two reports here.",
)
@click.option("--policy", metavar="NAME", help="Whose rows become evidence [the control's].")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of the tasks that are held out.",
)
@_REASON
@_STORE
def report(runs: str, **options: Any) -> None:
    """Say what RUNS came to after review: audited rows, unique audited keys and routing signals,
    never mixed.

    What is unaudited or disputed is said first. Once a review has begun, a report opens it against
    the policies: the first one asks for a reason, which stays on record, and later decisions are
    marked.

    \b
    groundfault probe report runs/ --unblind "review is finished" --html report.html
    groundfault probe report runs/ --audit audited/
    """
    from rich.console import Console

    from groundfault.render import page as paper
    from groundfault.render import probe_words
    from groundfault.render.probe_report import BRIEF, page

    for name in ("md", "html", "json_path", "evidence"):
        require_writable(options[name])
    require_writable(options["audit_dir"], directory=True)
    audit, summary = _open_review(runs, options["store"], options["unblind"], options["control"])
    content = page(summary, _title(runs), _review_sections(audit), figures=bool(options["html"]))
    for name, write in (("md", paper.markdown), ("html", paper.html)):
        if options[name]:
            write_text(Path(options[name]), write(content))
    sentences = {
        "open": list(probe_words.still_open(summary)),
        "conclusions": list(probe_words.conclusions(summary)),
    }
    text = json.dumps(
        {**sentences, "review": _review(audit), **summary.to_dict()},
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )
    quiet = write_json(text, options["json_path"])
    if not quiet:
        brief = tuple(section for section in content.sections if section.title not in BRIEF)
        paper.show(replace(content, sections=brief), Console())
    if options["evidence"] or options["audit_dir"]:
        _evidence(summary, audit, options, quiet)


@click.command()
@click.argument("runs", type=click.Path())
@click.option("--out", type=click.Path(), metavar="DIR", help="Write the package here.")
@click.option(
    "--check", is_flag=True, help="RUNS is a package: recompute its hashes, counts and tables."
)
@_REASON
@_STORE
def release(
    runs: str, out: str | None, check: bool, unblind: str | None, store: str | None
) -> None:
    """Write what may be published of RUNS: prompts, hashes of responses, audit rows, settings and
    tables.

    No response is in it, nor any part of one, no reviewer's name or note, and no path of this
    machine. With --check, exit status 1 if a package does not add up.

    \b
    groundfault probe release runs/ --out public/
    groundfault probe release --check public/
    """
    from groundfault.probes.use import release as package

    if check:
        if out or unblind or store:
            raise PlanError("--check reads a package and goes with no other option")
        result = package.check(Path(runs), _tables)
        for problem in result.problems:
            click.echo(f"differs: {problem}")
        click.echo(
            f"{result.files} files, {result.rows:,} rows, {result.keys:,} unique audited prompt keys"
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
    """The audit of runs with its statuses, which are opened against policies on record."""
    from groundfault.probes.review.reviewed_runs import ReviewedRuns
    from groundfault.probes.use.summary import Summary

    audit = ReviewedRuns(runs, store)
    summary = Summary.of(audit, control)
    summary.control  # noqa: B018  (what cannot be reported is not opened)
    if audit.store.sealed() and not audit.unblindings:
        if reason is None and sys.stdin.isatty() and sys.stdout.isatty():
            click.echo(
                "This opens the review against the policies. It is recorded, and later decisions are marked."
            )
            reason = click.prompt("Why now")
        if reason is None:
            raise InputError(
                "a review has begun, and a report opens it against the policies: finish the review, then say why "
                '(--unblind "review is finished"); it is recorded, and later decisions are marked'
            )
        audit.unblind(getpass.getuser(), reason)
    return audit, summary


def _tables(package: Package) -> str:
    """The tables of a package, from what is published alone."""
    from groundfault.render.page import markdown
    from groundfault.render.probe_report import page, reviewed
    from groundfault.review import agreement

    seed = int(package.config["review"]["seed"])
    more = (
        [reviewed(package.resolutions, agreement(package.decisions, seed=seed))] if package.decisions else []
    )
    return markdown(page(package.summary, "published probes", more, figures=False))


def _review_sections(audit: ReviewedRuns) -> list[Any]:
    from groundfault.render.probe_report import reviewed
    from groundfault.review import agreement

    if not audit.decisions:
        return []
    return [
        reviewed(audit.resolutions, agreement(audit.decisions, seed=audit.queue.seed), audit.missed)
    ]


def _review(audit: ReviewedRuns) -> dict[str, Any]:
    """How items were settled, and what controls say of errors that no signal showed."""
    if not audit.decisions:
        return {}
    how = Counter[str](resolution.how for resolution in audit.resolutions.values())
    late = sum(resolution.unblinded for resolution in audit.resolutions.values())
    return {"items": dict(how), "after_unblinding": late, "controls": asdict(audit.missed)}


def _evidence(summary: Summary, audit: ReviewedRuns, options: dict[str, Any], quiet: bool) -> None:
    """Components and families as candidates: written as a table, or judged."""
    from groundfault.probes.running.runs import LEDGER
    from groundfault.probes.use import evidence as source

    rows = source.rows_of(summary, options["policy"] or summary.control)
    click.echo(source.ASSUMPTION, err=quiet)
    if options["evidence"]:
        evidence = source.evidence(rows, summary.statuses, summary.grammar, seed=options["seed"])
        command = source.write(
            evidence, source.candidates(rows, summary.grammar), Path(options["evidence"])
        )
        click.echo(
            f"wrote {options['evidence']}: {len(evidence):,} rows; to judge the components:\n  {command}",
            err=quiet,
        )
    if options["audit_dir"]:
        ledger = audit.runs.folder / LEDGER
        for name, report in source.audits(rows, summary, seed=options["seed"], ledger=ledger).items():
            place = Path(options["audit_dir"]) / name
            report.write(place)
            counts = f"{report.counts()['confirmed']} of {len(report.findings)} {name} confirmed"
            click.echo(f"{counts}; {place / 'report.html'}", err=quiet)
            for finding in report.findings:
                click.echo(f"  {finding.key}: {str(finding.verdict).replace('_', ' ')}", err=quiet)


def _title(runs: str) -> str:
    return Path(runs).absolute().name
