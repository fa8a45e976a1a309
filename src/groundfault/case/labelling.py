"""Labels for the modes of a case, one at a time, each for the model that needs one next."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from groundfault.auditing.report_schema import PlanSettings
from groundfault.base.database import copy_database
from groundfault.base.ledger import Ledger
from groundfault.case.folder import LEDGER, CaseFolder
from groundfault.case.parts import Answer, group_modes, join_parts, name_answer, select_answers
from groundfault.case.settings import name_mode
from groundfault.core.candidate import Candidate
from groundfault.core.plan import Plan, to_fraction
from groundfault.errors import InputError
from groundfault.sequential.confirmation import SequentialConfirmation
from groundfault.sequential.labelling import LabelSession
from groundfault.sequential.stored_result import Confirmation, SurvivorState

if TYPE_CHECKING:
    from groundfault.case.settings import ModeChoice
    from groundfault.core.evidence import Evidence
    from groundfault.sequential.policies import Query


@dataclass(frozen=True, eq=False)
class CaseConfirmation(LabelSession[tuple[str, ...]]):
    """Confirms the modes of a case: a test for each of its models, all within one level.

    Each test is a `SequentialConfirmation` with its part of the level, which is that of its modes
    among all chosen ones; so any mode's e-value has to reach their number over the level, or less
    once others of its test are confirmed. Labels are bought for the test that has fewest for each
    of its modes. One that serves two tests, that of a model and that of the mean of all models, is
    asked for once.

    Parameters
    ----------
    tests : tuple of SequentialConfirmation
        At least one; of different answers.
    plan : Plan
        With the level of all together.
    budget : int, optional
        The largest number of labels to buy, for all together.
    answers : int
        Rows that can be labelled.
    model : str, optional
        The column of models.

    Guarantee
    ---------
    ``P(any false confirmation) <= alpha``, whenever one stops: by the union bound over the tests,
    each of which holds it at its part. Which test is served depends on earlier labels alone.
    """

    tests: tuple[SequentialConfirmation, ...]
    plan: Plan
    budget: int | None
    answers: int
    model: str | None

    def ask(self) -> Query | None:
        """Return the answer to label next, the same until it has a score; None at the end."""
        while not self.finished:
            labels = self._labels
            open_tests = [test for test in self.tests if not test.finished]
            test = min(open_tests, key=lambda one: one.labelled / len(one.names))
            query = test.ask()
            if query is None:
                continue  # another process finished this test
            answer = name_answer(query, self.model)
            if answer not in labels:
                return query
            test.tell(query, labels[answer])
        return None

    def tell(self, query: Query, score: float | None) -> None:
        """Give the score of the answer that `ask` returned; see `SequentialConfirmation.tell`."""
        seal = getattr(query, "audit", "")
        test = next((test for test in self.tests if test.seal == seal), None)
        if test is None:
            raise InputError(
                "this query is not of this case: tell takes the query that ask returned"
            )
        test.tell(query, score)

    def undo(self) -> None:
        """Take the last label back, in every test that it serves."""
        given: dict[Answer, int] = {}
        for test in self.tests:
            for (query, _), seq in zip(test.scores, test.score_events, strict=True):
                answer = name_answer(query, self.model)
                # a test that is served later repeats a label that was given before
                given[answer] = min(seq, given.get(answer, seq))
        if not given:
            raise InputError("there is no label yet to take back")
        last = max(given, key=given.__getitem__)
        for test in self.tests:
            while any(name_answer(query, self.model) == last for query, _ in test.scores):
                test.undo()

    @property
    def _labels(self) -> dict[Answer, float | None]:
        """Return the labels so far, each once."""
        scores = [each for test in self.tests for each in test.scores]
        return {name_answer(query, self.model): score for query, score in scores}

    # ------------------------------------------------------------------------------- the results

    @property
    def standing(self) -> tuple[str, ...]:
        """Return the names of the modes that are confirmed so far."""
        return self.confirmed

    @property
    def labelled(self) -> int:
        """Return the number of labels so far."""
        return len(self._labels)

    @property
    def finished(self) -> bool:
        """Return whether all modes are confirmed, no answer is left, or the budget is spent."""
        is_spent = self.labelled >= self.budget if self.budget else False
        return is_spent or all(test.finished for test in self.tests)

    @property
    def confirmed(self) -> tuple[str, ...]:
        """Return the names of the modes that are confirmed so far; later labels cannot take it
        back.
        """
        return tuple(state.name for state in self.survivors if state.confirmed)

    @property
    def survivors(self) -> tuple[SurvivorState, ...]:
        """Return every mode that labels can confirm; an e-value of 1 over the whole level
        confirms.
        """
        alpha, adjusted = to_fraction(self.plan.alpha), []
        for test in self.tests:
            part = to_fraction(test.screen.plan.alpha) / alpha
            for state in test.survivors:
                e, labels = state.e_value * float(part), state.on + state.off
                reason = f"e-value {e:.3g} of {1 / float(alpha):g} after {labels} labels"
                own = msgspec.structs.replace(state, e_value=e, reason=reason)
                adjusted.append(state if part == 1 else own)
        return tuple(adjusted)

    @property
    def result(self) -> Confirmation:
        """Return the decisions and observations so far, as typed data."""
        results = [test.result for test in self.tests]
        if len(results) == 1:
            return results[0]
        openings = [result.opening for result in results if result.opening]
        return Confirmation(
            seal=_digest([result.seal for result in results]),
            plan=msgspec.convert(self.plan.settings, PlanSettings),
            library=_digest([result.library for result in results]),
            budget=self.budget,
            grader=results[0].grader,
            held_out=self.answers,
            labelled=self.labelled,
            survivors=self.survivors,
            confirmed=self.confirmed,
            opening="; ".join(dict.fromkeys(openings)) or None,
            corrections=sum(test.corrections for test in self.tests) or msgspec.UNSET,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the `result` as plain words and numbers."""
        return self.result.to_dict()


def make_confirmation(
    case: CaseFolder, choice: ModeChoice, ledger: Ledger | None
) -> CaseConfirmation:
    """Begin to label for the modes of a choice, or continue from the ledger.

    Parameters
    ----------
    case : CaseFolder
    choice : ModeChoice
    ledger : Ledger, optional
        None records nothing.
    """
    rules = dict(zip(choice.modes, choice.rules, strict=True))
    plan, tests = case.settings.confirmation_plan, []
    for outcome, all_of_it in group_modes(case.report).items():
        numbers = [number for number in choice.modes if number in all_of_it]
        if not numbers:
            continue
        part = to_fraction(plan.alpha) * Fraction(len(numbers), len(rules))
        candidates = [
            Candidate(name_mode(number), rules[number], missing="off", source="modes")
            for number in numbers
        ]
        test = SequentialConfirmation(
            _join_answers(case, outcome, candidates),
            replace(plan, alpha=str(part)),
            candidates,
            finders=[],
            budget=choice.budget,
            grader=case.settings.grader,
            direction=1,
            ledger=ledger if ledger is not None else False,
        )
        tests.append(test)
    model = case.fresh_evidence.roles.model
    return CaseConfirmation(tuple(tests), plan, choice.budget, case.settings.fresh_answers, model)


def replay_confirmation(case: CaseFolder) -> Confirmation | None:
    """Return the result of the labels in the ledger, without a record; None before any choice.

    Raises
    ------
    LedgerError
        If the ledger was altered or lost.
    """
    choice = case.choice
    if choice is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / LEDGER
        copy_database(Path(case.ledger.place), copy)
        return make_confirmation(case, choice, Ledger(copy)).result


def _join_answers(case: CaseFolder, outcome: str, candidates: Sequence[Candidate]) -> Evidence:
    parts = (case.audit_evidence, case.fresh_evidence)
    evidence = join_parts(*(select_answers(part, outcome, case.settings.seed) for part in parts))
    columns = sorted({column for each in candidates for column in each.columns})
    # the audit has decided what leaks; a hole, which fails always, looks like a leak
    roles = evidence.roles.join(None, None, {"allow_leakage": columns})
    return replace(evidence, roles=roles)


def _digest(hashes: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()
