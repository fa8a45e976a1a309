"""Runs that are killed: `kill -9` at random moments of concurrent queries to a real server, and
nothing is lost.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from groundfault.base.ledger import Ledger
from groundfault.models import Record
from groundfault.probes import Bank, Runs
from groundfault.probes.running.runs import hold

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and kill -9")

CONCURRENCY = 6
# what the server does is said by the first words of a prompt: it waits, or is busy the first time;
# it echoes the rest
GRAMMAR = """
name = "paced"
layout = "{pace} go NONCE\\n\\n{question}\\n\\n{said}"
[[group]]
name = "pace"
option = [
    { name = "a", text = "slow 0.01" },
    { name = "b", text = "slow 0.04" },
    { name = "c", text = "429 1 0" },
]
[[group]]
name = "said"
option = [
    { name = "none" },
    { name = "shortcut", text = "Answer: {shortcut}" },
    { name = "page", text = "Answer: no" },
]
"""
CONFIG = f"""
policies = ["uniform, repeats", "caps, repeats", "gp"]
seeds = [0, 1]
iterations = 8
batch = 3
[asking]
concurrency = {CONCURRENCY}
"""
# imports once, then runs a child for each line it is told, so that a kill hits a run and not a
# start of Python
NURSERY = """
import os, sys
from groundfault import models
from groundfault.cli.main import cli, main
from groundfault.probes.running import run
import openai
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        sys.argv = ["groundfault", *line.split()]
        main()
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Server:
    """`model_server.py`, a process of its own that no kill reaches, and what it was asked."""

    def __init__(self) -> None:
        place = Path(__file__).parents[1] / "support" / "model_server.py"
        self.process = subprocess.Popen(
            [sys.executable, str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/v1"

    def requests_of(self) -> list[str]:
        with urllib.request.urlopen(self.url) as reply:
            return [
                call["body"]["messages"][0]["content"] for call in json.loads(reply.read())["seen"]
            ]


class Nursery:
    """Starts runs as processes."""

    def __init__(self, url: str) -> None:
        settings = {
            **os.environ,
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "k" * 10,
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=settings,
        )
        assert self.say() == "ready"

    def say(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def run(self, home: Path, out: Path, rng: random.Random | None = None) -> int:
        """Run, and kill at random; the exit status, which is -9 of one that was killed."""
        before = change_answers(out / "calls.db")
        child = self._start(home, out)
        if rng is not None:
            if rng.random() < 0.3:  # at any moment, even before the first question
                time.sleep(rng.uniform(0, 0.6))
            else:  # once answers come in
                while change_answers(out / "calls.db") == before and alive(child):
                    time.sleep(0.002)
                time.sleep(rng.uniform(0, 0.3))
            with suppress(ProcessLookupError):  # it was done before
                os.kill(child, signal.SIGKILL)
        return int(self.say())

    def interrupt(self, home: Path, out: Path) -> int:
        """Run, and interrupt once an answer is on record; the exit status."""
        child = self._start(home, out)
        while not read_prompts(out) and alive(child):
            time.sleep(0.01)
        os.kill(child, signal.SIGINT)
        return int(self.say())

    def _start(self, home: Path, out: Path) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write(
            f"lab probe run {home / 'config.toml'} --model openai/tiny --out {out} --quiet\n"
        )
        self.process.stdin.flush()
        return int(self.say())


def change_answers(place: Path) -> int:
    return place.stat().st_mtime_ns if place.exists() else 0


def alive(child: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(child, 0)
        return True
    return False


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    pytest.importorskip("openai", reason="pip install 'groundfault[openai]'")
    running = Server()
    yield running
    running.process.communicate()


@pytest.fixture(scope="module")
def nursery(server: Server) -> Iterator[Nursery]:
    running = Nursery(server.url)
    yield running
    running.process.communicate()


@dataclass
class Tally:
    """What came of runs that were killed.

    Attributes
    ----------
    runs, kills, queries : int
        Runs that were brought to their end, kills on the way, and what they asked.
    lost : int
        Queries of an uninterrupted run that are missing.
    doubled : int
        Questions sent again although their reply was on record.
    in_flight : int
        Questions sent again because their reply was on its way when the process was killed.
    """

    runs: int = 0
    kills: int = 0
    queries: int = 0
    missing: int = 0
    doubled: int = 0
    in_flight: int = 0


def prepare(home: Path) -> None:
    home.mkdir()
    Bank("six", Bank.shipped().tasks[:6]).write(home / "bank.toml")
    (home / "grammar.toml").write_text(GRAMMAR.replace("NONCE", home.name))
    (home / "config.toml").write_text(CONFIG)


def read_prompts(out: Path) -> set[str]:
    """The prompts whose answers are on record."""
    if not (out / "calls.db").exists():
        return set()
    return {
        call.question.messages[0]["content"]
        for call in Record(out / "calls.db").calls()
        if not call.response.error
    }


def read_outputs(out: Path) -> dict[str, bytes]:
    files = (path for path in out.rglob("*") if path.suffix in (".json", ".jsonl", ".toml"))
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def killed_to_the_end(
    home: Path, server: Server, nursery: Nursery, rng: random.Random, most: int
) -> Tally:
    """One run, killed again and again until it is done or was killed ``most`` times, and then left
    to its end.
    """
    prepare(home)
    out, start, tally = home / "runs", len(server.requests_of()), Tally(runs=1)
    moments: list[tuple[int, set[str], dict[str, bytes]]] = []
    while tally.kills < most and nursery.run(home, out, rng) == -signal.SIGKILL:
        tally.kills += 1
        moments.append(
            (
                len(server.requests_of()),
                read_prompts(out),
                read_outputs(out) if out.exists() else {},
            )
        )
    assert nursery.run(home, out) == 0
    history = server.requests_of()
    assert nursery.run(home, home / "whole") == 0
    final, whole = Runs(out), Runs(home / "whole")
    assert read_outputs(out) == read_outputs(home / "whole"), "identical records"
    for _, _, before in moments:
        for name, data in before.items():
            if name.endswith(".jsonl"):
                assert read_outputs(out)[name].startswith(data), "what was written is never changed"
    Ledger(out / "ledger.db").check()
    events = [
        [(event.kind, event.body) for event in Ledger(f / "ledger.db").events()]
        for f in (out, home / "whole")
    ]
    assert events[0] == events[1]
    queries = history[start:]
    busy = sum(prompt.startswith("429") for prompt in set(queries))
    tally.queries = len(final.rows)
    tally.missing = len({row.id for row in whole.rows} - {row.id for row in final.rows})
    tally.doubled = sum(prompt in seconds for at, seconds, _ in moments for prompt in history[at:])
    tally.in_flight = len(queries) - len(set(queries)) - busy
    return tally


def kill(times: int, tmp_path: Path, server: Server, nursery: Nursery) -> Tally:
    rng, total = random.Random(times), Tally()
    while total.kills < times:
        one = killed_to_the_end(
            tmp_path / f"run-{total.runs}", server, nursery, rng, times - total.kills
        )
        for name, number in vars(one).items():
            setattr(total, name, getattr(total, name) + number)
    print(total)
    assert (total.missing, total.doubled) == (0, 0)
    assert total.queries == total.runs * 3 * 2 * 8 * 3
    assert total.in_flight <= CONCURRENCY * total.kills
    return total


@pytest.mark.slow
def test_twelve_kills(tmp_path: Path, server: Server, nursery: Nursery) -> None:
    kill(12, tmp_path, server, nursery)


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path, server: Server, nursery: Nursery) -> None:
    assert kill(200, tmp_path, server, nursery).in_flight > 0, "some of them hit calls on their way"


@pytest.mark.slow
def test_interrupted_from_the_keyboard(tmp_path: Path, server: Server, nursery: Nursery) -> None:
    home = tmp_path / "run-c"
    prepare(home)
    assert nursery.interrupt(home, home / "runs") == 130
    before = read_prompts(home / "runs")
    assert nursery.run(home, home / "runs") == 0
    assert 0 < len(before) < len(read_prompts(home / "runs"))


def test_another_process_is_refused_while_a_folder_is_held(
    tmp_path: Path, server: Server, nursery: Nursery
) -> None:
    home = tmp_path / "run-h"
    prepare(home)
    with hold(home / "runs"):
        assert nursery.run(home, home / "runs") == 2
    assert not read_prompts(home / "runs")
