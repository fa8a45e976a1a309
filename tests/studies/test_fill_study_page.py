"""The script that puts a study's tables into a page of the book."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fill_study_page.py"
PAGE = "# A page\n\n<!-- study -->\nold\n<!-- end -->\n\nafter\n\n<!-- other -->\n<!-- end -->\n"
STUDY = (
    "# Title\n\nSource.\n\n## n = 5\n\nNote.\n\n| a |\n\n## n = 6\n\nNote.\n\n| a |\n\n"
    "## Left out\n\n![x](s-x.svg)\n"
)


def fill(page: Path, mark: str, tables: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(SCRIPT), str(page), mark, str(tables), "--drop", "Left"]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_a_page_is_filled_between_its_marks_again_and_again(tmp_path: Path) -> None:
    page, tables = tmp_path / "docs" / "page.md", tmp_path / "out" / "s.md"
    for place, text in ((page, PAGE), (tables, STUDY), (tables.parent / "s-x.svg", "<svg/>")):
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    for _ in range(2):
        assert fill(page, "study", tables).returncode == 0
        assert page.read_text() == PAGE.replace(
            "old\n", "\n![x](s-x.svg)\n\n### n = 5\n\nNote.\n\n| a |\n\n### n = 6\n\n| a |\n\n"
        )
    assert (page.parent / "s-x.svg").read_text() == "<svg/>"
    assert "has no <!-- nothing -->" in fill(page, "nothing", tables).stderr
