"""``probe review``: people decide, blind, what the responses that were routed to them are."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.options import require_writable, write_json
from groundfault.errors import PlanError
from groundfault.render.words import clean, plural

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import Audit

_FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".json": "labelstudio"}
_HOWS = ("settled", "adjudicated", "disputed", "waiting")


@click.command()
@click.argument("runs", type=click.Path())
@click.option(
    "--reviewer", metavar="NAME", help="Who decides; needed but for --status and --agreement."
)
@click.option(
    "--adjudicate", is_flag=True, help="Decide what reviewers dispute, and you have not reviewed."
)
@click.option(
    "--export",
    metavar="FILE",
    help="Write what is left to decide as a sheet, to be filled in elsewhere.",
)
@click.option(
    "--format",
    type=click.Choice(["csv", "jsonl", "labelstudio"]),
    help="Of the sheet [by its name].",
)
@click.option(
    "--import", "sheet", metavar="FILE", help="Read a sheet that was filled in: all of it, or none."
)
@click.option("--status", is_flag=True, help="How far the review is.")
@click.option("--agreement", is_flag=True, help="How far reviewers agree, with 95% intervals.")
@click.option(
    "--unblind",
    is_flag=True,
    help="Show the hidden fields; later decisions are marked. Needs --reason.",
)
@click.option("--reason", metavar="TEXT", help="Why; it stays on record.")
@click.option("--store", metavar="FILE|URL", help="Where decisions are kept [reviews.db in RUNS].")
@click.option("--split", metavar="A,B", help="Deal the items to these reviewers, each item to one.")
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="What is said as JSON; - is standard output, alone.",
)
def review(runs: str, **given: Any) -> None:
    """Review blind the responses in RUNS that a machine could not call right, with hidden controls
    among them.

    You see task, prompt, response, expected answer and the answer that was read; not who answered,
    which policy asked, the signal, or what others say. Each answer is one key, and every decision
    is on disk before the next item; quit at any moment, and run the same command again to go on.
    Which items there are is sealed before the first decision.

    \b
    groundfault probe review runs/ --reviewer ana
    groundfault probe review runs/ --reviewer ben --export sheet.csv
    groundfault probe review runs/ --reviewer cy --adjudicate
    """
    from groundfault.probes.review.reviewed_runs import Audit

    _check(given)
    audit = Audit(runs, given["store"])
    if given["status"]:
        _tell(_status(audit), given["json_path"], _say_status)
    elif given["agreement"]:
        _tell(_agreement(audit), given["json_path"], _say_agreement)
    elif given["unblind"]:
        _tell(
            audit.unblind(given["reviewer"], given["reason"] or ""), given["json_path"], _say_hidden
        )
    else:
        _work(audit, given)


def _check(given: dict[str, Any]) -> None:
    acts = [name for name in ("export", "sheet", "status", "agreement", "unblind") if given[name]]
    if len(acts) > 1:
        named = " and ".join("--import" if name == "sheet" else f"--{name}" for name in acts[:2])
        raise PlanError(f"{named} do not go together: one at a time")
    looks = bool({"status", "agreement"} & set(acts))
    if not looks and not given["reviewer"]:
        raise PlanError("say who you are: --reviewer NAME")
    if given["json_path"] and not (looks or given["unblind"]):
        raise PlanError("--json goes with --status, --agreement or --unblind")
    if given["format"] and not given["export"]:
        raise PlanError("--format goes with --export")
    if given["reason"] and not given["unblind"]:
        raise PlanError("--reason goes with --unblind")
    if given["split"] and (acts and acts[0] != "export"):
        raise PlanError("--split is fixed with the first session or export")
    for name in ("export", "json_path"):
        require_writable(given[name])


def _work(audit: Audit, given: dict[str, Any]) -> None:
    """A session, or a sheet in its stead."""
    from groundfault.review import Session, open_items, sheets
    from groundfault.review.decision import check_name

    me = check_name(given["reviewer"])
    split = given["split"]
    queue = audit.seal([name.strip() for name in split.split(",")] if split else None)
    if given["export"]:
        format: Any = given["format"] or _FORMATS.get(Path(given["export"]).suffix)
        if format is None:
            raise PlanError("say --format csv, jsonl or labelstudio")
        left = open_items(queue, audit.decisions, me, adjudicate=given["adjudicate"])
        for place in sheets.write(left, given["export"], format):
            click.echo(f"wrote {place}")
        click.echo(f"{plural(len(left), 'item')}; fill in the answers and read them with --import")
    elif given["sheet"]:
        role: Any = "adjudicator" if given["adjudicate"] else "reviewer"
        mine = _may_decide(audit, me, given["adjudicate"])
        made = audit.store.add(
            sheets.read(given["sheet"], {item.id: item for item in mine}, me, role)
        )
        click.echo(f"kept {plural(len(made), 'decision')}")
    else:
        from groundfault.cli.reviewing import review as show

        show(Session(queue, audit.store, me, adjudicate=given["adjudicate"]))


def _may_decide(audit: Audit, me: str, adjudicate: bool) -> list[Any]:
    """Items that are open to this person, and those they decided before in the same role, which
    they may revise.
    """
    from groundfault.review import open_items

    queue, said = audit.queue, audit.decisions
    role = "adjudicator" if adjudicate else "reviewer"
    before = {d.item for d in said if d.reviewer == me and d.role == role}
    left = {item.id for item in open_items(queue, said, me, adjudicate=adjudicate)}
    return [item for item in queue.items if item.id in before | left]


# --------------------------------------------------------------------------------- --- what is told


def _tell(said: Any, path: str | None, say: Any) -> None:
    if not write_json(json.dumps(said, indent=1, ensure_ascii=False, allow_nan=False), path):
        say(said)


def _status(audit: Audit) -> dict[str, Any]:
    from groundfault.review.decision import latest

    queue, decisions = audit.queue, audit.decisions
    counted = latest(decisions)
    people = Counter((name, role) for _, name, role in counted)
    resolutions = audit.resolutions
    found = Counter[str](
        resolutions[item.id].how if item.id in resolutions else "waiting" for item in queue.items
    )
    return {
        "items": len(queue.items),
        "settings": queue.settings,
        "queue": queue.hash,
        "store": audit.store.place,
        "decisions": len(decisions),
        "revised": len(decisions) - len(counted),
        "unblinded": sum(d.unblinded for d in decisions),
        "reviewers": {
            name: count for (name, role), count in sorted(people.items()) if role == "reviewer"
        },
        "adjudicators": {
            name: count for (name, role), count in sorted(people.items()) if role == "adjudicator"
        },
        **{how: found[how] for how in _HOWS},
    }


def _say_status(said: dict[str, Any]) -> None:
    settings = said["settings"]
    among = f", split among {', '.join(settings['split'])}" if settings["split"] else ""
    each = plural(settings["reviewers"], "reviewer")
    click.echo(f"{plural(said['items'], 'item')} by {settings['unit']}, {each} each{clean(among)}")
    for role in ("reviewers", "adjudicators"):
        for name, count in said[role].items():
            click.echo(
                f"  {clean(name)}{' (adjudicator)' if role == 'adjudicators' else ''}: {plural(count, 'item')}"
            )
    click.echo(", ".join(f"{said[how]} {how}" for how in _HOWS))
    click.echo(f"{plural(said['decisions'], 'decision')}, {said['revised']} of them revised later")
    if said["unblinded"]:
        click.echo(f"{plural(said['unblinded'], 'decision')} made after unblinding, and marked")
    click.echo(f"kept in {clean(said['store'])}")


def _agreement(audit: Audit) -> dict[str, dict[str, dict[str, Any]]]:
    from groundfault.review import agreement

    found = agreement(audit.decisions, seed=audit.queue.seed)
    return {
        question: {
            name: {key: None if _is_nan(value) else value for key, value in asdict(measure).items()}
            for name, measure in measures.items()
        }
        for question, measures in found.items()
    }


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _say_agreement(said: dict[str, dict[str, dict[str, Any]]]) -> None:
    from rich.console import Console

    from groundfault.render.page import fitted
    from groundfault.render.probe_tables import made

    names = {
        "raw": "raw agreement",
        "kappa": "Cohen's kappa",
        "alpha": "Krippendorff's alpha",
        "ac1": "Gwet's AC1",
    }
    if not any(measures["raw"]["items"] for measures in said.values()):
        click.echo("no item was reviewed blind by two reviewers yet")
        return
    rows: list[tuple[str, ...]] = []
    reasons: dict[str, list[str]] = {}
    for question, measures in said.items():
        told = question.replace("_", " ")
        rows.append(
            (told, str(measures["raw"]["items"]), *(_cell(measures[name]) for name in names))
        )
        for name, full in names.items():
            if measures[name]["reason"]:
                reasons.setdefault(measures[name]["reason"], []).append(f"{full} of {told}")
    console = Console()
    console.print(
        fitted(made("", "tnnnnn", ("question", "items", *names.values()), rows), console.width)
    )
    for reason, where in reasons.items():
        click.echo(f"{reason} ({', '.join(where)})")
    click.echo("items that two or more reviewed blind; 95% intervals from a bootstrap over items")


def _cell(found: dict[str, Any]) -> str:
    if found["value"] is None:
        return "-"
    return f"{found['value']:.2f}" + (
        "" if found["low"] is None else f" [{found['low']:.2f}, {found['high']:.2f}]"
    )


def _say_hidden(said: list[dict[str, Any]]) -> None:
    for row in said:
        told = [
            f"{name} {row[name]}" for name in ("model", "policy", "seed", "query", "key", "signal")
        ]
        click.echo(clean(f"{row['item'][:12]}  {', '.join(told)}"))
    click.echo("unblinded: this is on record, and decisions from here on are marked")
