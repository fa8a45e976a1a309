"""The review of a folder of runs: its sealed queue, decisions, unblinding and controls."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from groundfault.base.deprecation import rename_attributes, rename_members
from groundfault.base.ledger import Event, Ledger
from groundfault.base.reading import MAX_ROWS, read_bytes
from groundfault.errors import InputError, LedgerError
from groundfault.probes.review.statuses import Status, items, queue, split_by_signal, statuses
from groundfault.probes.running.runs import LEDGER, MANIFEST, REVIEWS, TRAJECTORY, Runs
from groundfault.probes.running.sealing import ITERATION
from groundfault.probes.running.sealing import SEALED as RUN_SEALED
from groundfault.review import Decision, Item, Queue, Resolution, Store, resolve
from groundfault.review.session import SEALED, UNBLINDED
from groundfault.stats.intervals import wilson

_COVERAGE = 0.95  # of the interval for missed errors


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


@rename_members(missed="control_errors")
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
        If its manifest or a trajectory is not what the run put into its ledger.

    Notes
    -----
    Decisions are about what was shown, so they hold for every row that shows the same.
    """

    def __init__(self, runs: Runs | str | Path, store: str | Path | None = None) -> None:
        self.runs = runs if isinstance(runs, Runs) else Runs(Path(runs))
        self.runs.manifest  # noqa: B018  (a folder without one holds no runs)
        manifest = hashlib.sha256(read_bytes(self.runs.folder / MANIFEST)).hexdigest()
        _require_recorded(self.runs.folder, manifest)
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
            If no reason is given, or nothing is sealed.
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
        items_by_row = self._items
        # what reviewers must not see: who answered, who asked, and what the machine made of it
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
        # computed anew from the rows: a queue that was stored could be edited with them
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
        """The resolution of each item, by its id."""
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
    def control_errors(self) -> MissedErrors:
        """How many of the items that matched are errors all the same, by the controls."""
        resolutions, queue = self.resolutions, self.queue
        _, matched = split_by_signal(self.runs.rows, self._items)
        # controls are a random sample of the matches, so their error rate is that of all matches
        controls = [item.id for item in matched if item.id in queue.by_id]
        verdicts = [
            resolutions[id].verdict
            for id in controls
            if id in resolutions and resolutions[id].verdict
        ]
        errors, size = verdicts.count("model_error"), len(verdicts)
        if not size:
            return MissedErrors(len(matched), len(controls), 0, 0, None, None, None)
        low, high = wilson(errors, size, _COVERAGE)
        return MissedErrors(
            len(matched), len(controls), size, errors, errors / size, float(low), float(high)
        )

    @property
    def unblindings(self) -> list[Event]:
        """When, by whom and why hidden fields were shown."""
        place = self.runs.folder / LEDGER
        return self._ledger.events(UNBLINDED) if place.exists() else []

    @property
    def is_blind(self) -> bool:
        """Whether a review has begun whose hidden fields nobody was shown yet, by the record."""
        return self.store.last_sealing() is not None and not self.unblindings

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
        """The review settings of the run's config."""
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
        """The last sealing in the runs' ledger."""
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
    """Raise `LedgerError` if a file differs from its run's record; runs without record pass."""
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
        for number, line in enumerate(read_bytes(place, MAX_ROWS).split(b"\n")[:-1], start=1):
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
