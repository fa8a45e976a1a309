"""Cuts of one column of numbers: several findings that are one fact, and its picture."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from groundfault.core.finding import Finding
from groundfault.render import words
from groundfault.render.drawing import Figure
from groundfault.render.mode_figures import DoseBar, draw_bars

_NUMERAL = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_COLUMN = r'(?P<column>[^\W\d]\w*|"(?:[^"]|"")+")'
_CUT = re.compile(rf"\s*{_COLUMN}\s*(?P<sign>[<>]=?)\s*(?P<value>{_NUMERAL})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Cut:
    """A rule that cuts a column of numbers in two.

    Attributes
    ----------
    column : str
    value : float
    above : bool
        Whether it holds for what is above the value.
    inclusive : bool
        Whether the value itself is above.
    """

    column: str
    value: float
    above: bool
    inclusive: bool


def read_cut(rule: str) -> Cut | None:
    """The cut that a rule is; None for every other rule.

    Examples
    --------
    >>> read_cut('"n words" <= 12')
    Cut(column='n words', value=12.0, above=False, inclusive=False)
    >>> read_cut("n_words > 12 AND lang = 'de'")
    """
    match = _CUT.fullmatch(rule)
    if match is None:
        return None
    column = match["column"]
    if column.startswith('"'):
        column = column[1:-1].replace('""', '"')
    return Cut(column, float(match["value"]), match["sign"][0] == ">", match["sign"] in (">=", "<"))


def draw_cuts(findings: Iterable[Finding], lead: Finding, name: str) -> Figure | None:
    """Failure rates between the cuts of a column, from the counts on both sides of each.

    Parameters
    ----------
    findings : iterable of Finding
        All of a report; those of other columns and outcomes are passed over, and those for which
        other units have a value.
    lead : Finding
        The one whose side is marked.
    name : str
        Of the picture.

    Returns
    -------
    Figure or None
        None where there are not two cuts.
    """
    cut = read_cut(lead.rule)
    if cut is None:
        return None
    total = lead.full.on + lead.full.off
    failures = lead.full.on_errors + lead.full.off_errors
    above: dict[tuple[float, bool], tuple[int, float]] = {}
    for finding in findings:
        other, cell = read_cut(finding.rule), finding.full
        if (
            other is not None
            and (other.column, finding.outcome) == (cut.column, lead.outcome)
            and cell.on + cell.off == total
        ):
            sides = (cell.on, cell.on_errors) if other.above else (cell.off, cell.off_errors)
            above[(other.value, not other.inclusive)] = sides
    if len(above) < 2:
        return None
    edges = sorted(above)
    counts = [(total, failures), *(above[edge] for edge in edges), (0, 0.0)]
    names = [_name(*pair) for pair in zip([None, *edges], [*edges, None], strict=True)]
    bars = []
    for place, label in enumerate(names):
        n = counts[place][0] - counts[place + 1][0]
        errors = counts[place][1] - counts[place + 1][1]
        holds = (place > edges.index((cut.value, not cut.inclusive))) is cut.above
        if n > 0:
            bars.append(DoseBar(label, max(errors, 0.0) / n, n, holds))
    title = words.clean(cut.column)
    caption = f"Failure rate by {title}, of all units; above each bar, how many these are."
    return draw_bars(bars, name, title, caption)


def _name(low: tuple[float, bool] | None, high: tuple[float, bool] | None) -> str:
    """The values between two cuts."""
    if low is None and high is not None:
        return f"{'≤' if high[1] else '<'} {high[0]:.4g}"
    if low is not None and high is None:
        return f"{'>' if low[1] else '≥'} {low[0]:.4g}"
    assert low is not None
    assert high is not None
    return f"{low[0]:.4g} to {high[0]:.4g}"
