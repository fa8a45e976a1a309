"""Notes and codes: blind, on record at once, renamed, taken back; counts and judges that hold."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from groundfault import Evidence, audit
from groundfault.cli.main import cli
from groundfault.coding import Coding
from groundfault.errors import GroundfaultError, InputError, LedgerError, PlanError
from groundfault.review.notes import Note


def make_runs(n: int = 60, seed: int = 0) -> Evidence:
    """Runs that fail in half of the cases; the failing ones pay early or loop."""
    rng = np.random.default_rng(seed)
    failed = rng.random(n) < 0.5
    early = failed & (rng.random(n) < 0.6)
    judged = np.where(early, rng.random(n) < 0.9, rng.random(n) < 0.1)
    table = pl.DataFrame(
        {
            "id": [f"t{i}" for i in range(n)],
            "question": [f"book flight {i}" for i in range(n)],
            "answer": ["paid" if one else "looped" for one in early],
            "lang": ["de" if i % 2 else "en" for i in range(n)],
            "error": failed.astype(int),
            "judge": judged.astype(int),
        }
    )
    return Evidence.from_table(table, id="id", outcome="error")


def code_runs(coding: Coding, coder: str, most: int = 10**6) -> None:
    """Code as the answers say."""
    session = coding.session(coder)
    while (item := session.item) is not None and most:
        texts = dict(item.headed_texts)
        wrong = texts["answer"] == "paid"
        session.decide(note=texts["answer"], codes=["pays early" if wrong else "loops"], step=1)
        most -= 1


def test_the_reason_of_a_grader_is_shown_unless_passing_runs_are_among_them(tmp_path: Path) -> None:
    case = {"name": "a", "input": "two?", "actualOutput": "3", "success": False}
    metric = {"name": "Relevancy", "success": False, "score": 0.1, "reason": "It counts wrong."}
    run = {"testCases": [{**case, "metricsData": [metric]}]}
    (tmp_path / "run.json").write_text(json.dumps(run))
    evidence = Evidence.from_logs(tmp_path / "run.json")
    for passing in (0, 1):
        coding = Coding(evidence, tmp_path / "codes.db", passing=passing)
        (item,) = coding.queue.items
        shown = dict(item.headed_texts)
        assert shown["response"] == "3"
        assert ("reason" in shown) is (passing == 0)


def test_what_a_coder_sees_is_blind_and_what_is_said_stands(tmp_path: Path) -> None:
    evidence = make_runs()
    coding = Coding(evidence, tmp_path / "codes.db", failing=20)
    session = coding.session("ana")
    first = session.item
    assert first is not None
    assert [head for head, _ in first.headed_texts] == ["question", "answer"]
    assert "t" + first.headed_texts[0][1].split()[-1] not in first.id
    session.decide(note="pays before it checks", codes=[" pays  early ", "pays early"], step=2)
    session.decide(codes=[])
    # another process goes on where this one stopped, and others have their own order
    again = coding.session("ana")
    assert (again.total, again.remaining) == (20, 18)
    assert again.back()
    assert again.back()
    assert again.item == first
    assert again.previous.codes == ("pays early",)
    again.decide(note="loops", codes=["loops"])
    assert [(n.note, n.codes) for n in coding.notes] == [("loops", ("loops",)), ("", ())]
    other = coding.session("ben")
    assert other.remaining == 20
    # who draws fewer runs later still counts all notes
    assert {
        count.coded for count in Coding(evidence, tmp_path / "codes.db", failing=1).counts()
    } == {2}
    assert coding.labels().columns == ["id", "note", "step", "quote", "inclusion", "loops"]


@contextmanager
def serve_model(script: Path) -> Iterator[str]:
    """The address of a server on this machine that answers by a script."""
    place = Path(__file__).parents[1] / "support" / "model_server.py"
    with subprocess.Popen(
        [sys.executable, str(place), str(script)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        assert server.stdin is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        server.stdin.close()


@pytest.fixture
def model_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a model that a server on this machine has: it reads the answers right."""
    yes, no = '{"1": "yes"}', '{"1": "no"}'
    rules = [[["answer: paid"], [yes]], [["answer: looped"], [no]], [[], ["no idea"]]]
    script = tmp_path / "script.json"
    script.write_text(json.dumps(rules))
    with serve_model(script) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-right-0123456789abcdef")
        yield url


def test_a_model_judges_blind_and_is_validated_on_later_labels(
    tmp_path: Path, model_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = make_runs(80)
    coding = Coding(evidence, tmp_path / "codes.db")
    code_runs(coding, "ana", 10)
    question = coding.prompt("pays early")
    code_runs(coding, "ana", 20)
    record = tmp_path / "calls.db"
    grades = coding.judge("pays early", "openai/gpt-4o-mini", record=record)
    assert grades.tolist() == (evidence.frame["answer"] == "paid").cast(float).to_list()
    (checked,) = coding.validate("pays early", grades)
    assert checked.positives + checked.negatives == 20
    assert (checked.hits, checked.rejections) == (checked.positives, checked.negatives)
    with urllib.request.urlopen(model_server) as reply:
        asked = json.loads(reply.read())["seen"]
    said = [one["body"]["messages"][-1]["content"] for one in asked]
    assert len(said) == 80
    assert all(question in one for one in said)
    assert not any(name in one for one in said for name in ("error:", "judge:", "lang"))
    # again: from the record, by the question that was sealed
    assert (coding.judge("pays early", "openai/gpt-4o-mini", record=record) == grades).all()
    with urllib.request.urlopen(model_server) as reply:
        assert len(json.loads(reply.read())["seen"]) == 80
    evidence.frame.write_csv(tmp_path / "runs.csv")
    words = f"label code {tmp_path}/runs.csv --id id --outcome error --store {tmp_path}/codes.db"
    monkeypatch.chdir(tmp_path)
    flags = ["--validate-judge", "pays early=openai/gpt-4o-mini", "--json", "-"]
    done = CliRunner().invoke(cli, [*words.split(), *flags])
    (told,) = json.loads(done.stdout)["validation"]
    assert (told["hits"], told["flagged"]) == (checked.hits, checked.flagged)
    with pytest.raises(PlanError, match="--max-calls"):
        coding.judge("loops", "openai/gpt-4o-mini", max_calls=3)


def test_codes_are_renamed_joined_defined_and_all_of_it_is_taken_back(tmp_path: Path) -> None:
    coding = Coding(make_runs(), tmp_path / "codes.db")
    code_runs(coding, "ana")
    before = coding.codes
    assert set(before) == {"pays early", "loops"}
    coding.rename("loops", "repeats itself")
    coding.rename("repeats itself", "pays early")
    assert list(coding.codes) == ["pays early"]
    coding.define("pays early", "It pays before it checks.")
    assert coding.codes == {"pays early": "It pays before it checks."}
    assert coding.undo() == "define pays early"
    assert coding.undo() == "rename repeats itself"
    assert set(coding.codes) == {"pays early", "repeats itself"}
    coding.rename("repeats itself", "loops")
    assert coding.codes == before
    with pytest.raises(InputError, match="no code 'pays'"):
        coding.rename("pays", "x")
    with pytest.raises(InputError, match="without commas"):
        coding.session("eve").decide(codes=["a, b"])
    with pytest.raises(InputError, match="1 to 1,000"):
        coding.define("loops", " ")


def test_suggested_codes_count_for_nothing_until_a_person_accepts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = make_runs()
    coding = Coding(evidence, tmp_path / "codes.db")
    session = coding.session("ana")
    while (item := session.item) is not None:
        wrong = dict(item.headed_texts)["answer"] == "paid"
        session.decide(note="pays before it looks" if wrong else "searches again and again")
    before = coding.labels()
    first, second = coding.suggest()
    assert {first.code, second.code} == {"pays before it looks", "searches again and again"}
    assert coding.codes == {}
    assert coding.labels().equals(before)
    assert coding.accept(1, "mistake one") == "mistake one"
    (count,) = coding.counts()
    assert (count.code, count.runs) == ("mistake one", len(first.runs))
    assert list(coding.suggestions()) == [2]
    with pytest.raises(InputError, match="no suggestion 1 is open"):
        coding.accept(1)
    with pytest.raises(InputError, match="tfidf, sentence or a model"):
        coding.suggest("words")
    assert coding.undo() == "move mistake one"
    assert coding.codes == {}
    evidence.frame.write_csv(tmp_path / "runs.csv")
    monkeypatch.chdir(tmp_path)
    words = f"label code {tmp_path}/runs.csv --id id --outcome error --store {tmp_path}/codes.db"
    done = CliRunner().invoke(cli, [*words.split(), "--suggest", "tfidf"])
    assert "does not count until you accept it" in " ".join(done.output.split())
    done = CliRunner().invoke(cli, [*words.split(), "--accept", "2=mistake two"])
    assert "accepted: mistake two" in done.output
    assert set(coding.codes) == {"mistake two"}
    done = CliRunner().invoke(cli, [*words.split(), "--accept", "x"])
    assert "no suggestion 0 is open" in str(done.exception)


def test_a_model_suggests_codes_and_a_wrong_reply_suggests_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coding = Coding(make_runs(), tmp_path / "codes.db")
    code_runs(coding, "ana", 4)
    replies = {"good": '{"acts too soon": [1, 2], "alone": [3]}', "bad": '{"a, b": [1, 2]}'}
    for name, reply in replies.items():
        script = tmp_path / f"{name}.json"
        script.write_text(json.dumps([[[], [reply]]]))
        with serve_model(script) as url:
            monkeypatch.setenv("OPENAI_BASE_URL", url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-right-0123456789abcdef")
            if name == "good":
                (one,) = coding.suggest("openai/gpt-4o-mini")
                assert (one.code, len(one.runs)) == ("acts too soon", 2)
            else:
                with pytest.raises(InputError, match=r"suggests no codes: .*without commas"):
                    coding.suggest("openai/gpt-4o-mini")
    assert "acts too soon" not in coding.codes


def test_a_code_is_split_by_moving_notes_and_a_later_note_stands(tmp_path: Path) -> None:
    coding = Coding(make_runs(), tmp_path / "codes.db")
    code_runs(coding, "ana", 10)
    code_runs(coding, "ben", 10)
    runs = [n.item for n in coding.notes if n.reviewer == "ana" and n.codes == ("loops",)]
    coding.move(runs[:2], "loops", "loops at the start", coder="ana")
    assert [n.reviewer for n in coding.notes if "loops at the start" in n.codes] == ["ana"] * 2
    coding.rename("loops at the start", "starts over")
    assert sum("starts over" in n.codes for n in coding.notes) == 2
    session = coding.session("ana")
    while session.item is None or session.item.id != runs[0]:
        assert session.back()
    session.decide(note="it loops", codes=["loops"])
    assert sum("starts over" in n.codes for n in coding.notes) == 1
    coding.undo()
    assert coding.undo() == "move loops"
    assert sum(n.codes == ("loops",) for n in coding.notes if n.reviewer == "ana") == len(runs)
    with pytest.raises(InputError, match="choose one note or more"):
        coding.move(["gone"], "loops", "x")


def test_a_quote_shows_where_the_mistake_is_and_older_notes_have_none(tmp_path: Path) -> None:
    coding = Coding(make_runs(), tmp_path / "codes.db")
    session = coding.session("ana")
    assert session.item is not None
    body = {"reviewer": "ana", "item": session.item.id, "note": "n", "role": "reviewer"}
    old = {"audit": coding.store.audit, **body, "codes": ["a"], "step": None}
    coding.store._ledger.append("decision", old)
    session.skip()
    session.decide(codes=["b"], step=1, quote="paid")
    assert [note.quote for note in coding.notes] == ["", "paid"]
    assert coding.labels()["quote"].to_list() == ["", "paid"]
    with pytest.raises(InputError, match="mark less"):
        session.decide(codes=["b"], quote="x" * 3000)


def test_two_coders_agree_or_an_adjudicator_decides(tmp_path: Path) -> None:
    coding = Coding(make_runs(), tmp_path / "codes.db", failing=30)
    code_runs(coding, "ana")
    session = coding.session("ben")
    changed = 0
    while (item := session.item) is not None:
        said = "pays early" if dict(item.headed_texts)["answer"] == "paid" else "loops"
        changed += said == "loops" and changed < 5
        session.decide(codes=["other" if said == "loops" and changed <= 5 else said])
    shares = {count.code: count.share for count in coding.counts()}
    assert coding.agreement()["pays early"]["raw"].value == 1
    assert coding.agreement()["loops"]["raw"].value < 1
    assert 0 < shares["other"] < 0.5


def test_a_changed_note_is_noticed(tmp_path: Path) -> None:
    coding = Coding(make_runs(), tmp_path / "codes.db")
    code_runs(coding, "ana", 5)
    with sqlite3.connect(tmp_path / "codes.db") as raw:
        raw.execute(
            "UPDATE groundfault_ledger SET body = replace(body, '\"loops\"', '\"lops\"'), "
            "kind = kind WHERE kind = 'decision'"
        )
        raw.execute("DELETE FROM groundfault_ledger WHERE seq = 3")
    with pytest.raises(LedgerError, match="was altered"):
        coding.counts()


SCRIPT = """
import sys
import polars as pl
from groundfault import Evidence
from groundfault.coding import Coding

table = pl.DataFrame({"id": range(200), "answer": [f"a{i % 3}" for i in range(200)], "error": 1})
evidence = Evidence.from_table(table, id="id", outcome="error")
coding = Coding(evidence, sys.argv[1], failing=200, columns=["answer"])
session = coding.session(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
while session.item is not None:
    text = dict(session.item.headed_texts)["answer"]
    session.decide(note=f"{text} " * 50, codes=[text])
"""


@contextmanager
def begin_coding(place: str, *coders: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Coders at work, in processes of their own; all begin at once."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [
        subprocess.Popen([sys.executable, "-c", SCRIPT, place, name], **pipes) for name in coders
    ]
    for worker in workers:
        assert worker.stdout
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    yield workers
    for worker in workers:
        worker.communicate(timeout=120)


def open_coding(place: str) -> Coding:
    """The coding of the script."""
    table = pl.DataFrame(
        {"id": range(200), "answer": [f"a{i % 3}" for i in range(200)], "error": 1}
    )
    evidence = Evidence.from_table(table, id="id", outcome="error")
    return Coding(evidence, place, failing=200, columns=["answer"])


def test_two_coders_at_once_lose_nothing(place: str) -> None:
    open_coding(place).session("first")
    with begin_coding(place, "ana", "ben"):
        pass
    coding = open_coding(place)
    assert len(coding.store.decisions()) == 400
    assert {count.coded for count in coding.counts()} == {200}
    assert all(measures["raw"].value == 1 for measures in coding.agreement().values())


def test_a_coder_who_is_killed_leaves_whole_notes(tmp_path: Path) -> None:
    place = str(tmp_path / "codes.db")
    stored = 0
    for wait in (0.15, 0.23):
        with begin_coding(place, "ana") as (worker,):
            time.sleep(wait)
            worker.kill()
        notes = open_coding(place).store.decisions()
        # as many as before and more, each on another run, each whole
        assert len(notes) == len({note.item for note in notes}) > stored
        assert all(note.note == f"{note.codes[0]} " * 50 for note in notes)
        stored = len(notes)


def test_passing_runs_are_mixed_in_without_a_graders_words(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "<solution>5</solution>"},
        {"role": "user", "content": "Observation:\nYour answer is wrong."},
        {"role": "assistant", "content": "\x1b[31m<b>so</b>"},
    ]
    table = pl.DataFrame(
        {"id": ["a", "b"], "error": [1, 0], "messages": [json.dumps(messages)] * 2}
    )
    evidence = Evidence.from_table(table, id="id", outcome="error")

    def texts(passing: int) -> list[str]:
        coding = Coding(evidence, tmp_path / f"{passing}.db", passing=passing)
        item = coding.session("ana").item
        assert item is not None
        return [head for head, _ in item.headed_texts]

    assert "3. judge feedback" in texts(0)
    assert texts(1) == [head for head in texts(0) if "judge" not in head]


def test_a_judge_is_measured_on_labels_that_came_after_its_prompt(tmp_path: Path) -> None:
    evidence = make_runs(400)
    coding = Coding(evidence, tmp_path / "codes.db", failing=120)
    code_runs(coding, "ana", 40)
    coding.define("pays early", "It pays before it checks.")
    prompt = coding.prompt("pays early")
    assert prompt.splitlines()[1:] == ["Example: paid", "Example: paid", "Answer yes or no."]
    code_runs(coding, "ana", 60)
    (checked,) = coding.validate("pays early", "judge", ["lang = 'de'"])
    assert checked.positives + checked.negatives == 60
    assert checked.tpr[1] < 0.9 < checked.tpr[2]
    assert checked.tnr[1] < 0.9 < checked.tnr[2]
    failing = evidence.frame.filter(pl.col("error") == 1)
    truth = float((failing["answer"] == "paid").mean())
    assert checked.low < truth < checked.high
    value, low, high = checked.rogan_gladen
    assert low < truth < high
    assert checked.flagged / checked.graded != pytest.approx(value)
    inside = checked.parts["lang = 'de'"]
    assert 0 < inside[1] + inside[3] < 60
    # the wrong grades are evidence of their own
    errors = coding.errors("pays early", "judge")
    assert len(errors) == 100
    assert 0 < float(errors.loss.mean()) < 0.3
    assert audit(errors, ledger=False).modes == ()
    with pytest.raises(InputError, match="1, 0 or missing"):
        coding.validate("pays early", np.full(400, 0.5))


def test_limits_of_a_corrected_share_hold_in_null_and_planted_worlds(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    outside = narrower = 0
    # at most 2 of 40 intervals may miss: where one in five does, 8 in 1,000 such tests pass
    worlds = 20
    for world in range(worlds):
        n, truth = 120, 0.35
        has = rng.random(n) < truth
        # a judge that errs one way, and in half of the worlds knows nothing
        tpr, fpr = (0.9, 0.2) if world % 2 else (0.5, 0.5)
        grades = np.where(has, rng.random(n) < tpr, rng.random(n) < fpr)
        table = pl.DataFrame(
            {"id": range(n), "answer": has.astype(str), "error": 1, "judge": grades.astype(int)}
        )
        evidence = Evidence.from_table(table, id="id", outcome="error")
        coding = Coding(evidence, tmp_path / f"{world}.db", failing=50, columns=["answer"])
        items = coding.queue.of("ana")
        coding.session("ana").store.add(
            [
                Note(reviewer="ana", item=i.id, codes=("xy"[i.headed_texts[0][1] == "False"],))
                for i in items
            ]
        )
        (checked,) = coding.validate("x", "judge")
        (count, _) = sorted(coding.counts(), key=lambda c: c.code)
        for one in (checked, count):
            assert one.low <= one.share <= one.high
            outside += not one.low <= has.mean() <= one.high
        if world % 2:
            narrower += checked.high - checked.low < count.high - count.low
    assert outside / (2 * worlds) <= 0.05
    assert narrower > worlds / 2 * 0.6


@pytest.mark.parametrize(
    ("focus", "half"),
    [
        ("mode:lang = 'de'", {"de"}),
        ("near:lang = 'de' AND level = 3", {"de", "en"}),
        ("outliers", {"de"}),
        ("unsure:chance", {"de", "en"}),
    ],
)
def test_half_of_a_sample_is_of_a_kind_and_counts_are_those_of_all(
    tmp_path: Path, focus: str, half: set[str]
) -> None:
    n, rng = 1000, np.random.default_rng(5)
    german, level = np.arange(n) % 10 == 0, rng.integers(4, size=n)
    chance, early = rng.random(n), rng.random(n) < np.where(german, 0.9, 0.2)
    table = pl.DataFrame(
        {
            "id": range(n),
            "answer": ["paid" if one else "looped" for one in early],
            "lang": ["de" if one else "en" for one in german],
            "level": level,
            "chance": chance,
            "error": 1,
        }
    )
    evidence = Evidence.from_table(table, id="id", outcome="error", instrument=["chance"])
    settings: dict[str, Any] = {"failing": 120, "columns": ["answer"]}
    coding = Coding(evidence, tmp_path / "codes.db", focus=focus, **settings)
    code_runs(coding, "ana")
    # whoever counts later does not say the kind again: it is on record
    again = Coding(evidence, tmp_path / "codes.db", **settings)
    (count,) = (one for one in again.counts() if one.code == "pays early")
    assert (count.coded, count.population) == (120, n)
    assert count.low < early.mean() < count.high
    labels = again.labels().join(table.with_columns(id=pl.col("id").cast(pl.Int64)), on="id")
    assert labels["inclusion"].n_unique() == 2
    drawn = labels.filter(pl.col("inclusion") > labels["inclusion"].mean())
    assert 1 <= drawn.height <= 60
    assert set(drawn["lang"]) == half
    # the sum of the weights is the number of runs
    assert (1 / labels["inclusion"]).sum() == pytest.approx(n)
    share = (labels["pays early"] / labels["inclusion"]).sum() / n
    assert count.share == pytest.approx(share)
    if "mode" in focus:
        assert count.runs / count.coded > early.mean() + 0.2
        assert again.saturation().members == 120
    if focus.startswith("unsure"):
        assert (drawn["chance"] - 0.5).abs().max() < 0.06


def test_limits_hold_when_runs_of_a_mode_are_drawn_more_often(tmp_path: Path) -> None:
    outside, worlds = 0, 20
    for world in range(worlds):
        n, rng = 400, np.random.default_rng(world)
        german = rng.random(n) < 0.2
        early = rng.random(n) < np.where(german, 0.8, 0.1)
        rows = {"id": range(n), "answer": ["paid" if e else "no" for e in early], "lang": german}
        evidence = Evidence.from_table(pl.DataFrame({**rows, "error": 1}), id="id", outcome="error")
        coding = Coding(
            evidence, tmp_path / f"{world}.db", failing=60, focus="mode:lang", columns=["answer"]
        )
        session = coding.session("ana")
        notes = [
            Note(reviewer="ana", item=i.id, codes=("x",) * (i.headed_texts[0][1] == "paid"))
            for i in coding.queue.of("ana")
        ]
        session.store.add(notes)
        coding.define("x", "It pays.")
        (count,) = coding.counts()
        outside += not count.low <= early.mean() <= count.high
        # the plain share would be far off
        assert count.runs / count.coded > early.mean() + 0.05
    assert outside <= 3


def test_rates_of_a_judge_are_those_of_all_runs_when_a_mode_is_drawn_more_often(
    tmp_path: Path,
) -> None:
    outside = plain = worlds = 0
    # at most 1 of 12 may miss, which happens 2 times in 100 where two in five miss
    for world in range(12):
        n, rng = 600, np.random.default_rng(world)
        german, early = rng.random(n) < 0.15, rng.random(n) < 0.5
        # the judge sees the code in English runs, and in German ones seldom
        grades = early & (rng.random(n) < np.where(german, 0.3, 0.95))
        answers = ["paid" if e else "no" for e in early]
        rows = {"id": range(n), "answer": answers, "lang": german, "judge": grades.astype(int)}
        evidence = Evidence.from_table(pl.DataFrame({**rows, "error": 1}), id="id", outcome="error")
        coding = Coding(
            evidence, tmp_path / f"{world}.db", failing=80, focus="mode:lang", columns=["answer"]
        )
        coding.session("ana").store.add(
            [
                Note(reviewer="ana", item=i.id, codes=("x",) * (i.headed_texts[0][1] == "paid"))
                for i in coding.queue.of("ana")
            ]
        )
        coding.define("x", "It pays.")
        (checked,) = coding.validate("x", "judge", ["lang"])
        truth, (value, low, high) = grades[early].mean(), checked.tpr
        assert value is not None
        assert abs(value - truth) < abs(checked.hits / checked.positives - truth)
        outside += not low <= truth <= high
        plain += not low <= checked.hits / checked.positives <= high
        # inside the mode all were drawn with one chance: counts are enough
        (inside, _), (hits, positives, *_) = checked.rates["lang"], checked.parts["lang"]
        assert inside[0] == pytest.approx(hits / positives)
        worlds += 1
    assert outside / worlds <= 0.1
    assert plain / worlds > 0.3


@pytest.mark.parametrize(
    ("focus", "message"),
    [
        ("odd", "is no kind of runs; write mode:RULE"),
        ("mode:lang = 'fr'", "no run is of the kind"),
        ("mode:error = 1", "rows cannot be selected by 'error'"),
        ("unsure:lang", "holds no probabilities"),
        ("unsure:nothing", "no column 'nothing'"),
    ],
)
def test_a_kind_that_cannot_be_is_one_clear_error(tmp_path: Path, focus: str, message: str) -> None:
    with pytest.raises(GroundfaultError, match=re.escape(message)):
        Coding(make_runs(), tmp_path / "codes.db", focus=focus)
