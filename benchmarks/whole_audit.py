"""A whole audit from a Parquet file through the shell, and the time to the first line of help.

    python benchmarks/whole_audit.py [--units 1000000] [--candidates 500]

Aims on two cores: the audit under 60 s; ``groundfault --help`` under 0.3 s.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl


def measure(*words: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "groundfault", *words], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--candidates", type=int, default=500)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    columns = {
        f"d__{j:04d}": rng.random(options.units) < rng.uniform(0.1, 0.9)
        for j in range(options.candidates)
    }
    error = (rng.random(options.units) < 0.2) | (
        columns["d__0007"] & (rng.random(options.units) < 0.2)
    )
    with tempfile.TemporaryDirectory() as folder:
        source, answer = Path(folder) / "results.parquet", Path(folder) / "answer.json"
        pl.DataFrame({"id": np.arange(options.units), "error": error, **columns}).write_parquet(
            source
        )
        words = [
            "audit",
            str(source),
            "--id",
            "id",
            "--outcome",
            "error",
            "--declare",
            "d__*",
            "--no-ledger",
        ]
        seconds = measure(*words, "--json", str(answer))
        names = [
            f["name"]
            for f in json.loads(answer.read_text())["findings"]
            if f["verdict"] == "confirmed"
        ]
    print(
        f"audit of {options.units} units x {options.candidates} candidates: {seconds:.1f} s; "
        f"confirmed {names}"
    )
    print(f"groundfault --help: {min(measure('--help') for _ in range(5)):.2f} s")


if __name__ == "__main__":
    main()
