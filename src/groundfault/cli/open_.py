"""``open``: the workbench, in the browser."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundfault.base.ledgers import DEFAULT, VARIABLE
from groundfault.cli.command import INPUT, OUTPUT, GroupedCommand, option
from groundfault.cli.options import store_option
from groundfault.cli.server_options import serve_bench, server_options
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.workbench.opened_report import Bench

_review = partial(option, group="Review")


@click.command(
    "open",
    cls=GroupedCommand,
    first="evidence reviewer adjudicate port no_browser ledger no_ledger",
)
@click.argument("place", metavar="PATH", type=click.Path())
@option(
    "--evidence",
    multiple=True,
    metavar="FILE",
    group=INPUT,
    help="Where the evidence is now, if it has moved; repeatable, in the order of the report's "
    "sources.",
)
@option(
    "--baseline", metavar="FILE", group=INPUT, help="Earlier report, to see what changed since."
)
@_review("--reviewer", metavar="NAME", help="Your name, to review; without it, see how far it is.")
@_review("--adjudicate", is_flag=True, help="Decide items that reviewers dispute.")
@_review("--split", metavar="A,B", help="Divide the items among these reviewers.")
@store_option
@server_options
@option(
    "--ledger",
    metavar="FILE|URL",
    group=OUTPUT,
    help="Where tried rules and openings are recorded; default the report's own ledger, "
    f"${VARIABLE}, or {DEFAULT}.",
)
@option("--no-ledger", is_flag=True, group=OUTPUT, help="Record nothing; the pages say so.")
@option("--seal", default="", metavar="HEX", help="Seal of the sequential audit to watch.")
def open_(place: str, **options: Any) -> None:
    """Look at a report, a case, a taxonomy, a review or a sequential audit in the browser.

    PATH is a folder that audit --out wrote: the workbench shows the failure modes with their
    examples, counts rules that you try on the discovery rows, and keeps held-out outcomes closed.
    Or a case, to see where it stands, and its audit; or a folder of probe runs, to review their
    responses blind and read what was found; or a folder that taxonomy fit wrote; or the ledger of a
    sequential audit, to watch it (sequential run --label browser labels). The printed address opens
    one tab, once; it listens on this machine alone.

    \b
    groundfault open report/
    groundfault open report/ --port 9000 --no-browser
    groundfault open report/ --baseline last-week/
    groundfault open case/
    groundfault open runs/ --reviewer ana
    groundfault open taxonomy/
    groundfault open groundfault-ledger.db
    """
    from groundfault.workbench.serving import require_web

    if options["no_ledger"] and options["ledger"]:
        raise PlanError("--no-ledger does not go with --ledger")
    require_web()
    serve_bench(_open(place, options), options)


def _open(place: str, options: dict[str, Any]) -> Bench:
    """What lies at a place."""
    from groundfault.workbench.opened_report import Bench
    from groundfault.workbench.openers import (
        holds_case,
        holds_runs,
        holds_taxonomy,
        open_case,
        open_record,
        open_review,
        open_taxonomy,
        require_something,
    )

    path = Path(place)
    if holds_runs(path):
        if options["adjudicate"] and not options["reviewer"]:
            raise PlanError("say who adjudicates: --reviewer NAME")
        split = options["split"]
        return open_review(
            path,
            options["reviewer"],
            adjudicate=options["adjudicate"],
            split=[name.strip() for name in split.split(",")] if split else None,
            store=options["store"],
        )
    if options["reviewer"] or options["adjudicate"] or options["split"] or options["store"]:
        raise PlanError(f"{place} holds no probe runs, and reviews are of their responses")
    if holds_taxonomy(path):
        return open_taxonomy(path)
    if holds_case(path):
        if options["evidence"] or options["ledger"] or options["baseline"]:
            raise PlanError("a case has its rows and its ledger: name its folder alone")
        return open_case(path, record=not options["no_ledger"])
    if "://" in place or path.suffix == ".db":
        return open_record(place, options["seal"])
    require_something(path)
    ledger = None if options["no_ledger"] else options["ledger"] or True
    return Bench.of_report(
        path, evidence=options["evidence"] or None, ledger=ledger, baseline=options["baseline"]
    )
