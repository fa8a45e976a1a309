"""Confirmed findings in groups, and in a comparison the words for them.

Findings with the same meaning stand under one of them; so do cuts of one column of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from groundfault.auditing import messages
from groundfault.auditing.report import Report
from groundfault.core.finding import Cell, Finding
from groundfault.render import words

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
        Whether it holds above the value.
    inclusive : bool
        Whether the value itself is above.
    """

    column: str
    value: float
    above: bool
    inclusive: bool


def read_cut(rule: str) -> Cut | None:
    """Read a rule that is a cut; None for every other rule.

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


INSTRUMENT = "instrument"


@dataclass(frozen=True)
class FindingGroup:
    """A confirmed finding and those that an audit of single candidates cannot tell apart from
    it.

    Attributes
    ----------
    lead : Finding
    others : tuple of Finding
        Not told apart from it.
    cuts : tuple of Finding
        Findings that cut the same column of numbers elsewhere, and those not told apart from them.
    """

    lead: Finding
    others: tuple[Finding, ...]
    cuts: tuple[Finding, ...] = ()

    @property
    def distinct(self) -> tuple[Finding, ...]:
        """Return the findings under the lead that are no other names for it or each other."""
        return distinct((self.lead, *self.others))[1:]


def group_findings(findings: Iterable[Finding]) -> tuple[FindingGroup, ...]:
    """Group findings, in order, under their leads; cuts of one column are joined."""
    ordered = list(findings)
    names = {(f.outcome, f.name) for f in ordered}
    members: dict[tuple[str, str], list[Finding]] = {}
    for f in ordered:
        is_lead = f.representative is None or (f.outcome, f.representative) not in names
        home = f.name if is_lead else f.representative or ""
        members.setdefault((f.outcome, home), []).append(f)
    groups: dict[tuple[str, ...], FindingGroup] = {}
    for (outcome, name), some in members.items():
        lead = next(f for f in some if f.name == name)
        column = find_cut_column(lead)
        key = (outcome, "cut", column) if column else (outcome, "name", name)
        cuts = tuple(f for f in some if f is not lead and column and find_cut_column(f) == column)
        others = tuple(f for f in some if f is not lead and f not in cuts)
        earlier = groups.get(key)
        groups[key] = (
            FindingGroup(lead, others, cuts)
            if earlier is None
            else replace(earlier, cuts=(*earlier.cuts, lead, *cuts, *others))
        )
    return tuple(groups.values())


def effect_size(finding: Finding) -> tuple[bool, float]:
    """Return a key to sort by: findings of the measurement first, then the largest lift."""
    return finding.source != INSTRUMENT, -abs(main_cell(finding).lift or 0.0)


def find_cut_column(finding: Finding) -> str:
    """Return the column of numbers that a rule is a single cut of; empty for every other rule."""
    cut = read_cut(finding.rule)
    return cut.column if cut else ""


def distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings without other names: for the same units, or for exactly the rest."""
    findings_left: list[Finding] = []
    name_of_alias: dict[tuple[str, str], str] = {}
    for f in findings:
        twin = name_of_alias.get(
            (f.outcome, f.name), name_of_alias.get((f.outcome, f"not {f.name}"))
        )
        if twin is None or not {twin, f"not {twin}"} & set(f.aliases):
            findings_left.append(f)
            name_of_alias |= {(f.outcome, alias): f.name for alias in f.aliases}
    return tuple(findings_left)


def main_cell(finding: Finding) -> Cell:
    """Return the numbers a finding is read by: held-out ones where there are some."""
    return finding.holdout or finding.discovery


_MAX_ALIKE = 6
"""Slices named in one sentence."""

CHANGE_ASSOCIATION = (
    "A confirmed finding says that failures changed on the slice from one model to the other. Why "
    "they changed it does not say. The test looked only for the candidates that are listed."
)


def name_sides(report: Report) -> tuple[str, str]:
    """Name the two sides of a cell as tables do: on and off, or the two models."""
    if report.change is None or report.manifest.compare is None:
        return "on", "off"
    first, second = (words.clean(name) for name in report.manifest.compare)
    return second, first


def describe_overall(report: Report) -> str:
    """Describe the change over all units; empty where no two models were compared."""
    change, compare = report.change, report.manifest.compare
    if change is None or compare is None:
        return ""
    first, second = (words.clean(name) for name in compare)
    level = words.level(1 - words.decimal(report.plan.alpha))
    verdict = "beyond chance" if change.confirmed else "within chance"
    search, p = report.mode_search, messages.equal_p(change.p)
    if search is not None and search.like_for_like:
        second += ", not paired, like compared with like"
    if search is not None and search.overall is not None:
        p += ", corrected for the search"
    return (
        f"Overall, from {first} to {second}: {words.points(change.change)} points "
        f"({level} interval {words.span(change.interval, words.points)}), {verdict} ({p})."
    )


def write_headline(report: Report, worse: int) -> str:
    """Write the answer of a comparison in a few words.

    Parameters
    ----------
    report : Report
        Of a comparison.
    worse : int
        How many slices, or groups of them, got worse unlike the rest.
    """
    change, (second, first) = report.change, name_sides(report)
    compare = partial(messages.compare_models, first, second, is_graded=report.is_graded)
    if worse:
        return f"{compare(1)} on {words.plural(worse, 'slice')}"
    if change is not None and change.confirmed:
        return f"{compare(change.change)} overall"
    if report.confirmed:
        return f"{compare(1 if report.weaknesses else -1)} on some slices"
    return f"No change from {first} to {second} beyond chance"


def is_unlike_rest(finding: Finding) -> bool:
    """Return whether a change differs from the change elsewhere; true for every other finding."""
    return finding.elsewhere is None or finding.elsewhere.differs


def list_alike(findings: Iterable[Finding]) -> str:
    """List in a sentence the slices whose change cannot be told from the change elsewhere."""
    names = [
        f"{words.label(f)} ({words.points(main_cell(f).lift)} points)"
        for f in findings
        if not is_unlike_rest(f)
    ]
    if not names:
        return ""
    return f"Changed like everything else: {words.listing(names, _MAX_ALIKE)}."


def describe_elsewhere(finding: Finding) -> str:
    """Describe the change elsewhere, and whether the slice differs; empty without a contrast."""
    rest = finding.elsewhere
    if rest is None:
        return ""
    differs = ", is beyond chance" if rest.differs else ", is within chance"
    return (
        f"{words.points(rest.change)} points; the difference, {words.points(rest.difference)} "
        f"({words.span(rest.interval, words.points)}; adjusted "
        f"{messages.equal_p(rest.p_adjusted)}){differs}"
    )


def name_change(pair: tuple[str, str], *, is_better: bool) -> str:
    """Name in a few words the kind of an example of a finding about a change.

    Examples
    --------
    >>> name_change(("old", "new"), is_better=False)
    'worse with new'
    """
    return f"{'better' if is_better else 'worse'} with {pair[1]}"
