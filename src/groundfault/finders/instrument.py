"""The instrument: properties of answers and measurement, where a grader may be at fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from groundfault.core.candidate import Candidate
from groundfault.core.column_names import measures_answer
from groundfault.core.columns import select_example_rows
from groundfault.core.evidence import Evidence
from groundfault.core.rules import literal, quote
from groundfault.finders.categories import Categories
from groundfault.finders.declared import Declared
from groundfault.finders.text import MARKS, cut_lengths, drop_uninformative
from groundfault.finders.thresholds import Thresholds
from groundfault.slicing.parameters import Parameters

_RESPONSES = ("response", "answer", "output", "completion")
# differences in these are differences of form
_LEFT_OUT = " .,;:"


@dataclass(frozen=True)
class Instrument(Parameters):
    """Propose properties of answers and measurement, where the grader may be at fault.

    Measured columns of logs (finish reason, tokens, judge, position), the same columns of tables
    recognised by their names (such as ``answer_parsed``, ``response_chars``, ``judge_model``),
    lengths of responses, and forms of answers: white space, lists, units, and answers that differ
    from the target only in case, spaces and punctuation. A confirmed one leads the report, because
    the grader may be at fault.

    Notes
    -----
    An answer's length or form may also follow from why the model failed: like all findings it is an
    association."""

    name: str = "instrument"

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose candidates such as ``truncated`` or ``answer is a list``."""
        view = _select_measured(discovery)
        if not view.attributes:
            return
        finders = Declared(), Thresholds(), Categories()
        candidates = [candidate for finder in finders for candidate in finder.propose(view)]
        for candidate in (*candidates, *_propose_texts(view)):
            yield replace(candidate, source=self.name)


def _select_measured(discovery: Evidence) -> Evidence:
    """Return the evidence with the measured columns as its only attributes."""
    roles = discovery.roles
    plain = [c for c in discovery.attributes if c not in roles.trusted]
    columns = [c for c in roles.instrument if not c.startswith("score_")]
    columns += [c for c in plain if measures_answer(c) or c.lower() in _RESPONSES]
    ignored = tuple(c for c in discovery.frame.columns if c not in (*columns, *roles.columns))
    return discovery.with_roles(replace(roles, instrument=(), ignore=ignored))


def _propose_texts(view: Evidence) -> Iterator[Candidate]:
    table = select_example_rows(view)
    texts = [c for c, dtype in table.schema.items() if dtype == pl.String]
    for column in (c for c in view.attributes if c in texts and c.lower() in _RESPONSES):
        rules = [*cut_lengths(table[column], (0.25, 0.5, 0.75, 0.9))]
        rules += [
            (what, f"{quote(column)} ~ {literal(pattern)}")
            for what, pattern in MARKS["answers"].items()
        ]
        if column != "response" and table.schema.get("target") == pl.String:
            rules.append(("differs from the target in form alone", _form_alone(column)))
        candidates = [
            Candidate(f"{column} {what}", rule, f"{column} {what}", missing="drop")
            for what, rule in rules
        ]
        yield from drop_uninformative(table, candidates)


def _form_alone(column: str) -> str:
    """Return the rule that the answer equals the target except for case, spaces and punctuation."""
    plain = [f"LOWER({quote(c)})" for c in (column, "target")]
    for mark in _LEFT_OUT:
        plain = [f"REPLACE({text}, {literal(mark)}, '')" for text in plain]
    return f"{quote(column)} <> {quote('target')} AND {plain[0]} = {plain[1]}"
