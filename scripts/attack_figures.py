"""Attack the software, and write how often into docs/explanation/attacks.md.

python scripts/attack_figures.py             all of it, which takes an hour
python scripts/attack_figures.py 1500        at most so many random tables and options
python scripts/attack_figures.py --read a.xml b.xml    figures of runs that have ended
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections import defaultdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

HOME = Path(__file__).parents[1]
PAGE = HOME / "docs" / "explanation" / "attacks.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
ROWS = {
    "random tables: audited, checked, searched otherwise, compared": "attacks/test_odd_tables",
    "odd values for options of all commands": "attacks/test_odd_options",
    "odd, damaged and endless files; logs of strangers": (
        "attacks/test_odd_files attacks/test_bounds attacks/test_formulas attacks/test_types "
        "attacks/test_duplicate_keys test_hostile_logs"
    ),
    "small files that unpack to gigabytes": "attacks/test_bombs",
    "a disk that is full, over its quota or broken, at any change of 8 commands": (
        "attacks/test_disk_faults"
    ),
    "`kill -9` of commands at any step": "attacks/test_kills attacks/test_reviewers",
    "SIGTERM and SIGINT while workers start and work, and in compiled code": "cli/test_terminate",
    "edits of results, and files added to them": "attacks/test_edits attacks/test_odd_folders",
    "texts, names and patterns in rules, by three engines": "attacks/test_engine_rules",
    "places and servers that a file names": "attacks/test_places",
    "orders to a model, and replies of a model that obeys": "attacks/test_prompt_injection",
    "replies and keys of hostile servers": "models/test_hostile_server models/test_raw_replies",
    "held-out outcomes, by words, files, requests and work done": "attacks/test_held_out",
    "requests from other origins, by other names, too large, half, or slow": (
        "workbench/test_auth workbench/test_connections workbench/test_raw_requests"
    ),
    "ledgers altered, cut, of another layout, or written by several at once": "base/test_ledger.",
}


def run(most: str) -> Path:
    """Run all attacks; return the record of them."""
    record = HOME / "attacks.xml"
    files = [path for name in " ".join(ROWS.values()).split() for path in find_files(name)]
    words = ["-m", "slow or not slow", "-n", "0", f"--junitxml={record}", *map(str, files)]
    variables = {**os.environ, "HYPOTHESIS_PROFILE": "nightly", "MOST_EXAMPLES": most}
    subprocess.run([sys.executable, "-m", "pytest", *words], cwd=HOME, env=variables, check=False)
    return record


def find_files(name: str) -> list[Path]:
    """Return the test files whose path begins so."""
    return sorted(
        (HOME / "tests").glob(f"{name.rstrip('.')}*.py" if name[-1] != "." else f"{name}py")
    )


def count(records: list[Path]) -> dict[str, list[int]]:
    """Return how many attacks there were of each row, and how many tests failed."""
    figures: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for record in records:
        for test in ElementTree.parse(record).iter("testcase"):
            if test.find("skipped") is not None:
                continue
            place = test.get("classname", "").removeprefix("tests.").replace(".", "/") + "."
            row = next(r for r, names in ROWS.items() if place.startswith(tuple(names.split())))
            stated = test.find("properties/property[@name='attacks']")
            figures[row][0] += 1 if stated is None else int(stated.get("value", ""))
            is_failed = test.find("failure") is not None or test.find("error") is not None
            figures[row][1] += is_failed
    return figures


def write(figures: dict[str, list[int]]) -> None:
    """Put the table between its marks on the page."""
    day = datetime.now(UTC)
    libraries = ", ".join(f"{name} {version(name)}" for name in ("polars", "duckdb", "pyspark"))
    lines = [
        f"Measured on {day.day} {day:%B %Y} by `python scripts/attack_figures.py`, on one machine "
        f"with {os.cpu_count()} cores, Python {platform.python_version()}, {libraries}.",
        "",
        "| attack | how many | tests that failed | tests |",
        "|---|--:|--:|---|",
    ]
    for row, names in ROWS.items():
        tests = ", ".join(f"`{Path(name).name.rstrip('.')}`" for name in names.split())
        lines.append(f"| {row} | {figures[row][0]:,} | {figures[row][1]} | {tests} |")
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join([BEGIN, "", *lines, "", END])
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: table, text, flags=re.DOTALL), "utf-8")


if __name__ == "__main__":
    given = sys.argv[1:]
    write(
        count([Path(one) for one in given[1:]] if "--read" in given else [run(*given or ["10000"])])
    )
