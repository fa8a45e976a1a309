"""A review to open in a workbench."""

from __future__ import annotations

from pathlib import Path

from groundfault.review import Item, Queue, Session, Store
from groundfault.workbench.desks import ReviewDesk
from groundfault.workbench.opened_report import OpenedReport


def make_items(count: int) -> tuple[Item, ...]:
    """Items that differ in every text."""
    return tuple(
        Item(
            f"task-{n:02}",
            f"A shop sells {n} apples and as many pears.\nHow many is that? (version {n})",
            str(2 * n),
            None if n % 5 == 4 else str(2 * n + n % 3),
            f"Let me think about {n}.\nIt is {n} and {n}.\nAnswer: {2 * n + n % 3}",
            question=f"{n} apples and {n} pears: how many fruits?",
        )
        for n in range(count)
    )


def open_review(
    place: str | Path,
    reviewer: str,
    items: tuple[Item, ...],
    *,
    reviewers: int = 1,
    adjudicate: bool = False,
) -> OpenedReport:
    """A workbench on a review of these items, kept at a place."""
    queue, store = Queue(items, reviewers=reviewers), Store(place, "audit")
    store.seal(queue)
    desk = ReviewDesk(lambda: Session(queue, store, reviewer, adjudicate=adjudicate))
    return OpenedReport(Path("runs"), review=desk)
