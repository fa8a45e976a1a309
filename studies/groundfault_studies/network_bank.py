"""A bank and a grammar in the words of the world that the small language models were trained in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import polars as pl

from groundfault.errors import InputError
from groundfault.probes.bank.bank import Bank, Task
from groundfault.probes.bank.grammar import ComponentGroup, Grammar, Option
from groundfault.probes.bank.rendering import render
from groundfault_studies.known_holes import read_holes

NUMBERS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty",
    "de": "null eins zwei drei vier fuenf sechs sieben acht neun zehn elf zwoelf dreizehn "
    "vierzehn fuenfzehn sechzehn siebzehn achtzehn neunzehn zwanzig",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce "
    "quince dieciseis diecisiete dieciocho diecinueve veinte",
}
"""Words for 0 to 20 as the world spells them, which knows plain letters only."""

EXTRAS = {
    "en": {
        "please": "Please answer. ",
        "weather": "It is raining today. ",
        "shop": "The shop closes at 6. ",
        "aunt": "My aunt likes tea. ",
    },
    "de": {
        "please": "Bitte antworte. ",
        "weather": "Heute regnet es. ",
        "shop": "Der Laden schliesst um 6. ",
        "aunt": "Meine Tante mag Tee. ",
    },
    "es": {
        "please": "Por favor responde. ",
        "weather": "Hoy llueve. ",
        "shop": "La tienda cierra a las 6. ",
        "aunt": "A mi tia le gusta el te. ",
    },
}
"""What may stand before a question there, by language."""

_SAME = ("facts", "operations", "relations", "answer")
GRAMMAR = Grammar(
    "known-holes-16",
    (
        ComponentGroup("politeness", (Option("none"), Option("please", "{please}"))),
        ComponentGroup(
            "aside",
            (
                Option("none"),
                Option("weather", "{weather}"),
                Option("shop", "{shop}"),
                Option("aunt", "{aunt}"),
            ),
        ),
        ComponentGroup(
            "numbers", (Option("digits", "{digits}"), Option("words", "{words}")), keeps=_SAME
        ),
    ),
    layout="{politeness}{aside}{question}{numbers}",
)
"""Politeness, a sentence beside the point, and numbers in digits or words: 16 assignments."""

_FAMILIES = ("add", "subtract", "weekday", "month", "convert")
_MOST = 20  # numbers above it have no word in this world


def make_bank(folder: Path, count: int) -> Bank:
    """The first plain prompts of the data whose numbers all have a word, as tasks.

    A task's question ends before its first number; the rest of the prompt, in digits and in words,
    is the group ``numbers``.

    Raises
    ------
    InputError
        If the data are not there, or hold fewer such prompts.
    """
    examples = read_holes(folder).examples
    keys = pl.read_parquet(folder / "examples.parquet", columns=["example_id", "target"])
    plain = examples.join(keys, on="example_id", maintain_order="left").filter(
        pl.col("task").is_in(_FAMILIES), *(~pl.col(name) for name in ("polite", "aside", "upper"))
    )
    tasks = tuple(islice(_make_tasks(plain), count))
    if len(tasks) < count:
        raise InputError(f"{folder} has {len(tasks)} prompts for a bank; {count} are needed")
    return Bank("known-holes", tasks)


def spell(text: str, language: str, *, words: bool) -> str | None:
    """A text with all its numbers as words, or as digits; None where one has no word.

    Examples
    --------
    >>> spell("Was ist 12 plus fuenf?", "de", words=True)
    'Was ist zwoelf plus fuenf?'
    >>> spell("What is 12 plus 30?", "en", words=True) is None
    True
    """
    names = NUMBERS[language].split()
    values = {name: number for number, name in enumerate(names)}
    tokens = re.split(r"(\w+)", text)
    for place, token in enumerate(tokens):
        number = int(token) if token.isdecimal() else values.get(token)
        if number is not None:
            if number > _MOST:
                return None
            tokens[place] = names[number] if words else str(number)
    return "".join(tokens)


def _make_tasks(plain: pl.DataFrame) -> Iterator[Task]:
    for row in plain.unique("prompt", keep="first", maintain_order=True).iter_rows(named=True):
        digits, words = (
            spell(row["prompt"], row["language"], words=words) for words in (False, True)
        )
        if digits is None or words is None:
            continue
        differs = (a != b for a, b in zip(digits, words, strict=False))
        cut = digits.rindex(" ", 0, [*differs].index(True) + 1)
        task = Task(
            id=row["example_id"],
            family=row["task"],
            question=digits[:cut],
            answer=row["target"],
            slots={"digits": digits[cut:], "words": words[cut:]} | EXTRAS[row["language"]],
        )
        # such as a sum that is one of its own numbers: the prompt would hold the key
        if not any(render(Bank("one", (task,)), GRAMMAR, task.id, a).errors for a in GRAMMAR):
            yield task
