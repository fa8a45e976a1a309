"""A seat at a live sequential audit: where it stands, which case is next, and its label.

The record of the audit is the state. Whatever this process keeps is replayed from there, so that
one that was killed, and a label that came from elsewhere, change nothing."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from groundfault.errors import InputError
from groundfault.render import words
from groundfault.render.drawing import Figure
from groundfault.render.wealth_figure import draw_wealth, format_e_value
from groundfault.review.annotators import AnnotatorPanel
from groundfault.sequential.answers import read_score, select_fields
from groundfault.sequential.certificate import Certificate, WealthPoint
from groundfault.sequential.policies import Query
from groundfault.sequential.session import SequentialAudit
from groundfault.sequential.stopping_time import ToStop, count_to_stop
from groundfault.workbench.texts import shorten


@dataclass(frozen=True)
class Seat:
    """Who labels here, and what they see of a case.

    Attributes
    ----------
    columns : tuple of str
        Columns of a case to show; by default all but ``score_column``.
    score_column : str, optional
        A column with a score that exists already, and is not shown.
    positive_is_good : bool
        Whether a 1 that is typed is a pass.
    panel : AnnotatorPanel, optional
        Where several people label each case.
    labeller : str
        This person's name on the panel.
    """

    columns: tuple[str, ...] = ()
    score_column: str | None = None
    positive_is_good: bool = True
    panel: AnnotatorPanel | None = None
    labeller: str = ""


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
        Whether it is this seat's turn.
    positive_is_good : bool
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
    positive_is_good: bool = True


class LiveDesk:
    """An audit as a page shows it.

    Parameters
    ----------
    audit : SequentialAudit
        With a ledger.
    seat : Seat, optional
        Left out, one watches: nothing is asked, and nothing can be labelled.
    """

    def __init__(self, audit: SequentialAudit, seat: Seat | None = None) -> None:
        self._audit, self._seat, self._lock = audit, seat, threading.Lock()
        # the page asks every second: of a long audit that takes long to draw and to count
        self._drawn: tuple[str, Figure, ToStop] | None = None

    def look(self, *, ask: bool = True) -> LiveStage:
        """Where it stands, labels from elsewhere among them.

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
        """Take a score, once; whether it was of the query that is open, and what is next.

        Parameters
        ----------
        step : int
            The query that the page showed.
        reply : str
            ``pass``, ``fail``, ``unscored``, or a number from 0 to 1.

        Raises
        ------
        InputError
            If it is no score, or not this person's turn; the query then stays open.
        LedgerError
            If another process scored it first; its score stands.
        """
        with self._lock:
            seat = self._seat
            if seat is None:
                raise InputError("this page watches the audit; to label, use sequential run")
            query = self._audit.ask()
            # a second press, a second tab and a request sent again come with an old number
            if query is None or query.step != step:
                return False, self._stage()
            score = read_score(reply, "your answer", positive_is_good=seat.positive_is_good)
            if seat.panel is None:
                self._audit.tell(query, score)
            else:
                seat.panel.judge(seat.labeller, query, score)
            return True, self._stage()

    def certificate(self) -> Certificate:
        """All that it takes to recompute the verdict, as it stands."""
        with self._lock:
            return self._audit.certificate()

    def _stage(self, ask: bool = True) -> LiveStage:
        audit, seat = self._audit, self._seat
        waiting = self._watch()
        query = audit.ask() if seat and (ask or waiting) else waiting
        version = f"{audit.labelled}.{len(audit.rounds)}.{len(audit.reviews)}"
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
        """The stage with what waits for its score."""
        seat = self._seat
        if seat is None:
            group = query.group or "a set of cases"
            return replace(stage, step=query.step, case=query.id, group=group)
        waiting = seat.panel.waiting() if seat.panel else ()
        fields = select_fields(query, seat.columns, seat.score_column)
        return replace(
            stage,
            step=query.step,
            case=query.id,
            fields=tuple((name, shorten(str(value))) for name, value in fields.items()),
            waiting=waiting,
            may_label=seat.panel is None or seat.labeller in waiting,
            positive_is_good=seat.positive_is_good,
        )
