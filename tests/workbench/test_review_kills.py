"""A review whose server is killed, again and again: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from killable_server import MODULES, KillableServer, enter
from nursery import Nursery
from probe_runs import make_wrong_rows, write_runs

from groundfault.probes.review.reviewed_runs import ReviewedRuns

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="needs fork and kill -9"),
]

KILLS = 50
ITEMS = 300
WRONG = {"prompt_valid": "yes", "extraction_valid": "yes", "model_wrong": "yes"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KillableServer]:
    write_runs(tmp_path / "runs", make_wrong_rows(ITEMS), unit="row")
    nursery = Nursery(MODULES)
    server = KillableServer(nursery, ["open", "runs", "--reviewer", "ana"], tmp_path)
    yield server
    server.kill()
    nursery.stop()


def find(pattern: str, html: str) -> str:
    match = re.search(pattern, html)
    assert match, html
    return match[1]


def decide_until_killed(address: str, stored: list[str]) -> str | None:
    """Decide item after item; which one was sent when the server died, None if all are decided."""
    response = ""
    try:
        with enter(address) as client:
            html = client.get("/review").text
            while "All are decided" not in html:
                response = find(r"Answer: (\d+)", html)
                fields = {"turn": find(r'name="turn" value="([^"]+)"', html), "note": response}
                html = client.post("/review/decide", data=WRONG | fields).raise_for_status().text
                stored.append(response)
    except httpx.TransportError:
        return response
    return None


def test_fifty_kills_lose_nothing_and_double_nothing(
    server: KillableServer, tmp_path: Path
) -> None:
    rng = random.Random(0)
    stored: list[str] = []
    kills = in_doubt = 0
    while kills < KILLS:
        # before a step of its start or of a decision: a connection, a statement, a commit, a file;
        # or at any moment, such as between a commit and the answer
        by_step = kills % 2 == 0
        address = server.start(rng.randrange(1, 60) if by_step else 0)
        kills += 1
        if not address:
            continue
        if not by_step:
            server.kill_after(rng.uniform(0.02, 0.3))
        interrupted = decide_until_killed(address, stored)
        assert interrupted is not None
        notes = [d.note for d in ReviewedRuns(tmp_path / "runs").decisions]
        # what was answered stands; what was sent when it died is there whole, or not at all
        assert notes in (stored, [*stored, interrupted])
        in_doubt += len(notes) > len(stored)
        stored = notes
    assert decide_until_killed(server.start(), stored) is None
    decisions = ReviewedRuns(tmp_path / "runs").decisions
    print(f"{kills} kills; {in_doubt} decisions stood whose answer never came")
    assert [d.note for d in decisions] == stored
    assert len(decisions) == len({d.item for d in decisions}) == ITEMS
