"""Any page in a terminal, without its figures; right from 80 columns on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from groundfault.render import words
from groundfault.render.page import (
    Block,
    Bullets,
    Columns,
    Entry,
    Excerpt,
    Excerpts,
    Fold,
    Highlight,
    Line,
    Page,
    Paragraph,
    Remarks,
    Statement,
    Statements,
    Table,
)

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table as RichTable
    from rich.text import Text

# a column of words has as many characters in a terminal, and for a long word twice as many
_READABLE = 13
_INDENT = 3
"""Characters before the sentence of a statement: its number stands there."""
_BAR = 60
"""Characters of a whole bar: it fits beside its indent in 80 columns."""
_STYLES = {"notice": "bold yellow", "small": "dim", "": ""}
_MARK_STYLES = {"●": "bold red", "○": "red"}
"""Styles of cells that end with a mark: a rate that is higher than elsewhere."""
_ROW_STYLES = {"screened": "dim", "printed": "dim italic", "more": "dim"}


def show(page: Page, console: Console) -> None:
    """Print a page, without the sections that are for files."""
    _say(console, page.verdict, "bold green" if page.good else "bold")
    if page.title:
        _say(console, page.title, "dim")
    if page.facts:
        _say(console, "; ".join(f"{label} {text}" for label, text in page.facts), "dim")
    show_blocks(page.lead, console, page.verdict)
    for section in page.sections:
        if section.has_words and not section.for_files:
            console.print()
            _say(console, section.title, "bold underline")
            show_blocks(section.content, console, section.title)
    if page.footer:
        _say(console, page.footer, "bold", wrap=False)


def fit_table(table: Table, width: int) -> Group:
    """Fit a table to a width: no number is broken, and no word of a head over numbers.

    One that is wider yet comes in parts, each of which begins with the columns of words that lead
    the table.

    Parameters
    ----------
    table : Table
    width : int
        Of the terminal, in characters.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    every = range(len(table.columns))
    gap = 2 if _width(table, every, 2) <= width else 1
    parts: list[RichTable | Text] = []
    for columns in _parts(table, width, gap):
        part = RichTable(box=SIMPLE_HEAD, pad_edge=False, padding=(0, gap - 1, 0, 0))
        part.show_edge = False
        for place, room in _widths(table, columns, width, gap).items():
            column = table.columns[place]
            part.add_column(
                Text(column.head),
                justify="right" if column.kind == "number" else "left",
                overflow="fold",
                width=room,
            )
        for row, style in zip_longest(table.rows, table.classes):
            cells = (
                Text(cell, _MARK_STYLES.get(cell[-1:], ""))
                for cell in (words.clean(row[place]) for place in columns)
            )
            part.add_row(*cells, style=_ROW_STYLES.get(style, ""))
        parts += [Text(), part] if parts else [part]
    return Group(*parts)


def show_blocks(blocks: Iterable[Block], console: Console, title: str) -> None:
    """Print blocks in their order; a caption that repeats the title above it is left out."""
    for block in blocks:
        if isinstance(block, Table) and block.rows:
            if block.caption != title:
                _say(console, block.caption, "italic")
            console.print(fit_table(block, console.width))
            if block.note:
                _say(console, block.note, "dim")
        elif isinstance(block, Columns):
            show_blocks(block.tables, console, title)
        elif isinstance(block, Entry | Fold):
            if isinstance(block, Entry):
                _say(console, str(block.title), "bold")
            show_blocks(block.blocks, console, title)
        else:
            _show_text(block, console)


def _show_text(block: Block, console: Console) -> None:
    if isinstance(block, Paragraph):
        _say(console, _plain(block.line), _STYLES[block.style])
    elif isinstance(block, Bullets):
        for line in block.lines:
            _say(console, f"- {_plain(line)}", "yellow")
    elif isinstance(block, Statements):
        for item in block.items:
            _show_statement(item, console)
    elif isinstance(block, Remarks):
        for label, text in block.items:
            _say(console, f"{label}: {_plain(text) if isinstance(text, tuple) else text}")
    elif isinstance(block, Excerpts):
        for title, excerpts in block.groups:
            if title:
                console.print()
                _say(console, title, "bold")
            for excerpt in excerpts:
                _show_excerpt(excerpt, console)


def _show_statement(item: Statement, console: Console) -> None:
    """Print a statement; with a bar, its name and sentence each have lines of their own."""
    if item.bar is None:
        _say(console, f"{item.name}: {item.sentence}")
    else:
        bar = item.bar.draw(min(console.width - 2 * _INDENT, _BAR))
        _say(console, str(item.name), "bold")
        _say(console, item.sentence, indent=_INDENT)
        _say(console, bar, "yellow", indent=_INDENT)
    for remark in item.remarks:
        _say(console, _plain(remark), "dim", indent=_INDENT)


def _show_excerpt(excerpt: Excerpt, console: Console) -> None:
    from rich.text import Text

    _say(console, " ".join(filter(None, [excerpt.name, excerpt.remark])), "dim", indent=_INDENT)
    for label, lines in excerpt.texts:
        text = Text(f"{words.clean(label)}: ", style="dim")
        for place, line in enumerate(lines):
            text.append("\n" if place else "")
            for span in line:
                style = "bold reverse" if isinstance(span, Highlight) else "not dim"
                text.append(words.clean(span), style=style)
        _print(console, text, 2 * _INDENT)


def _say(
    console: Console, text: str, style: str = "", *, wrap: bool = True, indent: int = 0
) -> None:
    from rich.text import Text

    _print(console, Text(words.clean(text), style=style), indent, wrap=wrap)


def _print(console: Console, text: Text, indent: int = 0, *, wrap: bool = True) -> None:
    from rich.padding import Padding

    # a word that is longer than a line goes on in the next one
    text.overflow = "fold"
    block = Padding(text, (0, 0, 0, indent), expand=False) if indent else text
    console.print(block, soft_wrap=not wrap)


def _plain(line: Line) -> str:
    return "".join(map(str, line))


def _parts(table: Table, width: int, gap: int) -> Iterator[list[int]]:
    """Split columns into parts, each with as many as fit beside the leading columns."""
    kinds = [column.kind for column in table.columns]
    lead = kinds.index("number") if "number" in kinds else len(kinds)
    part = list(range(lead))
    for place in range(lead, len(kinds)):
        if len(part) > lead and _width(table, [*part, place], gap) > width:
            yield part
            part = list(range(lead))
        part.append(place)
    yield part


def _width(table: Table, places: Iterable[int], gap: int) -> int:
    """Measure the width that columns need, with gaps between them."""
    return sum(_min_width(table, place) + gap for place in places) - gap


def _min_width(table: Table, place: int) -> int:
    """Measure the width that a column needs: its longest number, or readable words."""
    column, cells = table.columns[place], [row[place] for row in table.rows]
    longest = _longest([*column.head.split(), *cells])
    if column.kind == "number":
        return longest
    return min(longest, max(_READABLE, min(_longest(" ".join(cells).split()), 2 * _READABLE)))


def _widths(table: Table, places: Sequence[int], width: int, gap: int) -> dict[int, int]:
    """Share out the width: each column gets its need, and words get most of the rest."""
    widths = {place: _min_width(table, place) for place in places}
    full = {p: _longest([table.columns[p].head, *(row[p] for row in table.rows)]) for p in places}
    for _ in range(width - _width(table, places, gap)):
        narrow = [place for place in places if widths[place] < full[place]]
        if narrow:
            widths[min(narrow, key=lambda p: (table.columns[p].kind == "number", widths[p]))] += 1
    return widths


def _longest(texts: Iterable[str]) -> int:
    from rich.cells import cell_len

    return max((cell_len(words.clean(text)) for text in texts), default=0)
