"""Confirmation of a screen's survivors on a holdout that is labelled one unit at a time."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl

from groundfault.auditing.messages import describe_looks
from groundfault.auditing.preparation import prepare
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report_schema import PlanSettings
from groundfault.base.arrays import Floats, Places
from groundfault.base.holdout_events import Opening
from groundfault.base.ledgers import LedgerChoice
from groundfault.core.candidate import Candidate
from groundfault.core.evidence import Evidence
from groundfault.core.plan import AUTO, Plan, to_fraction
from groundfault.core.row_names import sampler_of
from groundfault.core.units import Units
from groundfault.errors import InputError, LedgerError, PlanError, require_whole
from groundfault.finders import Finder
from groundfault.judges.rule import has_support, rule
from groundfault.sequential.draws import pick
from groundfault.sequential.labelling import EventKinds, RecordedSession, check_score
from groundfault.sequential.policies import Query
from groundfault.sequential.pool import to_hex
from groundfault.sequential.record import AuditRecord
from groundfault.sequential.slice_tests import GradedSlice, SliceTests, read_grades
from groundfault.sequential.stored_result import Confirmation, SurvivorState
from groundfault.stats import bits


def require_plan(case: PreparedAudit) -> None:
    """Raise `PlanError` where the plan of an audit cannot be confirmed label by label."""
    if case.judge.confirmation == "none":
        raise PlanError(
            f"the judge {case.judge.name} has no holdout; take one that has, such as janus"
        )
    if case.plan.effect != "risk_difference":
        raise PlanError(
            f"effect={case.plan.effect!r} cannot be confirmed label by label; use risk_difference"
        )
    # a label is of one model's answer; it says nothing of another's
    if len(case.outcomes) > 1:
        raise PlanError(
            "labels are bought for one model at a time: select one (--model), or begin a case, "
            "which takes several (groundfault case new)"
        )
    if case.plan.within:
        raise PlanError("no column can be held fixed (within) label by label: leave it out")
    if case.strata is not None:
        raise PlanError(
            "groups of unequal size cannot be confirmed label by label: their means are not "
            "exchangeable"
        )


def select_survivors(
    case: PreparedAudit,
    discovery: Units,
    holdout: Places,
    grades: Floats | None,
    direction: int | None = None,
) -> tuple[tuple[str, ...], SliceTests]:
    """Select candidates that survive the screen and that the holdout can support."""
    ruling = rule(case.judge, case.plan, discovery, None, case.marks)
    survivors = np.zeros(0, dtype=np.intp)
    if ruling.screening is not None:
        survivors = ruling.hypotheses[ruling.screening.survives]
    # screening used discovery rows only; of the holdout it is the slice's size that is read here,
    # never an outcome
    marks = case.marks.take(holdout).select(survivors)
    valid = np.ones((len(survivors), len(holdout)), dtype=np.bool_)
    if marks.valid is not None:
        valid = bits.unpack(marks.valid, len(holdout))
    on = bits.unpack(marks.on, len(holdout)) & valid
    kept = has_support(on.sum(axis=1), (valid & ~on).sum(axis=1), case.plan)
    signs = discovery.tables[survivors[kept]].sign
    tests = SliceTests.begin(
        on[kept],
        signs if direction is None else np.full_like(signs, direction),
        defined=valid[kept],
        errors=discovery.denominator == 1,
        grades=grades,
        level=float(to_fraction(case.plan.alpha)),
        least_lift=float(to_fraction(case.plan.min_lift or 0)),
    )
    return tuple(case.library[int(k)].name for k in survivors[kept]), tests


ASKED, TOLD, UNDONE = "holdout_asked", "holdout_told", "holdout_undone"


class SequentialConfirmation(RecordedSession[tuple[str, ...]]):
    """Confirms the survivors of a screen by labelling held-out units, one at a time.

    The judge screens candidates on the discovery units, as in `groundfault.audit`; no outcome of a
    held-out unit is read, or need be known. Each label then serves every survivor. One is confirmed
    once its e-value, after e-Holm over all survivors, has reached 1 / alpha, and its lift among the
    labelled units has the sign of discovery and at least the plan's size.

    Parameters
    ----------
    evidence : Evidence
        Of one model. Held-out units may lack outcomes.
    plan : Plan, optional
        Of a judge with a holdout and ``effect="risk_difference"``; ``auto`` is ``janus`` here,
        whose screen leaves the fewest candidates to buy labels for.
    candidates, finders
        As of `groundfault.audit`.
    budget : int, optional
        The largest number of labels to buy.
    grader : str, optional
        A column with a cheap grade of every unit, from 0 to 1, which points where the outcome does.
        Labels are then bought for what the grades cannot tell; see `GradedSlice`.
    direction : {1, -1}, optional
        1 tests that units of every slice fail more than others, and -1 that they fail less; left
        out, what discovery showed of each.
    ledger : Ledger, path, URL or bool, optional
        Where the opening of the holdout and every label are recorded; True is the place that
        $GROUNDFAULT_LEDGER names, else groundfault-ledger.db in the current folder. One that holds
        this very audit resumes it. False and None record nothing.
    reopen : str, optional
        Why the holdout is opened again in another way.

    Attributes
    ----------
    screen : PreparedAudit
        Evidence, plan, candidates and split, prepared as for `groundfault.audit`.
    seal : str
        SHA-256 of plan, candidates, survivors, split, evidence and budget: fixed before the first
        held-out label.
    scores : list of (Query, float or None)
        Each query and its score, in order.
    opening : Opening, optional
        How often the holdout was opened, by the ledger. None without a ledger, and where nothing
        survived the screen: the holdout then stays closed.

    Raises
    ------
    InputError, PlanError
        If there is nothing to explain, or the plan cannot be confirmed label by label.
    LedgerError
        If the ledger was altered, or the holdout was opened before in another way.

    Notes
    -----
    ``P(any false confirmation) <= alpha`` whatever the screen did, whenever one stops: when
    held-out outcomes are exchangeable given the candidates, which is what judge ``janus`` assumes
    too. The plan's smallest lift is compared with the estimate from the labels; no test stands
    behind it. Every unit asked for needs an answer; one that cannot be scored counts against every
    survivor, as a pass on the side that fails more and as a failure on the other, so that whatever
    it would have come to confirms nothing.

    Examples
    --------
    >>> import polars as pl
    >>> from groundfault import Candidate, Evidence, Plan
    >>> long = [i % 2 == 0 for i in range(200)]
    >>> error = [i % 2 == 0 and i % 9 > 0 for i in range(200)]
    >>> items = [f"case {i}" for i in range(200)]
    >>> table = pl.DataFrame({"item": items, "long": long, "error": error})
    >>> evidence = Evidence.from_table(table, outcome="error", id="item")
    >>> audit = SequentialConfirmation(evidence, Plan(seed=1), [Candidate.from_text("long: long")])
    >>> audit.run(lambda query: 0 if error[int(query.id.split()[1])] else 1)
    ('long',)
    >>> audit.labelled < 100
    True
    """

    kinds = EventKinds(ASKED, TOLD, UNDONE)

    def __init__(
        self,
        evidence: Evidence,
        plan: Plan | None = None,
        candidates: Iterable[Candidate] | None = None,
        *,
        finders: Sequence[str | Finder] | None = None,
        budget: int | None = None,
        grader: str | None = None,
        direction: Literal[1, -1] | None = None,
        ledger: LedgerChoice = True,
        reopen: str | None = None,
    ) -> None:
        if budget is not None:
            require_whole("budget", budget)
        plan = plan or Plan()
        if plan.judge == AUTO:
            plan = replace(plan, judge="janus")
        if grader is not None:
            # no attribute of an example, and a person who labels must not see it
            evidence = evidence.with_roles(evidence.roles.join(None, None, {"ignore": [grader]}))
        self.screen, self.budget = prepare(evidence, plan, candidates, finders=finders), budget
        self.grader = grader
        require_plan(self.screen)
        self._holdout_units = np.flatnonzero(~self.screen.discovery_mask)
        discovery = self.screen.discovery_units()
        self._errors = discovery.denominator == 1
        self.names, self._fresh_tests = select_survivors(
            self.screen, discovery, self._holdout_units, self._read_grades(), direction
        )
        names = self.screen.evidence.unit_names
        self._ids = [str(names[int(unit)]) for unit in self._holdout_units]
        self.seal = self._seal()
        self._begin_labels()
        # where nothing survived no label is bought, and the holdout stays closed
        self.record = AuditRecord(ledger if self.names else None, self.seal)
        self.opening = self._open_holdout(reopen)
        self.catch_up()

    def _restart(self) -> None:
        self.tests = self._fresh_tests
        self._open: Query | None = None
        self.scores: list[tuple[Query, float | None]] = []

    def _read_grades(self) -> Floats | None:
        if self.grader is None:
            return None
        if not self._errors:
            raise PlanError(
                "a grader helps where losses are 0 or 1; these lie between, as they also do where "
                "several rows are one unit: copies, repeats or a group"
            )
        return read_grades(self.screen.evidence, self.grader)[self._holdout_units]

    def _seal(self) -> str:
        case, tests = self.screen, self._fresh_tests
        content = {
            "plan": case.plan.seal(),
            "library": case.library.hash,
            "evidence": case.evidence.hash,
            "split": case.split_hash,
            "survivors": [
                [name, int(sign)] for name, sign in zip(self.names, tests.direction, strict=True)
            ],
            # the key that ledgers have of 0.1.0
            "limit": self.budget,
        } | ({} if self.grader is None else {"grader": self.grader})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _open_holdout(self, reopen: str | None) -> Opening | None:
        if self.record.ledger is None:
            return None
        held_out = np.isin(self.screen.evidence.unit_index, self._holdout_units)
        # what nobody has scored yet cannot have been looked at, whatever discovery shows again
        is_unscored = self.screen.evidence.loss.filter(pl.Series(held_out)).is_null().all()
        return self.record.ledger.open_holdout(
            evidence_hash=self.screen.evidence.hash,
            outcome_hash=self.screen.evidence.outcome_hash,
            split_hash=self.screen.split_hash,
            library_hash=self.screen.library.hash,
            plan_hash=self.seal,
            reopen=reopen,
            rule="e-holm",
            level=float(to_fraction(self.screen.plan.alpha)),
            sample=None if is_unscored else sampler_of(self.screen.evidence),
        )

    # ------------------------------------------------------------------------------ ask and tell

    def _check_score(self, query: Query, score: object) -> float | None:
        value = check_score(score, query)
        if self._errors and value not in (None, 0.0, 1.0):
            raise InputError(
                f"the score {value:g} of {query.id!r} is neither 0 nor 1, as all of discovery's are"
            )
        return value

    def replay_score(self, query: Query) -> float | None:
        """Return the score that the evidence holds for a unit, or None: an answer for `run`."""
        evidence, unit = self.screen.evidence, self._holdout_units[self._ids.index(query.id)]
        losses = evidence.loss.filter(pl.Series(evidence.unit_index == unit)).drop_nulls()
        if losses.is_empty():
            return None
        # where all labels are 0 or 1, the first of copies that differ stands for them
        return 1.0 - float(losses[0] if self._errors else losses.to_numpy().mean())

    def _draw_event(self) -> dict[str, object] | None:
        # all unlabelled units are as likely; for the last open survivor, all of the side that has
        # fewer labels
        if self.finished:
            return None
        # which units are on offer depends on earlier labels alone, so every draw stays predictable
        step, free = self.labelled + 1, self.tests.find_units()
        among, size = np.flatnonzero(free), int(free.sum())
        unit = int(among[pick(int(self.screen.plan.seed), "holdout", step, size)])
        return {"step": step, "id": self._ids[unit], "drawn_from": to_hex(free), "eligible": size}

    def _take_query(self, body: Mapping[str, Any]) -> None:
        if body != self._draw_event():
            raise LedgerError(
                f"round {body['step']} of the record does not reproduce: the record was altered"
            )
        case = self._case(self._ids.index(body["id"]))
        self._open = Query(step=body["step"], id=body["id"], case=case, audit=self.seal)

    def _take_score(self, query: Query, score: float | None) -> None:
        self.scores.append((query, score))
        unit, loss = self._ids.index(query.id), None if score is None else 1.0 - score
        self.tests, self._open = self.tests.update(unit, loss, self.tests.find_units()), None

    def _case(self, unit: int) -> dict[str, object]:
        evidence = self.screen.evidence
        rows = (
            evidence.without_outcomes()
            .frame.filter(evidence.unit_index == self._holdout_units[unit])
            .drop(self.grader or ())
            .to_dicts()
        )
        return rows[0] if len(rows) == 1 else {"examples": rows}

    @property
    def result(self) -> Confirmation:
        """Return the decisions and observations so far, as typed data."""
        screen = self.screen
        return Confirmation(
            seal=self.seal,
            plan=msgspec.convert(screen.plan.settings, PlanSettings),
            library=screen.library.hash,
            budget=self.budget,
            grader=self.grader,
            held_out=len(self._holdout_units),
            labelled=self.labelled,
            survivors=self.survivors,
            confirmed=self.confirmed,
            opening=None if self.opening is None else _describe(self.opening),
            corrections=self.corrections or msgspec.UNSET,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the `result` as plain words and numbers."""
        return self.result.to_dict()

    # ------------------------------------------------------------------------------- the results

    @property
    def labelled(self) -> int:
        """Return the number of labels so far."""
        return int(self.tests.labelled.sum())

    @property
    def open_query(self) -> Query | None:
        """Return the query that waits for its score."""
        return self._open

    @property
    def standing(self) -> tuple[str, ...]:
        """Return the names of the survivors that are confirmed so far."""
        return self.confirmed

    @property
    def finished(self) -> bool:
        """Return whether all survivors are confirmed, no unit is left, or the budget is spent."""
        n_units = len(self._holdout_units)
        is_spent = self.labelled >= min(n_units, self.budget or n_units)
        return is_spent or bool(self.tests.confirmed.all())

    @property
    def confirmed(self) -> tuple[str, ...]:
        """Return the names of confirmed candidates; later labels cannot take them back."""
        return tuple(itertools.compress(self.names, self.tests.confirmed))

    def find_rates(self, name: str) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return intervals of the failure rates of both sides, by labels and grades.

        Each holds by itself, and they are no part of the family of confirmations: the chance that
        it ever lies beside the rate of all held-out units of its side is at most alpha of the plan,
        whenever one stops and whatever the grades. Units that could not be scored count against the
        survivor, as everywhere.

        Parameters
        ----------
        name : str
            Of a survivor.

        Returns
        -------
        (low, high) on the slice, (low, high) off it

        Raises
        ------
        PlanError
            If there is no such survivor, or the confirmation has no grader.
        """
        if name not in self.names or self.grader is None:
            raise PlanError(
                f"{name!r} is no survivor of a confirmation with a grader, and other labels give "
                "no interval of a rate here"
            )
        k = self.names.index(name)
        test = self.tests.tests[k]
        assert isinstance(test, GradedSlice)
        high, low = test.find_rates(float(to_fraction(self.screen.plan.alpha)))
        return (high, low) if self.tests.direction[k] > 0 else (low, high)

    @property
    def survivors(self) -> tuple[SurvivorState, ...]:
        """Return every survivor of the screen, in the order of the library."""
        out, bar = [], 1 / float(to_fraction(self.screen.plan.alpha))
        for k, (name, test) in enumerate(zip(self.names, self.tests.tests, strict=True)):
            sign = int(self.tests.direction[k])
            on, off = test.counts if sign > 0 else test.counts[::-1]
            lift = None if not (on and off) else sign * test.gap
            e, stands = float(self.tests.best[k]), bool(self.tests.confirmed[k])
            reason = SurvivorState.describe(e, on + off, bar, confirmed=stands)
            out.append(SurvivorState(name, sign, e, lift, on, off, stands, reason))
        return tuple(out)


def _describe(opening: Opening) -> str:
    """Describe how often the holdout was opened, and the error rate over several times."""
    if opening.times < 2:
        return opening.sentence
    return f"{opening.sentence}; {describe_looks(opening.looks, opening.times)}"
