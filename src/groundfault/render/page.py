"""The outline of a report, before it is set in any format: a page of sections, and blocks in them.

Each result makes one `Page`, which any renderer sets. Nothing is escaped or computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import ClassVar, Generic, Literal, TypeVar

from groundfault.render import words
from groundfault.render.drawing import Figure

Kind = Literal["text", "code", "number", "under"]
Style = Literal["", "notice", "small"]
Item = TypeVar("Item", contravariant=True)


@dataclass(frozen=True)
class Code:
    """A name or a rule out of the data, inside a line of words."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Highlight:
    """Words inside a line that the reader should notice, such as the words of a rule."""

    mark: ClassVar = True
    text: str

    def __str__(self) -> str:
        return self.text


Line = tuple[str | Code | Highlight, ...]


@dataclass(frozen=True)
class TableColumn:
    """A column's head and the kind of its cells: words, names from the data (``code``), or numbers.

    A wide page sets code that is ``under`` below the first cell.
    """

    head: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Order:
    """An order in which readers may put the rows of a table.

    Attributes
    ----------
    key, label : str
    ranks : tuple of int
        The place of each row, from 1.
    """

    key: str
    label: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes
    ----------
    caption : str
    columns : tuple of TableColumn
    rows : tuple of tuple of str
    note : str
        Remarks that a reader needs to read it rightly.
    orders : tuple of Order
        Where a page offers more than the order of the rows; at most one table of a page does.
    classes : tuple of str
        A word for each row that a style sheet may know, such as a verdict.
    anchors : tuple of str
        The part of the page that each row is about; empty without one.
    """

    block: ClassVar = "table"
    caption: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    orders: tuple[Order, ...] = ()
    classes: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()

    def drop_empty_columns(self) -> Table:
        """Return the table without the columns in which no row has anything."""
        places = [
            i
            for i in range(len(self.columns))
            if any(row[i] not in ("", words.NONE) for row in self.rows)
        ]
        return self.take_columns(places)

    def take_columns(self, places: list[int]) -> Table:
        """Return the table with the columns at these places alone."""
        return replace(
            self,
            columns=tuple(self.columns[i] for i in places),
            rows=tuple(tuple(row[i] for i in places) for row in self.rows),
        )


def make_table(
    caption: str,
    kinds: str,
    heads: Sequence[str],
    rows: Iterable[tuple[str, ...]],
    note: str = "",
    anchors: tuple[str, ...] = (),
) -> Table:
    """Make a table of rows; ``kinds`` has a letter for each column.

    It is ``t`` for words, ``n`` for numbers, and ``c`` for names from the data.
    """
    columns = (TableColumn(head, _KINDS[kind]) for head, kind in zip(heads, kinds, strict=True))
    return Table(caption, tuple(columns), tuple(rows), note, anchors=anchors)


_KINDS: dict[str, Kind] = {"t": "text", "n": "number", "c": "code"}


@dataclass(frozen=True)
class Words(Generic[Item]):
    """A column of words: its head, and how a cell is read off an item.

    A cell may be a text, a count, or None if it is empty.
    """

    kind: ClassVar[Kind] = "text"
    head: str
    cell: Callable[[Item], str | int | None]


class Number(Words[Item]):
    """A column of numbers."""

    kind = "number"


class Name(Words[Item]):
    """A column of names from the data."""

    kind = "code"


class Under(Words[Item]):
    """A column of code that a wide page sets under the first cell."""

    kind = "under"


def tabulate(
    caption: str,
    items: Collection[Item],
    *columns: Words[Item],
    note: str = "",
    drop: bool = False,
    most: int | None = None,
) -> Table:
    """Make a table with a row for each item.

    Parameters
    ----------
    *columns : Words, Number, Name or Under
    drop : bool
        Whether columns in which no row has anything are left out.
    most : int, optional
        Rows of a longer table; one more says how many are left.
    """
    rows = [
        tuple(_write_cell(column.cell(item)) for column in columns) for item in islice(items, most)
    ]
    if most is not None and len(items) > most:
        rows.append((f"and {words.count(len(items) - most)} more", *("" for _ in columns[1:])))
    heads = tuple(TableColumn(column.head, column.kind) for column in columns)
    table = Table(caption, heads, tuple(rows), note)
    return table.drop_empty_columns() if drop else table


def _write_cell(value: str | int | None) -> str:
    if value is None:
        return words.NONE
    return value if isinstance(value, str) else words.count(value)


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; a notice is one that stands out."""

    block: ClassVar = "paragraph"
    line: Line
    style: Style = ""


@dataclass(frozen=True)
class Bullets:
    """Short remarks, one a bullet."""

    block: ClassVar = "bullets"
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Bar:
    """A rate beside the rate elsewhere, as a picture.

    Attributes
    ----------
    inside, outside : float
        In [0, 1].
    full : float
        The rate that the full width stands for.
    """

    inside: float
    outside: float
    full: float = 1.0

    @property
    def widths(self) -> tuple[int, int]:
        """Return both rates in thousandths of the full width."""
        rates = self.inside, self.outside
        inside, outside = (min(1000, round(1000 * rate / self.full)) for rate in rates)
        return inside, outside

    def draw(self, cells: int) -> str:
        """Return the bar in characters: dark up to the one rate, and grey up to the other."""
        inside, outside = (max(round(cells * w / 1000), int(w > 0)) for w in self.widths)
        grey = min(inside, outside)
        return "▒" * grey + "█" * (inside - grey) + "░" * (cells - inside)


@dataclass(frozen=True)
class Statement:
    """One finding: its name, the claim about it, and lesser remarks.

    Attributes
    ----------
    name : str or Code
        Code where it is a name out of the data.
    sentence : str
    remarks : tuple of Line
    anchor : str
        The entry that holds its numbers.
    bar : Bar, optional
    """

    name: str | Code
    sentence: str
    remarks: tuple[Line, ...] = ()
    anchor: str = ""
    bar: Bar | None = None


@dataclass(frozen=True)
class Statements:
    """The findings, the most important first.

    Attributes
    ----------
    items : tuple of Statement
    open : int
        How many a page shows; the others are folded under ``more``.
    more : str
    shares : tuple of (int, float)
        Numbers of items, and their parts of all failures in percent, which a bar above them shows.
    is_graded : bool
        Whether the parts are of losses, not of failures.
    """

    block: ClassVar = "statements"
    items: tuple[Statement, ...]
    open: int = 12
    more: str = "more"
    shares: tuple[tuple[int, float], ...] = ()
    is_graded: bool = False


@dataclass(frozen=True)
class Remarks:
    """Labels, each with words, code out of the data, or a line of both."""

    block: ClassVar = "remarks"
    items: tuple[tuple[str, str | Code | Line], ...]


@dataclass(frozen=True)
class Figures:
    """Figures, side by side where there is room."""

    block: ClassVar = "figures"
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Excerpt:
    """One example from the data: its id, a remark (for example "wrong"), and its texts.

    Of each text there are its label and its lines.
    """

    name: str
    remark: str
    texts: tuple[tuple[str, tuple[Line, ...]], ...] = ()


@dataclass(frozen=True)
class Excerpts:
    """Examples under heads, the groups side by side where there is room."""

    block: ClassVar = "excerpts"
    groups: tuple[tuple[str, tuple[Excerpt, ...]], ...]


@dataclass(frozen=True)
class Entry:
    """Blocks under a head of their own; a code head is a name out of the data."""

    block: ClassVar = "entry"
    title: str | Code
    blocks: tuple[Block, ...]
    anchor: str = ""


@dataclass(frozen=True)
class Fold:
    """Blocks that a page opens when asked; a printed page shows them."""

    block: ClassVar = "fold"
    summary: Line
    blocks: tuple[Block, ...]
    printed: bool = True


@dataclass(frozen=True)
class Columns:
    """Short tables side by side where there is room."""

    block: ClassVar = "columns"
    tables: tuple[Table, ...]


Block = (
    Paragraph | Bullets | Statements | Remarks | Figures | Table | Excerpts | Entry | Fold | Columns
)


Content = Block | str | None | Iterable["Content"]
"""Blocks; texts, each of which is a paragraph; and what has nothing to say."""


def list_blocks(*content: Content) -> tuple[Block, ...]:
    """List the blocks of some content, without texts, tables and figures that are empty."""
    blocks: list[Block] = []
    for item in content:
        if isinstance(item, str):
            blocks += [Paragraph((item,))] if item else []
        elif isinstance(item, Iterable):
            blocks += list_blocks(*item)
        elif item not in (None, Figures(())) and not (isinstance(item, Table) and not item.rows):
            blocks.append(item)
    return tuple(blocks)


def small(text: str, style: Style = "small") -> Paragraph | None:
    """Return a paragraph in small print, or in another style; None without a text."""
    return Paragraph((text,), style) if text else None


notice = partial(small, style="notice")
"""Return a paragraph that nobody may overlook; None without a text."""


@dataclass(frozen=True, init=False)
class Section:
    """A head, and under it sentences, figures, tables and other blocks, in this order.

    Attributes
    ----------
    title : str
    content : tuple of Block
    anchor : str
        Its name in an address; left out, its number.
    for_files : bool
        Whether a terminal leaves it to the files.
    tab : str
        Name of a tab that begins here; empty to continue the tab of the section before.
    """

    title: str
    content: tuple[Block, ...]
    anchor: str
    for_files: bool
    tab: str

    def __init__(
        self, title: str, *parts: Content, anchor: str = "", for_files: bool = False, tab: str = ""
    ) -> None:
        self.__dict__.update(title=title, content=list_blocks(*parts), anchor=anchor)
        self.__dict__.update(for_files=for_files, tab=tab)

    @classmethod
    def of(cls, table: Table, *lines: str, anchor: str = "", for_files: bool = False) -> Section:
        """Make the section of a table, which has its caption as the head; empty without rows."""
        content: Content = (*lines, table) if table.rows else None
        return cls(table.caption, content, anchor=anchor, for_files=for_files)

    @property
    def has_words(self) -> bool:
        """Return whether anything is left of the section without figures."""
        return any(not isinstance(block, Figures) for block in self.content)


@dataclass(frozen=True, init=False)
class Page:
    """The content of a report, for any format.

    Attributes
    ----------
    kind : str
        The way of working: ``audit``, ``sequential audit``, ``taxonomy``, ``probes``, ...
    title, verdict : str
        The subject, and the answer in a line.
    facts : tuple of pair of str
        Labels and values.
    sections : tuple of Section
        Sections that are not empty.
    good : bool
        Whether the verdict is that something was found.
    lead : tuple of Block
        Blocks under the verdict, before all sections.
    footer : str
    """

    kind: str
    title: str
    verdict: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    good: bool
    lead: tuple[Block, ...]
    footer: str

    def __init__(
        self,
        kind: str,
        title: str,
        verdict: str,
        *,
        facts: Iterable[tuple[str, str]] = (),
        lead: Content = (),
        sections: Iterable[Section | None] = (),
        good: bool = False,
        footer: str = "",
    ) -> None:
        self.__dict__.update(kind=kind, title=title, verdict=verdict, good=good, footer=footer)
        full = tuple(section for section in sections if section is not None and section.content)
        self.__dict__.update(facts=tuple(facts), lead=list_blocks(lead), sections=full)

    @property
    def anchored(self) -> Iterator[tuple[str, Section]]:
        """Yield sections, each with its name in an address."""
        for number, section in enumerate(self.sections, 1):
            yield section.anchor or f"section-{number}", section
