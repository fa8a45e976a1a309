"""Measure whether the clock tells held-out outcomes: how often the slower of two runs failed more.

python scripts/time_held_out.py            100 pairs of worlds for each command, some ten minutes
python scripts/time_held_out.py 20         so many

Both tables of a pair differ in held-out outcomes alone: of 500 a tenth or nine tenths fail. Where
the clock tells nothing, the table with more failures is the slower one in half of the pairs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

HOME = Path(__file__).parents[1]
SIZE, FEW, MANY = 1_000, 0.1, 0.9


def load_worlds() -> Any:
    """Return the module of tests that makes such tables, and runs the commands on them."""
    sys.path.append(str(HOME / "tests" / "support"))
    place = HOME / "tests" / "attacks" / "test_held_out.py"
    spec = importlib.util.spec_from_file_location("held_out", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.SIZE = SIZE
    return module


def measure(worlds: Any, name: str, pairs: int) -> None:
    """Run a command on pairs of tables in random order; print how often more failures took longer.

    The CPU time of this process is compared: other programs do not change it much.
    """
    rng = np.random.default_rng(0)
    times = np.empty((pairs, 2))
    for pair in range(-2, pairs):
        for which in rng.permutation(2):
            with tempfile.TemporaryDirectory() as folder:
                worlds.write_table(Path(folder), (FEW, MANY)[which], pair + 10)
                began = time.process_time()
                with contextlib.redirect_stdout(io.StringIO()):
                    worlds.WAYS[name](Path(folder))
                # the first two pairs fill caches
                times[max(pair, 0), which] = time.process_time() - began
    slower = int((times[:, 1] > times[:, 0]).sum())
    low, high = binomtest(slower, pairs).proportion_ci()
    gap = np.median(times[:, 1] - times[:, 0]) * 1e3
    print(
        f"{name}: slower with more failures in {slower} of {pairs} pairs ({low:.0%} to {high:.0%}),"
        f" median difference {gap:+.2f} ms of {np.median(times) * 1e3:.0f} ms",
        flush=True,
    )


if __name__ == "__main__":
    loaded, count = load_worlds(), int(sys.argv[1]) if sys.argv[1:] else 100
    for way in loaded.WAYS:
        measure(loaded, way, count)
