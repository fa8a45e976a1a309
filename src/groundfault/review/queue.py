"""Queues: which items are reviewed, by whom and in which order; fixed before any decision."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from groundfault.core.plan import Plan
from groundfault.errors import InputError, PlanError
from groundfault.review.decision import Decision, check_name, select_latest
from groundfault.review.item import Item
from groundfault.review.resolving import resolve


@dataclass(frozen=True, eq=False)
class Queue:
    """Items to review.

    Attributes
    ----------
    items : tuple of Item
        By their ids, which tell nothing.
    seed : int
        Of every reviewer's order.
    reviewers : int
        How many review each item.
    split : tuple of str
        Names; the items are dealt to these reviewers in blocks of one common random order, each to
        one. Empty where every reviewer sees every item.
    about : mapping
        How the items were chosen, as JSON holds it.

    Raises
    ------
    PlanError
        If an item is needed from more reviewers than it is dealt to, or a number or name cannot be.
    """

    items: tuple[Item, ...]
    seed: int = 0
    reviewers: int = 1
    split: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # by id, a hash of what is shown: the order of a run would give away which rows were routed
        object.__setattr__(self, "items", tuple(sorted(self.items, key=lambda item: item.id)))
        if self.reviewers < 1 or self.seed < 0:
            raise PlanError("an item needs at least 1 reviewer, and a seed is at least 0")
        for name in self.split:
            check_name(name)
        if len(set(self.split)) < len(self.split):
            raise PlanError(
                f"the reviewers to split among are named twice: {', '.join(self.split)}"
            )
        if self.split and self.reviewers > 1:
            raise PlanError(
                "split items have one reviewer each: leave the split out, or ask for 1 reviewer"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """Everything but the items."""
        return {
            "seed": self.seed,
            "reviewers": self.reviewers,
            "split": list(self.split),
            **self.about,
        }

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the items and the settings."""
        ids = [item.id for item in self.items]
        return hashlib.sha256(json.dumps([ids, self.settings], sort_keys=True).encode()).hexdigest()

    @cached_property
    def by_id(self) -> dict[str, Item]:
        """The items by their ids."""
        return {item.id: item for item in self.items}

    def of(self, reviewer: str) -> list[Item]:
        """The items of a reviewer in their own random order, which other items do not change.

        Raises
        ------
        InputError
            If the items are split among others.
        """
        mine = list(self.items)
        if self.split:
            if reviewer not in self.split:
                raise InputError(
                    f"the items are split among {len(self.split)} reviewers, and {reviewer} is "
                    "none of them"
                )
            blocks = np.array_split(np.arange(len(mine)), len(self.split))
            order = self._shuffle(mine, "review split")
            mine = [order[place] for place in blocks[self.split.index(reviewer)]]
        return self._shuffle(mine, f"review order of {reviewer}")

    def _shuffle(self, items: list[Item], purpose: str) -> list[Item]:
        plan = Plan(seed=self.seed)
        # a generator for each item: items that are added later do not reorder those before them,
        # and the order tells nothing of what was a signal and what a control
        return sorted(items, key=lambda item: plan.rng(f"{purpose}: {item.id}").random())


def open_items(
    queue: Queue, decisions: Iterable[Decision], reviewer: str, *, adjudicate: bool = False
) -> list[Item]:
    """What a reviewer has still to decide, in their order.

    Parameters
    ----------
    queue : Queue
    decisions : iterable of Decision
    reviewer : str
    adjudicate : bool
        Disputed items that this person has not reviewed, instead of items of their own.

    Raises
    ------
    InputError
        If the items are split among others.
    """
    history = list(decisions)
    decided = {
        item for item, name, _ in select_latest(history) if name == reviewer
    }  # one role a person and item
    if not adjudicate:
        return [item for item in queue.of(reviewer) if item.id not in decided]
    resolutions = resolve(history, queue.reviewers)
    # a split is among reviewers; an adjudicator sees every disputed item
    everyone = Queue(queue.items, queue.seed)
    disputed = {item for item, resolution in resolutions.items() if resolution.how == "disputed"}
    return [item for item in everyone.of(reviewer) if item.id in disputed - decided]
