"""Simulated tables of prompts and attributes, with failure modes planted in them.

Tasks differ in how often they fail; other columns follow tasks and each other, so that every
planted rule has proxies that hold for many of the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.evidence import Evidence
from groundfault_studies.rule_scores import jaccard

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

Shape = Literal["one", "two", "three", "values", "words"]
Place = Literal["anywhere", "weak task", "strong task"]

SHAPES: tuple[Shape, ...] = ("one", "two", "three", "values", "words")
"""Conditions joined; a set of values inside a condition; any of some words."""

TASKS = ("add", "compare", "count", "lookup", "month", "quote", "reverse", "sort")
WEAK = TASKS[:2]
_STYLES, _LANGUAGES = ("digits", "roman", "spelled", "mixed"), ("de", "en", "es")
_WEAK_RATE, _STRONG_RATES = 0.45, (0.02, 0.12)
_INSIDE = (0.8, 0.95)
_SHARE = (0.03, 0.12)
_APART = 0.3
_FLIPPED = 0.08
_WORDS, _TOPIC_WORDS, _LENGTH = 60, 8, (5, 14)
_TRIES = 10_000


@dataclass(frozen=True)
class PlantedTable:
    """A population, the chance of failure of each row, and what is planted.

    Attributes
    ----------
    frame : polars.DataFrame
        Id, prompt and attributes.
    chance : float64 array, shape (rows,)
    planted : dict of str to bool array, shape (rows,)
        By a rule in words, where it holds.
    """

    frame: pl.DataFrame
    chance: Floats
    planted: dict[str, Bools]

    def evidence(self, rows: int, rng: np.random.Generator) -> Evidence:
        """Outcomes of the first so many rows."""
        error = (rng.random(rows) < self.chance[:rows]).astype(np.float64)
        frame = self.frame.head(rows).with_columns(error=error)
        return Evidence.from_table(frame, id="id", outcome="error")


def plant(
    rng: np.random.Generator,
    rows: int,
    modes: int,
    shapes: tuple[Shape, ...] = SHAPES,
    place: Place = "anywhere",
    base: float | None = None,
) -> PlantedTable:
    """Draw a population and plant modes of the shapes, one after the other.

    Each holds for 3 to 12 % of the rows, which fail in 80 to 95 % of cases there, and shares little
    with the others (a Jaccard index below .3).

    Parameters
    ----------
    rng : numpy.random.Generator
    rows : int
    modes : int
    shapes : tuple of str
        Taken in turn, from a random one on.
    place : {"anywhere", "weak task", "strong task"}
        Whether modes lie inside a task that fails often, or seldom, by itself.
    base : float, optional
        The chance of failure elsewhere, the same in all tasks; by default tasks differ.
    """
    frame, rates = _draw_frame(rng, rows)
    chance = np.array([rates[task] if base is None else base for task in frame["task"]])
    planted: dict[str, Bools] = {}
    first = int(rng.integers(len(shapes)))
    for number in range(modes):
        shape = shapes[(first + number) % len(shapes)]
        for _ in range(_TRIES):
            words, holds = _draw_rule(rng, frame, shape, place)
            near = any(jaccard(holds, other) >= _APART for other in planted.values())
            if _SHARE[0] <= holds.mean() <= _SHARE[1] and not near:
                break
        else:
            raise ValueError(f"no place for a mode of shape {shape} in {place}")
        planted[words] = holds
        chance = np.where(holds, np.maximum(chance, rng.uniform(*_INSIDE)), chance)
    return PlantedTable(frame, chance, planted)


def _draw_frame(rng: np.random.Generator, rows: int) -> tuple[pl.DataFrame, dict[str, float]]:
    """A population's columns, and how often each task fails by itself."""
    weights = rng.dirichlet(np.full(len(TASKS), 8.0))
    task = rng.choice(TASKS, rows, p=weights)
    rates = {
        name: _WEAK_RATE if name in WEAK else float(rng.uniform(*_STRONG_RATES)) for name in TASKS
    }
    number = np.searchsorted(TASKS, task)
    digits = 1 + rng.binomial(3, 0.2 + 0.06 * number)
    negated = rng.random(rows) < 0.2
    prompts = _draw_prompts(rng, number, negated)
    frame = pl.DataFrame(
        {
            "id": [f"e{i:06d}" for i in range(rows)],
            "prompt": prompts,
            "task": task,
            # a proxy of the task: two tasks a family, some rows in another's
            "family": np.char.add("f", _disturb(rng, number // 2, 4).astype(str)),
            "language": rng.choice(_LANGUAGES, rows, p=(0.2, 0.6, 0.2)),
            "style": rng.choice(_STYLES, rows, p=(0.5, 0.1, 0.2, 0.2)),
            "digits": digits,
            # a proxy of the digits
            "steps": digits + rng.integers(0, 3, rows),
            "items": rng.integers(1, 7, rows),
            "negated": negated,
            # a proxy of the negation
            "contrast": negated ^ (rng.random(rows) < _FLIPPED),
            "polite": rng.random(rows) < 0.3,
        }
    )
    return frame, rates


def _disturb(rng: np.random.Generator, values: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The values, some of them replaced by others."""
    other = rng.integers(0, count, len(values))
    return np.where(rng.random(len(values)) < _FLIPPED, other, values)


def _draw_prompts(rng: np.random.Generator, topic: NDArray[np.int64], negated: Bools) -> list[str]:
    """Sentences of made-up words; a third of the words belong to the task."""
    prompts = []
    for number, negation in zip(topic, negated, strict=True):
        length = int(rng.integers(*_LENGTH))
        own = rng.random(length) < 1 / 3
        words = np.where(
            own,
            _WORDS + _TOPIC_WORDS * number + rng.integers(0, _TOPIC_WORDS, length),
            rng.zipf(1.6, length) % _WORDS,
        )
        sentence = [_spell(word) for word in words]
        prompts.append(" ".join([*sentence, "not"] if negation else sentence))
    return prompts


def _spell(number: int) -> str:
    """A made-up word of two syllables, one a number."""
    onset, vowel = "bdfgklmnprstvz", "aeiou"
    first, second = divmod(int(number), len(onset) * len(vowel))
    syllable = onset[second // len(vowel)] + vowel[second % len(vowel)]
    return syllable + onset[first % len(onset)] + vowel[(first + second) % len(vowel)]


def _draw_rule(
    rng: np.random.Generator, frame: pl.DataFrame, shape: Shape, place: Place
) -> tuple[str, Bools]:
    """A rule of a shape in words, and where it holds."""
    parts: list[tuple[str, str, Bools]] = []
    if place != "anywhere":
        tasks = WEAK if place == "weak task" else tuple(t for t in TASKS if t not in WEAK)
        task = str(rng.choice(tasks))
        parts.append(("task", f"task = {task}", (frame["task"] == task).to_numpy()))
    if shape == "words":
        parts.append(_draw_words(rng, frame))
    elif shape == "values":
        parts += [_draw_values(rng, frame, parts), _draw_condition(rng, frame)]
    else:
        parts += [_draw_condition(rng, frame) for _ in range(SHAPES.index(shape) + 1)]
    columns = [column for column, _, _ in parts]
    if len(set(columns)) < len(columns):
        return "", np.zeros(frame.height, dtype=np.bool_)
    holds = np.logical_and.reduce([on for _, _, on in parts])
    return " AND ".join(words for _, words, _ in parts), holds


def _draw_condition(rng: np.random.Generator, frame: pl.DataFrame) -> tuple[str, str, Bools]:
    makers: list[Callable[[], tuple[str, str, Bools]]] = [
        lambda: _draw_value(rng, frame, str(rng.choice(["task", "language", "style"]))),
        lambda: _draw_cut(rng, frame, str(rng.choice(["digits", "items"]))),
        lambda: _draw_flag(frame, str(rng.choice(["negated", "polite"]))),
    ]
    return makers[int(rng.integers(len(makers)))]()


def _draw_value(rng: np.random.Generator, frame: pl.DataFrame, name: str) -> tuple[str, str, Bools]:
    value = str(rng.choice(frame[name].unique().sort().to_list()))
    return name, f"{name} = {value}", (frame[name] == value).to_numpy()


def _draw_cut(rng: np.random.Generator, frame: pl.DataFrame, name: str) -> tuple[str, str, Bools]:
    low, high = int(frame[name].min()), int(frame[name].max())  # type: ignore[arg-type]
    cut = int(rng.integers(low + 1, high + 1))
    return name, f"{name} >= {cut}", (frame[name] >= cut).to_numpy()


def _draw_flag(frame: pl.DataFrame, name: str) -> tuple[str, str, Bools]:
    return name, name, frame[name].to_numpy()


def _draw_values(
    rng: np.random.Generator, frame: pl.DataFrame, parts: list[tuple[str, str, Bools]]
) -> tuple[str, str, Bools]:
    name = "style" if parts else "task"
    values = sorted(rng.choice(frame[name].unique().sort().to_list(), 2, replace=False).tolist())
    return name, f"{name} IN ({', '.join(values)})", frame[name].is_in(values).to_numpy()


def _draw_words(rng: np.random.Generator, frame: pl.DataFrame) -> tuple[str, str, Bools]:
    count = int(rng.integers(2, 5))
    words = {_spell(int(word)) for word in rng.integers(2, _WORDS + 8 * len(TASKS), count)}
    spaced = " " + frame["prompt"] + " "
    holds = np.logical_or.reduce(
        [spaced.str.contains(f" {word} ", literal=True).to_numpy() for word in sorted(words)]
    )
    return "prompt", f"prompt has any of {', '.join(sorted(words))}", holds
