"""``probe arena``: policies compared on the same landscapes, simulated or replayed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.options import jobs_option, json_option, store_option
from groundfault.cli.output import require_writable, show_progress, write_json
from groundfault.render.words import clean

if TYPE_CHECKING:
    from groundfault.probes.use.arena import LeaderboardRow


@click.command()
@click.option(
    "--policy",
    "policies",
    metavar="NAME",
    multiple=True,
    help="Policy to compare; repeatable; by default all.",
)
@click.option(
    "--world",
    "worlds",
    metavar="NAME",
    multiple=True,
    help="Landscape, or model of a replay, to compare on; repeatable; by default all.",
)
@click.option(
    "--replay",
    type=click.Path(),
    metavar="RUNS",
    help="Exhaustive run, or JSONL file, to replay as the landscape.",
)
@store_option
@click.option(
    "--control",
    default="stratified",
    show_default=True,
    help="Policy that the others are compared with.",
)
@click.option(
    "--budget",
    "budgets",
    type=int,
    multiple=True,
    metavar="N",
    help="Number of queries in a run; repeatable; by default 192.",
)
@click.option(
    "--batch",
    type=int,
    default=3,
    show_default=True,
    metavar="N",
    help="Number of queries before a policy sees the next signals.",
)
@click.option(
    "--landscapes",
    type=int,
    default=40,
    show_default=True,
    metavar="N",
    help="Number of landscapes of each kind, or of seeds in a replay; at least 20.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of every random draw.",
)
@jobs_option(1)
@json_option("the standings")
def arena(**options: Any) -> None:
    """Compare policies by the unique failing prompts they find, with equal budgets and tasks.

    Each line gives unique audited keys, their paired difference from the control and their ratio to
    it with 95% intervals, distinct tasks, confirmed rows (repeats included), and keys that the
    review rejects as artefacts.

    Landscapes are simulated, or replayed from a run in which every valid prompt was asked. There an
    error is what a person confirmed; until the review is complete, every mismatch counts instead,
    and the table says that this is a proxy.

    \b
    groundfault probe arena --policy gp --policy "caps, prior=stressor" --jobs 2
    groundfault probe arena --replay runs/ --budget 90 --budget 192
    """
    from groundfault.probes.policies import POLICIES
    from groundfault.probes.use.arena import arena as run
    from groundfault.probes.use.arena import load_replay

    require_writable(options["json_path"])
    replay = load_replay(options["replay"], options["store"]) if options["replay"] else None
    names = options["policies"] or tuple(POLICIES)
    settings = {name: options[name] for name in ("control", "batch", "landscapes", "seed", "jobs")}
    standings: list[LeaderboardRow] = []
    with show_progress(options["json_path"] == "-") as progress:
        for budget in options["budgets"] or (192,):
            standings += run(
                names,
                options["worlds"] or None,
                replay=replay,
                budget=budget,
                progress=progress,
                **settings,
            )
    # without reviews a mismatch may be the prompt's fault or the extraction's, not the model's
    errors = "audited" if replay is None or replay.audited else "proxy"
    settings |= {"replay": options["replay"], "errors": errors}
    result = {"settings": settings, "standings": [each.to_dict() for each in standings]}
    if write_json(
        json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False), options["json_path"]
    ):
        return
    if errors == "proxy":
        click.echo("proxy: not all of this run was reviewed, so every mismatch counts as an error")
    _show(standings, options["control"])


def _show(standings: list[LeaderboardRow], control: str) -> None:
    from rich.console import Console

    from groundfault.render.page import make_table
    from groundfault.render.terminal import fit_table

    rows = [
        (
            each.world,
            each.policy,
            f"{each.budget:,}",
            f"{each.keys:.1f}",
            "control"
            if each.policy == control
            else _ends(f"{each.gain:+.1f}", each.gain_interval, "+.1f"),
            "" if each.ratio is None else _ends(f"{each.ratio:.2f}", each.ratio_interval, ".2f"),
            f"{each.tasks:.1f}",
            f"{each.rows:.1f}",
            f"{each.artefacts:.1f}",
        )
        for each in standings
    ]
    heads = (
        "landscape",
        "policy",
        "budget",
        "keys",
        "difference",
        "ratio",
        "tasks",
        "rows",
        "artefacts",
    )
    console = Console()
    console.print(fit_table(make_table("", "ttnnnnnnn", heads, rows), console.width))
    click.echo(
        f"means; difference and ratio are to {clean(control)} on the same landscapes, "
        "with 95% intervals"
    )


def _ends(value: str, ends: tuple[float, float] | None, form: str) -> str:
    return f"{value} [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else value
