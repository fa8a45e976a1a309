"""What one file holds of a report: its words, its rules, and the rows that may be looked at.

Which rows these are follows from what was looked at already. A report that held nothing out has
judged all units, so all rows are in the file. Of a report with a holdout only the discovery rows
are: the holdout's outcomes were opened for one question, and whoever browses them invents rules
that they can no longer confirm. What the report itself says of held-out rows, its counts and
rates, is in the file as it is in the report; the few examples that a report keeps are left out, as
some of them may be held-out rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from msgspec import structs
from numpy.typing import NDArray

from groundfault.auditing.report import Report
from groundfault.core.columns import Kind, profile, take_sample
from groundfault.exports import ReportSlices
from groundfault.modes.examples import LONGEST, find_text_columns, share_opening
from groundfault.render import audit_page, words
from groundfault.render.audit_tables import holds_out
from groundfault.render.page import (
    Bar,
    Block,
    Code,
    Entry,
    Figures,
    Fold,
    Highlight,
    Page,
    Table,
)
from groundfault.workbench.one_file.packing import MaskPool, RowValues
from groundfault.workbench.one_file.rules import (
    FileRule,
    Spans,
    count_units,
    find_rule_marks,
    list_rules,
)

VERSION = 1
"""Of the content; the page and its script are always of the same."""

_LONG_OPENING = 80
"""Characters, a line, from which on a beginning that all texts share is left out of cards."""
_ON_MODES = ("confirmed", "strengths", "too-small", "screened", "limits")


@dataclass(frozen=True)
class FileContent:
    """A report and its rows, as one file holds them.

    Attributes
    ----------
    slices : ReportSlices
    texts : bool
        Whether columns of texts are in it.
    """

    slices: ReportSlices
    texts: bool = True

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Return the places of the rows in the evidence: those of the discovery units."""
        case = self.slices.case
        return np.flatnonzero(case.discovery_mask[case.evidence.unit_index])

    @cached_property
    def rules(self) -> tuple[FileRule, ...]:
        """Return the failure modes, then the findings that are given back, then all rows."""
        slices = self.slices
        names = tuple(candidate.name for candidate in slices.library)
        return tuple(list_rules(slices.report, slices.case, names, self.rows))

    @cached_property
    def masks(self) -> MaskPool:
        """Return the masks of all rules, which `describe` names by their places."""
        return MaskPool(len(self.rows))

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models; empty for a single one."""
        models = self.slices.evidence.models
        return models if len(models) > 1 else ()

    @property
    def units(self) -> RowValues:
        """Return the unit of each row."""
        return RowValues.of(pl.Series(self.slices.evidence.unit_index[self.rows]))

    @cached_property
    def openings(self) -> dict[str, int]:
        """Return by column of texts the length of its shared beginning, where that is long."""
        openings = {}
        for column in self.columns:
            texts = [text for text in column.rows.values if text] if column.kind == "text" else []
            shared = share_opening(texts) if texts else ""
            shared = shared[: max(shared.rfind(" "), shared.rfind("\n")) + 1]
            if len(shared) >= _LONG_OPENING and min(map(len, texts)) > len(shared):
                openings[column.name] = count_units(shared)
        return openings

    @cached_property
    def columns(self) -> tuple[FileColumn, ...]:
        """Return the columns of the rows: the example, the model, texts, and everything else."""
        evidence = self.slices.evidence
        prose = self._prose
        roles = evidence.roles
        first = [c for c in (roles.id, roles.model, roles.repeat) if c]
        names = dict.fromkeys([*first, *find_text_columns(evidence), *evidence.frame.columns])
        hidden = {roles.outcome, roles.status, *(() if self.texts else prose)}
        frame = evidence.frame[self.rows]
        columns = [
            encode_column(
                frame[name].cast(pl.String) if name in first else frame[name],
                is_text=name in prose,
            )
            for name in names
            if name not in hidden
        ]
        status = evidence.status[self.rows]
        if status.n_unique() > 1:
            # under a name of its own: a table may have a column that is called so
            name = "status" if "status" not in {*evidence.frame.columns} - hidden else "how scored"
            columns.append(encode_column(status.rename(name)))
        return tuple(column for column in columns if column is not None)

    @cached_property
    def _prose(self) -> set[str]:
        """Return the columns to read rather than to count."""
        evidence = self.slices.evidence
        roles = evidence.roles
        names = [
            c
            for c, kind in evidence.frame.schema.items()
            if kind == pl.String and c not in (roles.id, roles.model, roles.group)
        ]
        sample = take_sample(evidence.frame.select(names))
        prose = {column.name for column in profile(sample) if column.kind is Kind.TEXT}
        return prose | set(find_text_columns(evidence))

    @cached_property
    def marks(self) -> list[dict[str, list[str] | Spans]]:
        """Return of each rule, by column, its words, or its marks by the places of values."""
        texts = {
            c.name: pl.Series(c.name, c.rows.values, pl.String)
            for c in self.columns
            if c.kind == "text"
        }
        return [
            find_rule_marks(texts, rule.subject.rule) if rule.subject.rule else {}
            for rule in self.rules
        ]

    @cached_property
    def losses(self) -> RowValues:
        """Return the loss of each row; None where it was not scored."""
        return RowValues.of(self.slices.evidence.loss[self.rows].round(6))

    def describe(self) -> dict[str, Any]:
        """Return everything but the rows, as plain values."""
        slices, report = self.slices, _drop_examples(self.slices.report)
        roles, page = slices.evidence.roles, audit_page.make_page(report)
        kept = [section for name, section in page.anchored if name in _ON_MODES]
        return {
            "version": VERSION,
            "groundfault": report.groundfault_version,
            "title": words.clean(page.title),
            "verdict": words.clean(page.verdict),
            "facts": [[words.clean(text) for text in pair] for pair in page.facts],
            "rows": len(self.rows),
            "unit": report.unit,
            "part": "discovery" if holds_out(report) else "all",
            "texts": self.texts,
            "columns": [{"name": c.name, "kind": c.kind} for c in self.columns],
            "id": roles.id,
            "model": roles.model,
            "models": list(self.models),
            "openings": self.openings,
            "compare": list(report.manifest.compare or ()),
            "rules": list(self._describe_rules(page)),
            "modes": list_blocks(page.lead),
            "sections": [
                {"title": words.clean(section.title), "blocks": list_blocks(section.content)}
                for section in kept
            ],
        }

    def _describe_rules(self, page: Page) -> Iterator[dict[str, Any]]:
        entries = {
            str(entry.title): entry
            for section in page.sections
            for entry in find_entries(section.content)
        }
        for rule, marks in zip(self.rules, self.marks, strict=True):
            subject = rule.subject
            entry = entries.get(subject.title)
            yield {
                "name": subject.title,
                "anchor": entry.anchor if entry else "",
                "kind": subject.kind,
                "sentence": words.clean(subject.sentence),
                "sql": words.clean(subject.rule),
                "columns": list(subject.columns),
                "outcome": subject.outcome,
                "unscored": rule.unscored,
                "first": list(rule.first),
                "words": {name: some for name, some in marks.items() if isinstance(some, list)},
                "sides": list(subject.name_sides(is_single=rule.is_single)),
                "conditions": [words.clean(text) for text, _ in rule.conditions],
                "masks": [self.masks.add(mask) for _, mask in rule.conditions],
                "here": self.masks.add(rule.here),
                "wrong": self.masks.add(rule.wrong),
                "blocks": list_blocks(entry.blocks) if entry else [],
            }


def _drop_examples(report: Report) -> Report:
    """Drop the examples of the modes, which may be of held-out rows and have texts.

    What is told of them instead is in the rows."""
    bare = tuple(structs.replace(mode, sample=()) for mode in report.modes)
    return Report.of(structs.replace(report.data, modes=bare), report.library)


# characters that steer a terminal or reverse the direction of writing; line breaks stay
_STEERING = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u{061c}\u{200e}\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}"
    r"\u{feff}]"
)
_MAX_LEVELS = 60_000
"""Different values of a column to filter by: their places take two bytes."""
_DIGITS = 9
"""Of a number: more than a single-precision float has."""


@dataclass(frozen=True)
class FileColumn:
    """A column of examples, and how it is to be shown.

    Attributes
    ----------
    name : str
    kind : {"text", "levels", "number"}
        Texts to read and search; a few values, each with a number; numbers.
    rows : RowValues
        None is missing.
    """

    name: str
    kind: Literal["text", "levels", "number"]
    rows: RowValues


def encode_column(column: pl.Series, *, is_text: bool = False) -> FileColumn | None:
    """Encode a column; return None for one that holds lists or other things of several parts.

    Texts are cut after 2,000 characters, as those in a report are, and characters that would not
    print as themselves are replaced.

    Parameters
    ----------
    column : polars.Series
    is_text : bool
        Whether it is to be read, however few values it has.

    Examples
    --------
    >>> encode_column(pl.Series("lang", ["de", "en", "de", None])).kind
    'levels'
    """
    if column.dtype.is_nested() or column.dtype == pl.Binary or column.dtype == pl.Object:
        return None
    if column.dtype.is_numeric() and not is_text:
        values = column.cast(pl.Float64) if column.dtype.is_decimal() else column
        if values.dtype.is_float():
            values = values.cast(pl.Float64).round_sig_figs(_DIGITS)
            values = pl.select(pl.when(values.is_finite()).then(values)).to_series()
        return FileColumn(column.name, "number", RowValues.of(values))
    texts = _clean(column.cast(pl.String))
    few = texts.drop_nulls().n_unique() <= max(2, min(_MAX_LEVELS, len(texts) // 2))
    return FileColumn(column.name, "levels" if few and not is_text else "text", RowValues.of(texts))


def _clean(texts: pl.Series) -> pl.Series:
    long = texts.str.len_chars() > LONGEST
    if long.any():
        cut = texts.str.slice(0, LONGEST) + " […]"
        texts = pl.select(pl.when(long).then(cut).otherwise(texts).alias(texts.name)).to_series()
    return texts.str.replace_all(_STEERING, "\ufffd")


def list_blocks(blocks: Sequence[Block]) -> list[Any]:
    """Return blocks as dicts and lists of text; without figures, which are no text.

    A dict has the kind of its block under ``block``, and beside it the block's fields; code and
    highlighted words are ``{"code": ...}`` and ``{"mark": ...}``.
    """
    return [_plain(block) for block in blocks if not isinstance(block, Figures)]


def find_entries(blocks: Sequence[Block]) -> Iterator[Entry]:
    """Return all entries among some blocks, those in folds and in other entries too."""
    for block in blocks:
        if isinstance(block, Entry):
            yield block
        if isinstance(block, Entry | Fold):
            yield from find_entries(block.blocks)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return words.clean(value)
    if isinstance(value, Code | Highlight):
        return {"code" if isinstance(value, Code) else "mark": words.clean(value.text)}
    if isinstance(value, Bar):
        return value.widths
    if isinstance(value, Table):
        value = value.drop_empty_columns()
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value if not isinstance(one, Figures)]
    if is_dataclass(value):
        # the orders of a table are a style sheet's, and the largest part of it
        names = [field.name for field in fields(value) if field.name != "orders"]
        content = {name: _plain(getattr(value, name)) for name in names}
        kind = getattr(value, "block", None)
        return content if kind is None else {"block": kind, **content}
    return value
