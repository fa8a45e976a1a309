"""A live sequential audit as a page shows it: where it stands, the next case, and its label.

The record of the audit is the state. Whatever this process keeps is replayed from there, so that
one that was killed, and a label that came from elsewhere, change nothing."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from groundfault.errors import InputError
from groundfault.render import words
from groundfault.render.drawing import Figure
from groundfault.render.sequential_page import draw_wealth, format_e_value
from groundfault.review.annotators import PanelSeat
from groundfault.sequential.answers import read_label, select_fields
from groundfault.sequential.certificate import Certificate, WealthPoint
from groundfault.sequential.labelling import LabelSession
from groundfault.sequential.policies import Query
from groundfault.sequential.session import SequentialAudit
from groundfault.sequential.stopping_time import ToStop, count_to_stop
from groundfault.sequential.two_null_test import Verdict
from groundfault.workbench.excerpts import shorten


@dataclass(frozen=True)
class LiveStage:
    """Where an audit stands, and what is asked.

    Attributes
    ----------
    version : str
        Changes whenever something was recorded.
    title, verdict, reason, null : str
    finished : bool
    labelled, tested : int
    model, auditor : str
        Both e-values, as they are written.
    bar : float
        The e-value at which a null falls.
    to_stop : ToStop
    figure : Figure
    step : int
        The number of the query that waits for its score; 0 where there is none.
    case, group : str
        Its id, and where it was drawn from: empty for who labels, whom it might sway.
    fields : tuple of (str, str)
        What is shown of the case.
    waiting : tuple of str
        Who of a panel has still to judge it.
    may_label : bool
        Whether it is this person's turn.
    may_undo : bool
        Whether the last label can be taken back.
    """

    version: str
    title: str
    verdict: str
    reason: str
    null: str
    finished: bool
    labelled: int
    tested: int
    model: str
    auditor: str
    bar: float
    to_stop: ToStop
    figure: Figure
    step: int = 0
    case: str = ""
    group: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    waiting: tuple[str, ...] = ()
    may_label: bool = False
    may_undo: bool = False


class LiveDesk:
    """An audit as a page shows it.

    Parameters
    ----------
    audit : SequentialAudit
        With a ledger.
    session : LabelSession, optional
        The audit itself, or a seat on its panel. Left out, one watches: nothing is asked, and
        nothing can be labelled.
    columns : tuple of str
        Columns of a case to show; by default all that do not name an outcome.
    score_column : str, optional
        A further column that is not shown.
    """

    def __init__(
        self,
        audit: SequentialAudit,
        session: LabelSession[Verdict] | None = None,
        columns: tuple[str, ...] = (),
        score_column: str | None = None,
    ) -> None:
        self._audit, self._session, self._lock = audit, session, threading.Lock()
        self._columns, self._score_column = columns, score_column
        # the page asks every second: of a long audit that takes long to draw and to count
        self._drawn: tuple[str, Figure, ToStop] | None = None

    def look(self, *, ask: bool = True) -> LiveStage:
        """Return where it stands, labels from elsewhere among them.

        Parameters
        ----------
        ask : bool
            Whether the next query is drawn, and so recorded, where none is open.

        Raises
        ------
        LedgerError
            If the record was altered.
        """
        with self._lock:
            return self._stage(ask)

    def label(self, step: int, reply: str) -> tuple[bool, LiveStage]:
        """Take a score, once; return whether it was of the open query, and what is next.

        Parameters
        ----------
        step : int
            The query that the page showed.
        reply : str
            As `read_label` takes it.

        Raises
        ------
        InputError
            If it is no score, or not this person's turn; the query then stays open.
        LedgerError
            If another process scored it first; its score stands.
        """
        with self._lock:
            session, query = self._require_session(), self._audit.ask()
            # a second press, a second tab and a request sent again come with an old number
            if query is None or query.step != step:
                return False, self._stage()
            session.tell(query, read_label(reply))
            return True, self._stage()

    def undo(self, step: int) -> tuple[bool, LiveStage]:
        """Take the last label back, while the page shows the query after it; as `label`."""
        with self._lock:
            session = self._require_session()
            is_current = step == self._audit.labelled + 1
            if is_current:
                session.undo()
            return is_current, self._stage()

    def _require_session(self) -> LabelSession[Verdict]:
        if self._session is None:
            raise InputError("this page watches the audit; to label, use sequential run")
        return self._session

    def certificate(self) -> Certificate:
        """Return all that it takes to recompute the verdict, as it stands."""
        with self._lock:
            return self._audit.certificate()

    def _stage(self, ask: bool = True) -> LiveStage:
        audit, waiting = self._audit, self._watch()
        query = audit.ask() if self._session and (ask or waiting) else waiting
        version = f"{audit.labelled}.{len(audit.rounds)}.{len(audit.reviews)}.{audit.corrections}"
        if self._drawn is None or self._drawn[0] != version:
            self._drawn = version, self._draw(), count_to_stop(audit)
        _, figure, to_stop = self._drawn
        stage = LiveStage(
            version=version,
            title=audit.plan.model or ", ".join(words.tail(s, 1) for s in audit.pool.sources),
            verdict=audit.verdict,
            reason=audit.reason,
            null=audit.null,
            finished=audit.finished,
            labelled=audit.labelled,
            tested=audit.tested,
            model=format_e_value(audit.log_wealth.model),
            auditor=format_e_value(audit.log_wealth.auditor),
            bar=1 / audit.plan.alpha,
            to_stop=to_stop,
            figure=figure,
        )
        return stage if query is None else self._with_query(stage, query)

    def _draw(self) -> Figure:
        path = [WealthPoint(r.query.step, *r.log_e) for r in self._audit.rounds if r.closed]
        return draw_wealth([WealthPoint(0, 0.0, 0.0), *path], self._audit.plan.alpha)

    def _watch(self) -> Query | None:
        self._audit.catch_up()
        waiting = self._audit.open
        return waiting.query if waiting else None

    def _with_query(self, stage: LiveStage, query: Query) -> LiveStage:
        """Return the stage with the query that waits for its score."""
        session = self._session
        if session is None:
            group = query.group or "a set of cases"
            return replace(stage, step=query.step, case=query.id, group=group)
        waiting = session.panel.waiting() if isinstance(session, PanelSeat) else ()
        fields, _ = select_fields(query, self._columns, self._score_column)
        return replace(
            stage,
            step=query.step,
            case=query.id,
            fields=tuple((name, shorten(str(value))) for name, value in fields.items()),
            waiting=waiting,
            may_label=not isinstance(session, PanelSeat) or session.labeller in waiting,
            may_undo=session is self._audit and query.step > 1,
        )
