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


@contextmanager
def server() -> Iterator[str | None]:
    """The URL of a database to empty; None where there is no server, and none can be started.

    A server of our own listens on a socket in a folder of its own and on no port. PostgreSQL does
    not run as root; it runs as the user that Debian's package makes for it there."""
    if url := os.environ.get("GROUNDFAULT_TEST_POSTGRES"):
        yield url
        return
    programs = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    initdb = shutil.which("initdb") or (str(programs[-1]) if programs else None)
    if initdb is None:
        yield None
        return
    owner = "postgres" if os.name == "posix" and os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="groundfault-pg-") as home:
        if owner:
            shutil.chown(home, owner)
        data, control = f"{home}/data", str(Path(initdb).with_name("pg_ctl"))
        options = f"-k {home} -c listen_addresses= -c fsync=off"
        for command in (
            [initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
            [
                control,
                "-D",
                data,
                "-w",
                "-t",
                str(_START_SECONDS),
                "-o",
                options,
                "-l",
                f"{home}/log",
                "start",
            ],
        ):
            subprocess.run(command, user=owner, cwd=home, check=True, stdout=subprocess.DEVNULL)
        try:
            yield f"postgresql+psycopg://postgres@/postgres?host={home}"
        finally:
            subprocess.run(
                [control, "-D", data, "-m", "immediate", "stop"], user=owner, cwd=home, check=False
            )
