"""Stages: whether a column was known before an answer, while it was made, with it, or later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from groundfault.auditing.leaks import LEAK, SUSPECT
from groundfault.core.column_names import (
    describes_answer,
    happens_during,
    names_other_score,
    names_outcome,
)
from groundfault.core.conversations import list_conversations
from groundfault.core.evidence import Evidence


class Timing(StrEnum):
    """When the value of a column came about."""

    KNOWN = "known before the answer"
    DURING = "known while it ran"
    MEASURED = "measured with it"
    FOLLOWS = "follows from it"


OPTIONS = {
    Timing.KNOWN: ("allow_leakage", "--allow-leakage"),
    Timing.DURING: ("during", "--during"),
    Timing.MEASURED: ("instrument", "--instrument"),
    Timing.FOLLOWS: ("post_outcome", "--post-outcome"),
}
"""How a user says of a column that it is of a stage: argument, and option."""


@dataclass(frozen=True)
class ColumnStage:
    """What an audit takes a column for, and why.

    Attributes
    ----------
    column : str
    stage : Timing
    reason : str
        "declared", "by its name", or how well it predicts the outcome; empty where nothing speaks
        against a column that was known before the answer.
    suspect : bool
        It predicts much of the outcome, or decides it, and its name says nothing: only a person can
        tell whether it was known before the answer.
    """

    column: str
    stage: Timing
    reason: str = ""
    suspect: bool = False


def find_stages(evidence: Evidence, shares: Mapping[str, float]) -> tuple[ColumnStage, ...]:
    """Return what each column is taken for, in the order of the table.

    A declaration counts before the format of a log, that before data, and a name before nothing; a
    column that predicts the outcome almost perfectly is taken to follow from it, unless it is
    trusted. Columns with a part of their own (id, model, ...) and those that are ignored have no
    stage.

    Parameters
    ----------
    evidence : Evidence
    shares : mapping of str to float
        How well columns predict the outcome, of `groundfault.auditing.leaks.measure_columns`.
    """
    roles = evidence.roles
    told = list_conversations(evidence.frame)
    declared = {*roles.instrument, *roles.post_outcome, *roles.during}
    columns = {*evidence.attributes, *declared, *told}
    return tuple(
        ColumnStage(name, Timing.DURING, "holds what was said and done")
        if name in told
        else _find_stage(name, evidence, shares.get(name, 0.0))
        for name in evidence.frame.columns
        if name in columns and name not in roles.columns and name not in roles.ignore
    )


def _find_stage(name: str, evidence: Evidence, share: float) -> ColumnStage:
    roles = evidence.roles
    if name in roles.post_outcome:
        return ColumnStage(name, Timing.FOLLOWS, "declared")
    if name in roles.during:
        return ColumnStage(name, Timing.DURING, "declared")
    if name in roles.allow_leakage:
        return ColumnStage(name, Timing.KNOWN, "declared")
    if name in roles.known:
        return ColumnStage(name, Timing.KNOWN, "by the format of the log")
    if happens_during(name):
        return ColumnStage(name, Timing.DURING, "by its name")
    of_answer = describes_answer(name) or names_other_score(name, roles.outcome)
    if share >= LEAK:
        is_told = of_answer or name in roles.instrument or names_outcome(name)
        return ColumnStage(name, Timing.FOLLOWS, describe_share(share), not is_told)
    suspect = share >= SUSPECT
    if name in roles.instrument:
        return ColumnStage(name, Timing.MEASURED, "declared", suspect)
    if names_outcome(name):
        return ColumnStage(name, Timing.FOLLOWS, "by its name")
    if of_answer:
        return ColumnStage(name, Timing.MEASURED, "by its name", suspect)
    return ColumnStage(name, Timing.KNOWN, describe_share(share) if suspect else "", suspect)


def describe_share(share: float) -> str:
    """Return how well a column or a rule predicts the outcome, in words."""
    return f"predicts {share:.0%} of the rarer outcome"


def list_columns(stages: Iterable[ColumnStage], stage: Timing) -> tuple[str, ...]:
    """Return the columns of one stage."""
    return tuple(one.column for one in stages if one.stage is stage)
