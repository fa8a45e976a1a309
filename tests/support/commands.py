"""Runs the program as a shell does, but in this process: each start of Python takes a second."""

from __future__ import annotations

import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from groundfault.cli.main import main


class Ending(NamedTuple):
    """How a command ended: its exit status, and what it wrote."""

    status: int
    output: str
    errors: str


def run_program(*words: str, folder: Path | str = ".") -> Ending:
    """Run ``groundfault`` with these words in a folder."""
    output, errors = StringIO(), StringIO()
    status = 0
    with (
        chdir(folder),
        patch.object(sys, "argv", ["groundfault", *words]),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Ending(status, output.getvalue(), errors.getvalue())
