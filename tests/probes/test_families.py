"""Keys of shipped and generated tasks: other code solves each of them again."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from fractions import Fraction

import pytest

from groundfault.errors import PlanError
from groundfault.probes import Bank, Grammar, Task, probes, route
from groundfault_lab.probes.families import generate


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
