"""Candidates for new tasks: checks of each, and which may be scored against their answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from groundfault.core.equivalence import compare, natural_rule, normal
from groundfault.stats.near_duplicates import DuplicatePair, find_near_duplicates
from groundfault_lab.taxonomy.words.variants import LONGEST

Status = Literal["keyed", "needs_check", "rejected", "unparsed", "refused", "error"]

# characters: "2+2=?" is the shortest question, and a longer answer cannot be compared as a key
SHORTEST, LONGEST_ANSWER = 5, 500
_STEERING = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
# a few keys of another form are mistakes of the benchmark
_MOSTLY = 0.9
_KINDS = {"integer": "a number", "numeric": "a number", "yes_no": "yes or no"}


@dataclass(frozen=True)
class NewTask:
    """A candidate for a new task, with its status.

    Attributes
    ----------
    id : str
    cluster : int
    kind : {"new", "variant"}
    how : str
        The rule or the change that made a variant; the level of difficulty of a new task.
    question : str
        Empty where a model gave none.
    answer : str or None
    status : {"keyed", "needs_check", "rejected", "unparsed", "refused", "error"}
        Only a keyed task has an answer that others may be scored against.
    reason : str
        Where its answer comes from, or why it is not keyed.
    sources : tuple of str
        Names of the examples it was made from.
    by : str
        ``rule``, or the model's target.
    prompt : str
        Hash of the question that was put to the model; empty of a rule.
    seed : int
    """

    id: str
    cluster: int
    kind: Literal["new", "variant"]
    how: str
    question: str
    answer: str | None
    status: Status
    reason: str
    sources: tuple[str, ...]
    by: str = "rule"
    prompt: str = ""
    seed: int = 0

    @property
    def open(self) -> bool:
        """Tell whether it is not turned down so far."""
        return self.status in ("keyed", "needs_check")

    def reject(self, reason: str) -> NewTask:
        """Return the task, turned down."""
        return replace(self, status="rejected", reason=reason)


@dataclass(frozen=True)
class GeneratedTasks:
    """All candidates for new tasks; `groundfault_lab.taxonomy.generate` makes one.

    Attributes
    ----------
    taxonomy : str
        Hash of the taxonomy's examples and clusters.
    tasks : tuple of NewTask
    skipped : dict of str to dict of str to int
        How many examples a rule made no variant of, by rule and reason.
    settings : dict
        Of the call: models, seeds, hashes of prompts.
    """

    taxonomy: str
    tasks: tuple[NewTask, ...]
    skipped: dict[str, dict[str, int]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def keyed(self) -> tuple[NewTask, ...]:
        """Return the tasks that may be scored against their answer."""
        return tuple(task for task in self.tasks if task.status == "keyed")

    def counts(self) -> dict[str, dict[str, int]]:
        """Count how many candidates of each way came to which status."""
        table: dict[str, Counter[str]] = {}
        for task in self.tasks:
            table.setdefault(task.how, Counter())[task.status] += 1
        return {how: dict(sorted(counts.items())) for how, counts in table.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the account, without the tasks themselves."""
        return {
            "groundfault_tasks": 1,
            "taxonomy": self.taxonomy,
            "candidates": len(self.tasks),
            "keyed": len(self.keyed),
            "counts": self.counts(),
            "skipped": self.skipped,
            "settings": self.settings,
        }


def find_answer_kind(answers: Iterable[str | None]) -> str | None:
    """Find the rule that compares nearly all keys; None where they differ or there are none."""
    rules = Counter(
        {"numeric": "integer"}.get(rule := natural_rule(key), rule) for key in answers if key
    )
    if not rules:
        return None
    rule, count = rules.most_common(1)[0]
    return rule if rule != "exact" and count >= _MOSTLY * rules.total() else None


def find_fault(task: NewTask, kind: str | None) -> str:
    """Say what is wrong with a candidate, in a sentence; empty where nothing is.

    Parameters
    ----------
    task : NewTask
    kind : str or None
        What `kind_of_answers` says of the sources' answers.
    """
    question, answer = task.question.strip(), task.answer
    # first the cheap checks: the patterns below are run on bounded text only
    if not SHORTEST <= len(question) <= LONGEST:
        return f"the question has {len(question):,} characters; {SHORTEST} to {LONGEST:,} are taken"
    if _STEERING.search(question) or (answer and _STEERING.search(answer)):
        return "it holds characters that do not print"
    if answer is None:
        return ""
    if not normal(answer) or len(answer) > LONGEST_ANSWER:
        return f"the answer has {len(answer):,} characters; 1 to {LONGEST_ANSWER} are taken"
    # the form of the key decides how answers are compared, so it has to be that of the sources
    rule = natural_rule(answer)
    if kind is not None and {"numeric": "integer"}.get(rule, rule) != kind:
        return f"its answer is not {_KINDS[kind]}, as those of its sources are"
    if re.search(
        rf"\banswer\s*(?:is|:|=)\s*\(?{re.escape(answer.strip())}(?!\w)", question, re.IGNORECASE
    ):
        return "the question gives its answer away"
    return ""


def is_same_answer(answer: str | None, key: str | None) -> bool:
    """Tell whether an answer is the key, by the rule that the key's form asks for."""
    return bool(answer and key and compare(answer, key, natural_rule(key)).same)


def reject_copies(tasks: Sequence[NewTask], earlier_texts: dict[str, str]) -> list[NewTask]:
    """Turn down candidates that are too like a known text or an earlier candidate.

    The thresholds are those of `groundfault.stats.near_duplicates.find_near_duplicates`.

    Parameters
    ----------
    tasks : sequence of NewTask
    earlier_texts : dict of str to str
        Names and texts: the taxonomy's examples, and whatever else must not be copied.

    Notes
    -----
    A variant resembles its source and the other variants of it on purpose: there only the first
    measure counts, by which a variant that changes next to nothing is turned down. Known texts are
    compared with open candidates only."""
    at = [i for i, task in enumerate(tasks) if task.open]
    names, candidates = list(earlier_texts), list(tasks)
    copy: dict[int, list[DuplicatePair]] = {}
    questions = [tasks[i].question for i in at]
    for pair in find_near_duplicates(questions, list(earlier_texts.values())):
        copy.setdefault(at[pair.text], []).append(pair)
    for i in at:
        for pair in copy.get(i, ()):
            other = None if pair.other < len(names) else candidates[at[pair.other - len(names)]]
            # a rejected task leaves its place to a later one like it
            if other is not None and not other.open:
                continue
            name = names[pair.other] if other is None else other.id
            if pair.how != "jaccard" and _are_variants(candidates[i], name, other):
                continue
            candidates[i] = candidates[i].reject(
                f"too like {name}: {_MEASURES[pair.how]} {pair.value:.2f}"
            )
            break
    return candidates


_MEASURES = {
    "jaccard": "Jaccard index of word 3-grams",
    "containment": "share of its word 3-grams",
    "letters": "cosine of letters",
}


def _are_variants(task: NewTask, name: str, other: NewTask | None) -> bool:
    """Tell whether a variant is compared with its source, or with another variant of it."""
    if task.kind != "variant":
        return False
    return (
        name in task.sources
        if other is None
        else other.kind == "variant" and other.sources == task.sources
    )
