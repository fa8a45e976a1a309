"""Grammars and rendering: one prompt to a task and an assignment, rebuilt from a record, and what
is wrong with it.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault.errors import GroundfaultError, InputError, PlanError
from groundfault.probes import Bank, ComponentGroup, Grammar, Option, Task, probes, rebuild, render

BANK, GRAMMAR = Bank.shipped(), Grammar.shipped()
FULL = "{question}\n\n{side}"


def small(*options: Option, layout: str = FULL, **more: object) -> Grammar:
    return Grammar("small", (ComponentGroup("side", options or (Option("none"),)),), layout, **more)


def bank(
    question: str = "2 + 2?", answer: str = "4", rule: str = "integer", **more: object
) -> Bank:
    return Bank("one", (Task(id="t", question=question, answer=answer, rule=rule, **more),))


def test_the_shipped_grammar_makes_27_valid_and_different_prompts_of_each_task() -> None:
    created = list(probes(BANK, GRAMMAR))
    assert len(GRAMMAR) == 27
    assert [tuple(len(g.options) for g in GRAMMAR.groups), len(created)] == [(3, 3, 3), 486]
    assert [probe.key for probe in created if probe.errors] == []
    assert len({probe.key for probe in created}) == len({probe.prompt for probe in created}) == 486
    assert all(probe.task.question in probe.prompt for probe in created)


def test_a_prompt_reads_as_it_should() -> None:
    assert render(BANK, GRAMMAR, "bat-and-ball", {"distractor": "shortcut"}).prompt == (
        "Read the question from beginning to end, then answer it.\n\n"
        "A racket and a ball cost 110 cents together. The racket costs 100 cents more than the "
        "ball. "
        "How many cents does the ball cost?\n\n"
        "Someone who skimmed the question said at once: 10.\n\n"
        'Give no explanation. Write one line that begins with "Answer:".'
    )
    assert "\n\n\n" not in render(BANK, GRAMMAR, "bat-and-ball").prompt


def test_every_probe_is_rebuilt_from_its_record_also_in_another_process() -> None:
    records = [probe.to_dict() for probe in probes(BANK, GRAMMAR)][::40]
    assert [rebuild(BANK, GRAMMAR, r).to_dict() for r in json.loads(json.dumps(records))] == records
    code = (
        "import json, sys\nfrom groundfault.probes import Bank, Grammar, rebuild\n"
        "bank, grammar = Bank.shipped(), Grammar.shipped()\n"
        "for r in json.load(sys.stdin): assert rebuild(bank, grammar, r).prompt == "
        "r['prompt']\nprint('same')"
    )
    content = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(records), capture_output=True, text=True
    )
    assert content.stdout == "same\n", content.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bank": "0" * 64}, "made with the bank 000000000000, and 'reasoning-18' is"),
        ({"grammar": "0" * 64}, "made with the grammar"),
        ({"answer": "6"}, "holds another answer"),
        ({"prompt": "hello"}, "holds another prompt"),
        ({"answer": ""}, "lacks its answer"),
        ({"task": "nobody"}, "no task 'nobody'"),
        ({"assignment": ["canonical"]}, "names 3 options, one a group, not 1"),
        (
            {"assignment": ["canonical", "none", "loud"]},
            "no option 'loud'; it has direct, brief, check",
        ),
    ],
)
def test_a_record_of_something_else_is_refused(change: dict[str, object], message: str) -> None:
    record = render(BANK, GRAMMAR, "machines").to_dict()
    with pytest.raises(GroundfaultError, match=message):
        rebuild(BANK, GRAMMAR, record | change)


@settings(max_examples=count_examples(60))
@given(
    st.text(min_size=1, max_size=60).filter(lambda text: bool(text.strip())),
    st.lists(st.text(max_size=30).filter(lambda text: "{" not in text), min_size=1, max_size=3),
)
def test_a_question_is_never_changed_whatever_it_holds(question: str, texts: list[str]) -> None:
    created = small(*(Option(f"o{n}", text) for n, text in enumerate(texts)))
    try:
        queries = bank(question)
    except InputError:  # half of a surrogate pair
        return
    for probe in probes(queries, created):
        assert question.strip() in probe.prompt


@pytest.mark.parametrize("question", ["What is {side}?", "{question}", "a\n\n\n\nb", "{0} and {}"])
def test_braces_and_blank_lines_of_a_question_are_its_own(question: str) -> None:
    probe = render(bank(question), small(Option("plain", "Say it.")), "t")
    assert (probe.prompt, probe.errors) == (f"{question}\n\nSay it.", ())


@pytest.mark.parametrize(
    ("queries", "grammar", "message"),
    [
        (bank(), small(longest=3), "longer than 3 characters"),
        (
            bank(),
            small(Option("hint", "Think of {hint}.")),
            "the task has no hint, which side = hint needs",
        ),
        (bank(slots={"hint": "four"}), small(Option("hint", "Think of {hint}.")), None),
        (
            bank(slots={"hint": "4"}),
            small(Option("hint", "Think of {hint}.")),
            "gives the answer away",
        ),
        (bank(), small(Option("page", "This is page 4.")), "gives the answer away"),
        (bank(), small(Option("page", "This is page 5.")), None),
        (
            bank("Who?", "Mara", "exact", slots={"s": "mara"}),
            small(Option("s", "{s}!")),
            "gives the answer away",
        ),
        (bank("Who?", "Mara", "exact", slots={"s": "Tom"}), small(Option("s", "{s}!")), None),
        (
            bank("Is it?", "yes", "yes_no", slots={"s": "Yes"}),
            small(Option("s", "{s}!")),
            "gives the answer away",
        ),
    ],
)
def test_structural_validity(queries: Bank, grammar: Grammar, message: str | None) -> None:
    (probe,) = probes(queries, grammar)
    assert bool(probe.errors) == (message is not None)
    assert message is None or message in probe.errors[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ComponentGroup("side", ()), "the group 'side' is empty"),
        (lambda: ComponentGroup("side", (Option("a"), Option("a"))), "the option 'a' twice"),
        (lambda: ComponentGroup("side", (Option("a b"),)), "'a b'; a name is a letter"),
        (
            lambda: ComponentGroup("side", (Option("a"),), keeps=("mood",)),
            "keeps 'mood'; it can keep wording",
        ),
        (lambda: Grammar("g", (), "{question}"), "has no group"),
        (
            lambda: Grammar("g", (ComponentGroup("a", (Option("x"),)),) * 2, "{question}{a}{a}"),
            "the group 'a' twice",
        ),
        (lambda: small(layout="{side}"), "must hold {question}, {side}, each once"),
        (lambda: small(layout="{question}{question}{side}"), "each once"),
        (lambda: small(layout="{question}{side}{mood}"), "no other braces"),
        (lambda: small(longest=0), "longest must be a whole number"),
        (lambda: small(longest=True), "longest must be a whole number"),
    ],
)
def test_a_grammar_that_cannot_be(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("arguments", "message"), [({"mood": "x"}, "no group 'mood'"), ({"cue": "x"}, "no option 'x'")]
)
def test_an_assignment_that_cannot_be(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        GRAMMAR.assignment(arguments)


def test_a_grammar_that_is_written_is_read_back(tmp_path: Path) -> None:
    created = small(
        Option("a", 'He said: "{hint}"\\\n\ttwice\x7f'), Option("b"), about="ours", longest=99
    )
    for grammar in (GRAMMAR, created):
        grammar.write(tmp_path / "g.toml")
        again = Grammar.load(tmp_path / "g.toml")
        assert (again.hash, again.to_dict(), again.about) == (
            grammar.hash,
            grammar.to_dict(),
            grammar.about,
        )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("page 613", "page 614", "was frozen as"),
        ("[[group.option]]", "[group.option]", "not TOML"),
        ('name = "cue"', "", "name is missing"),
        ("keeps =", "keep =", "there is no 'keep'"),
        ("longest = 8000", 'longest = "8000"', "longest must be a whole number"),
    ],
)
def test_a_bad_grammar_is_one_clear_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    from groundfault.probes.bank.bank import SHIPPED

    text = (SHIPPED / "grammar.toml").read_text()
    assert old in text
    path = tmp_path / "grammar.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message) as error:
        Grammar.load(path)
    assert "grammar.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_all_that_a_prompt_depends_on_is_in_the_hash() -> None:
    plain = small(Option("a", "x"), Option("b"))
    others = [
        small(Option("a", "y"), Option("b")),
        small(Option("b"), Option("a", "x")),
        small(Option("a", "x"), Option("b"), layout="{side}\n\n{question}"),
        small(Option("a", "x"), Option("b"), longest=9),
        Grammar(
            "small", (ComponentGroup("side", (Option("a", "x"), Option("b")), keeps=()),), FULL
        ),
    ]
    assert len({grammar.hash for grammar in (plain, *others)}) == 6
    assert small(Option("a", "x"), Option("b"), about="prose").hash == plain.hash
    assert list(itertools.islice(plain, 3)) == [("a",), ("b",)]
