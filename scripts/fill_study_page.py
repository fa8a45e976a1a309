"""Put a study's tables into a page of the book, between two marks, and its figures beside it.

    python scripts/fill_study_page.py PAGE MARK TABLES.md [--drop TITLE ...]

MARK stands in the page as <!-- MARK -->, up to the next <!-- end -->. Sections of the study are one
level lower in the page; those whose title begins with a TITLE are left out. A note that several
tables share is kept once."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path


def cut_sections(text: str, drop: list[str]) -> str:
    """The study without its heading and source, sections a level lower, some left out."""
    _, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    wanted = [one for one in sections if not any(one.startswith(title) for title in drop)]
    figures = re.findall(r"^!\[.*$", text, flags=re.MULTILINE)
    body = "".join(
        f"### {re.sub(r'^!.*$', '', one, flags=re.MULTILINE).strip()}\n\n" for one in wanted
    )
    return "".join(f"{figure}\n\n" for figure in figures) + drop_repeated_notes(body)


def drop_repeated_notes(body: str) -> str:
    """Keep a note that several tables share under the first of them alone."""
    kept: list[str] = []
    for part in body.split("\n\n"):
        if not part or part.startswith(("#", "|")) or part not in kept:
            kept.append(part)
    return "\n\n".join(kept)


def main() -> None:
    """Fill the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("page", type=Path)
    parser.add_argument("mark")
    parser.add_argument("tables", type=Path)
    parser.add_argument("--drop", nargs="*", default=[])
    options = parser.parse_args()
    body = cut_sections(options.tables.read_text(encoding="utf-8"), options.drop)
    page = options.page.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {re.escape(options.mark)} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{options.page} has no <!-- {options.mark} --> ... <!-- end -->")
    filled = pattern.sub(lambda match: f"{match[1]}\n{body}{match[2]}", page)
    options.page.write_text(filled, encoding="utf-8")
    for figure in options.tables.parent.glob(f"{options.tables.stem}-*.svg"):
        shutil.copy(figure, options.page.parent / figure.name)


if __name__ == "__main__":
    main()
