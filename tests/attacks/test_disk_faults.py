"""A disk that is full, over its quota or broken, at any write of a command: one line and status 2,
each output whole or absent, and the same command again gives what it gives on a sound disk.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs import (
    GOLDEN,
    MODULES,
    Audit,
    CaseStep,
    Import,
    Job,
    ReviewSheet,
    Sequential,
    Taxonomy,
    make_runs,
)
from nursery import Nursery, build_disk

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)

# whether later changes fail as well: a full disk stays full, a bad block is one
ERRORS = {errno.ENOSPC: True, errno.EDQUOT: True, errno.EIO: False}


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    running = Nursery(MODULES, **build_disk(tmp_path_factory.mktemp("disk")))
    yield running
    running.stop()


class Disk:
    """Runs one command, on a disk that fails at one of its changes."""

    def __init__(self, job: Job, nursery: Nursery, folder: Path) -> None:
        self.job, self.nursery = job, nursery
        self.home, self.output = folder / "home", folder / "output.txt"

    def run(self, nth: int, number: int = 0, *, stays: bool = False) -> tuple[int, list[str]]:
        """The exit status, and the lines that it printed, the last of them its changes."""
        self.output.unlink(missing_ok=True)
        words = self.job.arguments.split()
        self.nursery.start(words, self.home, self.output, fault=(nth, number, stays))
        status = self.nursery.wait()
        return status, self.output.read_text().splitlines()

    def begin(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        self.job.prepare(self.home)

    def fail(self, times: int) -> int:
        """Let the disk fail at moments spread over the command; how many of them ended it."""
        self.begin()
        status, lines = self.run(0)
        assert status == 0, lines
        changes, whole, ended = int(lines[-1]), self.job.read(self.home), 0
        for trial in range(times):
            number, stays = list(ERRORS.items())[trial % len(ERRORS)]
            nth = 1 + int(trial * GOLDEN % 1 * changes)
            self.begin()
            status, lines = self.run(nth, number, stays=stays)
            where = f"change {nth} of {changes}, {os.strerror(number)}: {lines}"
            # what only makes a write last longer, such as syncing a folder, ends no command
            assert status in (0, 2), where
            if status:
                ended += 1
                errors = [line for line in lines if line.startswith("error: ")]
                assert len(errors) == 1, where
                assert not any("Traceback" in line for line in lines), where
                self.job.check_after_kill(self.home)
                status, lines = self.run(0)
                assert status == 0, (where, lines)
            assert self.job.read(self.home) == whole, where
            self.job.check_at_end(self.home, 1)
        return ended


def test_a_full_disk_leaves_a_whole_import_or_none(
    nursery: Nursery, tmp_path: Path, attacks: Counter[str]
) -> None:
    assert Disk(Import(), nursery, tmp_path).fail(2)
    attacks["faults"] += 2


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("runs"))


JOBS: dict[str, Callable[[Path], Job]] = {
    "audit": lambda _: Audit(),
    "sequential": lambda _: Sequential(),
    "taxonomy": lambda _: Taxonomy(),
    "import": lambda _: Import(),
    "case: new": lambda _: CaseStep(0),
    "case: audit": lambda _: CaseStep(1),
    "case: report": lambda _: CaseStep(2),
    "review": ReviewSheet,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_failing_disk_loses_nothing(
    name: str, nursery: Nursery, runs: Path, tmp_path: Path, attacks: Counter[str]
) -> None:
    print(name, Disk(JOBS[name](runs), nursery, tmp_path).fail(40))
    attacks["faults"] += 40
