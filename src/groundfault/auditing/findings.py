"""Findings: the numbers of every hypothesis, and the claim that they allow.

The lift of a confirmed finding passed a bar, on a holdout or on all units. Of slices whose true
lift is .05, the ones with an observed lift of .12 are confirmed. An honest estimate therefore uses
the distribution of lifts that pass the bar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from groundfault.auditing import messages
from groundfault.auditing.changes import contrast_changes, tell_change
from groundfault.auditing.counted_audit import CountedAudit
from groundfault.auditing.messages import describe_guarantee
from groundfault.auditing.results import AuditResults, find_representatives
from groundfault.base.arrays import Floats
from groundfault.core.candidate import Candidate
from groundfault.core.finding import Cell, Estimate, Finding, Opposite, Verdict
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Units
from groundfault.judges.rule import is_at_most, least_score, standardise
from groundfault.stats import intervals, paired
from groundfault.stats.contingency import condition_on_passing

_ORDER = {verdict: place for place, verdict in enumerate(Verdict)}

Cells = dict[str, list[Cell] | None]


def make_findings(results: AuditResults, unit: str) -> tuple[Finding, ...]:
    """Return all findings: by verdict, then by size of discovery lift."""
    audit, ruling = results.audit, results.ruling
    confirmed = [h for h, v in enumerate(ruling.verdicts) if v is Verdict.CONFIRMED]
    deciding = results.deciding
    if isinstance(audit, CountedAudit):
        deciding = audit.join(deciding, [h // len(audit.outcomes) for h in confirmed])
    representatives = find_representatives(ruling, audit.marks, deciding)
    cells = make_cells(results)
    estimates = make_estimates(results, cells["holdout"] or cells["full"] or [])
    findings = [
        _make_finding(results, unit, h, cells, representatives, estimates.get(h))
        for h in range(len(ruling.verdicts))
    ]
    if audit.compare:
        contrasts = contrast_changes(results)
        findings = [
            tell_change(finding, contrasts.get(h), results) for h, finding in enumerate(findings)
        ]
    findings.sort(key=lambda f: (_ORDER[f.verdict], -abs(f.discovery.lift or 0.0)))
    return tuple(findings)


def _make_finding(
    results: AuditResults,
    unit: str,
    h: int,
    cells: Cells,
    representatives: dict[int, int],
    estimate: Estimate | None,
) -> Finding:
    audit, ruling = results.audit, results.ruling
    j, o = divmod(h, len(audit.outcomes))
    candidate, verdict = audit.library[j], ruling.verdicts[h]
    discovery, holdout, full = (column[h] if column else None for column in cells.values())
    assert discovery is not None
    assert full is not None
    guarantee = describe_guarantee(audit.judge, audit.plan, len(ruling.hypotheses), results.opening)
    representative = representatives.get(h)
    # where the other side is a candidate too, that one says it
    is_told = any(alias.startswith("not ") for alias in results.aliases[j])
    is_told = is_told or audit.compare is not None
    turns = verdict is Verdict.CONFIRMED and ((holdout or full).lift or 0.0) < 0 and not is_told
    opposite = describe_complement(candidate, full.on, full.off) if turns else None
    finding = Finding(
        candidate.name,
        candidate.rule,
        candidate.meaning,
        candidate.source,
        audit.outcomes[o],
        verdict,
        messages.write_reason(verdict, ruling.reasons[h], audit.judge, unit),
        "",
        discovery,
        holdout,
        full,
        aliases=results.aliases[j],
        representative=None
        if representative is None
        else audit.library[representative // len(audit.outcomes)].name,
        decoys=_count_decoys(results, h, j),
        sensitivity={name: str(r.verdicts[h]) for name, r in results.sensitivity.items()},
        frequency=None if results.frequency is None else float(results.frequency.confirmed[h]),
        opposite=opposite,
        estimate=estimate,
    )
    sentence = messages.write_sentence(finding, audit.plan, guarantee, is_graded=results.is_graded)
    return replace(finding, sentence=sentence)


def _count_decoys(results: AuditResults, h: int, j: int) -> float | None:
    """Return the decoys expected at or above an effect; None for candidates mined here."""
    screening, position = results.ruling.screening, results.positions.get(h)
    is_mined = results.audit.library[j].name in results.mined
    if screening is None or position is None or screening.decoys is None or is_mined:
        return None
    return float(screening.decoys[position])


def make_cells(results: AuditResults) -> Cells:
    """Return the cells of every hypothesis by part, with the p-values that belong there."""
    size, plan = len(results.ruling.verdicts), results.audit.plan
    p = _p_values(results)
    discovery = _cells_of(results.discovery, plan, *p["discovery"])
    if results.holdout is None:
        return {"discovery": discovery, "holdout": None, "full": discovery}
    none = np.full(size, np.nan)
    return {
        "discovery": discovery,
        "holdout": _cells_of(results.holdout, plan, *p["holdout"]),
        "full": _cells_of(results.full, plan, none, none),
    }


def number_or_none(value: float) -> float | None:
    """Return a number for JSON, which has no NaN."""
    return None if np.isnan(value) else float(value)


def _p_values(results: AuditResults) -> dict[str, tuple[Floats, Floats]]:
    """Return plain and adjusted p-values of every hypothesis, NaN without one."""
    audit, ruling = results.audit, results.ruling
    p, adjusted_p, holdout_p, holdout_adjusted = (
        np.full(len(ruling.verdicts), np.nan) for _ in range(4)
    )
    for h, i in results.positions.items():
        # a candidate that was selected by the outcomes of these units has no valid p-value on them
        mined = audit.library[h // len(audit.outcomes)].name in results.mined
        screening = None if mined else ruling.screening
        if screening and screening.p is not None:
            p[h] = screening.p[i]
        if screening and screening.p_adjusted is not None:
            adjusted_p[h] = screening.p_adjusted[i]
        if ruling.holdout_result:
            holdout_p[h] = ruling.holdout_result.p[i]
            holdout_adjusted[h] = ruling.holdout_result.p_adjusted[i]
    return {"discovery": (p, adjusted_p), "holdout": (holdout_p, holdout_adjusted)}


def _cells_of(units: Units, plan: Plan, p: Floats, adjusted_p: Floats) -> list[Cell]:
    tables = units.tables
    low, high = _intervals(units, plan)
    on_sum, total = tables.on_sum / tables.unit, tables.total / tables.unit
    return [
        Cell(
            int(tables.on[h]),
            int(tables.off[h]),
            _round_whole(on_sum[h]),
            _round_whole(total[h] - on_sum[h]),
            number_or_none(tables.lift[h]),
            number_or_none(p[h]),
            number_or_none(adjusted_p[h]),
            None if np.isnan(low[h]) else (float(low[h]), float(high[h])),
        )
        for h in range(len(tables))
    ]


def _intervals(units: Units, plan: Plan) -> tuple[Floats, Floats]:
    """Return lower and upper ends; NaN if a side is empty."""
    tables = units.tables
    level, effect = 1 - float(to_fraction(plan.alpha)), plan.effect
    if isinstance(units, Pairs):
        low, high = paired.change(*units.change_sums(), tables.on, level)
        return np.where(tables.on > 0, low, np.nan), np.where(tables.on > 0, high, np.nan)
    defined = (tables.on > 0) & (tables.off > 0)
    low, high = np.full(len(tables), np.nan), np.full(len(tables), np.nan)
    on, off = tables.on[defined].astype(float), tables.off[defined].astype(float)
    on_sum = tables.on_sum[defined] / tables.unit
    off_sum = tables.total[defined] / tables.unit - on_sum
    if effect != "risk_difference":
        ends = intervals.log_ratio(effect, on_sum, on, off_sum, off, level)
    elif tables.denominator == 1:  # 0/1 losses
        ends = intervals.newcombe(on_sum, on, off_sum, off, level)
    else:
        on_squares, squares = (a[defined] for a in units.squares())
        ends = intervals.welch(
            (on, on_sum, on_squares), (off, off_sum, squares - on_squares), level
        )
    low[defined], high[defined] = ends
    return low, high


def _round_whole(value: float) -> float:
    """Return the value, without the rounding error of a sum of 0/1 errors."""
    near = round(float(value))
    return float(near) if abs(value - near) < 1e-9 else float(value)


def make_estimates(results: AuditResults, cells: Sequence[Cell]) -> dict[int, Estimate]:
    """Return the effect of each confirmed hypothesis, given that it passed, by its number.

    Parameters
    ----------
    results : AuditResults
    cells : sequence of Cell
        Numbers of every hypothesis, on the units that decide.

    Returns
    -------
    dict of int to Estimate
        Empty if the judge states no bar.

    Notes
    -----
    The interval covers the true effect with at least 1 - alpha, given that the finding is confirmed
    and that its confirmed direction is right. With a p-value it therefore does not cross zero, or 1
    for ratios. The bar is the last step of the correction, given the other confirmations. For
    losses that are not 0/1, and for units within strata, it is a normal approximation. See
    `groundfault.stats.contingency`.
    """
    plan, units = results.audit.plan, results.holdout or results.discovery
    confirmed = [
        h
        for h, verdict in enumerate(results.ruling.verdicts)
        if verdict is Verdict.CONFIRMED and cells[h].lift and cells[h].interval is not None
    ]
    if not confirmed:
        return {}
    levels = [_find_level(results, cells[h]) for h in confirmed]
    numbers = np.array(confirmed, dtype=np.intp)
    scores = standardise(units, numbers)
    if units.denominator == 1 and units.strata is None:
        # exact p-values know how skewed few errors are; sampled ones end at 1 / (1 + draws)
        exact_scores = [_score(_one_sided(cells[h].p, results.holdout is None)) for h in confirmed]
        scores = np.minimum(scores, exact_scores)
    pairs = zip(confirmed, levels, scores, strict=True)
    return {
        h: _estimate(cells[h], plan, _score(level), float(score))
        for h, level, score in pairs
        if level is not None
    }


def _find_level(results: AuditResults, cell: Cell) -> float | None:
    """Return the largest one-sided p-value that is confirmed; 1 if no p-value is required."""
    judge, plan = results.audit.judge, results.audit.plan
    if results.holdout is not None and results.ruling.holdout_result is not None:
        if judge.confirmation != "exact":
            return 1.0
        p = results.ruling.holdout_result.p_adjusted
        survivors = int((~np.isnan(p)).sum())
        passed = int(is_at_most(np.nan_to_num(p, nan=1.0), plan.alpha).sum())
        # the step of Holm's procedure at which the last survivor passed
        return float(to_fraction(plan.alpha)) / max(1, survivors - passed + 1)
    screening = results.ruling.screening
    if results.bar is None or results.bar.level is None or screening is None:
        return None
    passed = int(screening.survives.sum())
    if screening.too_small is not None:
        passed += int(screening.too_small.sum())
    return results.bar.level(cell.on, max(0, passed - 1)) / 2


def _estimate(cell: Cell, plan: Plan, bar_score: float, score: float) -> Estimate:
    """Estimate an effect ``score`` deviations from zero, where ``bar_score`` were required."""
    assert cell.interval is not None
    sign = 1 if (cell.lift or 0) > 0 else -1
    ratio = plan.effect != "risk_difference"
    low, high = np.log(np.maximum(cell.interval, 1e-300)) if ratio else np.array(cell.interval)
    # an interval of a ratio is symmetric about it, on the scale of logarithms
    observed = sign * float((low + high) / 2 if ratio else cell.lift or 0.0)
    near, far = (low, high) if sign > 0 else (-high, -low)
    share = max(0.0, bar_score) / score if score > 0 else 1.0
    bar = max(observed * min(share, 1.0), least_score(plan))
    level = 1 - float(to_fraction(plan.alpha))
    centers, lows = condition_on_passing(
        np.array([observed]), np.array([near]), np.array([bar]), level
    )
    center, end = float(centers[0]), float(lows[0])
    # with a p-value, the direction is confirmed
    end = max(end, 0.0 if np.isfinite(bar_score) else -np.inf if ratio else -1.0)
    center = min(max(center, 0.0), observed)
    ends = (end, max(float(far), center))
    value, ends = (center, ends) if sign > 0 else (-center, (-ends[1], -ends[0]))
    if ratio:
        return Estimate(float(np.exp(value)), (float(np.exp(ends[0])), float(np.exp(ends[1]))))
    return Estimate(value, ends)


def _one_sided(p: float | None, two_sided: bool) -> float:
    # without a p-value only the spread of the lift is known
    return 0.0 if p is None else p / 2 if two_sided else p


def _score(p: float | None) -> float:
    """Return the normal deviate of a one-sided p-value: minus infinity for 1."""
    from scipy.special import ndtri

    return -np.inf if p is None or p >= 1 else -float(ndtri(max(p, 1e-300)))


_COLUMN = r'(?P<column>"(?:[^"]|"")+"|[A-Za-z_]\w*)'
_NUMBER = r"(?P<cut>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_CUT = re.compile(rf"\s*{_COLUMN}\s*(?P<sign>>=|<=|>|<)\s*{_NUMBER}\s*")
_FLAG = re.compile(rf"\s*(?P<no>NOT\s+)?{_COLUMN}(\s*=\s*1)?\s*", re.IGNORECASE)
_SIDES = {
    ">": ("<=", "is at most"),
    ">=": ("<", "is below"),
    "<": (">=", "is at least"),
    "<=": (">", "is above"),
}
_LENGTH = re.compile(
    r"(?P<text>.+) has over (?P<count>\d+) (?P<what>characters?|words?|commas? or .+)"
)
_MARK = re.compile(r"(?P<text>.+) has an? (?P<what>.+)")
_CONTENT = re.compile(r"(?P<text>.+) is not empty")


def describe_complement(candidate: Candidate, on: int, off: int) -> Opposite | None:
    """Return the complement of a candidate in words, if it is as natural.

    Parameters
    ----------
    candidate : Candidate
    on, off : int
        Units that it is true and false for.

    Returns
    -------
    Opposite or None
        For cuts of numbers and lengths: always, since "above 12" and "at most 12" are two sides of
        one scale. For flags and marks of a text: if the other side has no more units, since "polite
        does not hold" for nine in ten is not a slice. None for other candidates, such as values of
        a category, and if examples without a value count as off.
    """
    if candidate.missing == "off":
        return None
    rule, meaning = f"NOT ({candidate.rule})", candidate.meaning
    if cut := _CUT.fullmatch(candidate.rule):
        column = _unquote(cut["column"])
        sign, words = _SIDES[cut["sign"]]
        sides = f"{column} {sign} {cut['cut']}", f"{column} {words} {cut['cut']}"
        return Opposite(sides[0], f"{cut['column']} {sign} {cut['cut']}", sides[1])
    is_text = candidate.source == "text"
    if is_text and (length := _LENGTH.fullmatch(meaning)):
        words = f"{length['text']} has at most {length['count']} {length['what']}"
        return Opposite(words, rule, words)
    if is_text and (content := _CONTENT.fullmatch(meaning)):
        words = f"{content['text']} is empty"
        return Opposite(words, rule, words)
    if off > on:
        return None
    if is_text and (mark := _MARK.fullmatch(meaning)):
        words = f"{mark['text']} has no {mark['what']}"
        return Opposite(words, rule, words)
    if candidate.fitted_column is None and (flag := _FLAG.fullmatch(candidate.rule)):
        return _turn_flag(candidate, flag, rule)
    return None


def _turn_flag(candidate: Candidate, flag: re.Match[str], rule: str) -> Opposite | None:
    subject, holds = re.fullmatch(
        r"(.*?)( holds| does not hold)?", candidate.meaning, re.DOTALL
    ).groups()  # type: ignore[union-attr]
    # "grade = 1" may be a value as well as a flag; only who calls it a flag means one
    if holds is None and "=" in flag[0]:
        return None
    negated = bool(flag["no"])
    name = candidate.name.removeprefix("NOT ") if negated else f"NOT {candidate.name}"
    if holds is None:
        subject = _unquote(flag["column"])
    positive = negated if holds is None else holds == " does not hold"
    return Opposite(name, rule, f"{subject} {'holds' if positive else 'does not hold'}")


def _unquote(column: str) -> str:
    return column[1:-1].replace('""', '"') if column.startswith('"') else column
