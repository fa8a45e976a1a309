"""The screen of a review: one item at a time, three questions, one key each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from groundfault.errors import InputError
from groundfault.render.words import clean, plural
from groundfault.review.questions import GUIDANCE, QUESTIONS, find_open

if TYPE_CHECKING:
    from groundfault.review import Decision, Item, Session

_HELP = (
    *GUIDANCE,
    "Unsure leaves the item to others. Every decision is kept at once; b goes back to change one.",
)
# characters of a text that are shown at first: some responses repeat themselves for pages
_MAX_LENGTH = 8000
_WIDTH = 100


def review(
    session: Session, console: Console | None = None, key: Callable[[], str] | None = None
) -> None:
    """Show a reviewer their items until all are decided or they quit.

    Parameters
    ----------
    session : Session
    console : Console, optional
    key : callable, optional
        Returns the next key that is pressed; by default from the terminal.

    Raises
    ------
    InputError
        If there is no terminal, or the store cannot be written to.
    """
    console = console or Console(highlight=False)
    read_key = key or _key
    while session.item is not None:
        if not _decide(session, console, read_key):
            break
    console.print()
    ending = (
        "all are decided"
        if not session.remaining
        else f"{plural(session.remaining, 'item')} left: run the same command again"
    )
    console.print(Text(f"{plural(session.total, 'item')}; {ending}"))


def _decide(session: Session, console: Console, read_key: Callable[[], str]) -> bool:
    """One item; False to quit."""
    item = session.item
    assert item is not None
    if console.is_terminal:
        console.clear()
    _show(session, item, console)
    answers: dict[str, str] = {}
    note = session.previous.note if session.previous else ""
    while (question := find_open(answers)) is not None:
        _prompt(question, item, console)
        pressed = read_key().lower()
        words = QUESTIONS[question].words
        console.print(Text(words.get(pressed, ""), style="bold"))
        if pressed in words:
            answers[question] = words[pressed]
        elif pressed == "q":
            return False
        elif pressed == "s":
            session.skip()
            return True
        elif pressed == "b" and answers:
            answers.popitem()
        elif pressed == "b":
            if session.back():
                return True
            console.print("this is the first item")
        elif pressed == "t":
            note = click.prompt("note", default=note, show_default=bool(note))
        elif pressed == "a":
            _texts(item, console, max_length=None)
        else:
            for line in _HELP:
                console.print(Padding(Text(line), (0, 0, 0, 2)), width=_width(console))
    session.decide(**answers, note=note)
    return True


def _show(session: Session, item: Item, console: Console) -> None:
    who = "adjudication, " if session.role == "adjudicator" else ""
    title = Text(clean(f"{who}{session.total - session.remaining} of {session.total} decided"))
    console.print(Rule(title, align="left"), width=_width(console))
    _texts(item, console, max_length=_MAX_LENGTH)
    if session.previous is not None:
        console.print(Text(f"you said: {_describe(session.previous)}", style="italic"))
    console.print(Rule(), width=_width(console))


def _texts(item: Item, console: Console, max_length: int | None) -> None:
    """Print the texts of an item."""
    # as Text, never as markup: a response may contain "[red]" or control characters
    copy = f" (copy {item.copy})" if item.copy > 1 else ""
    _text("task", item.task, console)
    if item.question:
        _text("question", item.question, console)
    _text("prompt", item.prompt, console, max_length)
    _text(f"response{copy}", item.response, console, max_length)
    if item.answer:
        _text("expected answer", item.answer, console)
    _text(
        "answer as read",
        "none was read" if item.extracted is None else item.extracted,
        console,
        max_length,
    )


def _text(name: str, text: str, console: Console, max_length: int | None = None) -> None:
    console.print(Text(name, style="bold cyan"))
    console.print(Padding(Text(_lines(text, max_length)), (0, 0, 0, 2)), width=_width(console))


def _lines(text: str, max_length: int | None) -> str:
    """A text line by line, cleaned; of a long one its start and its end."""
    if max_length is not None and len(text) > max_length:
        n_cut = len(text) - max_length
        start, end = text[: max_length // 2], text[-(max_length // 2) :]
        text = f"{start}\n[... {n_cut:,} characters are not shown; a shows all ...]\n{end}"
    return "\n".join(clean(line) for line in text.split("\n")) or "(empty)"


def _prompt(question: str, item: Item, console: Console) -> None:
    keys = ", ".join(f"{key} {word}" for key, word in QUESTIONS[question].words.items())
    console.print(Text(QUESTIONS[question].word(item), style="bold"))
    console.print(Text(f"  {keys}   |   b back, s skip, t note, q quit, ? help > "), end="")


def _describe(decision: Decision) -> str:
    answers = ("prompt_valid", "extraction_valid", "artefact", "model_wrong")
    answers_text = [
        f"{name.replace('_', ' ')}: {getattr(decision, name)}"
        for name in answers
        if getattr(decision, name)
    ]
    return "; ".join([*answers_text, *([f"note: {clean(decision.note)}"] if decision.note else [])])


def _width(console: Console) -> int:
    return min(console.width, _WIDTH)


def _key() -> str:
    try:
        return click.getchar() or "q"
    except (EOFError, KeyboardInterrupt):
        return "q"
    except OSError:
        raise InputError(
            "a review needs a terminal; without one, --export a sheet and --import it filled in"
        ) from None
