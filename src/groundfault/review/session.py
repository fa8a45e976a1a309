"""Sessions: one reviewer's way through their items, each decision stored before the next item."""

from __future__ import annotations

from typing import Any

from groundfault.base.deprecation import rename_members
from groundfault.review.decision import Decision, Role, check_name, select_latest
from groundfault.review.item import Item
from groundfault.review.queue import Queue, open_items
from groundfault.review.store import Store


@rename_members(said="previous", left="remaining")
class Session:
    """What a reviewer has to decide, from where they stopped last.

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
        mine = [
            d
            for (_, name, role), d in select_latest(decisions).items()
            if (name, role) == (reviewer, self.role)
        ]
        self._mine = {d.item: d for d in sorted(mine, key=lambda d: d.seq)}
        # decisions made before are behind the present place, so that one can go back to revise them
        earlier = [queue.by_id[item] for item in self._mine if item in queue.by_id]
        self._way, self._place = [*earlier, *self._open], len(earlier)

    @property
    def item(self) -> Item | None:
        """What is shown now; None at the end."""
        return self._way[self._place] if self._place < len(self._way) else None

    @property
    def following(self) -> Item | None:
        """What is shown after it, so that a page can have it ready; None at the end."""
        place = self._place + 1
        return self._way[place] if place < len(self._way) else None

    @property
    def previous(self) -> Decision | None:
        """What this reviewer said of it before, or None."""
        return self.find_previous(self.item) if self.item else None

    def find_previous(self, item: Item) -> Decision | None:
        """What this reviewer said last of an item, or None."""
        return self._mine.get(item.id)

    @property
    def remaining(self) -> int:
        """Items that are not decided yet, skipped ones among them."""
        return sum(item.id not in self._mine for item in self._open)

    def decide(self, **answers: Any) -> Decision:
        """Keep a decision on the present item, and go on to the next.

        Raises
        ------
        InputError
            If an answer is missing or not one, or the store cannot be written to; the item is then
            still shown.
        """
        assert self.item is not None
        decision = Decision(reviewer=self.reviewer, item=self.item.id, role=self.role, **answers)
        (stored,) = self.store.add([decision])
        self._mine[stored.item] = stored
        self._place += 1
        return stored

    def skip(self) -> None:
        """Leave the item for another session."""
        self._place += 1

    def back(self) -> bool:
        """Show the item before again, to revise what was said; whether there is one."""
        if not self._place:
            return False
        self._place -= 1
        return True
