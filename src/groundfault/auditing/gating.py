"""Gates: does a report hold a new finding that should stop a release?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from groundfault.auditing.detectable import USUAL_PREVALENCE, ChangeDesign
from groundfault.auditing.gate_rows import (
    COLUMNS,
    GateRow,
    GateRows,
    parse_condition,
    read_gated,
)
from groundfault.auditing.report_schema import ReportData
from groundfault.auditing.since_baseline import ReportPair, SinceBaseline
from groundfault.core.finding import Finding
from groundfault.errors import InputError, PlanError
from groundfault.modes.mode import Mode

__all__ = ["COLUMNS", "FAIL_ON", "LEVEL", "Gate", "GateMatch", "gate"]

FAIL_ON = "confirmed and lift > 0"
LEVEL = 0.1
"""Of the test that something changed since the baseline."""


# fields at their defaults are left out of the JSON, as before there were modes and changes
class GateMatch(Struct, frozen=True, omit_defaults=True):
    """A finding, a failure mode or an overall change for which the expression is true.

    Attributes
    ----------
    kind : {"finding", "mode", "overall"}
    name, outcome, source, verdict, sentence : str
        As in the report; a finding is told of the side with more failures.
    lift, low, high : float or None
        On the holdout where there is one, else on all units, with the interval of the report.
    before : str or None
        Its verdict in the baseline; None where there is no baseline, or the candidate was not
        judged there. Of a failure mode it is None.
    since : SinceBaseline or None
        How much more often it fails than in the baseline; None without one, in comparisons, and
        where the two reports have nothing alike.
    rule : str
        What it is about, as SQL; of a failure mode ``name`` says the same in English.
    """

    name: str
    outcome: str
    source: str
    verdict: str
    sentence: str
    lift: float | None
    low: float | None
    high: float | None
    before: str | None
    kind: str = "finding"
    since: SinceBaseline | None = None
    rule: str = ""


class Gate(Struct, frozen=True, omit_defaults=True):
    """Whether a report passes, and why not.

    Attributes
    ----------
    passed : bool
    fail_on : str
        The expression.
    new : tuple of GateMatch
        Those for which it is true, and which got worse since the baseline; all of them, where there
        is no baseline.
    known : tuple of GateMatch
        Those for which it is true, and which are no worse than in the baseline beyond chance; of a
        comparison those of the baseline. They do not fail the gate.
    gone : tuple of str
        Names of findings for which it was true in the baseline and no longer is.
    compared : bool
        Whether there was a baseline.
    detectable : float or None
        The least lift that the audit could have found; with a baseline the least change for the
        worse, if that is larger.
    blind : bool
        ``detectable`` is larger than ``must_detect`` allows: an audit that confirms nothing then
        says too little, so the gate fails; so it does where everything failed or nothing was
        scored, which no finding can tell.
    notes : tuple of str
        What makes report and baseline hard to compare.
    uncompared : tuple of GateMatch
        Those for which it is true, and which cannot be held against the baseline. They do not fail
        the gate.
    uniform : str
        That all outcomes of the report are alike; empty where they differ.
    """

    passed: bool
    fail_on: str
    new: tuple[GateMatch, ...]
    known: tuple[GateMatch, ...]
    gone: tuple[str, ...]
    compared: bool
    detectable: float | None
    blind: bool
    notes: tuple[str, ...]
    uncompared: tuple[GateMatch, ...] = ()
    uniform: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain words and numbers; what does not apply to a match is left out."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        return content


def gate(
    report: ReportData | str | Path | Mapping[str, Any],
    fail_on: str = FAIL_ON,
    *,
    baseline: ReportData | str | Path | Mapping[str, Any] | None = None,
    must_detect: float | None = None,
    level: float = LEVEL,
) -> Gate:
    """Test a report's findings and failure modes by a rule, and against an earlier report.

    Parameters
    ----------
    report : Report, path, or the report as a dict
        A JSON report, or the folder that one was written to.
    fail_on : str
        A SQL expression over `COLUMNS`, such as ``confirmed and lift > 0 and source !=
        'instrument'``. A comparison has a row of kind ``overall`` too.
    baseline : as report, optional
        An earlier report. What meets the expression is new if its slice fails more often than in
        the baseline, beyond chance: on units that both reports have, by swapping the reports within
        units; else by the counts of the same rule in both. In a comparison, which is of a change
        already, new is what the baseline had not confirmed in the same direction.
    must_detect : float, optional
        The gate fails, too, if the audit could not have found a lift of this size: a small test set
        confirms nothing.
    level : float
        Of the test of changes since the baseline.

    Returns
    -------
    Gate

    Raises
    ------
    InputError
        If a report cannot be read, one compares two models and the other does not, or report and
        baseline have nothing alike.
    RuleError
        If the expression is malformed, reads an unknown column, or is neither true nor false of a
        confirmed finding.
    PlanError
        If ``must_detect`` is not in (0, 1], or ``level`` not in (0, 1).

    Notes
    -----
    P(anything is new | nothing changed since the baseline) is at most ``level``, over everything
    that the report tested, for independent units. Of a comparison without a baseline, P(the gate
    fails | the two models are alike) is at most the plan's alpha, half of it for slices and half
    for the overall change, with the default expression and a judge of family-wise error.
    """
    if must_detect is not None and not 0 < must_detect <= 1:
        raise PlanError(f"must_detect is {must_detect}; a lift lies in (0, 1]")
    if not 0 < level < 1:
        raise PlanError(f"level is {level}; it lies in (0, 1)")
    rule = parse_condition(fail_on)
    reports = [read_gated(each) for each in (report, baseline) if each is not None]
    modes = all(each.mode_search is not None for each in reports)
    now, *earlier = (GateRows(each, rule, modes=modes) for each in reports)
    then = earlier[0] if earlier else None
    pair = None if then is None else ReportPair(now.report, then.report)
    if pair is not None:
        _require_likeness(*pair)
    new, known, uncompared = map(_order, _sort_rows(now, then, level))
    detectable = _find_detectable(now.report, pair, level)
    uniform, is_perfect = now.report.uniform, now.report.error_rate == 0
    # where the search for failure modes failed, none can be new
    lacking = now.report.left_out if now.report.mode_search is None else ()
    blind = bool(lacking or (uniform and not is_perfect))
    if must_detect is not None:
        blind = blind or detectable is None or detectable > must_detect
    gone: tuple[str, ...] = ()
    notes = (*now.notes, *(f"left out, since it failed: {step}" for step in now.report.left_out))
    if then is not None:
        rows = then.rows.items()
        gone = tuple(row.name for key, row in rows if not now.knows(then.aliases[key]))
        judges = then.report.judge, now.report.judge
        if judges[0] != judges[1]:
            words = f"the baseline was judged by {judges[0]}, this report by {judges[1]}"
            notes = (*notes, words)
    return Gate(
        passed=not new and not blind,
        fail_on=fail_on,
        new=new,
        known=known,
        gone=gone,
        compared=then is not None,
        detectable=detectable,
        blind=blind,
        notes=notes,
        uncompared=uncompared,
        uniform=uniform,
    )


_Matches = tuple[GateMatch, ...]
_KINDS = ("overall", "mode", "finding")


def _order(matches: _Matches) -> _Matches:
    """Sort as a report does, failure modes first: who shows the first few shows those."""
    return tuple(sorted(matches, key=lambda match: _KINDS.index(match.kind)))


def _sort_rows(
    now: GateRows, then: GateRows | None, level: float
) -> tuple[_Matches, _Matches, _Matches]:
    """Return what is new, what is known, and what cannot be compared."""
    verdicts = then.verdicts if then else {}
    matches = {key: _match(row, verdicts.get(key[:2])) for key, row in now.rows.items()}
    if then is None:
        return tuple(matches.values()), (), ()
    if now.report.manifest.compare:
        known = {key: match for key, match in matches.items() if then.knows(now.aliases[key])}
        new = (match for key, match in matches.items() if key not in known)
        return tuple(new), tuple(known.values()), ()
    pair = ReportPair(now.report, then.report)
    subjects = {key: row.subject for key, row in now.rows.items()}
    tested = {
        key: change
        for key, subject in subjects.items()
        if isinstance(subject, Finding | Mode) and (change := pair.measure(subject)) is not None
    }
    are_modes = [isinstance(subjects[key], Mode) for key in tested]
    decisions = pair.decide_worse(are_modes, list(tested.values()), level)
    parts: dict[bool, list[GateMatch]] = {True: [], False: []}
    for (key, change), worse in zip(tested.items(), decisions, strict=True):
        since = structs.replace(change, worse=worse)
        parts[worse].append(structs.replace(matches[key], since=since))
    rest = tuple(match for key, match in matches.items() if key not in tested)
    return tuple(parts[True]), tuple(parts[False]), rest


def _require_likeness(now: ReportData, then: ReportData) -> None:
    """Raise unless report and baseline have something that can be compared."""
    if bool(now.manifest.compare) != bool(then.manifest.compare):
        raise InputError(
            "one of report and baseline compares two models, the other does not; make both alike"
        )
    if now.manifest.compare:
        if (now.change is None) != (then.change is None):
            raise InputError(
                "one of report and baseline was compared by the rule of before, which counted each "
                "direction by itself; make the older one again"
            )
        return
    if not ReportPair(now, then).has_anything_alike():
        about = [", ".join(filter(None, r.outcomes)) or "one model" for r in (then, now)]
        raise InputError(
            f"report and baseline have nothing alike: the baseline is about {about[0]}, the report "
            f"about {about[1]}, and they share no example and no candidate; audit with the same "
            "ids or the same --library"
        )


def _find_detectable(now: ReportData, pair: ReportPair | None, level: float) -> float | None:
    """Return the least lift that the report, and the test against the baseline, could find."""
    least = now.minimum_detectable_lift
    if pair is None or now.manifest.compare:
        return least
    churn = pair.find_churn()
    if least is None or churn is None:
        return least
    # one-sided, so that the two-sided level is twice as much
    each = 2 * level * pair.share_of_candidates() / max(1, now.candidates.distinct)
    change = ChangeDesign(churn, each, 0.0, 0.0).least_change(USUAL_PREVALENCE * now.n)
    return None if change is None else max(least, change)


def _match(row: GateRow, before: str | None) -> GateMatch:
    names = "name outcome source verdict sentence lift low high kind rule".split()
    # what was said before of the rule as a finding is not what is said of it as a mode
    before = None if row.kind == "mode" else before
    return GateMatch(**{name: getattr(row, name) for name in names}, before=before)
