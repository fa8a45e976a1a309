"""A listed rule as a mode: its numbers, its words, and other words for the same units."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.modes.doses import list_doses
from groundfault.modes.language import RuleLanguage
from groundfault.modes.mode import Alternative, Mode
from groundfault.modes.selection import Listed
from groundfault.stats.intervals import wilson

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MAX_ALTERNATIVES = 5


def describe(
    language: RuleLanguage,
    one: Listed,
    inside: Bools,
    earlier: Bools,
    y: Floats,
    outcome: str,
    level: float,
    table: pl.DataFrame,
) -> Mode:
    """A listed rule with its numbers and words."""
    tested = language.tested(one.rule)
    # a context's other units are what a rule inside it is compared with; held-out ones, for a
    # rule that was mined from the others
    outside = ~inside if tested is None else tested & ~inside
    inside = inside if tested is None else inside & tested
    n, errors = int(inside.sum()), float(y[inside].sum())
    new = inside & ~earlier
    low, high = wilson(errors, n, 1 - level)
    conditions = language.conditions(one.rule)
    own = language.own_literal(one.rule)
    return Mode(
        rule=language.sql(one.rule),
        meaning=" and ".join(conditions),
        conditions=conditions,
        outcome=outcome,
        n=n,
        errors=errors,
        context=conditions[0] if one.rule.kind == "inside" else "",
        n_outside=int(outside.sum()),
        errors_outside=float(y[outside].sum()),
        n_new=int(new.sum()),
        errors_new=float(y[new].sum()),
        interval=(float(low), float(high)),
        p_marginal=math.exp(min(0.0, one.log_marginal)),
        p_conditional=math.exp(min(0.0, one.log_conditional)),
        source="modes" if own is None else own.source,
        alternatives=tuple(_list_alternatives(language, one)),
        doses=list_doses(table, language, one.rule, y),
    )


def _list_alternatives(language: RuleLanguage, one: Listed) -> Iterator[Alternative]:
    """Other words for the same units, then rules for nearly the same."""
    same = [Alternative(rule=r, meaning=m, overlap=1.0) for r, m in language.rename(one.rule)]
    near = [
        Alternative(
            rule=language.sql(rule),
            meaning=" and ".join(language.conditions(rule)),
            overlap=overlap,
        )
        for rule, overlap in one.alternatives
    ]
    yield from [*same[:_MAX_ALTERNATIVES], *near][:_MAX_ALTERNATIVES]
