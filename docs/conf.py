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
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "groundfault"
html_math_renderer = "offline"
html_show_sphinx = False
html_copy_source = False


def _escape_bars(*given: Any) -> None:
    """Docstrings write |lift| for its size; reStructuredText would take that for a substitution."""
    lines: list[str] = given[-1]
    lines[:] = [re.sub(r"(?<!\\)\|", r"\\|", line) for line in lines]


def setup(app: Any) -> None:
    """Connect the one hook."""
    app.connect("autodoc-process-docstring", _escape_bars)
