"""``show``: examples of a failure mode or finding of a report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.extra_options import json_option
from groundfault.cli.output import echo_warnings, require_writable, write_json

if TYPE_CHECKING:
    from groundfault.auditing.report_examples import RuleExamples
    from groundfault.modes.mode import Side


@click.command()
@click.argument("report", type=click.Path())
@click.argument("mode")
@click.option("--passing", is_flag=True, help="Show those that are inside the rule and right.")
@click.option("--near", is_flag=True, help="Show those that are outside it by one condition.")
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1, 200),
    default=20,
    show_default=True,
    metavar="N",
    help="Largest number of examples to show.",
)
@click.option(
    "--evidence",
    metavar="SRC",
    multiple=True,
    help="Where the evidence is now, if it has moved; repeatable, in the order of the report's "
    "sources.",
)
@json_option("the examples")
def show(
    report: str,
    mode: str,
    passing: bool,
    near: bool,
    count: int,
    evidence: tuple[str, ...],
    json_path: str | None,
) -> None:
    """Show failing examples of a failure mode of REPORT, typical and different ones first.

    REPORT is a folder that audit --out wrote. MODE is the number of a failure mode, from 1, or the
    name of a finding. The examples are read from the evidence of the report, which has to be there
    unchanged; words that the rule names are highlighted.

    \b
    groundfault show report/ 1
    groundfault show report/ 2 --passing -n 5
    groundfault show report/ 'task = add' --near --evidence moved.parquet
    """
    from groundfault.auditing.report_examples import look_up_examples

    if passing and near:
        raise click.UsageError("--passing and --near exclude each other; choose one")
    require_writable(json_path)
    side: Side = "passing" if passing else "near" if near else "failing"
    name = int(mode) if mode.isdecimal() else mode
    with echo_warnings():
        lookup = look_up_examples(report, name, side=side, count=count, evidence=evidence or None)
    text = json.dumps(_to_plain(lookup, mode, side), indent=1, ensure_ascii=False)
    if write_json(text, json_path):
        return
    from rich.console import Console

    from groundfault.render.example_page import make_example_page
    from groundfault.render.terminal import show as print_page

    print_page(make_example_page(lookup, side), Console())


def _to_plain(lookup: RuleExamples, name: str, side: Side) -> dict[str, Any]:
    import msgspec

    subject = lookup.subject
    return {
        "name": name,
        "rule": subject.rule,
        "meaning": subject.meaning,
        "outcome": subject.outcome,
        "side": side,
        "examples": msgspec.to_builtins(lookup.examples),
    }
