"""The options of commands that open the workbench, and how its address is told."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.command import apply, option

if TYPE_CHECKING:
    from groundfault.workbench.opened_report import Bench

_server = partial(option, group="Server")

server_options = apply(
    [
        _server("--port", type=click.IntRange(1, 65535), metavar="N", help="Where to listen."),
        _server("--no-browser", is_flag=True, help="Print the address alone."),
        _server(
            "--host",
            default="127.0.0.1",
            show_default=True,
            metavar="ADDRESS",
            help="Address of this machine to listen at; others than loopback open it to the "
            "network.",
        ),
        _server("--unix-socket", metavar="FILE", help="Listen at this file instead."),
        _server("--root-path", default="", metavar="PATH", help="What a proxy strips."),
        _server(
            "--allow-host",
            multiple=True,
            metavar="NAME",
            help="A further name that browsers may call it by, such as a proxy's; repeatable.",
        ),
    ]
)
"""Where the workbench listens, and by which names."""


def serve_bench(bench: Bench, options: dict[str, Any], *, err: bool = False) -> None:
    """Serve a workbench until interrupted; its address is printed, and opened.

    Parameters
    ----------
    bench : Bench
    options : dict
        Of a command with `server_options`.
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
        if not options["no_browser"] and address.startswith("http"):
            click.launch(address)

    def complain(trouble: str) -> None:
        click.echo(f"examples and rows cannot be shown: {trouble}", err=True)

    names = ("host", "port", "unix_socket", "root_path")
    settings = {name: options[name] for name in names}
    hosts = options["allow_host"]
    serve(bench, allow_hosts=hosts, announce=announce, complain=complain, **settings)
