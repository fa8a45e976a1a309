"""How the book is built: ``sphinx-build -W docs docs/_build/html``."""

from __future__ import annotations

import json
import os
import re
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "groundfault"
author = "The groundfault developers"
copyright = "The groundfault developers. Text and code: Apache-2.0"
version = release = installed("groundfault")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "offline_math"]
# tables, and pages for those who work on groundfault: files of the repository, named by their path
OFF_THE_SITE = (
    "cards",
    "contributing.md",
    "release.md",
    *(f"explanation/{name}.md" for name in ("attacks", "constants", "house", "speed")),
)
exclude_patterns = ["_build", "_extensions", *OFF_THE_SITE]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

default_role = "code"
smartquotes_action = "D"  # dashes alone: quotes are left as they have to be typed
autodoc_typehints = "none"  # docstrings name the types
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "groundfault"
html_math_renderer = "offline"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_show_sphinx = False
html_copy_source = False


def _as_napoleon_reads(*given: Any) -> None:
    """Escape |lift|, which is no substitution, and give attributes that share a line an entry
    each.
    """
    lines: list[str] = given[-1]
    out: list[str] = []
    heads: list[str] = []
    body: list[str] = []
    for line in [*(re.sub(r"(?<!\\)\|", r"\\|", line) for line in lines), ""]:
        if heads and line.startswith("    "):
            body.append(line)
            continue
        out += [part for head in heads for part in (head, *body)]
        names, _, kind = line.partition(" : ")
        several = kind and re.fullmatch(r"\w+(, \w+)+", names)
        heads, body = [f"{name} : {kind}" for name in names.split(", ")] if several else [], []
        out += [] if several else [line]
    lines[:] = out


def _name_files(_app: Any, page: str, source: list[str]) -> None:
    """Name a file of the repository by its path where a page links to it, as in a checkout."""

    def name(link: re.Match[str]) -> str:
        target = link[2].partition("#")[0]
        inside = os.path.normpath(Path(page).parent / target)
        if ":" in target or not (inside.startswith("..") or inside.startswith(OFF_THE_SITE)):
            return link[0]
        return f"{link[1]} (`{os.path.normpath(Path('docs') / inside)}`)"

    source[0] = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", name, source[0])


def _forward_old_pages(app: Any, failed: Exception | None) -> None:
    """Write a page that leads on for each address of an earlier version."""
    if failed or app.builder.format != "html":
        return
    for old, new in json.loads((HERE / "moved.json").read_text(encoding="utf-8")).items():
        page = Path(app.outdir, f"{old}.html")
        page.parent.mkdir(parents=True, exist_ok=True)
        name, mark, part = new.partition("#")
        way = os.path.relpath(f"{name}.html", Path(old).parent) + mark + part
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><title>Moved</title>'
            f'<meta http-equiv="refresh" content="0; url={way}"><a href="{way}">Moved</a>\n',
            encoding="utf-8",
        )


def setup(app: Any) -> None:
    """Connect the hooks."""
    app.connect("autodoc-process-docstring", _as_napoleon_reads, priority=400)  # before napoleon
    app.connect("source-read", _name_files)
    app.connect("build-finished", _forward_old_pages)
