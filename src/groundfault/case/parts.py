"""The two parts of a case: rows that its audit looks at, and fresh ones, whose labels are bought.

An audit looks at every outcome it is given. What it found can be confirmed only on outcomes that it
was not given: those of rows that have none yet, or of a part that was kept apart from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from groundfault.auditing.copies import join_copies
from groundfault.case.model_answers import name_answers
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.status import Status
from groundfault.errors import InputError, PlanError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from groundfault.case.model_answers import Answer
    from groundfault.core.plan import Number
    from groundfault.modes.mode import Mode

Freshness = Literal["kept apart", "without an outcome"]

PART = "part of the case"
"""Column: discovery for rows of the audit, and holdout for fresh ones."""
UNIT = "\0unit"
"""Column: name of the unit; see `list_units`."""
KEEP = Fraction(1, 2)
"""Share of the units that is kept apart where every row has an outcome."""


@dataclass(frozen=True)
class CaseParts:
    """The rows of a case.

    Attributes
    ----------
    audit : Evidence
        What the audit looks at.
    fresh : Evidence
        What can be labelled, without its outcomes.
    answers : Evidence or None
        The fresh rows with the outcomes that the table had of them; None where it had none.
    freshness : {"kept apart", "without an outcome"}
        Why the audit cannot have looked at the outcomes of the fresh rows.
    """

    audit: Evidence
    fresh: Evidence
    answers: Evidence | None
    freshness: Freshness


def divide(evidence: Evidence, keep: Number | None = None, seed: int = 0) -> CaseParts:
    """Set rows apart that the audit does not look at.

    Units without any outcome are fresh. Where there are none, a share of the units is drawn by the
    seed and kept apart. Copies of an example are in one part.

    Parameters
    ----------
    evidence : Evidence
        One row for each example and model.
    keep : number, optional
        Share to keep apart, in (0, 1); 0.5 where left out.
    seed : int

    Raises
    ------
    InputError
        If there are groups or repeats, one part would be empty, or the two are of other models.
    PlanError
        If a share is to be kept apart although there are rows without an outcome, or it is none.
    """
    if evidence.roles.split:
        raise InputError("a case divides its rows itself: leave the split column out (--split)")
    roles = evidence.roles
    names = [name for name in (roles.group or roles.id, roles.model) if name]
    if evidence.frame.select(names).is_duplicated().any():
        raise InputError(
            "a case takes one row of each example and model, and here are groups or repeats of "
            "several rows: their means cannot be confirmed label by label yet; keep one row of "
            "each (--where), or audit them without a case"
        )
    whole = join_copies(evidence)
    lacking = (evidence.status == str(Status.MISSING)).to_numpy()
    counts = np.bincount(whole.unit_index, minlength=whole.unit_count)
    unlabelled = np.bincount(whole.unit_index, lacking, whole.unit_count) == counts
    if unlabelled.any():
        if keep is not None:
            raise PlanError(
                f"{unlabelled.sum()} units have no outcome, and those are what can be labelled: "
                "leave --keep out, or leave these rows out (--where)"
            )
        if unlabelled.all():
            raise InputError("no row has an outcome: the audit of a case needs some to look at")
        audit, fresh = _part(evidence, unlabelled[whole.unit_index])
        return CaseParts(audit, fresh, None, "without an outcome")
    share = KEEP if keep is None else to_fraction(keep, "keep")
    if not 0 < share < 1:
        raise PlanError(f"keep must be strictly between 0 and 1, not {keep}")
    plan = Plan(holdout=share, seed=seed)
    audit, answers = _part(evidence, ~plan.discovery_units(whole)[whole.unit_index])
    return CaseParts(audit, hide_outcomes(answers), answers, "kept apart")


def _part(evidence: Evidence, is_fresh: NDArray[np.bool_]) -> list[Evidence]:
    """The rows of the audit, and the fresh ones, as they are once stored and read again."""
    parts = [
        Evidence.from_frame(evidence.frame.filter(pl.Series(rows)), evidence.roles)
        for rows in (~is_fresh, is_fresh)
    ]
    # modes are of the audit's models, and each is confirmed on fresh answers of the same ones
    lonely = set(parts[0].models) ^ set(parts[1].models)
    if lonely:
        raise InputError(
            f"{', '.join(sorted(lonely))} answered either units to audit or fresh ones: a case "
            "needs answers of each model to both; leave these models out (--where)"
        )
    return parts


def hide_outcomes(evidence: Evidence) -> Evidence:
    """The same rows as if nobody had scored them yet."""
    roles = replace(
        evidence.roles, null_outcome=str(Status.MISSING), status=None, count_as_failed=()
    )
    frame = evidence.frame.with_columns(pl.lit(None, pl.Float64).alias(roles.outcome))
    hidden = [name for name in (evidence.roles.status,) if name]
    return Evidence.from_frame(frame.drop(hidden), roles)


def join_parts(audit: Evidence, fresh: Evidence) -> Evidence:
    """Both parts as evidence whose split column tells them apart, for a confirmation.

    Parameters
    ----------
    audit, fresh : Evidence
        As `divide` makes them. No outcome of ``fresh`` is read.

    Notes
    -----
    The outcomes are made of losses again, so that both parts have a column of the same type; what
    was not scored in the audit stays without a loss.
    """
    roles = replace(
        audit.roles,
        split=PART,
        status=None,
        null_outcome=str(Status.MISSING),
        count_as_failed=(),
    )
    outcome = roles.outcome
    words = [name for name in (audit.roles.status,) if name]
    frames = [
        part.frame.drop(words, strict=False).with_columns(
            (1.0 - losses if roles.positive_is_good else losses).alias(outcome),
            pl.lit(word).alias(PART),
        )
        for part, losses, word in (
            (audit, audit.loss.cast(pl.Float64), "discovery"),
            (fresh, pl.repeat(None, len(fresh), dtype=pl.Float64, eager=True), "holdout"),
        )
    ]
    joined = Evidence.from_frame(pl.concat(frames, how="vertical_relaxed"), roles)
    # copies are looked for in each part: none reaches from one into the other
    leaders = _name_units(audit) | _name_units(fresh)
    ids = joined.frame[roles.id or ""].cast(pl.String)
    clusters = None if roles.group else ids.replace_strict(leaders, return_dtype=pl.String)
    return replace(joined, clusters=clusters)


def mark_units(evidence: Evidence, modes: Sequence[Mode]) -> NDArray[np.bool_]:
    """Which units each mode holds for: shape (modes, units)."""
    on = np.zeros((len(modes), evidence.unit_count), dtype=np.bool_)
    for row, mode in zip(on, modes, strict=True):
        row[evidence.unit_index[mode.holds(evidence.frame).to_numpy()]] = True
    return on


def list_units(evidence: Evidence) -> pl.DataFrame:
    """The first row of each unit, in their order, with the unit's name in the column `UNIT`."""
    names = evidence.unit_names.gather(evidence.unit_index)
    return evidence.frame.with_columns(names.alias(UNIT)).unique(UNIT, keep="first").sort(UNIT)


def _name_units(evidence: Evidence) -> dict[str, str]:
    """The unit of each example."""
    whole = join_copies(evidence)
    ids = whole.frame[whole.roles.id or ""].cast(pl.String)
    units = ids if whole.clusters is None else whole.clusters
    return dict(zip(ids.to_list(), units.to_list(), strict=True))


def find_losses(answers: Evidence) -> dict[Answer, float | None]:
    """The loss of each answer to fresh units that the table had an outcome of.

    Of copies of an example that one model answered it is that of the first that was scored: a label
    is 0 or 1 where the audit's are, which a mean of copies need not be.
    """
    losses: dict[Answer, float | None] = {}
    names = name_answers(hide_outcomes(answers))
    for answer, loss in zip(names, answers.loss, strict=True):
        if losses.get(answer) is None:
            losses[answer] = loss
    return losses
