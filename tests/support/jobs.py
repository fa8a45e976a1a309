"""Commands that are attacked: what each needs, what it leaves, and what has to hold of that."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from click.testing import CliRunner
from network import Network

import groundfault
from groundfault.auditing.report import SUMS
from groundfault.base.ledger import Ledger
from groundfault.cli.main import cli
from groundfault.models import Question, Record, Response
from groundfault.probes import Bank
from groundfault.review.session import DECIDED
from groundfault.sequential import verify_certificate

MODULES = (
    "groundfault.auditing.flow",
    "groundfault.finders",
    "groundfault.modes.find",
    "groundfault.probes.review.reviewed_runs",
    "groundfault.probes.running.run",
    "groundfault.readers.importing",
    "groundfault.render.audit_page",
    "groundfault_lab.pages.taxonomy_page",
    "groundfault.sequential",
    "groundfault_lab.taxonomy.fitting.fit",
    "openai",
    "sklearn.decomposition",
)
"""What they import, beside the command line itself."""
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
        "label run pool.csv --id id --groups topic --threshold 0.8 --seed 7 --label cmd "
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
    arguments = "lab probe run config.toml --model openai/tiny --out runs --quiet"

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
        "lab taxonomy fit answers.csv --id id --model-column model --outcome error --worlds 19 "
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


class CaseStep(Job):
    """A step of a case: those before it are done by its preparation."""

    steps = (
        "case new case --from table.csv --id id --outcome error",
        "audit --case case",
        "case report case",
    )

    def __init__(self, step: int) -> None:
        self.step, self.arguments = step, self.steps[step]

    def prepare(self, home: Path) -> None:
        Audit().prepare(home)
        before = Path.cwd()
        os.chdir(home)
        try:
            for words in self.steps[: self.step]:
                done = CliRunner().invoke(cli, words.split())
                assert done.exit_code == 0, done.output
        finally:
            os.chdir(before)

    def check_after_kill(self, home: Path) -> None:
        # renames that failed, and could not be taken back, are finished by the next command
        if (home / "case/case.json").exists() and not [*home.rglob(".groundfault-writing")]:
            verification = groundfault.verify(home / "case")
            assert verification.verdict != "does NOT reproduce", verification.checks

    def check_at_end(self, home: Path, kills: int) -> None:
        assert groundfault.verify(home / "case").reproduces

    def read(self, home: Path) -> dict[str, Any]:
        ledger = home / "case" / "ledger.db"
        if not ledger.exists():
            return dict(read_folder(home / "case"))
        files = blank_opening(read_folder(home / "case"), ledger)
        return {name: text for name, text in files.items() if "ledger.db" not in name}


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


class Wrong:
    """A model that always errs, but for a hesitation of its own at each third question."""

    name = "scripted/wrong"

    async def answer(self, question: Question) -> Response:
        prompt = question.messages[0]["content"]
        return Response("I cannot say." if len(prompt) % 3 == 0 else "Answer: 987654")


def make_runs(home: Path) -> Path:
    """Runs whose responses wait for a review."""
    Probe.write_config(home)
    groundfault.probes.run(home / "config.toml", Wrong(), out=home / "runs")
    return home / "runs"


@dataclass
class Review(Job):
    """One who presses y at every question."""

    runs: Path
    arguments = "label review runs --reviewer ana"
    terminal = True

    def prepare(self, home: Path) -> None:
        shutil.copytree(self.runs, home / "runs")

    def check_at_end(self, home: Path, kills: int) -> None:
        events = read_events(home / "runs" / "reviews.db")
        items = [body["item"] for kind, body in events if kind == DECIDED]
        (sealed,) = (body["items"] for kind, body in events if kind == "queue_sealed")
        assert sorted(items) == sorted(sealed), "each item was decided once"

    def read(self, home: Path) -> dict[str, Any]:
        words = ["label", "review", str(home / "runs"), "--status", "--json", "-"]
        status = CliRunner().invoke(cli, words)
        assert status.exit_code == 0, status.output
        return {
            "status": status.output,
            "decisions": read_events(home / "runs" / "reviews.db"),
            "ledger": read_events(home / "runs" / "ledger.db"),
        }


class ReviewSheet(Review):
    """One who reads in a sheet that was filled in."""

    arguments = "label review runs --reviewer ana --import sheet.jsonl"
    terminal = False

    def prepare(self, home: Path) -> None:
        super().prepare(home)
        words = ["label", "review", str(home / "runs"), "--reviewer", "ana"]
        sheet = home / "sheet.jsonl"
        assert CliRunner().invoke(cli, [*words, "--export", str(sheet)]).exit_code == 0
        answers = {"prompt_valid": "yes", "extraction_valid": "yes", "model_wrong": "no"}
        rows = [json.loads(line) | answers for line in sheet.read_text().splitlines()]
        sheet.write_text("".join(json.dumps(row) + "\n" for row in rows))
