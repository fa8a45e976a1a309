"""Agreement: an engine may count only rules that mean there what they mean here."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from groundfault.core.rules import Rule, quote
from groundfault.engines import Counter
from groundfault.errors import RuleError, first_line

_VALUE, _COLUMN = "value of {}", "column {}"


def find_disagreements(counter: Counter, rules: Mapping[str, Rule], where: str) -> dict[str, str]:
    """Find rules whose value differs in some row from that in polars, and what differs.

    Parameters
    ----------
    counter : Counter
    rules : mapping of str to Rule
        By name.
    where : str
        The rows to compare, in the engine's table: a sample.

    Returns
    -------
    dict of str to str
        By name, in a few words: how many rows differ, or that the engine cannot evaluate the rule.

    Notes
    -----
    A rule that differs only in values that the sample has none of is not noticed: of rows in which
    it differs, a share of 0.00023 shows among 20,000 with probability 0.99.
    """
    try:
        return _compare(counter, rules, where)
    except RuleError as error:
        if len(rules) == 1:
            return dict.fromkeys(rules, str(error))
    # one of them fails: halves, until it stands alone
    names = list(rules)
    halves = names[: len(names) // 2], names[len(names) // 2 :]
    return {
        name: words
        for half in halves
        for name, words in find_disagreements(
            counter, {name: rules[name] for name in half}, where
        ).items()
    }


def _compare(counter: Counter, rules: Mapping[str, Rule], where: str) -> dict[str, str]:
    if not rules:
        return {}
    columns = sorted({column for rule in rules.values() for column in rule.columns})
    expressions = {_COLUMN.format(c): quote(c) for c in columns}
    expressions |= {_VALUE.format(name): rule.sql for name, rule in rules.items()}
    there = counter.evaluate(expressions, where)
    table = there.select(pl.col(_COLUMN.format(c)).alias(c) for c in columns)
    differences = {}
    for name, rule in rules.items():
        try:
            here = table.select(rule.to_polars().cast(pl.Boolean)).to_series()
        except pl.exceptions.PolarsError as error:
            raise RuleError(f"cannot evaluate {rule.sql!r}: {first_line(error)}") from None
        count = int((~here.eq_missing(there[_VALUE.format(name)].cast(pl.Boolean))).sum())
        if count:
            differences[name] = f"in {count} of {there.height} rows"
    return differences
