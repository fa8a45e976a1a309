"""A page of sections: one content, set as HTML, as Markdown and in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from groundfault.render import words
from groundfault.render.figures import Figure
from groundfault.render.markdown import escape, set_table
from groundfault.render.tables import Table

if TYPE_CHECKING:
    from rich.console import Console, Group

_READABLE = (
    13  # a column of words has as many characters in a terminal, and for a long word twice as many
)


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
            console.print(fitted(table, console.width))
            if table.note:
                say(table.note, "dim")


def fitted(table: Table, width: int, styles: Sequence[str] = ()) -> Group:
    """A table as a terminal of this width can show it: no number is broken, and no word of a head
    over numbers.

    One that is wider yet comes in parts, each of which begins with the columns of words that lead
    the table.

    Parameters
    ----------
    table : Table
    width : int
        Of the terminal, in characters.
    styles : sequence of str
        Of the rows; left out, all are plain.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table as Shown
    from rich.text import Text

    every = range(len(table.columns))
    gap = 2 if _needs(table, every, 2) <= width else 1
    parts: list[Shown | Text] = []
    for columns in _parts(table, width, gap):
        out = Shown(box=SIMPLE_HEAD, pad_edge=False, padding=(0, gap - 1, 0, 0), show_edge=False)
        for place, room in _widths(table, columns, width, gap).items():
            column = table.columns[place]
            out.add_column(
                Text(column.head),
                justify="right" if column.kind == "number" else "left",
                overflow="fold",
                width=room,
            )
        for row, style in zip_longest(table.rows, styles):
            out.add_row(*(Text(words.clean(row[place])) for place in columns), style=style)
        parts += [Text(), out] if parts else [out]
    return Group(*parts)


def _parts(table: Table, width: int, gap: int) -> Iterator[list[int]]:
    """The columns of each part: as many as find room beside those that lead."""
    kinds = [column.kind for column in table.columns]
    lead = kinds.index("number") if "number" in kinds else len(kinds)
    part = list(range(lead))
    for place in range(lead, len(kinds)):
        if len(part) > lead and _needs(table, [*part, place], gap) > width:
            yield part
            part = list(range(lead))
        part.append(place)
    yield part


def _needs(table: Table, places: Iterable[int], gap: int) -> int:
    """The width that columns need, with gaps between them."""
    return sum(_least(table, place) + gap for place in places) - gap


def _least(table: Table, place: int) -> int:
    """The width that a column needs: its longest number, or as much of its words as can be read."""
    column, cells = table.columns[place], [row[place] for row in table.rows]
    longest = _longest([*column.head.split(), *cells])
    if column.kind == "number":
        return longest
    return min(longest, max(_READABLE, min(_longest(" ".join(cells).split()), 2 * _READABLE)))


def _widths(table: Table, places: Sequence[int], width: int, gap: int) -> dict[int, int]:
    """The width of each column: what it needs, and of what is left words get the most."""
    widths = {place: _least(table, place) for place in places}
    wanted = {p: _longest([table.columns[p].head, *(row[p] for row in table.rows)]) for p in places}
    for _ in range(width - _needs(table, places, gap)):
        narrow = [place for place in places if widths[place] < wanted[place]]
        if narrow:
            widths[min(narrow, key=lambda p: (table.columns[p].kind == "number", widths[p]))] += 1
    return widths


def _longest(texts: Iterable[str]) -> int:
    from rich.cells import cell_len

    return max((cell_len(words.clean(text)) for text in texts), default=0)


def _blocks(content: Page) -> Iterator[str]:
    yield f"# {escape(content.verdict)}"
    yield f"Groundfault {content.kind} of {escape(content.title)}"
    yield " · ".join(f"{escape(label)}: {escape(text)}" for label, text in content.facts)
    for section in content.sections:
        if section.sentences or section.tables:
            yield f"## {escape(section.title)}"
            yield from (escape(sentence) for sentence in section.sentences)
            yield from (
                set_table(table, caption=table.caption != section.title) for table in section.tables
            )
