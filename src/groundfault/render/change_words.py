"""Words for a comparison of two models: what changed overall, and what columns are of."""

from __future__ import annotations

from collections.abc import Iterable

from groundfault.auditing.report import Report
from groundfault.core.finding import Finding
from groundfault.render import words
from groundfault.render.audit_groups import main_cell

_MAX_ALIKE = 6

ASSOCIATION = (
    "A confirmed finding says that the two models differ on the slice: each example is compared "
    "with itself, and the models swapped within examples say what chance does. Why they differ it "
    "does not say. What was not among the candidates was not looked for."
)


def name_sides(report: Report) -> tuple[str, str]:
    """What the two sides of a cell are called in tables: on and off, or the two models."""
    if report.change is None or report.manifest.compare is None:
        return "on", "off"
    first, second = (words.clean(name) for name in report.manifest.compare)
    return second, first


def describe_overall(report: Report) -> str:
    """The change over all units in a sentence; empty where no two models were compared."""
    change, compare = report.change, report.manifest.compare
    if change is None or compare is None:
        return ""
    first, second = (words.clean(name) for name in compare)
    low, high = change.interval
    level = words.level(1 - words.decimal(report.plan.alpha))
    verdict = "a change beyond chance" if change.confirmed else "no change beyond chance"
    units = words.plural(change.n, report.unit)
    return (
        f"Overall, on {units}: {first} {words.rate(change.error_rates[0])} errors, {second} "
        f"{words.rate(change.error_rates[1])}; change {words.signed(change.change)} ({level} "
        f"interval {words.signed(low)} to {words.signed(high)}; p = {words.p_value(change.p)}): "
        f"{verdict}."
    )


def write_headline(report: Report, worse: int) -> str:
    """The answer of a comparison in a few words.

    Parameters
    ----------
    report : Report
        Of a comparison.
    worse : int
        How many slices, or groups of them, got worse unlike the rest.
    """
    change, (second, first) = report.change, name_sides(report)
    if worse:
        return f"{second} fails more often than {first} on {words.plural(worse, 'slice')}"
    if change is not None and change.confirmed:
        more = "more" if change.change > 0 else "less"
        return f"{second} fails {more} often than {first} overall"
    if report.confirmed:
        more = "more" if report.weaknesses else "less"
        return f"{second} fails {more} often than {first} on some slices"
    return f"No change from {first} to {second} beyond chance"


def is_unlike_rest(finding: Finding) -> bool:
    """Whether a change differs from the change elsewhere; true of what is no change."""
    return finding.elsewhere is None or finding.elsewhere.differs


def list_alike(findings: Iterable[Finding]) -> str:
    """The slices whose change cannot be told from the change elsewhere, in a sentence."""
    names = [
        f"{words.label(f)} ({words.signed(main_cell(f).lift)})"
        for f in findings
        if not is_unlike_rest(f)
    ]
    if not names:
        return ""
    return f"Changed, and not told from the change elsewhere: {words.listing(names, _MAX_ALIKE)}."


def describe_elsewhere(finding: Finding) -> str:
    """The change elsewhere, and whether that on the slice differs; empty without a contrast."""
    rest = finding.elsewhere
    if rest is None:
        return ""
    differs = ", is beyond chance" if rest.differs else ", is within chance"
    return (
        f"{words.signed(rest.change)}; the difference, {words.signed(rest.difference)} "
        f"({words.signed(rest.interval[0])} to {words.signed(rest.interval[1])}; adjusted p = "
        f"{words.p_value(rest.p_adjusted)}){differs}"
    )


def name_change(pair: tuple[str, str], *, is_better: bool) -> str:
    """What an example of a finding about a change is, in a few words.

    Examples
    --------
    >>> name_change(("old", "new"), is_better=False)
    'worse with new'
    """
    return f"{'better' if is_better else 'worse'} with {pair[1]}"
