"""Budgets of calls: costs are said before they are spent, and the cap holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundfault.errors import InputError, PlanError
from groundfault.models import Question, Record, Response
from groundfault.models.budget import CallBudget, CallEstimate, estimate_calls
from groundfault.models.replies import ModelRequest


class CountingTarget:
    name = "counting"

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def answer(self, question: Question) -> Response:
        self.calls += 1
        if self.errors:
            return Response.failed(self.errors.pop(), again=True)
        return Response("fine")


def make_requests(count: int) -> list[ModelRequest[str]]:
    return [ModelRequest(Question(f"{i} " + "x" * 398), lambda text: text) for i in range(count)]


def test_what_is_on_record_costs_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    budget = CallBudget(10, tmp_path / "calls.db", (1.0, 10.0), said.append)
    target = CountingTarget()
    replies = budget.ask_for(target, make_requests(3), "testing", 50)
    assert [reply.value for reply in replies] == ["fine"] * 3
    assert said == ["testing by counting: 3 calls, about 300 tokens in and 150 out, about $0.00"]
    budget.ask_for(target, make_requests(5), "testing", 50)
    assert said[1].startswith("testing by counting: 2 calls (3 more are on record)")
    assert target.calls == budget.calls == 5
    # without a record nothing can be on it
    assert estimate_calls(target, [Question("x")] * 4, 1) == CallEstimate(1, 0, 0, 1)


def test_a_batch_beyond_the_budget_asks_nothing(tmp_path: Path) -> None:
    target = CountingTarget()
    budget = CallBudget(4, tmp_path / "calls.db")
    budget.ask_for(target, make_requests(3), "testing", 50)
    with pytest.raises(PlanError, match=r"more than the 1 calls that are left of 4.*--max-calls"):
        budget.ask_for(target, make_requests(5), "testing", 50)
    assert target.calls == 3


def test_attempts_after_errors_count_and_what_was_answered_stays(tmp_path: Path) -> None:
    target = CountingTarget("busy")
    options = {"concurrency": 1, "retries": 1}
    budget = CallBudget(3, tmp_path / "calls.db", options=options)
    with pytest.raises(InputError, match=r"the 3 calls that were allowed.*run again to go on"):
        budget.ask_for(target, make_requests(3), "testing", 50)
    assert target.calls == 3
    questions = [request.question.hash for request in make_requests(3)]
    assert len(Record(tmp_path / "calls.db").answers("counting", questions)) == 2
    again = CallBudget(1, tmp_path / "calls.db", options=options)
    assert len(again.ask_for(target, make_requests(3), "testing", 50)) == 3


def test_budgets_that_cannot_be() -> None:
    with pytest.raises(PlanError, match="at least 0"):
        CallBudget(-1)
    with pytest.raises(PlanError, match="price"):
        CallBudget(1, prices=(-1.0, 1.0))
