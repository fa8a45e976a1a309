"""``open``: the workbench, in the browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from groundfault.base.ledgers import DEFAULT, VARIABLE
from groundfault.cli.command import INPUT, OUTPUT, GroupedCommand, option

_SERVER = "Server"


@click.command("open", cls=GroupedCommand, first="evidence port no_browser ledger no_ledger")
@click.argument("report", type=click.Path())
@option(
    "--evidence", metavar="FILE", group=INPUT, help="Where the evidence is now, if it has moved."
)
@option(
    "--port", type=click.IntRange(1, 65535), group=_SERVER, metavar="N", help="Where to listen."
)
@option("--no-browser", is_flag=True, group=_SERVER, help="Print the address alone.")
@option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    group=_SERVER,
    help="Address of this machine to listen at; others than loopback open it to the network.",
)
@option("--unix-socket", metavar="FILE", group=_SERVER, help="Listen at this file instead.")
@option("--root-path", default="", metavar="PATH", group=_SERVER, help="What a proxy strips.")
@option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    group=_SERVER,
    help="A further name that browsers may call it by, such as a proxy's; repeatable.",
)
@option(
    "--ledger",
    metavar="FILE|URL",
    group=OUTPUT,
    help="Where tried rules and openings are recorded; default the report's own ledger, "
    f"${VARIABLE}, or {DEFAULT}.",
)
@option("--no-ledger", is_flag=True, group=OUTPUT, help="Record nothing; the pages say so.")
def open_(report: str, no_browser: bool, **options: Any) -> None:
    """Look at the failures of REPORT in the browser.

    REPORT is a folder that audit --out wrote. The workbench shows the failure modes with their
    examples, counts rules that you try on the discovery rows, and keeps held-out outcomes closed.
    The printed address opens it once, in one browser; it listens on this machine alone.

    \b
    groundfault open report/
    groundfault open report/ --port 9000 --no-browser
    """
    from groundfault.errors import PlanError
    from groundfault.workbench.serving import require_web, serve

    if options["no_ledger"] and options["ledger"]:
        raise PlanError("--no-ledger does not go with --ledger")
    require_web()
    from groundfault.workbench.bench import Bench

    ledger = None if options["no_ledger"] else options["ledger"] or True
    bench = Bench.of_report(Path(report), evidence=options["evidence"], ledger=ledger)

    def announce(address: str, tunnel: str) -> None:
        click.echo(address)
        if tunnel:
            click.echo(f"from another machine: {tunnel}", err=True)
        click.echo("Ctrl-C ends it", err=True)
        sys.stdout.flush()
        if not no_browser and address.startswith("http"):
            click.launch(address)

    names = ("host", "port", "unix_socket", "root_path")
    settings = {name: options[name] for name in names}
    serve(bench, allow_hosts=options["allow_host"], announce=announce, **settings)
