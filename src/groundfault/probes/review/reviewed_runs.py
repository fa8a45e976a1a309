"""Auditing: rows of runs become items that people review blind, and decisions become the statuses
of rows.

A routing signal says where to look. What is reviewed are the responses that were routed to a
person, and among them, as hidden controls, a random share of those that matched: so that nobody can
know that everything shown is a mismatch, and so that the errors which the signal misses can be
estimated."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from msgspec import Struct

from groundfault.base.deprecation import rename_attributes
from groundfault.base.ledger import Event, Ledger
from groundfault.core.plan import Plan
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.probes.running.runs import LEDGER, MANIFEST, REVIEWS, TRAJECTORY, ProbeRow, Runs
from groundfault.probes.running.sealing import ITERATION
from groundfault.probes.running.sealing import SEALED as RUN_SEALED
from groundfault.review import Decision, Item, Queue, Resolution, Store, resolve
from groundfault.review.store import SEALED, UNBLINDED
from groundfault.stats.intervals import wilson

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

_COVERAGE = 0.95  # of the interval for missed errors


def items(
    rows: Iterable[ProbeRow], *, unit: Unit = "key", questions: Mapping[str, str] | None = None
) -> dict[str, Item]:
    """What a reviewer would see of each row, by the row's id; rows without an answer have nothing
    to show.

    Parameters
    ----------
    rows : iterable of Row
        All of the runs: with the unit ``row``, equal responses are numbered.
    unit : {"key", "row"}
        Rows that show the same, prompt and response, are one item, whose review holds for all of
        them; or each row is an item.
    questions : mapping of str to str, optional
        The canonical wording of each task.

    Raises
    ------
    PlanError
        If there is no such unit.
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
    """What is to be reviewed: every item that was routed to a person, and controls among them.

    Parameters
    ----------
    rows : sequence of Row
        All of the runs.
    unit, questions
        As for `items`.
    controls : float in [0, 1]
        Share of the items that matched, rounded up, drawn without replacement.
    seed : int
        Of the draw, and of every reviewer's order.
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
    routed, matched = _split_by_signal(rows, items(rows, unit=unit, questions=questions))
    hidden_controls = _draw_controls(matched, controls, seed)
    return Queue(
        (*routed, *hidden_controls),
        seed,
        reviewers,
        tuple(split),
        {"unit": unit, "controls": controls},
    )


def statuses(
    rows: Sequence[ProbeRow],
    decisions: Iterable[Decision],
    *,
    reviewers: int = 1,
    unit: Unit = "key",
) -> dict[str, Status]:
    """The status of each row, by its id.

    What `groundfault.review.resolve` finds of a row's item holds for the row: an item that most
    reviewers find wrong is a confirmed model error only if they find prompt and extraction valid. A
    row that nobody reviewed, or too few, is unaudited; one whose reviewers differ, or are unsure,
    is disputed.

    Parameters
    ----------
    rows : sequence of Row
        All of the runs.
    decisions : iterable of Decision
        In any order.
    reviewers : int
        How many an item needs.
    unit : {"key", "row"}
        As the queue was sealed.
    """
    resolutions = resolve(decisions, reviewers)
    items_by_row = items(rows, unit=unit)
    return {
        row.id: status_of(resolutions.get(items_by_row[row.id].id))
        if row.id in items_by_row
        else "unaudited"
        for row in rows
    }


def status_of(resolution: Resolution | None) -> Status:
    """The status of a row whose item's decisions come to this; None where there are none."""
    if resolution is None or resolution.how == "waiting":
        return "unaudited"
    if resolution.verdict is None or resolution.verdict == "unsure":
        return "disputed"
    return "confirmed_model_error" if resolution.verdict == "model_error" else resolution.verdict


def _split_by_signal(
    rows: Iterable[ProbeRow], items_by_row: Mapping[str, Item]
) -> tuple[list[Item], list[Item]]:
    """Items that were routed to a person, and items that matched."""
    routed: dict[str, Item] = {}
    matched: dict[str, Item] = {}
    for row in rows:
        if row.id in items_by_row:
            side = routed if row.signal in ("mismatch", "unreadable") else matched
            side[items_by_row[row.id].id] = items_by_row[row.id]
    return list(routed.values()), [item for id, item in matched.items() if id not in routed]


def _draw_controls(matched: Sequence[Item], controls: float, seed: int) -> list[Item]:
    """The first of the items in a random order that other items do not change."""
    plan = Plan(seed=seed)
    ranked = sorted(
        matched, key=lambda item: (plan.rng(f"review control: {item.id}").random(), item.id)
    )
    return ranked[: math.ceil(controls * len(ranked) - 1e-9)]


class MissedErrors(Struct, frozen=True, forbid_unknown_fields=True):
    """What controls say of errors among the items that matched.

    Attributes
    ----------
    matched, controls, audited, errors : int
        Items that matched; of these drawn as controls; of these resolved; of these confirmed as
        model errors.
    rate, low, high : float or None
        The share of errors among resolved controls, with its 95% interval (Wilson's; items as
        independent draws).
    """

    matched: int
    controls: int
    audited: int
    errors: int
    rate: float | None
    low: float | None
    high: float | None


class ReviewedRuns:
    """The review of a folder of runs: what was sealed, what was decided, and what it comes to.

    Parameters
    ----------
    runs : Runs or path
    store : path or str, optional
        Where decisions are kept, if not in the folder: a file, or a URL
        ``postgresql+psycopg://...``.

    Raises
    ------
    InputError
        If the folder holds no runs.
    LedgerError
        If its manifest or a trajectory is not what the run put into its ledger.

    Notes
    -----
    Decisions are about what was shown, so they hold for every row that shows the same.
    """

    def __init__(self, runs: Runs | str | Path, store: str | Path | None = None) -> None:
        self.runs = runs if isinstance(runs, Runs) else Runs(Path(runs))
        self.runs.manifest  # noqa: B018  (a folder without one holds no runs)
        manifest = hashlib.sha256((self.runs.folder / MANIFEST).read_bytes()).hexdigest()
        _require_recorded(self.runs.folder, manifest)
        self.store = Store(store or self.runs.folder / REVIEWS, manifest)
        self._ledger = Ledger(self.runs.folder / LEDGER)

    def seal(self, split: Sequence[str] | None = None) -> Queue:
        """Fix which items are reviewed, before the first decision; the queue, if it is fixed
        already.

        Unit, controls and reviewers are the run's, which fixed them before anything was asked, and
        so is the seed: the first of its seeds.

        Parameters
        ----------
        split : sequence of str, optional
            Deal the items to these reviewers; left out, as it was sealed, or every item is for
            everybody.

        Raises
        ------
        InputError
            If there is nothing to review, or the reviews of these runs are kept elsewhere.
        PlanError
            If items are split that need two reviewers.
        LedgerError
            If decisions were made under another split.
        """
        self._require_here()
        sealed = self.store.last_sealing()
        new_queue = self._queue(
            sealed.body["settings"]["split"] if sealed and split is None else split or ()
        )
        self.store.seal(new_queue)
        last_body = self._last_sealing()
        if last_body is None or last_body["queue"] != new_queue.hash:
            routed, matched = _split_by_signal(self.runs.rows, self._items)
            counts = {"items": len(new_queue.items), "routed": len(routed), "matched": len(matched)}
            self._ledger.append(
                SEALED,
                {"queue": new_queue.hash, **new_queue.settings, **counts, "reviews": self._where},
            )
        return new_queue

    def unblind(self, actor: str, reason: str) -> list[dict[str, Any]]:
        """Show the hidden fields of all items, once that is on record; decisions from here on are
        marked.

        Raises
        ------
        InputError
            If no reason is given, or nothing is sealed.
        """
        why = " ".join(reason.split())
        if not why:
            raise InputError("say why (--reason TEXT): the reason to unblind stays on record")
        queue = self.queue
        count = len(self.store.decisions())
        event = self.store.unblind(
            {"actor": actor, "reason": why, "queue": queue.hash, "decisions": count}
        )
        self._ledger.append(UNBLINDED, {**event.body, "head": event.hash})
        items_by_row = self._items
        names = ("id", "model", "policy", "seed", "query", "key", "signal")
        rows = [
            row
            for row in self.runs.rows
            if row.id in items_by_row and items_by_row[row.id].id in queue.by_id
        ]
        return [
            {"item": items_by_row[row.id].id, **{name: getattr(row, name) for name in names}}
            for row in rows
        ]

    @cached_property
    def queue(self) -> Queue:
        """The queue as it is sealed.

        Raises
        ------
        InputError
            If none is.
        LedgerError
            If these runs no longer make the queue that was sealed.
        """
        self._require_here()
        sealed = self.store.last_sealing()
        if sealed is None:
            raise InputError(
                f"no review of {self.runs.folder} has begun: groundfault probe review "
                f"{self.runs.folder}"
            )
        new_queue = self._queue(sealed.body["settings"]["split"])
        if new_queue.hash != sealed.body["queue"]:
            raise LedgerError(
                f"the rows in {self.runs.folder} are not those whose review was sealed; if the run "
                "went on since, "
                "a reviewer's next session adds what is new"
            )
        return new_queue

    @property
    def decisions(self) -> list[Decision]:
        """Every decision, revised ones among them, in the order in which they were made."""
        return self.store.decisions()

    @property
    def resolutions(self) -> dict[str, Resolution]:
        """What the decisions on each item come to, by its id."""
        return resolve(self.decisions, self.queue.reviewers)

    @property
    def statuses(self) -> dict[str, Status]:
        """The status of each row, by its id; all are unaudited where no review has begun."""
        self._require_here()
        settings = self._settings
        return statuses(
            self.runs.rows, self.decisions, reviewers=settings["reviewers"], unit=settings["unit"]
        )

    @property
    def missed(self) -> MissedErrors:
        """How many of the items that matched are errors all the same, by the controls."""
        resolutions, queue = self.resolutions, self.queue
        _, matched = _split_by_signal(self.runs.rows, self._items)
        controls = [item.id for item in matched if item.id in queue.by_id]
        verdicts = [
            resolutions[id].verdict
            for id in controls
            if id in resolutions and resolutions[id].verdict
        ]
        errors, size = verdicts.count("model_error"), len(verdicts)
        if not size:
            return MissedErrors(len(matched), len(controls), 0, 0, None, None, None)
        low, high = wilson(np.array([errors / size]), np.array([float(size)]), _COVERAGE)
        return MissedErrors(
            len(matched), len(controls), size, errors, errors / size, float(low[0]), float(high[0])
        )

    @property
    def unblindings(self) -> list[Event]:
        """When, by whom and why hidden fields were shown."""
        place = self.runs.folder / LEDGER
        return self._ledger.events(UNBLINDED) if place.exists() else []

    @cached_property
    def _questions(self) -> dict[str, str]:
        return {task.id: task.question for task in self.runs.bank}

    @cached_property
    def _items(self) -> dict[str, Item]:
        """What a reviewer would see of each row, by the row's id."""
        return items(self.runs.rows, unit=self._settings["unit"], questions=self._questions)

    def _queue(self, split: Sequence[str]) -> Queue:
        return queue(self.runs.rows, **self._settings, split=split, questions=self._questions)

    @property
    def _settings(self) -> dict[str, Any]:
        """What the run's config says of its review."""
        manifest = self.runs.manifest
        return {
            "reviewers": 1,
            "unit": "key",
            "seed": next(iter(manifest.get("seeds", [0]))),
            **manifest.get("review", {}),
        }

    @property
    def _where(self) -> str:
        """Where the reviews are, in words that hold when the folder is moved."""
        own = str((self.runs.folder / REVIEWS).absolute())
        return REVIEWS if self.store.place == own else self.store.place

    def _last_sealing(self) -> Mapping[str, Any] | None:
        """What the runs' ledger says of the last sealing."""
        place = self.runs.folder / LEDGER
        sealed = self._ledger.events(SEALED) if place.exists() else []
        return sealed[-1].body if sealed else None

    def _require_here(self) -> None:
        """A second place for the reviews of these runs would hide half of them."""
        body = self._last_sealing()
        if body is not None and body["reviews"] != self._where:
            hint = (
                "leave --store out"
                if body["reviews"] == REVIEWS
                else f"say --store {body['reviews']}"
            )
            raise InputError(
                f"the reviews of these runs are kept in {body['reviews']}, not in {self._where}: "
                f"{hint}"
            )


def _require_recorded(folder: Path, manifest: str) -> None:
    """Raise `LedgerError` if a file says something else than its run recorded; rows of no recorded
    run are let pass.
    """
    if not (folder / LEDGER).exists():
        return
    ledger = Ledger(folder / LEDGER)
    ledger.check()
    if any(event.body["manifest"] != manifest for event in ledger.events(RUN_SEALED)):
        raise LedgerError(
            f"{folder / MANIFEST} was changed after the run was sealed; restore it from a copy"
        )
    hashes = {event.body["record"] for event in ledger.events(ITERATION)}
    if not hashes:
        return
    for place in sorted(folder.glob(f"*/*/*/{TRAJECTORY}")):
        for number, line in enumerate(place.read_bytes().split(b"\n")[:-1], start=1):
            record = hashlib.sha256(line + b"\n").hexdigest()
            if record not in hashes:
                raise LedgerError(
                    f"{place}, line {number} is not what the run recorded; take the file away and "
                    "run again: answers "
                    "on record are not asked for twice"
                )
            hashes.remove(record)


__getattr__ = rename_attributes(
    __name__, {"Audit": "groundfault.probes.review.reviewed_runs:ReviewedRuns"}
)
