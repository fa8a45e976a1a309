"""What changed between two models: overall, and on each slice against the change elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from groundfault.auditing.messages import (
    describe_guarantee,
    format_lift,
    format_p_value,
    format_percent,
)
from groundfault.auditing.report_schema import OverallChange
from groundfault.auditing.results import AuditResults
from groundfault.base.arrays import Floats
from groundfault.core.finding import Cell, Elsewhere, Finding, Verdict
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan, to_fraction
from groundfault.judges.confirm import is_at_most
from groundfault.stats import bits, flips, paired
from groundfault.stats.bits import Bits


def measure_change(results: AuditResults) -> OverallChange | None:
    """Return the change over all units; None where no two models were compared.

    All units are used whatever the judge held out, since nothing was selected.

    Parameters
    ----------
    results : AuditResults
    """
    pairs, plan = results.full, results.audit.plan
    if not isinstance(pairs, Pairs):
        return None
    changes = pairs.changes[pairs.present]
    n = len(changes)
    level = 1 - float(to_fraction(plan.alpha))
    low, high = paired.change([changes.sum()], [(changes**2).sum()], [n], level)
    everything = bits.pack(np.ones((1, n), dtype=np.bool_))
    p = flips.p_values(everything, changes)
    unit = (pairs.denominator or 1) * max(1, n)
    return OverallChange(
        n=n,
        error_rates=(float(pairs.first.sum() / unit), float(pairs.losses.sum() / unit)),
        change=float(changes.sum() / max(1, n)),
        interval=(float(low[0]), float(high[0])),
        p=float(p[0]),
        confirmed=bool(is_at_most(p, plan.alpha)[0]),
    )


def tell_change(finding: Finding, contrast: Elsewhere | None, results: AuditResults) -> Finding:
    """Return the finding of a comparison with its contrast, and its sentence.

    Parameters
    ----------
    finding : Finding
    contrast : Elsewhere, optional
        None where it was not tested.
    results : AuditResults
    """
    compare, cell = results.audit.compare, finding.holdout or finding.full
    if compare is None or finding.verdict is Verdict.UNTESTABLE:
        return replace(finding, elsewhere=contrast)
    if finding.confirmed:
        sentence = _tell_confirmed(finding, cell, compare, contrast, results)
    else:
        small = finding.verdict is Verdict.TOO_SMALL
        start = "A real change, smaller than was asked for" if small else "No change beyond chance"
        sentence = (
            f"{start}: when {finding.meaning}, the error rate of {compare[1]} is "
            f"that of {compare[0]} {format_lift(cell.lift)}."
        )
    return replace(finding, sentence=sentence, elsewhere=contrast)


def _tell_confirmed(
    finding: Finding,
    cell: Cell,
    compare: tuple[str, str],
    contrast: Elsewhere | None,
    results: AuditResults,
) -> str:
    first, second = compare
    plan = results.audit.plan
    more = "more" if (cell.lift or 0) > 0 else "less"
    where = "held out, " if finding.holdout else ""
    level = format_percent(1 - float(to_fraction(plan.alpha)))
    corrected = finding.estimate
    ends = corrected.interval if corrected else cell.interval
    interval = " (selected)"
    if corrected:
        interval += f"; corrected for that {format_lift(corrected.effect)}"
    if ends:
        interval += f", {level} interval {format_lift(ends[0])} to {format_lift(ends[1])}"
    chance = "" if cell.p_adjusted is None else f"; adjusted p = {format_p_value(cell.p_adjusted)}"
    rest = ""
    if contrast is not None:
        differs = "differs from" if contrast.differs else "cannot be told from"
        rest = f" It {differs} the change elsewhere, {format_lift(contrast.change)}."
    guarantee = describe_guarantee(
        results.audit.judge, plan, len(results.ruling.hypotheses), results.opening
    )
    return (
        f"Confirmed change: {second} fails {more} often than {first} when {finding.meaning} "
        f"({where}{first} {cell.off_errors:g}/{cell.off}, {second} {cell.on_errors:g}/{cell.on}; "
        f"change {format_lift(cell.lift)}{interval}{chance}; {guarantee}).{rest}"
    )


def conclude(least: float | None, prevalence: float) -> str:
    """Return the sentence about a comparison's power, never that nothing changed.

    Parameters
    ----------
    least : float, optional
        Least change found with 80 % power on a slice of ``prevalence``; None where none would be.
    prevalence : float
    """
    where = f"on a slice of {prevalence:.0%} of the examples with 80% power"
    if least is None:
        return f"This comparison is too small to detect any change {where}."
    return (
        f"This comparison could have detected a change of at least {least:.3g} {where}; smaller "
        "changes are not excluded."
    )


def contrast_changes(results: AuditResults) -> dict[int, Elsewhere]:
    """Return how the change on each tested slice differs from the change elsewhere, by hypothesis.

    Empty where no two models were compared.

    Parameters
    ----------
    results : AuditResults

    Notes
    -----
    On the units that verdicts rest on: held out, or all. Adjusted by max-T over everything that was
    tested, see `groundfault.stats.flips.max_t`.
    """
    pairs = results.discovery if results.holdout is None else results.holdout
    hypotheses = results.ruling.hypotheses
    if not isinstance(pairs, Pairs) or not len(hypotheses):
        return {}
    plan, units = results.audit.plan, np.flatnonzero(pairs.present)
    scored = pairs.take(units.astype(np.intp)).select(hypotheses)
    marks = scored.marks
    everything = bits.pack(np.ones((1, marks.size), dtype=np.bool_))
    # the units that each candidate is defined for and leaves out
    rest = (everything if marks.valid is None else marks.valid) & ~marks.on
    rng = plan.rng("audit/elsewhere")
    p = flips.max_t(marks.on, scored.changes, plan.permutations, rng, elsewhere=rest)
    rows = _describe_rests(scored, rest, p, plan)
    return {h: rows[i] for h, i in results.positions.items() if i in rows}


def _describe_rests(pairs: Pairs, rest: Bits, p: Floats, plan: Plan) -> dict[int, Elsewhere]:
    """Compare each candidate that holds for some units, and not for all, with the rest."""
    sums, squares = pairs.change_sums()
    changes = pairs.changes
    rest_sums = bits.sums(rest, np.stack([changes, changes**2]))
    on, off = bits.count(pairs.marks.on), bits.count(rest)
    level = 1 - float(to_fraction(plan.alpha))
    low, high = paired.change(sums, squares, on, level)
    rest_low, rest_high = paired.change(rest_sums[:, 0], rest_sums[:, 1], off, level)
    differs = is_at_most(p, plan.alpha)
    rows = {}
    for i in np.flatnonzero((on > 0) & (off > 0)):
        here, there = float(sums[i] / on[i]), float(rest_sums[i, 0] / off[i])
        # square and add (Newcombe): an interval of a difference from those of its two parts
        down = np.hypot(here - low[i], rest_high[i] - there)
        up = np.hypot(high[i] - here, there - rest_low[i])
        rows[int(i)] = Elsewhere(
            n=int(off[i]),
            change=there,
            difference=here - there,
            interval=(float(here - there - down), float(here - there + up)),
            p_adjusted=float(p[i]),
            differs=bool(differs[i]),
        )
    return rows
