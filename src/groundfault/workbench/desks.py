"""Desks where a person labels: the case on a page, and the answers typed for it.

Requests may come at once, twice, or too late. The record of a live audit is its state: what this
process keeps is replayed from there, so that one that was killed, and a label that came from
elsewhere, change nothing."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from groundfault.errors import InputError
from groundfault.render import words
from groundfault.render.drawing import Figure
from groundfault.render.sequential_page import draw_wealth, format_e_value
from groundfault.review.annotators import PanelSeat
from groundfault.review.decision import QUESTIONS, find_next
from groundfault.review.notes import CODING_GUIDANCE
from groundfault.review.queue import GUIDANCE, Item, normalize
from groundfault.review.session import Session
from groundfault.sequential.answers import read_label, select_fields
from groundfault.sequential.certificate import Certificate, WealthPoint
from groundfault.sequential.labelling import LabelSession
from groundfault.sequential.policies import Query
from groundfault.sequential.session import SequentialAudit
from groundfault.sequential.stopping_time import ToStop, count_to_stop
from groundfault.sequential.two_null_test import Verdict

if TYPE_CHECKING:
    from groundfault.coding import Coding

MAX_LENGTH = 8_000
"""Characters of a text that are shown at first, some two screens: a response may repeat itself."""
MAX_WHOLE = 90_000
"""Characters of a text that are shown when all of it is asked for."""


class QuestionView(NamedTuple):
    """A question about an item, with this reviewer's earlier answer.

    Of each answer ``choices`` have its key, what is sent, and the question that follows, if any.
    """

    name: str
    text: str
    choices: tuple[tuple[str, str, str], ...]
    before: str


@dataclass(frozen=True)
class ItemView:
    """The view of an item on a page.

    Attributes
    ----------
    texts : tuple of (str, str)
        Heads and texts, in reading order.
    is_cut : bool
        Whether a text was too long to be shown whole.
    questions : tuple of QuestionView
    note : str
        This reviewer's own, from before.
    codes, step, quote : str
        This coder's earlier note on the run.
    known : tuple of str or None
        The codes so far, by their numbers; None where questions are asked.
    """

    texts: tuple[tuple[str, str], ...]
    is_cut: bool
    questions: tuple[QuestionView, ...]
    note: str
    codes: str = ""
    step: str = ""
    quote: str = ""
    known: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        item: Item,
        previous: Any,
        max_length: int = MAX_LENGTH,
        known: tuple[str, ...] | None = None,
    ) -> ItemView:
        """Return the view of an item.

        Parameters
        ----------
        item : Item
        previous : Opinion or None
            This reviewer's earlier decision on it.
        max_length : int
            Characters of a text, from which on its middle is left out.
        """
        texts = item.headed_texts
        return cls(
            tuple((head, shorten(text, max_length)) for head, text in texts),
            any(len(text) > max_length for _, text in texts),
            tuple(
                QuestionView(
                    name,
                    question.word(item.extracted),
                    tuple((k, w, find_next(name, w) or "") for k, w in question.words.items()),
                    getattr(previous, name, None) or "",
                )
                for name, question in (QUESTIONS if known is None else {}).items()
            ),
            previous.note if previous else "",
            ", ".join(getattr(previous, "codes", ())),
            str(step) if (step := getattr(previous, "step", None)) is not None else "",
            getattr(previous, "quote", ""),
            known,
        )


@dataclass(frozen=True)
class ReviewStage:
    """The state of the desk.

    Attributes
    ----------
    turn : str
        Random; a key that was pressed is about this item only if it comes with this turn.
    item : ItemView or None
        None at the end.
    following : ItemView or None
        The next item, so that the page has it ready.
    decided, total : int
        Items of this reviewer.
    adjudicates : bool
    """

    turn: str
    item: ItemView | None
    following: ItemView | None
    decided: int
    total: int
    adjudicates: bool


class ReviewDesk:
    """One reviewer's session as a page shows it; requests may come at once, twice, or too late.

    Parameters
    ----------
    begin : callable
        Begins a session from the stored decisions.
    coding : Coding, optional
        Where runs are coded.

    Raises
    ------
    InputError, LedgerError
        As `groundfault.review.Session`.
    """

    def __init__(self, begin: Callable[[], Session], coding: Coding | None = None) -> None:
        self._begin, self._lock, self.coding = begin, threading.Lock(), coding
        self._session = begin()
        self._turn_over()

    @property
    def reviewer(self) -> str:
        """Return the name of the reviewer."""
        return self._session.reviewer

    def look(self) -> ReviewStage:
        """Return the present stage."""
        with self._lock:
            return self._stage()

    def read_whole(self) -> ItemView | None:
        """Return the present item, its texts as whole as a page can hold."""
        with self._lock:
            item = self._session.item
            return self._view(item, MAX_WHOLE) if item else None

    def act(
        self, act: str, turn: str, answers: Mapping[str, str] | None = None
    ) -> tuple[bool, ReviewStage]:
        """Act on the item on the desk once; return whether the action fitted, and the next item.

        Parameters
        ----------
        act : {"decide", "skip", "back", "again"}
            Keep a decision; leave the item for later; show the item before, to revise it; begin
            another session, with items that were skipped, added or disputed since.
        turn : str
            The page's own number; an older page changes nothing.
        answers : mapping of str to str, optional
            A decision's, and its note.

        Raises
        ------
        InputError
            If an answer is missing or not one, or the store cannot be written to; the item then
            stays on the desk.
        """
        with self._lock:
            # a second press, a second tab and a request sent again all come with an old turn, and
            # what cannot be encoded is none of ours
            sent, answers = turn.encode(errors="replace"), answers or {}
            is_current = act == "again" or secrets.compare_digest(sent, self._turn.encode())
            if is_current:
                if act == "again":
                    self._session = self._begin()
                elif act == "decide":
                    fields = self._session.store.kind.read_answers(answers, self._known or ())
                    note = normalize(answers.get("note", "")).strip()
                    self._session.decide(**fields, note=note)
                else:
                    (self._session.skip if act == "skip" else self._session.back)()
                self._turn_over()
            return is_current, self._stage()

    def _turn_over(self) -> None:
        self._turn = secrets.token_urlsafe(9)

    @property
    def _known(self) -> tuple[str, ...] | None:
        return None if self.coding is None else tuple(self.coding.codes)

    @property
    def guidance(self) -> tuple[str, ...]:
        """Return notes that help to decide, a sentence or two each."""
        return GUIDANCE if self.coding is None else CODING_GUIDANCE

    def _view(self, item: Item, max_length: int = MAX_LENGTH) -> ItemView:
        return ItemView.of(item, self._session.find_previous(item), max_length, self._known)

    def _stage(self) -> ReviewStage:
        session = self._session
        item, following = (
            self._view(item) if item else None for item in (session.item, session.following)
        )
        return ReviewStage(
            self._turn,
            item,
            following,
            decided=session.total - session.remaining,
            total=session.total,
            adjudicates=session.role == "adjudicator",
        )


@dataclass(frozen=True)
class LiveStage:
    """The state of a live audit, and the open question.

    Attributes
    ----------
    version : str
        Changes whenever something was recorded.
    verdict, reason : str
    finished : bool
    labelled : int
    model, auditor : str
        Both e-values, as they are written.
    to_stop : ToStop
    figure : Figure
    step : int
        The number of the query that waits for its score; 0 if no query waits.
    case, group : str
        Its id, and where it was drawn from: empty for who labels, whom it might sway.
    fields : tuple of (str, str)
        The columns and texts of the case that are shown.
    waiting : tuple of str
        Who of a panel has still to judge it.
    may_label : bool
        Whether it is this person's turn.
    may_undo : bool
        Whether the last label can be taken back.
    """

    version: str
    verdict: str
    reason: str
    finished: bool
    labelled: int
    model: str
    auditor: str
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
        The audit itself, or a seat on its panel. Left out, you watch: the audit asks for no case,
        and you cannot label.
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
        self.audit, self._session, self._lock = audit, session, threading.Lock()
        self._columns, self._score_column = columns, score_column
        # the page asks every second: of a long audit that takes long to draw and to count
        self._latest: LiveStage | None = None

    @property
    def title(self) -> str:
        """Return the name of the model or, without one, of the file of its pool."""
        sources = (words.tail(source, 1) for source in self.audit.pool.sources)
        return self.audit.plan.model or ", ".join(sources)

    def look(self, *, ask: bool = True) -> LiveStage:
        """Return the present stage, with labels from elsewhere.

        Parameters
        ----------
        ask : bool
            Whether to draw the next query, which records it, if no query is open.

        Raises
        ------
        LedgerError
            If the record was altered.
        """
        with self._lock:
            return self._stage(ask)

    def label(self, step: int, reply: str) -> tuple[bool, LiveStage]:
        """Take a score once; return whether it fitted the open query, and the next query.

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
            session, query = self._require_session(), self.audit.ask()
            # a second press, a second tab and a request sent again come with an old number
            if query is None or query.step != step:
                return False, self._stage()
            session.tell(query, read_label(reply))
            return True, self._stage()

    def undo(self, step: int) -> tuple[bool, LiveStage]:
        """Take the last label back, while the page shows the query after it; as `label`."""
        with self._lock:
            session = self._require_session()
            is_current = step == self.audit.labelled + 1
            if is_current:
                session.undo()
            return is_current, self._stage()

    def _require_session(self) -> LabelSession[Verdict]:
        if self._session is None:
            raise InputError(
                "this page only watches the audit; to label, use groundfault label run"
            )
        return self._session

    def certificate(self) -> Certificate:
        """Return the present certificate, from which the verdict can be recomputed."""
        with self._lock:
            return self.audit.certificate()

    def _stage(self, ask: bool = True) -> LiveStage:
        audit = self.audit
        audit.catch_up()
        query = audit.open.query if audit.open else None
        if self._session and (ask or query):
            query = audit.ask()
        version = f"{audit.labelled}.{len(audit.rounds)}.{len(audit.reviews)}.{audit.corrections}"
        if self._latest is None or self._latest.version != version:
            path = [WealthPoint(r.query.step, *r.log_e) for r in audit.rounds if r.closed]
            self._latest = LiveStage(
                version,
                audit.verdict,
                audit.reason,
                audit.finished,
                audit.labelled,
                model=format_e_value(audit.log_wealth.model),
                auditor=format_e_value(audit.log_wealth.auditor),
                to_stop=count_to_stop(audit),
                figure=draw_wealth([WealthPoint(0, 0.0, 0.0), *path], audit.plan.alpha),
            )
        return self._latest if query is None else self._with_query(self._latest, query)

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
            may_undo=session is self.audit and query.step > 1,
        )


def shorten(text: str, max_length: int = MAX_LENGTH, hint: str = "") -> str:
    """Clean a text line by line; of a long one keep its start and its end, and add a hint.

    Examples
    --------
    >>> shorten("one\\ntwo"), shorten("")
    ('one\\ntwo', '(empty)')
    """
    if len(text) > max_length:
        half = max_length // 2
        n_cut = len(text) - 2 * half
        text = f"{text[:half]}\n[... {n_cut:,} characters are not shown{hint} ...]\n{text[-half:]}"
    return "\n".join(words.clean(line) for line in text.split("\n")) or "(empty)"
