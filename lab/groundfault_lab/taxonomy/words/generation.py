"""Generation: new tasks that demand what a cluster's tasks demand, and variants of these tasks.

Every candidate stays in the result, with its status.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count as count_from
from typing import Unpack

import msgspec

from groundfault.base.long_work import listener, stream
from groundfault.errors import InputError, PlanError, require_name
from groundfault.models import Question, Target, get, replies
from groundfault.models.asking import AskOptions
from groundfault.models.replies import ModelRequest, Prompts, Reply, Unreadable, fence
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy
from groundfault_lab.taxonomy.words.labelling import hash_taxonomy
from groundfault_lab.taxonomy.words.new_tasks import (
    GeneratedTasks,
    NewTask,
    Status,
    find_answer_kind,
    find_fault,
    is_same_answer,
    reject_copies,
)
from groundfault_lab.taxonomy.words.variants import RULES, Source, vary

LEVELS = ("easy", "medium", "hard")
"""Difficulties of new tasks."""

CHANGES = {"rephrase": True, "swap": False, "reorder": True, "complexity": False}
"""Variants by a model, and whether the answer stays the same."""

_PROMPTS = Prompts("groundfault_lab.taxonomy.words")
_KINDS = ("new", "variant", "solve", *LEVELS, *CHANGES)

# tasks a request: longer replies may be cut off at the limit of tokens
_BATCH = 10
# of the cluster, in a request
_SHOWN = 5


class _Task(msgspec.Struct, forbid_unknown_fields=True):
    question: str
    answer: str | int | float


class _Tasks(msgspec.Struct, forbid_unknown_fields=True):
    tasks: list[_Task]


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    answer: str | int | float


@dataclass(frozen=True)
class _Pool:
    """The examples of a cluster, the nearest to its centre first."""

    cluster: int
    sources: tuple[Source, ...]
    kind: str | None


def generate(
    taxonomy: Taxonomy,
    clusters: Sequence[int] = (),
    *,
    model: str | Target | None = None,
    solver: str | Target | None = None,
    kinds: Sequence[str] = (),
    text: str | None = None,
    answer: str | None = None,
    solution: str | None = None,
    count: int = 10,
    variants: int = 20,
    solves: int = 3,
    against: Mapping[str, str] | None = None,
    seed: int = 0,
    **options: Unpack[AskOptions],
) -> GeneratedTasks:
    """Make candidates for new tasks from clusters, each with its status and the reason.

    Parameters
    ----------
    taxonomy : Taxonomy
    clusters : sequence of int
        Number of a cluster; by default all published ones.
    model : str or Target, optional
        Model that writes new tasks; without one, variants are made by rule only.
    solver : str or Target, optional
        Model that solves the new tasks; by default --model.
    kinds : sequence of str
        Kind of task, of those above; by default all. They are
        `groundfault_lab.taxonomy.words.variants.RULES`, `LEVELS` and `CHANGES`.
    text : str, optional
        Column of texts; by default the only column of prose.
    answer : str, optional
        Column of expected answers, or of worked solutions that end in '#### answer'.
    solution : str, optional
        Column of worked solutions, with calculations such as <<2*3=6>>.
    count : int
        Number of new tasks of each level and cluster (50 in the paper).
    variants : int
        Number of examples of each cluster that are varied. Those nearest to its centre.
    solves : int
        Number of solutions that must agree for an expected answer. A task is keyed if every one is
        the answer that it came with.
    against : mapping of str to str, optional
        Further texts, by name, that must not be copied.
    seed : int
        Of every random act; handed to the model as well.
    **options
        For `groundfault.models.ask`: progress, record, concurrency, temperature, ...

    Raises
    ------
    InputError
        If there is no such cluster or column, and what `groundfault.models.ask` raises.
    PlanError
        If a kind is unknown, needs a model, or a number is out of range.

    Notes
    -----
    FailureScope (arXiv:2606.09878), stage 6, which asks for 50 tasks a level and checks neither
    answers nor variants. That a model solves a task it wrote alike again makes the answer likelier
    and does not prove it; tasks that it gets wrong are left to be checked, so what is keyed is
    easier for it than what it wrote."""
    if count < 1 or variants < 1 or solves < 0:
        raise PlanError(f"count {count}, variants {variants}, solves {solves}: at least 1, 1 and 0")
    kinds_to_make = _select_kinds(kinds, model is not None)
    column = taxonomy.matrix.find_text_column(text, (answer, solution))
    pools = [
        _make_pool(taxonomy, number, column, answer, solution)
        for number in _select_clusters(taxonomy, clusters)
    ]
    # a task that copies any of these is rejected
    own = zip(taxonomy.matrix.examples, taxonomy.matrix.read_words(column), strict=True)
    texts = {name: words for name, words in own if words} | dict(against or {})
    rules = [kind for kind in kinds_to_make if kind in RULES]
    tasks, skipped = _vary_by_rule(pools, rules, variants, seed)
    writer = None if model is None else get(model)
    # the writer checks itself only where no other model is at hand
    checker = writer if solver is None else get(solver)
    report = options["progress"] = listener(options.get("progress"))
    if writer is not None:
        levels = [kind for kind in kinds_to_make if kind not in RULES]
        tasks += _ask_model(pools, levels, writer, count, variants, seed, options)
    # keys of all pools, for a task's sources are named by id
    keys = {source.id: source.answer for pool in pools for source in pool.sources}
    kind_of = {pool.cluster: pool.kind for pool in pools}
    candidates = [_validate(task, kind_of[task.cluster], keys) for task in tasks]
    report("comparing with known texts")
    candidates = reject_copies(candidates, texts)
    if checker is not None:
        candidates = _solve(candidates, checker, solves, seed, options)
    settings = {
        "model": None if writer is None else writer.name,
        "solver": None if checker is None else checker.name,
        "clusters": [pool.cluster for pool in pools],
        "unstable": [cluster.number for cluster in taxonomy.unstable],
        "kinds": kinds_to_make,
        "count": count,
        "variants": variants,
        "solves": solves,
        "seed": seed,
        "known_texts": len(texts),
        "prompts": {name: _PROMPTS.hash(name) for name in _KINDS},
    }
    return GeneratedTasks(hash_taxonomy(taxonomy), tuple(candidates), skipped, settings)


def _select_kinds(kinds: Sequence[str], model: bool) -> list[str]:
    ours, theirs = list(RULES), [*LEVELS, *CHANGES]
    for kind in kinds:
        require_name("kind", kind, ours + theirs)
        if kind in theirs and not model:
            raise PlanError(
                f"kind {kind!r} needs a model (model=, or --model); without one there are "
                f"{', '.join(ours)}"
            )
    return list(dict.fromkeys(kinds)) or (ours + theirs if model else ours)


def _select_clusters(taxonomy: Taxonomy, clusters: Sequence[int]) -> list[int]:
    there = [cluster.number for cluster in taxonomy.clusters]
    for number in clusters:
        require_name("cluster", number, there, InputError)
    numbers = list(dict.fromkeys(clusters)) or [cluster.number for cluster in taxonomy.published]
    if not numbers:
        raise InputError(
            "no cluster is published; name one that is not (clusters=, or --cluster), at your own "
            "risk"
        )
    return numbers


def _make_pool(
    taxonomy: Taxonomy, number: int, text: str, answer: str | None, solution: str | None
) -> _Pool:
    matrix = taxonomy.matrix
    questions, keys, worked = (
        matrix.read_words(column) if column else [None] * len(matrix)
        for column in (text, answer, solution)
    )
    sources = tuple(
        Source.of(matrix.examples[i], question, keys[i], worked[i])
        for i in taxonomy.list_members(number)
        if (question := questions[i])
    )
    if not sources:
        raise InputError(f"no example of cluster {number} has a text in column {text!r}")
    return _Pool(number, sources, find_answer_kind(source.answer for source in sources))


def _vary_by_rule(
    pools: Sequence[_Pool], rules: Sequence[str], variants: int, seed: int
) -> tuple[list[NewTask], dict[str, dict[str, int]]]:
    """Make variants by rule; also say why there is none of some."""
    tasks, skipped = [], {rule: Counter[str]() for rule in rules}
    for pool in pools:
        for rule in rules:
            number = 0
            for source in pool.sources[:variants]:
                # a stream of its own for each rule and source: other rules or clusters change
                # nothing
                change = vary(rule, source, stream(seed, f"taxonomy variant {rule} {source.id}"))
                if isinstance(change, str):
                    skipped[rule][change] += 1
                    continue
                number += 1
                task = NewTask(
                    id=f"c{pool.cluster}-{rule}-{number:03d}",
                    cluster=pool.cluster,
                    kind="variant",
                    how=rule,
                    question=change.question,
                    answer=change.answer,
                    status="keyed" if change.certain else "needs_check",
                    reason=change.how,
                    sources=(source.id,),
                    seed=seed,
                )
                tasks.append(task)
    return tasks, {rule: dict(counts.most_common()) for rule, counts in skipped.items() if counts}


@dataclass(frozen=True)
class _Order:
    """A request for tasks, and what it is made from."""

    cluster: int
    how: str
    sources: tuple[Source, ...]
    request: ModelRequest[list[_Task]]


def _ask_model(
    pools: Sequence[_Pool],
    kinds: Sequence[str],
    target: Target,
    count: int,
    variants: int,
    seed: int,
    options: AskOptions,
) -> list[NewTask]:
    orders = [
        order
        for pool in pools
        for kind in kinds
        for order in _make_orders(pool, kind, count, variants, seed)
    ]
    replied = replies.ask_for(target, [order.request for order in orders], **options)
    numbers: dict[str, Iterator[int]] = defaultdict(lambda: count_from(1))
    return [
        _write_task(f"{stem}-{next(numbers[stem]):03d}", order, reply, value, target.name, seed)
        for order, reply in zip(orders, replied, strict=True)
        for stem in [f"c{order.cluster}-{order.how}"]
        for value in reply.value or (None,)
    ]


def _make_orders(pool: _Pool, kind: str, count: int, variants: int, seed: int) -> Iterator[_Order]:
    if kind in CHANGES:
        for source in pool.sources[:variants]:
            parts = fence([source.question], [source.answer])
            prompt = _PROMPTS.fill("variant", change=_PROMPTS.fill(kind), **parts)
            request = ModelRequest(
                Question(prompt, seed=seed), lambda text: [replies.decode(text, _Task)]
            )
            yield _Order(pool.cluster, kind, (source,), request)
        return
    for batch, start in enumerate(range(0, count, _BATCH)):
        # the first batch sees the nearest examples, later ones a draw, or they would repeat the
        # first
        rng = stream(seed, f"taxonomy new tasks {kind} {pool.cluster}", batch)
        examples = pool.sources[:_SHOWN]
        if batch:
            places = rng.choice(len(pool.sources), len(examples), replace=False)
            examples = tuple(pool.sources[i] for i in places)
        parts = fence([each.question for each in examples], [each.answer for each in examples])
        size, level = min(_BATCH, count - start), _PROMPTS.fill(kind)
        prompt = _PROMPTS.fill("new", count=len(examples), wanted=size, level=level, **parts)
        # the repeat makes the question differ, or a record would answer it with the first batch
        question = Question(prompt, seed=seed + batch, repeat=batch)
        request = ModelRequest(question, partial(_read_several, size))
        yield _Order(pool.cluster, kind, examples, request)


def _read_several(max_tasks: int, text: str) -> list[_Task]:
    if not (tasks := replies.decode(text, _Tasks).tasks):
        raise Unreadable(f"it has no tasks, and must have 1 to {max_tasks}")
    return tasks[:max_tasks]


def _write_task(
    name: str,
    order: _Order,
    reply: Reply[list[_Task]],
    content: _Task | None,
    target: str,
    seed: int,
) -> NewTask:
    return NewTask(
        id=name,
        cluster=order.cluster,
        kind="variant" if order.how in CHANGES else "new",
        how=order.how,
        question=content.question.strip() if content else "",
        answer=str(content.answer).strip() if content else None,
        status="needs_check" if reply.status == "read" else reply.status,
        reason="its answer is what the model that wrote it says" if content else reply.reason,
        sources=tuple(source.id for source in order.sources),
        by=target,
        prompt=reply.question,
        seed=seed,
    )


def _validate(task: NewTask, kind: str | None, keys: Mapping[str, str | None]) -> NewTask:
    if not task.open:
        return task
    # rules keep the form of an answer by construction; a model may not
    if wrong := find_fault(task, None if task.by == "rule" else kind):
        return task.reject(wrong)
    if CHANGES.get(task.how):
        key = keys[task.sources[0]]
        if key is not None and not is_same_answer(task.answer, key):
            return task.reject("its answer is not its source's, which this variant must keep")
    return task


def _solve(
    tasks: Sequence[NewTask], target: Target, solves: int, seed: int, options: AskOptions
) -> list[NewTask]:
    """Solve tasks that a model wrote; those whose solutions all give their answer are keyed."""
    at = [i for i, task in enumerate(tasks) if task.open and task.by != "rule"]
    prompts = [_PROMPTS.fill("solve", **fence([tasks[i].question])) for i in at]
    requests = [
        ModelRequest(
            Question(prompt, seed=seed + k, repeat=k),
            lambda text: str(replies.decode(text, _Answer).answer),
        )
        for prompt in prompts
        for k in range(solves)
    ]
    replied = replies.ask_for(target, requests, **options)
    solutions = list(tasks)
    for n, i in enumerate(at):
        answer = replied[n * solves : (n + 1) * solves]
        # every solution has to agree: one that differs leaves the key to a person
        alike = sum(is_same_answer(reply.value, tasks[i].answer) for reply in answer)
        replies_to = f"{alike} of {solves} solutions by {target.name} give its answer"
        status: Status = "keyed" if solves and alike == solves else "needs_check"
        solutions[i] = replace(tasks[i], status=status, reason=replies_to)
    return solutions
