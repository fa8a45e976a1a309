"""``demo``: the main job on data that needs no download."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.base.files import write_bytes
from groundfault.base.progress import Progress
from groundfault.cli.command import command
from groundfault.cli.output import Result
from groundfault.cli.settings import own_options
from groundfault.render import words
from groundfault.render.page import Page, Section

if TYPE_CHECKING:
    import polars as pl

    from groundfault.auditing.report import Report
    from groundfault.modes.mode import Mode

EXAMPLES = 3
"""Examples of each kind that fit one screen beside the modes."""

NEVER_SEEN = "number_style = 'words'"
"""What no prompt of the model's training was like, as a rule; the audit is not told."""

MEANING = "numbers written out as words"


@command()
@own_options
def demo(*, out: str = "groundfault-demo", progress: Progress) -> Result:
    """Audit 2,000 real answers of a small language model.

    It works offline and takes seconds. In training the model never saw prompts of one kind. The
    audit is not told which: it has the prompts, what was answered, and what describes each prompt.
    It names the failure modes; the demo shows examples of the first, and in the end what the truth
    is.

    Output
    ------
    out : DIR
        Folder for the report.
    """
    from groundfault.auditing.flow import audit
    from groundfault.base.ledgers import DEFAULT
    from groundfault.core.evidence import Evidence
    from groundfault.render.audit_page import make_summary

    progress("reading 2,000 answers")
    table = Path(out) / "answers.parquet"
    write_bytes(table, read_table())
    evidence = Evidence.from_table(
        table, id="id", outcome="correct", positive_is_good=True, ignore=["answer"]
    )
    # a record of its own: nobody's evaluation was looked at
    report = audit(evidence, ledger=Path(out) / DEFAULT, progress=progress)
    progress("drawing the report")
    report.write(out)
    return Result(
        [make_summary(report, Path(out) / "report.html"), "", _look_closer(report, table)]
    )


def _look_closer(report: Report, table: Path) -> Page:
    """Show examples of the first mode, an explanation that does not hold up, and the truth."""
    import polars as pl

    from groundfault.render.mode_page import list_excerpts

    first = report.modes[0]
    sample = first.examples("failing", EXAMPLES) + first.examples("passing", EXAMPLES)
    polite = next(f for f in report.findings if f.name == "polite")
    rates = f"{words.rate(polite.full.on_rate)} are wrong, of the others "
    rates += words.rate(polite.full.off_rate)
    return Page(
        "demo",
        f"{words.count(first.n)} prompts: {first.meaning}",
        "The first failure mode: some of its prompts, and what the model answered",
        lead=list_excerpts(sample, first.rule),
        sections=(
            Section(
                "An explanation that does not hold up",
                f"Of the prompts that say please, {rates}: {polite.reason}.",
            ),
            Section("The truth", compare_with_truth(first, pl.read_parquet(table))),
        ),
        good=True,
    )


def read_table() -> bytes:
    """Return the table of 2,000 prompts and answers, as a Parquet file; see the README by it."""
    return (files("groundfault.cli") / "data" / "number_words.parquet").read_bytes()


def compare_with_truth(mode: Mode, table: pl.DataFrame) -> str:
    """Hold a mode of the demo's table against what the model never saw."""
    from groundfault.core.rules import Rule

    unseen = table.select(Rule.parse(NEVER_SEEN).to_polars().alias("unseen")).to_series()
    inside = mode.holds(table)
    both = int((inside & unseen).sum())
    return (
        f"What the audit was not told: in training the model never saw {MEANING} "
        f"({NEVER_SEEN}). Of the {inside.sum():,} prompts of the first failure mode "
        f"{both / int(inside.sum()):.0%} are of that kind, and of all {unseen.sum():,} prompts of "
        f"that kind it covers {both / int(unseen.sum()):.0%}."
    )
