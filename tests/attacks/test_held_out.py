"""What a command says, writes and asks a model, and how much work it does, does not depend on
outcomes that are held out: by none of it can they be guessed before they are looked at.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from commands import run_program
from small_taxonomy import Scripted

import groundfault
from groundfault import Evidence
from groundfault.cli import output

SIZE = 400
HASH = re.compile(r"\b[0-9a-f]{12,64}\b")
"""Evidence has a digest, of outcomes, too: whoever can guess all of them can test the guess."""


class Seen(NamedTuple):
    """What can be seen of a command, and how often it called each function of groundfault."""

    said: object
    calls: Counter[str]


def write_table(place: Path, rate: float, seed: int) -> None:
    """Rows of which the second half is held out, and fails with this rate."""
    rng = np.random.default_rng(3)
    half = SIZE // 2
    held_out = np.random.default_rng(seed).random(half) < rate
    lang = rng.choice(["de", "en", "fr"], SIZE)
    words = rng.integers(5, 60, SIZE)
    error = np.concatenate([(rng.random(half) < np.where(lang[:half] == "de", 0.6, 0.2)), held_out])
    columns = {
        "id": [f"q{i:03d}" for i in range(SIZE)],
        "lang": lang,
        "words": words,
        "text": [f"item {i}: the {lang[i]} of {words[i]} words" for i in range(SIZE)],
        "part": ["discovery"] * half + ["holdout"] * half,
        "error": error.astype(int),
    }
    pl.DataFrame(columns).write_csv(place / "t.csv")


def run(words: str) -> Callable[[Path], object]:
    def call(place: Path) -> object:
        ending = run_program(*words.split(), folder=place)
        assert ending.status == 0, ending.errors
        files = {
            path.name: path.read_text() for path in place.rglob("*.*") if path.suffix != ".csv"
        }
        return ending, files

    return call


def check(place: Path) -> object:
    evidence = Evidence.from_table(place / "t.csv", outcome="error", id="id", split="part")
    return groundfault.check(evidence).to_dict()


TABLE = "t.csv --id id --outcome error --split part"
WAYS: dict[str, Callable[[Path], object]] = {
    "check": check,
    "check, frozen": run(f"check {TABLE} --freeze library.json --json check.json"),
    "slices": run(f"lab slices {TABLE} --finder sliceline --json slices.json"),
    "tree": run(f"lab slices {TABLE} --finder tree --library tree.json"),
    "explain": run(f"lab explain {TABLE} --text text --pipeline blank --json explain.json"),
}


@pytest.fixture(autouse=True)
def say_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress goes by the clock."""
    monkeypatch.setattr("groundfault.cli.output._PAUSE", 1e9)
    monkeypatch.setattr("groundfault.cli.output._SILENT", 1e9)


def watch(way: Callable[[Path], object], place: Path, rate: float, seed: int) -> Seen:
    place.mkdir()
    write_table(place, rate, seed)
    calls = Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and "groundfault" in file:
            calls[f"{file}:{frame.f_code.co_qualname}"] += 1

    sys.setprofile(count)
    try:
        said = way(place)
    finally:
        sys.setprofile(None)
    return Seen(HASH.sub("#", repr(said)).replace(str(place), "."), calls)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "explain" else n for n in WAYS]
)
def test_nothing_is_told_of_outcomes_that_are_held_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # on a slow machine a line every ten seconds says how far a command is
    monkeypatch.setattr(output, "_PAUSE", float("inf"))
    way = WAYS[name]
    watch(way, tmp_path / "first", 0.3, 1)  # what is cached is cached now
    usual = watch(way, tmp_path / "usual", 0.3, 1)
    # explaining takes a second each
    for rate in (0.0, 1.0) if name == "explain" else (0.0, 0.05, 0.95, 1.0):
        other = watch(way, tmp_path / str(rate), rate, 2)
        assert other.said == usual.said
        assert other.calls == usual.calls


def test_a_model_is_asked_about_discovery_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai", reason="pip install 'groundfault[openai]'")
    server = Scripted(tmp_path / "rules.json")
    server.follow(
        [
            (["The model failed on items"], ['{"descriptions": ["the item is in German"]}']),
            (["not said on which"], ['{"descriptions": ["the item is in German"]}']),
            (["1 in all"], ['{"1": "yes"}']),
        ]
    )
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    asked: list[list[str]] = []
    try:
        for seed, rate in ((1, 0.0), (2, 1.0)):
            place = tmp_path / str(seed)
            place.mkdir()
            write_table(place, rate, seed)
            before = len(server.requests())
            words = f"lab describe {TABLE} --describer openai/large --rounds 1 --out d"
            status, _, errors = run_program(*words.split(), folder=place)
            assert status == 0, errors
            asked.append(sorted(json.dumps(body) for body in server.requests()[before:]))
    finally:
        server.stop()
    assert asked[0] == asked[1]
