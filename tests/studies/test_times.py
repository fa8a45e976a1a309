"""Each study has its row in the table of times, and a trial ends within 15 minutes."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "time_studies.py"))
LONGEST = 15 * 60


def test_each_study_has_its_time() -> None:
    project = tomllib.loads((ROOT / "studies" / "pyproject.toml").read_text())["project"]
    times = SCRIPT["read_times"]((ROOT / "studies" / "README.md").read_text())
    assert set(times) == set(project["entry-points"]["groundfault.studies"])
    for name, (cpu, wall, _, day) in times.items():
        assert int(cpu) < LONGEST, name
        assert wall == "–" or int(wall) < LONGEST, name
        assert len(day) == len("2026-11-28"), name


def test_a_row_is_replaced_and_others_stay() -> None:
    text = "before\n\n<!-- times -->\n<!-- end -->\n\nafter\n"
    rows = {"b": ["9", "20", "–", "2026-11-28"], "a": ["1", "2", "60 s", "2026-11-27"]}
    filled = SCRIPT["fill_times"](text, rows)
    assert SCRIPT["read_times"](filled) == rows
    assert filled.index("| `a` |") < filled.index("| `b` |")
    again = SCRIPT["fill_times"](filled, rows | {"b": ["8", "8", "–", "2026-11-29"]})
    assert SCRIPT["read_times"](again)["b"][0] == "8"
    assert again.startswith("before\n")
    assert again.endswith("\nafter\n")
