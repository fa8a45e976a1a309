"""Other libraries beside groundfault in one run: what each takes, what it finds, and a ratio where
the work is equal.

    python benchmarks/peers.py --peer PYTHON [PYTHON ...] [--rows 20000]

PYTHON is an interpreter with peers, of which each runs in the first that has it: ``pip install
pysubgroup sliceline divexplorer scikit-learn scipy ppi-python duckdb statsmodels``, and in an
environment of its own, since their versions of NumPy differ, ``pip install optbinning``. One table
of labels and flags has a planted slice (letter_0 is b and flag_1), which fails in 50 % of its rows,
the rest in 20 %. Seconds are those of the processor, the fewest of two turns after a warm-up. Where
a library does another work than ours, its line has no ratio and says what differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import ndtr

from groundfault.modes.find import find_modes
from groundfault.stats import bits, multiple
from groundfault.stats.contingency import lift

DRAWS = 999

START = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas as pd
table = pd.read_csv(sys.argv[1])
X, failed = table.drop(columns="failed"), table["failed"].to_numpy()
def timed(work):
    times = []
    for _ in range(3):
        start = time.process_time()
        found = work()
        times.append(time.process_time() - start)
    print(json.dumps([min(times[1:]), str(found)[:160]]))
"""
"""What every peer begins with; the first of three turns is the warm-up."""


@dataclass(frozen=True)
class Peer:
    """A library's code, and ours: the same work, or what differs."""

    name: str
    code: str
    ours: str
    differs: str = ""


PEERS = (
    Peer(
        "DuckDB: rows and failures of all pairs of values",
        """
import duckdb
duckdb.execute("SET threads TO 1")
from itertools import combinations
cells = X.astype(str).assign(failed=failed)
sets = ", ".join(f"({a}, {b})" for a, b in combinations(X.columns, 2))
ask = f"SELECT {', '.join(X.columns)}, count(*) n, sum(failed::INT) / count(*) rate FROM cells"
def work():
    duckdb.execute(f"{ask} GROUP BY GROUPING SETS ({sets})")
    found = duckdb.fetchdf()
    found = found[found.n >= 0.01 * len(cells)].sort_values("rate", ascending=False)
    return len(found), found.iloc[0].dropna().to_dict()
timed(work)
""",
        "pairs",
    ),
    Peer(
        "DivExplorer: divergence of sets of values",
        """
from divexplorer import DivergenceExplorer
frame = X.astype(str).assign(failed=failed.astype(int))
def work():
    found = DivergenceExplorer(frame).get_pattern_divergence(
        min_support=0.01, attributes=list(X.columns), boolean_outcomes=["failed"])
    best = found.sort_values("failed_div", ascending=False).iloc[0]
    return len(found), sorted(best["itemset"])
timed(work)
""",
        "pairs",
        "it lists sets of any length, and ours counts pairs alone",
    ),
    Peer(
        "scipy.stats.permutation_test: one flag",
        f"""
from scipy.stats import permutation_test
flag = X["flag_1"].to_numpy()
def difference(x, y, axis):
    return x.mean(axis=axis) - y.mean(axis=axis)
def work():
    return permutation_test((failed[flag].astype(float), failed[~flag].astype(float)), difference,
        n_resamples={DRAWS}, vectorized=True, batch=50, alternative="greater", rng=0).pvalue
timed(work)
""",
        "max-T",
    ),
    Peer(
        "statsmodels: Holm's correction of 100,000 p-values",
        """
from statsmodels.stats.multitest import multipletests
p = np.random.default_rng(0).random(100_000) ** 4
def work():
    corrected = multipletests(p, method="holm")[1]
    return int((corrected <= 0.1).sum()), round(float(corrected.sum()), 6)
timed(work)
""",
        "holm",
    ),
    Peer(
        "statsmodels: one flag, Mantel-Haenszel, 8 strata",
        """
from statsmodels.stats.contingency_tables import StratifiedTable
flag = X["flag_1"].to_numpy()
def work():
    tables = [
        np.array([[np.sum(flag[at] & failed[at]), np.sum(flag[at] & ~failed[at])],
                  [np.sum(~flag[at] & failed[at]), np.sum(~flag[at] & ~failed[at])]])
        for at in ((X["letter_0"] == v).to_numpy() for v in "abcdefgh")]
    return f"{StratifiedTable(tables).test_null_odds(correction=False).pvalue:.6g}"
timed(work)
""",
        "strata",
    ),
    Peer(
        "ppi-python: mean from 1,000 labels and predictions",
        """
from ppi_py import ppi_mean_ci
y, yhat, rest = failed[:1000].astype(float), failed[:1000] * 0.6 + 0.1, failed[1000:] * 0.6 + 0.1
timed(lambda: [float(x[0]) for x in ppi_mean_ci(y, yhat, rest, alpha=0.05)])
""",
        "",
        "ours bets on labels one by one, so that you may stop at any of them",
    ),
    Peer(
        "pysubgroup: ten best subgroups of two conditions",
        """
import pysubgroup as ps
frame = X.astype(str).assign(failed=failed)
target = ps.BinaryTarget("failed", True)
space = ps.create_selectors(frame, ignore=["failed"])
task = ps.SubgroupDiscoveryTask(frame, target, space, result_set_size=10, depth=2, qf=ps.WRAccQF())
timed(lambda: ps.DFS(ps.BitSetRepresentation).execute(task).to_dataframe()["subgroup"].iloc[0])
""",
        "modes",
        "ours joins three conditions and sets, permutes 999 times, and tests each rule",
    ),
    Peer(
        "sliceline: ten best slices of two conditions",
        """
from sliceline.slicefinder import Slicefinder
codes = X.astype(str).to_numpy()
def work():
    finder = Slicefinder(alpha=0.99, k=10, max_l=2, min_sup=len(X) // 100, verbose=False)
    return finder.fit(codes, failed.astype(float)).top_slices_[0].tolist()
timed(work)
""",
        "modes",
        "as for pysubgroup; the equal search is timed by benchmarks/sliceline.py",
    ),
    Peer(
        "optbinning: the best bins of each column",
        """
from optbinning import BinningProcess
def work():
    names = list(X.columns)
    letters = [n for n in names if n.startswith("letter")]
    process = BinningProcess(names, categorical_variables=letters)
    process.fit(X, failed.astype(int))
    found = process.summary().sort_values("iv", ascending=False).iloc[0]
    return found["name"], int(found["n_bins"])
timed(work)
""",
        "modes",
        "it bins one column at a time, joins none, and has no error level",
    ),
    Peer(
        "scikit-learn: a tree of depth 3",
        """
from sklearn.tree import DecisionTreeClassifier, export_text
codes = pd.get_dummies(X.astype(str))
def work():
    tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=len(X) // 100, random_state=0)
    tree.fit(codes, failed)
    leaf = tree.tree_.value[:, 0, 1].argmax()
    first = codes.columns[tree.tree_.feature[0]]
    return f"a leaf of {tree.tree_.n_node_samples[leaf]} rows; first split by {first}"
timed(work)
""",
        "modes",
        "a tree splits rows once, and has no error level",
    ),
)


def draw_table(rows: int) -> pl.DataFrame:
    """Six columns of letters and six flags; one pair fails together."""
    rng = np.random.default_rng(0)
    columns = {f"letter_{i}": rng.choice(list("abcdefgh"), rows) for i in range(6)}
    columns |= {f"flag_{i}": rng.random(rows) < 0.1 * (i + 1) for i in range(6)}
    hole = (columns["letter_0"] == "b") & columns["flag_1"]
    return pl.DataFrame(columns).with_columns(failed=rng.random(rows) < np.where(hole, 0.5, 0.2))


def make_ours(table: pl.DataFrame) -> dict[str, Callable[[], object]]:
    """Return our work by name: it begins with the table, as that of peers does."""
    failed = table["failed"].to_numpy()
    columns = table.drop("failed")

    def pairs() -> object:
        rows = [(name, v) for name in columns.columns for v in columns[name].unique().sort()]
        on = np.stack([(columns[name] == v).to_numpy() for name, v in rows])
        packed, lost = bits.pack(on), bits.pack(on & failed)
        units, failures = bits.count_and(packed, packed), bits.count_and(packed, lost)
        enough = np.triu(units >= 0.01 * table.height, 1)
        rate = np.where(enough, failures / np.maximum(units, 1), 0.0)
        i, j = divmod(int(rate.argmax()), len(rows))
        return int(enough.sum()), rows[i], rows[j]

    def max_t() -> object:
        packed = bits.pack(columns["flag_1"].to_numpy()[None])
        losses = failed[None].astype(np.int64)
        return float(multiple.max_t(packed, losses, DRAWS, np.random.default_rng(0))[0, 0])

    def modes() -> object:
        found, _ = find_modes(columns, failed[None].astype(np.float64))
        return [mode.rule for mode in found]

    def holm() -> object:
        corrected = multiple.holm(np.random.default_rng(0).random(100_000) ** 4)
        return int((corrected <= 0.1).sum()), round(float(corrected.sum()), 6)

    def strata() -> object:
        home = np.unique(columns["letter_0"].to_numpy(), return_inverse=True)[1]
        _, z = lift(columns["flag_1"].to_numpy()[None], failed.astype(np.int64), home)
        return f"{2 * ndtr(-abs(z[0])):.6g}"

    return {"pairs": pairs, "max-T": max_t, "modes": modes, "holm": holm, "strata": strata}


def time_work(work: Callable[[], object]) -> tuple[float, str]:
    """Return the fewest CPU seconds of two turns after a warm-up, and what was found."""
    times = []
    for _ in range(3):
        start = time.process_time()
        found = work()
        times.append(time.process_time() - start)
    return min(times[1:]), str(found)[:160]


def main() -> None:
    """Print a line for each peer, what it found, and what ours found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", required=True, nargs="+", help="interpreters with the peers")
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    table = draw_table(options.rows)
    ours = {name: time_work(work) for name, work in make_ours(table).items()}
    print(f"{'library':52}{'peer':>9}{'ours':>9}{'ratio':>8}   (CPU s)")
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "table.csv"
        table.write_csv(file)
        for peer in PEERS:
            for interpreter in options.peer:
                command = [interpreter, "-c", START + peer.code, str(file)]
                run = subprocess.run(
                    command, capture_output=True, text=True, check=False, timeout=200
                )
                if not run.returncode:
                    break
            if run.returncode:
                print(f"{peer.name:52}did not run: {run.stderr.strip().splitlines()[-1][:120]}")
                continue
            seconds, found = json.loads(run.stdout.splitlines()[-1])
            own = ours.get(peer.ours)
            mine = f"{own[0]:9.3f}" if own else f"{'–':>9}"
            ratio = f"{seconds / own[0]:8.1f}" if own and not peer.differs else f"{'–':>8}"
            print(f"{peer.name:52}{seconds:9.3f}{mine}{ratio}")
            print(f"    finds {found}" + (f"; ours {own[1]}" if own else ""))
            if peer.differs:
                print(f"    no ratio: {peer.differs}")


if __name__ == "__main__":
    main()
