"""A reviewer's desk: what a page shows of an item, and whether a key was pressed about that one."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from groundfault.review.decision import Decision
from groundfault.review.queue import QUESTIONS, Item, find_next, normalize
from groundfault.review.session import Session
from groundfault.workbench.excerpts import MAX_LENGTH, shorten

MAX_WHOLE = 90_000
"""Characters of a text that are shown when all of it is asked for."""


@dataclass(frozen=True)
class AnswerChoice:
    """An answer to a question: its key, what is sent, and the question that follows, if any."""

    key: str
    word: str
    follows: str


@dataclass(frozen=True)
class QuestionView:
    """A question as it is asked about an item, with what this reviewer answered before."""

    name: str
    text: str
    choices: tuple[AnswerChoice, ...]
    before: str


@dataclass(frozen=True)
class ItemView:
    """What a page shows of an item.

    The item's id, and that of its task where the task has a wording, are left out: whoever knows
    the run could look up by them who answered.

    Attributes
    ----------
    texts : tuple of (str, str)
        Heads and texts, in reading order.
    is_cut : bool
        Whether a text was too long to be shown whole.
    questions : tuple of QuestionView
    note : str
        This reviewer's own, from before.
    """

    texts: tuple[tuple[str, str], ...]
    is_cut: bool
    questions: tuple[QuestionView, ...]
    note: str

    @classmethod
    def of(cls, item: Item, previous: Decision | None, max_length: int = MAX_LENGTH) -> ItemView:
        """Return the view of an item.

        Parameters
        ----------
        item : Item
        previous : Decision or None
            What the same reviewer said of it before.
        max_length : int
            Characters of a text, from which on its middle is left out.
        """
        copy = f" (copy {item.copy})" if item.copy > 1 else ""
        texts = (
            ("Task", item.question or item.task),
            ("Prompt", item.prompt),
            (f"Response{copy}", item.response),
            *[("Expected answer", item.answer)] * bool(item.answer),
            ("Answer as read", "none was read" if item.extracted is None else item.extracted),
        )
        return cls(
            tuple((head, shorten(text, max_length)) for head, text in texts),
            any(len(text) > max_length for _, text in texts),
            tuple(_view_question(name, item, previous) for name in QUESTIONS),
            previous.note if previous else "",
        )


@dataclass(frozen=True)
class ReviewStage:
    """What lies on the desk.

    Attributes
    ----------
    turn : str
        Random; a key that was pressed is about this item only if it comes with this turn.
    item : ItemView or None
        None at the end.
    following : ItemView or None
        What comes next, so that the page has it ready.
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
        Begins a session from what is stored.

    Raises
    ------
    InputError, LedgerError
        As `groundfault.review.Session`.
    """

    def __init__(self, begin: Callable[[], Session]) -> None:
        self._begin, self._lock = begin, threading.Lock()
        self._session = begin()
        self._turn_over()

    @property
    def reviewer(self) -> str:
        """Return the name of the reviewer."""
        return self._session.reviewer

    def look(self) -> ReviewStage:
        """Return the stage as it is now."""
        with self._lock:
            return self._stage()

    def read_whole(self) -> ItemView | None:
        """Return the present item, its texts as whole as a page can hold."""
        with self._lock:
            item = self._session.item
            return ItemView.of(item, self._session.previous, MAX_WHOLE) if item else None

    def decide(self, turn: str, answers: Mapping[str, str]) -> tuple[bool, ReviewStage]:
        """Keep a decision, once; whether it was about the item on the desk, and what is next.

        Raises
        ------
        InputError
            If an answer is missing or not one, or the store cannot be written to; the item then
            stays on the desk.
        """

        def act(session: Session) -> None:
            fields = {name: answers[name] for name in QUESTIONS if answers.get(name)}
            session.decide(**fields, note=normalize(answers.get("note", "")).strip())

        return self._act(turn, act)

    def skip(self, turn: str) -> tuple[bool, ReviewStage]:
        """Leave the item for later; as `decide`."""
        return self._act(turn, Session.skip)

    def back(self, turn: str) -> tuple[bool, ReviewStage]:
        """Show the item before again, to revise what was said; as `decide`."""
        return self._act(turn, Session.back)

    def start_again(self) -> ReviewStage:
        """Begin another session: with items that were skipped, added or disputed since."""
        with self._lock:
            self._session = self._begin()
            self._turn_over()
            return self._stage()

    def _act(self, turn: str, act: Callable[[Session], object]) -> tuple[bool, ReviewStage]:
        with self._lock:
            # a second press, a second tab and a request sent again all come with an old turn, and
            # what cannot be encoded is none of ours
            is_current = secrets.compare_digest(turn.encode(errors="replace"), self._turn.encode())
            if is_current:
                act(self._session)
                self._turn_over()
            return is_current, self._stage()

    def _turn_over(self) -> None:
        self._turn = secrets.token_urlsafe(9)

    def _stage(self) -> ReviewStage:
        session = self._session
        item, following = session.item, session.following
        return ReviewStage(
            self._turn,
            _view(session, item) if item else None,
            _view(session, following) if following else None,
            decided=session.total - session.remaining,
            total=session.total,
            adjudicates=session.role == "adjudicator",
        )


def _view(session: Session, item: Item) -> ItemView:
    return ItemView.of(item, session.find_previous(item))


def _view_question(name: str, item: Item, previous: Decision | None) -> QuestionView:
    question = QUESTIONS[name]
    choices = tuple(
        AnswerChoice(key, word, find_next(name, word) or "") for key, word in question.words.items()
    )
    return QuestionView(name, question.word(item), choices, getattr(previous, name, None) or "")
