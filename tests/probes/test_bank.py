"""Task banks: a changed bank is noticed, and bad input is one clear line."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import groundfault
from groundfault.errors import InputError
from groundfault.probes import Bank, Grammar, Task, probes


def test_shipped_bank_has_three_families_of_six_and_is_what_it_was() -> None:
    bank = Bank.shipped()
    assert [
        sum(t.family == f for t in bank) for f in ("arithmetic", "relation", "counterfactual")
    ] == [6, 6, 6]
    assert all(task.derivation and task.tags and task.slots["shortcut"] for task in bank)
    assert bank.hash.startswith("4f6080f04690d861")


# ------------------------------------------------------------------------------- files and evidence

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TASKS = st.builds(
    Task,
    id=st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True),
    family=TEXT.filter(bool),
    question=TEXT.filter(lambda text: bool(text.strip())),
    answer=st.integers().map(str),
    rule=st.sampled_from(["integer", "numeric"]),
    derivation=TEXT,
    tags=st.lists(TEXT, max_size=2).map(tuple),
    slots=st.dictionaries(TEXT.filter(bool), TEXT, max_size=2),
)


@settings(max_examples=30)
@given(
    TEXT.filter(bool), st.lists(TASKS, min_size=1, max_size=3, unique_by=lambda task: task.id), TEXT
)
def test_a_bank_that_is_written_is_read_back(
    tmp_path_factory, name: str, tasks: list[Task], about: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.toml"
    bank = Bank(name, tuple(tasks), about)
    bank.write(path)
    again = Bank.load(path)
    assert (again.name, again.tasks, again.about, again.hash) == (
        bank.name,
        bank.tasks,
        bank.about,
        bank.hash,
    )


def write_bank(folder: Path, text: str | bytes) -> Path:
    path = folder / "bank.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


ONE = '[[task]]\nid = "a"\nquestion = "q?"\nanswer = "1"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "name is missing|no task"),
        ('name = "b"', "no task"),
        ('name = "b"\n' + ONE + ONE, "two tasks with the id 'a'"),
        (
            'name = "b"\n' + ONE + 'rule = "fuzzy"',
            "task 'a'.*'fuzzy'; there are exact, yes_no, integer, numeric, set",
        ),
        ('name = "b"\n' + ONE.replace('"1"', '"blue"') + 'rule = "integer"', "must be a number"),
        ('name = "b"\n' + ONE.replace('"1"', '"1.5"') + 'rule = "integer"', "whole number"),
        ('name = "b"\n' + ONE.replace('"1"', '" "'), "is empty"),
        ('name = "b"\n' + ONE.replace('answer = "1"', ""), "answer is missing"),
        ('name = "b"\n' + ONE.replace('answer = "1"', "answer = 1"), "answer is not text"),
        ('name = "b"\n' + ONE.replace('"q?"', '" "'), "has no question"),
        ('name = "b"\n' + ONE.replace('"a"', '"a|b"'), "cannot have the id"),
        ('name = "b"\n' + ONE + 'anser = "1"', "no 'anser'"),
        ('name = "b"\n' + ONE + 'anchors = ["w"]', "anchor 'w' is not in its question"),
        (
            'name = "b"\n' + ONE + 'tolerance = "1/0"\nrule = "numeric"',
            "tolerance must be a number",
        ),
        ('name = "b"\n' + ONE + 'tolerance = "0.1"', "only the rule numeric"),
        ('name = "b"\nsha256 = "00"\n' + ONE, "was frozen as 00 and is now"),
        ('name = "b"\ntask = 3', "must be written as"),
        ("name = ", "is not TOML"),
        (b'name = "\xff"', "not UTF-8"),
        ("a = " + "[" * 5000, "is not TOML"),
    ],
)
def test_a_bad_bank_is_one_clear_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        Bank.load(write_bank(tmp_path, text))
    assert "bank.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_bank_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the bank"):
        Bank.load(tmp_path / "none.toml")
    with pytest.raises(InputError, match="is a folder"):
        Bank.load(tmp_path)


def test_a_shipped_key_that_was_changed_is_noticed(tmp_path: Path) -> None:
    from groundfault.probes.bank.bank import SHIPPED

    text = (SHIPPED / "bank.toml").read_text()
    assert text.count('answer = "46"') == 1
    path = write_bank(tmp_path, text.replace('answer = "46"', 'answer = "47"'))
    with pytest.raises(InputError, match="was frozen as") as error:
        Bank.load(path)
    new = re.findall(r'sha256 = "(\w{64})"', str(error.value))[0]
    write_bank(tmp_path, path.read_text().replace(Bank.shipped().hash, new))
    assert Bank.load(path)["lily-pond"].answer == "47"
    write_bank(tmp_path, "# a comment does not count\n" + path.read_text())
    assert Bank.load(path).hash == new


def rows(**more: list[object]) -> pl.DataFrame:
    table = {
        "id": ["q 1", "q 1", "q2", "q3"],
        "model": ["a", "b", "a", "a"],
        "prompt": ["2 + 2?", "2 + 2?", "Is it?", "Half of 1?"],
        "target": ["4", "4", "Yes", "0.5"],
        "kind": ["sum", "sum", "fact", "sum"],
        "error": [0, 1, 0, 0],
    }
    return pl.DataFrame(table | more)


def evidence(table: pl.DataFrame) -> groundfault.Evidence:
    return groundfault.Evidence.from_table(table, outcome="error", id="id", model="model")


def test_a_bank_of_any_evidence() -> None:
    bank = Bank.from_evidence(evidence(rows()), family="kind")
    assert [(t.id, t.family, t.rule, t.answer) for t in bank] == [
        ("q-1", "sum", "integer", "4"),
        ("q2", "fact", "yes_no", "Yes"),
        ("q3", "sum", "numeric", "0.5"),
    ]
    short = [probe for probe in probes(bank, Grammar.shipped()) if "shortcut" in probe.key]
    assert {probe.errors for probe in short} == {
        ("the task has no shortcut, which distractor = shortcut needs",)
    }


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        ({}, {"question": "text"}, "no column 'text'"),
        ({"target": ["4", "5", "Yes", "1"]}, {}, "'q 1' has more than one question or target"),
        ({"target": ["4", "4", None, "1"]}, {}, "'q2' has no target"),
        ({}, {"rule": "fuzzy"}, "'fuzzy'"),
    ],
)
def test_evidence_that_makes_no_bank(
    more: dict[str, list[object]], options: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Bank.from_evidence(evidence(rows(**more)), **options)


def test_a_bank_of_any_table_numbers_what_has_no_id() -> None:
    bank = Bank.from_table(rows(), family="kind", name="mine")
    assert (bank.name, [(task.id, task.family, task.answer) for task in bank]) == (
        "mine",
        [("1", "sum", "4"), ("2", "fact", "Yes"), ("3", "sum", "0.5")],
    )
    assert [task.id for task in Bank.from_table(rows(), id="id")] == ["q-1", "q2", "q3"]
    with pytest.raises(InputError, match="'q 1' has more than one question or target"):
        Bank.from_table(rows(target=["4", "5", "Yes", "1"]), id="id")


def test_a_grammar_that_fits_asks_for_no_slot_that_is_not_there() -> None:
    grammar = Grammar.shipped()
    assert grammar.fitting(["shortcut"]) is grammar
    short = grammar.fitting([])
    assert [[option.name for option in group.options] for group in short.groups][1] == [
        "none",
        "number",
    ]
    assert short.hash != grammar.hash
    bank = Bank.from_table(rows())
    assert [probe.key for probe in probes(bank, short) if probe.errors] == []
