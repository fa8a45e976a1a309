"""How far a review is: what ``groundfault probe review --status --json`` writes."""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec import Struct

from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.probes.review.statuses import Unit
from groundfault.review.decision import select_latest


class QueueSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of the sealed queue."""

    seed: int
    reviewers: int
    split: tuple[str, ...]
    unit: Unit
    controls: float


class ReviewProgress(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many items are decided, and by whom.

    Attributes
    ----------
    items : int
        Items of the sealed queue.
    queue, store : str
        The hash of the queue, and where decisions are kept.
    decisions, revised, unblinded : int
        Decisions; of these replaced later by their reviewer, and made after unblinding.
    reviewers, adjudicators : dict of str to int
        Items that each person decided.
    settled, adjudicated, disputed, waiting : int
        Items by their resolution.
    """

    items: int
    settings: QueueSettings
    queue: str
    store: str
    decisions: int
    revised: int
    unblinded: int
    reviewers: dict[str, int]
    adjudicators: dict[str, int]
    settled: int
    adjudicated: int
    disputed: int
    waiting: int

    @classmethod
    def of(cls, reviewed: ReviewedRuns) -> ReviewProgress:
        """The progress of a review that has begun."""
        queue, decisions, resolutions = reviewed.queue, reviewed.decisions, reviewed.resolutions
        last_decisions = select_latest(decisions)
        people = Counter[tuple[str, str]]((name, role) for _, name, role in last_decisions)
        counts = Counter[str](
            resolutions[item.id].how if item.id in resolutions else "waiting"
            for item in queue.items
        )
        return cls(
            items=len(queue.items),
            settings=msgspec.convert(queue.settings, QueueSettings),
            queue=queue.hash,
            store=reviewed.store.place,
            decisions=len(decisions),
            revised=len(decisions) - len(last_decisions),
            unblinded=sum(decision.unblinded for decision in decisions),
            reviewers=_count_items(people, "reviewer"),
            adjudicators=_count_items(people, "adjudicator"),
            settled=counts["settled"],
            adjudicated=counts["adjudicated"],
            disputed=counts["disputed"],
            waiting=counts["waiting"],
        )


def _count_items(people: Counter[tuple[str, str]], role: str) -> dict[str, int]:
    return {name: count for (name, of_role), count in sorted(people.items()) if of_role == role}
