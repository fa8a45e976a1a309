"""`kill -9` at any moment of six commands, and the same command again: nothing is lost, nothing
comes twice, and all files are those of a run that nobody killed.

Half of the kills come at a moment of the command's duration, half just before one of its steps: a
change to its folder, or a statement or a commit to a database.
"""

from __future__ import annotations

import os
import pty
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection

import pytest
from jobs import (
    GOLDEN,
    MODULES,
    Answers,
    Audit,
    Import,
    Job,
    Probe,
    Review,
    ReviewSheet,
    Sequential,
    Taxonomy,
    make_runs,
    read_folder,
)
from network import Network
from nursery import Nursery, kill

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and kill -9")

SUPPORT = Path(__file__).parents[1] / "support"


@dataclass
class Tally:
    """What came of the kills of one command.

    Attributes
    ----------
    kills, stories : int
        Kills, and runs that were brought to their end after one or more of them, or before.
    seconds : float
        All of it.
    steps : int
    duration : float
        Steps and seconds of a run that nobody kills.
    hidden_files : int
        Temporary files ``.NAME.xxxx.tmp`` that kills left behind.
    """

    kills: int = 0
    stories: int = 0
    seconds: float = 0.0
    steps: int = 0
    duration: float = 0.0
    hidden_files: int = 0


@dataclass
class Attack:
    """Kills one command again and again."""

    job: Job
    nursery: Nursery
    folder: Path
    tally: Tally = field(default_factory=Tally)

    @property
    def home(self) -> Path:
        """The same for every story: some outputs name their folder."""
        return self.folder / "home"

    def kill(self, times: int) -> Tally:
        start, rng = time.monotonic(), random.Random(times)
        self._begin()
        self._finish(self._run())
        whole, files = self.job.read(self.home), set(read_folder(self.home))
        self.job.check_at_end(self.home, 0)
        while self.tally.kills < times:
            self._begin()
            kills = self._kill_until_enough(min(rng.randint(1, 4), times - self.tally.kills))
            assert self.job.read(self.home) == whole, "the same bytes"
            self.job.check_at_end(self.home, kills)
            remains = {Path(name).name for name in set(read_folder(self.home)) - files}
            assert all(re.fullmatch(r"\..+\.tmp", name) for name in remains), remains
            self.tally.hidden_files += len(remains)
            self.tally.stories += 1
        self.tally.seconds = time.monotonic() - start
        return self.tally

    def _begin(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        self.job.prepare(self.home)

    def _kill_until_enough(self, most: int) -> int:
        """Kill so many times, and let it come to its end; it may end before."""
        for kills in range(most):
            moment = self.tally.kills * GOLDEN % 1
            start = time.monotonic()
            if self.tally.kills % 2:
                status = self._run(step=1 + int(moment * self.tally.steps))
            else:
                status = self._run(seconds=moment * self.tally.duration)
            if status != -9:
                if not kills:  # the machine is quicker than it was at first
                    self.tally.duration = min(self.tally.duration, time.monotonic() - start)
                self._finish(status)
                return kills
            self.tally.kills += 1
            self.job.check_after_kill(self.home)
        self._finish(self._run())
        return most

    def _run(self, step: int = 0, seconds: float = float("inf")) -> int:
        output = self.folder / "output.txt"
        output.unlink(missing_ok=True)
        master, slave = pty.openpty()
        terminal = os.ttyname(slave) if self.job.terminal else os.devnull
        words = self.job.arguments.split()
        start = time.monotonic()
        child = self.nursery.start(words, self.home, output, step=step, terminal=terminal)
        while is_running(child):
            if time.monotonic() - start > seconds:
                kill(child)
                break
            if self.job.terminal:
                os.write(master, b"y")
            time.sleep(0.002)
        if seconds == float("inf"):
            self.tally.duration = self.tally.duration or time.monotonic() - start
        os.close(master)
        os.close(slave)
        return self.nursery.wait()

    def _finish(self, status: int) -> None:
        output = (self.folder / "output.txt").read_text()
        assert status == 0, output
        # of the last whole run: a kill at a step that never comes would be tried for ever
        self.tally.steps = int(output.splitlines()[-1])


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    pytest.importorskip("openai", reason="pip install 'groundfault[openai]'")
    server = subprocess.Popen(
        [sys.executable, str(SUPPORT / "model_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert server.stdout is not None
    port = int(server.stdout.readline())
    network = Network(lambda: create_connection(("127.0.0.1", port)), break_every=25)
    yield Answers(f"http://127.0.0.1:{port}/v1", network)
    network.stop()
    server.communicate()


@pytest.fixture(scope="module")
def nursery(answers: Answers) -> Iterator[Nursery]:
    place = f"http://127.0.0.1:{answers.network.port}/v1"
    running = Nursery(MODULES, OPENAI_BASE_URL=place, OPENAI_API_KEY="k" * 10)
    yield running
    running.stop()


JOBS: dict[str, tuple[Callable[[Answers, Path], Job], int]] = {
    "audit": (lambda *_: Audit(), 34),
    "sequential": (lambda *_: Sequential(), 34),
    "probe": (lambda answers, _: Probe(answers), 34),
    "taxonomy": (lambda *_: Taxonomy(), 34),
    "import": (lambda *_: Import(), 32),
    "review": (lambda _, runs: Review(runs), 16),
    "review of a sheet": (lambda _, runs: ReviewSheet(runs), 16),
}
"""Two hundred kills of six commands."""


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_two_hundred_kills(
    name: str,
    answers: Answers,
    runs: Path,
    nursery: Nursery,
    tmp_path: Path,
    attacks: Counter[str],
) -> None:
    make, times = JOBS[name]
    resets = answers.network.resets
    print(name, Attack(make(answers, runs), nursery, tmp_path).kill(times))
    attacks["kills"] += times
    assert (answers.network.resets > resets) == (name == "probe")


def test_two_kills_of_an_import(tmp_path: Path) -> None:
    nursery = Nursery(["groundfault.readers.importing"])
    tally = Attack(Import(), nursery, tmp_path).kill(2)
    nursery.stop()
    assert tally.kills == 2
