"""A command that is told to terminate takes its worker processes along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def count_processes(session: int) -> int:
    count = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            # state, parent, group, session; a name in parentheses stands before them
            state, _, _, number = place.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        count += int(number) == session and state != "Z"
    return count


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_the_command(tmp_path: Path, number: signal.Signals) -> None:
    table = tmp_path / "t.csv"
    rows = [f"{i},{int(i % 7 == 0)},{i * 37 % 101},{'abcd'[i % 4]}" for i in range(4000)]
    table.write_text("\n".join(["id,error,n,lang", *rows]) + "\n")
    words = ["audit", table, "--id", "id", "--outcome", "error", "--judge", "janus", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "groundfault", *words, "--robustness", "400", "--out", "report"],
        cwd=tmp_path,
        env={**os.environ, "GROUNDFAULT_LEDGER": "off"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    # the two workers and what watches over their memory
    while count_processes(process.pid) < 4:
        assert process.poll() is None, process.stderr
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(2)
    process.send_signal(number)
    start = time.monotonic()
    while count_processes(process.pid):
        # about a second; left alone, they finish what they were given
        assert time.monotonic() - start < 8
        time.sleep(0.05)
    assert process.wait() == 128 + number
    assert not (tmp_path / "report").exists()
