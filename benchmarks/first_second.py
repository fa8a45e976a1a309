"""The first second: help, the demo and a typical audit against `import polars`, in one run.

    python benchmarks/first_second.py [--runs 3]

Seconds are those of the processor, user and system, of the whole process: starting Python,
importing, compiling, auditing, writing the report. Cold runs have an empty cache of compiled
kernels, as after an installation; warm runs have one that a run before filled. The audit is of
2,000 rows and 23 columns.

Aims on two quiet cores: the demo cold under 4 s; the audit cold under 2.5 s, and warm under 1.2 s;
``groundfault --help`` .05 s.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

PROGRAM = ["-m", "groundfault"]
REFERENCE = ["-c", "import polars"]


def measure(words: list[str], folder: Path, cache: Path) -> float:
    """Seconds of the processor that a process of Python takes."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "GROUNDFAULT_LEDGER": "off"}
    # an installation holds what Python compiled
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_table(path: Path) -> None:
    """Flags, a language and a length, two of which explain failures."""
    rng = np.random.default_rng(0)
    rows = 2_000
    flags = {f"flag_{j:02d}": rng.random(rows) < rng.uniform(0.1, 0.9) for j in range(20)}
    language, length = rng.choice(["en", "de", "fr", "ja"], rows), rng.integers(5, 400, rows)
    rate = 0.15 + 0.35 * ((language == "de") & (length > 200)) + 0.1 * flags["flag_03"]
    columns = {"error": (rng.random(rows) < rate).astype(int), "language": language}
    pl.DataFrame({"id": np.arange(rows), **columns, "length": length, **flags}).write_csv(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="end with the ratios as JSON")
    options = parser.parse_args()
    audit = ["audit", "table.csv", "--id", "id", "--outcome", "error", "--out", "report"]
    commands = {"help": ["--help"], "audit": audit, "demo": ["demo", "--out", "demo"]}
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_table(folder / "table.csv")
        # what Python itself compiles is compiled when a package is installed
        for words in commands.values():
            measure([*PROGRAM, *words], folder, folder / "warm")
        for run in range(options.runs):
            seconds.setdefault("import polars", []).append(
                measure(REFERENCE, folder, folder / "warm")
            )
            for name, words in commands.items():
                for kind, cache in (("cold", f"cold {name} {run}"), ("warm", "warm")):
                    seconds.setdefault(f"{name}, {kind}", []).append(
                        measure([*PROGRAM, *words], folder, folder / cache)
                    )
    best = {name: min(times) for name, times in seconds.items()}
    reference = best.pop("import polars")
    print(f"import polars    {reference:6.2f} s of the processor, the least of {options.runs}")
    for name, time in best.items():
        print(f"{name:16} {time:6.2f} s, {time / reference:6.1f} times import polars")
    if options.json:
        print(json.dumps({name: reference / time for name, time in best.items()}))


if __name__ == "__main__":
    main()
