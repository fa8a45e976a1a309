"""Changes between two models: of all units, of findings, and of failure modes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from msgspec import structs

from groundfault.auditing.detectable import ChangeDesign
from groundfault.auditing.messages import (
    compare_models,
    describe_effect,
    describe_guarantee,
    format_points,
)
from groundfault.auditing.report_schema import OverallChange
from groundfault.auditing.results import AuditResults
from groundfault.base.arrays import Floats
from groundfault.core.finding import Cell, Elsewhere, Finding, Verdict
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan, to_fraction
from groundfault.judges.rule import is_at_most
from groundfault.modes.changes import find_changes
from groundfault.modes.find import OwnRule
from groundfault.modes.mode import Mode, ModeSearch
from groundfault.stats import bits, flips, paired
from groundfault.stats.bits import Bits

_SEEN = (0.05, 0.1, 0.2, 0.3)
"""Shares of the units for which a comparison states the rise that it could have missed."""


def search_changes(
    table: pl.DataFrame,
    losses: Floats,
    plan: Plan,
    own_rules: tuple[OwnRule, ...] = (),
    named: int = 0,
) -> tuple[tuple[Mode, ...], ModeSearch]:
    """Return the modes of a change, and the rise of failures that could have been missed.

    Parameters
    ----------
    table : polars.DataFrame
        One row a unit, of the columns that rules may name.
    losses : float64 array, shape (2, units)
        Before and after; NaN where not scored.
    plan : Plan
    own_rules : tuple of OwnRule
    named : int
        As in `find_changes`.
    """
    level = float(plan.alpha)
    modes, search, bar = find_changes(
        table, losses, level=level, own_rules=own_rules, bars=plan.bars, named=named
    )
    design = ChangeDesign.of_losses(losses, level=2 * bar)
    units = int((~np.isnan(losses).all(axis=0)).sum())
    least = design.by_prevalence(units if search.like_for_like else search.outcomes[0].n, _SEEN)
    return modes, structs.replace(search, detectable={f"{v:g}": x for v, x in least.items()})


def measure_change(results: AuditResults) -> OverallChange:
    """Return the change over all units of a comparison, held out or not.

    Parameters
    ----------
    results : AuditResults
    """
    level = float(to_fraction(results.audit.plan.alpha))
    return measure_overall(results.losses, level, results.named.search)


def measure_overall(losses: Floats, level: float, search: ModeSearch | None) -> OverallChange:
    """Return the change over all units.

    Parameters
    ----------
    losses : float64 array, shape (2, units)
        Before and after; NaN where not scored.
    level : float
        Error level, in (0, 1).
    search : ModeSearch, optional
        The search for modes of the change, which is one test together with this.
    """
    both = losses[:, ~np.isnan(losses).any(axis=0)]
    changes = both[1] - both[0]
    n = len(changes)
    low, high = paired.change([changes.sum()], [(changes**2).sum()], [n], 1 - level)
    moved = float(changes.sum() / max(1, n)), float(low[0]), float(high[0])
    before, after = both.sum(axis=1) / max(1, n)
    if search is not None and search.like_for_like:
        moved, n = search.like_for_like, int((~np.isnan(losses)).sum())
        before, after = np.nanmean(losses, axis=1)
    if search is None or search.overall is None:
        p = float(flips.p_values(bits.pack(np.ones((1, n), dtype=np.bool_)), changes)[0])
    else:
        p = search.overall[int(moved[0] < 0)]
    return OverallChange(
        n=n,
        error_rates=(float(before), float(after)),
        change=moved[0],
        interval=moved[1:],
        p=p,
        confirmed=bool(is_at_most(np.array([p]), level)[0]),
    )


def tell_change(finding: Finding, contrast: Elsewhere | None, results: AuditResults) -> Finding:
    """Return the finding of a comparison with its contrast, and its sentence.

    Parameters
    ----------
    finding : Finding
    contrast : Elsewhere, optional
        None if it was not tested.
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
        rate = "mean loss" if results.is_graded else "failure rate"
        sentence = (
            f"{start}: when {finding.meaning}, the {rate} changes by {format_points(cell.lift)} "
            f"points from {compare[0]} to {compare[1]}."
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
    plan, is_graded = results.audit.plan, results.is_graded
    told = compare_models(first, second, cell.lift or 0.0, is_graded=is_graded)
    before, after = (
        f"{name} {errors / n:.2f}" if is_graded else f"{name} {errors:g} of {n}"
        for name, errors, n in (
            (first, cell.off_errors, cell.off),
            (second, cell.on_errors, cell.on),
        )
    )
    where = "held out, " if finding.holdout else ""
    effect, rest = describe_effect(finding, plan, "change"), ""
    if contrast is not None:
        differs = "differs from" if contrast.differs else "cannot be told from"
        rest = f" It {differs} the change elsewhere, {format_points(contrast.change)} points."
    guarantee = describe_guarantee(
        results.audit.judge, plan, len(results.ruling.hypotheses), results.opening
    )
    return (
        f"Confirmed change: {told} when {finding.meaning} "
        f"({where}{before}, {after}; {effect}; {guarantee}).{rest}"
    )


def conclude(least: float | None, prevalence: float) -> str:
    """Return the sentence about a comparison's power, which never claims that there is no change.

    Parameters
    ----------
    least : float, optional
        Least change found with 80 % power on a slice of ``prevalence``; None if no change is found.
    prevalence : float
    """
    where = f"in {prevalence:.0%} of the examples"
    if least is None:
        return f"This comparison is too small to find any change {where} four times in five."
    return (
        f"A change of at least {100 * least:.3g} points {where} is found four times in five. "
        "Smaller changes may be missed."
    )


def contrast_changes(results: AuditResults) -> dict[int, Elsewhere]:
    """Return how the change on each tested slice differs from the change elsewhere, by hypothesis.

    Empty without a comparison.

    Parameters
    ----------
    results : AuditResults

    Notes
    -----
    Uses the units that verdicts rest on: held out, or all. Adjusted by max-T over all tests, see
    `groundfault.stats.flips.max_t`.
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
    """Compare each candidate that matches some but not all units with the other units."""
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
        # square and add (Newcombe): an interval of a difference from the intervals of its parts
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
