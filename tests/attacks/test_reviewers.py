"""Eight reviewers with 10,000 decisions each, while processes, servers and networks fail: nothing
is lost, nothing comes twice, and each failure is one clear line.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from network import Network
from postgres import own_server

from groundfault.base.ledger import Ledger
from groundfault.errors import GroundfaultError, InputError
from groundfault.review import Decision, Item, Queue, Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="needs fork and kill -9"),
]

FORK = multiprocessing.get_context("fork" if os.name != "nt" else "spawn")
REVIEWERS, EACH = 8, 10_000
# a sheet of 95 decisions is read in, then five are typed one by one, and so on
SHEET, ROUND = 95, 100
ITEMS = tuple(Item("t", f"prompt {n}", "1", "2", "Answer: 2") for n in range(EACH))


def make_decision(who: int, n: int) -> Decision:
    """A decision whose parts tell which it is."""
    answer: Any = ("yes", "no", "unsure")[(n + who) % 3]
    return Decision(
        reviewer=f"reviewer {who}",
        item=ITEMS[n].id,
        prompt_valid="yes",
        extraction_valid="yes",
        model_wrong=answer,
        note=f"{who}-{n}",
    )


def list_own(store: Store, who: int) -> list[str]:
    return [d.note for d in store.decisions() if d.reviewer == f"reviewer {who}"]


def decide(place: str, who: int, each: int, errors: Path, start: Any) -> None:
    """Decide everything. After an error, as in the next session, look how far one has come."""
    start.wait()
    store, n = Store(place, "audit"), -1
    while n < each:
        try:
            if n < 0:
                n = len(list_own(store, who))
                continue
            last = n - n % ROUND + SHEET if n % ROUND < SHEET else n + 1
            store.add([make_decision(who, i) for i in range(n, min(last, each))])
            n = last
        except GroundfaultError as error:
            with errors.open("a") as file:
                file.write(json.dumps([type(error).__name__, str(error)]) + "\n")
            time.sleep(0.2)
            n = -1


class Crowd:
    """Eight reviewers, each a process; for those who are to be killed, another one stands by.

    All are forked before there is any connection that they could inherit.

    Parameters
    ----------
    folder : path
        For what they report.
    place : str
        The ledger for their decisions, as they reach it.
    killed : int
        So many are to be killed, from the first.
    """

    def __init__(self, folder: Path, place: str, killed: int) -> None:
        self._errors = folder / "errors.jsonl"
        people = [*range(REVIEWERS), *range(killed)]
        self._starts = [FORK.Event() for _ in people]
        self._workers = []
        for who, start in zip(people, self._starts, strict=True):
            arguments = (place, who, EACH, self._errors, start)
            worker = FORK.Process(target=decide, args=arguments, daemon=True)
            worker.start()
            self._workers.append(worker)
        Store(place, "audit").seal(Queue(ITEMS, reviewers=REVIEWERS))
        for start in self._starts[:REVIEWERS]:
            start.set()
        self._began = time.monotonic()

    def kill(self, who: int) -> None:
        """Kill a reviewer; another session of the same person begins."""
        victim = self._workers[who]
        assert victim.is_alive()
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        self._workers[who] = self._workers.pop(REVIEWERS)
        self._starts.pop(REVIEWERS).set()

    def wait(self, place: str, share: float) -> None:
        """Wait until so large a share of all decisions is made."""
        while count_decisions(place) < share * REVIEWERS * EACH:
            assert all(worker.exitcode in (None, 0) for worker in self._workers)
            time.sleep(0.1)

    def finish(self) -> tuple[float, list[tuple[str, str]]]:
        """Wait for the end; how many seconds it took, and the errors."""
        for worker in self._workers:
            worker.join()
        assert [worker.exitcode for worker in self._workers] == [0] * REVIEWERS
        lines = self._errors.read_text().splitlines() if self._errors.exists() else []
        return time.monotonic() - self._began, [tuple(json.loads(line)) for line in lines]


def count_decisions(place: str) -> int:
    """Number of decisions so far, without a look at the chain."""
    return max(event.seq for event in Ledger(place).events()) - 1


def check(place: str) -> None:
    """Everybody's decisions are there, whole, in order, each once."""
    Ledger(place).check()
    decisions = Store(place, "audit").decisions()
    assert len(decisions) == REVIEWERS * EACH
    for who in range(REVIEWERS):
        mine = [d.to_dict() for d in decisions if d.reviewer == f"reviewer {who}"]
        assert mine == [make_decision(who, n).to_dict() for n in range(EACH)]


def say(where: str, seconds: float, errors: list[tuple[str, str]]) -> None:
    total = REVIEWERS * EACH
    print(f"{where}: {total:,} decisions in {seconds:.0f} s, {total / seconds:.0f}/s")
    messages = Counter(re.sub(r"\d+", "N", message) for _, message in errors)
    for message, count in messages.items():
        print(f"  {count} x {message}")


def test_eight_reviewers_on_a_file_and_four_are_killed(tmp_path: Path) -> None:
    place = str(tmp_path / "reviews.db")
    crowd = Crowd(tmp_path, place, killed=4)
    for who, share in enumerate((0.1, 0.3, 0.5, 0.7)):
        crowd.wait(place, share)
        crowd.kill(who)
    seconds, errors = crowd.finish()
    say("SQLite", seconds, errors)
    assert not errors
    check(place)


@pytest.fixture
def server() -> Iterator[Any]:
    with own_server() as running:
        if running is None:
            pytest.skip("needs the programs of PostgreSQL: install Debian's package")
        yield running


def test_eight_reviewers_on_postgresql_which_crashes_and_is_cut_off(
    server: Any, tmp_path: Path
) -> None:
    def connect() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(server.socket)
        return connection

    network = Network(connect)
    place = f"postgresql+psycopg://postgres:secret@127.0.0.1:{network.port}/postgres"
    with ExitStack() as stack:
        stack.callback(network.stop)
        crowd = Crowd(tmp_path, place, killed=1)
        crowd.wait(server.url, 0.1)
        crowd.kill(0)
        crowd.wait(server.url, 0.3)
        server.crash()
        time.sleep(1)
        server.start()
        for share in (0.5, 0.6, 0.7):
            crowd.wait(server.url, share)
            with network.partition():
                time.sleep(1)
        seconds, errors = crowd.finish()
    say("PostgreSQL", seconds, errors)
    check(server.url)
    assert network.resets > REVIEWERS
    assert len(errors) >= REVIEWERS, "who was cut off was told so"
    for kind, message in errors:
        assert kind == InputError.__name__, message
        assert message.startswith("the ledger postgresql+psycopg://postgres:***@127.0.0.1:")
        assert "\n" not in message
        assert "secret" not in message
