"""Run benchmarks that time groundfault beside a peer, and compare the ratios with the stored ones.

    python benchmarks/check.py                      # all of them, exit status 1 at a regression
    python benchmarks/check.py counting silhouette
    python benchmarks/check.py counting --store     # what is measured is the standard from now on

A ratio says how many times as fast as its peer groundfault was in one run, with one thread each:
seconds differ from machine to machine, ratios far less. A ratio that worsened by a quarter, in the
best of `TRIES` runs, is flagged. Where it was stored on a machine of this kind that is a
regression, elsewhere only below `TOLERANCE_ELSEWHERE` times what was stored: caches and vector
instructions move ratios, too. The standard is in ``results/ratios.json``, with the commit and the
kind of machine. A limit is the ratio that is aimed at; missing it is shown and no regression.
Benchmarks without a peer that is at hand everywhere (``sliceline``, ``adaptive_audit``,
``counts``, ``taxonomy``, ``failure_modes``, ``whole_audit``, ``memory``) are not here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
STANDARD = HERE / "results" / "ratios.json"
RUNS = {
    "corners": [],
    "counting": ["--units", "200000", "--candidates", "500"],
    "e_processes": [],
    "edisa": ["5000"],
    "exact_floor": ["--runs", "5"],
    "first_second": [],
    "read_inspect": ["--logs", "4", "--samples", "200", "--own", "0"],
    "silhouette": ["200"],
    "wide_tables": ["--nightly"],
}
"""Each benchmark, and how it is run: small enough for all to take a few minutes."""
TOLERANCE = 0.75
TOLERANCE_ELSEWHERE = 0.6
TRIES = 3
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PACKAGES = ("numpy", "numba", "scikit-learn", "msgspec")

Ratios = dict[str, float]
Result = dict[str, Any]
Results = dict[str, Result]


def main() -> int:
    """Measure, print each ratio beside the stored one, and say whether any fell behind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("benchmarks", nargs="*", metavar="BENCHMARK", help=", ".join(RUNS))
    parser.add_argument("--store", action="store_true", help="make the ratios the standard")
    options = parser.parse_args()
    if unknown := set(options.benchmarks) - set(RUNS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; see --help")
    standard = json.loads(STANDARD.read_text()) if STANDARD.exists() else {}
    worse, slow = [], []
    print(f"{'benchmark':13}{'case':36}{'peer':>9}{'ours':>9}{'ratio':>9}{'stored':>9}{'limit':>7}")
    for name in options.benchmarks or RUNS:
        entry = standard.get(name, {})
        before = entry.get("ratios", {})
        results = typical_results(name) if options.store else best_results(name, before)
        ratios = {case: result["ratio"] for case, result in results.items()}
        fails = TOLERANCE if entry.get("machine") == machine() else TOLERANCE_ELSEWHERE
        worse += [f"{name}, {case}" for case in regressions(ratios, before, TOLERANCE)]
        slow += [f"{name}, {case}" for case in regressions(ratios, before, fails)]
        for case in {**ratios, **before}:
            show(name, case, results.get(case, {}), before.get(case))
        standard[name] = {
            "with": environment(),
            "commit": commit(),
            "machine": machine(),
            "ratios": {case: round(ratio, 3) for case, ratio in ratios.items()},
            "limits": {case: r["limit"] for case, r in results.items() if r.get("limit")},
        }
    if options.store:
        STANDARD.write_text(json.dumps(dict(sorted(standard.items())), indent=2) + "\n")
        return 0
    for case in worse:
        word = "REGRESSION" if case in slow else "WORSE"
        print(f"{word}: {case}: a quarter or more below the stored ratio, or not measured")
    return 1 if slow else 0


def show(name: str, case: str, result: Result, before: float | None) -> None:
    """One row of the table: seconds of the peer and ours where the benchmark says them."""
    numbers = (*(result.get(key) for key in ("peer", "ours", "ratio")), before)
    cells = "".join(f"{'–' if number is None else f'{number:.3g}':>9}" for number in numbers)
    limit = result.get("limit")
    missed = " missed" if limit and result["ratio"] < limit else ""
    print(f"{name:13}{case:36}{cells}{limit or '–':>7}{missed}", flush=True)


def best_results(name: str, before: Ratios) -> Results:
    """The results of one run; where some ratios are too low, the best of several."""
    best: Results = {}
    for _ in range(TRIES):
        for case, result in measure(name).items():
            if case not in best or result["ratio"] > best[case]["ratio"]:
                best[case] = result
        if not regressions({case: r["ratio"] for case, r in best.items()}, before, TOLERANCE):
            break
    return best


def typical_results(name: str) -> Results:
    """Of several runs the result of median ratio, case by case, to be stored."""
    runs = [measure(name) for _ in range(TRIES)]
    return {
        case: sorted((run[case] for run in runs), key=itemgetter("ratio"))[TRIES // 2]
        for case in runs[0]
    }


def measure(name: str) -> Results:
    """Run one benchmark in a process of its own, and read the last line that it prints."""
    command = [sys.executable, str(HERE / f"{name}.py"), *RUNS[name], "--json"]
    place = {**os.environ, **dict.fromkeys(THREADS, "1")}
    process = subprocess.run(command, env=place, stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{name} did not run; its message is above, and nothing was compared")
    results = json.loads(process.stdout.splitlines()[-1])
    return {
        case: result if isinstance(result, dict) else {"ratio": result}
        for case, result in results.items()
    }


def regressions(ratios: Ratios, before: Ratios, tolerance: float) -> list[str]:
    """Cases whose ratio is below so much of the stored one, or that are gone."""
    return [case for case, ratio in before.items() if ratios.get(case, 0.0) < tolerance * ratio]


def commit() -> str:
    """The commit that is measured, marked where files of the package differ from it."""
    words = ("git", "describe", "--always", "--dirty", "--exclude=*")
    run = subprocess.run(words, cwd=HERE, capture_output=True, text=True, check=False)
    return run.stdout.strip() or "no repository"


def machine() -> str:
    """What kind of machine this is: its system, processor and cores."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or "processor unknown"
    return f"{platform.system()} {platform.machine()}, {model}, {os.cpu_count()} cores"


def environment() -> str:
    """Versions of what the ratios depend on."""
    packages = (f"{name} {version(name)}" for name in PACKAGES)
    return ", ".join([f"Python {platform.python_version()}", *packages])


if __name__ == "__main__":
    sys.exit(main())
