"""``probe``: targeted tests from a frozen task bank and a grammar of prompt components."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from groundfault.cli.options import require_writable, write_json
from groundfault.cli.probe_arena import arena
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


probe.add_command(run)
probe.add_command(review)
probe.add_command(report)
probe.add_command(release)
probe.add_command(arena)
