"""`kill -9` at any moment of six commands, and the same command again: nothing is lost, nothing
comes twice, and all files are those of a run that nobody killed.

Half of the kills come at a moment of the command's duration, half just before one of its steps: a
change to its folder, or a statement or a commit to a database.
"""

from __future__ import annotations

import hashlib
import json
import os
import pty
import random
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from network import Network
from nursery import Nursery, kill

import groundfault
from groundfault.auditing.report import SUMS
from groundfault.base.ledger import Ledger
from groundfault.cli.main import cli
from groundfault.models import Question, Record, Response
from groundfault.probes import Bank
from groundfault.review.session import DECIDED
from groundfault.sequential import verify_certificate

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and kill -9")

SUPPORT = Path(__file__).parents[1] / "support"
MODULES = (
    "groundfault.auditing.flow",
    "groundfault.finders",
    "groundfault.modes.find",
    "groundfault.probes.review.reviewed_runs",
    "groundfault.probes.running.run",
    "groundfault.readers.importing",
    "groundfault.render.audit_page",
    "groundfault.render.taxonomy_page",
    "groundfault.sequential",
    "groundfault.taxonomy.fitting.fit",
    "openai",
    "sklearn.decomposition",
)
CONCURRENCY = 4
GOLDEN = 0.618034
"""Multiples of it, without their whole parts, spread evenly however many there are."""


class Answers(NamedTuple):
    """The model server, and the network before it, which breaks each 25th reply in its middle."""

    address: str
    network: Network

    def read_prompts(self) -> list[str]:
        """What the server was asked so far."""
        with urllib.request.urlopen(self.address) as reply:
            calls = json.loads(reply.read())["seen"]
        return [call["body"]["messages"][0]["content"] for call in calls]


def read_folder(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def read_events(place: Path) -> list[tuple[str, Any]]:
    Ledger(place).check()
    return [(event.kind, event.body) for event in Ledger(place).events()]


def blank_opening(files: dict[str, bytes], place: Path) -> dict[str, bytes]:
    """Files of a report but for two entries: `ledger.head`, a digest with the time of the opening
    in it, and `ledger.replay`, which is true after a kill between the opening and the report.
    """
    files = {name: text for name, text in files.items() if not name.endswith(SUMS)}
    for event in Ledger(place).events():
        files = {name: text.replace(event.hash.encode(), b"HEAD") for name, text in files.items()}
    return {
        name: text.replace(b'"replay": true', b'"replay": false') for name, text in files.items()
    }


def check_sums(folder: Path) -> None:
    """A report that is there is whole, and of one run."""
    if (folder / SUMS).exists():
        for line in (folder / SUMS).read_text().splitlines():
            digest, name = line.split("  ")
            if (folder / name).exists():
                assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def count_openings(place: Path) -> None:
    """One opening; what came after a kill is a replay of it, which is not counted."""
    events = read_events(place)
    openings = [body for kind, body in events if kind == "holdout_opened"]
    replays = [body for kind, body in events if kind == "holdout_replayed"]
    assert len(openings) == 1
    for replay in replays:
        differ = {key for key in replay if replay[key] != openings[0].get(key)}
        assert differ <= {"reason", "sample", "overlaps"}


class Job:
    """A command: what it needs, and what it leaves."""

    arguments: str
    terminal = False

    def prepare(self, home: Path) -> None:
        """Make the folder in which it runs."""
        raise NotImplementedError

    def check_after_kill(self, home: Path) -> None:
        """What has to hold whenever it is killed."""

    def check_at_end(self, home: Path, kills: int) -> None:
        """What has to hold after the end."""

    def read(self, home: Path) -> dict[str, Any]:
        """What has to be the same as after a run that nobody killed."""
        raise NotImplementedError


class Audit(Job):
    arguments = "audit table.csv --id id --outcome error --ledger ledger.db --out out --json r.json"

    def prepare(self, home: Path) -> None:
        rng = np.random.default_rng(0)
        hard = rng.random(120) < 0.4
        columns = {
            "id": [f"q{i:03d}" for i in range(120)],
            "error": (rng.random(120) < 0.15 + 0.5 * hard).astype(int),
            "hard": hard,
            "lang": rng.choice(["de", "en", "fr"], 120),
        }
        pl.DataFrame(columns).write_csv(home / "table.csv")

    def check_after_kill(self, home: Path) -> None:
        check_sums(home / "out")

    def check_at_end(self, home: Path, kills: int) -> None:
        check_sums(home / "out")
        count_openings(home / "ledger.db")
        table, ledger = home / "table.csv", home / "ledger.db"
        assert groundfault.verify(home / "out", evidence=table, ledger=ledger).reproduces

    def read(self, home: Path) -> dict[str, Any]:
        files = read_folder(home / "out") | {"r.json": (home / "r.json").read_bytes()}
        return blank_opening(files, home / "ledger.db")


class Sequential(Job):
    arguments = (
        "sequential run pool.csv --id id --groups topic --threshold 0.8 --seed 7 --label cmd "
        "--command ./grade --ledger ledger.db --certificate certificate.json --json -"
    )

    def prepare(self, home: Path) -> None:
        columns = {"id": [f"c{i:02d}" for i in range(18)], "topic": ["a", "b", "c"] * 6}
        pl.DataFrame(columns).write_csv(home / "pool.csv")
        program = home / "grade"
        program.write_text(
            # whoever asks may be killed before the question is written
            '#!/bin/sh\nread -r case\n[ -n "$case" ] || exit 1\necho "$case" >> asked.txt\n'
            'case "$case" in *\'"c15"\'*) echo fail ;; *) echo pass ;; esac\n'
        )
        program.chmod(0o755)

    def check_at_end(self, home: Path, kills: int) -> None:
        told = [body for kind, body in read_events(home / "ledger.db") if kind == "audit_told"]
        lines = (home / "asked.txt").read_text().splitlines()
        asked = Counter(json.loads(line)["id"] for line in lines)
        steps = [body["step"] for body in told]
        assert steps == list(range(1, len(told) + 1)), "no label is lost, none counts twice"
        assert set(asked) == {body["id"] for body in told}
        # bought again: only a label whose purchase was under way
        assert asked.total() - len(asked) <= kills
        certificate = verify_certificate(home / "certificate.json", ledger=home / "ledger.db")
        assert certificate.reproduces

    def read(self, home: Path) -> dict[str, Any]:
        files = {"certificate.json": (home / "certificate.json").read_bytes()}
        events = read_events(home / "ledger.db")
        return {**blank_opening(files, home / "ledger.db"), "events": events}


@dataclass
class Probe(Job):
    answers: Answers
    moments: list[tuple[int, set[str]]] = field(default_factory=list)
    arguments = "probe run config.toml --model openai/tiny --out runs --quiet"

    def prepare(self, home: Path) -> None:
        self.moments.clear()
        self.write_config(home)

    @staticmethod
    def write_config(home: Path) -> None:
        # the server does what the first words of a prompt say
        Bank("three", Bank.shipped().tasks[:3]).write(home / "bank.toml")
        (home / "grammar.toml").write_text(
            'name = "paced"\nlayout = "{pace} go\\n\\n{question}\\n\\n{cue}"\n'
            '[[group]]\nname = "pace"\noption = [{ name = "a", text = "slow 0.01" }, '
            '{ name = "b", text = "slow 0.03" }]\n'
            '[[group]]\nname = "cue"\noption = [{ name = "none" }, '
            '{ name = "shortcut", text = "Answer: {shortcut}" }]\n'
        )
        (home / "config.toml").write_text(
            'policies = ["uniform, repeats", "gp"]\nseeds = [0]\niterations = 4\nbatch = 3\n'
            f"[asking]\nconcurrency = {CONCURRENCY}\n"
        )

    def check_after_kill(self, home: Path) -> None:
        place = home / "runs" / "calls.db"
        calls = Record(place).calls() if place.exists() else []
        recorded = {
            call.question.messages[0]["content"] for call in calls if not call.response.error
        }
        self.moments.append((len(self.answers.read_prompts()), recorded))

    def check_at_end(self, home: Path, kills: int) -> None:
        prompts = self.answers.read_prompts()
        for at, recorded in self.moments:
            assert not recorded & set(prompts[at:]), "what is on record is not paid for again"
        rows = [row.id for row in groundfault.probes.Runs(home / "runs").rows]
        assert len(set(rows)) == len(rows) == 2 * 4 * 3

    def read(self, home: Path) -> dict[str, Any]:
        files = read_folder(home / "runs")
        texts = {name: text for name, text in files.items() if name.endswith((".json", "l"))}
        return {**texts, "events": read_events(home / "runs" / "ledger.db")}


class Taxonomy(Job):
    arguments = (
        "taxonomy fit answers.csv --id id --model-column model --outcome error --worlds 19 "
        "--refits 2 --bootstraps 1 --permutations 19 --jobs 1 --hold-out m5 --unstable "
        "--ledger ledger.db --out taxonomy"
    )

    def prepare(self, home: Path) -> None:
        rng = np.random.default_rng(0)
        example, model = (each.ravel() for each in np.indices((40, 6)))
        rate = np.where(example % 2 == model % 2, 0.9, 0.1)
        columns = {
            "id": [f"e{i:02d}" for i in example],
            "model": [f"m{j}" for j in model],
            "error": (rng.random(240) < rate).astype(int),
        }
        pl.DataFrame(columns).write_csv(home / "answers.csv")

    def check_after_kill(self, home: Path) -> None:
        check_sums(home / "taxonomy" / "claims")

    def check_at_end(self, home: Path, kills: int) -> None:
        count_openings(home / "ledger.db")
        check_sums(home / "taxonomy" / "claims")

    def read(self, home: Path) -> dict[str, Any]:
        return blank_opening(read_folder(home / "taxonomy"), home / "ledger.db")


class Import(Job):
    arguments = "import logs -o evidence"

    def prepare(self, home: Path) -> None:
        lines = [
            {
                "doc_id": i,
                "doc": {"question": f"What is {i} + 1?"},
                "target": str(i + 1),
                "arguments": {"gen_args_0": {"arg_0": f"What is {i} + 1?", "arg_1": {}}},
                "resps": [[str(i)]],
                "filtered_resps": [str(i)],
                "filter": "none",
                "metrics": ["exact_match"],
                "doc_hash": f"{i:064x}",
                "prompt_hash": "b",
                "target_hash": "c",
                "exact_match": float(i % 3 > 0),
            }
            for i in range(40)
        ]
        log = home / "logs" / "samples_sums_2026-11-21T22-31-09.272605.jsonl"
        log.parent.mkdir()
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def check_at_end(self, home: Path, kills: int) -> None:
        evidence = groundfault.Evidence.from_logs(home / "evidence")
        assert evidence.frame["example_id"].n_unique() == len(evidence.frame) == 40

    def read(self, home: Path) -> dict[str, Any]:
        return dict(read_folder(home / "evidence"))


@dataclass
class Review(Job):
    """One who presses y at every question."""

    runs: Path
    arguments = "probe review runs --reviewer ana"
    terminal = True

    def prepare(self, home: Path) -> None:
        shutil.copytree(self.runs, home / "runs")

    def check_at_end(self, home: Path, kills: int) -> None:
        events = read_events(home / "runs" / "reviews.db")
        items = [body["item"] for kind, body in events if kind == DECIDED]
        (sealed,) = (body["items"] for kind, body in events if kind == "queue_sealed")
        assert sorted(items) == sorted(sealed), "each item was decided once"

    def read(self, home: Path) -> dict[str, Any]:
        words = ["probe", "review", str(home / "runs"), "--status", "--json", "-"]
        status = CliRunner().invoke(cli, words)
        assert status.exit_code == 0, status.output
        return {
            "status": status.output,
            "decisions": read_events(home / "runs" / "reviews.db"),
            "ledger": read_events(home / "runs" / "ledger.db"),
        }


class ReviewSheet(Review):
    """One who reads in a sheet that was filled in."""

    arguments = "probe review runs --reviewer ana --import sheet.jsonl"
    terminal = False

    def prepare(self, home: Path) -> None:
        super().prepare(home)
        words = ["probe", "review", str(home / "runs"), "--reviewer", "ana"]
        sheet = home / "sheet.jsonl"
        assert CliRunner().invoke(cli, [*words, "--export", str(sheet)]).exit_code == 0
        answers = {"prompt_valid": "yes", "extraction_valid": "yes", "model_wrong": "no"}
        rows = [json.loads(line) | answers for line in sheet.read_text().splitlines()]
        sheet.write_text("".join(json.dumps(row) + "\n" for row in rows))


@dataclass
class Tally:
    """What came of the kills of one command.

    Attributes
    ----------
    kills, stories : int
        Kills, and runs that were brought to their end after one or more of them, or before.
    seconds : float
        All of it.
    steps : int
    duration : float
        Steps and seconds of a run that nobody kills.
    hidden_files : int
        Temporary files ``.NAME.xxxx.tmp`` that kills left behind.
    """

    kills: int = 0
    stories: int = 0
    seconds: float = 0.0
    steps: int = 0
    duration: float = 0.0
    hidden_files: int = 0


@dataclass
class Attack:
    """Kills one command again and again."""

    job: Job
    nursery: Nursery
    folder: Path
    tally: Tally = field(default_factory=Tally)

    @property
    def home(self) -> Path:
        """The same for every story: some outputs name their folder."""
        return self.folder / "home"

    def kill(self, times: int) -> Tally:
        start, rng = time.monotonic(), random.Random(times)
        self._begin()
        self._finish(self._run())
        whole, files = self.job.read(self.home), set(read_folder(self.home))
        self.job.check_at_end(self.home, 0)
        while self.tally.kills < times:
            self._begin()
            kills = self._kill_until_enough(min(rng.randint(1, 4), times - self.tally.kills))
            assert self.job.read(self.home) == whole, "the same bytes"
            self.job.check_at_end(self.home, kills)
            remains = {Path(name).name for name in set(read_folder(self.home)) - files}
            assert all(re.fullmatch(r"\..+\.tmp", name) for name in remains), remains
            self.tally.hidden_files += len(remains)
            self.tally.stories += 1
        self.tally.seconds = time.monotonic() - start
        return self.tally

    def _begin(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        self.job.prepare(self.home)

    def _kill_until_enough(self, most: int) -> int:
        """Kill so many times, and let it come to its end; it may end before."""
        for kills in range(most):
            moment = self.tally.kills * GOLDEN % 1
            start = time.monotonic()
            if self.tally.kills % 2:
                status = self._run(step=1 + int(moment * self.tally.steps))
            else:
                status = self._run(seconds=moment * self.tally.duration)
            if status != -9:
                if not kills:  # the machine is quicker than it was at first
                    self.tally.duration = min(self.tally.duration, time.monotonic() - start)
                self._finish(status)
                return kills
            self.tally.kills += 1
            self.job.check_after_kill(self.home)
        self._finish(self._run())
        return most

    def _run(self, step: int = 0, seconds: float = float("inf")) -> int:
        output = self.folder / "output.txt"
        output.unlink(missing_ok=True)
        master, slave = pty.openpty()
        terminal = os.ttyname(slave) if self.job.terminal else os.devnull
        words = self.job.arguments.split()
        start = time.monotonic()
        child = self.nursery.start(words, self.home, output, step=step, terminal=terminal)
        while is_running(child):
            if time.monotonic() - start > seconds:
                kill(child)
                break
            if self.job.terminal:
                os.write(master, b"y")
            time.sleep(0.002)
        if seconds == float("inf"):
            self.tally.duration = self.tally.duration or time.monotonic() - start
        os.close(master)
        os.close(slave)
        return self.nursery.wait()

    def _finish(self, status: int) -> None:
        output = (self.folder / "output.txt").read_text()
        assert status == 0, output
        # of the last whole run: a kill at a step that never comes would be tried for ever
        self.tally.steps = int(output.splitlines()[-1])


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


class Wrong:
    """A model that always errs, but for a hesitation of its own at each third question."""

    name = "scripted/wrong"

    async def answer(self, question: Question) -> Response:
        prompt = question.messages[0]["content"]
        return Response("I cannot say." if len(prompt) % 3 == 0 else "Answer: 987654")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose responses wait for a review."""
    home = tmp_path_factory.mktemp("runs")
    Probe.write_config(home)
    groundfault.probes.run(home / "config.toml", Wrong(), out=home / "runs")
    return home / "runs"


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    pytest.importorskip("openai", reason="pip install 'groundfault[openai]'")
    server = subprocess.Popen(
        [sys.executable, str(SUPPORT / "model_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert server.stdout is not None
    port = int(server.stdout.readline())
    network = Network(lambda: create_connection(("127.0.0.1", port)), break_every=25)
    yield Answers(f"http://127.0.0.1:{port}/v1", network)
    network.stop()
    server.communicate()


@pytest.fixture(scope="module")
def nursery(answers: Answers) -> Iterator[Nursery]:
    place = f"http://127.0.0.1:{answers.network.port}/v1"
    running = Nursery(MODULES, OPENAI_BASE_URL=place, OPENAI_API_KEY="k" * 10)
    yield running
    running.stop()


JOBS: dict[str, tuple[Callable[[Answers, Path], Job], int]] = {
    "audit": (lambda *_: Audit(), 34),
    "sequential": (lambda *_: Sequential(), 34),
    "probe": (lambda answers, _: Probe(answers), 34),
    "taxonomy": (lambda *_: Taxonomy(), 34),
    "import": (lambda *_: Import(), 32),
    "review": (lambda _, runs: Review(runs), 16),
    "review of a sheet": (lambda _, runs: ReviewSheet(runs), 16),
}
"""Two hundred kills of six commands."""


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_two_hundred_kills(
    name: str, answers: Answers, runs: Path, nursery: Nursery, tmp_path: Path
) -> None:
    make, times = JOBS[name]
    resets = answers.network.resets
    print(name, Attack(make(answers, runs), nursery, tmp_path).kill(times))
    assert (answers.network.resets > resets) == (name == "probe")


def test_two_kills_of_an_import(tmp_path: Path) -> None:
    nursery = Nursery(["groundfault.readers.importing"])
    tally = Attack(Import(), nursery, tmp_path).kill(2)
    nursery.stop()
    assert tally.kills == 2
