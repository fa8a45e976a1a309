"""Probe runs: matched budgets, what is written, resuming after any crash, changes refused, services
that fail.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from groundfault import probes
from groundfault.base.ledger import Ledger
from groundfault.cli.main import cli
from groundfault.errors import InputError, LedgerError, MissingExtraError, PlanError
from groundfault.models import Question, Record, Response
from groundfault.probes import Bank, Config, Grammar, Runs, run
from groundfault.probes.bank.bank import SHIPPED
from groundfault.probes.running import policy_run, runs as runs_file

PROBES = {probe.prompt: probe for probe in probes.probes(Bank.shipped(), Grammar.shipped())}


class Brittle:
    """A model that errs where a shortcut is offered, and keeps count of what it is asked."""

    name = "scripted/brittle"

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.now = self.most = 0

    async def answer(self, question: Question) -> Response:
        self.questions.append(question)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        probe = PROBES[question.messages[0]["content"]]
        wrong = "shortcut" in probe.assignment and len(probe.task.id) % 2
        return self.says(
            probe, f"Answer: {probe.task.slots['shortcut'] if wrong else probe.task.answer}"
        )

    def says(self, probe: probes.Probe, text: str) -> Response:
        return Response(text)


class Saying(Brittle):
    """The same, but for what it says."""

    def __init__(self, says: Callable[[probes.Probe, str], Response]) -> None:
        super().__init__()
        self._says = says

    def says(self, probe: probes.Probe, text: str) -> Response:
        return self._says(probe, text)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Grammar and config of the example, and six tasks of its bank."""
    for name in ("grammar.toml", "config.toml"):
        (tmp_path / name).write_bytes((SHIPPED / name).read_bytes())
    Bank("six", Bank.shipped().tasks[:6]).write(tmp_path / "bank.toml")
    return tmp_path


def config(home: Path, **changes: Any) -> Config:
    settings = {
        "policies": ["stratified", "caps, repeats"],
        "seeds": [0, 1],
        "iterations": 3,
        "batch": 2,
    }
    if "budget" in changes:
        del settings["iterations"]
    return Config(bank=home / "bank.toml", grammar=home / "grammar.toml", **{**settings, **changes})


def read_files(folder: Path) -> dict[str, bytes]:
    """The files that must come out the same, whatever happened in between."""
    files = (
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in (".json", ".jsonl", ".toml")
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def read_events(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(event.kind, dict(event.body)) for event in Ledger(folder / "ledger.db").events()]


def of(runs: Runs, policy: str, seed: int = 0) -> list[probes.ProbeRow]:
    return [row for row in runs.rows if (row.policy, row.seed) == (policy, seed)]


# -------------------------------------------------------------------------------- --- what is asked


def test_every_policy_and_seed_gets_the_same_budget(home: Path) -> None:
    result = run(config(home), Brittle())
    assert len(result.rows) == 2 * 2 * 3 * 2
    for policy in ("stratified", "caps, repeats"):
        for seed in (0, 1):
            assert [row.query for row in of(result, policy, seed)] == list(range(1, 7))
    assert result.manifest["budget"] == 6
    assert {row.signal for row in result.rows} == {"match", "mismatch"}


def test_a_budget_that_batches_do_not_fill(home: Path) -> None:
    result = run(config(home, budget=7, batch=3), Brittle())
    assert [row.iteration for row in of(result, "stratified")] == [1, 1, 1, 2, 2, 2, 3]


def test_a_policy_with_nothing_left_ends_early_and_the_others_go_on(home: Path) -> None:
    result = run(
        config(home, policies=["gp, most=1", "uniform, repeats"], seeds=[0], budget=12, batch=4),
        Brittle(),
    )
    assert len(of(result, "gp, most=1")) == 6
    assert len(of(result, "uniform, repeats")) == 12
    status = {
        place.parent.parent.name: json.loads(place.read_text())
        for place in home.rglob("status.json")
    }
    assert [status[name]["queries"] for name in ("gp-most-1", "uniform-repeats")] == [6, 12]
    assert all(each["finished"] for each in status.values())


def test_tasks_are_matched_and_components_only_where_declared(home: Path) -> None:
    for streams, same in (("shared", True), ("independent", False)):
        settings = config(
            home,
            policies=["uniform, repeats", "caps, repeats"],
            streams=streams,
            iterations=1,
            batch=6,
        )
        result = run(settings, Brittle(), out=home / streams)
        one, other = of(result, "uniform, repeats"), of(result, "caps, repeats")
        assert [row.task for row in one] == [row.task for row in other]
        assert ([row.key for row in one] == [row.key for row in other]) is same, (
            "all scores are still 0"
        )
        assert result.manifest["streams"] == {"tasks": "matched", "components": streams}
        assert one != of(result, "uniform, repeats", 1)


def test_prompts_that_must_not_be_asked_are_not(home: Path) -> None:
    text = (home / "grammar.toml").read_text().replace('sha256 = "', '# sha256 = "')
    (home / "grammar.toml").write_text(text.replace("{shortcut}", "{nothing}"))
    result = run(config(home, policies=["uniform, repeats", "gp"], batch=10), Brittle())
    assert {row.assignment[1] for row in result.rows} == {"none", "number"}
    assert (result.manifest["prompts"], result.manifest["valid"]) == (162, 108)
    assert len(of(result, "uniform, repeats")) == 30, "they spend nothing"


def test_no_prompt_at_all(home: Path) -> None:
    text = (home / "grammar.toml").read_text().replace('sha256 = "', '# sha256 = "')
    (home / "grammar.toml").write_text(text.replace("longest = 8000", "longest = 8"))
    with pytest.raises(
        PlanError, match="no prompt may be asked: the prompt is longer than 8 characters"
    ):
        run(config(home), Brittle())


def test_policies_see_mismatches_and_take_nothing_else_for_one(home: Path) -> None:
    def says(probe: probes.Probe, text: str) -> Response:
        return {"none": Response("I cannot.", refused=True), "number": Response("")}.get(
            probe.assignment[1], Response("Answer: wrong 77")
        )

    result = run(
        config(home, policies=["caps, repeats"], seeds=[0], iterations=6, batch=3), Saying(says)
    )
    by_signal = {row.assignment[1]: (row.status, row.signal, row.score) for row in result.rows}
    assert by_signal["none"] == ("refused", "unanswered", None)
    assert by_signal["number"] == ("answered", "unreadable", None)
    last = json.loads(next(home.rglob("trajectory.jsonl")).read_text().splitlines()[-1])
    assert last["scores"]["distractor"]["none"] == last["scores"]["distractor"]["number"] == 0
    assert last["scores"]["distractor"]["shortcut"] > 0.5


def test_answers_are_shared_at_temperature_0_and_fresh_above(home: Path) -> None:
    model = Brittle()
    settings = {
        "policies": ["uniform, repeats", "caps, repeats"],
        "streams": "shared",
        "batch": 6,
        "iterations": 1,
    }
    run(config(home, **settings), model, out=home / "shared")
    assert (
        len(model.questions)
        == len({question.messages[0]["content"] for question in model.questions})
        < 24
    )
    warm = Brittle()
    result = run(config(home, **settings, decoding={"temperature": 0.7}), warm, out=home / "fresh")
    assert (
        len(warm.questions)
        == len({question.hash for question in warm.questions})
        == len(result.rows)
        == 24
    )
    assert result.manifest["answers"] == "fresh"
    cold = run(config(home, **settings, answers="fresh"), Brittle(), out=home / "cold")
    assert len(list(Record(cold.folder / "calls.db").calls())) == 24


def test_all_policies_and_seeds_share_one_bound(home: Path) -> None:
    model = Brittle()
    result = run(config(home, concurrency=3, seeds=[0, 1, 2]), model)
    assert model.most == 3
    alone = run(config(home, concurrency=1, seeds=[0, 1, 2]), Brittle(), out=home / "alone")
    assert read_files(alone.folder) == read_files(result.folder)


def test_the_chance_of_a_draw_is_told_where_it_is_known(home: Path) -> None:
    result = run(config(home, policies=["uniform, repeats", "gp"], seeds=[0]), Brittle())
    assert [row.chance for row in of(result, "uniform, repeats")] == pytest.approx([1 / 162] * 6)
    assert {row.chance for row in of(result, "gp")} == {None}


def test_settings_of_decoding_reach_the_model(home: Path) -> None:
    model = Brittle()
    run(config(home, iterations=1, decoding={"top_p": 0.9, "stop": ["\n\n"]}), model)
    assert model.questions[0].settings == {
        "temperature": 0.0,
        "max_tokens": 192,
        "top_p": 0.9,
        "stop": ["\n\n"],
    }


# ------------------------------------------------------------------------------ --- what is written


def test_the_records_are_what_the_paper_lists(home: Path) -> None:
    result = run(config(home), Brittle())
    place = next(home.rglob("caps-repeats/seed-1/trajectory.jsonl"))
    lines = place.read_bytes().splitlines(keepends=True)
    records = [json.loads(line) for line in lines]
    assert [record["iteration"] for record in records] == [1, 2, 3]
    assert [record["temperature"] for record in records] == pytest.approx([1, 2 / 3, 1 / 3])
    assert set(records[0]["scores"]) == {"cue", "distractor", "format"}
    assert all(len(record["batch"]) == 2 for record in records)
    status = json.loads(place.with_name("status.json").read_text())
    assert status["iterations"] == 3
    assert status["finished"] is True
    assert status["trajectory"] == hashlib.sha256(b"".join(lines)).hexdigest()
    assert status["streams"] == [
        {"seed": 1, "purpose": "tasks", "counter": 4},
        {"seed": 1, "purpose": "components caps, repeats", "counter": 4},
    ]
    best = next(
        row
        for row in of(result, "caps, repeats", 1)
        if row.score == max(r.score or 0 for r in result.rows)
    )
    assert probes.ProbeRow.from_dict(status["best"]) == best
    sealed = {
        (b["policy"], b["seed"], b["iteration"]): b["record"]
        for kind, b in read_events(result.folder)[1:]
    }
    assert sealed[("caps, repeats", 1, 2)] == hashlib.sha256(lines[1]).hexdigest()
    assert len(sealed) == 12


def test_what_was_fixed_is_sealed_before_the_first_question(home: Path) -> None:
    class Looking(Brittle):
        history: list[Any] | None = None

        async def answer(self, question: Question) -> Response:
            self.history = self.history or read_events(home / "runs")
            return await super().answer(question)

    model = Looking()
    result = run(config(home), model)
    manifest = hashlib.sha256((result.folder / "manifest.json").read_bytes()).hexdigest()
    assert model.history is not None
    assert [(kind, body["manifest"], body["model"]) for kind, body in model.history] == [
        ("probe_run_sealed", manifest, "scripted/brittle")
    ]
    assert (result.folder / "bank.toml").read_bytes() == (home / "bank.toml").read_bytes()
    assert (result.bank.hash, result.grammar.hash) == (
        result.manifest["bank"]["sha256"],
        result.manifest["grammar"]["sha256"],
    )


def test_responses_with_every_kind_of_line_break(home: Path) -> None:
    odd = "a\u2028b\x85c\r\nd\x0be\x00\U0001f600\nAnswer: 5"
    result = run(config(home), Saying(lambda probe, text: Response(odd)))
    assert {row.response for row in result.rows} == {odd}
    assert len(result.rows) == 24


def test_two_models_in_one_folder(home: Path) -> None:
    other = Brittle()
    other.name = "scripted/other"
    run(config(home), Brittle())
    result = run(config(home), other)
    assert {row.model for row in result.rows} == {"scripted/brittle", "scripted/other"}
    assert len(result.rows) == len({row.id for row in result.rows}) == 48
    other.name = "scripted other"
    with pytest.raises(PlanError, match="too like"):
        run(config(home), other)


# ------------------------------------------------------------------------------------- --- going on


@pytest.mark.parametrize("temperature", [0, 1])
def test_running_again_asks_nothing_and_changes_nothing(home: Path, temperature: float) -> None:
    warm: dict[str, Any] = {"decoding": {"temperature": temperature}}
    runs, model = run(config(home, **warm), Brittle()), Brittle()
    before, head = read_files(runs.folder), Ledger(runs.folder / "ledger.db").head
    run(config(home, concurrency=1, timeout=5, retries=0, **warm), model)
    assert model.questions == []
    assert read_files(runs.folder) == before
    assert Ledger(runs.folder / "ledger.db").head == head


class Killed(BaseException):
    """What no code of ours catches."""


def test_a_crash_between_any_two_writes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is on disk and whatever is not yet: going on ends in the same bytes, and pays for
    nothing twice.
    """
    monkeypatch.setattr(os, "fsync", int)
    settings = config(home, seeds=[0], iterations=2, batch=1)
    whole = run(settings, Brittle(), out=home / "whole").folder
    remaining = [0]

    def fragile(write: Callable[..., Any]) -> Callable[..., Any]:
        def act(*args: Any) -> Any:
            remaining[0] -= 1
            if remaining[0] == 0:
                raise Killed
            return write(*args)

        return act

    for owner, name in (
        (runs_file, "write_bytes"),
        (policy_run, "write_bytes"),
        (policy_run.PolicyRun, "_append"),
    ):
        monkeypatch.setattr(owner, name, fragile(getattr(owner, name)))
    for owner, name in ((Ledger, "extend"), (Record, "add")):
        monkeypatch.setattr(owner, name, fragile(getattr(owner, name)))
    for point in count(1):
        remaining[0], out, crashed = point, home / str(point), False
        try:
            run(settings, Brittle(), out=out)
        except Killed:
            crashed = True
        cost = (
            {call.question.hash for call in Record(out / "calls.db").calls()}
            if (out / "calls.db").exists()
            else {}
        )
        remaining[0], model = 0, Brittle()
        run(settings, model, out=out)
        assert read_files(out) == read_files(whole), point
        assert read_events(out) == read_events(whole), point
        assert not any(question.hash in cost for question in model.questions), point
        if not crashed:
            break
    assert point > 15


def test_a_line_that_was_cut_short_is_written_anew(home: Path) -> None:
    folder = run(config(home), Brittle()).folder
    before, place = read_files(folder), next(folder.rglob("trajectory.jsonl"))
    data = place.read_bytes()
    for end in (1, len(data) // 2, len(data) - 1):
        place.write_bytes(data[:end])
        assert len(Runs(folder).rows) < 24, "what is whole can be read all the same"
        model = Brittle()
        run(config(home), model)
        assert read_files(folder) == before
        assert model.questions == []
    place.unlink()
    place.with_name("status.json").unlink()
    run(config(home), Brittle())
    assert read_files(folder) == before


def test_a_second_process_is_refused(home: Path) -> None:
    with runs_file.hold(home / "runs"), pytest.raises(InputError, match="another process runs in"):
        run(config(home), Brittle())
    run(config(home), Brittle())


# ------------------------------------------------------------------------------ --- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": [0, 2]}, r"another seeds: \[0, 1\] then, \[0, 2\] now"),
        ({"iterations": 4}, "another iterations: 3 then, 4 now"),
        ({"policies": ["stratified"]}, "another policies"),
        ({"decoding": {"max_tokens": 8}}, "another decoding max_tokens: 192 then, 8 now"),
        ({"decoding": {"top_p": 0.5}}, "another decoding top_p: null then, 0.5 now"),
        ({"streams": "shared"}, "another streams components: independent then, shared now"),
        ({"answers": "fresh"}, "another answers"),
        ({"reviewers": 2}, "another review reviewers"),
    ],
)
def test_going_on_with_other_settings_is_refused(
    home: Path, changes: dict[str, Any], message: str
) -> None:
    before = read_files(run(config(home), Brittle()).folder)
    with pytest.raises(InputError, match=message):
        run(config(home, **changes), Brittle())
    assert read_files(home / "runs") == before


@pytest.mark.parametrize("name", ["bank", "grammar"])
def test_going_on_with_another_bank_or_grammar_is_refused(home: Path, name: str) -> None:
    run(config(home), Brittle())
    place = home / f"{name}.toml"
    text = place.read_text()
    place.write_text(f"# the same\n{text}")
    run(config(home), Brittle())  # a comment is no change
    text = (
        text.replace('sha256 = "', '# sha256 = "')
        .replace("cents", "pennies")
        .replace("skimmed", "skipped")
    )
    place.write_text(text)
    with pytest.raises(InputError, match=f"begun with another {name}: "):
        run(config(home), Brittle())


def test_files_that_were_tampered_with(home: Path) -> None:
    folder = run(config(home), Brittle()).folder
    trajectory = next(folder.rglob("trajectory.jsonl"))
    for place, old, new, message in (
        (trajectory, b'"score": 0.0', b'"score": 1.0', "line 1 was changed"),
        (folder / "bank.toml", b"cents", b"pennies", "frozen as"),
        (
            folder / "manifest.json",
            b'"seeds": [',
            b'"seeds": [ ',
            "was changed after the run began",
        ),
        (folder / "manifest.json", b'"batch": 2', b'"batch": 3', "another batch"),
    ):
        data = place.read_bytes()
        assert old in data
        place.write_bytes(data.replace(old, new, 1))
        with pytest.raises((InputError, LedgerError), match=message):
            run(config(home), Brittle())
        place.write_bytes(data)
    run(config(home), Brittle())
    (folder / "ledger.db").rename(folder / "away.db")
    with pytest.raises(LedgerError, match=r"trajectory.jsonl holds more iterations than ledger.db"):
        run(config(home), Brittle())
    (folder / "away.db").replace(folder / "ledger.db")
    (folder / "manifest.json").unlink()
    with pytest.raises(LedgerError, match="was sealed with another manifest"):
        run(config(home, seeds=[5]), Brittle())


def test_answers_that_are_gone_are_not_paid_for_again(home: Path) -> None:
    folder, model = run(config(home), Brittle()).folder, Brittle()
    (folder / "calls.db").rename(folder / "away.db")
    with pytest.raises(LedgerError, match="lacks 8 answers that the ledger counts"):
        run(config(home), model)
    assert model.questions == []


def test_answers_that_were_changed(home: Path) -> None:
    import sqlite3

    folder = run(config(home), Brittle()).folder
    with sqlite3.connect(folder / "calls.db") as calls:
        calls.execute(
            "UPDATE groundfault_calls SET response = replace(response, 'Answer: ', 'Answer: not ')"
        )
    calls.close()
    with pytest.raises(LedgerError, match="iteration 1 of stratified, seed 0 differs from"):
        run(config(home), Brittle())


# ------------------------------------------------------------------------- --- a service that fails


def test_a_prompt_that_the_model_has_no_room_for_is_an_error_row(home: Path) -> None:
    class Short(Brittle):
        async def answer(self, question: Question) -> Response:
            if len(question.messages[-1]["content"]) % 2:
                why = "the context is too short: the prompt has 300 tokens"
                return Response.failed(why, finish="length")
            return await super().answer(question)

    rows = run(config(home), Short()).rows
    lost = [row for row in rows if row.status == "error"]
    assert 0 < len(lost) < len(rows)
    assert {row.signal for row in lost} == {"unanswered"}


def test_a_failure_of_the_service_is_no_mismatch_and_spends_nothing(home: Path) -> None:
    class Failing(Brittle):
        breaks = True

        async def answer(self, question: Question) -> Response:
            if self.breaks and len(self.questions) == 10:
                self.questions.append(question)
                return Response.failed("out of memory")
            return await super().answer(question)

    model, whole = Failing(), run(config(home), Brittle(), out=home / "whole")
    with pytest.raises(
        InputError,
        match="did not answer in iteration 2: out of memory; this iteration is not spent",
    ):
        run(config(home, retries=0, concurrency=1), model)
    assert len(Runs(home / "runs").rows) == 8
    model.breaks = False
    result = run(config(home, retries=0), model)
    assert read_files(result.folder) == read_files(whole.folder)
    hashes = [question.hash for question in model.questions]
    assert len(hashes) - len(set(hashes)) == 1, "only the one that failed was asked twice"


def test_an_error_that_passes_is_asked_again_at_once(home: Path) -> None:
    class Busy(Brittle):
        failures = 0

        async def answer(self, question: Question) -> Response:
            if self.failures < 2:
                self.failures += 1
                return Response.failed("busy", again=True, after=0.0)
            return await super().answer(question)

    result = run(config(home), Busy())
    assert {row.status for row in result.rows} == {"answered"}
    assert read_files(result.folder) == read_files(
        run(config(home), Brittle(), out=home / "calm").folder
    )


def test_a_wrong_key_stops_the_run_at_once(home: Path) -> None:
    model = Saying(lambda probe, text: Response.failed("401: no such key", fatal=True))
    with pytest.raises(
        InputError, match=r"asked: 401: no such key; the answers so far are in .*calls\.db"
    ):
        run(config(home, concurrency=1), model)
    assert len(model.questions) == 1


# ----------------------------------------------------------------------------------- --- the config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 0}, "budget is 0; it must be a whole number of at least 1"),
        ({"batch": 0}, "batch is 0"),
        ({"iterations": None}, "set either iterations or budget"),
        ({"budget": 9, "iterations": 3}, "set either iterations or budget"),
        ({"policies": ["gp", "capz"]}, "there is no policy 'capz'"),
        ({"policies": ["gp", "stratified", "gp"]}, "policies holds 'gp' twice"),
        ({"policies": ["caps", "caps, rate=0.3"]}, "policies holds 'caps' twice"),
        ({"policies": ["caps, rate=2"]}, "rate in"),
        ({"policies": "gp"}, "policies must be a list"),
        ({"policies": []}, "policies must be a list"),
        ({"policies": [3]}, "policies holds 3"),
        ({"seeds": []}, r"seeds is \[\]"),
        ({"seeds": [1, 1]}, "seeds is"),
        ({"seeds": 3}, "seeds is 3; it must be a list"),
        ({"seeds": [-1]}, "seeds is"),
        ({"seeds": [True]}, "seeds is"),
        ({"streams": "matched"}, "streams is 'matched'; it must be independent or shared"),
        ({"answers": "new"}, "answers is 'new'"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"retries": -1}, "retries is -1"),
        ({"reviewers": 3}, "reviewers is 3; it must be 1 or 2"),
        ({"unit": "task"}, "unit is 'task'"),
        ({"controls": 1.5}, "controls is 1.5"),
        ({"decoding": {"temperature": -1}}, "decoding: temperature is -1.0"),
        ({"decoding": {"temprature": 0}}, "decoding: there is no 'temprature'"),
        ({"decoding": {"max_tokens": 0}}, "decoding: max_tokens is 0"),
    ],
)
def test_settings_that_cannot_be(home: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises((PlanError, InputError), match=message):
        config(home, **changes)


def test_the_example_is_the_config_that_it_says(home: Path) -> None:
    result = Config.load(home / "config.toml")
    assert result == Config(bank=home / "bank.toml", grammar=home / "grammar.toml", iterations=5)
    assert (result.queries, result.rounds, result.shares) == (15, 5, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iterations = 3\nbudjet = 4", "there is no 'budjet'"),
        ("iterations = 3\nconcurrency = 4", "there is no 'concurrency'"),
        ("iterations = 3\n[asking]\nconcurency = 4", r"\[asking\]: there is no 'concurency'"),
        ("iterations = 3\ndecoding = 4", r"decoding must be a table; write \[decoding\]"),
        ("iterations = 3\nbank = 4", "bank is not text"),
        ("iterations = 0", "config.toml: iterations is 0"),
        ("iterations = ", "is not TOML"),
    ],
)
def test_files_that_are_no_config(home: Path, text: str, message: str) -> None:
    (home / "config.toml").write_text(text)
    with pytest.raises((PlanError, InputError), match=message):
        Config.load(home / "config.toml")


# ------------------------------------------------------------------------------- --- another model


def test_a_model_that_answers_for_another_is_recorded_once_said_and_reported(
    home: Path,
) -> None:
    def answer(probe: probes.Probe, text: str) -> Response:
        return Response(text, model="tiny-1", asked="large-70b")

    folder = home / "runs"
    with pytest.warns(UserWarning, match="'large-70b' was asked, and the server answered as"):
        runs = run(config(home), Saying(answer), out=folder)
    recorded = [event for event in read_events(folder) if event[0] == "probe_other_model"]
    pair = {"asked": "large-70b", "answered": "tiny-1"}
    assert recorded == [("probe_other_model", {"model": "scripted/brittle", **pair})]
    with pytest.warns(UserWarning, match="answered as 'tiny-1'"):
        run(config(home), Saying(answer), out=folder)
    assert [event for event in read_events(folder) if event[0] == "probe_other_model"] == recorded
    assert runs.other_models == (("large-70b", "tiny-1"),)
    report = CliRunner().invoke(cli, ["lab", "probe", "report", str(folder), "--json", "-"])
    assert "answered as 'tiny-1'" in json.loads(report.stdout)["open"][0]


# ---------------------------------------------------------------------------------- --- the command


def replay(home: Path, **more: str) -> str:
    lines = [
        json.dumps({"prompt": probe.prompt, "response": f"Answer: {probe.task.answer}"})
        for probe in PROBES.values()
    ]
    (home / "answers.jsonl").write_text("\n".join(lines) + "\n")
    return f"replay:{home / 'answers.jsonl'}"


def test_the_command(home: Path) -> None:
    call = ["lab", "probe", "run", str(home / "config.toml"), "--model", replay(home)]
    items_by_row = CliRunner().invoke(cli, call)
    assert items_by_row.exit_code == 0, items_by_row.output
    assert "stratified" in items_by_row.output
    assert f"next: groundfault label review {home / 'runs'}" in items_by_row.output
    assert CliRunner().invoke(cli, [*call, "--quiet"]).output == ""
    content = json.loads(CliRunner().invoke(cli, [*call, "--json", "-"]).output)
    assert content["other_models"] == []
    assert content["counts"][0] == {
        "policy": "diverse",
        "seed": 0,
        "queries": 15,
        "match": 15,
        "mismatch": 0,
        "unreadable": 0,
        "unanswered": 0,
        "mismatched_keys": 0,
    }


def test_a_config_that_is_missing_is_named_before_a_library_that_is(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    call = ["lab", "probe", "run", str(home / "nowhere.toml"), "--model", "openai/one"]
    result = CliRunner().invoke(cli, call)
    assert isinstance(result.exception, InputError)
    assert "nowhere.toml" in str(result.exception)
    result = CliRunner().invoke(cli, [*call[:3], str(home / "config.toml"), *call[4:]])
    assert isinstance(result.exception, MissingExtraError)


def test_the_command_counts_prompts_that_must_not_be_asked(home: Path) -> None:
    grammar = (home / "grammar.toml").read_text(encoding="utf-8").replace("sha256 =", "# sha256 =")
    (home / "grammar.toml").write_text(
        grammar.replace("Read what", "{hint} Read what"), encoding="utf-8"
    )
    call = ["lab", "probe", "run", str(home / "config.toml"), "--model", replay(home)]
    assert (
        "54 of 162 prompts are invalid and were not asked" in CliRunner().invoke(cli, call).output
    )


def test_a_run_is_replayed_from_its_calls(home: Path) -> None:
    settings = config(home, policies=["caps, repeats"], decoding={"temperature": 1})
    first = run(settings, Brittle(), out=home / "first")
    again = run(settings, f"replay:{first.folder / 'calls.db'}", out=home / "again")
    assert [{**vars(row), "model": ""} for row in again.rows] == [
        {**vars(row), "model": ""} for row in first.rows
    ]


def test_a_replay_that_is_not_utf_8(home: Path) -> None:
    replay(home)
    (home / "answers.jsonl").write_bytes(
        (home / "answers.jsonl").read_bytes().replace(b"Answer: 5", b"Answer: \xff5")
    )
    with pytest.raises(InputError, match="UTF-8"):
        run(home / "config.toml", f"replay:{home / 'answers.jsonl'}")


def test_a_replay_without_an_answer(home: Path) -> None:
    replay(home)
    lines = (home / "answers.jsonl").read_text().splitlines()[:100]
    (home / "answers.jsonl").write_text("\n".join(lines))
    with pytest.raises(
        InputError,
        match=r"did not answer in iteration 1: there is no recorded answer|in a row failed",
    ):
        run(home / "config.toml", f"replay:{home / 'answers.jsonl'}")


def test_a_folder_that_cannot_be(home: Path) -> None:
    (home / "file").write_text("")
    with pytest.raises(InputError, match="cannot write to"):
        run(config(home), Brittle(), out=home / "file" / "runs")
    folder = run(config(home), Brittle()).folder
    place = next(folder.rglob("trajectory.jsonl"))
    place.unlink()
    place.mkdir()
    with pytest.raises(InputError, match=r"cannot write .*trajectory"):
        run(config(home), Brittle())
