"""``probe check``: the prompts that it counts and shows, and a card that takes any text."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from groundfault.cli.main import probe
from groundfault.errors import GroundfaultError, InputError, PlanError
from groundfault.probes import Bank, ComponentGroup, Grammar, Option, Task
from groundfault.render.markdown import markdown
from groundfault.render.terminal import show
from groundfault_lab.pages.bank_card import make_card
from groundfault_lab.probes.checking import BankCheck, check
from groundfault_lab.probes.families import generate


def print_card(result: BankCheck) -> str:
    out = io.StringIO()
    show(make_card(result), Console(file=out, width=200))
    return out.getvalue()


def run(*args: Any) -> Result:
    return CliRunner().invoke(probe, [str(a) for a in args])


def test_a_newcomer_writes_a_bank_and_checks_it(tmp_path: Path) -> None:
    home = tmp_path / "bank"
    assert run("init", home).exit_code == 0
    assert (Bank.load(home / "bank.toml").hash, Grammar.load(home / "grammar.toml").hash) == (
        Bank.shipped().hash,
        Grammar.shipped().hash,
    )
    content = run("check", home, "--card", tmp_path / "card.md", "--samples", 2)
    assert content.exit_code == 0
    assert "Prompts 486 of 486 structurally valid" in " ".join(content.output.split())
    assert content.output.count("Prompt: ") == 2
    card = (tmp_path / "card.md").read_text()
    assert all(f"### {task.id} ({task.family})" in card for task in Bank.shipped())
    assert card.count("- Why: ") == 18
    assert Bank.shipped().hash in card


def test_a_generated_bank_comes_with_its_grammar(tmp_path: Path) -> None:
    assert run("init", tmp_path / "b", "--generated", 40, "--seed", 5).exit_code == 0
    assert Bank.load(tmp_path / "b" / "bank.toml").hash == generate(40, 5).hash
    content = json.loads(run("check", tmp_path / "b", "--json", "-").output)
    assert (content["prompts"], content["valid"], content["passed"]) == (1080, 1080, True)


def test_check_fails_where_a_prompt_must_not_be_asked(tmp_path: Path) -> None:
    run("init", tmp_path / "b")
    place = tmp_path / "b" / "grammar.toml"
    place.write_text(
        re.sub('(?m)^sha256 = ".*"$', "", place.read_text().replace("page 613", "page 46"))
    )
    content = run("check", tmp_path / "b", "--samples", 0)
    assert content.exit_code == 1
    text = " ".join(content.output.split())
    assert "477 of 486" in text
    # a row of a table, whose first cell takes two lines
    assert "distractor = number gives the answer 9 lily-pond|canonical|number|direct away" in text


@pytest.mark.parametrize(
    ("name", "message"), [("bank.toml", "cannot read the bank"), ("grammar.toml", "the grammar")]
)
def test_check_of_what_is_not_there(tmp_path: Path, name: str, message: str) -> None:
    run("init", tmp_path / "b")
    (tmp_path / "b" / name).unlink()
    content = run("check", tmp_path / "b")
    assert isinstance(content.exception, GroundfaultError)
    assert message in str(content.exception)


def test_samples_are_valid_repeat_and_differ_by_seed() -> None:
    bank, grammar = generate(60, 2), Grammar.shipped()
    first, again, other = (check(bank, grammar, samples=5, seed=seed) for seed in (1, 1, 2))
    keys = [[probe.key for probe in result.samples] for result in (first, again, other)]
    assert keys[0] == keys[1] != keys[2]
    assert len(set(keys[0])) == 5
    assert check(bank, grammar, samples=9999).samples[-1].errors == ()
    with pytest.raises(PlanError, match="at least 0"):
        check(bank, grammar, samples=-1)


def test_samples_are_drawn_from_all_valid_prompts_alike() -> None:
    bank, grammar = (
        generate(4, 2),
        Grammar("two", (ComponentGroup("g", (Option("a"), Option("b"))),), "{question}{g}"),
    )
    sample = [
        probe.key
        for seed in range(400)
        for probe in check(bank, grammar, samples=2, seed=seed).samples
    ]
    counts = [sample.count(key) for key in set(sample)]
    assert len(counts) == 8
    assert (
        sum((count - 100) ** 2 / 100 for count in counts) < 25
    )  # chi-square with 7 degrees of freedom: p = 0.0008


def test_tasks_without_any_valid_prompt_are_named() -> None:
    grammar = Grammar(
        "hints",
        (ComponentGroup("hint", (Option("only", "Think of {hint}."),)),),
        "{question}\n{hint}",
    )
    tasks = (
        Task(id="bare", question="q?", answer="1"),
        Task(id="full", question="q?", answer="1", slots={"hint": "2"}),
    )
    result = check(Bank("b", tasks), grammar)
    assert ([task.id for task in result.blocked], result.valid, result.prompts) == (["bare"], 1, 2)
    assert "1 task without a valid prompt: bare" in print_card(result)


def test_a_card_and_a_terminal_take_any_text_as_text() -> None:
    evil = "<script>alert(1)</script> | \x1b[31m [x](http://y.z)\n# head"
    grammar = Grammar("g", (ComponentGroup("g", (Option("a", evil),)),), "{question}{g}")
    tasks = (
        Task(
            id="t",
            family=evil,
            question=evil,
            answer=evil,
            derivation=evil,
            tags=(evil,),
            slots={evil: evil},
        ),
    )
    result = check(Bank(evil, tasks, evil), grammar)
    card, items_by_row = markdown(make_card(result)), print_card(result)
    assert "<script" not in card
    assert not re.search(r"(?<!\\)\]\(", card)
    assert "\x1b" not in card + items_by_row
    assert not re.search(r"(?m)^# head", card)


def test_metamorphic_relations_are_shown(tmp_path: Path) -> None:
    run("init", tmp_path / "b")
    content = run("check", tmp_path / "b", "--samples", 0, "--card", tmp_path / "card.md")
    assert "Answers must be equivalent under all options of cue, distractor, format" in " ".join(
        content.output.split()
    )
    assert (
        "| distractor | none, number, shortcut | wording, facts, operations, relations, answer |"
        in (tmp_path / "card.md").read_text()
    )
    grammar = Grammar(
        "g",
        (ComponentGroup("tone", (Option("a"), Option("b", "Sir,")), ("wording",)),),
        "{question}{tone}",
    )
    result = check(Bank("b", (Task(id="t", question="q?", answer="1"),)), grammar)
    assert "no group promises to keep the answer" in print_card(result)
    assert result.to_dict()["relations"] == []


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "bank.toml",
            'id = "machines"',
            'id = "lily-pond"',
            "two tasks with the id 'lily-pond'; rename one",
        ),
        ("bank.toml", 'answer = "46"\n', "", "task 'lily-pond': answer is missing"),
        ("bank.toml", 'answer = "46"', 'answer = ""', "task 'lily-pond': the answer '' is empty"),
        (
            "bank.toml",
            'answer = "46"',
            'answer = "the 46th"',
            "must be a number under the rule integer",
        ),
        (
            "bank.toml",
            'rule = "integer"',
            'rule = "close"',
            "the equivalence rule 'close'; there are exact, yes_no",
        ),
        (
            "grammar.toml",
            '[[group]]\nname = "cue"',
            '[[group]]\nname = "none"\n\n[[group]]\nname = "cue"',
            "'none' is empty",
        ),
        (
            "grammar.toml",
            "{cue}\n",
            "",
            "the layout must hold {question}, {cue}, {distractor}, {format}",
        ),
    ],
)
def test_a_bad_bank_or_grammar_is_one_line(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    run("init", tmp_path / "b")
    place = tmp_path / "b" / file
    text = place.read_text()
    assert old in text
    place.write_text(re.sub('(?m)^sha256 = ".*"$', "", text.replace(old, new, 1)))
    content = run("check", tmp_path / "b")
    assert isinstance(content.exception, InputError)
    assert message in str(content.exception)
    assert file in str(content.exception)
    assert "\n" not in str(content.exception)
