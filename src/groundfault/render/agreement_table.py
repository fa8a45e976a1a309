"""The table of how far reviewers agree on each question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundfault.render import words
from groundfault.render.page import Table, make_table

_MEASURES = {
    "raw": "Raw",
    "kappa": "Cohen's kappa",
    "alpha": "Krippendorff's alpha",
    "ac1": "Gwet's AC1",
}
REVIEWED = (
    "Items that two or more reviewed blind; 95% intervals from a bootstrap over items; "
    "adjudicators left out"
)


def tabulate_agreement(measures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """Make a table of each question's measures; its note says why some could not be computed.

    Parameters
    ----------
    measures : mapping
        As `groundfault.review.decision.summarize_agreement` returns them; without items there are
        no rows.
    """
    rows: list[tuple[str, ...]] = []
    reasons: dict[str, list[str]] = {}
    for question, some in measures.items():
        if not some["raw"]["items"]:
            continue
        label = question.replace("_", " ")
        cells = (_write_measure(some[name]) for name in _MEASURES)
        rows.append((label, words.count(some["raw"]["items"]), *cells))
        for name, head in _MEASURES.items():
            if some[name]["reason"]:
                reasons.setdefault(some[name]["reason"], []).append(f"{head} of {label}")
    lines = [f"{reason} ({', '.join(where)})" for reason, where in reasons.items()]
    note = "\n".join([*lines, REVIEWED]) if rows else _UNREVIEWED
    heads = ("Question", "Items", *_MEASURES.values())
    return make_table("Agreement of reviewers", "tnnnnn", heads, rows, note)


_UNREVIEWED = "no item was reviewed blind by two reviewers yet"


def _write_measure(measure: Mapping[str, Any]) -> str:
    if measure["value"] is None:
        return words.NONE
    ends = None if measure["low"] is None else (measure["low"], measure["high"])
    return f"{measure['value']:.2f}{words.bracket(ends, words.write_coefficient)}"
