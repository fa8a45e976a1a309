"""Decisions: one reviewer's answers about one item, in the order of the three questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

import numpy as np

from groundfault.base.arrays import Ints
from groundfault.core.plan import Plan
from groundfault.errors import InputError, PlanError
from groundfault.stats import agreement as stats
from groundfault.stats.agreement import Agreement

Answer = Literal["yes", "no", "unsure"]
Artefact = Literal["extraction", "format"]
Role = Literal["reviewer", "adjudicator"]
Verdict = Literal[
    "invalid_prompt", "extraction_artifact", "format_artifact", "model_error", "no_error", "unsure"
]

ANSWERS: tuple[Answer, ...] = get_args(Answer)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
SAID = ("prompt_valid", "extraction_valid", "artefact", "model_wrong", "note")

# a name has to fit in a table, a note on a page
_MAX_NAME, _MAX_NOTE = 80, 4000


_WORDS = {"y": "yes", "n": "no", "u": "unsure"}


@dataclass(frozen=True)
class ReviewQuestion:
    """One question about an item.

    Attributes
    ----------
    name : str
        The field of a `Decision` that holds the answer.
    text : str
    words : mapping of str to str
        The answer that each key gives.
    required : str
        Why it has to be answered, in a message.
    unread : str
        The text shown if no answer was read; empty if the question stays the same.
    """

    name: str
    text: str
    words: Mapping[str, str]
    required: str
    unread: str = ""

    def word(self, extracted: str | None) -> str:
        """Return the question in the wording for an answer that was, or was not, read."""
        return self.unread if self.unread and extracted is None else self.text


QUESTIONS = {
    question.name: question
    for question in (
        ReviewQuestion(
            "prompt_valid",
            "Does the prompt still ask the task, so that the expected answer is right?",
            _WORDS,
            "it is yes, no, unsure",
        ),
        ReviewQuestion(
            "extraction_valid",
            "Is what was read the response's final answer?",
            _WORDS,
            "it may be left out only if prompt_valid is no",
            "Nothing was read. Is that right: does the response give no final answer?",
        ),
        ReviewQuestion(
            "artefact",
            "Why not: did the extraction misread it, or is the form of the answer to blame?",
            {"e": "extraction", "f": "format"},
            "extraction_valid is no, so say whether extraction or format",
        ),
        ReviewQuestion(
            "model_wrong",
            "Is the response's final answer wrong?",
            _WORDS,
            "it may be left out only after a no",
            "Is that wrong? To give no answer is, where there is one.",
        ),
    )
}
"""All questions by their names, in the order in which they are asked."""


def find_next(question: str, answer: str) -> str | None:
    """Return the question that follows an answer; None if the remaining ones are moot.

    Examples
    --------
    >>> find_next("prompt_valid", "yes"), find_next("prompt_valid", "no")
    ('extraction_valid', None)
    """
    if question == "prompt_valid":
        return None if answer == "no" else "extraction_valid"
    if question == "extraction_valid":
        return "artefact" if answer == "no" else "model_wrong"
    return None


def find_open(answers: Mapping[str, str]) -> str | None:
    """Return the first open question."""
    question: str | None = "prompt_valid"
    while question is not None and question in answers:
        question = find_next(question, answers[question])
    return question


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """One person's answer to any question about an item.

    Attributes
    ----------
    reviewer, item : str
        Who decides, and the item's id.
    note : str
    role : {"reviewer", "adjudicator"}
    time : str
        UTC, ISO 8601; the store's.
    seq : int
        Its place in the store; 0 before it is there.
    unblinded : bool
        Whether the hidden fields had been shown to somebody before; the store's.

    Raises
    ------
    InputError
        If a name is not one, or the note is no text or too long.
    """

    stored: ClassVar[tuple[str, ...]] = ("reviewer", "item", "note", "role")

    reviewer: str
    item: str
    note: str = ""
    role: Role = "reviewer"
    time: str = ""
    seq: int = 0
    unblinded: bool = False

    def __post_init__(self) -> None:
        for name in ("reviewer", "item", "note"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} is {getattr(self, name)!r:.60}; it is text")
        check_name(self.reviewer)
        if self.role not in get_args(Role):
            raise InputError(f"role is {self.role!r}; it is reviewer or adjudicator")
        if len(self.note) > _MAX_NOTE:
            raise InputError(
                f"the note has {len(self.note):,} characters; at most {_MAX_NOTE:,} are kept"
            )

    @property
    def verdict(self) -> Any:
        """Return the answer in one word, by which people agree or not."""
        raise NotImplementedError

    @classmethod
    def read_answers(cls, answers: Mapping[str, str], known: Sequence[str]) -> dict[str, Any]:
        """Return the fields that a form's answers give, beside the note."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return it as the store keeps it; time, place and blinding are the store's to add."""
        return {name: getattr(self, name) for name in self.stored}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **stored: Any) -> Self:
        """Make an opinion of the dict that `to_dict` made."""
        return cls(**{name: data[name] for name in cls.stored}, **stored)


J = TypeVar("J", bound=Opinion)


@dataclass(frozen=True, kw_only=True)
class Decision(Opinion):
    """A reviewer's answers about an item.

    A later question is moot after a "no" and may be left out: no answer to an invalid prompt is
    wrong, and a misread answer shows nothing about the model.

    Attributes
    ----------
    reviewer, item, note, role, time, seq, unblinded
        As of every `Opinion`.
    prompt_valid : {"yes", "no", "unsure"}
        Does the prompt still ask the task?
    extraction_valid : {"yes", "no", "unsure"}, optional
        Is what was read the response's final answer?
    artefact : {"extraction", "format"}, optional
        Where it is not: was it misread, or is the form of the answer to blame?
    model_wrong : {"yes", "no", "unsure"}, optional
        Is the response's final answer wrong?

    Raises
    ------
    InputError
        If an answer is not a choice, a needed answer is missing, or a name is invalid.
    """

    stored = ("reviewer", "item", *SAID, "role")

    prompt_valid: Answer
    extraction_valid: Answer | None = None
    artefact: Artefact | None = None
    model_wrong: Answer | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        answers = {name: getattr(self, name) for name in QUESTIONS}
        for name, value in answers.items():
            choices = tuple(QUESTIONS[name].words.values())
            if value is not None and value not in choices:
                raise InputError(
                    f"{name} is {value!r}; it is {', '.join(choices[:-1])} or {choices[-1]}"
                )
        question = find_open({name: word for name, word in answers.items() if word is not None})
        if question is not None:
            raise InputError(f"{question} is missing; {QUESTIONS[question].required}")
        if self.artefact is not None and self.extraction_valid != "no":
            raise InputError(f"artefact is {self.artefact!r}, but extraction_valid is not no")

    @classmethod
    def read_answers(cls, answers: Mapping[str, str], known: Sequence[str]) -> dict[str, Any]:  # noqa: ARG003
        """Return the fields that a form's answers give, beside the note."""
        return {name: answers[name] for name in QUESTIONS if answers.get(name)}

    @property
    def verdict(self) -> Verdict:
        """Return the verdict: the first question not answered in the item's favour decides."""
        if "unsure" in (self.prompt_valid, self.extraction_valid) and self.prompt_valid != "no":
            return "unsure"
        if self.prompt_valid == "no":
            return "invalid_prompt"
        if self.extraction_valid == "no":
            return "extraction_artifact" if self.artefact == "extraction" else "format_artifact"
        if self.model_wrong == "unsure":
            return "unsure"
        return "model_error" if self.model_wrong == "yes" else "no_error"


def check_name(reviewer: str) -> str:
    """Return the name of a reviewer, or raise `InputError`."""
    is_name = reviewer and reviewer == reviewer.strip() and reviewer.isprintable()
    if not is_name or len(reviewer) > _MAX_NAME:
        raise InputError(
            f"a reviewer has a name of at most {_MAX_NAME} printable characters, "
            f"not {reviewer[:100]!r}"
        )
    return reviewer


def select_latest(decisions: Iterable[J]) -> dict[tuple[str, str, Role], J]:
    """Return the last decision of each reviewer on each item in each role, by place, then by
    time.
    """
    last: dict[tuple[str, str, Role], J] = {}
    for decision in decisions:
        key = (decision.item, decision.reviewer, decision.role)
        # a revision is a new event: history is kept, and the last word of a person counts
        before = last.setdefault(key, decision)
        if (decision.seq, decision.time) >= (before.seq, before.time):
            last[key] = decision
    return last


def select_changes(decisions: Iterable[Decision], earlier: Iterable[Decision]) -> list[Decision]:
    """Return the decisions that differ from the same person's last decision."""
    standing = select_latest(earlier)
    return [
        decision
        for decision in decisions
        if (last := standing.get((decision.item, decision.reviewer, decision.role))) is None
        or last.to_dict() != decision.to_dict()
    ]


How = Literal["waiting", "settled", "disputed", "adjudicated"]


@dataclass(frozen=True)
class Resolution:
    """The verdict on an item, and how it was reached.

    Attributes
    ----------
    how : {"waiting", "settled", "disputed", "adjudicated"}
        Too few have reviewed it; most agree; they do not; or an adjudicator has decided.
    verdict : str or None
        None while it is waiting or disputed; never "unsure".
    reviewers : int
        Who reviewed it, adjudicators not counted.
    unblinded : bool
        Whether a decision that counts was made after unblinding.
    """

    how: How
    verdict: Verdict | None
    reviewers: int
    unblinded: bool


def resolve(decisions: Iterable[Opinion], reviewers: int = 1) -> dict[str, Resolution]:
    """Return the resolution of each item that has a decision, by its id.

    Once ``reviewers`` have decided, the verdict that more than half of them give settles an item:
    of two, both; if they differ, a third. To be unsure is no verdict and no agreement, so one
    unsure reviewer alone leaves an item disputed. The verdict of adjudicators stands before that of
    reviewers, if it is one; who reviewed an item cannot adjudicate it, and what they say as
    adjudicator does not count. The order of the decisions does not matter, but for which of a
    reviewer's is the last.

    Parameters
    ----------
    decisions : iterable of Decision
    reviewers : int
        How many an item needs, at least 1.

    Raises
    ------
    PlanError
        If ``reviewers`` is less than 1.
    """
    if reviewers < 1:
        raise PlanError(f"an item needs at least 1 reviewer, not {reviewers}")
    by_item: dict[str, list[Opinion]] = {}
    for decision in select_latest(decisions).values():
        by_item.setdefault(decision.item, []).append(decision)
    return {item: _resolve_item(votes, reviewers) for item, votes in by_item.items()}


def _resolve_item(decisions: Sequence[Opinion], reviewers: int) -> Resolution:
    reviews = [each for each in decisions if each.role == "reviewer"]
    # an adjudicator who reviewed the item would count twice
    blind = {each.reviewer for each in reviews}
    adjudications = [
        each for each in decisions if each.role == "adjudicator" and each.reviewer not in blind
    ]
    counting = adjudications or reviews
    late = any(each.unblinded for each in counting)
    verdict = _find_majority(counting)
    if adjudications:
        return Resolution("adjudicated" if verdict else "disputed", verdict, len(reviews), late)
    # an early majority does not settle: who reviews first must not decide for the others
    if len(reviews) < reviewers:
        return Resolution("waiting", None, len(reviews), late)
    return Resolution("settled" if verdict else "disputed", verdict, len(reviews), late)


def _find_majority(decisions: Sequence[Opinion]) -> Any:
    """Return the verdict of more than half; None without such a verdict, or if most are unsure."""
    counts = Counter(each.verdict for each in decisions).most_common(1)
    if not counts or 2 * counts[0][1] <= len(decisions) or counts[0][0] == "unsure":
        return None
    return counts[0][0]


_MEASURED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("prompt_valid", "extraction_valid", "model_wrong"), ANSWERS),
    "verdict": VERDICTS,
}
_MEASURES = {"raw": stats.raw, "kappa": stats.cohen, "alpha": stats.krippendorff, "ac1": stats.gwet}


def agreement(
    decisions: Iterable[Decision], *, seed: int = 0, level: float = 0.95
) -> dict[str, dict[str, Agreement]]:
    """Measure agreement on each question and on the verdict: raw, kappa, alpha and AC1.

    They are Cohen's, Krippendorff's and Gwet's.

    The last decision that each reviewer made blind counts; adjudicators, who see only what is
    disputed, do not. A question that was moot to a reviewer is missing; "unsure" is an answer like
    the others.

    Parameters
    ----------
    decisions : iterable of Decision
    seed : int
        Of the bootstrap over items; see `groundfault.stats.agreement`.
    level : float in (0, 1)

    Returns
    -------
    dict of dict of Agreement
        By question, then by ``raw``, ``kappa``, ``alpha`` and ``ac1``.
    """
    # agreement after unblinding would measure the influence of what was shown
    blind = [d for d in decisions if d.role == "reviewer" and not d.unblinded]
    counting = list(select_latest(blind).values())
    return {
        question: _measure(counting, question, Plan(seed=seed), level) for question in _MEASURED
    }


def summarize_agreement(
    decisions: Iterable[Decision], *, seed: int = 0
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return `agreement` as JSON holds it: the fields of each `Agreement`, None for NaN."""
    return {
        question: {
            name: {key: None if value != value else value for key, value in asdict(each).items()}
            for name, each in measures.items()
        }
        for question, measures in agreement(decisions, seed=seed).items()
    }


def _measure(
    decisions: list[Decision], question: str, plan: Plan, level: float
) -> dict[str, Agreement]:
    size = len(_MEASURED[question])

    def read_answer(decision: Decision) -> int | None:
        answer = getattr(decision, question)
        return None if answer is None else _MEASURED[question].index(answer)

    ratings = tabulate_opinions(decisions, read_answer)
    results: dict[str, Agreement] = {}
    for name, measure in _MEASURES.items():
        # Cohen (1960) defined it for two; more need alpha or AC1
        if name == "kappa" and ratings.shape[1] != 2:
            reason = f"Cohen's kappa is of two reviewers, not {ratings.shape[1]}"
            results[name] = Agreement(np.nan, np.nan, np.nan, results["raw"].items, reason)
        else:
            rng = plan.rng(f"agreement on {question}: {name}")
            results[name] = measure(ratings, size, rng, level=level)
    return results


def tabulate_opinions(decisions: Sequence[J], read: Callable[[J], int | None]) -> Ints:
    """Return items by reviewers: the number that is read of each opinion."""
    items = {item: row for row, item in enumerate(sorted({d.item for d in decisions}))}
    people = {name: column for column, name in enumerate(sorted({d.reviewer for d in decisions}))}
    table = np.full((len(items), len(people)), stats.MISSING, dtype=np.int64)
    for decision in decisions:
        if (answer := read(decision)) is not None:
            table[items[decision.item], people[decision.reviewer]] = answer
    return table
