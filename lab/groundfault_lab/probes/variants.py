"""Variants near failures: a model proposes them, a person keeps them, and they are probed alike.

A kept variant is a task of its own with the key of the task it came from: it is run, reviewed and
reported as every other task is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from msgspec import Struct

from groundfault.core.equivalence import normal
from groundfault.errors import InputError
from groundfault.models import Target
from groundfault.models.asking import AskOptions
from groundfault.models.question import Question
from groundfault.models.replies import ModelRequest, Prompts, Unreadable, ask_for, decode, fence
from groundfault.probes.bank import toml_tables
from groundfault.probes.bank.bank import Bank
from groundfault.probes.running.runs import ProbeRow

_PROMPTS = Prompts("groundfault_lab.probes")
_MAX_LENGTH = 2_000  # characters of a variant: beyond it a reply is no question
_TOKENS = 150  # of one question in a reply, about


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A question that a model proposed near one that was answered wrongly.

    Attributes
    ----------
    task : str
        Id of the task it came from.
    near : str
        Key of the prompt that was answered wrongly.
    question : str
    answer : str
        The key of the task, for whoever decides.
    by : str
        The model that proposed it.
    keep : bool
        Whether a person decided that the question asks the same and has the same answer.
    """

    task: str
    near: str
    question: str
    answer: str = ""
    by: str = ""
    keep: bool = False


class _Questions(Struct):
    questions: list[str]


def propose_variants(
    bank: Bank,
    rows: Sequence[ProbeRow],
    target: str | Target,
    *,
    count: int = 3,
    tasks: int = 20,
    name: str = "",
    **options: Unpack[AskOptions],
) -> list[Variant]:
    """Ask a model for variants of tasks on which some prompt was answered wrongly.

    Parameters
    ----------
    bank : Bank
    rows : sequence of ProbeRow
        Of `groundfault.probes.Runs`; those whose signal is a mismatch count, one a task.
    target : str or Target
    count : int
        Variants of a task.
    tasks : int
        Most tasks, those with most mismatches first.
    name : str
        Of the model, as the file holds it.
    **options
        For `groundfault.models.ask`.

    Raises
    ------
    InputError
        If there is no mismatch.
    """
    failing: dict[str, list[str]] = {}
    for row in rows:
        if row.signal == "mismatch" and row.key not in failing.setdefault(row.task, []):
            failing[row.task].append(row.key)
    if not failing:
        raise InputError("no answer of these runs mismatches; there is no failure to stay near")
    nearest = sorted(failing, key=lambda task: -len(failing[task]))[:tasks]
    requests = [
        ModelRequest(
            Question(
                _PROMPTS.fill("variants", wanted=count, **_fence(bank[task].question)),
                temperature=0,
                max_tokens=_TOKENS * count,
            ),
            partial(_read, question=bank[task].question, count=count),
        )
        for task in nearest
    ]
    replies = ask_for(target, requests, **options)
    return [
        Variant(task=task, near=failing[task][0], question=text, answer=bank[task].answer, by=name)
        for task, reply in zip(nearest, replies, strict=True)
        for text in reply.value or ()
    ]


def _fence(question: str) -> dict[str, str]:
    parts = fence([question])
    return {"mark": parts["mark"], "tasks": parts["tasks"]}


def _read(text: str, question: str, count: int) -> list[str]:
    """Return new questions of a reply.

    Raises
    ------
    Unreadable
        If there is none.
    """
    texts: dict[str, str] = {}
    for each in decode(text, _Questions).questions:
        texts.setdefault(normal(each), each.strip())
    new = [
        each
        for key, each in texts.items()
        if key and key != normal(question) and len(each) <= _MAX_LENGTH
    ]
    if not new:
        raise Unreadable("it holds no question that differs from the one that was given")
    return new[:count]


@dataclass(frozen=True, kw_only=True)
class _File:
    """The tables of a file of variants."""

    variant: list[dict[str, Any]] = field(default_factory=list)


def write_variants(variants: Sequence[Variant], path: str | Path) -> None:
    """Write variants for a person to read, each with ``keep = false``."""
    lines = ["# Set keep = true where the question asks the same and has the same answer."]
    for variant in variants:
        lines += ["", "[[variant]]", *toml_tables.pairs(vars(variant) | {"keep": None})]
        lines.append(f"keep = {str(variant.keep).lower()}")
    toml_tables.write(Path(path), lines)


def read_variants(path: str | Path) -> list[Variant]:
    """Read variants, kept or not.

    Raises
    ------
    InputError
        If the file holds something else.
    """
    where = str(path)
    file = toml_tables.convert(toml_tables.read(Path(path), "variants"), _File, where)
    return [
        toml_tables.convert(row, Variant, f"{where}, variant {number}")
        for number, row in enumerate(file.variant, start=1)
    ]


def keep_variants(bank: Bank, variants: Sequence[Variant], reviewer: str) -> Bank:
    """Return a bank of the variants that a person kept, with the keys of their tasks.

    Raises
    ------
    InputError
        If none is kept, or the bank lacks a task.
    """
    kept = tuple(_make_tasks(bank, variants, reviewer))
    if not kept:
        raise InputError("no variant is kept; set keep = true below those that ask the same")
    about = f"Variants of tasks of {bank.name}, proposed by a model and kept by {reviewer}."
    return Bank(f"{bank.name}-variants", kept, about)


def _make_tasks(bank: Bank, variants: Sequence[Variant], reviewer: str) -> Iterator[Any]:
    for number, variant in enumerate(variants, start=1):
        if variant.keep:
            task, by = bank[variant.task], variant.by or "a model"
            why = f"As {task.id}, near {variant.near}; proposed by {by}, kept by {reviewer}."
            yield replace(
                task,
                id=f"{task.id}-v{number}",
                question=variant.question,
                derivation=f"{task.derivation} {why}".strip() if task.answer else "",
                tags=("variant",),
                anchors=(),
                # wordings of the old question; what components insert stays
                slots={key: text for key, text in task.slots.items() if key == "shortcut"},
            )
