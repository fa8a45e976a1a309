"""Perturbations put to a pretrained chat model: which families change its answers.

Each question is asked plainly, then with one change at a time. Replies are read and compared by the
graders that probes use. Directional tests ask pairs of questions between which the answer must
rise, fall, change or stay. The last table is of the bank that probes begin with. The answers of
SmolLM2-135M-Instruct are recorded, so that the tables need no model."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import polars as pl

import groundfault
from groundfault import Candidate, Evidence, Plan, models
from groundfault.base.long_work import Progress, listener
from groundfault.errors import InputError
from groundfault.models import Question, Response, Target
from groundfault.probes import Bank, Grammar
from groundfault.probes.bank.rendering import Probe, render
from groundfault.probes.running.answers import route
from groundfault.stats.paired import change
from groundfault_lab.probes.expectations import Expectation, read_expectations
from groundfault_lab.probes.perturbations import AROUND, WORDINGS, perturb
from groundfault_studies.directions import (
    PAIRS,
    QUICK_PAIRS,
    TESTS,
    ask_pairs,
    say_verdicts,
    tabulate_directions,
)
from groundfault_studies.resuming import Rows, resume_parts
from groundfault_studies.shipped_bank import list_bank_replies, tabulate_bank
from groundfault_studies.tables import Kind, PaperRow, PaperStudy, PaperTable, Value

SOURCE = "groundfault's own questions and perturbations"
BANK = Path(__file__).with_name("perturbation_bank.toml")
RECORDED = Path(__file__).with_name("perturbation_answers.parquet")
RECORDED_PAIRS = Path(__file__).with_name("direction_answers.parquet")
PLAIN = "plain"
EXAMPLES = 2
"""First tasks of the bank: asked and answered in each conversation before the question."""

_TASKS_A_PART = 2
_TOKENS, _LONG_TOKENS = 12, 60  # an answer line; a JSON object or steps before it
_LEVEL = 0.95


def study(
    *,
    model: str | None = None,
    quick: bool = False,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Ask all questions plainly and with each change, and compare the answers; then the pairs of
    directional tests.

    Parameters
    ----------
    model : str, optional
        Model to ask, such as ``hf/smollm2``; left out, the questions whose answers are recorded.
    quick : bool
        Every third question, and a third of the pairs.
    keep : path, optional
        File of the answers so far; a study that was interrupted goes on from there.
    progress : callable, optional
    """
    bank, grammar = make_bank()
    tasks = [task.id for task in bank][EXAMPLES:]
    if model is None:
        recorded = _read_recorded()
        tasks = [
            id
            for id in tasks
            if all(probe.key in recorded for _, _, probe in list_probes(bank, grammar, id))
        ]
    tasks = tasks[:: 3 if quick else 1]
    parts = [tasks[start : start + _TASKS_A_PART] for start in range(0, len(tasks), _TASKS_A_PART)]
    name = model or "recorded"
    todo = {f"{name}, {part}, {bank.hash}, {grammar.hash}": (model, part) for part in parts}
    # recorded answers are read in a moment: they need no file to go on from
    place = None if keep is None or model is None else Path(keep)
    work = partial(ask_tasks, bank, grammar)
    rows = resume_parts(todo, work, place, progress=listener(progress))
    expectations, lexicon = read_expectations(TESTS)
    count = QUICK_PAIRS if quick else PAIRS
    pairs = resume_parts(
        {f"{name}, {test}, {lexicon}, {count}": (model, test, count) for test in expectations},
        partial(ask_directions, bank, grammar, lexicon),
        place,
        progress=listener(progress),
    )
    return PaperStudy(
        "perturbations",
        "Which changes of a question change a chat model's answer",
        SOURCE,
        {"model": name, "tasks": len(tasks), "prompts": len(rows), "pairs": len(pairs)},
        (
            _make_change_table(rows),
            tabulate_directions(pairs),
            _make_kind_table(rows),
            _make_mode_table(rows),
            *([tabulate_bank(list_bank_replies())] if model is None else ()),
        ),
    )


def make_bank() -> tuple[Bank, Grammar]:
    """Return the tasks with their perturbed wordings, and the grammar of all families."""
    return perturb(Bank.load(BANK), (*WORDINGS, *AROUND))


def list_probes(bank: Bank, grammar: Grammar, task: str) -> Iterator[tuple[str, str, Probe]]:
    """Yield the family, the change and the prompt of each: the plain one first, then one change
    at a time, where the task allows it."""
    yield PLAIN, PLAIN, render(bank, grammar, task)
    for group in grammar.groups:
        for option in group.options[1:]:
            probe = render(bank, grammar, task, {group.name: option.name})
            family = option.name if group.rewords else group.name
            if not probe.errors:
                yield family, option.name, probe


def ask_tasks(
    bank: Bank, grammar: Grammar, model: str | models.Target | None, ids: list[str]
) -> Rows:
    """Ask some tasks plainly and with each change: a row for each prompt.

    Parameters
    ----------
    bank, grammar
        As `make_bank` returns them.
    model : str or Target, optional
        None for the recorded answers.
    ids : list of str

    Raises
    ------
    InputError
        If the model does not answer.
    """
    rows: Rows = []
    questions = []
    for id in ids:
        for family, name, probe in list_probes(bank, grammar, id):
            task = bank[id]
            about = {"task": id, "kind": task.family, "family": family, "change": name}
            rows.append({**about, "key": probe.key})
            tokens = _LONG_TOKENS if family == "format" else _TOKENS
            questions.append(_make_question(bank, grammar, probe.prompt, tokens))
    if model is None:
        replies = [_read_recorded()[row["key"]] for row in rows]
    else:
        replies = _ask(model, questions)
    for row, reply in zip(rows, replies, strict=True):
        task = bank[row["task"]]
        holds = re.search(rf"(?i)\b{re.escape(task.answer)}\b", reply) is not None
        row |= {"response": reply, "signal": route(task, reply).signal, "holds": holds}
    return rows


def ask_directions(
    bank: Bank,
    grammar: Grammar,
    lexicon: Mapping[str, list[str]],
    model: str | models.Target | None,
    test: Expectation,
    count: int,
) -> Rows:
    """Ask the pairs of a directional test: a row for each.

    Parameters
    ----------
    bank, grammar
        As `make_bank` returns them.
    lexicon : mapping of str to list of str
    model : str or Target, optional
        None for the recorded answers.
    test : Expectation
    count : int
        Number of pairs.

    Raises
    ------
    InputError
        If the model does not answer.
    """
    target = _open(model) if isinstance(model, str) else model
    rows = ask_pairs(_ExampleTarget(bank, grammar, target), test, lexicon, count)
    if any(row[name] is None for row in rows for name in ("base_response", "response")):
        raise InputError(f"{model or RECORDED_PAIRS.name} did not answer the test {test.name!r}")
    return rows


@dataclass(frozen=True)
class _ExampleTarget:
    """Ask a question in the words of the bank, after its examples, or read the recorded answer."""

    bank: Bank
    grammar: Grammar
    target: Target | None

    @property
    def name(self) -> str:
        return self.target.name if self.target else "recorded"

    async def answer(self, question: Question) -> Response:
        asked = question.messages[-1]["content"]
        if self.target is None:
            return Response(_read_pairs()[asked])
        example = next(iter(self.bank))
        plain = render(self.bank, self.grammar, example.id).prompt
        prompt = plain.replace(example.question, asked)
        return await self.target.answer(_make_question(self.bank, self.grammar, prompt, _TOKENS))


@cache
def _read_pairs() -> dict[str, str]:
    table = pl.read_parquet(RECORDED_PAIRS)
    return dict(zip(table["question"], table["response"], strict=True))


def _make_question(bank: Bank, grammar: Grammar, prompt: str, tokens: int) -> Question:
    messages = []
    for task in [*bank][:EXAMPLES]:
        messages.append({"role": "user", "content": render(bank, grammar, task.id).prompt})
        messages.append({"role": "assistant", "content": f"Answer: {task.answer}"})
    messages.append({"role": "user", "content": prompt})
    return Question(messages, temperature=0, max_tokens=tokens)


@cache
def _open(model: str) -> models.Target:
    # loading takes longer than answers; half precision, as they are stored, is slow on processors
    local = {"device": "cpu", "dtype": "float32"} if model.startswith("hf/") else {}
    return models.get(model, **local)


def _ask(model: str | models.Target, questions: list[Question]) -> list[str]:
    target = _open(model) if isinstance(model, str) else model
    replies: dict[int, models.Response] = {}
    # a batch takes as long as its longest answer
    for tokens in (_TOKENS, _LONG_TOKENS):
        part = [place for place, each in enumerate(questions) if each.max_tokens == tokens]
        asked = [questions[place] for place in part]
        answers = models.ask(target, asked, concurrency=len(asked), timeout=600)
        replies |= dict(zip(part, answers, strict=True))
    silent = [one.error for one in replies.values() if one.text is None]
    if silent:
        raise InputError(f"{target.name} did not answer: {silent[0]}")
    return [replies[place].text or "" for place in range(len(questions))]


@cache
def _read_recorded() -> dict[str, str]:
    table = pl.read_parquet(RECORDED)
    return dict(zip(table["key"], table["response"], strict=True))


def _is_wrong(row: Mapping[str, Any]) -> int | None:
    # a reply in other words than the key's, such as "Rome is a nice place", is left to a person
    if row["signal"] == "mismatch" and row["holds"]:
        return None
    return {"match": 0, "mismatch": 1}.get(row["signal"])


def _pair(rows: Rows) -> dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Return the plain and the changed prompt of each task, by family and change."""
    plain = {row["task"]: row for row in rows if row["family"] == PLAIN}
    pairs = defaultdict(list)
    for row in rows:
        if row["family"] != PLAIN:
            pairs[row["family"], row["change"]].append((plain[row["task"]], row))
    return pairs


def _make_change_table(rows: Rows) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {
        "prompts": ("prompts", "count"),
        "unread": ("left to a person", "count"),
        "before": ("right before", "rate"),
        "after": ("right after", "rate"),
        "lost": ("right, then wrong", "count"),
        "won": ("wrong, then right", "count"),
        "difference": ("difference", "lift"),
        "interval": ("95 % interval", "lift"),
        "verdict": ("audit", "text"),
    }
    verdicts = _judge(rows)
    lines = [
        PaperRow(_name(family, name), {**_summarize(pairs), "verdict": verdicts[family, name]})
        for (family, name), pairs in _pair(rows).items()
    ]
    note = (
        "Each prompt differs from the plain one in this change alone. Rates and the interval "
        "(Agresti and Min, of pairs) are of pairs in which a machine can grade both replies. A "
        "reply that cannot be read, or that has the key among other words, is left to a person. "
        "The audit compares a change with the other prompts of the same question, and holds an "
        "error level of 10 % over all changes."
    )
    return PaperTable("One change at a time", note, columns, tuple(lines))


def _name(family: str, name: str) -> str:
    return family if name == family else f"{family}: {name}"


def _summarize(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Value]:
    both = [(_is_wrong(plain), _is_wrong(changed)) for plain, changed in pairs]
    read = [(a, b) for a, b in both if a is not None and b is not None]
    lost, won = read.count((0, 1)), read.count((1, 0))
    here: dict[str, Value] = {
        "prompts": len(pairs),
        "unread": sum(b is None for _, b in both),
        "lost": lost,
        "won": won,
    }
    if read:
        low, high = change([won - lost], [won + lost], [len(read)], _LEVEL)
        here["before"] = 1 - sum(a for a, _ in read) / len(read)
        here["after"] = 1 - sum(b for _, b in read) / len(read)
        here["difference"] = (won - lost) / len(read)
        here["interval"] = (float(low[0]), float(high[0]))
    return here


def _make_evidence(rows: Rows, ignore: tuple[str, ...] = ()) -> Evidence:
    """Return the replies that a machine can grade, with the properties of their prompts."""
    table = pl.DataFrame(
        [
            {
                **{name: row[name] for name in ("key", "task", "kind", "family", "change")},
                "wrong": wrong,
            }
            for row in rows
            if (wrong := _is_wrong(row)) is not None
        ]
    )
    return Evidence.from_table(table, id="key", outcome="wrong", ignore=ignore)


def _judge(rows: Rows) -> dict[tuple[str, str], str]:
    """Say of each change whether an audit within questions confirms that it fails more often."""
    changes = list(_pair(rows))
    candidates = [Candidate(_name(*each), f"change = '{each[1]}'") for each in changes]
    plan = Plan(within=("task",))
    report = groundfault.audit(_make_evidence(rows), plan, candidates, modes=False, ledger=False)
    verdicts = say_verdicts(report, [each.name for each in candidates])
    return {each: verdicts[_name(*each)] for each in changes}


def _make_kind_table(rows: Rows) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {
        "tasks": ("questions", "count"),
        "plain": ("right, plain", "rate"),
        "changed": ("right, changed", "rate"),
        "unread": ("left to a person", "count"),
    }
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        part = [row for row in rows if row["kind"] == kind]
        plain = [row for row in part if row["family"] == PLAIN]
        here: dict[str, Value] = {"tasks": len(plain)}
        here["plain"] = _share_right(plain)
        here["changed"] = _share_right([row for row in part if row["family"] != PLAIN])
        here["unread"] = sum(_is_wrong(row) is None for row in part)
        lines.append(PaperRow(kind, here))
    note = "Of the replies that a machine can grade."
    return PaperTable("Kinds of questions", note, columns, tuple(lines))


def _share_right(rows: Rows) -> float | None:
    read = [wrong for row in rows if (wrong := _is_wrong(row)) is not None]
    return 1 - sum(read) / len(read) if read else None


def _make_mode_table(rows: Rows) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {
        "n": ("prompts", "count"),
        "rate": ("wrong", "rate"),
        "outside": ("wrong elsewhere", "rate"),
    }
    right = {row["task"] for row in rows if row["family"] == PLAIN and _is_wrong(row) == 0}
    changed = [row for row in rows if row["family"] != PLAIN and row["task"] in right]
    report = groundfault.audit(_make_evidence(changed, ("task",)), Plan(), ledger=False)
    lines = [
        PaperRow(mode.meaning, {"n": mode.n, "rate": mode.rate, "outside": mode.rate_outside})
        for mode in report.modes
    ]
    note = (
        "`groundfault audit` of the changed prompts of questions that are right when plain, by "
        "kind, family and change. Prompts of one question count as independent here."
    )
    return PaperTable("Failure modes", note, columns, tuple(lines))
