"""How the book is built: ``sphinx-build -W docs docs/_build/html``."""

from __future__ import annotations

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
exclude_patterns = ["_build", "_extensions"]
suppress_warnings = ["toc.empty_glob"]  # calibration cards are added as they are measured

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


def setup(app: Any) -> None:
    """Connect the one hook."""
    app.connect("autodoc-process-docstring", _as_napoleon_reads, priority=400)  # before napoleon
