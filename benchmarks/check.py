"""Run benchmarks that time groundfault beside a peer, and compare the ratios with the stored ones.

    python benchmarks/check.py                      # all of them, exit status 1 at a regression
    python benchmarks/check.py counting silhouette
    python benchmarks/check.py counting --store     # what is measured is the standard from now on

A ratio says how many times as fast as its peer groundfault was in one run, with one thread each:
seconds differ from machine to machine, ratios far less. They still differ, and other work on the
machine disturbs them, so a regression is a ratio below `TOLERANCE` times the stored one, in the
best of `TRIES` runs. The standard is in ``results/ratios.json``. Benchmarks without a peer that is
at hand everywhere (``sliceline``, ``adaptive_audit``, ``taxonomy``, ``whole_audit``) are not here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
STANDARD = HERE / "results" / "ratios.json"
RUNS = {
    "counting": ["--units", "200000", "--candidates", "500"],
    "e_processes": [],
    "edisa": ["5000"],
    "exact_floor": ["--runs", "5"],
    "first_second": [],
    "read_inspect": ["--logs", "4", "--samples", "200", "--own", "0"],
    "silhouette": ["200"],
}
"""Each benchmark, and how it is run: small enough for all to take a few minutes."""
TOLERANCE = 0.6
TRIES = 3
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PACKAGES = ("numpy", "numba", "scikit-learn", "msgspec")

Ratios = dict[str, float]


def main() -> int:
    """Measure, print each ratio beside the stored one, and say whether any fell behind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("benchmarks", nargs="*", metavar="BENCHMARK", help=", ".join(RUNS))
    parser.add_argument("--store", action="store_true", help="make the ratios the standard")
    options = parser.parse_args()
    if unknown := set(options.benchmarks) - set(RUNS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; see --help")
    standard = json.loads(STANDARD.read_text()) if STANDARD.exists() else {}
    slow = []
    print(f"{'benchmark':14}{'case':26}{'times as fast as its peer':>26}{'stored':>9}")
    for name in options.benchmarks or RUNS:
        ratios_before = standard.get(name, {}).get("ratios", {})
        ratios = typical_ratios(name) if options.store else best_ratios(name, ratios_before)
        slow += [f"{name}, {case}" for case in regressions(ratios, ratios_before)]
        for case in {**ratios, **ratios_before}:
            cells = [
                f"{table[case]:.2f}" if case in table else "–" for table in (ratios, ratios_before)
            ]
            print(f"{name:14}{case:26}{cells[0]:>26}{cells[1]:>9}", flush=True)
        standard[name] = {"with": environment(), "ratios": ratios}
    if options.store:
        STANDARD.write_text(json.dumps(dict(sorted(standard.items())), indent=2) + "\n")
        return 0
    for case in slow:
        print(f"REGRESSION: {case}: below {TOLERANCE:g} of the stored ratio, or not measured")
    return 1 if slow else 0


def best_ratios(name: str, before: Ratios) -> Ratios:
    """The ratios of one run; where some are too low, the best of several."""
    best: Ratios = {}
    for _ in range(TRIES):
        for case, ratio in measure(name).items():
            best[case] = max(ratio, best.get(case, 0.0))
        if not regressions(best, before):
            break
    return best


def typical_ratios(name: str) -> Ratios:
    """The median ratios of several runs, to be stored."""
    runs = [measure(name) for _ in range(TRIES)]
    return {case: round(median(run[case] for run in runs), 3) for case in runs[0]}


def measure(name: str) -> Ratios:
    """Run one benchmark in a process of its own, and read the last line that it prints."""
    command = [sys.executable, str(HERE / f"{name}.py"), *RUNS[name], "--json"]
    place = {**os.environ, **dict.fromkeys(THREADS, "1")}
    process = subprocess.run(command, env=place, stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{name} did not run; its message is above, and nothing was compared")
    ratios: Ratios = json.loads(process.stdout.splitlines()[-1])
    return ratios


def regressions(ratios: Ratios, before: Ratios) -> list[str]:
    """Cases whose ratio is too far below the stored one, or that are gone."""
    return [case for case, ratio in before.items() if ratios.get(case, 0.0) < TOLERANCE * ratio]


def environment() -> str:
    """Versions of what the ratios depend on."""
    packages = (f"{name} {version(name)}" for name in PACKAGES)
    return ", ".join([f"Python {platform.python_version()}", *packages])


if __name__ == "__main__":
    sys.exit(main())
