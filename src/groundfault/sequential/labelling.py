"""One labelling session: ask for a label, record it before the next, take it back, stop by a rule.

`SequentialAudit`, `SequentialConfirmation`, the confirmation of a case and a seat on a panel are
sessions. Shell, browser and Python ask the same questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np

from groundfault.errors import InputError, LedgerError
from groundfault.sequential.policies import Query
from groundfault.sequential.record import AuditEvent, AuditRecord

T = TypeVar("T")

BACK: Final = "back"
"""An answer that takes the last label back, so that its case is asked for again."""
Answer = Callable[[Query], float | Literal["back"] | None]


class LabelSession(ABC, Generic[T]):
    """A session that asks for labels one at a time."""

    @property
    @abstractmethod
    def standing(self) -> T:
        """Return the result so far."""

    @abstractmethod
    def ask(self) -> Query | None:
        """Return the query to score next, the same until it is told; None at the end."""

    @abstractmethod
    def tell(self, query: Query, score: float | None) -> None:
        """Give the score of the query that `ask` returned: 1 is a pass, None cannot be scored."""

    @abstractmethod
    def undo(self) -> None:
        """Take the last label back; its case is then asked for again.

        Raises
        ------
        InputError
            If there is no label to take back.
        """

    def run(self, answer: Answer, progress: Callable[[Self], object] | None = None) -> T:
        """Ask, score and tell until the end; return the result.

        Parameters
        ----------
        answer : callable
            Gives a query's score, or `BACK` to take the last label back.
        progress : callable, optional
            Called with this session after every score.
        """
        while (query := self.ask()) is not None:
            score = answer(query)
            if score == BACK:
                self.undo()
                continue
            assert not isinstance(score, str)
            self.tell(query, score)
            if progress is not None:
                progress(self)
        return self.standing


class EventKinds(NamedTuple):
    """Kinds of the events of one sort of session in a ledger."""

    asked: str
    told: str
    undone: str
    reviewed: str = ""


class RecordedSession(LabelSession[T]):
    """A session whose state is replayed from its record, which other processes may write to.

    A subclass draws rounds and counts scores. It never stores its state: to resume is to replay,
    and to take a label back is to replay the rest.

    Attributes
    ----------
    seal : str
        SHA-256 of all that was decided before the first label.
    record : AuditRecord
    corrections : int
        How many labels were taken back.
    """

    kinds: ClassVar[EventKinds]
    seal: str
    record: AuditRecord

    def _begin_labels(self) -> None:
        self.corrections = 0
        self._events: list[AuditEvent] = []
        self._restart()

    @property
    @abstractmethod
    def labelled(self) -> int:
        """Return the number of scores so far."""

    @property
    @abstractmethod
    def open_query(self) -> Query | None:
        """Return the query that waits for its score."""

    @abstractmethod
    def _restart(self) -> None:
        """Set the state before the first label."""

    @abstractmethod
    def _draw_event(self) -> Mapping[str, object] | None:
        """Draw the next round; return its record, or None at the end."""

    @abstractmethod
    def _take_query(self, body: Mapping[str, object]) -> None:
        """Take in a round of the record, or raise `LedgerError` if it does not reproduce."""

    @abstractmethod
    def _take_score(self, query: Query, score: float | None) -> None:
        """Count the score of the open query."""

    def _take_review(self, body: Mapping[str, object]) -> None:
        """Take in the judgement of one of several labellers on the open query."""

    def _check_score(self, query: Query, score: object) -> float | None:
        return check_score(score, query)

    def ask(self) -> Query | None:
        """Return the query to score next, the same until it is told; None at the end.

        Raises
        ------
        PlanError
            If the policy asks for a draw that the claim does not allow.
        """
        self.catch_up()
        # the case is drawn and the bet fixed on record before anyone sees the score: an e-process
        # is valid only if each stake is predictable (Waudby-Smith and Ramdas, 2024)
        if self.open_query is None and (body := self._draw_event()) is not None:
            self._write(self.kinds.asked, body)
        return self.open_query

    def tell(self, query: Query, score: float | None) -> None:
        """Give the score of the query that `ask` returned, which is then never asked for again.

        Parameters
        ----------
        query : Query
        score : float in [0, 1], or None
            1 is a pass. None says that the case could not be scored; it then speaks for neither
            verdict.

        Raises
        ------
        InputError
            If the query was not asked, was told before, or belongs to another session; or the score
            is outside [0, 1].
        LedgerError
            If another process scored it first.
        """
        self.catch_up()
        self.require_open(query)
        value = self._check_score(query, score)
        body = {"step": query.step, "id": query.id, "score": value}
        entry = self._write(self.kinds.told, body)
        # two labellers may answer at once; the ledger's order decides, and the later one is told
        first = self._find_score(query.step)
        if first is not None and first.seq != entry.seq:
            raise LedgerError(
                f"another process scored query {query.step} first; its score "
                f"{first.body['score']} stands, and yours was not used"
            )

    def undo(self) -> None:
        """Take the last label back; its case is then asked for again, with the same bet.

        The label stays in the record, and results say how many were taken back.

        Raises
        ------
        InputError
            If there is no label to take back.
        LedgerError
            If another process gave a label in between.
        """
        self.catch_up()
        step = self.labelled
        if not step:
            raise InputError("there is no label yet to take back")
        self._write(self.kinds.undone, {"step": step})
        if self.labelled >= step:
            raise LedgerError(f"another process gave a label after query {step}; it stands")

    def _write(self, kind: str, body: Mapping[str, object]) -> AuditEvent:
        entry, news = self.record.append(kind, body)
        for new in news:
            self.replay(new)
        return entry

    @property
    def score_events(self) -> list[int]:
        """Return the number in the record of the event of each score."""
        return [entry.seq for entry in self._events if entry.kind == self.kinds.told]

    def _find_score(self, step: int) -> AuditEvent | None:
        told = (e for e in reversed(self._events) if e.kind == self.kinds.told)
        return next((e for e in told if e.body["step"] == step), None)

    def catch_up(self) -> None:
        """Take in events that other processes have recorded since the last look.

        Raises
        ------
        LedgerError
            If the ledger was altered.
        """
        for entry in self.record.read_new():
            self.replay(entry)

    def require_open(self, query: Query) -> None:
        """Raise `InputError` unless this is the query that waits for its score."""
        if not isinstance(query, Query) or query.audit != self.seal:
            raise InputError(
                "this query is not of this audit: tell takes the query that ask returned"
            )
        due = self.open_query
        if (earlier := self._find_score(query.step)) is not None:
            raise InputError(
                f"query {query.step} (case {earlier.body['id']!r}) has a score already; its score "
                f"{earlier.body['score']} stands"
            )
        if due is None or query.step != due.step:
            waits = (
                f"query {due.step} waits for its score" if due else "no query is open: ask first"
            )
            raise InputError(f"query {query.step} was not asked; {waits}")
        if query.id != due.id:
            raise InputError(f"query {query.step} asked for case {due.id!r}, not {query.id!r}")

    def replay(self, entry: AuditEvent) -> None:
        """Take in one event of the record; pass over what another process wrote too late.

        Raises
        ------
        LedgerError
            If the round does not follow from the rounds before it.
        """
        if entry.kind not in self.kinds:
            return
        body = {key: value for key, value in entry.body.items() if key != "audit"}
        step, due, query = body.get("step"), self.labelled + 1, self.open_query
        if entry.kind == self.kinds.undone:
            if step == self.labelled > 0:
                self._rewind(self.labelled)
            return
        is_asked = entry.kind == self.kinds.asked
        if isinstance(step, int) and (step < due or (step == due and is_asked and query)):
            return
        if step != due or (query is None and not is_asked):
            raise LedgerError(
                f"the record goes on with round {step} where {due} is due: rounds "
                "were removed or moved"
            )
        if query is None:
            self._take_query(body)
        elif entry.kind == self.kinds.told:
            self._take_score(query, self._read_score(query, body))
        else:
            self._take_review(body)
        self._events.append(entry)

    def _read_score(self, query: Query, body: Mapping[str, object]) -> float | None:
        try:
            score = check_score(body["score"], query)
        except (KeyError, InputError) as error:
            raise LedgerError(
                f"round {query.step} of the record has no usable score ({error}): it was altered"
            ) from None
        if body.get("id") != query.id:
            raise LedgerError(
                f"round {query.step} of the record asks for {query.id!r} and scores "
                f"{body.get('id')!r}"
            )
        return score

    def _rewind(self, step: int) -> None:
        """Replay the record up to the question of a step."""
        kept = [
            e
            for e in self._events
            if e.body["step"] < step or (e.body["step"] == step and e.kind == self.kinds.asked)
        ]
        self._events = []
        self._restart()
        for entry in kept:
            self.replay(entry)
        self.corrections += 1


def check_score(score: Any, query: Query) -> float | None:
    """Return the score as a number, or None.

    Raises
    ------
    InputError
        If it is not None or a number in [0, 1].
    """
    if score is None:
        return None
    try:
        is_number = not isinstance(score, str | bytes) and not np.ndim(score)
        value = float(score) if is_number else None
    except (TypeError, ValueError):
        value = None
    if value is None:
        raise InputError(
            f"the score {score!r} of case {query.id!r} is not a number; scores lie in [0, 1]"
        )
    if not 0 <= value <= 1:
        raise InputError(
            f"the score {value:g} of case {query.id!r} is outside [0, 1]; 1 is a pass, 0 a failure"
        )
    return value
