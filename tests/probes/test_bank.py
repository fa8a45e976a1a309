"""Task banks: every key is solved again by other code, a changed bank is noticed, and bad input is
one clear line.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import groundfault
from groundfault.errors import InputError, PlanError
from groundfault.probes import Bank, Grammar, Task, generate, probes, route


def orders(names: str, *rules: Callable[[dict[str, int]], bool]) -> list[str]:
    """The one order of the names, from the first, in which every rule of their places holds."""
    fits = [
        order
        for order in itertools.permutations(names.split())
        if all(rule({name: order.index(name) for name in order}) for rule in rules)
    ]
    assert len(fits) == 1
    return list(fits[0])


def turn_robot(start: str, turns: list[str]) -> str:
    east, north = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}[start]
    for turn in turns:
        east, north = (north, -east) if turn == "right" else (-north, east)
    return {(0, 1): "north", (1, 0): "east", (0, -1): "south", (-1, 0): "west"}[east, north]


def swapped(row: list[str], *swaps: tuple[int, int]) -> str:
    for a, b in swaps:
        row[a], row[b] = row[b], row[a]
    return ", ".join(row)


def day(full: int, part: Fraction) -> int:
    """The day on which a patch that doubles, and covers all on day ``full``, covers a part."""
    covered = Fraction(1)
    while covered > part:
        covered, full = covered / 2, full - 1
    return full


def walked(week: int, today: int, on: int) -> int:
    for _ in range(on):
        today = 1 if today == week else today + 1
    return today


SOLVED = {
    "bat-and-ball": lambda: next(x for x in range(111) if x + (x + 100) == 110),
    "lily-pond": lambda: day(48, Fraction(1, 4)),
    "machines": lambda: Fraction(100, 100) / Fraction(5, 5 * 5),
    "return-trip": lambda: Fraction(2 * 60) / (Fraction(60, 30) + Fraction(60, 60)),
    "up-and-down": lambda: 400 * Fraction(120, 100) * Fraction(80, 100),
    "fence-posts": lambda: len(range(0, 60 + 1, 5)),
    "second-tallest": lambda: orders(
        "Mara Tom Lea Ivo",
        lambda at: at["Mara"] < at["Tom"],
        lambda at: at["Tom"] < at["Lea"],
        lambda at: at["Ivo"] < at["Mara"],
    )[1],
    "moved-key": lambda: (
        "yes" if {"key": "drawer", "drawer": "kitchen"}["drawer"] == "cellar" else "no"
    ),
    "four-turns": lambda: turn_robot("north", ["right", "right", "left", "right"]),
    "queue-place": lambda: orders(
        "Ana Ben Cleo Dirk",
        lambda at: at["Ana"] == at["Ben"] + 1,
        lambda at: at["Cleo"] == at["Ana"] + 1,
        lambda at: at["Dirk"] == at["Ben"] - 1,
    )[2],
    "brothers": lambda: sum(child == "girl" for child in ["girl"] + 3 * ["boy"] + 2 * ["girl"]),
    "swapped-cups": lambda: swapped(["red", "green", "blue"], (0, 1), (1, 2)),
    "red-means-go": lambda: "yes" if {"red": "go", "green": "stop"}["green"] == "go" else "no",
    "star-rule": lambda: (lambda f: f(3, f(4, 1)))(lambda a, b: a + a + b),
    "nine-day-week": lambda: walked(9, 5, 16),
    "left-first": lambda: (2 + 3) * 4,
    "gate-rule": lambda: "yes" if [False, False, False].count(True) % 2 == 0 else "no",
    "reversed-order": lambda: sorted(["lamp", "pear", "corn", "tree"], reverse=True)[1],
}


def test_every_shipped_key_is_what_other_code_makes_of_the_task() -> None:
    assert {task.id: task.answer for task in Bank.shipped()} == {
        id: str(solve()) for id, solve in SOLVED.items()
    }


def test_shipped_bank_has_three_families_of_six_and_is_what_it_was() -> None:
    bank = Bank.shipped()
    assert [
        sum(t.family == f for t in bank) for f in ("arithmetic", "relation", "counterfactual")
    ] == [6, 6, 6]
    assert all(task.derivation and task.tags and task.slots["shortcut"] for task in bank)
    assert bank.hash.startswith("4f6080f04690d861")


# ---------------------------------------------------------------- generated: parsed and solved anew


def solve(task: Task) -> str:
    """The answer from the words of the question alone."""
    text, kind = task.question, task.id.rsplit("-", 1)[0]
    n = [int(x) for x in re.findall(r"\d+", text)]
    if kind == "two-prices":
        return str(next(x for x in range(n[0]) if x + (x + n[1]) == n[0]))
    if kind == "doubling":
        return str(day(n[0], Fraction(1, n[2])))
    if kind == "posts":
        return str(sum(1 for metre in range(n[0] + 1) if metre % n[1] == 0))
    if kind == "ranking":
        pairs = re.findall(r"(\w+) is taller than (\w+)", text)
        names = {name for pair in pairs for name in pair}
        below = dict.fromkeys(names, 0)
        for _ in names:
            for high, low in pairs:
                below[high] = max(below[high], below[low] + 1)
        order = sorted(names, key=lambda name: -below[name])
        return order[
            ("first", "second", "third", "fourth", "fifth").index(
                re.findall(r"the (\w+) tallest", text)[0]
            )
        ]
    if kind == "turning":
        start, turns = re.findall(r"faces (\w+)\..*order: ([^.]*)\.", text)[0]
        return turn_robot(start, turns.split(", "))
    if kind == "carried":
        return carried(text)
    if kind == "new-sign":
        times, a, b, c = n
        return str(sum([a] * times) + sum([b] * times) + c)
    if kind == "other-week":
        return str(walked(n[0], n[-2], n[-1]))
    value = n[0]
    for sign, number in re.findall(r"([+*]) (\d+)", text):
        value = value + int(number) if sign == "+" else value * int(number)
    return str(value)


def carried(text: str) -> str:
    """A world of things in things, in which each sentence happens."""
    thing, small, large = re.findall(r"A (\w+) is in a (\w+), the \w+ is in a (\w+)", text)[0]
    inside = {thing: small, small: large, large: re.findall(r"is in the (\w+)\.", text)[0]}

    def room(of: str) -> str:
        return room(inside[of]) if of in inside else of

    for sentence in text.split(". ")[1:-1]:
        if carry := re.findall(r"carried to the (\w+)", sentence):
            inside[large] = carry[0]
        elif "taken out" in sentence:
            inside[thing] = room(thing)
    return "yes" if room(thing) == re.findall(r"in the (\w+) now", text)[0] else "no"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_generated_key_is_what_other_code_reads_from_the_question(seed: int) -> None:
    bank = generate(450, seed)
    wrong = [
        (task.question, task.answer, solve(task)) for task in bank if solve(task) != task.answer
    ]
    assert wrong == []
    assert len({task.question for task in bank}) == 450
    for task in bank:
        assert route(task, f"Answer: {task.answer}").signal == "match"
        assert route(task, f"Answer: {task.slots['shortcut']}").signal == "mismatch"


def test_generated_banks_grow_and_repeat() -> None:
    small, large = generate(30, 7), generate(90, 7)
    assert large.tasks[:30] == small.tasks
    assert generate(30, 7).hash == small.hash != generate(30, 8).hash
    assert {task.family for task in generate(5, families=["relation"])} == {"relation"}


def test_generated_probes_are_valid() -> None:
    assert [probe.key for probe in probes(generate(45, 3), Grammar.shipped()) if probe.errors] == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: generate(0), "at least 1 task"),
        (lambda: generate(3, families=["chess"]), "no family 'chess'"),
        (lambda: generate(3, families=[]), "no family"),
    ],
)
def test_generating_refuses(call: Callable[[], object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        call()


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
