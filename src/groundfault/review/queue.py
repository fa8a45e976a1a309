"""Queues: which items are reviewed, by whom and in which order; fixed before any decision."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from groundfault.core.plan import Plan
from groundfault.errors import InputError, PlanError
from groundfault.review.decision import Opinion, check_name, resolve, select_latest

_HALVES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Item:
    """One response to review.

    Attributes
    ----------
    task : str
        Its id.
    prompt : str
        The prompt.
    answer : str
        The right answer.
    extracted : str or None
        The answer that a machine extracted; None if it found none.
    response : str
        All that the model said.
    copy : int
        From 1: which of several equal responses this is, where each is reviewed for itself.
    question : str
        The task's canonical wording. The task names it, so it is no part of the id.

    Notes
    -----
    Texts are kept as a sheet gives them back: line ends are ``\\n``, and half a surrogate pair,
    which is no text, is U+FFFD.

    Examples
    --------
    >>> item = Item("eggs", "How long do 3 eggs take?", "6", "18", "Answer: 18")
    >>> item.id == Item("eggs", "How long do 3 eggs take?", "6", "18", "Answer: 18").id
    True
    """

    task: str
    prompt: str
    answer: str
    extracted: str | None
    response: str
    copy: int = 1
    question: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, str):
                object.__setattr__(self, each.name, normalize(value))

    @cached_property
    def id(self) -> str:
        """Return the SHA-256 of the texts that are shown."""
        content = [self.task, self.prompt, self.answer, self.extracted, self.response, self.copy]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    @property
    def visible_texts(self) -> dict[str, str]:
        """Return the texts of a sheet, in reading order; an answer that was not read is empty."""
        texts = {
            name: getattr(self, name)
            for name in ("task", "question", "prompt", "answer", "extracted", "response")
        }
        return {**{name: text or "" for name, text in texts.items()}, "copy": str(self.copy)}

    @property
    def headed_texts(self) -> tuple[tuple[str, str], ...]:
        """Return heads and texts as a reviewer reads them.

        The item's id, and that of its task where the task has a wording, are left out: whoever
        knows the run could look up by them who answered.
        """
        copy = f" (copy {self.copy})" if self.copy > 1 else ""
        return (
            ("Task", self.question or self.task),
            ("Prompt", self.prompt),
            (f"Response{copy}", self.response),
            *[("Expected answer", self.answer)] * bool(self.answer),
            ("Answer as read", "none was read" if self.extracted is None else self.extracted),
        )


def normalize(text: str) -> str:
    """Return the text with line ends and characters that every kind of sheet gives back as they
    were.
    """
    return _HALVES.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


GUIDANCE = (
    "Prompt: valid if its entities, relations, operations and constraints are the task's, and "
    "the expected answer is right for it. "
    "If it is not, nothing is a failure of the model, whatever it answered.",
    "Extraction: valid if the extracted answer is the one on which the response ends, or if none "
    "was extracted from a response that ends on none.",
    "Model: wrong if its final answer is not equivalent to the expected one.",
)
"""What makes an answer right, a sentence or two for each question."""


@dataclass(frozen=True, eq=False)
class Queue:
    """Items to review.

    Attributes
    ----------
    items : tuple of Item
        By their ids, which are hashes.
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
        """Return everything but the items."""
        return {
            "seed": self.seed,
            "reviewers": self.reviewers,
            "split": list(self.split),
            **self.about,
        }

    @cached_property
    def hash(self) -> str:
        """Return the SHA-256 of the items and the settings."""
        ids = [item.id for item in self.items]
        return hashlib.sha256(json.dumps([ids, self.settings], sort_keys=True).encode()).hexdigest()

    @cached_property
    def by_id(self) -> dict[str, Item]:
        """Return the items by their ids."""
        return {item.id: item for item in self.items}

    def of(self, reviewer: str) -> list[Item]:
        """Return the items of a reviewer in their own random order, which other items do not
        change.

        Raises
        ------
        InputError
            If the items are split among others.
        """
        mine = list(self.items)
        if self.split:
            if reviewer not in self.split:
                raise InputError(
                    f"{reviewer} is not one of the {len(self.split)} reviewers who share the items"
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
    queue: Queue, decisions: Iterable[Opinion], reviewer: str, *, adjudicate: bool = False
) -> list[Item]:
    """Return the items that a reviewer has still to decide, in their order.

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
