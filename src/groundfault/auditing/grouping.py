"""Grouping: which confirmed hypotheses may be a stronger one seen through another column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groundfault.core.counted_units import CountedUnits, JointCells
from groundfault.core.finding import Verdict
from groundfault.core.pairs import Pairs
from groundfault.core.units import Marks, Units
from groundfault.judges.rule import Ruling
from groundfault.stats import bits, lifts

OVERLAP = 0.5
SHARE_LEFT = 0.5
LEVEL = 0.05
"""Not settings of the plan: two reports of the same findings group them alike."""


def find_representatives(ruling: Ruling, whole: Marks, confirming: Units) -> dict[int, int]:
    """Assign confirmed hypotheses to a stronger one of the same outcome, their representative.

    Parameters
    ----------
    ruling : Ruling
    whole : Marks
        Of all units.
    confirming : Units
        Those that confirmations rest on: held out, or all.

    Notes
    -----
    A hypothesis is assigned to a representative if

    - their slices overlap: the absolute correlation of their memberships is at least one half; or
    - the representative explains it: among judged units that agree in the representative, less
      than half of its lift is left, and that is within chance (one-sided Mantel-Haenszel test).

    Two separate failure modes keep their lifts among units that agree in the other one, however
    much their slices overlap. Representatives are taken by p-value, the smallest first, and one at
    a time: a hypothesis that only several of them explain together is not grouped.
    """
    outcomes = len(confirming.losses)
    strength = _strength(ruling)
    confirmed = sorted(
        (h for h, v in enumerate(ruling.verdicts) if v is Verdict.CONFIRMED),
        key=lambda h: (strength[h], h),
    )
    slices = np.array([h // outcomes for h in confirmed], dtype=np.intp)
    if isinstance(confirming, CountedUnits):
        if confirming.joint is None:
            # whose slices overlap, counts of each alone do not tell
            return {}
        alike, find_explained = _correlate_cells(confirming.joint, slices), _find_explained_cells
    else:
        alike, find_explained = _correlate(whole, slices), _find_explained
    # what changed on a slice is no news about the others, as a lift is
    alike = alike if isinstance(confirming, Pairs) else np.abs(alike)
    groups: dict[int, int] = {}
    for a, lead in enumerate(confirmed):
        rest = [
            b
            for b in range(a + 1, len(confirmed))
            if confirmed[b] not in groups and confirmed[b] % outcomes == lead % outcomes
        ]
        if lead in groups or not rest:
            continue
        grouped = (alike[a, rest] >= OVERLAP) | find_explained(
            confirming, slices[rest], slices[a], lead % outcomes
        )
        groups |= {confirmed[b]: lead for b, under in zip(rest, grouped, strict=True) if under}
    return groups


def _strength(ruling: Ruling) -> dict[int, float]:
    """The p-value that each hypothesis rests on."""
    p = (
        ruling.holdout_result.p
        if ruling.holdout_result
        else ruling.screening.p
        if ruling.screening
        else None
    )
    return {h: float(p[i]) if p is not None else 1.0 for h, i in ruling.positions().items()}


def _correlate(marks: Marks, slices: NDArray[np.intp]) -> NDArray[np.float64]:
    """Correlation of memberships."""
    if len(slices) < 2:
        return np.zeros((len(slices),) * 2)
    # a slice of all units has no variance: NaN, which no threshold exceeds
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.corrcoef(bits.unpack(marks.on[slices], marks.size).astype(np.float32))


def _find_explained(
    units: Units, slices: NDArray[np.intp], lead: int, outcome: int
) -> NDArray[np.bool_]:
    """Which candidates have next to no lift among units that agree in the representative."""
    marks = units.marks.select(np.append(slices, lead))
    losses = units.changes if isinstance(units, Pairs) else units.losses[outcome]
    on = bits.unpack(marks.on, marks.size)
    defined = np.ones_like(on) if marks.valid is None else bits.unpack(marks.valid, marks.size)
    is_scored = defined if units.scored is None else defined & units.scored[outcome]
    strata = np.zeros(len(losses), dtype=np.int64) if units.strata is None else units.strata
    # three strata of each: the representative undefined, false, and true
    within = 3 * strata + on[-1] + defined[-1]
    rest = on[:-1] & is_scored[:-1]
    plain, _ = lifts.lift(rest, losses, strata, is_scored[:-1])
    return _is_explained(plain, *lifts.lift(rest, losses, within, is_scored[:-1]))


def _is_explained(
    plain: NDArray[np.float64], lift_within: NDArray[np.float64], z: NDArray[np.float64]
) -> NDArray[np.bool_]:
    from scipy.special import ndtri

    # less than half of the lift is left, and the rest is not significant: either alone would group
    # separate modes in small or in large samples
    side = np.sign(plain)
    return np.asarray(
        (side * lift_within < SHARE_LEFT * np.abs(plain)) & (side * z < -ndtri(LEVEL))
    )


def _correlate_cells(joint: JointCells, slices: NDArray[np.intp]) -> NDArray[np.float64]:
    """As `_correlate`, of all rows."""
    if len(slices) < 2:
        return np.zeros((len(slices),) * 2)
    on = joint.on[_places(joint, slices)].astype(np.float64)
    moments = np.cov(on, fweights=joint.rows)
    deviation = np.sqrt(np.diag(moments))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(moments / np.outer(deviation, deviation))


def _find_explained_cells(
    units: Units, slices: NDArray[np.intp], lead: int, outcome: int
) -> NDArray[np.bool_]:
    """As `_find_explained`: each cell stands twice, for its failures and for its passes."""
    assert isinstance(units, CountedUnits)
    assert units.joint is not None
    assert outcome == 0
    joint = units.joint
    places = _places(joint, np.append(slices, lead))
    on, defined = (np.tile(each[places], 2) for each in (joint.on, joint.defined))
    losses = np.repeat([1, 0], len(joint.rows))
    weights = np.concatenate([joint.errors, joint.scored - joint.errors])
    rest, there = on[:-1] & defined[:-1], defined[:-1]
    one = np.zeros(len(losses), dtype=np.int64)
    within = one + on[-1] + defined[-1]
    plain, _ = lifts.lift(rest, losses, one, there, weights)
    return _is_explained(plain, *lifts.lift(rest, losses, within, there, weights))


def _places(joint: JointCells, slices: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where candidates stand among those counted jointly."""
    at = {int(j): place for place, j in enumerate(joint.candidates)}
    return np.array([at[int(j)] for j in slices], dtype=np.intp)
