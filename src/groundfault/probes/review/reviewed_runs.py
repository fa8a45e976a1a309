"""The review of a folder of runs: its sealed queue, decisions, unblinding and controls."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from groundfault.base.holdout_events import Event
from groundfault.base.ledger import Ledger
from groundfault.base.reading import read_bytes
from groundfault.errors import InputError, LedgerError
from groundfault.probes.review.statuses import Status, Unit, items, queue, split_by_signal, statuses
from groundfault.probes.running.runs import ITERATION, LEDGER, MANIFEST, REVIEWS, RUN_SEALED, Runs
from groundfault.review import Decision, Item, Queue, Resolution, Store, resolve
from groundfault.review.decision import select_latest
from groundfault.review.session import SEALED, UNBLINDED
from groundfault.stats.intervals import wilson

# of the interval for missed errors: the usual 95%, as its documentation says
_COVERAGE = 0.95


class MissedErrors(Struct, frozen=True, forbid_unknown_fields=True):
    """An estimate, from controls, of errors among the items that matched.

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
    """The review of a folder of runs: sealed queue, decisions and resulting statuses.

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
        If its manifest or a trajectory differs from the run's ledger.

    Notes
    -----
    Decisions are about the shown texts, so they hold for every row that shows the same texts.
    """

    def __init__(self, runs: Runs | str | Path, store: str | Path | None = None) -> None:
        self.runs = runs if isinstance(runs, Runs) else Runs(Path(runs))
        self.runs.manifest  # noqa: B018  (a folder without one holds no runs)
        manifest = hashlib.sha256(read_bytes(self.runs.folder / MANIFEST)).hexdigest()
        _require_recorded(self.runs, manifest)
        self.store = Store(store or self.runs.folder / REVIEWS, manifest)
        self._ledger = Ledger(self.runs.folder / LEDGER)

    def seal(self, split: Sequence[str] | None = None) -> Queue:
        """Fix which items are reviewed, before the first decision; the queue that was sealed stays.

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
            If no response is to be reviewed, or the reviews of these runs are kept elsewhere.
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
            routed, matched = split_by_signal(self.runs.rows, self._items)
            counts = {"items": len(new_queue.items), "routed": len(routed), "matched": len(matched)}
            self._ledger.append(
                SEALED,
                {"queue": new_queue.hash, **new_queue.settings, **counts, "reviews": self._where},
            )
        return new_queue

    def unblind(self, actor: str, reason: str) -> list[dict[str, Any]]:
        """Record an unblinding and return the hidden fields; later decisions are marked.

        Raises
        ------
        InputError
            If no reason is given, or no queue is sealed.
        """
        why = " ".join(reason.split())
        if not why:
            raise InputError("give the reason (--reason TEXT): the reason to unblind is recorded")
        queue = self.queue
        count = len(self.store.decisions())
        event = self.store.unblind(
            {"actor": actor, "reason": why, "queue": queue.hash, "decisions": count}
        )
        # in both records: the head in the runs' ledger shows if the store was cut off later
        self._ledger.append(UNBLINDED, {**event.body, "head": event.hash})
        # what reviewers must not see: who answered, who asked, and what the machine made of it
        names = ("id", "model", "policy", "seed", "query", "key", "signal")
        return [
            {"item": item.id, **{name: getattr(row, name) for name in names}}
            for row in self.runs.rows
            if (item := self._items.get(row.id)) and item.id in queue.by_id
        ]

    @cached_property
    def queue(self) -> Queue:
        """Return the sealed queue.

        Raises
        ------
        InputError
            If no queue is sealed.
        LedgerError
            If these runs no longer make the queue that was sealed.
        """
        self._require_here()
        sealed = self.store.last_sealing()
        if sealed is None:
            raise InputError(
                f"no review of {self.runs.folder} has begun: groundfault label review "
                f"{self.runs.folder}"
            )
        new_queue = self._queue(sealed.body["settings"]["split"])
        # computed anew from the rows: a queue that was stored could be edited with them
        if new_queue.hash != sealed.body["queue"]:
            raise LedgerError(
                f"the rows in {self.runs.folder} are not those whose review was sealed; if the run "
                "went on since, a reviewer's next session adds the new rows"
            )
        return new_queue

    @property
    def decisions(self) -> list[Decision]:
        """Return every decision, revised ones among them, in their order."""
        return self.store.decisions()

    @property
    def resolutions(self) -> dict[str, Resolution]:
        """Return the resolution of each item, by its id."""
        return resolve(self.decisions, self.queue.reviewers)

    @property
    def statuses(self) -> dict[str, Status]:
        """Return the status of each row, by its id; without a review all are unaudited."""
        self._require_here()
        settings = self._settings
        return statuses(
            self.runs.rows, self.decisions, reviewers=settings["reviewers"], unit=settings["unit"]
        )

    @property
    def control_errors(self) -> MissedErrors:
        """Estimate from the controls how many of the items that matched are errors all the same."""
        resolutions, queue = self.resolutions, self.queue
        _, matched = split_by_signal(self.runs.rows, self._items)
        # controls are a random sample of the matches, so their error rate is that of all matches
        controls = [item.id for item in matched if item.id in queue.by_id]
        verdicts = [one.verdict for id in controls if (one := resolutions.get(id)) and one.verdict]
        errors, size = verdicts.count("model_error"), len(verdicts)
        if not size:
            return MissedErrors(len(matched), len(controls), 0, 0, None, None, None)
        low, high = wilson(errors, size, _COVERAGE)
        return MissedErrors(
            len(matched), len(controls), size, errors, errors / size, float(low), float(high)
        )

    @property
    def unblindings(self) -> list[Event]:
        """Return when, by whom and why hidden fields were shown."""
        return self.runs.events(UNBLINDED)

    @property
    def is_blind(self) -> bool:
        """Tell whether a review has begun whose hidden fields were never shown, by the record."""
        return self.store.last_sealing() is not None and not self.unblindings

    @cached_property
    def _questions(self) -> dict[str, str]:
        return {task.id: task.question for task in self.runs.bank}

    @cached_property
    def _items(self) -> dict[str, Item]:
        """Return the item that a reviewer would see of each row, by the row's id."""
        return items(self.runs.rows, unit=self._settings["unit"], questions=self._questions)

    def _queue(self, split: Sequence[str]) -> Queue:
        return queue(self.runs.rows, **self._settings, split=split, questions=self._questions)

    @property
    def _settings(self) -> dict[str, Any]:
        """Return the review settings of the run's config."""
        manifest = self.runs.manifest
        return {
            "reviewers": 1,
            "unit": "key",
            "seed": next(iter(manifest.get("seeds", [0]))),
            **manifest.get("review", {}),
        }

    @property
    def _where(self) -> str:
        """Return the place of the reviews, in words that hold when the folder is moved."""
        own = str((self.runs.folder / REVIEWS).absolute())
        return REVIEWS if self.store.place == own else self.store.place

    def _last_sealing(self) -> Mapping[str, object] | None:
        """Return the last sealing in the runs' ledger."""
        sealed = self.runs.events(SEALED)
        return sealed[-1].body if sealed else None

    def _require_here(self) -> None:
        """Refuse a second place for the reviews of these runs, which would hide half of them."""
        body = self._last_sealing()
        if body is not None and body["reviews"] != self._where:
            place = body["reviews"]
            hint = "leave --store out" if place == REVIEWS else f"say --store {place}"
            raise InputError(
                f"the reviews of these runs are kept in {place}, not in {self._where}: {hint}"
            )


def _require_recorded(runs: Runs, manifest: str) -> None:
    """Raise `LedgerError` if a file differs from its run's record; runs without record pass."""
    folder = runs.folder
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
    for place, number, line in runs.lines():
        record = hashlib.sha256(line + b"\n").hexdigest()
        if record not in hashes:
            raise LedgerError(
                f"{place}, line {number} was changed after the run; take the file away and run "
                "again: answers on record are not asked for twice"
            )
        hashes.remove(record)


class QueueSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of the sealed queue."""

    seed: int
    reviewers: int
    split: tuple[str, ...]
    unit: Unit
    controls: float


class ReviewProgress(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The progress of a review: items decided, and by whom.

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
        """Count the progress of a review that has begun."""
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
