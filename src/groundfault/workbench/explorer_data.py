"""The rows that may be looked at, as the browser's client reads them: from a server or one file.

A rule is its words and masks of rows, a column its different values and their places. The client
sorts, filters and shows, and leaves every judgement to the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.report import Report
from groundfault.core.columns import Kind, profile, take_sample
from groundfault.core.pairs import clip_changes
from groundfault.core.rules import Rule
from groundfault.errors import InputError, require_name
from groundfault.modes.examples import choose_examples, find_failures, select_losses
from groundfault.render import words
from groundfault.workbench.packing import (
    FileColumn,
    MaskPool,
    RowValues,
    encode_column,
    find_rule_marks,
)
from groundfault.workbench.rows import RowIndex, Rows
from groundfault.workbench.subjects import Subject

Bools = NDArray[np.bool_]

_MAX_ORDER = 300
"""Near misses that are put in order of distance: six pages of a list."""
_TYPICAL = 12
"""Typical examples of each side that stand first: as many as a page of all sides shows."""


@dataclass(frozen=True, eq=False)
class ExplorerData:
    """A report's rows for the client.

    Attributes
    ----------
    report : Report
    index : RowIndex
        Of the discovery rows.
    texts : bool
        Whether columns of texts are among them.
    """

    report: Report
    index: RowIndex
    texts: bool = True

    @property
    def rows(self) -> Rows:
        """Return the rows that may be looked at."""
        return self.index.rows

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models; empty for a single one."""
        return self.rows.outcomes if len(self.rows.outcomes) > 1 else ()

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
                frame[name].cast(pl.String) if name in first else frame[name], is_text=name in prose
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

    def outline(self) -> dict[str, Any]:
        """Return the rows, columns and rules as plain values."""
        roles = self.rows.evidence.roles
        return {
            "rows": len(self.rows),
            "unit": self.report.unit,
            "columns": [
                {"name": c.name, "kind": c.kind, "bare": c.series.dtype == pl.Boolean}
                for c in self.columns
            ],
            "id": roles.id,
            "model": roles.model,
            "models": list(self.models),
            "pair": [self.models.index(name) for name in self.report.manifest.compare or ()],
        }

    def pack(self, name: str) -> str:
        """Pack losses, units, or the column of a number, such as ``column-3``.

        Raises
        ------
        InputError
            If no part has this name.
        """
        evidence = self.rows.evidence
        if name == "losses":
            return RowValues.of(evidence.loss.round(6)).pack()
        if name == "units":
            return RowValues.of(pl.Series(evidence.unit_index)).pack()
        columns = {f"column-{place}": column for place, column in enumerate(self.columns)}
        require_name("block", name, columns, InputError)
        # not kept: of a million rows a list of numbers takes 32 MB
        return RowValues.of(columns[name].clean()).pack()

    def read_values(
        self, rows: Sequence[int], columns: Sequence[int], rule: str, longest: int
    ) -> dict[str, Any]:
        """Return the values of some rows, column by column, and the places that a rule marks."""
        some = [self.columns[place] for place in columns]
        values = [column.clean(rows, longest) for column in some]
        texts = {c.name: v for c, v in zip(some, values, strict=True) if c.kind == "text"}
        marks = find_rule_marks(texts, rule) if rule else {}
        return {"values": [column.to_list() for column in values], "marks": marks}

    def describe_rule(self, subject: Subject, pool: MaskPool) -> dict[str, Any]:
        """Describe a rule and sort the rows by it: matches of its conditions, and failures.

        A row is inside where all conditions hold, and a near miss where all do but one. Those to be
        shown first are typical ones, and of near ones those next across a threshold.

        Parameters
        ----------
        subject : Subject
        pool : MaskPool
            Takes the masks, which the description names by their places.
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
        missed = _order_near(distances, here)
        first = (*self._choose_first(subject, of_model), *missed)
        return {
            "name": subject.title,
            "kind": subject.kind,
            "sentence": words.clean(subject.sentence),
            "sql": words.clean(rule),
            "columns": list(subject.columns),
            "outcome": subject.outcome,
            "unscored": int((inside & of_model & ~here).sum()),
            "first": list(dict.fromkeys(first)),
            "missed": {str(row): f"{distance:.4g}" for row, distance in missed.items()},
            "sides": list(subject.name_sides(is_single=len(holds) == 1 and not distances)),
            "conditions": list(map(words.clean, names)),
            "masks": list(map(pool.add, holds)),
            "here": pool.add(here),
            "model": pool.add(of_model),
            "wrong": pool.add(find_failures(losses, inside & here) & here),
        }

    def _choose_first(self, subject: Subject, of_model: Bools) -> list[int]:
        """Return the rows of the report's examples; of typical ones if it keeps no examples."""
        rows, sample = self.rows, subject.mode.mode.sample if subject.mode else ()
        places = self._find_rows([example.id for example in sample], of_model)
        if places or not subject.rule:
            return places
        losses = select_losses(subject.outcome, rows.unit_losses, rows.outcomes)
        if subject.pair:
            losses = clip_changes(rows.select_pair(subject.pair), less=subject.is_better)
        inside = self.index.mark(subject.rule)
        examples = choose_examples(
            rows.evidence,
            subject.outcome,
            inside,
            np.zeros_like(inside),
            losses,
            count=_TYPICAL,
            columns=rows.texts,
        )
        return self._find_rows([example.id for example in examples], of_model)

    def _find_rows(self, ids: Sequence[str], of_model: Bools) -> list[int]:
        """Return the rows of examples, in the order of their ids."""
        names = self.rows.ids
        places = np.flatnonzero(names.is_in(ids).to_numpy() & of_model).tolist()
        return sorted(places, key=lambda place: ids.index(names[place]))


def _order_near(distances: list[NDArray[np.float64]], here: Bools) -> dict[int, float]:
    """Return the rows nearest to a threshold, the nearest first, and how far they are from it."""
    if not distances:
        return {}
    nearest = np.fmin.reduce([np.where(here, one, np.nan) for one in distances])
    order = np.argsort(nearest, kind="stable")[:_MAX_ORDER]
    return {int(row): float(nearest[row]) for row in order if not np.isnan(nearest[row])}
