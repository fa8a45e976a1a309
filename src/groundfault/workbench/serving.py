"""Serving: a socket on this machine, the addresses that are printed, and the browser."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.base.ledger import name_user
from groundfault.errors import GroundfaultError, InputError, MissingExtraError, PlanError

if TYPE_CHECKING:
    from groundfault.workbench.opened_report import OpenedReport

PORT = 8457
"""Where the workbench listens by default, if that is free."""


def require_web() -> None:
    """Raise `MissingExtraError` where the libraries of the extra ``web`` are not there."""
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise MissingExtraError("the workbench needs its server: pip install 'groundfault[web]'")


def serve(
    bench: OpenedReport,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    unix_socket: str | None = None,
    root_path: str = "",
    allow_hosts: tuple[str, ...] = (),
    announce: Callable[[str, str], None],
    complain: Callable[[str], None],
) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    bench : OpenedReport
    host : str
        An address of this machine; others than loopback open it to the network.
    port : int, optional
        Left out, 8457 or, where that is in use, any that is free.
    unix_socket : str, optional
        A file to listen at instead, for a proxy on the same machine.
    root_path : str
        The prefix that a proxy puts before every path.
    allow_hosts : tuple of str
        Further names that requests may address.
    announce : callable
        Takes the address with its token, and a line that says how to get there from elsewhere.
    complain : callable
        Takes why no rows can be shown, where they cannot.

    Raises
    ------
    MissingExtraError
        If the extra ``web`` is not installed.
    InputError
        If it cannot listen there.
    """
    require_web()
    import uvicorn

    from groundfault.workbench.app import make_app
    from groundfault.workbench.auth import LOOPBACK, TOKEN, Access
    from groundfault.workbench.connections import bound_connections

    if root_path and not root_path.startswith("/"):
        raise PlanError(f"--root-path is a path such as /audits, not {root_path!r}")
    root_path = root_path.rstrip("/")
    with _listen_at_file(unix_socket) if unix_socket else _listen(host, port) as listener:
        number = 0 if unix_socket else int(listener.getsockname()[1])
        names = frozenset({*LOOPBACK, *allow_hosts, *({host} - {"0.0.0.0", "::"})})
        access = Access(hosts=names)
        config = uvicorn.Config(
            make_app(bench, access),
            root_path=root_path,
            log_level="warning",
            access_log=False,
            server_header=False,
            # a header that anybody can send must not say where a request is from
            proxy_headers=False,
            **bound_connections(),
        )
        # before anybody asks: a large file takes seconds
        threading.Thread(target=_read_ahead, args=(bench, complain), daemon=True).start()
        path = f"{root_path}/#{TOKEN}={access.token}"
        shown = f"[{host}]" if ":" in host else host
        if unix_socket:
            announce(f"unix:{unix_socket} {path}", "")
        else:
            announce(f"http://{shown}:{number}{path}", _name_tunnel(number))
        uvicorn.Server(config).run(sockets=[listener])


def _read_ahead(bench: OpenedReport, complain: Callable[[str], None]) -> None:
    """Read the rows; print a fault in them here, and on each page that asks for them."""
    try:
        if bench.report is not None:
            _ = bench.rows
    except GroundfaultError as error:
        complain(str(error))


@contextmanager
def _listen_at_file(place: str) -> Iterator[socket.socket]:
    """Listen at a Unix socket for this user alone; its file goes in the end."""
    with socket.socket(socket.AF_UNIX) as listener:
        # nobody can connect before it listens, which the server makes it do
        try:
            listener.bind(place)
            Path(place).chmod(0o600)
        except OSError as error:
            raise InputError(f"cannot listen at {place}: {error.strerror}") from None
        try:
            yield listener
        finally:
            Path(place).unlink(missing_ok=True)


def _listen(host: str, port: int | None) -> socket.socket:
    """Listen at a port; without a number, at the usual port or a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = (PORT, 0) if port is None else (port,)
    for number in ports:
        try:
            return socket.create_server((host, number), family=family)
        except OSError as error:
            trouble = error.strerror or str(error)
    raise InputError(f"cannot listen at {host}, port {ports[-1]}: {trouble}; choose another")


def _name_tunnel(port: int) -> str:
    """Return the command that reaches this machine's port from another one."""
    return f"ssh -L {port}:127.0.0.1:{port} {name_user()}"
