"""A real PostgreSQL: at the URL in the environment, or started from its programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_START_SECONDS = 60


class OwnServer:
    """A server of our own, which listens on a socket in a folder of its own and on no port.

    PostgreSQL does not run as root; it runs as the user that Debian's package makes for it there.

    Parameters
    ----------
    home : path
        A folder of this server.
    initdb : str
        The program; the others are beside it.
    """

    def __init__(self, home: str, initdb: str) -> None:
        self.home, self._initdb = home, initdb
        self.url = f"postgresql+psycopg://postgres@/postgres?host={home}"
        self.socket = f"{home}/.s.PGSQL.5432"
        self._owner = "postgres" if os.name == "posix" and os.geteuid() == 0 else None
        if self._owner:
            shutil.chown(home, self._owner)
        words = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        self._run(initdb, "-D", f"{home}/data", *words)

    def start(self) -> None:
        options = f"-k {self.home} -c listen_addresses= -c fsync=off"
        words = ["-w", "-t", str(_START_SECONDS), "-o", options, "-l", f"{self.home}/log"]
        self._control(*words, "start")

    def crash(self) -> None:
        """End all its processes at once, as they stand."""
        self._control("-m", "immediate", "stop")

    def _control(self, *words: str) -> None:
        self._run(str(Path(self._initdb).with_name("pg_ctl")), "-D", f"{self.home}/data", *words)

    def _run(self, *command: str) -> None:
        quiet = subprocess.DEVNULL
        subprocess.run(command, user=self._owner, cwd=self.home, check=True, stdout=quiet)


@contextmanager
def own_server() -> Iterator[OwnServer | None]:
    """A server that a test may crash; None where its programs are not installed."""
    programs = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    initdb = shutil.which("initdb") or (str(programs[-1]) if programs else None)
    if initdb is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="groundfault-pg-") as home:
        running = OwnServer(home, initdb)
        running.start()
        try:
            yield running
        finally:
            running.crash()


@contextmanager
def server() -> Iterator[str | None]:
    """The URL of a database to empty; None where there is no server, and none can be started."""
    if url := os.environ.get("GROUNDFAULT_TEST_POSTGRES"):
        yield url
        return
    with own_server() as running:
        yield running and running.url
