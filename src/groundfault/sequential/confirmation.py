"""Holdouts that are labelled one unit at a time: survivors of a screen confirmed with as few labels
as it takes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from groundfault.auditing.prepared import Case, prepare
from groundfault.core.plan import exact
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.judges.rule import rule
from groundfault.sequential.plan import pick
from groundfault.sequential.policies import Query
from groundfault.sequential.pool import to_hex
from groundfault.sequential.record import Entry, Record
from groundfault.sequential.slice_tests import SliceTests
from groundfault.sequential.state import checked
from groundfault.stats import bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groundfault.base.ledger import Ledger, Opening
    from groundfault.core.candidate import Candidate
    from groundfault.core.evidence import Evidence
    from groundfault.core.plan import Plan
    from groundfault.core.units import Units

    Bools = NDArray[np.bool_]

ASKED, TOLD = "holdout_asked", "holdout_told"


@dataclass(frozen=True)
class Standing:
    """Where one survivor of the screen stands.

    Attributes
    ----------
    name : str
    direction : int
        1 where the slice failed more on discovery, -1 where less.
    e_value : float
        Largest so far, after e-Holm; the null falls at 1 / alpha.
    lift : float, optional
        Mean loss on minus off the slice among the labelled units; None where a side has none.
    on, off : int
        Labelled units on each side.
    confirmed : bool
    reason : str
    """

    name: str
    direction: int
    e_value: float
    lift: float | None
    on: int
    off: int
    confirmed: bool
    reason: str


class HoldoutAudit:
    """Confirms what survived a screen by labelling held-out units one at a time, for as long as it
    takes.

    The judge screens candidates on the discovery units, as in `groundfault.audit`; no outcome of a
    held-out unit is read, or need be known. Each label then serves every survivor. One is confirmed
    once its e-value, after e-Holm over all survivors, has reached 1 / alpha, and its lift among the
    labelled units has the sign of discovery and the plan's least size.

    Parameters
    ----------
    evidence : Evidence
        Of one model. What is held out may lack outcomes.
    plan : Plan, optional
        Of a judge with a holdout and ``effect="risk_difference"``.
    candidates, finders
        As of `groundfault.audit`.
    limit : int, optional
        Most labels to buy.
    ledger : Ledger or path, optional
        Where the opening of the holdout and every label are recorded; one that holds this very
        audit resumes it.
    reopen : str, optional
        Why the holdout is opened again with other candidates.

    Attributes
    ----------
    seal : str
        SHA-256 of plan, candidates, survivors, split, evidence and limit: fixed before the first
        held-out label.
    opening : Opening, optional
        What the ledger says of it; None without a ledger, and where nothing survived, so that
        nothing is opened.

    Raises
    ------
    InputError, PlanError
        If there is nothing to explain, or the plan cannot be confirmed label by label.
    LedgerError
        If the ledger was altered, or the holdout was opened before with other candidates.

    Notes
    -----
    ``P(any false confirmation) <= alpha`` whatever the screen did, whenever one stops: when
    held-out outcomes are exchangeable given the candidates, which is what judge ``janus`` assumes
    too. The least lift is asked of the labels at hand, as an estimate; no test stands behind it.
    Every unit asked has to be told; one that cannot be scored counts as passed on either side.

    Examples
    --------
    >>> import polars as pl
    >>> from groundfault import Candidate, Evidence, Plan
    >>> long = [i % 2 == 0 for i in range(200)]
    >>> error = [i % 2 == 0 and i % 9 > 0 for i in range(200)]
    >>> table = pl.DataFrame({"item": [f"case {i}" for i in range(200)], "long": long, "error": error})
    >>> evidence = Evidence.from_table(table, outcome="error", id="item")
    >>> audit = HoldoutAudit(evidence, Plan(seed=1), [Candidate.from_text("long: long")])
    >>> audit.run(lambda query: 0 if error[int(query.id.split()[1])] else 1)
    ('long',)
    >>> audit.labelled < 100
    True
    """

    def __init__(
        self,
        evidence: Evidence,
        plan: Plan | None = None,
        candidates: Iterable[Candidate] | None = None,
        *,
        finders: Sequence[Any] | None = None,
        limit: int | None = None,
        ledger: Ledger | str | Path | None = None,
        reopen: str | None = None,
    ) -> None:
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, int) or limit < 1
        ):
            raise PlanError(f"limit={limit!r} must be a whole number of 1 or more")
        self.case, self.limit = prepare(evidence, plan, candidates, finders=finders), limit
        _require_plan(self.case)
        self._held = np.flatnonzero(~self.case.seen)
        discovery = self.case.discovery()
        self._errors = discovery.denominator == 1
        self.names, self.tests = _survivors(self.case, discovery, self._held)
        names = self.case.evidence.unit_names
        self._ids = [str(names[int(unit)]) for unit in self._held]
        self.seal = self._seal()
        self._confirmed = np.zeros(len(self.names), dtype=np.bool_)
        self._best = np.ones(len(self.names))
        self._open: Query | None = None
        self.record = Record(ledger, self.seal)
        self.opening = self._opened(reopen)
        self._catch_up()

    def _seal(self) -> str:
        case, tests = self.case, self.tests
        content = {
            "plan": case.plan.seal(),
            "library": case.library.hash,
            "evidence": case.evidence.hash,
            "split": case.split_hash,
            "survivors": [
                [name, int(sign)] for name, sign in zip(self.names, tests.direction, strict=True)
            ],
            "limit": self.limit,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _opened(self, reopen: str | None) -> Opening | None:
        if self.record.ledger is None or not self.names:
            return None
        return self.record.ledger.open_holdout(
            evidence_hash=self.case.evidence.hash,
            outcome_hash=self.case.evidence.outcome_hash,
            split_hash=self.case.split_hash,
            library_hash=self.case.library.hash,
            plan_hash=self.seal,
            reopen=reopen,
        )

    # ----------------------------------------------------------------------- --- asking and telling

    def ask(self) -> Query | None:
        """Which unit to label next; the same until it is told, and None once there is nothing more
        to learn.
        """
        self._catch_up()
        if self._open is None and not self.finished:
            for entry in self.record.append(ASKED, self._next())[1]:
                self._replay(entry)
        return self._open

    def tell(self, query: Query, score: float | None) -> None:
        """Give the score of the unit that `ask` named: 1 is a pass, 0 a failure, None what cannot
        be scored.

        Raises
        ------
        InputError
            If it was not asked, was told before, or the score is outside [0, 1].
        """
        self._catch_up()
        if not isinstance(query, Query) or query.audit != self.seal:
            raise InputError(
                "only a query that this audit asked can be told; this one is of another audit, or of none"
            )
        if self._open is None or (query.step, query.id) != (self._open.step, self._open.id):
            due = (
                f"query {self._open.step} waits for its score"
                if self._open
                else "no query is open: ask first"
            )
            raise InputError(
                f"query {query.step} ({query.id!r}) was told before, or never asked; {due}"
            )
        told = checked(score, query)
        if self._errors and told not in (None, 0.0, 1.0):
            raise InputError(
                f"the score {told:g} of {query.id!r} is neither 0 nor 1, as all of discovery's are"
            )
        body = {"step": query.step, "id": query.id, "score": told}
        entry, news = self.record.append(TOLD, body)
        first = next(
            (new for new in news if new.kind == TOLD and new.body["step"] == query.step), entry
        )
        for new in news:
            self._replay(new)
        if first.seq != entry.seq:
            raise LedgerError(
                f"another process told query {query.step} first; its score stands, yours was not used"
            )

    def recorded(self, query: Query) -> float | None:
        """The score that the evidence holds for a unit; None where it holds none. An answer for
        `run`.
        """
        loss = float(self.case.losses()[0][self._held[self._ids.index(query.id)]])
        return None if np.isnan(loss) else 1.0 - loss

    def run(
        self,
        answer: Callable[[Query], float | None],
        progress: Callable[[HoldoutAudit], object] = bool,
    ) -> tuple[str, ...]:
        """Ask, score and tell until the end; the names of what is confirmed."""
        while (query := self.ask()) is not None:
            self.tell(query, answer(query))
            progress(self)
        return self.confirmed

    def _next(self) -> dict[str, Any]:
        """The draw of the next round: from all that is left or, for the last open survivor, from
        the side it lacks.
        """
        step, free = self.labelled + 1, self._free()
        among = np.flatnonzero(free)
        unit = int(among[pick(int(self.case.plan.seed), "holdout", step, len(among))])
        return {
            "step": step,
            "id": self._ids[unit],
            "drawn_from": to_hex(free),
            "eligible": len(among),
        }

    def _free(self) -> Bools:
        undecided = np.flatnonzero(~self._confirmed)
        return (
            _lagging(self.tests, int(undecided[0])) if len(undecided) == 1 else ~self.tests.labelled
        )

    def _catch_up(self) -> None:
        for entry in self.record.news() if self.opening else ():
            self._replay(entry)

    def _replay(self, entry: Entry) -> None:
        body = {key: value for key, value in entry.body.items() if key != "audit"}
        due = self.labelled + 1
        if (
            entry.kind not in (ASKED, TOLD)
            or body["step"] < due
            or (entry.kind == ASKED and self._open is not None)
        ):
            return  # written too late by another process
        made = None if self.finished else self._next()
        if entry.kind == ASKED and made is not None and body == made:
            unit = self._ids.index(made["id"])
            self._open = Query(step=due, id=made["id"], case=self._case(unit), audit=self.seal)
        elif (
            entry.kind == TOLD
            and self._open is not None
            and (body["step"], body["id"]) == (due, self._open.id)
        ):
            self._take(body)
        else:
            raise LedgerError(
                f"round {body['step']} of the record does not reproduce: the record was altered"
            )

    def _take(self, body: Mapping[str, Any]) -> None:
        assert self._open is not None
        try:
            score = checked(body["score"], self._open)
        except InputError as error:
            raise LedgerError(
                f"round {body['step']} of the record has no usable score: {error}"
            ) from None
        unit, loss = self._ids.index(self._open.id), 0.0 if score is None else 1.0 - score
        self.tests, self._open = self.tests.update(unit, loss, self._free()), None
        self._best = np.maximum(self._best, self.tests.adjusted)
        plan = self.case.plan
        enough = (
            self.tests.direction * np.nan_to_num(self.tests.lifts)
            >= float(exact(plan.min_lift or 0)) - 1e-12
        )
        self._confirmed |= (self._best >= (1 - 1e-12) / float(exact(plan.alpha))) & enough

    def _case(self, unit: int) -> dict[str, Any]:
        evidence = self.case.evidence
        shown = evidence.blind().frame.filter(evidence.unit_index == self._held[unit]).to_dicts()
        return shown[0] if len(shown) == 1 else {"examples": shown}

    def to_dict(self) -> dict[str, Any]:
        """All that was decided and seen, as plain words and numbers."""
        return {
            "seal": self.seal,
            "plan": self.case.plan.settings,
            "library": self.case.library.hash,
            "limit": self.limit,
            "held_out": len(self._held),
            "labelled": self.labelled,
            "survivors": [asdict(standing) for standing in self.standings],
            "confirmed": list(self.confirmed),
            "opening": None if self.opening is None else self.opening.sentence,
        }

    # -------------------------------------------------------------------------- --- where it stands

    @property
    def labelled(self) -> int:
        """Labels so far."""
        return int(self.tests.labelled.sum())

    @property
    def finished(self) -> bool:
        """Whether all survivors are confirmed, no unit is left, or the limit is reached."""
        spent = self.labelled >= min(len(self._held), self.limit or len(self._held))
        return spent or bool(self._confirmed.all())

    @property
    def confirmed(self) -> tuple[str, ...]:
        """Names of what is confirmed so far; nothing that comes can take it back."""
        return tuple(
            name for name, stands in zip(self.names, self._confirmed, strict=True) if stands
        )

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Every survivor of the screen, in the order of the library."""
        out, bar = [], 1 / float(exact(self.case.plan.alpha))
        for k, (name, test) in enumerate(zip(self.names, self.tests.tests, strict=True)):
            sign = int(self.tests.direction[k])
            on, off = test.counts if sign > 0 else test.counts[::-1]
            lift = None if not (on and off) else sign * test.gap
            e, stands = float(self._best[k]), bool(self._confirmed[k])
            reason = f"e-value {e:.3g} of {bar:g} after {on + off} labels"
            if e >= bar and not stands:
                reason += "; the lift is below the least worth confirming"
            out.append(Standing(name, sign, e, lift, on, off, stands, reason))
        return tuple(out)


def _require_plan(case: Case) -> None:
    if case.judge.confirmation == "none":
        raise PlanError(
            f"the judge {case.judge.name} holds nothing out; take one that does, such as janus"
        )
    if case.plan.effect != "risk_difference":
        raise PlanError(
            f"effect={case.plan.effect!r} cannot be confirmed label by label; use risk_difference"
        )
    if len(case.outcomes) > 1:
        raise PlanError("labels are bought for one model at a time; select one")
    if case.strata is not None:
        raise PlanError(
            "groups of unequal size cannot be confirmed label by label: their means are not exchangeable"
        )


def _survivors(
    case: Case, discovery: Units, held: NDArray[np.intp]
) -> tuple[tuple[str, ...], SliceTests]:
    """What the judge's screen lets through and the held-out units can support, each of its
    duplicates once.
    """
    marks = case.marks.take(held)
    ruling = rule(case.judge, case.plan, discovery, None, case.marks)
    through = (
        np.zeros(0, dtype=np.intp)
        if ruling.screening is None
        else ruling.judged[ruling.screening.survives]
    )
    valid = np.ones((len(case.library), len(held)), dtype=np.bool_)
    if marks.valid is not None:
        valid = bits.unpack(marks.valid, len(held))
    on = bits.unpack(marks.on, len(held)) & valid
    least_on, least_off = (
        case.plan.hold_min_on or case.plan.min_on,
        case.plan.hold_min_off or case.plan.min_off,
    )
    supported = (on.sum(axis=1) >= least_on) & ((valid & ~on).sum(axis=1) >= least_off)
    through = through[supported[through]]
    names = tuple(candidate.name for candidate in case.library)
    tests = SliceTests.begin(
        on[through],
        discovery.margins[through].sign,
        defined=valid[through],
        errors=discovery.denominator == 1,
    )
    return tuple(names[k] for k in through), tests


def _lagging(tests: SliceTests, k: int) -> Bools:
    """The unlabelled units of the side with fewer labels, or of the other where it has none
    left.
    """
    free = tests.defined[k] & ~tests.labelled
    on, off = free & tests.on[k], free & ~tests.on[k]
    labelled = tests.labelled & tests.defined[k]
    fewer = on if (labelled & tests.on[k]).sum() <= (labelled & ~tests.on[k]).sum() else off
    return fewer if fewer.any() else free if free.any() else ~tests.labelled
