"""A task bank as a page: its tasks, the reasons for each key, and the reviewers' questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from groundfault.probes.bank.bank import Task
from groundfault.render import words
from groundfault.render.page import (
    Code,
    Entry,
    Excerpt,
    Excerpts,
    Line,
    Name,
    Number,
    Page,
    Remarks,
    Section,
    Words,
    tabulate,
)
from groundfault_lab.probes.checking import BankCheck

MAX_TASKS = 500
"""Tasks on a card: a generated bank may have thousands, and its hash covers all."""
_MAX_PROBLEMS = 20
"""Reasons listed: those of more prompts come first."""
_QUESTIONS = (
    "Is the prompt valid: does it keep the task's entities, relations, operations and "
    "constraints, and which answers are right?",
    "Is the extraction valid: is the extracted answer the one that the response gives in the end?",
    "Is the model wrong: is that answer not equivalent to the key? Only a yes to all three "
    "confirms a model error.",
)
_CAUTION = (
    "That an answer differs from {compared} is a routing signal, and that a prompt is "
    "structurally valid does not say that it means the same: both are for a person to judge."
)


def make_card(check: BankCheck) -> Page:
    """Make the card of a bank with a grammar; a terminal leaves the tasks to the file."""
    bank, grammar = check.bank, check.grammar
    samples = tuple(
        Excerpt(probe.key, "", (("Prompt", tuple((x,) for x in probe.prompt.splitlines())),))
        for probe in check.samples
    )
    tasks = tuple(
        Entry(f"{task.id} ({task.family})", (Remarks(tuple(_list_facts(task))),))
        for task in bank.tasks[:MAX_TASKS]
    )
    many = len(bank) > MAX_TASKS
    listed = f"The first {MAX_TASKS:,} of {len(bank):,} tasks." if many else None
    compared = "its key" if bank.has_keys else "that to the base wording"
    relations = ", ".join(grammar.relations)
    promise = (
        f"Answers must be equivalent under all options of {relations}: each of these groups makes "
        "a metamorphic relation."
        if relations
        else "There is no metamorphic relation: no group promises to keep the answer."
    )
    families = tabulate(
        "Families",
        Counter((task.family, task.rule) for task in bank).items(),
        Words("Family", lambda pair: pair[0][0]),
        Name("Compared by", lambda pair: pair[0][1]),
        Number("Tasks", lambda pair: pair[1]),
    )
    components = tabulate(
        "Components",
        grammar.groups,
        Words("Group", lambda group: group.name),
        Words("Options", lambda group: ", ".join(option.name for option in group.options)),
        Words("Never changes", lambda group: ", ".join(group.keeps) or "nothing promised"),
        note=promise,
    )
    problems = tabulate(
        "Prompts that must not be asked",
        check.problems,
        Words("Reason", lambda problem: problem.reason),
        Number("Prompts", lambda problem: problem.prompts),
        Name("First", lambda problem: problem.first),
        most=_MAX_PROBLEMS,
    )
    blocked = ", ".join(task.id for task in check.blocked[:5])
    size = words.plural(len(check.blocked), "task")
    return Page(
        "bank card",
        f"{bank.name}: {bank.about}" if bank.about else bank.name,
        f"Bank card: {bank.name}",
        facts=(
            ("Bank", f"{words.plural(len(bank), 'task')}, SHA-256 {bank.hash}"),
            (
                "Grammar",
                f"{grammar.name}, {words.plural(len(grammar), 'assignment')}, "
                f"SHA-256 {grammar.hash}",
            ),
            ("Prompts", f"{check.valid:,} of {check.prompts:,} structurally valid"),
        ),
        sections=(
            Section.of(families),
            Section.of(components),
            Section.of(problems, f"{size} without a valid prompt: {blocked}" if blocked else ""),
            Section("Samples", Excerpts((("", samples),))) if samples else None,
            Section("Tasks", listed, tasks, for_files=True),
            Section(
                "What an audit decides of a response",
                _QUESTIONS,
                _CAUTION.format(compared=compared),
                for_files=True,
            ),
        ),
        good=check.passed,
    )


def _list_facts(task: Task) -> Iterator[tuple[str, str | Code | Line]]:
    yield "Question", task.question
    compared = (", compared by ", Code(task.rule))
    yield (
        "Key",
        (Code(task.answer), *compared) if task.answer else ("none: answers to wordings", *compared),
    )
    if task.tolerance:
        yield "Tolerance", str(task.tolerance)
    if task.derivation:
        yield "Why", task.derivation
    if task.tags:
        yield "Checked", ", ".join(task.tags)
    for slot, text in task.slots.items():
        yield words.capital(slot), text
