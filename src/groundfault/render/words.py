"""Words and numbers as every rendering prints them; text from data made safe to print on one
line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import PurePath

from groundfault.auditing import messages
from groundfault.core.finding import Cell, Finding, Verdict
from groundfault.core.status import Status
from groundfault.errors import InputError, list_some

NONE = "–"
VERDICTS = {
    Verdict.CONFIRMED: "confirmed",
    Verdict.TOO_SMALL: "too small",
    Verdict.NOT_REPLICATED: "not replicated",
    Verdict.BELOW_FLOOR: "below the floor",
    Verdict.UNTESTABLE: "untestable",
}

STATUSES = {str(Status.ERROR): "crashed"}
"""Words for statuses that would be read otherwise: "error" is what a model does elsewhere."""

# characters that steer a terminal, break a line or reverse the direction of writing
_BREAKS = re.compile(r"[\t-\r\x1c-\x1e\x85\u2028\u2029]+")
_STEERING = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def clean(text: object) -> str:
    """Return text from data on one line, without characters that would not print."""
    return _STEERING.sub("\ufffd", _BREAKS.sub(" ", str(text)))


def count(number: int) -> str:
    """Write a count with thousands set apart."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """Write a count and its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def signed(value: float | None, digits: int = 2) -> str:
    """Write a number with its sign, with a true minus sign; zero has no sign."""
    if value is None:
        return NONE
    text = f"{value:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def points(value: float | None) -> str:
    """Write a difference of rates in percentage points."""
    return NONE if value is None else messages.format_points(value)


def bare(lift: float | None) -> str:
    """Write a least difference of rates, which has no sign."""
    return "none" if lift is None else f"{100 * lift:.3g} points"


def rate(value: float | None) -> str:
    """Write a share as a percentage of two or three digits; never 0% or 100% where it is not."""
    return NONE if value is None else messages.format_rate(value)


def name_failures(steps: Sequence[str]) -> str:
    """Write which optional steps failed and were left out; empty if all succeeded."""
    return clean(f"Left out, because it failed: {'; '.join(steps)}.") if steps else ""


def share(cell: Cell, side: str) -> str:
    """Write errors over units on one side of the slice, and their rate."""
    size, errors = (cell.on, cell.on_errors) if side == "on" else (cell.off, cell.off_errors)
    value = cell.on_rate if side == "on" else cell.off_rate
    return f"{errors:,g}/{size:,} ({rate(value)})" if size else "0/0"


def interval(cell: Cell | None) -> str:
    """Write the interval of a cell: of its difference, or of its ratio."""
    return span(cell.interval if cell else None, points)


def span(ends: Sequence[float] | None, write: Callable[[float], str] = rate) -> str:
    """Write an interval from one end to the other."""
    return NONE if ends is None else f"{write(ends[0])} to {write(ends[1])}"


def bracket(ends: Sequence[float] | None, write: Callable[[float], str] = rate) -> str:
    """Write an interval in brackets, to stand after its estimate; empty without one."""
    return "" if ends is None else f" ({span(ends, write)})"


def write_coefficient(value: float) -> str:
    """Write a coefficient such as kappa."""
    return f"{value:.2f}"


def ratio_interval(cell: Cell | None) -> str:
    """Write the interval of a cell that holds a ratio, which has no sign."""
    return span(cell.interval if cell else None, write_coefficient)


def p_value(p: float | None) -> str:
    """Write a p-value to four digits; a smaller one tells a reader no more."""
    if p is None:
        return NONE
    return "<0.0001" if p < 0.0001 else f"{p:.{3 if p >= 0.001 else 4}f}"


def level(share: float) -> str:
    """Write a level as a percentage with all of its digits."""
    return f"{100 * share:g}%"


def decimal(value: str | float | None, default: float = 0.0) -> float:
    """Read a plan setting, which is stored as a decimal or fraction, as a float."""
    try:
        return default if value is None else float(Fraction(str(value)))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError(f"the report holds {value!r:.60} where a number belongs") from None


def label(finding: Finding) -> str:
    """Return the name of a finding, with its outcome where there are several, on one line."""
    return clean(finding.key)


def name_candidate(name: str, outcome: str) -> str:
    """Return a candidate's name, with the outcome where there are several."""
    return f"{name} · {outcome}" if outcome else name


def listing(names: list[str] | tuple[str, ...], max_names: int = 12) -> str:
    """List names in a row; of many, the first ones and how many more there are."""
    return list_some(names, max_names) or "none"


def capital(sentence: str) -> str:
    """Return a sentence with its first letter large."""
    return sentence[:1].upper() + sentence[1:]


def tally(counts: dict[str, int]) -> str:
    """Count findings by verdict, as a sentence; a count of zero too small ones is left out."""
    numbers = {
        Verdict(verdict): n for verdict, n in counts.items() if n or verdict != Verdict.TOO_SMALL
    }
    return ", ".join(f"{count(n)} {VERDICTS[verdict]}" for verdict, n in numbers.items()) + "."


def tail(path: str, parts: int = 2) -> str:
    """Return the end of a path, which tells files of one folder apart."""
    return str(PurePath(*PurePath(path).parts[-parts:]))
