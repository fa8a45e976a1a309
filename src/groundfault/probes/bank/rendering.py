"""Rendering: a task and an assignment make one prompt, always the same, with its errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from groundfault.core.equivalence import compare, numbers
from groundfault.errors import InputError
from groundfault.probes.bank.bank import Bank, Task
from groundfault.probes.bank.grammar import PLACE, QUESTION, Assignment, Grammar, Option

_GAPS = re.compile(r"\n(?:[ \t]*\n){2,}")


@dataclass(frozen=True)
class Probe:
    """One rendered prompt.

    Attributes
    ----------
    task : Task
    assignment : tuple of str
        The option of each group of the grammar.
    prompt : str
    errors : tuple of str
        Why it must not be asked; empty where it is structurally valid. Whether the question still
        means the same is for a person to say.
    bank, grammar : str
        Their hashes.
    """

    task: Task
    assignment: Assignment
    prompt: str
    errors: tuple[str, ...]
    bank: str
    grammar: str

    @property
    def key(self) -> str:
        """Return the prompt key: task and components, no model; discoveries are counted by it."""
        return "|".join((self.task.id, *self.assignment))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that a record keeps; `rebuild` needs no more."""
        return {
            "bank": self.bank,
            "grammar": self.grammar,
            "task": self.task.id,
            "assignment": list(self.assignment),
            "answer": self.task.answer,
            "prompt": self.prompt,
        }


def render(
    bank: Bank,
    grammar: Grammar,
    task: str,
    components: Mapping[str, str] | Assignment | None = None,
) -> Probe:
    """Render the probe of a task and an assignment.

    Parameters
    ----------
    bank : Bank
    grammar : Grammar
    task : str
        Its id.
    components : mapping of group to option, or tuple of options, optional
        Groups that a mapping does not name are plain.

    Raises
    ------
    InputError
        If the bank does not have the task.
    PlanError
        If the grammar does not have the group or option.

    Examples
    --------
    >>> probe = render(Bank.shipped(), Grammar.shipped(), "bat-and-ball")
    >>> probe.key, probe.errors
    ('bat-and-ball|canonical|none|direct', ())
    """
    assignment = components if isinstance(components, tuple) else grammar.assignment(components)
    options, subject = grammar.options_of(assignment), bank[task]
    parts = {
        group.name: _fill(option, subject)
        for group, option in zip(grammar.groups, options, strict=True)
    }
    # in one pass: a question that holds braces is text, and no place
    prompt = PLACE.sub(
        lambda place: {**parts, QUESTION: subject.question}[place[1]], grammar.layout
    )
    # the question keeps its own blank lines
    around = [_GAPS.sub("\n\n", part) for part in prompt.split(subject.question)]
    prompt = subject.question.join(around).strip()
    errors = tuple(_find_errors(subject, options, parts, prompt, grammar))
    return Probe(subject, assignment, prompt, errors, bank.hash, grammar.hash)


def probes(bank: Bank, grammar: Grammar) -> Iterator[Probe]:
    """Render all probes: tasks in the bank's order, each with all assignments in the grammar's."""
    return (render(bank, grammar, task.id, assignment) for task in bank for assignment in grammar)


def describe(bank: Bank, grammar: Grammar) -> dict[str, dict[str, Any]]:
    """Return names, hashes and sizes, as manifests hold them."""
    return {
        "bank": {"name": bank.name, "sha256": bank.hash, "tasks": len(bank)},
        "grammar": {"name": grammar.name, "sha256": grammar.hash, "assignments": len(grammar)},
    }


def rebuild(bank: Bank, grammar: Grammar, record: Mapping[str, Any]) -> Probe:
    """Render the probe that a record was made of again.

    Raises
    ------
    InputError
        If the record lacks something, was made with another bank or grammar, or has another key or
        prompt than its parts make.
    """
    names = ("bank", "grammar", "task", "assignment", *["answer"] * bank.has_keys)
    lacking = [name for name in names if not record.get(name)]
    if lacking:
        raise InputError(f"the record of a probe lacks its {lacking[0]}")
    for name, now in (("bank", bank), ("grammar", grammar)):
        # the same ids in another bank are other prompts
        if record[name] != now.hash:
            raise InputError(
                f"the record was made with the {name} {str(record[name])[:12]}, and {now.name!r} "
                f"is {now.hash[:12]}; "
                f"a changed {name} is another one: go on with the old file, or start anew"
            )
    probe = render(bank, grammar, str(record["task"]), tuple(map(str, record["assignment"])))
    for name, value in (("answer", probe.task.answer), ("prompt", probe.prompt)):
        if record.get(name, value) != value:
            raise InputError(
                f"the record of {probe.key} holds another {name} than its bank and grammar make"
            )
    return probe


def _fill(option: Option, task: Task) -> str:
    texts = {**task.slots, QUESTION: task.question}
    return PLACE.sub(lambda place: texts.get(place[1], place[0]), option.text)


def _find_errors(
    task: Task, options: tuple[Option, ...], parts: Mapping[str, str], prompt: str, grammar: Grammar
) -> Iterator[str]:
    if len(prompt) > grammar.longest:
        yield f"the prompt is longer than {grammar.longest:,} characters"
    whole = (task.question.strip(),) if grammar.is_verbatim else ()
    for anchor in task.anchors or whole:
        if anchor not in prompt:
            yield f"the prompt has lost the anchor {anchor!r}"
    # a metamorphic relation compares answers to one question: its wording has to survive
    if any("wording" in group.keeps for group in grammar.groups) and any(
        question not in prompt for question in whole
    ):
        yield "the question's wording has changed"
    for group, option in zip(grammar.groups, options, strict=True):
        empty = [slot for slot in option.slots if not task.slots.get(slot, "").strip()]
        if empty:
            yield f"the task has no {empty[0]}, which {group.name} = {option.name} needs"
        # a component that gives the key away measures reading, and no error can be found
        elif not group.rewords and _reveals_key(task, option, parts[group.name]):
            yield f"{group.name} = {option.name} gives the answer away"


def _reveals_key(task: Task, option: Option, text: str) -> bool:
    """Tell whether a component holds the key.

    For numeric keys any number in it counts; for others only text that it takes from the task.
    """
    if not task.answer:
        return False
    if task.rule in ("integer", "numeric"):
        key = numbers(task.answer)[0]
        return any(abs(number - key) <= task.tolerance for number in numbers(text))
    return any(
        compare(task.slots[slot], task.answer, task.rule).same is True for slot in option.slots
    )
