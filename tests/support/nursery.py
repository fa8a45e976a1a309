"""Commands as processes that can be killed: at a moment, or at one of their steps; or whose disk
fails.

A process that has imported everything forks a child for each command, so that a kill hits the
command at work and not a start of Python.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_PROGRAM = """
import ctypes, json, os, signal, sys
from importlib import import_module
for name in json.loads(sys.argv[1]):
    import_module(name)
from groundfault.cli.main import main
from groundfault.base.database import Connection

# what changes something in the folder of the command, each about to happen
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "sqlite3.connect"}
steps = 0

def step():
    global steps
    steps += 1
    if steps == job["step"]:
        os.kill(os.getpid(), signal.SIGKILL)

def hook(name, arguments):
    if name in CHANGES:
        step()
    elif name == "open" and isinstance(arguments[0], str):
        written = arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if written and os.path.abspath(arguments[0]).startswith(job["folder"]):
            step()

def work():
    os.setsid()
    os.chdir(job["folder"])
    for number, place in enumerate((job["terminal"], job["output"], job["output"])):
        os.dup2(os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)
    sys.argv = ["groundfault", *job["arguments"]]
    sys.addaudithook(hook)
    execute = Connection.execute
    Connection.execute = lambda *words: step() or execute(*words)
    disk = ctypes.CDLL(os.environ["LD_PRELOAD"]) if job["fault"] else None
    if disk is not None:
        disk.arm(job["folder"].encode(), *job["fault"])
    status = 0
    try:
        main()
    except SystemExit as end:
        status = end.code or 0
    counted = steps if disk is None else disk.count()
    sys.stdout.flush()
    with open(job["output"], "a") as file:
        file.write(f"\\n{counted}")
    os._exit(status)

print("ready", flush=True)
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        work()
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Nursery:
    """Starts commands, one at a time.

    Parameters
    ----------
    modules : sequence of str
        What the commands import, beside the command line itself.
    settings : mapping, optional
        More variables of their environment.
    """

    def __init__(self, modules: Sequence[str], **settings: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(list(modules))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # bytecode written by the first command would count as its steps, and those of no other
            env={
                **os.environ,
                "POLARS_MAX_THREADS": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
                **settings,
            },
        )
        assert self._read() == "ready"

    def start(
        self,
        arguments: Sequence[str],
        folder: Path,
        output: Path,
        *,
        step: int = 0,
        fault: tuple[int, int, bool] | None = None,
        terminal: str = os.devnull,
    ) -> int:
        """Start a command; the number of its process.

        Parameters
        ----------
        arguments : sequence of str
            Words after ``groundfault``.
        folder : path
            Where it runs.
        output : path
            What it prints is written here; after its end, on a last line, how many steps it took: a
            step is a change to the folder, or a statement or a commit to a database.
        step : int
            The step before which it is killed; 0 lets it live.
        fault : tuple of (int, int, bool), optional
            Which change to the disk below the folder fails, 0 for none; by which error number; and
            whether all later ones fail with it. The last line then is the number of changes. Needs
            `build_disk` in the environment.
        terminal : str
            What it reads from.
        """
        job: dict[str, Any] = {
            "arguments": list(arguments),
            "folder": str(folder),
            "output": str(output),
            "step": step,
            "fault": fault,
            "terminal": terminal,
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self._read())

    def wait(self) -> int:
        """The exit status of the command; -9 of one that was killed."""
        return int(self._read())

    def stop(self) -> None:
        self._process.communicate()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def build_disk(folder: Path) -> dict[str, str]:
    """Compile the disk that fails; what the environment of a `Nursery` needs for it."""
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def kill(process: int) -> None:
    """Kill a process; nothing happens where it was done before."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
