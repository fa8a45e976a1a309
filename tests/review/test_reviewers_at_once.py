"""Eight reviewers at once: nothing is lost, nothing torn, the last decision counts.

On SQLite, and on PostgreSQL too where there is one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from groundfault.base.ledger import Ledger
from groundfault.errors import LedgerError
from groundfault.review import Decision, Item, Queue, Store
from groundfault.review.decision import select_latest

SPAWN = multiprocessing.get_context("spawn" if os.name == "nt" else "fork")
REVIEWERS = 8
ITEMS = tuple(Item("t", f"prompt {n}", "1", "2", "Answer: 2") for n in range(40))
QUEUE = Queue(ITEMS, reviewers=REVIEWERS)


def make_decision(who: int, n: int) -> Decision:
    """A decision whose parts tell which it is, so that half of one and half of another would
    show.
    """
    note = f"{who}-{n} " * 40
    answer: Any = ("yes", "no", "unsure")[n % 3]
    return Decision(
        reviewer=f"reviewer {who}",
        item=ITEMS[n % len(ITEMS)].id,
        prompt_valid="yes",
        extraction_valid="yes",
        model_wrong=answer,
        note=note,
    )


def _decide(place: str, who: int, each: int, start: Any) -> None:
    store = Store(place, "audit")
    start.wait()
    for n in range(each):
        store.add([make_decision(who, n)])


def _all_at_once(place: str, each: int) -> float:
    Store(place, "audit").seal(QUEUE)
    start = SPAWN.Barrier(REVIEWERS + 1)
    workers = [
        SPAWN.Process(target=_decide, args=(place, who, each, start)) for who in range(REVIEWERS)
    ]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.monotonic()
    reading = Store(place, "audit")
    size = 0
    while any(worker.is_alive() for worker in workers):
        decisions = (
            reading.decisions()
        )  # a reader among writers sees whole decisions, and never fewer than before
        assert len(decisions) >= size
        size = len(decisions)
        assert all(d.note == d.note[: d.note.index(" ") + 1] * 40 for d in decisions)
        time.sleep(1)
    assert [worker.exitcode for worker in workers] == [0] * REVIEWERS
    return time.monotonic() - began


def _check_nothing_is_lost(place: str, each: int) -> None:
    decisions = Store(place, "audit").decisions()
    assert len(decisions) == REVIEWERS * each
    assert [d.seq for d in decisions] == list(range(2, REVIEWERS * each + 2))
    for who in range(REVIEWERS):
        mine = [d.to_dict() for d in decisions if d.reviewer == f"reviewer {who}"]
        assert mine == [make_decision(who, n).to_dict() for n in range(each)]
    last = select_latest(decisions)
    assert len(last) == REVIEWERS * min(each, len(ITEMS))
    for who in range(REVIEWERS):
        n = each - 1
        assert (
            last[ITEMS[n % len(ITEMS)].id, f"reviewer {who}", "reviewer"].note
            == make_decision(who, n).note
        )


def test_eight_reviewers_at_once(place: str) -> None:
    _all_at_once(place, 100)
    _check_nothing_is_lost(place, 100)


@pytest.mark.slow
def test_eight_reviewers_make_ten_thousand_decisions(place: str) -> None:
    seconds = _all_at_once(place, 1250)
    print(f"{REVIEWERS * 1250:,} decisions in {seconds:.1f} s")
    _check_nothing_is_lost(place, 1250)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs kill -9")
def test_a_reviewer_who_is_killed_leaves_whole_decisions(tmp_path: Path) -> None:
    place = str(tmp_path / "reviews.db")
    Store(place, "audit").seal(QUEUE)
    for wait in (0.3, 0.23, 0.41):
        start = SPAWN.Barrier(2)
        worker = SPAWN.Process(target=_decide, args=(place, 0, 100_000, start))
        worker.start()
        start.wait()
        time.sleep(wait)
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join(60)
        decisions = Store(place, "audit").decisions()
        assert decisions
        assert all(d.note == d.note[: d.note.index(" ") + 1] * 40 for d in decisions)


def test_audits_share_a_place_and_nothing_else(place: str) -> None:
    first, second = Store(place, "first"), Store(place, "second")
    first.seal(QUEUE)
    first.add([make_decision(0, 1)])
    assert second.decisions() == []
    assert second.last_sealing() is None
    with pytest.raises(LedgerError, match="no queue is sealed"):
        second.add([make_decision(0, 1)])
    second.seal(Queue(ITEMS[:3]))
    second.add([make_decision(1, 2)])
    assert [d.reviewer for d in first.decisions()] == ["reviewer 0"]
    assert [d.reviewer for d in second.decisions()] == ["reviewer 1"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE groundfault_ledger SET body = "
        """replace(body, '"model_wrong":"no"', '"model_wrong":"yes"')""",
        "DELETE FROM groundfault_ledger WHERE seq = 3",
    ],
)
def test_a_decision_that_was_changed_or_taken_away_is_noticed(
    tmp_path: Path, statement: str
) -> None:
    store = Store(tmp_path / "reviews.db", "audit")
    store.seal(QUEUE)
    for n in range(4):
        store.add([make_decision(0, n)])
    with sqlite3.connect(tmp_path / "reviews.db") as raw:
        raw.execute(statement)
    with pytest.raises(LedgerError, match="was altered"):
        store.decisions()
    with pytest.raises(LedgerError, match="was altered"):
        Ledger(tmp_path / "reviews.db").check()
