"""Counts of words that hide who does what; each may only fall. The rules are in the style guide.

Lower a limit when the prose has become better. Counted per 1,000 words, without code, tables and
headings. The aims are: "what" under 2, "nobody, none, nothing" under 1, "it" under 12, "you" over
12.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
WORDS = {
    "what": r"\bwhat\b",
    "nobody, none, nothing": r"\b(?:nobody|none|nothing)\b",
    "it, its": r"\bits?\b",
    "you, your": r"\byour?\b",
}
"""Of the last there should be more."""
OFF = ("attacks", "constants", "house", "speed")
"""Pages of explanation that are files of the repository, see ``docs/conf.py``."""
PARTS = {
    "README": [ROOT / "README.md"],
    "tutorials": sorted((DOCS / "tutorial").glob("*.md")),
    "how-tos": sorted((DOCS / "how-to").glob("*.md")),
    "reference": sorted((DOCS / "reference").glob("*.md")),
    "explanation": [
        page for page in sorted((DOCS / "explanation").glob("*.md")) if page.stem not in OFF
    ],
    "files of the repository": [DOCS / "explanation" / f"{name}.md" for name in OFF],
}
LIMITS = {
    "README": (1.0, 1.0, 14.5, 16.0),
    "tutorials": (0.6, 0.1, 12.0, 29.0),
    "how-tos": (0.6, 0.3, 12.2, 17.0),
    "reference": (0.6, 0.1, 15.0, 7.5),
    "explanation": (1.0, 1.0, 10.5, 11.0),
    "files of the repository": (1.2, 2.4, 18.5, 0.8),
    "docstrings": (1.0, 1.1, 17.5, 0.4),
}


def read_prose(page: Path) -> str:
    """Return a page without what is generated, code, tables, headings, names and addresses."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"<!-- generated: .*?<!-- end -->", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *(`{3,}).*?^ *\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)\s]*\)", "]", text)  # where a link leads
    lines = (line for line in text.splitlines() if not re.match(r"\s*(\||#|:::)", line))
    return re.sub(r"`[^`]*`", "x", "\n".join(lines))


def read_docstrings(folder: Path) -> str:
    """Return the docstrings of a package, without names, code and the value None."""
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted(folder.rglob("*.py"))]
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = [
        ast.get_docstring(node) or ""
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]
    return re.sub(r">>>.*|`[^`]*`|\bNone\b", "x", "\n".join(texts))


MOST_PAGES, MOST_WORDS = 40, 17_600
"""Of the site, which had 95 pages and 57,000 words."""


def test_the_site_stays_small() -> None:
    off = ("cards/", "contributing", "release", *(f"explanation/{name}" for name in OFF))
    names = {page: page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    pages = [page for page, name in names.items() if not name.startswith(("_build", *off))]
    words = sum(len(re.findall(r"\b[\w'-]+\b", read_prose(page))) for page in pages)
    assert len(pages) <= MOST_PAGES
    assert words <= MOST_WORDS


@pytest.mark.parametrize("part", LIMITS)
def test_the_voice_does_not_get_worse(part: str) -> None:
    pages = PARTS.get(part)
    text = "\n".join(map(read_prose, pages)) if pages else read_docstrings(ROOT / "src")
    size = len(re.findall(r"\b[\w'-]+\b", text))
    found = [
        len(re.findall(pattern, text, re.IGNORECASE)) * 1000 / size for pattern in WORDS.values()
    ]
    rates = dict(zip(WORDS, found, strict=True))
    *most, least = zip(rates.items(), LIMITS[part], strict=True)
    worse = [f"{word}: {rate:.1f}, at most {limit}" for (word, rate), limit in most if rate > limit]
    (word, rate), limit = least
    worse += [f"{word}: {rate:.1f}, at least {limit}"] * (rate < limit)
    assert not worse, f"{part}, per 1,000 words: {'; '.join(worse)}"
