"""``demo``: the main job on data that needs no download."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from groundfault.modes.mode import Mode

EXAMPLES = 3
SIDES = (("failing", "It fails, for example:"), ("passing", "Inside it, it passes:"))


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
    prompts, what was answered, and what describes each prompt. It names the failure modes, shows
    examples of the first, and in the end the demo says what the truth is.
    """
    import polars as pl
    from rich.console import Console

    from groundfault.auditing.flow import audit
    from groundfault.cli.demo_data import compare_with_truth
    from groundfault.core.evidence import Evidence
    from groundfault.render.audit_page import make_summary
    from groundfault.render.terminal import show

    console = Console()
    with Console(stderr=True).status("reading 2,000 answers") as status:
        table = _write_table(Path(out))
        evidence = Evidence.from_table(
            table, id="id", outcome="correct", positive_is_good=True, ignore=["answer"]
        )
        report = audit(evidence, progress=status.update)
        status.update("drawing the report")
        report.write(out)
    show(make_summary(report, Path(out) / "report.html"), console)
    first = report.modes[0]
    polite = next(f for f in report.findings if f.name == "polite")
    lines = (
        f"\nThe first failure mode: {first.meaning}",
        *_list_examples(first),
        f"\nAn explanation that does not hold up. {polite.sentence} Why: {polite.reason}.",
        f"\n{compare_with_truth(first, pl.read_parquet(table))}",
    )
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _write_table(folder: Path) -> Path:
    from groundfault.base.files import write_bytes
    from groundfault.cli.demo_data import read_table

    path = folder / "answers.parquet"
    write_bytes(path, read_table())
    return path


def _list_examples(mode: Mode) -> Iterator[str]:
    """Prompts that the model fails inside a mode, and passes, with its answers."""
    for side, title in SIDES:
        examples = mode.examples(side, EXAMPLES)
        if examples:
            yield title
        for example in examples:
            texts = example.texts
            yield f"  {texts['prompt']}"
            yield f"    it answers {texts['answer']!r}; right is {texts['target']!r}"
