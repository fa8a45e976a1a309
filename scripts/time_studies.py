"""Time a quick trial of studies, and fill the table of times in studies/README.md.

    python scripts/time_studies.py label-cost probe-networks --kill-after 60

Each trial runs in a process of its own with ``--quick --out``. With ``--kill-after`` it is killed
(-9) after so many seconds, and run again to the end, which has to work; both runs are counted."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "studies" / "README.md"
MARKS = re.compile(r"(<!-- times -->\n)(.*?)(<!-- end -->)", re.DOTALL)
HEAD = "| study | CPU s | wall s | killed after | day |\n|---|--:|--:|--:|---|\n"


def read_times(text: str) -> dict[str, list[str]]:
    """Return the cells of the table by the name of the study."""
    table = MARKS.search(text)
    lines = table[2].splitlines()[2:] if table else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line]
    return {row[0].strip("`"): row[1:] for row in rows}


def fill_times(text: str, rows: dict[str, list[str]]) -> str:
    """Return the text with these rows in its table, in the order of their names."""
    lines = [f"| `{name}` | {' | '.join(rows[name])} |\n" for name in sorted(rows)]
    return MARKS.sub(lambda found: found[1] + HEAD + "".join(lines) + found[3], text)


def time_study(name: str, kill_after: float, options: list[str]) -> list[str]:
    """Return the cells of a study: CPU and wall seconds, when it was killed, and the day."""
    start, before = time.monotonic(), os.times()
    with tempfile.TemporaryDirectory() as out:
        words = [sys.executable, "-m", "groundfault", "lab", "study", name, "--quick", "--out", out]
        was_killed = bool(kill_after) and _run([*words, *options], kill_after)
        if not kill_after or was_killed:
            _run([*words, *options], None)
    after = os.times()
    cpu = sum(
        getattr(after, key) - getattr(before, key) for key in ("children_user", "children_system")
    )
    wall = time.monotonic() - start
    killed = f"{kill_after:.0f} s" if was_killed else "–"
    return [f"{cpu:.0f}", f"{wall:.0f}", killed, f"{datetime.now(UTC):%Y-%m-%d}"]


def _run(words: list[str], seconds: float | None) -> bool:
    """Run to the end, or kill after so many seconds; return whether it was killed."""
    process = subprocess.Popen(words)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    # 2: whole, but for tables whose data or libraries are not here
    if process.returncode not in (0, 2):
        raise SystemExit(f"{' '.join(words)} ended with exit status {process.returncode}")
    return False


def main() -> None:
    """Time the studies that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="+", metavar="STUDY")
    parser.add_argument("--kill-after", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--shared", metavar="DIR")
    settings = parser.parse_args()
    options = ["--shared", settings.shared] if settings.shared else []
    for name in settings.names:
        row = time_study(name, settings.kill_after, options)
        print(name, *row)
        text = README.read_text(encoding="utf-8")
        README.write_text(fill_times(text, read_times(text) | {name: row}), encoding="utf-8")


if __name__ == "__main__":
    main()
