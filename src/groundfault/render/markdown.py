"""Any page as GitHub-flavoured Markdown: its words, without its figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from groundfault.render import words
from groundfault.render.page import (
    Block,
    Bullets,
    Code,
    Columns,
    Entry,
    Excerpt,
    Excerpts,
    Figures,
    Fold,
    Highlight,
    Kind,
    Line,
    Page,
    Paragraph,
    Remarks,
    Statement,
    Statements,
    Table,
)

_SPECIAL = re.compile(r"[*_\[\]#~!$&<>|`\\]|://|www\.")
# escaped by name: a backslash before these means different things in cells, in code and in text,
# or to what makes links of addresses
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "`": "&#96;", "\\": "&#92;"}
_ENTITIES |= {"://": ":&#47;&#47;", "www.": "www&#46;"}


def markdown(page: Page) -> str:
    """Set a page as Markdown; text from data is escaped, also where it looks like HTML."""
    return "\n\n".join(_page(page)) + "\n"


def escape(text: object) -> str:
    """Escape text, so that it stands as itself wherever it is in a line."""
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), words.clean(text))


def code(text: object) -> str:
    """Set text as code where code can hold it in a table too; escape it where not."""
    plain = words.clean(text).strip()
    return f"`{plain}`" if plain and not set(plain) & set("`|\\") else escape(plain)


def set_table(table: Table, *, caption: bool = True) -> str:
    """Set a table in Markdown."""
    kinds = [column.kind for column in table.columns]
    lines = [
        _row(escape(column.head) for column in table.columns),
        _row("---:" if kind == "number" else ":---" for kind in kinds),
        *(
            _row(_cell(text, kind) for text, kind in zip(row, kinds, strict=True))
            for row in table.rows
        ),
    ]
    head = [f"**{escape(table.caption)}**", ""] if caption else []
    foot = ["", escape(table.note)] if table.note else []
    return "\n".join([*head, *lines, *foot])


def _page(page: Page) -> Iterator[str]:
    yield f"# {escape(page.verdict)}"
    yield f"Groundfault {page.kind} of {escape(page.title)}"
    if page.facts:
        yield " · ".join(f"{escape(label)}: {escape(text)}" for label, text in page.facts)
    yield from _blocks(page.lead)
    for section in page.sections:
        if section.has_words:
            yield f"## {escape(section.title)}"
            yield from _blocks(section.content, title=section.title)


def _blocks(blocks: Iterable[Block], title: str = "") -> Iterator[str]:
    """Set blocks in their order; a caption that repeats the head above it is left out."""
    for block in blocks:
        if isinstance(block, Figures):
            continue
        if isinstance(block, Table):
            if block.rows:
                yield set_table(block, caption=block.caption != title)
        elif isinstance(block, Columns):
            yield from _blocks(block.tables)
        elif isinstance(block, Entry):
            yield f"### {_span(block.title)}"
            yield from _blocks(block.blocks, title=str(block.title))
        elif isinstance(block, Fold):
            yield from _blocks(block.blocks, title=title)
        else:
            yield _text(block)


def _text(block: Paragraph | Bullets | Statements | Remarks | Excerpts) -> str:
    if isinstance(block, Paragraph):
        return f"> {_line(block.line)}" if block.style == "notice" else _line(block.line)
    if isinstance(block, Bullets):
        return "\n".join(f"- {_line(line)}" for line in block.lines)
    if isinstance(block, Statements):
        return "\n".join(map(_statement, block.items))
    if isinstance(block, Excerpts):
        return "\n\n".join(
            "\n".join([f"**{escape(title)}**", "", *map(_excerpt, excerpts)])
            for title, excerpts in block.groups
        )
    return "\n".join(
        f"- {escape(label)}: {_line(text) if isinstance(text, tuple) else _span(text)}"
        for label, text in block.items
    )


def _statement(statement: Statement) -> str:
    lines = [f"- **{_span(statement.name)}** {escape(statement.sentence)}"]
    if statement.bar:
        # two blanks end a line, so that the bar stands below its sentence
        lines = [f"{lines[0]}  ", f"  `{statement.bar.draw(40)}`  "]
    return "\n".join([*lines, *(f"  {_line(remark)}" for remark in statement.remarks)])


def _excerpt(excerpt: Excerpt) -> str:
    remark = f" ({escape(excerpt.remark)})" if excerpt.remark else ""
    texts = [
        f"  - {escape(label)}: {' '.join(map(_line, lines))}" for label, lines in excerpt.texts
    ]
    return "\n".join([f"- {code(excerpt.name)}{remark}", *texts])


def _line(line: Line) -> str:
    return "".join(map(_span, line))


def _span(span: str | Code | Highlight) -> str:
    if isinstance(span, Highlight):
        # blanks inside the marks, as in "** word**", would leave them as they stand
        return f"**{escape(span.text.strip())}**" if span.text.strip() else escape(span.text)
    return code(span.text) if isinstance(span, Code) else escape(span)


def _cell(text: str, kind: Kind) -> str:
    return code(text) if kind in ("code", "under") and text != words.NONE else escape(text)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
