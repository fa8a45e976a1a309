"""An audit with default settings, failure modes and all: CPU seconds and memory by size of table.

    python benchmarks/failure_modes.py [--sizes small,middle,large]

Each audit runs through the shell in a process of its own, from a Parquet file whose rows fail
more where a planted rule holds. Aims, on two cores: 2,000 rows of 12 columns with a prompt under 2
CPU s, 100,000 of 40 under 20 s, a million of 40 under two minutes, in less than 2 GB. What numba
compiles is compiled before, by an audit that is not counted.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl


@dataclass(frozen=True)
class Size:
    """A table, and what its audit may take."""

    rows: int
    columns: int
    text: bool
    cpu_seconds: float | None
    wall_seconds: float | None


SIZES = {
    "small": Size(2_000, 12, True, 2.0, None),
    "middle": Size(100_000, 40, False, None, 20.0),
    "large": Size(1_000_000, 40, False, None, 120.0),
}
MEMORY_GB = 2.0
SUBJECTS = ("harbour", "violin", "glacier", "market", "orchard", "engine", "castle", "river")


def make_table(size: Size, seed: int = 0) -> pl.DataFrame:
    """Rows with a third each of categories, flags and numbers, and failures of one region."""
    rng = np.random.default_rng(seed)
    rows, columns = size.rows, {}
    for i in range(size.columns - size.text):
        kind = ("category", "flag", "number")[i % 3]
        name = f"{kind}_{i}"
        if kind == "category":
            columns[name] = pl.Series(rng.choice(list("abcde"), rows))
        elif kind == "flag":
            columns[name] = pl.Series(rng.random(rows) < rng.uniform(0.05, 0.5))
        else:
            columns[name] = pl.Series(np.round(rng.lognormal(2, 1, rows), 1))
    table = pl.DataFrame(columns)
    hard = (table["category_0"] == "a") & table["flag_1"]
    chance = np.where(hard.to_numpy(), 0.7, 0.15)
    table = table.with_columns(
        id=pl.int_range(rows), error=pl.Series((rng.random(rows) < chance).astype(np.int8))
    )
    if not size.text:
        return table
    subjects = rng.choice(SUBJECTS, (rows, 3))
    numbers = rng.integers(2, 2000, rows)
    return table.with_columns(
        prompt=pl.Series(
            f"What do {n} visitors of the {a} say about the {b} and the {c}?"
            for n, (a, b, c) in zip(numbers, subjects, strict=True)
        )
    )


def measure(path: Path, answer: Path) -> tuple[float, float]:
    """CPU and wall seconds of an audit in a process of its own."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    words = ["audit", str(path), "--id", "id", "--outcome", "error", "--no-ledger"]
    subprocess.run(
        [sys.executable, "-m", "groundfault", *words, "--json", str(answer)],
        check=True,
        capture_output=True,
    )
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def main() -> int:
    """Print a line a size; exit status 1 if an aim is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default=",".join(SIZES), help=", ".join(SIZES))
    names = parser.parse_args().sizes.split(",")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        source, answer = Path(folder) / "results.parquet", Path(folder) / "answer.json"
        make_table(SIZES["small"], seed=1).write_parquet(source)
        measure(source, answer)
        for name in sorted(names, key=list(SIZES).index):
            size = SIZES[name]
            make_table(size).write_parquet(source)
            cpu, wall = measure(source, answer)
            # the most that any child has had so far: sizes ascend, so that of this one
            memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
            modes = [mode["rule"] for mode in json.loads(answer.read_text())["modes"]]
            late = cpu > (size.cpu_seconds or cpu) or wall > (size.wall_seconds or wall)
            missed |= late or memory > MEMORY_GB
            aim = f"{size.cpu_seconds} CPU s" if size.cpu_seconds else f"{size.wall_seconds} s"
            print(
                f"{size.rows:>9,} x {size.columns}: {cpu:6.1f} CPU s, {wall:6.1f} s (aim {aim}), "
                f"{memory:.2f} GB (aim {MEMORY_GB:g}); first of {len(modes)} modes: "
                f"{modes[0] if modes else 'none'}",
                flush=True,
            )
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
