"""``probe``: targeted tests from a frozen task bank and a grammar of prompt components."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from groundfault.cli.options import require_writable, write_json
from groundfault.cli.probe_report import release, report
from groundfault.cli.probe_review import review
from groundfault.cli.probe_run import run
from groundfault.errors import InputError
from groundfault.files import write_text


@click.group()
def probe() -> None:
    """Targeted tests: the same task under other wordings that must not change its answer."""


@probe.command()
@click.argument("folder", type=click.Path())
@click.option("--generated", type=int, metavar="N", help="A bank of N tasks made from templates, not the 18 by hand.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of a generated bank.")
def init(folder: str, generated: int | None, seed: int) -> None:
    """Write an example bank, grammar and config, with comments, into FOLDER.

    \b
    groundfault probe init bank/
    groundfault probe init big/ --generated 900 --seed 1
    """
    from groundfault.probes import generate
    from groundfault.probes.bank import SHIPPED

    require_writable(folder, directory=True)
    places = [Path(folder) / name for name in ("bank.toml", "grammar.toml", "config.toml")]
    taken = [place for place in places if place.exists()]
    if taken:
        raise InputError(f"{taken[0]} is there already; choose another folder, or take it away first")
    if generated is None:
        write_text(places[0], (SHIPPED / "bank.toml").read_text(encoding="utf-8"))
    else:
        generate(generated, seed).write(places[0])
    for place in places[1:]:
        write_text(place, (SHIPPED / place.name).read_text(encoding="utf-8"))
    for place in places:
        click.echo(f"wrote {place}")
    click.echo(f"next: groundfault probe check {folder}")


@probe.command()
@click.argument("folder", type=click.Path())
@click.option("--samples", type=click.IntRange(0), default=3, show_default=True, help="Prompts to show.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Which prompts are shown.")
@click.option("--card", metavar="FILE", help="Write the bank card as Markdown.")
@click.option("--json", "json_path", metavar="FILE|-", help="Write the check as JSON; - is standard output, alone.")
def check(folder: str, samples: int, seed: int, card: str | None, json_path: str | None) -> None:
    """Render every prompt of the bank and grammar in FOLDER, and show some; exit status 1 if one must not be asked.

    Structural validity is what a machine can tell: length, the question's wording, filled slots, and no component that
    gives the answer away. Whether a prompt still means the same is for a person to say.
    """
    from groundfault.probes import Bank, Grammar
    from groundfault.probes.checking import check as run
    from groundfault.render import probes as render

    require_writable(card)
    require_writable(json_path)
    home = Path(folder)
    found = run(Bank.load(home / "bank.toml"), Grammar.load(home / "grammar.toml"), samples=samples, seed=seed)
    if card:
        write_text(Path(card), render.card(found))
    text = json.dumps(found.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if not write_json(text, json_path):
        for line in render.lines(found):
            click.echo(line)
    sys.exit(0 if found.passed else 1)


@probe.command()
@click.option("--policy", "policies", metavar="NAME", multiple=True, help="Only this policy; repeatable [all].")
@click.option("--world", "worlds", metavar="NAME", multiple=True, help="Only this kind of landscape; repeatable [all].")
@click.option("--control", default="stratified", show_default=True, help="What the others are compared with.")
@click.option("--budget", type=int, default=192, show_default=True, help="Queries of each run.")
@click.option("--batch", type=int, default=3, show_default=True, help="Queries between two looks at the signals.")
@click.option("--landscapes", type=int, default=40, show_default=True, help="Of each kind, at least 20.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random act.")
def arena(
    policies: tuple[str, ...],
    worlds: tuple[str, ...],
    control: str,
    budget: int,
    batch: int,
    landscapes: int,
    seed: int,
) -> None:
    """Compare policies by the unique failing prompts they find on simulated landscapes, with matched budgets.

    Each line gives unique audited keys, the paired difference from the control with its 95% interval, distinct tasks,
    confirmed rows (repeats counted again), and artefact keys that an audit would turn down.
    """
    from groundfault.probes.arena import WORLDS
    from groundfault.probes.arena import arena as run
    from groundfault.probes.policies import POLICIES

    settings: dict[str, Any] = {"control": control, "budget": budget, "batch": batch}
    settings |= {"landscapes": landscapes, "seed": seed}
    head = f"{'landscape':<21}{'policy':<18}{'keys':>6}{'difference':>24}{'tasks':>7}{'rows':>6}{'artefacts':>11}"
    for world in worlds or tuple(WORLDS):
        found = run(policies or tuple(POLICIES), [world], **settings)
        click.echo(head, nl=bool(head))  # once, and not above an error
        head = ""
        for each in found:
            gain = f"{each.gain:+.1f} [{each.low:+.1f}, {each.high:+.1f}]" if each.policy != control else "control"
            numbers = f"{each.tasks:>7.1f}{each.rows:>6.1f}{each.artefacts:>11.1f}"
            click.echo(f"{each.world:<21}{each.policy:<18}{each.keys:>6.1f}{gain:>24}{numbers}")


probe.add_command(run)
probe.add_command(review)
probe.add_command(report)
probe.add_command(release)
