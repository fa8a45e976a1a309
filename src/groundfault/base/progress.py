"""Progress of long work: messages to a function that the caller may pass."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Progress = Callable[[str], object]


def listener(progress: Progress | None) -> Progress:
    """Return the function to call with a message: the argument, or a function without effect."""
    return progress or _ignore


def _ignore(message: str) -> None:
    """Ignore a message, because the caller passed no function."""


def show_steps() -> Progress:
    """Return a function that shows the current step in one line, to be passed as ``progress``.

    The line is below the cell in a notebook, and on standard error in a terminal. Elsewhere, as in
    the log of a job, each step is a line of its own.

    Examples
    --------
    >>> import groundfault
    >>> table = {"lang": ["de", "en"] * 50, "error": [1, 0, 0, 0] * 25}
    >>> evidence = groundfault.Evidence.from_table(table, outcome="error")
    >>> report = groundfault.audit(evidence, ledger=False, progress=groundfault.show_steps())
    """
    shell = _find_notebook()
    if shell is not None:
        return _NotebookLine()
    return _write_over if sys.stderr.isatty() else _write_line


def _find_notebook() -> Any:
    """Return the running shell if it has a notebook's kernel, without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


class _NotebookLine:
    """One line of output below a cell, written anew with each message."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, message: str) -> None:
        content = {"text/plain": message}
        if self._handle is None:
            from IPython.display import display

            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def _write_over(message: str) -> None:
    """Write a message over the last one: back to the start of the line, which is cleared."""
    sys.stderr.write(f"\r\x1b[K{_clean(message)}")
    sys.stderr.flush()


def _write_line(message: str) -> None:
    sys.stderr.write(f"{_clean(message)}\n")


def _clean(message: str) -> str:
    """Return a message without control characters, which names of files and columns may hold."""
    return "".join(c if c.isprintable() else "\ufffd" for c in message)
