"""Official figures: what a benchmark's own tool makes of a log, beside what is scored here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

import polars as pl

from groundfault.core.status import COUNTABLE, Status

_MAX_LINES = 3


@dataclass(frozen=True)
class OfficialFigure:
    """What a tool counts in a log, and what was read from it.

    Attributes
    ----------
    tool, model : str
    passes, total : int
        How many of how many the tool counts as passed.
    score : float
        Sum of the scores that were read.
    rows : dict of str to int
        Rows that were read, by status.
    """

    tool: str
    model: str
    passes: int
    total: int
    score: float = 0.0
    rows: dict[str, int] = field(default_factory=dict)

    def add_rows(self, frame: pl.DataFrame) -> OfficialFigure:
        """The figure beside further rows of the log."""
        rows = dict(self.rows)
        for status, n in frame["status"].value_counts().iter_rows():
            rows[str(status)] = rows.get(str(status), 0) + int(n)
        scored = frame.filter(pl.col("status") == Status.SCORED)["value"].sum()
        return replace(self, score=self.score + float(scored or 0.0), rows=rows)


def compare_official(
    figures: Iterable[OfficialFigure | None], count_as_failed: Collection[str] = ()
) -> list[str]:
    """Where the tools' own pass rates are others than those here: a sentence for each model.

    Parameters
    ----------
    figures : iterable of OfficialFigure, or None
        Of each log; those of one tool and model are added up.
    count_as_failed : collection of str
        The statuses that count as failures here.
    """
    sums: dict[tuple[str, str], OfficialFigure] = {}
    for each in figures:
        if each is not None:
            key = each.tool, each.model
            sums[key] = _add(sums.get(key, OfficialFigure(*key, 0, 0)), each)
    lines = [line for figure in sums.values() if (line := _compare(figure, count_as_failed))]
    more = len(lines) - _MAX_LINES
    rest = [f"the same holds for {more} more model{'s' if more > 1 else ''}"] if more > 0 else []
    return [*lines[:_MAX_LINES], *rest]


def _add(one: OfficialFigure, two: OfficialFigure) -> OfficialFigure:
    rows = {s: one.rows.get(s, 0) + two.rows.get(s, 0) for s in {**one.rows, **two.rows}}
    passes, total = one.passes + two.passes, one.total + two.total
    return OfficialFigure(one.tool, one.model, passes, total, one.score + two.score, rows)


def _compare(figure: OfficialFigure, count_as_failed: Collection[str]) -> str:
    """Both rates and the rows that make the difference; empty where the rates are equal."""
    failed = sum(n for status, n in figure.rows.items() if status in count_as_failed)
    scored = figure.rows.get(str(Status.SCORED), 0) + failed
    if not figure.total or not scored or figure.score * figure.total == figure.passes * scored:
        return ""
    apart = {
        status: n
        for status, n in figure.rows.items()
        if n and status != Status.SCORED and status not in count_as_failed
    }
    unread = figure.total - sum(figure.rows.values())
    reasons = " and ".join(f"{n:,} {status}" for status, n in apart.items())
    countable = [status for status in apart if status in COUNTABLE]
    switch = " ".join(f"--count-as-failed {status}" for status in countable)
    return (
        f"{figure.tool} itself counts {figure.passes:,} of {figure.total:,} passed "
        f"({figure.passes / figure.total:.1%}) for {figure.model}, and here "
        f"{figure.score:,g} of {scored:,} did ({figure.score / scored:.1%})"
        + (f"; to it {reasons} are failures" if reasons else "")
        + (f" ({switch} counts them here, too)" if switch else "")
        + (f"; {unread:,} of its answers are not in the log" if unread > 0 else "")
    )
