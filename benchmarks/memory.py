"""Peak memory of commands on large inputs: an import of lm-eval logs, and slices of many words.

    python benchmarks/memory.py [--samples 1000000] [--rows 1000000]

Each command runs in a process of its own, with its hash and its files, and its largest resident
memory is that of the whole process. Samples are of multiple choice under two metrics, so two rows
each, and 10^6 of them take 2 GB on disk and some minutes to write; the table has 60 columns of
words.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from corners import make_sample

COLUMNS = 60


def main() -> None:
    """Print seconds of the processor and the peak of each command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_samples(folder / "samples_large.jsonl", options.samples)
        measure(
            f"import, {options.samples:,} samples", f"import {folder} --scorer acc -o {folder}/e"
        )
        write_words(folder / "words.parquet", options.rows)
        table = f"{folder}/words.parquet --id id --outcome error"
        measure(f"slices, {options.rows:,} x {COLUMNS}", f"slices {table}")


def measure(work: str, words: str) -> tuple[float, float]:
    """Run a command of groundfault, say what it took, and return its CPU seconds and peak in GB."""
    arguments = [sys.executable, "-m", "groundfault", *words.split()]
    environment = {**os.environ, "GROUNDFAULT_LEDGER": "off"}
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(sys.executable, arguments, environment, file_actions=quiet)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{work}: the command failed")
    seconds, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20
    print(f"{work}: {seconds:.1f} s of the processor, peak {peak:.2f} GB", flush=True)
    return seconds, peak


def write_samples(path: Path, count: int) -> None:
    rng = random.Random(0)
    with path.open("w") as stream:
        for i in range(count):
            stream.write(json.dumps(make_sample(rng, i)) + "\n")


def write_words(path: Path, rows: int) -> None:
    rng, words = np.random.default_rng(0), pl.Series([f"level {i}" for i in range(8)])
    columns = {f"c{j}": words.gather(rng.integers(0, 5 + j % 4, rows)) for j in range(COLUMNS)}
    keys = {"id": [f"q{i}" for i in range(rows)], "error": rng.random(rows) < 0.2}
    pl.DataFrame({**keys, **columns}).write_parquet(path)


if __name__ == "__main__":
    main()
