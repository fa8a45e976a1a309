"""``demo``: the main job on data that needs no download."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from groundfault.auditing.report import Report
    from groundfault.render.page import Page

EXAMPLES = 3


@click.command()
@click.option(
    "--out",
    type=click.Path(),
    default="groundfault-demo",
    show_default=True,
    help="Folder for the report.",
)
def demo(out: str) -> None:
    """Audit 2,000 real answers of a small language model, offline, in seconds.

    In training the model never saw prompts of one kind. The audit is not told which: it has the
    prompts, what was answered, and what describes each prompt. It names the failure modes; the demo
    shows examples of the first, and in the end what the truth is.
    """
    from rich.console import Console

    from groundfault.auditing.flow import audit
    from groundfault.base.ledgers import DEFAULT
    from groundfault.core.evidence import Evidence
    from groundfault.render.audit_page import make_summary
    from groundfault.render.terminal import show

    console = Console()
    with Console(stderr=True).status("reading 2,000 answers") as status:
        table = _write_table(Path(out))
        evidence = Evidence.from_table(
            table, id="id", outcome="correct", positive_is_good=True, ignore=["answer"]
        )
        # a record of its own: nobody's evaluation was looked at
        report = audit(evidence, ledger=Path(out) / DEFAULT, progress=status.update)
        status.update("drawing the report")
        report.write(out)
    show(make_summary(report, Path(out) / "report.html"), console)
    console.print()
    show(_look_closer(report, table), console)


def _write_table(folder: Path) -> Path:
    from groundfault.base.files import write_bytes
    from groundfault.cli.demo_data import read_table

    path = folder / "answers.parquet"
    write_bytes(path, read_table())
    return path


def _look_closer(report: Report, table: Path) -> Page:
    """Examples of the first failure mode, an explanation that does not hold up, and the truth."""
    import polars as pl

    from groundfault.cli.demo_data import compare_with_truth
    from groundfault.render import words
    from groundfault.render.mode_page import list_excerpts
    from groundfault.render.page import Page, Section

    first = report.modes[0]
    sample = first.examples("failing", EXAMPLES) + first.examples("passing", EXAMPLES)
    polite = next(f for f in report.findings if f.name == "polite")
    rates = f"{words.rate(polite.full.on_rate)} are wrong, of the others "
    rates += words.rate(polite.full.off_rate)
    return Page(
        kind="demo",
        title=f"{words.count(first.n)} prompts: {first.meaning}",
        verdict="The first failure mode: some of its prompts, and what the model answered",
        facts=(),
        sections=(
            Section(
                "An explanation that does not hold up",
                (f"Of the prompts that say please, {rates}: {polite.reason}.",),
            ),
            Section("The truth", (compare_with_truth(first, pl.read_parquet(table)),)),
        ),
        good=True,
        lead=tuple(list_excerpts(sample, first.rule)),
    )
