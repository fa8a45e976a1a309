"""``describe`` as a shell runs it: a real server, costs printed first, kills that lose nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import run_program
from nursery import Nursery
from small_taxonomy import Scripted

from groundfault import Library

KEY = "sk-right-0123456789abcdef"
WEIGHT = "the item is about weight"
RULES = [
    (["The model failed on items"], [json.dumps({"descriptions": [WEIGHT]})]),
    (["not said on which"], [json.dumps({"descriptions": [WEIGHT]})]),
    (["1 in all", "kilograms"], ['{"1": "yes"}']),
    (["1 in all"], ['{"1": "no"}']),
]
SOURCE = ("items.csv", "--id", "id", "--outcome", "error")
DESCRIBE = (
    "lab",
    "describe",
    *SOURCE,
    "--describer",
    "openai/large",
    "--rounds",
    "1",
    "--check",
    "5",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripted]:
    pytest.importorskip("openai", reason="pip install 'groundfault[openai]'")
    running = Scripted(tmp_path_factory.mktemp("script") / "rules.json")
    running.follow(RULES)
    yield running
    running.stop()


@pytest.fixture
def place(server: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    rows = [
        f"i{i},A bag of {i} {('apples', 'kilograms')[i % 2]} falls.,{int(i % 2 != i % 9 // 8)}"
        for i in range(44)
    ]
    (tmp_path / "items.csv").write_text("\n".join(["id,text,error", *rows]) + "\n")
    return tmp_path


def count_requests(server: Scripted) -> int:
    return len(server.requests())


def test_a_server_is_asked_once_and_costs_are_printed_first(place: Path, server: Scripted) -> None:
    before = count_requests(server)
    words = (*DESCRIBE, "--second", "openai/other", "--price", "2.5", "10", "--out", "d")
    status, output, errors = run_program(*words, folder=place)
    assert status == 0
    assert "1 description of 44 examples, shown by text" in output
    assert "at most 101 calls, about " in errors
    assert ": 3 for proposals, then up to 2 for each of 44 examples, and for 5 of these" in errors
    assert "proposing descriptions by openai/large" in errors
    assert "annotating 44 examples by openai/large" in errors
    assert "about $" in errors
    assert KEY not in output + errors + (place / "d" / "library.json").read_text()
    assert count_requests(server) - before == 3 + 44 + 5
    # nothing is asked, or paid for, twice
    assert run_program(*words, folder=place).status == 0
    assert count_requests(server) - before == 3 + 44 + 5
    [candidate] = Library.load(place / "d" / "library.json")
    assert (candidate.meaning, candidate.source) == (
        WEIGHT,
        "described (outcomes, blind, shuffled)",
    )


@pytest.mark.slow
def test_an_audit_judges_what_a_server_said(place: Path) -> None:
    assert (
        run_program(*DESCRIBE, "--second", "openai/other", "--out", "d", folder=place).status == 0
    )
    audit = ("audit", *SOURCE, "--candidates", "d/library.json", "--no-ledger")
    status, output, _ = run_program(*audit, folder=place)
    assert status == 0
    assert f"1. {WEIGHT}" in output
    assert "agrees on 5 of 5" in " ".join(output.split())


def test_what_it_would_cost_is_said_and_nothing_asked(
    place: Path, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = count_requests(server)
    words = (*DESCRIBE, "--price", "2.5", "10", "--max-calls", "0", "--out", "d")
    status, output, errors = run_program(*words, folder=place)
    assert (status, errors) == (0, "")
    assert output.startswith("at most 91 calls, about ")
    assert ", about $0." in output
    assert output.endswith(
        ", if every reply can be read: 3 for proposals, then up to 2 for each of 44 examples\n"
    )
    assert count_requests(server) == before
    # a key is needed to ask, and is missed before anything is written
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert run_program(*words, folder=place) == (0, output, "")
    assert "set OPENAI_API_KEY" in run_program(*DESCRIBE, "--out", "d", folder=place).errors
    assert not (place / "d").exists()


def test_an_annotator_that_cannot_be_opened_costs_no_proposals(
    place: Path, server: Scripted
) -> None:
    before = count_requests(server)
    words = (*DESCRIBE, "--annotator", "nothing", "--out", "d")
    status, _, errors = run_program(*words, folder=place)
    assert status == 2
    assert "'nothing' names no target" in errors
    assert count_requests(server) == before


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--arms", "none"), "--arms none asks for no proposals"),
        (("--arms", ""), "--arms none asks for no proposals"),
        (("--max-calls", "0", "--price", "-1", "2"), "at least 0 dollars"),
        (("--max-calls", "0", "--price", "nan", "2"), "at least 0 dollars"),
        (("--concurrency", "0"), "concurrency=0 (--concurrency) must be at least 1"),
        (("--record", "items.csv"), "this command reads it"),
        (("--arms", "clever"), "there is no arm 'clever'"),
        (("--text", "nowhere"), "nowhere"),
        (("--text", "error"), "error"),
        (("--describer", "nothing"), "names no target"),
        (("--description", "x" * 300), "is no description"),
    ],
)
def test_what_cannot_be_asked_is_one_line(place: Path, words: tuple[str, ...], why: str) -> None:
    status, _, errors = run_program(*DESCRIBE, *words, "--out", "d", folder=place)
    assert status == 2
    assert why in errors.splitlines()[-1]
    assert errors.splitlines()[-1].startswith("error: ")


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(place: Path, server: Scripted) -> None:
    words: list[Any] = [*DESCRIBE, "--concurrency", "4"]
    assert run_program(*words, "--out", "whole", folder=place).status == 0
    whole = Library.load(place / "whole" / "library.json")
    before = count_requests(server)
    nursery = Nursery(["groundfault.cli.describe", "groundfault.auditing.describing", "openai"])
    try:
        for step in (12, 25, 40, 60):
            nursery.start([*words, "--out", "killed"], place, place / "output", step=step)
            assert nursery.wait() == -9
        nursery.start([*words, "--out", "killed"], place, place / "output")
        assert nursery.wait() == 0
    finally:
        nursery.stop()
    assert Library.load(place / "killed" / "library.json") == whole
    # every question once, and those in flight at a kill once more
    asked = count_requests(server) - before
    assert 44 + 3 <= asked <= 44 + 3 + 4 * 4
