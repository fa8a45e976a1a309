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
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from msgspec import structs
from numpy.typing import NDArray

from groundfault.auditing.report import Report
from groundfault.core.columns import Kind, profile, take_sample
from groundfault.core.pairs import clip_changes
from groundfault.core.rules import Rule
from groundfault.exports import ReportSlices
from groundfault.modes.examples import find_failures, share_opening
from groundfault.render import audit_page, words
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
from groundfault.workbench.one_file.packing import (
    FileColumn,
    MaskPool,
    Spans,
    count_units,
    encode_column,
    find_rule_marks,
)
from groundfault.workbench.row_index import RowIndex
from groundfault.workbench.rows import Rows
from groundfault.workbench.subjects import Subject, list_subjects

Bools = NDArray[np.bool_]

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
    def index(self) -> RowIndex:
        """Return what finds rows among those of the discovery units."""
        return RowIndex(Rows.of(self.slices.case), self.slices.report.library)

    @property
    def rows(self) -> Rows:
        """Return the rows that may be looked at."""
        return self.index.rows

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """Return the failure modes, then the findings that are given back, then all rows."""
        names = {candidate.name for candidate in self.slices.library}
        return (*list_subjects(self.slices.report, names), Subject.of_rule(""))

    @cached_property
    def masks(self) -> MaskPool:
        """Return the masks of all rules, which `describe` names by their places."""
        return MaskPool(len(self.rows))

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models; empty for a single one."""
        return self.rows.outcomes if len(self.rows.outcomes) > 1 else ()

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
        evidence, prose = self.rows.evidence, self._prose
        roles, frame = evidence.roles, evidence.frame
        first = [c for c in (roles.id, roles.model, roles.repeat) if c]
        names = dict.fromkeys([*first, *self.rows.texts, *frame.columns])
        hidden = {roles.outcome, roles.status, *(() if self.texts else prose)}
        columns = [
            encode_column(
                frame[name].cast(pl.String) if name in first else frame[name],
                is_text=name in prose,
            )
            for name in names
            if name not in hidden
        ]
        if evidence.status.n_unique() > 1:
            # under a name of its own: a table may have a column that is called so
            name = "status" if "status" not in {*frame.columns} - hidden else "how scored"
            columns.append(encode_column(evidence.status.rename(name)))
        return tuple(column for column in columns if column is not None)

    @cached_property
    def _prose(self) -> set[str]:
        """Return the columns to read rather than to count."""
        roles, frame = self.rows.evidence.roles, self.rows.frame
        apart = (roles.id, roles.model, roles.group)
        strings = [c for c, kind in frame.schema.items() if kind == pl.String and c not in apart]
        sample = profile(take_sample(frame.select(strings)))
        prose = {column.name for column in sample if column.kind is Kind.TEXT}
        return prose | set(self.rows.texts)

    @cached_property
    def marks(self) -> list[dict[str, Spans]]:
        """Find by rule and column the places of the words that are marked."""
        texts = {
            c.name: pl.Series(c.name, c.rows.values, pl.String)
            for c in self.columns
            if c.kind == "text"
        }
        return [
            find_rule_marks(texts, subject.rule) if subject.rule else {}
            for subject in self.subjects
        ]

    def describe(self) -> dict[str, Any]:
        """Return everything but the rows, as plain values."""
        report = _drop_examples(self.slices.report)
        roles, page = self.rows.evidence.roles, audit_page.make_page(report)
        kept = [section for name, section in page.anchored if name in _ON_MODES]
        return {
            "version": VERSION,
            "groundfault": report.groundfault_version,
            "title": words.clean(page.title),
            "verdict": words.clean(page.verdict),
            "facts": [[words.clean(text) for text in pair] for pair in page.facts],
            "rows": len(self.rows),
            "unit": report.unit,
            "part": "discovery" if report.n_holdout else "all",
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
        for subject in self.subjects:
            entry = entries.get(subject.title)
            yield {
                "name": subject.title,
                "anchor": entry.anchor if entry else "",
                "kind": subject.kind,
                "sentence": words.clean(subject.sentence),
                "sql": words.clean(subject.rule),
                "columns": list(subject.columns),
                "outcome": subject.outcome,
                "blocks": list_blocks(entry.blocks) if entry else [],
                **self._sort_rows(subject),
            }

    def _sort_rows(self, subject: Subject) -> dict[str, Any]:
        """Sort the rows as a rule says: where each of its conditions holds, and what is wrong.

        A row is inside where all conditions hold, and a near miss where all do but one. Those to be
        shown first are the report's examples, and of near ones those next across a threshold.
        """
        rows, rule, losses = self.rows, subject.rule, self.rows.loss
        if subject.pair:
            # what changed as it says, shown on the second model's answers
            changes = clip_changes(rows.select_pair(subject.pair), less=subject.is_better)
            losses = changes[rows.evidence.unit_index]
        of_model = rows.select_model(subject.find_model(rows.outcomes))
        here = of_model & ~np.isnan(losses)
        inside = self.index.holds(rule) if rule else np.ones_like(here)
        misses = self.index.find_near_misses(rule) if rule else ()
        holds = [Rule.parse(miss.condition).holds(rows.frame).to_numpy() for miss in misses]
        names = subject.name_conditions(misses)
        if rule and not (misses and np.array_equal(np.all(holds, axis=0), inside)):
            # its judge took missing values otherwise, or it reads what a finder fitted
            names, holds = (rule,), [inside]
        distances = [miss.distance for miss in misses if miss.distance is not None]
        sample = subject.mode.mode.sample if subject.mode else ()
        first = [np.flatnonzero((rows.ids == e.id).to_numpy() & of_model).tolist() for e in sample]
        first.append(_order_near(distances, here))
        return {
            "unscored": int((inside & of_model & ~here).sum()),
            "first": list(dict.fromkeys(chain.from_iterable(first))),
            "sides": list(subject.name_sides(is_single=len(holds) == 1 and not distances)),
            "conditions": list(map(words.clean, names)),
            "masks": list(map(self.masks.add, holds)),
            "here": self.masks.add(here),
            "wrong": self.masks.add(find_failures(losses, inside & here) & here),
        }


_MAX_ORDER = 300
"""Near misses that are put in order of distance: six pages of the file."""


def _order_near(distances: list[NDArray[np.float64]], here: Bools) -> list[int]:
    """Return the rows nearest to a threshold, the nearest first."""
    if not distances:
        return []
    nearest = np.fmin.reduce([np.where(here, one, np.nan) for one in distances])
    order = np.argsort(nearest, kind="stable")[:_MAX_ORDER]
    return [int(row) for row in order if not np.isnan(nearest[row])]


def _drop_examples(report: Report) -> Report:
    """Drop the examples of the modes, which may be of held-out rows and have texts.

    What is told of them instead is in the rows."""
    bare = tuple(structs.replace(mode, sample=()) for mode in report.modes)
    return Report.of(structs.replace(report.data, modes=bare), report.library)


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
