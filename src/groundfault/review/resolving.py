"""Resolution of an item: one verdict out of the decisions of several reviewers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from groundfault.errors import PlanError
from groundfault.review.decision import Decision, Verdict, select_latest

How = Literal["waiting", "settled", "disputed", "adjudicated"]


@dataclass(frozen=True)
class Resolution:
    """The verdict on an item, and how it was reached.

    Attributes
    ----------
    how : {"waiting", "settled", "disputed", "adjudicated"}
        Too few have reviewed it; most agree; they do not; or an adjudicator has decided.
    verdict : str or None
        None while it is waiting or disputed; never "unsure".
    reviewers : int
        Who reviewed it, adjudicators not counted.
    unblinded : bool
        Whether a decision that counts was made after unblinding.
    """

    how: How
    verdict: Verdict | None
    reviewers: int
    unblinded: bool


def resolve(decisions: Iterable[Decision], reviewers: int = 1) -> dict[str, Resolution]:
    """The resolution of each item that has a decision, by its id.

    Once ``reviewers`` have decided, the verdict that more than half of them give settles an item:
    of two, both; if they differ, a third. To be unsure is no verdict and no agreement, so one
    unsure reviewer alone leaves an item disputed. The verdict of adjudicators stands before that of
    reviewers, if it is one; who reviewed an item cannot adjudicate it, and what they say as
    adjudicator does not count. The order of the decisions does not matter, but for which of a
    reviewer's is the last.

    Parameters
    ----------
    decisions : iterable of Decision
    reviewers : int
        How many an item needs, at least 1.

    Raises
    ------
    PlanError
        If ``reviewers`` is less than 1.
    """
    if reviewers < 1:
        raise PlanError(f"an item needs at least 1 reviewer, not {reviewers}")
    by_item: dict[str, list[Decision]] = {}
    for decision in select_latest(decisions).values():
        by_item.setdefault(decision.item, []).append(decision)
    return {item: _resolve_item(votes, reviewers) for item, votes in by_item.items()}


def _resolve_item(decisions: Sequence[Decision], reviewers: int) -> Resolution:
    reviews = [each for each in decisions if each.role == "reviewer"]
    # an adjudicator who reviewed the item would count twice
    blind = {each.reviewer for each in reviews}
    adjudications = [
        each for each in decisions if each.role == "adjudicator" and each.reviewer not in blind
    ]
    counting = adjudications or reviews
    late = any(each.unblinded for each in counting)
    verdict = _find_majority(counting)
    if adjudications:
        return Resolution("adjudicated" if verdict else "disputed", verdict, len(reviews), late)
    # an early majority does not settle: who reviews first must not decide for the others
    if len(reviews) < reviewers:
        return Resolution("waiting", None, len(reviews), late)
    return Resolution("settled" if verdict else "disputed", verdict, len(reviews), late)


def _find_majority(decisions: Sequence[Decision]) -> Verdict | None:
    """The verdict of more than half; None where there is none, or most are unsure."""
    counts = Counter(each.verdict for each in decisions).most_common(1)
    return (
        counts[0][0]
        if counts and 2 * counts[0][1] > len(decisions) and counts[0][0] != "unsure"
        else None
    )
