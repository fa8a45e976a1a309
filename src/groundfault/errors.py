"""Errors of groundfault, each with its remedy.

::

    GroundfaultError
    ├── InputError          a file, a column or a value cannot be used
    ├── RuleError           a candidate's rule is not a usable true/false expression
    ├── PlanError           settings that cannot be, or contradict each other
    ├── LedgerError         a holdout was opened before, or the record was altered
    ├── MissingExtraError   an optional library is needed and not installed
    └── InternalError       a judge returned a value that is no number; no report was made

Every message names the fault, its place (file, column, record) and the remedy. The command line
prints it in one line and exits with status 2."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MAX_MESSAGE = 2000
"""Characters of an error's message."""


class GroundfaultError(Exception):
    """Base of every error that groundfault raises on purpose.

    Messages quote data, which may be of any length: of a longer one than 2,000 characters the
    beginning and the end are kept.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(shorten(arg) if isinstance(arg, str) else arg for arg in args))


class InputError(GroundfaultError, ValueError):
    """Evidence cannot be read as given. Fix the named file, column or value and run again; no file
    was written.
    """


class RuleError(GroundfaultError, ValueError):
    """A candidate's rule is malformed, names an unknown column, or is not a true/false
    expression.
    """


class PlanError(GroundfaultError, ValueError):
    """A plan's settings are impossible. The message names the setting and its allowed range."""


class LedgerError(GroundfaultError, RuntimeError):
    """The holdout was opened before with other candidates, or the ledger does not add up.

    To look again on purpose, say why: ``reopen="..."`` in Python, ``--reopen "..."`` in the shell.
    The reason stays in the report."""


class MissingExtraError(GroundfaultError, ImportError):
    """An optional library is needed; the message gives the ``pip install`` line."""


@contextmanager
def require_extra(message: str) -> Iterator[None]:
    """Raise `MissingExtraError` with a message where an import in the block fails."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(message) from None


class InternalError(GroundfaultError, RuntimeError):
    """A computation went wrong, in groundfault or in a judge of yours, and no report was made.

    A missing number is never taken for "not beyond chance". Please report it, with the message."""


def list_some(names: Iterable[str], most: int = 12) -> str:
    """List names, of many the first ones and how many more; 12 are two lines of a page."""
    first = list(names)
    more = f" and {len(first) - most:,} more" if len(first) > most else ""
    return ", ".join(first[:most]) + more


def shorten(message: str) -> str:
    """Return a message of at most 2,000 characters: the fault stands first, the remedy last."""
    if len(message) <= MAX_MESSAGE:
        return message
    cut = f" [... {len(message):,} characters ...] "
    tail = MAX_MESSAGE // 5
    return message[: MAX_MESSAGE - tail - len(cut)] + cut + message[-tail:]


def require_word(what: str, value: object, words: Iterable[object]) -> None:
    """Raise `PlanError` for a setting that is not one of its allowed words."""
    if value not in words:
        raise PlanError(f"{what} must be one of {', '.join(map(str, words))}, not {value!r}")


def require_name(
    kind: str,
    value: object,
    names: Collection[object],
    error: type[GroundfaultError] = PlanError,
    where: str = "",
) -> None:
    """Raise an error for an unknown name; the message lists the known ones."""
    if value not in names:
        # twenty fill some lines; a wide table has thousands of columns
        known = ", ".join(map(str, [*names][:20])) or "none"
        known += ", ..." if len(names) > 20 else ""
        raise error(f"{where and f'{where}: '}there is no {kind} {value!r}; there are {known}")


def describe_missing(path: Path) -> str:
    """Return a message about a missing file, with the most similar name in its folder.

    Examples
    --------
    >>> describe_missing(Path("no/such/folder/runs.csv"))
    'no/such/folder/runs.csv does not exist; check the folder and the name'
    """
    names = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, 1)
    advice = f"did you mean {path.parent / near[0]}?" if near else "check the folder and the name"
    return f"{path} does not exist; {advice}"


def require_whole(
    what: str, value: object, least: int = 1, error: type[GroundfaultError] = PlanError
) -> None:
    """Raise an error for a setting that is no whole number of at least so much."""
    # a bool is a number to Python: a budget of True would be 1
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise error(f"{what} must be a whole number from {least}, not {value!r}")


def attempt(
    failures: list[str], step: str, default: T, make: Callable[..., T], *arguments: object
) -> T:
    """Return the result of an optional step, or a default if it fails.

    Parameters
    ----------
    failures : list of str
        Gets a line about the failure; its traceback is logged at debug.
    step : str
        The step in a few words, such as "the hints".
    default : any
        The result where it fails.
    make : callable
        The step, called with the arguments.

    Examples
    --------
    >>> failures = []
    >>> attempt(failures, "the root", None, float, "four")
    >>> failures
    ["the root: ValueError: could not convert string to float: 'four'"]
    """
    try:
        return make(*arguments)
    except BaseException as error:
        # assertions of polars are no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        note_failure(failures, step, error)
        return default


def note_failure(failures: list[str], step: str, error: BaseException) -> None:
    """Add a line about a failed step to the others, and log its traceback at debug."""
    logging.getLogger("groundfault").debug("left out: %s", step, exc_info=True)
    failures.append(f"{step}: {type(error).__name__}: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """Return the first line of another library's error message, or its kind if it is empty."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
