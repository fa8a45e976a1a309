"""A page of sections: one content, set as HTML, as Markdown and in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groundfault.render import words
from groundfault.render.figures import Figure
from groundfault.render.markdown import escape, set_table
from groundfault.render.tables import Table

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Section:
    """A head, and under it sentences, figures and tables in this order."""

    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Page:
    """What a report says, in whatever format.

    Attributes
    ----------
    kind : str
        Of report, such as ``taxonomy``.
    title, verdict : str
        What it is of, and the answer in a line.
    facts : tuple of pair of str
        Labels and what stands there.
    sections : tuple of Section
    good : bool
        Whether the verdict is that something was found.
    """

    kind: str
    title: str
    verdict: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    good: bool


def html(content: Page) -> str:
    """One self-contained page; everything that came from data is escaped."""
    from markupsafe import Markup

    from groundfault.render.html import page

    return page("page.html.j2", page=content, drawn=lambda f: Markup(f.svg))


def markdown(content: Page) -> str:
    """The same as Markdown, without figures."""
    return "\n\n".join(_blocks(content)) + "\n"


def show(content: Page, console: Console) -> None:
    """The same in a terminal, without figures."""
    from rich.text import Text

    def say(text: str, style: str = "") -> None:
        console.print(Text(words.clean(text), style=style))

    say(content.verdict, "bold green" if content.good else "bold")
    say(content.title, "dim")
    say("; ".join(f"{label} {text}" for label, text in content.facts), "dim")
    for section in content.sections:
        if section.sentences or section.tables:
            console.print()
            say(section.title, "bold underline")
        for sentence in section.sentences:
            say(sentence)
        for table in section.tables:
            if table.caption != section.title:
                say(table.caption, "italic")
            console.print(_set(table))
            if table.note:
                say(table.note, "dim")


def _set(table: Table) -> object:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as Shown
    from rich.text import Text

    out = Shown(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for place, column in enumerate(table.columns):
        if column.kind == "number":
            out.add_column(Text(column.head), justify="right", overflow="fold")
        else:
            longest = max((len(row[place]) for row in table.rows), default=0)
            out.add_column(Text(column.head), overflow="fold", min_width=min(longest, 13))
    for row in table.rows:
        out.add_row(*(Text(words.clean(cell)) for cell in row))
    return out


def _blocks(content: Page) -> Iterator[str]:
    yield f"# {escape(content.verdict)}"
    yield f"Groundfault {content.kind} of {escape(content.title)}"
    yield " · ".join(f"{escape(label)}: {escape(text)}" for label, text in content.facts)
    for section in content.sections:
        if section.sentences or section.tables:
            yield f"## {escape(section.title)}"
            yield from (escape(sentence) for sentence in section.sentences)
            yield from (set_table(table) for table in section.tables)
