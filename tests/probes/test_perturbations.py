"""Perturbations, directional tests, and variants near failures, through the commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from groundfault.cli.main import cli
from groundfault.errors import InputError, PlanError
from groundfault.probes import Bank, Grammar, Task
from groundfault.probes.bank.rendering import probes
from groundfault_lab.probes import perturbations as p
from groundfault_lab.probes.checking import check
from groundfault_lab.probes.expectations import Expectation, read_expectations
from groundfault_lab.probes.variants import Variant, keep_variants

RNG = np.random.default_rng


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli, ["lab", "probe", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("change", "text", "changed"),
    [
        (p.contract, "What is it? They do not say.", "What's it? They don't say."),
        (p.expand, "It's here, and they don't go.", "It is here, and they do not go."),
        (p.misspell, "Many people wait together.", "Mnay poeple wait togther."),
        (p.spell_numbers, "5 of 42 cost $3, 0.5, 12:30 or 300.", None),
        (p.spell_numbers, "What is 3 + 4, and x^2?", "What is 3 + 4, and x^2?"),
        (p.break_lines, "One. Two is 1.5 m. Three?", "One.\nTwo is 1.5 m.\nThree?"),
        (p.rename_people, "Nobody is called that.", "Nobody is called that."),
        # what would change the meaning, or be no English, stays
        (p.contract, "Tell me what it is. They let us go.", "Tell me what it is. They let us go."),
        (p.expand, "Don't you see? It's been cold.", "Don't you see? It's been cold."),
        (p.rename_people, "Was James Madison, King John or Peter I older?", "same"),
        (p.expand, "Sarah’s cat isn’t here.", "Sarah’s cat is not here."),
        (p.expand, "Who directed You Can't Take It with You?", "same"),
        (p.rename_people, "Mark the box.", "same"),
        (p.spell_numbers, "Cuente de 27 a 30.", "same"),
        (p.spell_numbers, "What is the date: der 20. und 21., or later?", "same"),
        (p.spell_numbers, "12 000 at 5 x 3 and −5, or 05", "same"),
        (p.break_lines, "Dr. Smith met J. R. Doe. Why?", "Dr. Smith met J. R. Doe.\nWhy?"),
        (p.shuffle_options, "A: Hi.\nB: Hello.\nA: Bye.", "same"),
        (p.shuffle_options, "Which?\nA) red\nB) blue\nC) none of the above", "same"),
        (p.add_typos, "ahhhh", "same"),
        (p.stretch_spaces, "Who?", "same"),
    ],
)
def test_a_change_by_hand(change: p.Change, text: str, changed: str | None) -> None:
    words = "five of forty-two cost $3, 0.5, 12:30 or 300."
    expected = {None: words, "same": text}.get(changed, changed)
    assert change(text, RNG(0)) == expected


def test_drawn_changes_keep_the_letters_the_people_and_the_options() -> None:
    text = "Anna gives Peter some oranges; Anna likes yellow oranges altogether."
    typos = p.add_typos(text, RNG(1))
    assert typos != text
    assert [sorted(word) for word in typos.split()] == [sorted(word) for word in text.split()]
    assert typos.startswith("Anna gives Peter") or "Anna" in typos
    new = p.rename_people(text, RNG(1)).split()
    assert new[0] == new[5] in p._LEXICONS["names"][0]
    assert new[2] in p._LEXICONS["names"][1]
    assert p.stretch_spaces(text, RNG(1)).split() == text.split()
    choice = "Which?\nA) red\nB) blue\nC) green"
    for seed in range(20):
        lines = p.shuffle_options(choice, RNG(seed)).split("\n")
        assert lines != choice.split("\n")
        assert sorted(lines) == sorted(choice.split("\n"))


def test_every_family_makes_valid_prompts_of_the_shipped_bank() -> None:
    bank, grammar = p.perturb(Bank.shipped(), [*p.WORDINGS, *p.AROUND])
    result = check(bank, grammar, samples=0)
    # what is invalid is a change that a question does not allow, or a shortcut that is the key
    assert all("needs" in problem.reason for problem in result.problems)
    assert not result.blocked
    assert {option.name for option in grammar.groups[0].options} >= {"plain", "typos", "lower"}
    assert [group.name for group in grammar.groups[1:]] == list(p.AROUND)
    again = p.perturb(Bank.shipped(), [*p.WORDINGS, *p.AROUND])
    assert (again[0].hash, again[1].hash) == (bank.hash, grammar.hash)


def test_a_name_that_is_the_answer_stays() -> None:
    task = Task(id="t", question="Anna is taller than Mary. Who is taller?", answer="Anna")
    bank = Bank("b", (task,))
    with pytest.raises(InputError, match="allows these changes"):
        p.perturb(bank, ["names"])
    assert "lower" in p.perturb(bank, ["lower"])[0]["t"].slots
    with pytest.raises(PlanError, match="family"):
        p.perturb(bank, ["typo"])


def test_a_typo_makes_no_other_word_and_a_space_is_always_stretched() -> None:
    others = {"there", "three", "trail", "trial", "quiet", "files", "flies"}
    for word in ("there", "three", "trail", "files"):
        for seed in range(20):
            assert p.add_typos(word, RNG(seed)) not in others - {word}
    assert all(p.add_typos("letters", RNG(seed)) != "letters" for seed in range(20))
    assert all(p.stretch_spaces("2 +", RNG(seed)) != "2 +" for seed in range(20))


@pytest.mark.parametrize(
    "question",
    [
        "How many letters are in the word orange?",
        "Write the town in capital letters.",
        "Sort alphabetically: shouldn't, lorenz.",
        "What does f return? assert f(3) == 5",
        "What does https://example.org/towns show?",
        "What is $\\\\frac{5}{5}$ of it?",
    ],
)
def test_a_question_about_letters_or_of_code_keeps_them(question: str) -> None:
    task = Task(id="t", question=f"{question} It is about Anna. Do not think.", answer="x")
    bank, _ = p.perturb(Bank("b", (task,)), list(p.WORDINGS))
    assert set(bank["t"].slots) == {"lines"}


def test_a_list_of_numbers_may_be_answered_in_words() -> None:
    task = Task(id="t", question="What is the list from 4 to 6?", answer="4, 5, 6", rule="set")
    bank, _ = p.perturb(Bank("b", (task,)), ["number_words", "lower"])
    assert set(bank["t"].slots) == {"lower"}


def test_perturb_writes_a_bank_that_runs(tmp_path: Path) -> None:
    run("init", tmp_path / "bank")
    out = tmp_path / "new"
    families = ("--family", "lower", "--family", "options")
    made = run("perturb", tmp_path / "bank", *families, "--out", out)
    assert "18 tasks" in made
    assert "tasks reworded: lower 18, options 0" in made
    grammar = Grammar.load(out / "grammar.toml")
    assert [len(group.options) for group in grammar.groups] == [2]
    answers = tmp_path / "said.jsonl"
    lines = (
        {"prompt": probe.prompt, "response": f"Answer: {probe.task.answer}"}
        for probe in probes(Bank.load(out / "bank.toml"), grammar)
    )
    answers.write_text("\n".join(map(json.dumps, lines)))
    assert "stratified" in run("run", out / "config.toml", "--model", f"replay:{answers}")
    again = ["lab", "probe", "perturb", str(tmp_path / "bank"), "--out", str(out)]
    refused = CliRunner().invoke(cli, again)
    assert (refused.exit_code, "exists already" in str(refused.exception)) == (1, True)


TESTS = """
[lexicon]
name = ["Ana", "Ben"]
n = "2..6"

[[test]]
name = "buys more"
rule = "integer"
expect = "rises"
base = "{name} has {n} apples. How many?"
changed = "{name} has {n} apples and buys 3. How many?"

[[test]]
name = "case"
rule = "integer"
expect = "same"
base = "{name} has {n} apples. How many?"
by = "upper"

[[test]]
name = "another"
expect = "changes"
base = "Who is {name}?"
changed = "Who is not {name}?"
"""


def test_directional_tests_make_a_table_to_audit(tmp_path: Path) -> None:
    file, said = tmp_path / "tests.toml", tmp_path / "said.jsonl"
    file.write_text(TESTS)
    lines = []
    for name in ("Ana", "Ben"):
        for n in range(2, 7):
            base = f"{name} has {n} apples. How many?"
            more = f"{name} has {n} apples and buys 3. How many?"
            # Ben buys nothing, and five apples cannot be counted in capitals
            lines += [(base, n), (more, n + 3 * (name == "Ana"))]
            lines += [(base.upper(), n if n < 5 else "I cannot say" if n == 5 else 0)]
        lines += [(f"Who is {name}?", name), (f"Who is not {name}?", name)]
    rows = ({"prompt": prompt, "response": f"{answer}"} for prompt, answer in lines)
    said.write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "results.parquet"
    printed = run("expect", file, "--model", f"replay:{said}", "--count", 20, "-o", out)
    table = pl.read_parquet(out)
    by_test = {
        test: (len(each), each["failed"].sum(), each["failed"].null_count())
        for (test,), each in table.group_by("test")
    }
    # a template has no more fillings than its lexicon allows
    assert by_test == {"buys more": (10, 5, 0), "case": (10, 2, 2), "another": (2, 2, 0)}
    failed = table.filter(pl.col("test") == "buys more", pl.col("failed") == 1)
    assert set(failed["name"]) == {"Ben"}
    assert table["n"].dtype == pl.Int64
    assert "must rise" in printed
    # the command that is named next has to take rows without a score
    named = printed[printed.index("groundfault audit") :].split()[1:]
    assert named[-2:] == ["--null-outcome", "unparsed"]
    audited = CliRunner().invoke(cli, [*named, "--no-ledger"])
    assert audited.exit_code == 0, audited.output


def test_answers_that_cannot_be_read_are_unscored(tmp_path: Path) -> None:
    file, said = tmp_path / "tests.toml", tmp_path / "said.jsonl"
    file.write_text(TESTS[: TESTS.index('[[test]]\nname = "case"')])
    prompts = [
        f"{name} has {n} apples{more}. How many?"
        for name in ("Ana", "Ben")
        for n in range(2, 7)
        for more in ("", " and buys 3")
    ]
    rows = ({"prompt": prompt, "response": "I cannot say"} for prompt in prompts)
    said.write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "results.parquet"
    printed = run("expect", file, "--model", f"replay:{said}", "--count", 20, "-o", out)
    table = pl.read_parquet(out)
    assert table["failed"].to_list() == [None] * 10
    assert table["failed"].dtype == pl.Int64
    assert "must rise" in printed
    assert "no pair of answers can be read; one is 'I cannot say'" in printed
    assert "groundfault audit" not in printed


def test_a_model_that_gives_no_answer_is_named(tmp_path: Path) -> None:
    file, said = tmp_path / "tests.toml", tmp_path / "said.jsonl"
    file.write_text(TESTS[: TESTS.index('[[test]]\nname = "case"')])
    said.write_text('{"prompt": "a", "response": "b"}')
    printed = run("expect", file, "--model", f"replay:{said}", "-o", tmp_path / "results.csv")
    assert "gave no answer, so there is nothing to audit" in printed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('expect = "up"', r"test 'buys more': expect is 'up'; write one of rises"),
        ('expect = "rises"\nby = "typos"', r"needs either changed or by"),
        ('expect = "rises"\nrule = "exact"', r'write rule = "integer" or "numeric"'),
        ('expect = "rises"\nother = 1', r"there is no 'other'"),
    ],
)
def test_a_mistake_in_a_file_of_tests_is_named(tmp_path: Path, change: str, message: str) -> None:
    file = tmp_path / "tests.toml"
    text = TESTS.replace('expect = "rises"', change, 1)
    file.write_text(text.replace('rule = "integer"\n', "", 1) if "rule" in change else text)
    with pytest.raises(InputError, match=message):
        read_expectations(file)


@pytest.mark.parametrize(
    ("lexicon", "message"),
    [("[lexicon]\nn = 3", "entry 'n' must be a list"), ("", r"\{n\} is in no \[lexicon\]")],
)
def test_a_lexicon_holds_what_templates_need(tmp_path: Path, lexicon: str, message: str) -> None:
    file = tmp_path / "tests.toml"
    test = '[[test]]\nname = "t"\nbase = "{n}?"\nchanged = "{n}!"\nexpect = "same"\n'
    file.write_text(f"{lexicon}\n{test}")
    with pytest.raises(InputError, match=message):
        read_expectations(file)


def test_a_test_that_changes_nothing_is_an_error(tmp_path: Path) -> None:
    file, said = tmp_path / "tests.toml", tmp_path / "said.jsonl"
    said.write_text('{"prompt": "a", "response": "b"}')
    file.write_text('[[test]]\nname = "x"\nbase = "Who?"\nby = "options"\nexpect = "same"\n')
    out = tmp_path / "results.parquet"
    command = ["lab", "probe", "expect", file, "--model", f"replay:{said}", "-o", out]
    result = CliRunner().invoke(cli, [*map(str, command)])
    assert "the test 'x': options leaves every filling as it is" in str(result.exception)
    assert not out.exists()


def test_numbers_are_compared_as_numbers() -> None:
    test = Expectation(name="t", base="a", changed="b", expect="falls", rule="numeric")
    assert test.judge("It is 10.", "Answer: 9.5") is True
    assert test.judge("9", "10") is False
    assert test.judge("9", "9 or 10") is None


def test_a_person_keeps_variants_that_a_model_wrote(tmp_path: Path) -> None:
    """Run, propose, keep, and run again; the model that proposes decides nothing."""
    run("init", tmp_path / "bank")
    bank = Bank.load(tmp_path / "bank" / "bank.toml")
    grammar = Grammar.load(tmp_path / "bank" / "grammar.toml")
    said = tmp_path / "said.jsonl"
    lines = [
        {"prompt": probe.prompt, "response": f"Answer: {'9999' if i % 2 else probe.task.answer}"}
        for i, probe in enumerate(probes(bank, grammar))
    ]
    said.write_text("\n".join(map(json.dumps, lines)))
    run("run", tmp_path / "bank" / "config.toml", "--model", f"replay:{said}")
    runs, file = tmp_path / "bank" / "runs", tmp_path / "variants.toml"

    class Writer:
        name = "writer"

        async def answer(self, question: object) -> object:
            from groundfault.models import Response

            return Response('{"questions": ["Another question?", "Another  question?", "  "]}')

    from groundfault.probes.running.runs import Runs
    from groundfault_lab.probes.variants import propose_variants, read_variants, write_variants

    folder = Runs(runs)
    variants = propose_variants(folder.bank, folder.rows, Writer(), tasks=2, name="writer")
    assert [one.question for one in variants] == ["Another question?"] * 2
    write_variants(variants, file)
    assert read_variants(file) == variants
    refused = ["lab", "probe", "keep", str(file), "--runs", str(runs), "--reviewer", "ana", "--out"]
    result = CliRunner().invoke(cli, [*refused, str(tmp_path / "near")])
    assert "no variant is kept" in str(result.exception)
    file.write_text(file.read_text().replace("keep = false", "keep = true", 1))
    run("keep", file, "--runs", runs, "--reviewer", "ana", "--out", tmp_path / "near")
    (task,) = Bank.load(tmp_path / "near" / "bank.toml")
    origin = bank[variants[0].task]
    assert (task.answer, task.rule, task.family) == (origin.answer, origin.rule, origin.family)
    assert "proposed by writer, kept by ana" in task.derivation
    assert not check(Bank.load(tmp_path / "near" / "bank.toml"), grammar, samples=0).blocked


def test_a_variant_of_a_task_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="no task 'x'"):
        keep_variants(Bank.shipped(), [Variant(task="x", near="x", question="?", keep=True)], "ana")
