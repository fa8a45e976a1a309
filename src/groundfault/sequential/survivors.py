"""Survivors: the candidates for which labels are worth buying, as their tests begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groundfault.core.plan import to_fraction
from groundfault.errors import PlanError
from groundfault.judges.rule import rule
from groundfault.sequential.slice_tests import SliceTests
from groundfault.stats import bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groundfault.auditing.prepared import PreparedAudit
    from groundfault.core.units import Units

    Floats = NDArray[np.float64]


def require_plan(case: PreparedAudit) -> None:
    """Raise `PlanError` where the plan of an audit cannot be confirmed label by label."""
    if case.judge.confirmation == "none":
        raise PlanError(
            f"the judge {case.judge.name} holds nothing out; take one that does, such as janus"
        )
    if case.plan.effect != "risk_difference":
        raise PlanError(
            f"effect={case.plan.effect!r} cannot be confirmed label by label; use risk_difference"
        )
    # a label is of one model's answer; it says nothing of another's
    if len(case.outcomes) > 1:
        raise PlanError(
            "labels are bought for one model at a time: select one (--model), or begin a case, "
            "which takes several (groundfault case new)"
        )
    if case.plan.within:
        raise PlanError("no column can be held fixed (within) label by label: leave it out")
    if case.strata is not None:
        raise PlanError(
            "groups of unequal size cannot be confirmed label by label: their means are not "
            "exchangeable"
        )


def select_survivors(
    case: PreparedAudit,
    discovery: Units,
    holdout: NDArray[np.intp],
    grades: Floats | None,
    direction: int | None = None,
) -> tuple[tuple[str, ...], SliceTests]:
    """Candidates that survive the screen and that the holdout can support, without duplicates."""
    marks = case.marks.take(holdout)
    ruling = rule(case.judge, case.plan, discovery, None, case.marks)
    survivors = (
        np.zeros(0, dtype=np.intp)
        if ruling.screening is None
        else ruling.hypotheses[ruling.screening.survives]
    )
    # screening used discovery rows only; of the holdout it is the slice's size that is read here,
    # never an outcome
    valid = np.ones((len(case.library), len(holdout)), dtype=np.bool_)
    if marks.valid is not None:
        valid = bits.unpack(marks.valid, len(holdout))
    on = bits.unpack(marks.on, len(holdout)) & valid
    min_on, min_off = (
        case.plan.hold_min_on or case.plan.min_on,
        case.plan.hold_min_off or case.plan.min_off,
    )
    supported = (on.sum(axis=1) >= min_on) & ((valid & ~on).sum(axis=1) >= min_off)
    survivors = survivors[supported[survivors]]
    signs = discovery.tables[survivors].sign
    if direction is not None:
        signs = np.full_like(signs, direction)
    names = tuple(candidate.name for candidate in case.library)
    tests = SliceTests.begin(
        on[survivors],
        signs,
        defined=valid[survivors],
        errors=discovery.denominator == 1,
        grades=grades,
        level=float(to_fraction(case.plan.alpha)),
    )
    return tuple(names[k] for k in survivors), tests
