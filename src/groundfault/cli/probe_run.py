"""``probe run``: ask a model the prompts of a config, within its budget."""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any, get_args

import click

from groundfault.cli.case_option import step_of_case
from groundfault.cli.options import json_option
from groundfault.cli.output import echo_warnings, require_writable, show_progress, write_json
from groundfault.cli.reading import read_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from groundfault.base.progress import Progress
    from groundfault.models import Target
    from groundfault.probes.running.runs import ProbeRow, Runs


@click.command()
@click.argument("config", type=click.Path(), required=False)
@step_of_case(
    "groundfault.cli.probe_case:run_probe",
    *"model settings quiet json_path".split(),
    source="config",
)
@click.option(
    "--model",
    metavar="NAME",
    required=True,
    help="Model to test, such as openai/gpt-4o-mini, hf/NAME or replay:FILE.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Setting of the model, such as base_url=URL; repeatable.",
)
@click.option(
    "--out",
    type=click.Path(),
    metavar="DIR",
    help="Folder of the runs; by default runs, beside CONFIG.",
)
@click.option("--quiet", is_flag=True, help="Print errors only.")
@json_option("the counts")
def run(
    config: str,
    model: str,
    settings: tuple[str, ...],
    out: str | None,
    quiet: bool,
    json_path: str | None,
) -> None:
    """Ask a model the prompts of CONFIG: every policy with every seed, within the budget.

    Each answer is recorded before it counts. Interrupt at any moment, and run the same command
    again to go on: no prompt is asked twice, and all files are as without the interruption.

    \b
    groundfault probe run bank/config.toml --model openai/gpt-4o-mini
    groundfault probe run bank/config.toml --model replay:calls.jsonl --out runs/
    groundfault probe run --case case/ --model openai/gpt-4o-mini
    """
    from groundfault.probes.running.config import Config
    from groundfault.probes.running.run import run as ask

    # a config with a mistake is named before what the model lacks, such as a library or a key
    Config.load(config)
    require_writable(out, directory=True)
    runs = ask_prompts(
        lambda target, progress: ask(config, target, out=out, progress=progress),
        {"model": model, "settings": settings, "quiet": quiet, "json_path": json_path},
    )
    if not quiet and json_path != "-":
        click.echo(f"next: groundfault probe review {runs.folder}")


def ask_prompts(ask: Callable[[Target, Progress], Runs], options: dict[str, Any]) -> Runs:
    """Ask a model as the options have it, and print what came of it.

    Parameters
    ----------
    ask : callable
        Asks a target all prompts, or those that are left.
    options : dict
        ``model``, ``settings``, ``quiet`` and ``json_path`` of `run`.
    """
    from groundfault import models

    quiet, json_path = options["quiet"], options["json_path"]
    require_writable(json_path)
    target = models.get(options["model"], **read_values(options["settings"]))
    try:
        with echo_warnings(), show_progress(quiet or json_path == "-") as progress:
            runs = ask(target, progress)
    except KeyboardInterrupt:
        click.echo(
            "stopped; what was answered is on record: run the same command again to go on", err=True
        )
        sys.exit(130)
    rows = [row for row in runs.rows if row.model == target.name]
    counts = [
        _counts(list(each)) for _, each in groupby(rows, key=lambda row: (row.policy, row.seed))
    ]
    text = json.dumps(
        {
            "runs": str(runs.folder),
            "model": target.name,
            "counts": counts,
            "other_models": [
                {"asked": asked, "answered": answered} for asked, answered in runs.other_models
            ],
        },
        indent=1,
        ensure_ascii=False,
    )
    if write_json(text, json_path) or quiet:
        return runs
    _show(counts)
    click.echo(
        "keys: different prompts among the mismatches; "
        "a mismatch is an error only if a person confirms it"
    )
    prompts, valid = runs.manifest["prompts"], runs.manifest["valid"]
    if valid < prompts:
        click.echo(
            f"{prompts - valid:,} of {prompts:,} prompts are invalid and were not asked: "
            "groundfault probe check says why"
        )
    return runs


def _counts(rows: list[ProbeRow]) -> dict[str, Any]:
    from groundfault.probes.running.answers import Signal

    signals = Counter(row.signal for row in rows)
    keys = {row.key for row in rows if row.signal == "mismatch"}
    return {
        "policy": rows[0].policy,
        "seed": rows[0].seed,
        "queries": len(rows),
        **{signal: signals[signal] for signal in get_args(Signal)},
        "mismatched_keys": len(keys),
    }


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console

    from groundfault.render.page import Table, TableColumn
    from groundfault.render.terminal import fit_table

    numbers = ("seed", "queries", "match", "mismatch", "unreadable", "unanswered")
    columns = (TableColumn("policy"), *(TableColumn(name, "number") for name in (*numbers, "keys")))
    names = ("policy", *numbers, "mismatched_keys")
    cells = tuple(tuple(str(counts[name]) for name in names) for counts in rows)
    console = Console()
    console.print(fit_table(Table("Runs", columns, cells), console.width))
