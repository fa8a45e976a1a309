"""An audit by counts: CPU seconds and memory of each engine, on one table that it does not read.

    python benchmarks/counts.py [--rows 1000000] [--candidates 200] [--engines polars,duckdb,spark]

The table has 20 columns in Parquet files of a million rows. Each audit runs in a process of its
own, up to its verdicts by holm (failure modes come from a sample and take the same whatever the
rows). Seconds are those of all threads; polars has one, DuckDB as many as there are cores. Spark
runs on this machine: its seconds and memory include those of Java, and the bytes that its stages
read and shuffle are printed. All engines have to count the same. --groups draws rows in groups of
four, which fail together, and audits the groups."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import polars as pl

import groundfault

BATCH = 1_000_000
LETTERS = np.array(list("abcdefgh"))
BYTES = ("inputBytes", "shuffleReadBytes", "shuffleWriteBytes")
THREADS = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def write_table(folder: Path, rows: int, size: int) -> None:
    """Six columns each of letters, flags and numbers, of groups; two of them fail together."""
    for start in range(0, rows, BATCH):
        rng = np.random.default_rng(start)
        count = min(BATCH, rows - start) // size
        columns = {"unit": np.arange(start // size, start // size + count)}
        for i in range(6):
            columns[f"letter_{i}"] = LETTERS[rng.integers(0, 8, count)]
            columns[f"flag_{i}"] = rng.random(count) < 0.1 * (i + 1)
            columns[f"number_{i}"] = rng.integers(0, 1_000, count)
        hole = (columns["letter_0"] == "b") & columns["flag_1"]
        rate = np.where(hole, 0.3, 0.2)
        # rows of one group correlate by one half
        rate = rng.beta(rate, 1 - rate) if size > 1 else rate
        table = {name: np.repeat(values, size) for name, values in columns.items()}
        table["id"] = np.arange(start, start + count * size)
        table["error"] = rng.random(count * size) < np.repeat(rate, size)
        pl.DataFrame(table).write_parquet(folder / f"{start:012}.parquet")


def list_candidates(count: int) -> list[groundfault.Candidate]:
    rules = [f"flag_{i}" for i in range(6)]
    rules += [f"letter_{i} = '{letter}'" for i in range(6) for letter in LETTERS]
    rules += [f"number_{i} >= {25 * (1 + j)}" for j in range(39) for i in range(6)]
    return [groundfault.Candidate(rule, rule) for rule in rules[:count]]


def audit(folder: str, engine: str, candidates: int, group: str | None) -> str:
    """The hash of all findings with their numbers."""
    evidence = groundfault.LazyEvidence.scan(
        folder, id="id", outcome="error", engine=engine, group=group, ignore=["unit"]
    )
    report = groundfault.audit(
        evidence,
        groundfault.Plan(judge="holm", permutations=999),
        candidates=list_candidates(candidates),
        ledger=False,
        modes=False,
    )
    return hashlib.sha256(repr(report.findings).encode()).hexdigest()


def measure_java() -> tuple[float, float]:
    """Return CPU seconds and largest memory, in GB, of the processes that this one started."""
    stats = {
        int(place.parent.name): place.read_text().rpartition(")")[2].split()
        for place in Path("/proc").glob("[0-9]*/stat")
    }
    ours = {os.getpid()}
    while more := {pid for pid, stat in stats.items() if int(stat[1]) in ours} - ours:
        ours |= more
    seconds = peak = 0.0
    for pid in ours - {os.getpid()}:
        seconds += sum(map(int, stats[pid][11:13])) / os.sysconf("SC_CLK_TCK")
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            peak += int(line.split()[1]) / 2**20 if line.startswith("VmHWM") else 0
    return seconds, peak


def describe_stages() -> str:
    """Return what Spark says of its stages, before it stops."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        return "no session"
    place = f"{session.sparkContext.uiWebUrl}/api/v1/applications"
    with urlopen(place) as reply:
        name = json.load(reply)[0]["id"]
    with urlopen(f"{place}/{name}/stages?status=complete") as reply:
        stages = json.load(reply)
    told = {key: sum(stage[key] for stage in stages) for key in ("numTasks", *BYTES)}
    sizes = ", ".join(f"{key} {told[key]:,}" for key in BYTES)
    return f"{len(stages)} stages, {told['numTasks']} tasks, {sizes}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--engines", default="polars,duckdb")
    parser.add_argument("--groups", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("ENGINE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        engine, folder = options.one
        start = time.process_time()
        answer = audit(folder, engine, options.candidates, "unit" if options.groups else None)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        seconds, told = time.process_time() - start, ""
        if engine == "spark":
            told, (more, beside) = describe_stages(), measure_java()
            seconds, peak = seconds + more, peak + beside
        print(json.dumps([seconds, peak, answer, told]))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "parquet"
        folder.mkdir()
        write_table(folder, options.rows, 4 if options.groups else 1)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 2**30
        print(f"{options.rows:,} rows x 20 columns, {size:.2f} GB of files")
        answers = set()
        for engine in options.engines.split(","):
            command = [sys.executable, __file__, "--one", engine, str(folder)]
            command += ["--candidates", str(options.candidates)]
            command += ["--groups"] if options.groups else []
            place_of_threads = {**os.environ, **dict.fromkeys(THREADS, "1")}
            out = subprocess.run(
                command, env=place_of_threads, stdout=subprocess.PIPE, text=True, check=True
            ).stdout
            seconds, peak, answer, told = json.loads(out.splitlines()[-1])
            print(f"{engine:8} {seconds:7.1f} CPU s {peak:6.2f} GB {told}", flush=True)
            answers.add(answer)
        print("all engines give the same findings" if len(answers) == 1 else "FINDINGS DIFFER")


if __name__ == "__main__":
    main()
