"""Rows of runs as reviewers see them, and the status and loss that their decisions give a row.

A routing signal says where to look. What is reviewed are the responses that were routed to a
person, and among them, as hidden controls, a random share of those that matched. So reviewers
cannot know that everything they see is a mismatch, and the errors which the signal misses can be
estimated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from groundfault.core.plan import Plan
from groundfault.core.status import Status as Outcome
from groundfault.errors import PlanError
from groundfault.probes.running.runs import BASE, ProbeRow
from groundfault.review import Decision, Item, Queue, Resolution, resolve

Status = Literal[
    "confirmed_model_error",
    "extraction_artifact",
    "format_artifact",
    "invalid_prompt",
    "disputed",
    "unaudited",
    "no_error",
]
Unit = Literal["key", "row"]


def items(
    rows: Iterable[ProbeRow], *, unit: Unit = "key", questions: Mapping[str, str] | None = None
) -> dict[str, Item]:
    """Make the item that a reviewer sees of each row with an answer, by the row's id.

    Parameters
    ----------
    rows : iterable of ProbeRow
        All of the runs: with the unit ``row``, equal responses are numbered.
    unit : {"key", "row"}
        Rows that show the same, prompt and response, are one item, whose review holds for all of
        them; or each row is an item.
    questions : mapping of str to str, optional
        The canonical wording of each task.

    Raises
    ------
    PlanError
        If the unit does not exist.
    """
    if unit not in get_args(Unit):
        raise PlanError(f"the unit of review is key or row, not {unit!r}")
    copies: Counter[str] = Counter()
    by_row = {}
    for row in sorted(rows, key=lambda row: row.id):
        if row.status != "answered" or row.response is None:
            continue
        question = (questions or {}).get(row.task, "")
        item = Item(
            row.task, row.prompt, row.answer, row.extracted, row.response, question=question
        )
        copies[item.id] += 1
        if unit == "row":
            item = replace(item, copy=copies[item.id])
        by_row[row.id] = item
    return by_row


def queue(
    rows: Sequence[ProbeRow],
    *,
    unit: Unit = "key",
    controls: float = 0.1,
    seed: int = 0,
    reviewers: int = 1,
    split: Sequence[str] = (),
    questions: Mapping[str, str] | None = None,
) -> Queue:
    """Make the queue of a review: all items routed to a person, and controls among them.

    Parameters
    ----------
    rows : sequence of ProbeRow
        All of the runs.
    unit, questions
        As for `items`.
    controls : float in [0, 1]
        Share of the items that matched, rounded up, drawn without replacement.
    seed : int
        Seed of the draw, and of every reviewer's order.
    reviewers : int
        How many review each item.
    split : sequence of str
        Deal the items to these reviewers, each item to one.

    Raises
    ------
    PlanError
        If a setting cannot be.
    """
    if not 0 <= controls <= 1:
        raise PlanError(f"the share of controls is in [0, 1], not {controls}")
    routed, matched = split_by_signal(rows, items(rows, unit=unit, questions=questions))
    sample = _draw_controls(matched, controls, seed)
    about = {"unit": unit, "controls": controls}
    return Queue((*routed, *sample), seed, reviewers, tuple(split), about)


def statuses(
    rows: Sequence[ProbeRow],
    decisions: Iterable[Decision],
    *,
    reviewers: int = 1,
    unit: Unit = "key",
) -> dict[str, Status]:
    """Return the status of each row, by its id.

    What `groundfault.review.resolve` finds of a row's item holds for the row: an item that most
    reviewers find wrong is a confirmed model error only if they find prompt and extraction valid. A
    row that nobody reviewed, or too few, is unaudited; one whose reviewers differ, or are unsure,
    is disputed.

    Parameters
    ----------
    rows : sequence of ProbeRow
        All of the runs.
    decisions : iterable of Decision
        In any order.
    reviewers : int
        How many an item needs.
    unit : {"key", "row"}
        As the queue was sealed.
    """
    resolutions = resolve(decisions, reviewers)
    ids = {row: item.id for row, item in items(rows, unit=unit).items()}
    return {row.id: status_of(resolutions.get(ids.get(row.id, ""))) for row in rows}


def status_of(resolution: Resolution | None) -> Status:
    """Return the status of a row whose item has this resolution; None is no decision."""
    if resolution is None or resolution.how == "waiting":
        return "unaudited"
    if resolution.verdict is None or resolution.verdict == "unsure":
        return "disputed"
    return "confirmed_model_error" if resolution.verdict == "model_error" else resolution.verdict


def split_by_signal(
    rows: Iterable[ProbeRow], items_by_row: Mapping[str, Item]
) -> tuple[list[Item], list[Item]]:
    """Split items into items routed to a person, and items that matched."""
    routed: dict[str, Item] = {}
    matched: dict[str, Item] = {}
    for row in rows:
        if row.id in items_by_row:
            # controls hide among routed items: a reviewer who knew which is which would judge them
            # so, and only matches reviewed blind say how many errors no signal shows. A base
            # wording is always reviewed: what is found of it holds for all that match it
            is_routed = row.is_routed or row.policy == BASE
            side = routed if is_routed else matched
            side[items_by_row[row.id].id] = items_by_row[row.id]
    return list(routed.values()), [item for id, item in matched.items() if id not in routed]


def _draw_controls(matched: Sequence[Item], controls: float, seed: int) -> list[Item]:
    """Draw the first of the items in a random order that other items do not change."""
    # a generator for each item: more rows add controls and do not exchange them
    plan = Plan(seed=seed)
    ranked = sorted(
        matched, key=lambda item: (plan.rng(f"review control: {item.id}").random(), item.id)
    )
    # 1e-9: 0.07 * 100 is 7.000000000000001 in floating point, which would round up to 8
    return ranked[: math.ceil(controls * len(ranked) - 1e-9)]


_UNSCORED: dict[str, Outcome] = {
    "extraction_artifact": Outcome.ARTEFACT,
    "format_artifact": Outcome.ARTEFACT,
    "invalid_prompt": Outcome.ARTEFACT,
    "disputed": Outcome.MISSING,
}
_UNANSWERED = {"refused": Outcome.REFUSED, "error": Outcome.ERROR}
_UNAUDITED = {"mismatch": Outcome.MISSING, "unreadable": Outcome.UNPARSED, "match": Outcome.SCORED}


def score_row(row: ProbeRow, statuses: Mapping[str, Status]) -> tuple[float | None, Outcome]:
    """Return the loss of an audited row, or the reason why it has no loss.

    Where tasks have no key, an answer that matched the one to the base wording, and that nobody
    reviewed, is as right or wrong as reviewers found that one.
    """
    status = statuses.get(row.id, "unaudited")
    if row.base is not None and (row.signal, status) == ("match", "unaudited"):
        base = statuses.get(row.base_id, "unaudited")
        if base not in ("confirmed_model_error", "no_error"):
            return None, Outcome.MISSING
        status = base
    # a mismatch with the key is a signal, never an error: only review makes a loss of it
    if status in ("confirmed_model_error", "no_error"):
        return float(status == "confirmed_model_error"), Outcome.SCORED
    reason = _UNSCORED.get(status) or _UNANSWERED.get(row.status) or _UNAUDITED[row.signal]
    return (0.0 if reason is Outcome.SCORED else None), reason
