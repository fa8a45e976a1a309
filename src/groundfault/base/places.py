"""Places that a file names: followed only where the reader is at home.

A report, a library or a card of evidence may come from anybody, and what it names may be a server
that waits for passwords, a folder full of links, or a file that is nobody's business. What the
caller names is opened wherever it is; what a file names is opened inside given folders.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path


def is_inside(place: str | Path, folders: Iterable[str | Path]) -> bool:
    """Whether a place that a file names lies in one of some folders, links followed.

    Parameters
    ----------
    place : path
        A path, or a pattern of paths. A URL, and a path on a server (``//server/share``), lie
        nowhere; neither is asked.
    folders : iterable of path
    """
    text = str(place)
    if "://" in text or "\0" in text or text.startswith(("//", "\\\\")):
        return False
    parts = Path(text).parts
    fixed = [part for part in parts if not glob.has_magic(part)]
    if len(fixed) < len(parts):
        # behind a wildcard ".." leads to where nobody has looked
        if ".." in parts:
            return False
        fixed = fixed[: next(i for i, part in enumerate(parts) if glob.has_magic(part))]
    real = Path(os.path.realpath(Path(*fixed)))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)
