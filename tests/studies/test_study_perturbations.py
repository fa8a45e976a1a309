"""The study of perturbations: its prompts, and what its tables say of a scripted model."""

from __future__ import annotations

import re
from typing import Any

from groundfault.models import Question, Response
from groundfault.probes.running.answers import route
from groundfault_lab.probes.expectations import read_expectations
from groundfault_lab.probes.perturbations import AROUND, WORDINGS
from groundfault_studies import perturbations as study_of
from groundfault_studies.directions import PAIRS, QUICK_PAIRS, TESTS, tabulate_directions
from groundfault_studies.shipped_bank import SIGNALS


class Scripted:
    """Answers 0 to larger numbers and to most capitals, and is vague if asked curtly."""

    name = "scripted"

    async def answer(self, question: Question) -> Response:
        *examples, asked = question.messages
        assert [each["role"] for each in examples] == ["user", "assistant"] * study_of.EXAMPLES
        prompt = asked["content"]
        bank, _ = study_of.make_bank()
        if "No excuses" in prompt:
            return Response("1 or 2 or Rome, who can tell? I cannot say which of them it would be.")
        plain = [task for task in bank if task.question in prompt]
        tasks = plain or [
            task
            for task in bank
            if any(task.slots.get(family, prompt + "!") in prompt for family in WORDINGS)
        ]
        shouted = not plain and any(task.question.upper() in prompt for task in tasks)
        wrong = tasks[0].family == "larger" or (shouted and tasks[0].family != "place")
        return Response("Answer: 0" if wrong else f"Answer: {tasks[0].answer}")


def ask(count: int) -> list[dict[str, Any]]:
    bank, grammar = study_of.make_bank()
    ids = [task.id for task in bank][study_of.EXAMPLES :][:: 48 // count]
    return study_of.ask_tasks(bank, grammar, Scripted(), ids)


def test_every_family_has_prompts_that_differ_from_the_plain_one() -> None:
    bank, grammar = study_of.make_bank()
    families = set()
    for task in [*bank][study_of.EXAMPLES :]:
        (_, _, plain), *changed = study_of.list_probes(bank, grammar, task.id)
        families |= {family for family, _, _ in changed}
        assert plain.prompt not in {probe.prompt for _, _, probe in changed}
        assert route(task, f"Answer: {task.answer}").signal == "match"
        assert route(task, f"Answer: {task.slots['shortcut']}").signal == "mismatch"
    assert families == {*WORDINGS, *AROUND}


def test_the_tables_name_the_change_that_breaks_answers() -> None:
    rows = ask(16)
    table = study_of._make_change_table(rows)
    by_name = {row.label: row.here for row in table.rows}
    assert by_name["upper"]["verdict"] == "confirmed"
    lost = len({row["task"] for row in rows if row["kind"] not in ("larger", "place")})
    assert (by_name["upper"]["lost"], by_name["upper"]["won"]) == (lost, 0)
    assert by_name["upper"]["difference"] == -lost / 16
    confirmed = {name for name, here in by_name.items() if here["verdict"] == "confirmed"}
    assert confirmed == {"upper"}
    # an answer that cannot be read is no failure
    curt = by_name["politeness: curt"]
    assert (curt["unread"], curt["lost"]) == (curt["prompts"], 0)
    (mode, *_) = study_of._make_mode_table(rows).rows
    assert "upper" in mode.label


def test_recorded_answers_make_the_tables_without_a_model() -> None:
    result = study_of.study()
    changes, directions, kinds, modes, bank = result.tables
    by_name = {row.label: row.here for row in changes.rows}
    assert {label.split(":")[0] for label in by_name} == {*WORDINGS, *AROUND}
    # a wrong answer that somebody "said at once" is the one that a small model gives
    shortcut = by_name["distractor: shortcut"]
    assert (shortcut["prompts"], shortcut["lost"], shortcut["verdict"]) == (48, 38, "confirmed")
    # without contractions the questions fail more, which is no effect of contractions
    assert by_name["contractions"]["verdict"] == "not confirmed"
    assert any("shortcut" in row.label for row in modes.rows)
    assert sum(row.here["tasks"] for row in kinds.rows) == 48 == result.settings["tasks"]
    # the model repeats the first number, so an answer moves nowhere, as it must where it must not
    lines = {row.label: row.here for row in directions.rows}
    assert lines["buys more"]["moves"] == "0, 3, 17"
    assert (lines["buys more"]["direction"], lines["buys more"]["verdict"]) == (
        "not shown",
        "confirmed",
    )
    assert lines["capital letters"]["rate"] == 1
    assert (lines["one more number"]["read"], lines["one more number"]["verdict"]) == (0, "too few")
    assert result.settings["pairs"] == len(directions.rows) * PAIRS
    # of the bank that `probe init` writes it hardly solves a task, and a wrong answer tempts it
    signals = {row.label: row.here for row in bank.rows}
    assert sum(signals["all"][name] for name in SIGNALS) == signals["all"]["prompts"] == 192
    assert signals["all"]["match"] < 10 < signals["all"]["cut"]
    tempted = {name: signals[f"distractor: {name}"] for name in ("none", "shortcut")}
    shares = {name: here["tempted"] / here["prompts"] for name, here in tempted.items()}
    assert shares["shortcut"] > 2 * shares["none"]
    quick = study_of.study(quick=True).settings
    assert (quick["tasks"], quick["pairs"]) == (16, len(directions.rows) * QUICK_PAIRS)


class Counting:
    """Counts what is bought and forgets what is given away; asked for the other, it cannot say."""

    name = "counting"

    async def answer(self, question: Question) -> Response:
        *examples, asked = question.messages
        assert len(examples) == 2 * study_of.EXAMPLES
        assert asked["content"].startswith("Answer the question below.")
        numbers = [int(each) for each in re.findall(r"[0-9]+", asked["content"])]
        if "How many pens" in asked["content"]:
            return Response("It may be 1 or 2 or 3.")
        bought = "buys" in asked["content"]
        return Response(f"Answer: {sum(numbers) if bought else numbers[0]}")


def test_a_direction_is_shown_where_answers_move_as_they_must() -> None:
    bank, grammar = study_of.make_bank()
    expectations, lexicon = read_expectations(TESTS)
    names = ("buys more", "gives some away", "capital letters", "asks for the other")
    rows = [
        row
        for test in expectations
        if test.name in names
        for row in study_of.ask_directions(bank, grammar, lexicon, Counting(), test, 12)
    ]
    lines = {row.label: row.here for row in tabulate_directions(rows).rows}
    buys, gives = lines["buys more"], lines["gives some away"]
    assert (buys["held"], buys["moves"], buys["direction"]) == (12, "12, 0, 0", "shown")
    assert (gives["held"], gives["moves"], gives["direction"]) == (0, "0, 0, 12", "not shown")
    assert (buys["verdict"], gives["verdict"]) == ("not confirmed", "confirmed")
    assert lines["capital letters"]["rate"] == 1
    # an answer that cannot be read breaks no expectation
    other = lines["asks for the other"]
    assert (other["pairs"], other["read"], other["verdict"]) == (12, 0, "too few")
