"""Sessions: one reviewer's way through their items, each decision stored before the next item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from groundfault.base.holdout_events import Event
from groundfault.base.ledger import Ledger
from groundfault.errors import InputError, LedgerError
from groundfault.review.decision import Decision, J, Opinion, Role, check_name, select_latest
from groundfault.review.queue import Item, Queue, open_items

SEALED, DECIDED, UNBLINDED = "queue_sealed", "decision", "unblinded"


class Store:
    """The decisions of one audit; the same file may hold decisions of other audits.

    Every decision is an event of a `groundfault.base.ledger.Ledger`: it is on disk when `add`
    returns, several reviewers may write at once, and one that was edited or taken out later is
    noticed. That the last ones were cut off shows by a head that is known from elsewhere, such as
    the runs' ledger.

    Parameters
    ----------
    path_or_url : path, str or Ledger
        A file, made when it is first needed; or a URL ``postgresql+psycopg://...``.
    audit : str
        The audit's name in the record.

    Attributes
    ----------
    kind : type of Opinion
        A person's answers about an item.
    """

    kind: ClassVar[type[Opinion]] = Decision

    def __init__(self, path_or_url: str | Path | Ledger, audit: str) -> None:
        given = path_or_url
        self._ledger = given if isinstance(given, Ledger) else Ledger(given)
        self.audit = audit
        self._sealed_items: set[str] = set()

    @property
    def place(self) -> str:
        """Return its place: an absolute path, or a URL without its password."""
        return self._ledger.place

    def last_sealing(self) -> Event | None:
        """Return the last sealing of a queue, or None."""
        sealings = [event for event in self._events() if event.kind == SEALED]
        return sealings[-1] if sealings else None

    def seal(self, queue: Queue) -> bool:
        """Fix which items are reviewed and how; whether that was new.

        Once there is a decision, the settings stay; items may be added, as a run goes on, and that
        too is recorded.

        Raises
        ------
        InputError
            If no item is to be reviewed, or the place cannot be written to.
        LedgerError
            If decisions were made under other settings, or the store does not add up.
        """
        if not queue.items:
            raise InputError("no response was routed to a person, so the review is empty")
        events = self._events()
        last = next((event for event in reversed(events) if event.kind == SEALED), None)
        if last is not None and last.body["queue"] == queue.hash:
            return False
        # before the first decision nothing can have been chosen by its outcome, so settings may
        # change
        if last is not None and any(event.kind == DECIDED for event in events):
            for name, value in queue.settings.items():
                if last.body["settings"].get(name) != value:
                    raise LedgerError(
                        f"the queue was sealed with {name} = "
                        f"{last.body['settings'].get(name)!r} before the first decision; it cannot "
                        f"become {value!r} now"
                    )
        ids = [item.id for item in queue.items]
        body = {"audit": self.audit, "queue": queue.hash, "settings": queue.settings, "items": ids}
        self._ledger.append(SEALED, body)
        return True

    def add(self, decisions: Sequence[J]) -> list[J]:
        """Store decisions, all or none of them, and return them with time and place.

        Raises
        ------
        InputError
            If one is about an item that was not sealed, or the place cannot be written to.
        LedgerError
            If no queue is sealed, or the store does not add up.
        """
        # ids that were sealed stay sealed: the chain is read again only for one that is new here
        unknown = {decision.item for decision in decisions} - self._sealed_items
        if unknown:
            sealings = (event for event in self._events() if event.kind == SEALED)
            self._sealed_items = {item for event in sealings for item in event.body["items"]}
            if not self._sealed_items:
                raise LedgerError(
                    "no queue is sealed: the items are fixed before the first decision"
                )
            unknown -= self._sealed_items
        if unknown:
            raise InputError(f"item {min(unknown)[:12]} is not in the queue that was sealed")
        bodies = [{"audit": self.audit, **decision.to_dict()} for decision in decisions]
        events = self._ledger.extend(DECIDED, bodies)
        pairs = zip(decisions, events, strict=True)
        return [replace(decision, time=event.time, seq=event.seq) for decision, event in pairs]

    def unblind(self, body: dict[str, object]) -> Event:
        """Record that hidden fields are about to be shown; decisions from here on are marked."""
        return self._ledger.append(UNBLINDED, {"audit": self.audit, **body})

    def decisions(self) -> list[Any]:
        """Return every decision in the order in which they were made, those that were revised among
        them.

        Raises
        ------
        LedgerError
            If the store was altered.
        """
        decisions = []
        unblinded = False
        for event in self._events():
            # not stored with the decision but derived from the order of events, which cannot be
            # edited
            if event.kind == UNBLINDED:
                unblinded = True
            elif event.kind == DECIDED:
                decisions.append(self._decision(event, unblinded))
        return decisions

    def _decision(self, event: Event, unblinded: bool) -> Opinion:
        try:
            return self.kind.from_dict(
                event.body, time=event.time, seq=event.seq, unblinded=unblinded
            )
        except (KeyError, TypeError, InputError):
            raise LedgerError(
                f"the store {self.place} was altered: decision {event.seq} cannot be read"
            ) from None

    def _events(self) -> list[Event]:
        """Return the events of this audit, the whole chain checked; none where nothing is
        recorded.
        """
        if "://" not in self.place and not Path(self.place).exists():
            return []
        self._ledger.check()
        return [event for event in self._ledger.events() if event.body.get("audit") == self.audit]


class Session:
    """Items that a reviewer has to decide, from the place where they stopped.

    Parameters
    ----------
    queue : Queue
        As sealed in the store.
    store : Store
    reviewer : str
    adjudicate : bool
        Decide disputed items instead.

    Attributes
    ----------
    total : int
        Items that are this reviewer's, decided ones among them; of an adjudicator, what was open at
        the start.

    Raises
    ------
    InputError
        If the name is not one, or the items are split among others.
    """

    def __init__(
        self, queue: Queue, store: Store, reviewer: str, *, adjudicate: bool = False
    ) -> None:
        self.reviewer, self.store = check_name(reviewer), store
        self.role: Role = "adjudicator" if adjudicate else "reviewer"
        decisions = store.decisions()
        self._open = open_items(queue, decisions, reviewer, adjudicate=adjudicate)
        self.total = len(self._open) if adjudicate else len(queue.of(reviewer))
        latest = select_latest(decisions).values()
        mine = [d for d in latest if (d.reviewer, d.role) == (reviewer, self.role)]
        self._mine = {d.item: d for d in sorted(mine, key=lambda d: d.seq)}
        # decisions made before are behind the present place, so that one can go back to revise them
        earlier = [queue.by_id[item] for item in self._mine if item in queue.by_id]
        self._way, self._place = [*earlier, *self._open], len(earlier)

    @property
    def item(self) -> Item | None:
        """Return the item that is shown now; None at the end."""
        return self._way[self._place] if self._place < len(self._way) else None

    @property
    def following(self) -> Item | None:
        """Return the item that is shown after it, so that a page can have it ready; None at the
        end.
        """
        place = self._place + 1
        return self._way[place] if place < len(self._way) else None

    @property
    def previous(self) -> Any:
        """Return this reviewer's decision on it from before, or None."""
        return self.find_previous(self.item) if self.item else None

    def find_previous(self, item: Item) -> Any:
        """Return this reviewer's last decision on an item, or None."""
        return self._mine.get(item.id)

    @property
    def remaining(self) -> int:
        """Return items that are not decided yet, skipped ones among them."""
        return sum(item.id not in self._mine for item in self._open)

    def decide(self, **answers: Any) -> Any:
        """Keep a decision on the present item, and go on to the next.

        Raises
        ------
        InputError
            If an answer is missing or not one, or the store cannot be written to; the item is then
            still shown.
        """
        assert self.item is not None
        kind = self.store.kind
        decision = kind(reviewer=self.reviewer, item=self.item.id, role=self.role, **answers)
        (stored,) = self.store.add([decision])
        self._mine[stored.item] = stored
        self._place += 1
        return stored

    def skip(self) -> None:
        """Leave the item for another session."""
        self._place += 1

    def back(self) -> bool:
        """Show the previous item again, to revise its decision; return whether there is one."""
        if not self._place:
            return False
        self._place -= 1
        return True
