"""What a study gives back: tables whose rows hold what was computed here beside what the paper
prints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, Literal

from groundfault.base.files import replace_folder, write_text
from groundfault.render import words
from groundfault.render.page import Page, Section, Table, TableColumn

SCHEMA_VERSION = 1

Value = str | int | float | tuple[float, float] | None
Kind = Literal["text", "count", "rate", "lift", "size", "p"]


@dataclass(frozen=True)
class PaperRow:
    """One line of a table.

    Attributes
    ----------
    label : str
    here : mapping of str to value
        What was computed, by column; a pair is a range. Empty where the paper alone has the row.
    paper : mapping of str to str
        What the paper prints, as printed, by column. Empty where it has no such row.
    """

    label: str
    here: Mapping[str, Value] = field(default_factory=dict)
    paper: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper, in form.

    Attributes
    ----------
    title : str
    note : str
        What the numbers are made of, and how far they can be compared.
    columns : mapping of str to pair of str
        Key, and the heading and the kind of number of each column after the label.
    rows : tuple of PaperRow
    """

    title: str
    note: str
    columns: Mapping[str, tuple[str, Kind]]
    rows: tuple[PaperRow, ...]

    def format_row(self, row: PaperRow) -> list[list[str]]:
        """The lines of a row as text, label first: what was computed here, then what the paper
        prints.
        """
        here = [
            row.label,
            *(format_value(row.here.get(key), kind) for key, (_, kind) in self.columns.items()),
        ]
        paper = [row.paper.get(key, "") for key in self.columns]
        if not row.here:
            return [[f"{row.label} (paper)", *paper]]
        return [here, ["  paper", *paper]] if row.paper else [here]

    def to_page_table(self) -> Table:
        """The table as pages and terminals show it; what the paper prints is set apart."""
        heads = (
            TableColumn(head, "text" if kind == "text" else "number")
            for head, kind in self.columns.values()
        )
        lines = [
            (tuple(line), "printed" if not row.here or number > 0 else "")
            for row in self.rows
            for number, line in enumerate(self.format_row(row))
        ]
        rows, classes = tuple(line for line, _ in lines), tuple(kind for _, kind in lines)
        return Table(self.title, (TableColumn(""), *heads), rows, self.note, classes=classes)

    def agreement(self) -> tuple[int, int]:
        """How many of the numbers that the paper prints come out the same to its last digit, and
        how many there are.
        """
        pairs = [
            (format_value(row.here[key], self.columns[key][1]), printed_number)
            for row in self.rows
            for key, printed_number in row.paper.items()
            if key in row.here
        ]
        return sum(here == printed_number for here, printed_number in pairs), len(pairs)


@dataclass(frozen=True)
class PaperStudy:
    """A paper's tables, regenerated.

    Attributes
    ----------
    name, title, source : str
        The command's word for it, a heading, and the paper.
    settings : dict
        What it was run with.
    tables : tuple of Table
    lacking : tuple of str
        What could not be computed, and what it needs.
    figures : mapping of str to str
        Drawings as SVG, by name; `write` puts them beside the tables.
    """

    name: str
    title: str
    source: str
    settings: dict[str, Any]
    tables: tuple[PaperTable, ...]
    lacking: tuple[str, ...] = ()
    figures: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The whole study as plain words and numbers."""
        return {
            "schema_version": SCHEMA_VERSION,
            "study": self.name,
            "title": self.title,
            "source": self.source,
            "settings": self.settings,
            "tables": [_table(table) for table in self.tables],
            "lacking": list(self.lacking),
        }

    def to_json(self) -> str:
        """The whole study as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)

    def make_page(self, folder: str | None = None) -> Page:
        """Make the page of the study; ``folder`` is where it is written to."""
        printed = any(row.paper for table in self.tables for row in table.rows)
        marked = " Lines marked paper are what it prints." if printed else ""
        footer = f"Written to {Path(folder) / f'{self.name}.md'} and .json" if folder else ""
        sections = [Section.of(table.to_page_table()) for table in self.tables]
        source = f"{self.source}.{marked}"
        return Page("study", source, self.title, sections=sections, footer=footer)

    def to_markdown(self) -> str:
        """The whole study as GitHub-flavoured Markdown."""
        from groundfault.render.markdown import escape, set_table

        blocks = [f"# {escape(self.title)}", f"{escape(self.source)}."]
        for table in self.tables:
            blocks += [
                f"## {escape(table.title)}",
                set_table(table.to_page_table(), caption=False),
            ]
        blocks += [f"![{escape(name)}]({self.name}-{name}.svg)" for name in self.figures]
        blocks += [f"Not computed: {escape(what)}." for what in self.lacking]
        return "\n\n".join(blocks) + "\n"

    def write(self, directory: str | Path) -> None:
        """Write NAME.md, NAME.json and NAME-FIGURE.svg into a directory, made where it is
        missing.
        """
        with replace_folder(directory) as place:
            write_text(place / f"{self.name}.md", self.to_markdown())
            write_text(place / f"{self.name}.json", self.to_json())
            for name, svg in self.figures.items():
                write_text(place / f"{self.name}-{name}.svg", svg)


def format_value(value: Value, kind: Kind) -> str:
    """A value as text; a range as its two ends."""
    if value is None:
        return words.NONE
    if isinstance(value, str):
        return words.clean(value)
    if isinstance(value, tuple):
        low, high = (
            f"{_round_half_up(100 * end, 0)}%" if kind == "rate" else format_value(end, kind)
            for end in value
        )
        return low if low == high else f"{low.removesuffix('%')}–{high}"
    if kind == "lift":
        return words.signed(float(_round_half_up(value, 2)))
    if kind == "rate":
        return f"{_round_half_up(100 * value, 1)}%"
    return (
        f"{_round_half_up(value, 2)}"
        if kind == "size"
        else words.p_value(value)
        if kind == "p"
        else f"{value:,}"
    )


def _round_half_up(value: float, digits: int) -> Decimal:
    """Halves go up, as papers round them: a lift of 23/40 is printed as 0.58."""
    return Decimal(f"{value:.12g}").quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def _table(table: PaperTable) -> dict[str, Any]:
    return {
        "title": table.title,
        "note": table.note,
        "columns": {key: heading for key, (heading, _) in table.columns.items()},
        "rows": [
            {"label": r.label, "here": dict(r.here), "paper": dict(r.paper)} for r in table.rows
        ],
    }
