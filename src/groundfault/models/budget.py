"""Budgets: estimate the cost of calls before they are made, and limit their number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TypedDict, TypeVar

from groundfault.base.long_work import listener
from groundfault.errors import PlanError
from groundfault.models import replies
from groundfault.models.asking import AskOptions
from groundfault.models.question import Question, Response
from groundfault.models.record import Record
from groundfault.models.replies import ModelRequest, Reply
from groundfault.models.target import Target

T = TypeVar("T")

MAX_CALLS = 5_000
"""Default of the largest number of calls."""

_BYTES = 4  # of UTF-8 for one token, about


@dataclass(frozen=True)
class CallEstimate:
    """Estimated cost of questions.

    Attributes
    ----------
    calls : int
        Questions that are still to be asked.
    recorded : int
        Questions whose answers are on record and free.
    input_tokens, output_tokens : int
        Approximate tokens of these calls, counting four bytes of text as a token.
    """

    calls: int
    recorded: int
    input_tokens: int
    output_tokens: int

    @classmethod
    def of(
        cls, questions: Iterable[Question], reply_tokens: int, recorded: int = 0
    ) -> CallEstimate:
        """Estimate the cost of asking all questions, with this many tokens a reply."""
        # one at a time: a million of them need not be in memory
        sizes = [sum(len(m["content"].encode()) for m in one.messages) for one in questions]
        return cls(len(sizes), recorded, sum(sizes) // _BYTES, len(sizes) * reply_tokens)

    def __add__(self, other: CallEstimate) -> CallEstimate:
        return CallEstimate(*map(operator.add, astuple(self), astuple(other)))

    def describe(self, prices: tuple[float, float] | None = None) -> str:
        """Return the estimate in words.

        Parameters
        ----------
        prices : pair of float, optional
            US dollars for a million tokens, of questions and of replies.

        Raises
        ------
        PlanError
            If a price is negative, or not a number.

        Examples
        --------
        >>> CallEstimate(800, 200, 400_000, 20_000).describe((2.5, 10.0))
        '800 calls (200 more are on record), about 400,000 tokens in and 20,000 out, about $1.20'
        """
        _check_prices(prices)
        recorded = f" ({self.recorded:,} more are on record)" if self.recorded else ""
        text = (
            f"{self.calls:,} call{'s' * (self.calls != 1)}{recorded}, about "
            f"{self.input_tokens:,} tokens in and {self.output_tokens:,} out"
        )
        if prices is None:
            return text
        dollars = (self.input_tokens * prices[0] + self.output_tokens * prices[1]) / 1e6
        return f"{text}, about ${dollars:,.2f}"


def estimate_calls(
    target: Target, questions: Sequence[Question], reply_tokens: int, record: Record | None = None
) -> CallEstimate:
    """Estimate the cost of questions to a target, each once, without questions on record.

    Parameters
    ----------
    target : Target
    questions : sequence of Question
    reply_tokens : int
        Approximate tokens of one reply.
    record : Record, optional

    Raises
    ------
    InputError
        If the record cannot be written to.
    """
    by_hash = {question.hash: question for question in questions}
    answers = record.answers(target.name, list(by_hash)) if record and by_hash else {}
    new = [question for name, question in by_hash.items() if name not in answers]
    return CallEstimate.of(new, reply_tokens, len(answers))


def _check_prices(prices: tuple[float, float] | None) -> None:
    if prices is not None and not all(0 <= price < math.inf for price in prices):
        raise PlanError("a price (--price) is at least 0 dollars for a million tokens")


class BudgetSettings(TypedDict, total=False):
    """Settings of a `CallBudget`, which describes them."""

    max_calls: int
    record: str | Path | Record | None
    prices: tuple[float, float] | None
    announce: Callable[[str], object] | None


@dataclass
class CallBudget:
    """Asks models within a number of calls, and announces the cost of each batch before asking it.

    Attributes
    ----------
    max_calls : int
        Largest number of calls to all targets together, including further attempts after errors.
    record : path, URL or Record, optional
        See `groundfault.models.ask_async`; questions answered there need no call.
    prices : pair of float, optional
        US dollars for a million tokens, of questions and of replies.
    announce : callable, optional
        Called with a sentence before each batch.
    options : dict
        Further arguments of `groundfault.models.ask`.
    calls : int
        Calls made so far.
    """

    max_calls: int = MAX_CALLS
    record: str | Path | Record | None = None
    prices: tuple[float, float] | None = None
    announce: Callable[[str], object] | None = None
    options: AskOptions = field(default_factory=AskOptions)
    calls: int = 0

    def __post_init__(self) -> None:
        if self.max_calls < 0:
            raise PlanError(f"max_calls={self.max_calls} (--max-calls) must be at least 0")
        _check_prices(self.prices)
        if self.record is not None and not isinstance(self.record, Record):
            self.record = Record(self.record)

    def ask_for(
        self, target: Target, requests: Sequence[ModelRequest[T]], purpose: str, reply_tokens: int
    ) -> list[Reply[T]]:
        """Ask like `groundfault.models.replies.ask_for`, if enough calls are left.

        Parameters
        ----------
        target : Target
        requests : sequence of ModelRequest
        purpose : str
            Purpose of the calls, such as ``annotating 400 examples``.
        reply_tokens : int
            Approximate tokens of one reply.

        Raises
        ------
        PlanError
            If too few calls are left; no question of this batch is then asked.
        InputError
            Like `groundfault.models.ask`, and if failed attempts use up the budget.
        """
        assert self.record is None or isinstance(self.record, Record)
        questions = [request.question for request in requests]
        estimate = estimate_calls(target, questions, reply_tokens, self.record)
        words = f"{purpose} by {target.name}: {estimate.describe(self.prices)}"
        left = self.max_calls - self.calls
        if estimate.calls > left:
            advice = "allow more (--max-calls), or annotate a random part (--sample)"
            few = f"the {left:,} calls that are left of {self.max_calls:,}"
            raise PlanError(f"{words}; that is more than {few}: {advice}")
        listener(self.announce)(words)
        bounded = _BoundedTarget(target, self)
        options: AskOptions = {**self.options, "record": self.record}
        return replies.ask_for(bounded, requests, **options)


@dataclass
class _BoundedTarget:
    """A target that refuses calls beyond its budget."""

    target: Target
    budget: CallBudget

    @property
    def name(self) -> str:
        return self.target.name

    async def answer(self, question: Question) -> Response:
        if self.budget.calls >= self.budget.max_calls:
            limit = f"the {self.budget.max_calls:,} calls that were allowed (--max-calls) are made"
            return Response.failed(limit, fatal=True)
        self.budget.calls += 1
        return await self.target.answer(question)
