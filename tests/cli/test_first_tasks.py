"""What a new user does first is right, short, quick, and never a traceback."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_first_task_is_right() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "first_tasks.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_table_of_first_tasks_has_twenty_that_are_right() -> None:
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    table = text.partition("first tasks: written by")[2].partition("<!-- end -->")[0]
    assert len(re.findall(r"\| yes \|$", table, re.MULTILINE)) == 20
    assert "status" not in table.partition("|---")[2]
