"""A workbench as the command line serves it: a process that may be killed at any of its steps."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from nursery import Nursery, kill

MODULES = (
    "groundfault.workbench.app",
    "groundfault.workbench.screens.review",
    "groundfault.workbench.opened_report",
    "uvicorn.protocols.http.h11_impl",
    "jinja2",
)
_SECONDS = 60


class KillableServer:
    """One workbench after the other on the same place; those that were killed are started again.

    Parameters
    ----------
    nursery : Nursery
    arguments : sequence of str
        The command that serves, without ``groundfault``.
    folder : path
        Where it runs.
    """

    def __init__(self, nursery: Nursery, arguments: Sequence[str], folder: Path) -> None:
        self._nursery, self._arguments, self._folder = nursery, arguments, folder
        self._process, self.starts = 0, 0

    def start(self, step: int = 0) -> str:
        """Start it; the address with its token, or "" where it was killed before it had one.

        Parameters
        ----------
        step : int
            The change to its folder, or statement of its database, before which it is killed.
        """
        self.kill()
        self.starts += 1
        output = self._folder / f"output-{self.starts}"
        words = [*self._arguments, "--no-browser"]
        self._process = self._nursery.start(words, self._folder, output, step=step)
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            text = output.read_text() if output.exists() else ""
            if match := re.search(r"http://\S+", text):
                return match[0]
            if not Path(f"/proc/{self._process}").exists():
                self._nursery.wait()
                self._process = 0
                assert step, text
                return ""
            time.sleep(0.01)
        raise AssertionError(f"no address after {_SECONDS} s: {text}")

    def kill_after(self, seconds: float) -> None:
        """Kill it at a moment, whatever it is at then."""
        threading.Timer(seconds, kill, [self._process]).start()

    def end(self, number: signal.Signals) -> int:
        """Ask it to end by a signal; its exit status."""
        os.kill(self._process, number)
        self._process = 0
        return self._nursery.wait()

    def kill(self) -> None:
        """Kill it as it stands; nothing happens where it is not there any more."""
        if self._process:
            kill(self._process)
            self._nursery.wait()
        self._process = 0


@contextmanager
def enter(address: str) -> Iterator[httpx.Client]:
    """A visitor who has shown the token."""
    home, token = address.split("/#token=")
    with httpx.Client(base_url=home, headers={"origin": home}, timeout=30) as client:
        secret = client.post("/enter", headers={"x-groundfault-secret": token}).text
        client.headers["x-groundfault-secret"] = secret
        yield client
