"""``study``: a paper's tables, regenerated."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from groundfault.cli.options import require_writable, shown_progress
from groundfault.errors import InputError, PlanError
from groundfault.files import write_text

if TYPE_CHECKING:
    from groundfault.studies.tables import Study, Table

# a study is a function of (shared, progress) and of the options it takes, that returns a Study
STUDIES = {"janus": "groundfault.studies.janus:study"}


@click.command()
@click.argument("name")
@click.option("--shared", metavar="DIR", help="Folder of the data [$GROUNDFAULT_SHARED, or ../shared/data].")
@click.option("--splits", type=click.IntRange(1), metavar="N", help="Random splits of robustness lines [200].")
@click.option("--jobs", type=int, metavar="N", help="Processes [1]; the answer does not depend on it.")
@click.option("--out", type=click.Path(), metavar="DIR", help="Write NAME.md and NAME.json here.")
@click.option("--json", "json_path", metavar="FILE|-", help="Write the study as JSON; - is standard output, alone.")
def study(name: str, shared: str | None, out: str | None, json_path: str | None, **options: Any) -> None:
    """Regenerate the tables of a paper, beside the numbers it prints.

    NAME is the study: janus. Where data are lacking, what needs none is shown all the same, and the exit status is 2.

    \b
    groundfault study janus --out tables/
    """
    require_writable(out, directory=True)
    require_writable(json_path)
    run = _function(name)
    chosen = {key: value for key, value in options.items() if value is not None}
    for key in chosen.keys() - signature(run).parameters.keys():
        raise PlanError(f"the study {name!r} has no use for --{key}; leave it out")
    with shown_progress(json_path == "-") as progress:
        found: Study = run(shared=shared, progress=progress, **chosen)
    if out:
        found.write(out)
    if json_path and json_path != "-":
        write_text(Path(json_path), found.to_json())
    if json_path == "-":
        click.echo(found.to_json())
    else:
        _show(found, Console(), out)
    if found.lacking:
        raise InputError(f"not everything was computed: {'; '.join(found.lacking)}")


def _function(name: str) -> Any:
    if name not in STUDIES:
        raise PlanError(f"there is no study {name!r}; the studies are {', '.join(STUDIES)}")
    module, _, attribute = STUDIES[name].partition(":")
    return getattr(import_module(module), attribute)


def _show(found: Study, console: Console, out: str | None) -> None:
    console.print(f"[bold]{found.title}[/bold]", highlight=False)
    console.print(f"{found.source}. Lines marked [italic]paper[/italic] are what it prints.", highlight=False)
    for table in found.tables:
        console.print()
        console.print(table.title, style="bold", markup=False, highlight=False)
        console.print(_rendered(table, console))
        console.print(table.note, style="dim", markup=False, highlight=False)
    if out:
        console.print(f"\nWritten to {Path(out) / f'{found.name}.md'} and .json", markup=False, highlight=False)


def _rendered(table: Table, console: Console) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as Shown
    from rich.text import Text

    width = 24 if console.width < 110 else 48
    out = Shown(box=SIMPLE_HEAD, pad_edge=False, padding=0, show_edge=False)
    out.add_column("", no_wrap=True)
    for heading, kind in table.columns.values():
        out.add_column(heading, justify="left" if kind == "text" else "right", no_wrap=kind != "text")
    for row in table.rows:
        for number, (label, *cells) in enumerate(table.shown(row)):
            printed = not row.here or number > 0
            name = fill(label, width, break_on_hyphens=False)
            out.add_row(*map(Text, [name, *cells]), style="dim italic" if printed else "")
    return out
