"""A task bank as a card in Markdown: its tasks, why each key holds, what a reviewer decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from groundfault.probes.bank.bank import Task
from groundfault.probes.bank.rendering import BankCheck
from groundfault.render import words
from groundfault.render.markdown import code, escape

MAX_TASKS = 500
_MAX_PROBLEMS = 20
_NO_RELATION = "         no group promises to keep the answer: there is no metamorphic relation"

AUDIT = (
    "Is the prompt valid: does it keep the task's entities, relations, operations and "
    "constraints, and which answers are right?",
    "Is the extraction valid: is the extracted answer the one that the response gives in the end?",
    "Is the model wrong: is that answer not equivalent to the key? Only a yes to all three "
    "confirms a model error.",
)


def card(check: BankCheck) -> str:
    """The card of a bank with a grammar, as GitHub-flavoured Markdown with escaped text."""
    return "\n\n".join(_blocks(check)) + "\n"


def lines(check: BankCheck) -> Iterator[str]:
    """The same in a few lines, for a terminal."""
    bank, grammar = check.bank, check.grammar
    kinds = ", ".join(
        f"{count:,} {family}" for family, count in Counter(task.family for task in bank).items()
    )
    yield words.clean(f"bank     {bank.name}: {words.plural(len(bank), 'task')} ({kinds})")
    yield f"         {bank.hash}"
    yield words.clean(f"grammar  {grammar.name}: {words.plural(len(grammar), 'assignment')}")
    yield f"         {grammar.hash}"
    relations = ", ".join(grammar.relations)
    yield words.clean(
        f"         answers must be equivalent under all options of {relations}"
        if relations
        else _NO_RELATION
    )
    yield f"prompts  {check.valid:,} of {check.prompts:,} structurally valid"
    for problem in check.problems[:_MAX_PROBLEMS]:
        yield words.clean(
            f"  {words.plural(problem.prompts, 'prompt')}: {problem.reason} (first {problem.first})"
        )
    if len(check.problems) > _MAX_PROBLEMS:
        yield f"  and {len(check.problems) - _MAX_PROBLEMS:,} other reasons"
    if check.blocked:
        first_tasks = ", ".join(task.id for task in check.blocked[:5])
        yield words.clean(
            f"  {words.plural(len(check.blocked), 'task')} without a valid prompt: {first_tasks}"
        )
    for probe in check.samples:
        yield ""
        yield words.clean(f"--- {probe.key}")
        yield from map(words.clean, probe.prompt.splitlines())


def _blocks(check: BankCheck) -> Iterator[str]:
    bank, grammar = check.bank, check.grammar
    yield f"# Bank card: {escape(bank.name)}"
    if bank.about:
        yield escape(bank.about)
    yield _bullets(
        (
            f"Bank: {words.plural(len(bank), 'task')}, SHA-256 `{bank.hash}`",
            f"Grammar: {escape(grammar.name)}, {words.plural(len(grammar), 'assignment')}, "
            f"SHA-256 `{grammar.hash}`",
            f"Prompts: {check.valid:,} of {check.prompts:,} structurally valid",
        )
    )
    yield "## Families"
    yield _bullets(_families(check))
    yield "## Components"
    yield _bullets(_components(check))
    yield (
        "A group that keeps the answer makes a metamorphic relation: under all its options, "
        "answers are equivalent."
    )
    if check.problems:
        yield "## Prompts that must not be asked"
        yield _bullets(_problems(check))
    yield "## Tasks"
    # a generated bank may have thousands; the hash above covers those that are not listed
    tasks = bank.tasks[:MAX_TASKS]
    if len(tasks) < len(bank):
        yield f"The first {len(tasks):,} of {len(bank):,} tasks."
    for task in tasks:
        yield f"### {escape(task.id)} ({escape(task.family)})"
        yield _bullets(_list_facts(task))
    yield "## What an audit decides of a response"
    yield "\n".join(f"{number}. {escape(line)}" for number, line in enumerate(AUDIT, start=1))
    compared = "its key" if bank.has_keys else "that to the base wording"
    yield (
        f"That an answer differs from {compared} is a routing signal, and that a prompt is "
        "structurally valid does not say that it means the same: both are for a person to judge."
    )


def _list_facts(task: Task) -> Iterator[str]:
    yield f"Question: {escape(task.question)}"
    key = f"Key: {code(task.answer)}" if task.answer else "No key: answers to its wordings"
    yield f"{key}, compared by `{task.rule}`"
    if task.tolerance:
        yield f"Tolerance: {task.tolerance}"
    if task.derivation:
        yield f"Why: {escape(task.derivation)}"
    if task.tags:
        yield f"Checked: {escape(', '.join(task.tags))}"
    for slot, text in task.slots.items():
        yield f"{escape(words.capital(slot))}: {escape(text)}"


def _families(check: BankCheck) -> Iterator[str]:
    for (family, rule), count in Counter((task.family, task.rule) for task in check.bank).items():
        yield f"{escape(family)}, compared by `{rule}`: {words.plural(count, 'task')}"


def _components(check: BankCheck) -> Iterator[str]:
    for group in check.grammar.groups:
        options = ", ".join(option.name for option in group.options)
        keeps = ", ".join(group.keeps) or "nothing promised"
        yield f"{escape(group.name)}: {escape(options)}. Never changes: {keeps}."


def _problems(check: BankCheck) -> Iterator[str]:
    for problem in check.problems[:_MAX_PROBLEMS]:
        prompts = words.plural(problem.prompts, "prompt")
        yield f"{prompts}: {escape(problem.reason)} (first {code(problem.first)})"


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in sentences)
