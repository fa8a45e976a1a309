"""Generated banks: templates with drawn parameters and computed answers."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from groundfault.base.reading import read_beside
from groundfault.core.plan import Plan
from groundfault.errors import PlanError, require_name
from groundfault.probes.bank.bank import Bank, Task

T = TypeVar("T")

# draws before a template counts as exhausted; a question that is left is missed only if all of them
# repeat earlier ones
_TRIES = 200
_WORDS: dict[str, list[Any]] = tomllib.loads(read_beside(__file__, "families.toml"))


@dataclass(frozen=True)
class _Drawing:
    """A question that a template drew, with its key and a tempting wrong answer."""

    question: str
    answer: str
    shortcut: str
    rule: str
    derivation: str


def generate(size: int, seed: int = 0, *, families: Sequence[str] | None = None) -> Bank:
    """Make a bank of tasks from templates, in turn, whose answers are computed.

    Parameters
    ----------
    size : int
        How many tasks, from 1 to some ten thousands.
    seed : int
        A larger bank of the same seed begins with the smaller one.
    families : sequence of str, optional
        Some of `FAMILIES`; all, where left out.

    Returns
    -------
    Bank
        No question comes twice, and no shortcut is the key.

    Raises
    ------
    PlanError
        If the size is below 1, a family is unknown, or a template has no further question to give.

    Examples
    --------
    >>> generate(100, seed=1)["doubling-2"].rule
    'integer'
    """
    if size < 1:
        raise PlanError(f"a bank has at least 1 task, not {size}")
    for name in ("",) if families is not None and not families else families or ():
        require_name("family", name, FAMILIES)
    templates = [
        (family, name, make)
        for family in families or FAMILIES
        for name, make in FAMILIES[family].items()
    ]
    plan, questions, tasks = Plan(seed=seed), set[str](), []
    for number in range(size):
        # one stream a task: a larger bank begins with the smaller one
        family, name, make = templates[number % len(templates)]
        drawing = _draw_new(name, make, plan.rng("probe bank", number), questions)
        questions.add(drawing.question)
        values = dict(vars(drawing))
        slots, id = {"shortcut": values.pop("shortcut")}, f"{name}-{number // len(templates) + 1}"
        tasks.append(Task(id=id, family=family, tags=("generated",), slots=slots, **values))
    kinds = "" if families is None else ": " + ", ".join(families)
    return Bank(
        f"generated-{size}-seed-{seed}{kinds}",
        tuple(tasks),
        "Made from templates; the answers are computed.",
    )


def _draw_new(
    name: str,
    make: Callable[[np.random.Generator], _Drawing],
    rng: np.random.Generator,
    questions: set[str],
) -> _Drawing:
    """Draw until the question is new and the shortcut is wrong."""
    for _ in range(_TRIES):
        drawing = make(rng)
        if drawing.question not in questions and drawing.answer != drawing.shortcut:
            return drawing
    raise PlanError(
        f"the template {name.replace('-', '_')} has no further question; ask for fewer tasks"
    )


def _draw_number(rng: np.random.Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def _draw_one(rng: np.random.Generator, among: Sequence[T]) -> T:
    return among[_draw_number(rng, 0, len(among) - 1)]


def _draw_two_prices(rng: np.random.Generator) -> _Drawing:
    dear, cheap = _draw_one(rng, _WORDS["priced"])
    price, more = _draw_number(rng, 2, 400), 10 * _draw_number(rng, 1, 90)
    total = 2 * price + more
    return _Drawing(
        f"A {dear} and a {cheap} cost {total} cents together. The {dear} costs {more} cents more "
        f"than the {cheap}. How many cents does the {cheap} cost?",
        str(price),
        str(total - more),
        "integer",
        f"({total} - {more}) / 2 = {price}.",
    )


def _draw_doubling(rng: np.random.Generator) -> _Drawing:
    patch, whole = _draw_one(rng, _WORDS["spreading"])
    back = _draw_number(rng, 1, 5)
    last = 2**back * _draw_number(rng, 2, 400)
    part = 2**back
    return _Drawing(
        f"A patch of {patch} doubles its area every hour and covers the whole {whole} after "
        f"{last} hours. After how many hours did it cover 1/{part} of the {whole}?",
        str(last - back),
        str(last // part),
        "integer",
        f"1/{part} is {back} halvings, so {back} hours earlier: {last} - {back} = {last - back}.",
    )


def _draw_posts(rng: np.random.Generator) -> _Drawing:
    line, thing = _draw_one(rng, _WORDS["along"])
    gap, gaps = _draw_number(rng, 2, 25), _draw_number(rng, 4, 300)
    return _Drawing(
        f"A straight {line} is {gap * gaps} metres long and has a {thing} every {gap} metres, "
        f"with a {thing} at both ends. How many {thing}s does it have?",
        str(gaps + 1),
        str(gaps),
        "integer",
        f"{gap * gaps} / {gap} = {gaps} gaps, and one {thing} more than gaps.",
    )


def _draw_ranking(rng: np.random.Generator) -> _Drawing:
    size = _draw_number(rng, 4, 6)
    order = [_WORDS["names"][i] for i in rng.choice(len(_WORDS["names"]), size, replace=False)]
    statements = [f"{high} is taller than {low}." for high, low in pairwise(order)]
    shuffle = [statements[i] for i in rng.permutation(len(statements))]
    place = _draw_number(rng, 1, size - 2)
    first = shuffle[place - 1].split()[0]
    ordinal = ("second", "third", "fourth", "fifth")[place - 1]
    return _Drawing(
        f"{' '.join(shuffle)} Who is the {ordinal} tallest of the {size}?",
        order[place],
        first,
        "exact",
        f"From the tallest: {', '.join(order)}.",
    )


def _draw_turning(rng: np.random.Generator) -> _Drawing:
    start = _draw_number(rng, 0, 3)
    turns = [("left", "right")[i] for i in rng.integers(0, 2, _draw_number(rng, 3, 12))]
    net = sum(1 if turn == "right" else -1 for turn in turns)
    end, wrong = (start + net) % 4, (start - net) % 4
    return _Drawing(
        f"A robot faces {_WORDS['directions'][start]}. It makes quarter turns in this order: "
        f"{', '.join(turns)}. Which way does it face then?",
        _WORDS["directions"][end],
        _WORDS["directions"][wrong if wrong != end else (end + 1) % 4],
        "exact",
        f"{turns.count('right')} turns to the right and {turns.count('left')} to the left, from "
        f"{_WORDS['directions'][start]}.",
    )


def _draw_containers(rng: np.random.Generator) -> _Drawing:
    things = ("key", "coin", "ring", "stamp", "ticket", "shell")
    inner = ("tin", "purse", "box", "jar", "cup")
    outer = ("bag", "crate", "basket", "chest", "case")
    rooms = ("cellar", "attic", "kitchen", "garage", "hall", "study", "porch", "shed")
    thing, small, large = (_draw_one(rng, kinds) for kinds in (things, inner, outer))
    first, second = (rooms[i] for i in rng.choice(len(rooms), 2, replace=False))
    out, before = bool(rng.integers(2)), bool(rng.integers(2))
    carry = f"The {large} is carried to the {second}."
    take = f"The {small} is wiped."
    if out:
        take = f"The {thing} is taken out of the {small} and laid on the floor."
    steps = f"{take} {carry}" if before else f"{carry} {take}"
    there = not (out and before)
    return _Drawing(
        f"A {thing} is in a {small}, the {small} is in a {large}, and the {large} is in the "
        f"{first}. {steps} Is the {thing} in the {second} now? Answer yes or no.",
        "yes" if there else "no",
        "no" if there else "yes",
        "yes_no",
        f"The {thing} {'goes' if there else 'does not go'} with the {large} to the {second}.",
    )


def _draw_new_sign(rng: np.random.Generator) -> _Drawing:
    times, (a, b, c) = _draw_number(rng, 2, 5), (_draw_number(rng, 2, 12) for _ in range(3))
    inside = times * b + c
    return _Drawing(
        f"In this puzzle a # b means {times} times a, plus b. What is {a} # ({b} # {c})?",
        str(times * a + inside),
        str(a + b + c),
        "integer",
        f"{b} # {c} = {inside}, and {a} # {inside} = {times * a + inside}.",
    )


def _draw_other_week(rng: np.random.Generator) -> _Drawing:
    week = _draw_one(rng, (5, 6, 8, 9, 10, 11))
    today, on = _draw_number(rng, 1, week), _draw_number(rng, 8, 400)
    then, usual = (today - 1 + on) % week + 1, (today - 1 + on) % 7 + 1
    return _Drawing(
        f"On an island a week has {week} days, called day 1 to day {week}, and after day {week} "
        "comes day 1 again. "
        f"Today is day {today}. What number has the day that comes {on} days from now?",
        str(then),
        str(usual),
        "integer",
        f"{today} + {on} = {today + on}, counted in weeks of {week}: day {then}.",
    )


def _draw_sum_in_order(rng: np.random.Generator) -> _Drawing:
    a, b, c, d = (_draw_number(rng, 2, 12) for _ in range(4))
    return _Drawing(
        "In this puzzle there is no precedence: every sum is worked out strictly from left to "
        f"right. What is {a} + {b} * {c} + {d}?",
        str((a + b) * c + d),
        str(a + b * c + d),
        "integer",
        f"{a} + {b} = {a + b}, times {c} is {(a + b) * c}, plus {d} is {(a + b) * c + d}.",
    )


# the name of a template begins the ids of its tasks, which runs and reviews store
FAMILIES: dict[str, dict[str, Callable[[np.random.Generator], _Drawing]]] = {
    "arithmetic": {
        "two-prices": _draw_two_prices,
        "doubling": _draw_doubling,
        "posts": _draw_posts,
    },
    "relation": {"ranking": _draw_ranking, "turning": _draw_turning, "carried": _draw_containers},
    "counterfactual": {
        "new-sign": _draw_new_sign,
        "other-week": _draw_other_week,
        "sum-in-order": _draw_sum_in_order,
    },
}
"""Templates by family, and by name."""
