"""A command that is told to terminate takes its worker processes along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
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


CALLBACK = """
import ctypes, os, signal, time
from groundfault.cli.main import _stop_on_signals

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(one, other):
    global told
    if not told:
        told = True
        os.kill(os.getpid(), signal.SIGTERM)
    return 0

told = False
with _stop_on_signals():
    ctypes.CDLL(None).qsort(ctypes.create_string_buffer(64), 64, 1, compare)
    print("dropped", flush=True)
    try:
        time.sleep(60)
    finally:
        time.sleep(1.5)
        print("cleaned up", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGTERM")
def test_a_signal_that_compiled_code_dropped_is_raised_again_and_no_clean_up_is_cut_short() -> None:
    run = subprocess.run(
        [sys.executable, "-c", CALLBACK], capture_output=True, text=True, timeout=30, check=False
    )
    assert run.returncode == 128 + signal.SIGTERM, run.stderr
    assert run.stdout.split("\n") == ["dropped", "cleaned up", ""]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_no_helper_outlives_a_calibration_whenever_it_is_told_to_end(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("attacks", 40)
    words = "lab calibrate --judge max-t --jobs 2 --replicates 1000".split()
    for trial in range(40):
        process = subprocess.Popen(
            [sys.executable, "-m", "groundfault", *words],
            cwd=tmp_path,
            env={**os.environ, "GROUNDFAULT_LEDGER": "off"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        # while Python starts, the workers start, and they work
        time.sleep(0.5 + trial * 0.618034 % 1)
        process.send_signal(signal.SIGTERM)
        start = time.monotonic()
        while count_processes(process.pid):
            assert time.monotonic() - start < 10
            time.sleep(0.05)
        assert process.wait() in (128 + signal.SIGTERM, -signal.SIGTERM)
