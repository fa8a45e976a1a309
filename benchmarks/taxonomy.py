"""A taxonomy, or an evaluation of one, from a Parquet file through the shell.

    python benchmarks/taxonomy.py fit [--models 155] [--examples 15000] [OPTIONS OF THE COMMAND]
    python benchmarks/taxonomy.py evaluate --models 29 --examples 2000

Aims on two cores: that fit under 5 minutes and 4 GB, that evaluation under 10 minutes. The matrix
is of a world with three failure modes. The memory is that of the largest process; with several
(--jobs), each of them has some."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from groundfault_lab.taxonomy.worlds import AbilityWorld


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["fit", "evaluate"])
    parser.add_argument("--models", type=int, default=155)
    parser.add_argument("--examples", type=int, default=15_000)
    options, rest = parser.parse_known_args()
    world = AbilityWorld(examples=options.examples, models=options.models, modes=3, strength=1.5)
    matrix, _ = world.draw(np.random.default_rng(0))
    rows, columns = np.indices(matrix.passed.shape).reshape(2, -1)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "answers.parquet"
        cells = {"id": np.array(matrix.examples)[rows], "model": np.array(matrix.models)[columns]}
        pl.DataFrame({**cells, "error": 1 - matrix.passed.ravel()}).write_parquet(source)
        words = [
            options.command,
            str(source),
            "--id",
            "id",
            "--model-column",
            "model",
            "--outcome",
            "error",
        ]
        run = [
            sys.executable,
            "-m",
            "groundfault",
            "taxonomy",
            *words,
            "--out",
            f"{folder}/out",
            *rest,
        ]
        start = time.perf_counter()
        subprocess.run(run, check=True, capture_output=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(
        f"{options.command}, {options.models} models x {options.examples:,} examples: "
        f"{time.perf_counter() - start:.0f} s, {peak:.1f} GB at most in a process"
    )


if __name__ == "__main__":
    main()
