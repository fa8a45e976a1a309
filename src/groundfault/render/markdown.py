"""The report as Markdown: what the page says, without its figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from groundfault.auditing.report import Report
from groundfault.core.finding import Finding
from groundfault.render import outline, tables, words
from groundfault.render.outline import FindingGroup, Outline
from groundfault.render.tables import Kind, Table

MOST_ROWS = 5000

_SPECIAL = re.compile(r"[*_\[\]#~!$&<>|`\\]|://|www\.")
# escaped by name: a backslash before these means different things in cells, in code and in text, or
# to a linkifier
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "`": "&#96;", "\\": "&#92;"}
_ENTITIES |= {"://": ":&#47;&#47;", "www.": "www&#46;"}


def markdown(report: Report) -> str:
    """The report as GitHub-flavoured Markdown; text from data is escaped, also where it looks like
    HTML.
    """
    said = Outline(report)
    parts = [
        _head(said),
        _answer(said),
        _confirmed(said),
        _screened(said),
        _everything(report),
        _limits(said),
        _manifest(report),
    ]
    return "\n\n".join(block for part in parts for block in part) + "\n"


def escape(text: object) -> str:
    """Text as itself, wherever in a line it stands."""
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), words.clean(text))


def code(text: object) -> str:
    """Text as code where code can hold it in a table too, escaped where not."""
    plain = words.clean(text).strip()
    return f"`{plain}`" if plain and not set(plain) & set("`|\\") else escape(plain)


def _head(said: Outline) -> Iterator[str]:
    yield f"# {escape(said.headline)}"
    yield f"Groundfault audit of {escape(said.title)}"
    yield " · ".join(f"{escape(label)}: {escape(text)}" for label, text in said.facts)


def _answer(said: Outline) -> Iterator[str]:
    if said.instrument:
        yield f"> {escape(said.instrument)}"
    if said.reopened:
        yield f"> **This holdout had been seen before.** {escape(words.capital(said.ledger))}."
    if said.groups:
        yield "\n".join(_lead(group) for group in said.groups)
    yield escape(said.conclusion)
    yield escape(said.footing)
    if said.report.hints:
        yield _bullets(f"{escape(words.capital(hint))}." for hint in said.report.hints)


def _lead(group: FindingGroup) -> str:
    lines = [f"- **{code(words.label(group.lead))}** {escape(group.lead.sentence)}"]
    if group.lead.aliases:
        lines.append(f"  Same units as {code(words.listing(group.lead.aliases))}.")
    if group.distinct:
        others = [f"{code(f.name)} ({words.signed(outline.shown(f).lift)})" for f in group.distinct]
        lines.append(f"  Not to be told apart from {words.listing(others)}.")
    return "\n".join(lines)


def _confirmed(said: Outline) -> Iterator[str]:
    if not said.groups:
        return
    yield "## Confirmed findings"
    yield escape(said.caution)
    for group in said.groups:
        for finding in (group.lead, *group.others):
            yield from _finding(said, finding)


def _finding(said: Outline, finding: Finding) -> Iterator[str]:
    yield f"### {code(words.label(finding))}"
    if finding.representative:
        yield f"Not told apart from {code(finding.representative)}. {escape(finding.sentence)}"
    yield set_table(tables.numbers(said.report, finding), caption=False)
    yield _bullets(
        f"{escape(label)}: {code(text) if is_code else escape(text)}"
        for label, text, is_code in said.remarks(finding)
    )


def _screened(said: Outline) -> Iterator[str]:
    if said.screened:
        yield "## Screened, not confirmed"
        yield outline.UNCONFIRMED
        yield set_table(tables.screened(said.report), caption=False)


def _everything(report: Report) -> Iterator[str]:
    yield "## All candidates"
    yield words.tally(report.counts())
    table = tables.everything(report, MOST_ROWS)
    yield set_table(table, caption=False)
    if len(report.findings) > MOST_ROWS:
        yield f"The first {MOST_ROWS:,} are shown here; all {len(report.findings):,} are in the JSON report."
    yield set_table(tables.key(report))


def _limits(said: Outline) -> Iterator[str]:
    report = said.report
    yield "## What this audit could not have seen"
    yield escape(report.conclusion)
    yield outline.ASSOCIATION
    yield set_table(tables.detectable(report))
    if report.ineligible:
        yield set_table(tables.ineligible(report))
    if said.unscored:
        yield escape(said.unscored)
        yield set_table(tables.unscored(report))
    if said.repeats:
        yield escape(said.repeats)
    weaker = tables.baselines(report)
    if weaker:
        yield f"### {weaker.caption}"
        if said.curse:
            yield escape(said.curse)
        yield set_table(weaker, caption=False)


def _manifest(report: Report) -> Iterator[str]:
    yield "## Manifest"
    for table in tables.manifest(report):
        if table.rows:
            yield set_table(table)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def set_table(table: Table, *, caption: bool = True) -> str:
    """A table in Markdown."""
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


def _cell(text: str, kind: Kind) -> str:
    return code(text) if kind == "code" and text != words.NONE else escape(text)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
