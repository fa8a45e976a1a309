"""How far reviewers agree, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundfault.render.page import Table, make_table

_MEASURES = {
    "raw": "raw agreement",
    "kappa": "Cohen's kappa",
    "alpha": "Krippendorff's alpha",
    "ac1": "Gwet's AC1",
}
NOBODY = "no item was reviewed blind by two reviewers yet"
"""What stands in the table's place where it has no numbers."""


def tabulate_agreement(agreement: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """Each question's measures, and what could not be computed as the note; no rows without items.

    Parameters
    ----------
    agreement : mapping
        By question, then by measure, the fields of an `Agreement`, with None for NaN.
    """
    if not any(measures["raw"]["items"] for measures in agreement.values()):
        return make_table("Agreement", "", (), (), NOBODY)
    rows: list[tuple[str, ...]] = []
    reasons: dict[str, list[str]] = {}
    for question, measures in agreement.items():
        label = question.replace("_", " ")
        cells = (_write(measures[name]) for name in _MEASURES)
        rows.append((label, str(measures["raw"]["items"]), *cells))
        for name, full in _MEASURES.items():
            if measures[name]["reason"]:
                reasons.setdefault(measures[name]["reason"], []).append(f"{full} of {label}")
    lines = [f"{reason} ({', '.join(where)})" for reason, where in reasons.items()]
    lines += ["items that two or more reviewed blind; 95% intervals from a bootstrap over items"]
    heads = ("question", "items", *_MEASURES.values())
    return make_table("Agreement", "tnnnnn", heads, rows, "\n".join(lines))


def _write(measure: Mapping[str, Any]) -> str:
    if measure["value"] is None:
        return "-"
    return f"{measure['value']:.2f}" + (
        "" if measure["low"] is None else f" [{measure['low']:.2f}, {measure['high']:.2f}]"
    )
