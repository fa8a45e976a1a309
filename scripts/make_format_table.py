"""The table of formats: what real logs say, as their tools and as we count it.

    python scripts/make_format_table.py            # rewrites studies/results/formats.md
    python scripts/make_format_table.py NEW_LOGS   # prints the table of logs written today

It reads every log in ``tests/fixtures/clients``, or in a folder laid out like it; a folder is named
``<client>-<version>``. A tool's own count is read from what the tool wrote beside the outcomes, not
from the outcomes.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from groundfault import readers
from groundfault.readers.log import stack
from groundfault.readers.safely import Archive

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "tests" / "fixtures" / "clients"
PAGE = ROOT / "studies" / "results" / "formats.md"

# sum of the values by scorer, and over how many answers; None for what the tool does not say
Counts = dict[str, tuple[float, int]]

INTRODUCTION = """# Formats, as their tools write them

Does groundfault read the scores that a tool reports? These are small logs by the tools themselves,
made every night (`scripts/make_client_logs.py`, `pytest -m clients`). *Tool* is the sum of scores
over the number of answers as the tool counts them, *groundfault* the scores that groundfault reads.
The two differ where a tool counts as failed a refusal, an unreadable answer, or one that its grader
did not reach; the verdict says how many.

"""


@dataclass(frozen=True)
class Line:
    """One scorer of one log."""

    client: str
    path: str
    scorer: str
    rows: int
    statuses: str
    tool: tuple[float, int]
    ours: tuple[float, int]
    n_unscored: int

    @property
    def agrees(self) -> bool:
        """Whether all that the tool counts and we do not is there without a score, as failed."""
        return self.tool[0] == self.ours[0] and self.tool[1] - self.ours[1] in (0, self.n_unscored)

    @property
    def verdict(self) -> str:
        """What came out of the comparison."""
        if not self.agrees:
            return "**differs**"
        if self.tool == self.ours:
            return "equal"
        return f"equal but for {self.n_unscored} without an outcome"


def count_inspect(path: Path) -> Counts:
    """Means over samples, from the header."""
    results = Archive(path).json("header.json", dict[str, Any])["results"]
    counts = {}
    for score in results["scores"]:
        # these are examples: of several epochs each is there once
        n_scored, n_unscored = score["scored_samples"], score["unscored_samples"]
        n = n_scored * results["total_samples"] // (n_scored + n_unscored)
        counts[score["name"]] = round(score["metrics"]["accuracy"]["value"] * n, 9), n
    return counts


def count_promptfoo(path: Path) -> Counts:
    """Passes and failures, from the statistics; of a file without, those that it names."""
    if path.suffix in (".json", ".yaml"):
        load = json.loads if path.suffix == ".json" else yaml.safe_load
        stats = load(path.read_text("utf-8"))["results"]["stats"]
        return {"pass": (stats["successes"], stats["successes"] + stats["failures"])}
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            names = [row["Status"] for row in csv.DictReader(stream)]
        return {"pass": (names.count("PASS"), len(names) - names.count("ERROR"))}
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {"pass": (sum(row["success"] for row in rows), len(rows))}


def count_deepeval(path: Path) -> Counts:
    """Cases and metrics that passed."""
    run = json.loads(path.read_text("utf-8"))
    cases = {"success": (run["testPassed"], run["testPassed"] + run["testFailed"])}
    return cases | {
        each["metric"]: (each["passes"], each["passes"] + each["fails"])
        for each in run["metricsScores"]
    }


def count_lm_eval(path: Path) -> Counts:
    """Means over documents, from the results beside the samples."""
    (place,) = path.parent.glob("results_*.json")
    run = json.loads(place.read_text("utf-8"))
    ((task, results),) = run["results"].items()
    n = run["n-samples"][task]["effective"]
    return {
        name.removesuffix(",none"): (round(value * n, 9), n)
        for name, value in results.items()
        if "," in name and "_stderr" not in name
    }


COUNTS: dict[str, Callable[[Path], Counts]] = {
    "inspect": count_inspect,
    "promptfoo": count_promptfoo,
    "deepeval": count_deepeval,
    "lm_eval": count_lm_eval,
}


def compare(folder: Path) -> Iterator[Line]:
    """Every scorer of every log under a folder that has a subfolder a client."""
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = readers.sniff(path)
        if name not in COUNTS:
            continue
        client = path.relative_to(folder).parts[0]
        tables = [table for table, _ in readers.read(path).tables()]
        rows = list(stack(tables).select("scorer", "status", "value").iter_rows(named=True))
        for scorer, tool in COUNTS[name](path).items():
            # a row without a scorer is an answer that none of them scored
            mine = [row for row in rows if row["scorer"] in (scorer, "")]
            values = [row["value"] for row in mine if row["value"] is not None]
            statuses = Counter(row["status"] for row in mine)
            yield Line(
                client,
                path.suffix if name != "inspect" else f"{path.parent.name}, {path.suffix}",
                scorer,
                len(mine),
                ", ".join(f"{n} {status}" for status, n in sorted(statuses.items())),
                tool,
                (sum(values), len(values)),
                len(mine) - len(values),
            )


def write_table(lines: list[Line]) -> str:
    """The table, in Markdown."""
    head = "| client | log | scorer | rows | statuses | tool | groundfault | verdict |\n"
    rule = "|---|---|---|--:|---|--:|--:|---|\n"
    rows = dict.fromkeys(
        f"| {line.client} | {line.path} | `{line.scorer}` | {line.rows} | {line.statuses} "
        f"| {line.tool[0]:g} of {line.tool[1]} | {line.ours[0]:g} of {line.ours[1]} "
        f"| {line.verdict} |"
        for line in lines
    )
    return head + rule + "\n".join(rows) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(write_table(list(compare(Path(sys.argv[1])))))
    else:
        PAGE.write_text(INTRODUCTION + write_table(list(compare(LOGS))), encoding="utf-8")
