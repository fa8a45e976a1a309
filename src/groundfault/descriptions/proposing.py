"""Proposing: a language model puts the common traits of failing examples into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal

import msgspec
import numpy as np

from groundfault.base.arrays import Bools
from groundfault.base.long_work import stream
from groundfault.errors import InputError, PlanError
from groundfault.models.budget import CallBudget, CallEstimate
from groundfault.models.question import Question
from groundfault.models.replies import (
    ModelRequest,
    Prompts,
    Unreadable,
    check_line,
    decode,
    escape_unprintable,
    fence,
)
from groundfault.models.target import Target

Arm = Literal["outcomes", "blind", "shuffled", "named"]

ARMS: dict[Arm, str] = {
    "outcomes": "from examples with their outcomes",
    "blind": "from examples without outcomes",
    "shuffled": "from shuffled outcomes (control)",
    "named": "by you",
}
"""Origins of a description: its proposer saw true outcomes, no outcomes, or shuffled ones."""

MAX_LENGTH = 200
"""Characters of a description."""

PROMPTS = Prompts("groundfault.descriptions")

_TOKENS = 40  # of one description in a reply, about


@dataclass(frozen=True)
class ProposingSettings:
    """The settings of questions for descriptions.

    Attributes
    ----------
    arms : tuple of str
        Arms from `ARMS`, except ``named``.
    rounds : int
        Questions in each arm, each with its own examples.
    examples : int
        Failing examples in one question, and as many passing ones; without outcomes, twice as many
        drawn at random.
    count : int
        Largest number of descriptions in one reply.
    runs : bool
        Whether to describe behaviour in runs, from their steps or answers, instead of examples. A
        description of runs says how they fail, and is not a rule.

    Raises
    ------
    PlanError
        If an arm does not exist, or a number is below 1.
    """

    arms: tuple[Arm, ...] = ("outcomes", "blind", "shuffled")
    rounds: int = 3
    examples: int = 10
    count: int = 5
    runs: bool = False

    def __post_init__(self) -> None:
        for arm in self.arms:
            if arm not in ARMS or arm == "named":
                raise PlanError(
                    f"there is no arm {arm!r}; descriptions are proposed from outcomes, blind or "
                    "from shuffled outcomes"
                )
        if min(self.rounds, self.examples, self.count) < 1:
            raise PlanError("rounds, examples and descriptions of a reply must be at least 1")


@dataclass(frozen=True)
class ExampleDescription:
    """A property that an example may have, in words.

    Attributes
    ----------
    text : str
        One printable line of at most `MAX_LENGTH` characters.
    arms : tuple of str
        All its origins, in the order of `ARMS`.

    Raises
    ------
    InputError
        If the text is longer, or not one line that prints as itself, or an arm is unknown.
    """

    text: str
    arms: tuple[Arm, ...]

    def __post_init__(self) -> None:
        try:
            check_line(self.text, MAX_LENGTH, "description")
        except Unreadable as error:
            raise InputError(f"{self.text[:40]!r} is no description: {error}") from None
        if not self.arms or not set(self.arms) <= set(ARMS):
            raise InputError(f"{self.text[:40]!r} came about in a way that is not known here")

    @property
    def owes_outcomes(self) -> bool:
        """Return whether all its proposers looked at outcomes, true or shuffled ones."""
        return not {"blind", "named"} & set(self.arms)


@dataclass(frozen=True)
class DescribingCost:
    """An upper bound of the cost of describing, without recorded replies.

    Repeated questions after unreadable replies and failed calls are not counted.

    Attributes
    ----------
    proposals, annotations, checks : CallEstimate
        Cost to propose descriptions, to decide on examples, and to let a second model decide again,
        for the most and longest descriptions allowed.
    examples, check : int
        Distinct texts to decide on, and texts to decide on again.
    """

    proposals: CallEstimate
    annotations: CallEstimate
    checks: CallEstimate
    examples: int
    check: int

    def describe(self, prices: tuple[float, float] | None = None) -> str:
        """Return the cost in words.

        Parameters
        ----------
        prices : pair of float, optional
            US dollars for a million tokens, of questions and of replies.
        """
        total = self.proposals + self.annotations + self.checks
        again = f", and for {self.check:,} of these again" * bool(self.check)
        return (
            f"at most {total.describe(prices)}, if every reply can be read: "
            f"{self.proposals.calls:,} for proposals, then up to "
            f"{self.annotations.calls // self.examples} for each of {self.examples:,} examples"
            f"{again}"
        )


class _DescriptionsReply(msgspec.Struct, forbid_unknown_fields=True):
    descriptions: list[str]


def propose_descriptions(
    texts: Sequence[str],
    failing: Bools,
    target: Target,
    budget: CallBudget,
    settings: ProposingSettings,
    seed: int = 0,
) -> tuple[list[ExampleDescription], dict[str, dict[str, int]]]:
    """Ask for descriptions in every arm, only from discovery examples.

    Parameters
    ----------
    texts : sequence of str
        The texts of discovery examples, each once.
    failing : bool array, shape (texts,)
        The arm ``blind`` does not read this; ``shuffled`` reads it in a random order, which reveals
        only the number of failures.
    target : Target
    budget : CallBudget
    settings : ProposingSettings
    seed : int
        Seed of the draws; also sent to the model.

    Returns
    -------
    descriptions : list of ExampleDescription
        Each once, ignoring case; a description from several arms belongs to all these arms.
    replies : dict of dict of int
        For each arm, numbers of replies that were read, unparsed, refused or errors.

    Raises
    ------
    InputError
        If no reply of any arm can be read; and as `CallBudget.ask_for`.
    """
    if not settings.arms:
        return [], {}
    arms = [arm for arm in settings.arms for _ in range(settings.rounds)]
    requests = list(_make_requests(texts, failing, settings, seed))
    replied = budget.ask_for(target, requests, "proposing descriptions", settings.count * _TOKENS)
    counts: dict[str, Counter[str]] = {arm: Counter() for arm in settings.arms}
    texts_of: dict[str, tuple[str, set[Arm]]] = {}
    for arm, reply in zip(arms, replied, strict=True):
        counts[arm][reply.status] += 1
        for text in reply.value or ():
            texts_of.setdefault(text.casefold(), (text, set()))[1].add(arm)
    if all(reply.value is None for reply in replied):
        raise InputError(
            f"{target.name} proposed no description that can be read: {replied[0].status} "
            f"({replied[0].reason}); its replies are on record"
        )
    descriptions = [
        ExampleDescription(text, tuple(arm for arm in ARMS if arm in by))
        for text, by in texts_of.values()
    ]
    return descriptions, {arm: dict(count) for arm, count in counts.items()}


def estimate_proposals(
    texts: Sequence[str], failing: Bools, settings: ProposingSettings, seed: int = 0
) -> CallEstimate:
    """Estimate the cost of `propose_descriptions` without recorded replies."""
    requests = _make_requests(texts, failing, settings, seed)
    return CallEstimate.of((one.question for one in requests), settings.count * _TOKENS)


def _make_requests(
    texts: Sequence[str], failing: Bools, settings: ProposingSettings, seed: int
) -> Iterator[ModelRequest[list[str]]]:
    for arm, number in product(settings.arms, range(settings.rounds)):
        rng = stream(seed, f"descriptions {arm}", number)
        if arm == "blind":
            size = min(2 * settings.examples, len(texts))
            shown = rng.choice(len(texts), size, replace=False)
            prompt, places = "propose_blind", {}
        else:
            labels = rng.permutation(failing) if arm == "shuffled" else failing
            sides = [
                rng.choice(side, min(settings.examples, len(side)), replace=False)
                for side in (np.flatnonzero(labels), np.flatnonzero(~labels))
            ]
            shown, first = np.concatenate(sides), len(sides[0])
            prompt = "propose"
            places = {"failing": _span(1, first), "passing": _span(first + 1, len(shown))}
        parts = fence([texts[i] for i in shown])
        prompt += "_runs" * settings.runs
        content = PROMPTS.fill(prompt, count=len(shown), wanted=settings.count, **places, **parts)
        # a repeat of its own: few examples may be drawn twice, and would be one question
        question = Question(content, seed=seed, repeat=number)
        yield ModelRequest(question, partial(_read, settings.count))


def _span(first: int, last: int) -> str:
    return f"{first} to {last}" if first < last else f"{first}"


def _read(most: int, text: str) -> list[str]:
    lines = decode(text, _DescriptionsReply).descriptions
    if len(lines) > most:
        raise Unreadable(f"it holds {len(lines)} descriptions, and must hold at most {most}")
    return [
        check_line(escape_unprintable(line.strip()), MAX_LENGTH, "description") for line in lines
    ]
