"""``study``: a paper's tables, regenerated."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from groundfault.cli.options import require_writable, show_progress, write_json
from groundfault.errors import InputError, PlanError

if TYPE_CHECKING:
    from rich.console import Group

    from groundfault_studies.tables import Study, Table

# a study is a function of progress and of the options it takes, that returns a Study; one that can
# be resumed takes `keep`, a file for what is done
STUDIES = {
    "janus": "groundfault_studies.janus:study",
    "sequential": "groundfault_studies.sequential:study",
    "sequential-pool": "groundfault_studies.sequential_pool:study",
    "validity": "groundfault_studies.validity:study",
    "discover": "groundfault_studies.discover:study",
    "improve": "groundfault_studies.improve:study",
    "finders": "groundfault_studies.finders:study",
    "probe-policies": "groundfault_studies.probe_policies:study",
    "probes": "groundfault_studies.probes:study",
    "deim": "groundfault_studies.deim:study",
}


@click.command()
@click.argument("name")
@click.option(
    "--shared", metavar="DIR", help="Folder of the data [$GROUNDFAULT_SHARED, or ../shared/data]."
)
@click.option(
    "--splits", type=click.IntRange(1), metavar="N", help="Random splits of robustness lines [200]."
)
@click.option(
    "--replicates", type=click.IntRange(1), metavar="N", help="Simulated audits of each setting."
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    metavar="N",
    help="Trainings of a model [10]; runs of probes [20].",
)
@click.option(
    "--judge",
    metavar="NAME",
    help="Of finders: a leaderboard of what this judge confirms, not tables.",
)
@click.option(
    "--pairs",
    metavar="FILE",
    help="Of deim: a TOML file of data sets and trained models [those shipped].",
)
@click.option(
    "--pipeline",
    metavar="NAME",
    help="Of deim: the spaCy pipeline that reads texts [en_core_web_sm].",
)
@click.option(
    "--quick",
    is_flag=True,
    default=None,
    help="Of deim and probes: to see that it runs; no conclusions.",
)
@click.option(
    "--jobs", type=int, metavar="N", help="Processes [1]; the answer does not depend on it."
)
@click.option(
    "--out", type=click.Path(), metavar="DIR", help="Write NAME.md, NAME.json and figures here."
)
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="Write the study as JSON; - is standard output, alone.",
)
def study(name: str, out: str | None, json_path: str | None, **options: Any) -> None:
    """Regenerate the tables of a paper, beside the numbers it prints.

    NAME is the study: janus, finders, discover, improve, deim (those two and what explains errors,
    on data and models of your own too), sequential, sequential-pool (policies beside the
    reference's records), validity (of sequential audits), probe-policies, or probes (the whole
    protocol against a scripted model). Where data are lacking, what needs none is shown all the
    same, and the exit status is 2. A study that takes long, such as sequential, deim or probes,
    goes on where it was, given the same --out.

    \b
    groundfault study janus --out tables/
    """
    require_writable(out, directory=True)
    require_writable(json_path)
    run = _function(name)
    settings = {key: value for key, value in options.items() if value is not None}
    takes = signature(run).parameters
    for key in settings.keys() - takes.keys():
        raise PlanError(f"the study {name!r} has no use for --{key}; leave it out")
    if out and "keep" in takes:
        settings["keep"] = Path(out) / f"{name}.rows.jsonl"
    with show_progress(json_path == "-") as progress:
        result: Study = run(progress=progress, **settings)
    if out:
        result.write(out)
    if not (json_path and write_json(result.to_json(), json_path)):
        show(result, Console(), out)
    if result.lacking:
        raise InputError(f"not everything was computed: {'; '.join(result.lacking)}")


def _function(name: str) -> Any:
    if name not in STUDIES:
        raise PlanError(f"there is no study {name!r}; the studies are {', '.join(STUDIES)}")
    module, _, attribute = STUDIES[name].partition(":")
    return getattr(import_module(module), attribute)


def show(result: Study, console: Console, out: str | None) -> None:
    """Print a study."""
    console.print(f"[bold]{result.title}[/bold]", highlight=False)
    console.print(
        f"{result.source}. Lines marked [italic]paper[/italic] are what it prints.", highlight=False
    )
    for table in result.tables:
        console.print()
        console.print(table.title, style="bold", markup=False, highlight=False)
        console.print(_render(table, console.width))
        console.print(table.note, style="dim", markup=False, highlight=False)
    if out:
        console.print(
            f"\nWritten to {Path(out) / f'{result.name}.md'} and .json",
            markup=False,
            highlight=False,
        )


def _render(table: Table, width: int) -> Group:
    """The table for a terminal of this width; what the paper prints is set apart."""
    from groundfault.render.page import fitted
    from groundfault.render.tables import Column
    from groundfault.render.tables import Table as Plain

    lines = [
        (line, not row.here or number > 0)
        for row in table.rows
        for number, line in enumerate(table.shown(row))
    ]
    columns = (
        Column(head, "text" if kind == "text" else "number")
        for head, kind in table.columns.values()
    )
    plain = Plain(table.title, (Column(""), *columns), tuple(tuple(line) for line, _ in lines))
    return fitted(plain, width, ["dim italic" if from_paper else "" for _, from_paper in lines])
