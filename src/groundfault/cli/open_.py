"""``open``: the workbench, in the browser, and the options of commands that serve it."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import click

from groundfault.cli import shared
from groundfault.cli.command import Options, command
from groundfault.cli.reading import name_ledger, split_names
from groundfault.cli.settings import Flag, call, derive_options, own_options
from groundfault.errors import GroundfaultError, InputError, PlanError

if TYPE_CHECKING:
    from groundfault.workbench.opened_report import OpenedReport


def serve_bench(
    bench: OpenedReport,
    *,
    port: Annotated[int | None, click.IntRange(1, 65535)] = None,
    no_browser: bool = False,
    host: str = "127.0.0.1",
    unix_socket: str | None = None,
    root_path: str = "",
    allow_host: tuple[str, ...] = (),
    err: bool = False,
) -> None:
    """Serve a workbench until interrupted; its address is printed, and opened.

    Server
    ------
    port : N
        Port to listen on.
    no_browser
        Print the address, and open no browser.
    host : ADDRESS
        Address of this machine to listen at; others than loopback open it to the network.
    unix_socket : FILE
        Listen at this file instead.
    root_path : PATH
        The prefix that a proxy strips.
    allow_host : NAME
        A further name that browsers may call it by, such as a proxy's; repeatable.

    Other Parameters
    ----------------
    err : bool
        Print the address to standard error.

    Raises
    ------
    MissingExtraError
        If the extra ``web`` is not installed.
    InputError
        If it cannot listen there.
    """
    from groundfault.workbench.serving import serve

    def announce(address: str, tunnel: str) -> None:
        click.echo(address, err=err)
        if tunnel:
            click.echo(f"from another machine: {tunnel}", err=True)
        click.echo("Ctrl-C ends it", err=True)
        sys.stdout.flush()
        if not no_browser and address.startswith("http"):
            click.launch(address)

    serve(
        bench,
        host=host,
        port=port,
        unix_socket=unix_socket,
        root_path=root_path,
        allow_hosts=allow_host,
        announce=announce,
        complain=lambda why: click.echo(f"examples and rows cannot be shown: {why}", err=True),
    )


def serve_desk(options: Options, desk: OpenedReport, *, quiet: bool = False) -> None:
    """Serve a page where a person labels until Ctrl-C, which is the one way to end a server.

    Parameters
    ----------
    options : dict
        Of a command with `server_options`.
    desk : OpenedReport
        The place of the cases, and a desk.
    quiet : bool
        Whether standard output is left to the result.
    """
    with suppress(KeyboardInterrupt):
        call(serve_bench, options, desk, err=quiet)


server_options = derive_options(serve_bench)
"""Where the workbench listens, and by which names."""


@command("open", first="evidence reviewer adjudicate port no_browser ledger no_ledger")
@shared.moved_option
@own_options
@shared.store_option
@server_options
def open_(
    path: str,
    *,
    baseline: str | None = None,
    reviewer: str | None = None,
    adjudicate: bool = False,
    split: str | None = None,
    ledger: Annotated[str | None, Flag(in_file=True)] = None,
    no_ledger: bool = False,
    seal: str = "",
    options: Options,
) -> None:
    """Show a report and its examples in the browser.

    PATH is a folder of audit --out. You see the failure modes with their examples, and can try
    rules of your own; held-out rows stay hidden. PATH may also be logs of an evaluation tool, which
    are audited first; a case; a folder of probe runs, to review their answers blind; a folder of
    taxonomy fit; or the ledger of a sequential audit, to watch it. The printed address works in one
    tab, once, and only on this machine.

    \b
    groundfault open report/
    groundfault open report/ --port 9000 --no-browser
    groundfault open report/ --baseline last-week/
    groundfault open logs/2026-11-20_gsm8k.eval
    groundfault open case/
    groundfault open runs/ --reviewer ana
    groundfault open taxonomy/
    groundfault open groundfault-ledger.db

    Input
    -----
    baseline : FILE
        Earlier report, to see what changed since.

    Review
    ------
    reviewer : NAME
        Your name, to review; without it, see the state of the review.
    adjudicate
        Decide items that reviewers dispute.
    split : A,B
        Divide the items among these reviewers.

    Output
    ------
    ledger : FILE|URL
        Record of tried rules and looks at held-out rows; default the report's own ledger,
        $GROUNDFAULT_LEDGER, or groundfault-ledger.db.
    no_ledger
        Record nothing; the pages say so.
    seal : HEX
        Seal of the sequential audit to watch.
    """
    from groundfault.workbench.opened_report import open_place
    from groundfault.workbench.serving import require_web

    book = name_ledger(ledger, no_ledger)
    require_web()
    if adjudicate and not reviewer:
        raise PlanError("say who adjudicates: --reviewer NAME")
    review = {
        "reviewer": reviewer,
        "adjudicate": adjudicate,
        "split": split_names(split) or None,
        "store": options["store"],
    }
    evidence = {"evidence": options["evidence"] or None, "baseline": baseline}
    with TemporaryDirectory() as folder:
        try:
            bench = open_place(path, review, evidence, book, seal)
        except InputError as error:
            bench = open_log(path, folder, book, error)
        call(serve_bench, options, bench)


def open_log(path: str, folder: str, ledger: str | bool | None, why: InputError) -> OpenedReport:
    """Audit logs of an evaluation tool, and serve the report until you stop.

    Parameters
    ----------
    path : str
    folder : path
        Where the report is put.
    ledger : str, bool or None
        Where the look at the outcomes is recorded.
    why : InputError
        Raised where there are no logs.
    """
    from groundfault.auditing.flow import audit
    from groundfault.core.evidence import Evidence
    from groundfault.workbench.opened_report import OpenedReport

    try:
        evidence = Evidence.from_logs(path)
    except GroundfaultError:
        raise why from None
    audit(evidence, ledger=ledger).write(folder)
    return OpenedReport.of_report(Path(folder), evidence=path, ledger=ledger)
