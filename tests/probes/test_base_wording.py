"""Tasks without keys: answers are compared with the one to the base wording, which comes first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from probe_rows import CONFIRMED, GRAMMAR, row

from groundfault import probes
from groundfault.cli.main import cli
from groundfault.core import equivalence
from groundfault.core.status import Status as Outcome
from groundfault.errors import InputError
from groundfault.models import Question, Response
from groundfault.probes import Bank, Config, Grammar, Runs, Task, route, run
from groundfault.probes.bank.bank import SHIPPED
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.probes.review.statuses import items, queue, score_row, split_by_signal
from groundfault.probes.running.runs import BASE
from groundfault.render.markdown import markdown
from groundfault.review import Decision
from groundfault_lab.pages.bank_card import make_card
from groundfault_lab.pages.probe_page import make_page
from groundfault_lab.probes.checking import check as check_bank
from groundfault_lab.probes.comparison import compute_effects
from groundfault_lab.probes.release import check, release
from groundfault_lab.probes.summary import Summary

KEYED = Bank("three", Bank.shipped().tasks[:3])
PROBES = {probe.prompt: probe for probe in probes.probes(KEYED, Grammar.shipped())}
SHORTCUT = 1  # place of the group of distractors in an assignment
GARBAGE = Response("Answer: 77")


class Tempted:
    """Right, but that it takes every shortcut; after so many questions it does what is asked."""

    name = "scripted/tempted"

    def __init__(self, limit: int = 10**6, then: Response = GARBAGE) -> None:
        self.asked: list[str] = []
        self.limit, self.then = limit, then

    async def answer(self, question: Question) -> Response:
        prompt = question.messages[0]["content"]
        if len(self.asked) >= self.limit:
            return self.then
        self.asked.append(prompt)
        probe = PROBES[prompt]
        if "shortcut" in probe.assignment:
            return Response(f"Answer: {probe.task.slots['shortcut']}")
        return Response(f"Answer: {probe.task.answer}")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    KEYED.without_keys().write(tmp_path / "bank.toml")
    (tmp_path / "grammar.toml").write_bytes((SHIPPED / "grammar.toml").read_bytes())
    return tmp_path


def config(home: Path, **changes: Any) -> Config:
    settings: dict[str, Any] = {"policies": ["stratified", "caps"], "seeds": [0], "iterations": 4}
    places = {"bank": home / "bank.toml", "grammar": home / "grammar.toml"}
    return Config(**{**settings, **places, "concurrency": 1, **changes})


def base_rows(runs: Runs) -> list[probes.ProbeRow]:
    return [row for row in runs.rows if row.policy == BASE]


def policy_rows(runs: Runs) -> list[probes.ProbeRow]:
    return [row for row in runs.rows if row.policy != BASE]


def test_base_wordings_are_asked_first_and_the_others_compared_with_them(home: Path) -> None:
    model = Tempted()
    runs = run(config(home), model)
    first = [PROBES[prompt] for prompt in model.asked[: len(KEYED)]]
    assert [probe.task.id for probe in first] == [task.id for task in KEYED]
    assert {probe.assignment for probe in first} == {Grammar.shipped().assignment({})}
    assert {(row.signal, row.base, row.answer) for row in base_rows(runs)} == {("match", None, "")}
    numbers = {row.task: row.query for row in base_rows(runs)}
    for each in policy_rows(runs):
        assert each.base == numbers[each.task]
        assert each.signal == ("mismatch" if each.assignment[SHORTCUT] == "shortcut" else "match")
        assert each.base_id in {one.id for one in base_rows(runs)}


def test_where_a_row_is_sent_does_not_depend_on_what_comes_later(home: Path) -> None:
    """The first nine answers are the same, all others are garbage in one of the runs."""
    settings = config(home, policies=["stratified"])
    whole = run(settings, Tempted(), out=home / "one")
    other = run(settings, Tempted(limit=9), out=home / "two")
    early = [row for row in whole.rows if row.policy == BASE or row.query <= 6]
    assert {row.id for row in early} < {row.id for row in whole.rows}
    by_id = {row.id: row for row in other.rows}
    assert [by_id[row.id] for row in early] == early
    assert whole.rows != other.rows
    routed = []
    for rows in (whole.rows, other.rows):
        ids = {item.id for item in split_by_signal(rows, items(rows))[0]}
        routed.append([row.id for row in early if items(rows)[row.id].id in ids])
    assert routed[0] == routed[1]


def test_a_stopped_run_goes_on_as_if_nothing_had_happened(home: Path) -> None:
    settings = config(home, policies=["stratified"], iterations=2)
    whole = run(settings, Tempted(), out=home / "one")
    for limit in (2, 5):  # among the base wordings, and behind them
        broken = Tempted(limit=limit, then=Response.failed("no service", fatal=True))
        with pytest.raises(InputError, match="run again to go on"):
            run(settings, broken, out=home / f"at {limit}")
        model = Tempted()
        again = run(settings, model, out=home / f"at {limit}")
        assert again.rows == whole.rows
        assert len(model.asked) == len({row.key for row in whole.rows}) - limit


def test_without_an_answer_to_the_base_wording_a_person_looks(home: Path) -> None:
    class Silent(Tempted):
        async def answer(self, question: Question) -> Response:
            probe = PROBES[question.messages[0]["content"]]
            is_base = probe.assignment == Grammar.shipped().assignment({})
            if probe.task.id == KEYED.tasks[0].id and is_base:
                return Response("I cannot tell 1 from 2.")
            return await super().answer(question)

    runs = run(config(home, policies=["uniform"]), Silent())
    here = [row for row in policy_rows(runs) if row.task == KEYED.tasks[0].id]
    assert here
    assert {row.signal for row in here} == {"unreadable"}
    assert {row.signal for row in policy_rows(runs) if row not in here} == {"match", "mismatch"}


def test_reviewers_see_every_base_wording_and_no_expected_answer(home: Path) -> None:
    runs = run(config(home), Tempted())
    seen = queue(runs.rows, controls=0.0)
    assert {item.answer for item in seen.items} == {""}
    shown = {item.prompt for item in seen.items}
    assert {row.prompt for row in base_rows(runs)} <= shown
    assert {row.prompt for row in policy_rows(runs) if row.signal == "mismatch"} <= shown
    assert len(shown) < len({row.prompt for row in runs.rows}), "matches are left to controls"


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (CONFIRMED, (1.0, Outcome.SCORED)),
        ("no_error", (0.0, Outcome.SCORED)),
        ("unaudited", (None, Outcome.MISSING)),
        ("invalid_prompt", (None, Outcome.MISSING)),
    ],
)
def test_an_answer_like_that_to_the_base_wording_is_as_right_as_it(
    base: Any, expected: Any
) -> None:
    one = row(4, base=2)
    assert score_row(one, {f"m|{BASE}|0|2": base}) == expected
    # what reviewers found of the row itself comes first
    assert score_row(one, {f"m|{BASE}|0|2": CONFIRMED, one.id: "no_error"})[0] == 0.0


def draw_world(
    rng: np.random.Generator, tasks: int, harm: float
) -> tuple[list[Any], dict[str, Any]]:
    """Answers to four wordings of tasks, of which two in five are too hard for the model.

    With a shortcut it gives another wrong answer to hard tasks, and errs on easy ones with
    probability ``harm``. Reviewers are right about everything that they see.
    """
    rows, statuses = [], {}
    for t in range(tasks):
        hard = bool(rng.random() < 0.4)
        cells = [(c, d) for c in ("plain", "reversed") for d in ("none", "shortcut")]
        first = row(t + 1, f"t{t}|plain|none", policy=BASE)
        statuses[first.id] = CONFIRMED if hard else "no_error"
        for n, (cue, distractor) in enumerate(cells):
            tempted = distractor == "shortcut" and (hard or bool(rng.random() < harm))
            signal = "mismatch" if tempted else "match"
            key = f"t{t}|{cue}|{distractor}"
            rows.append(row(4 * t + n + 1, key, signal, policy="exhaustive", base=t + 1))
            if tempted:
                statuses[rows[-1].id] = CONFIRMED
    return rows, statuses


@pytest.mark.parametrize(("harm", "least", "most"), [(0.0, 0, 0), (0.5, 6, 6)])
def test_other_wrong_answers_are_no_effect_of_a_component_and_more_errors_are(
    harm: float, least: int, most: int
) -> None:
    rng = np.random.default_rng(5)
    count = naive = 0
    for _ in range(6):
        rows, statuses = draw_world(rng, 30, harm)
        effects = compute_effects(rows, statuses, GRAMMAR)
        count += any(e.group == "distractor" and e.p <= 0.05 for e in effects)
        as_right = [row(r.query, r.key, r.signal, policy=r.policy) for r in rows]
        effects = compute_effects(as_right, statuses, GRAMMAR)
        naive += any(e.group == "distractor" and e.p <= 0.05 for e in effects)
    assert least <= count <= most
    assert naive == 6, "taking every match for right would make an effect of other wrong answers"


def test_the_null_world_with_errors_by_chance_keeps_the_level() -> None:
    rng = np.random.default_rng(6)
    errors = 0
    for _ in range(30):
        rows, statuses = [], {}
        for t in range(20):
            wrong = rng.random(4) < rng.choice([0.1, 0.6])
            other = rng.random(4) < 0.5  # one of two wrong answers
            base = (bool(wrong[0]), bool(other[0] and wrong[0]))
            statuses[f"m|{BASE}|0|{t + 1}"] = CONFIRMED if wrong[0] else "no_error"
            for n in range(4):
                same = (bool(wrong[n]), bool(other[n] and wrong[n])) == base
                key = f"t{t}|{('plain', 'reversed')[n // 2]}|{('none', 'shortcut')[n % 2]}"
                signal = "match" if same else "mismatch"
                rows.append(row(4 * t + n + 1, key, signal, policy="exhaustive", base=t + 1))
                if not same:
                    statuses[rows[-1].id] = CONFIRMED if wrong[n] else "no_error"
        errors += any(e.p <= 0.05 for e in compute_effects(rows, statuses, GRAMMAR))
    assert errors / 30 <= 0.05 + 3 * (0.05 * 0.95 / 30) ** 0.5


def test_base_wordings_belong_to_no_policy_and_a_package_reproduces(home: Path) -> None:
    audit = ReviewedRuns(run(config(home), Tempted()))
    for item in audit.seal().items:
        wrong = "shortcut" in PROBES[item.prompt].assignment
        answers: dict[str, Any] = {"prompt_valid": "yes", "extraction_valid": "yes"}
        verdict: Any = "yes" if wrong else "no"
        audit.store.add([Decision(reviewer="a", item=item.id, model_wrong=verdict, **answers)])
    summary = Summary.of(audit)
    assert summary.results.policies == ("caps", "stratified")
    assert summary.results.keys.confirmed
    text = markdown(make_page(summary, "open questions"))
    assert ("its key" in text, "differs from that to the base wording" in text) == (False, True)
    assert "base wording" in markdown(
        make_card(check_bank(Bank.load(home / "bank.toml"), Grammar.shipped()))
    )
    release(audit, home / "public", lambda package: str(package.counts))
    assert check(home / "public", lambda package: str(package.counts)).problems == ()


def test_a_task_without_a_key_is_routed_by_its_base_wording() -> None:
    task = Task(id="eggs", question="How long?", rule="integer")
    assert route(task, "It takes 6 minutes.").signal == "match"
    assert route(task, "6 or 18").signal == "unreadable"
    assert route(task, "Answer: 6", "6").signal == "match"
    assert route(task, "Answer: 18", "6").signal == "mismatch"
    assert "'6', the answer to the base wording" in route(task, "Answer: 18", "6").reason


@pytest.mark.parametrize(
    ("answer", "rule", "key"),
    [
        ("It costs 5 cents.", "integer", "5"),
        ("50%", "numeric", "50%"),
        ("7/2", "numeric", "7/2"),
        ("not 5", "integer", None),
        ("5 or 10", "integer", None),
        ("Yes, it is.", "yes_no", "yes"),
        ("yes and no", "yes_no", None),
        ("The Blue", "exact", "the blue"),
        (" ", "exact", None),
        ("b, a and c", "set", "b, a and c"),
        (",", "set", None),
    ],
)
def test_an_answer_takes_the_place_of_a_key(answer: str, rule: str, key: str | None) -> None:
    assert equivalence.read(answer, rule) == key
    if key is not None:
        assert equivalence.compare(answer, key, rule).same


def test_a_bank_has_all_keys_or_none(tmp_path: Path) -> None:
    tasks = KEYED.tasks
    with pytest.raises(InputError, match="give all answers, or leave all out"):
        Bank("mixed", (tasks[0], *KEYED.without_keys().tasks[1:]))
    path = tmp_path / "bank.toml"
    KEYED.without_keys().write(path)
    assert (Bank.load(path).tasks, Bank.load(path).has_keys) == (
        KEYED.without_keys().tasks,
        False,
    )
    text = path.read_text()
    for change, message in (
        (text.replace("keys = false\n", ""), "answer is missing"),
        (text.replace("keys = false", 'keys = "no"'), "neither true nor false"),
        (text.replace("[[task]]", '[[task]]\nanswer = "1"', 1), "but the bank says keys = false"),
    ):
        path.write_text(change)
        with pytest.raises(InputError, match=message):
            Bank.load(path)


def test_a_bank_without_keys_from_the_shell(tmp_path: Path) -> None:
    table = tmp_path / "questions.csv"
    table.write_text("question,target\nHow many legs has a hen?,2\nAnd two cows?,8\n")

    def call(*words: str) -> Any:
        return CliRunner().invoke(cli, ["lab", "probe", "init", *words])

    ask = ("--from", str(table), "--question", "question")
    done = call(str(tmp_path / "a"), *ask, "--no-key", "--rule", "integer")
    assert done.exit_code == 0, done.output
    bank = Bank.load(tmp_path / "a" / "bank.toml")
    assert [(task.answer, task.rule) for task in bank] == [("", "integer")] * 2
    assert not Grammar.load(tmp_path / "a" / "grammar.toml").groups[1].options[1].slots
    assert call(str(tmp_path / "b"), "--no-key").exit_code == 0
    assert not Bank.load(tmp_path / "b" / "bank.toml").has_keys
    both = call(str(tmp_path / "c"), *ask, "--no-key", "--target", "target")
    assert "does without" in str(both.exception)
    assert "--no-key, if nobody knows" in str(call(str(tmp_path / "d"), *ask).exception)
