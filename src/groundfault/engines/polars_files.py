"""Counts by polars' streaming engine: the same expressions as in memory, a batch at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import polars as pl

from groundfault.core.rules import Rule
from groundfault.engines import (
    CELL_ROWS,
    ROWS,
    SCORED,
    CellCounts,
    GroupBy,
    name_counts,
    name_difference,
)
from groundfault.errors import InputError, RuleError, first_line

_HASH = "__md5_{}"


@dataclass(frozen=True)
class PolarsCounter:
    """Parquet files, scanned by polars.

    Parameters
    ----------
    files : tuple of str
    """

    files: tuple[str, ...]
    name: str = "polars"
    table: ClassVar[str] = ""

    def find_schema(self) -> pl.Schema:
        """Return names and types of the columns."""
        try:
            return self._scan.collect_schema()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"cannot read {self.files[0]}: {first_line(error)}") from None

    def counts(self, rules: Sequence[str], by: Mapping[str, str]) -> CellCounts:
        """Count rules in cells: see `groundfault.engines.Counter.counts`."""
        expressions = {**by, **{f"rule {i}": sql for i, sql in enumerate(rules)}}
        table = self._select(expressions)
        aggregates = [pl.len().alias(CELL_ROWS)]
        for i in range(len(rules)):
            on, defined = name_counts(i)
            # a rule that is NULL everywhere has no type
            rule = pl.col(f"rule {i}").cast(pl.Boolean)
            aggregates += [rule.sum().alias(on), rule.count().alias(defined)]
        result = table.group_by(list(by)).agg(aggregates) if by else table.select(aggregates)
        return CellCounts.of(_collect(result), list(by), len(rules))

    def evaluate(self, expressions: Mapping[str, str], where: str) -> pl.DataFrame:
        """Evaluate expressions: see `groundfault.engines.Counter.evaluate`."""
        return _collect(self._select(expressions, where))

    def group(self, groups: GroupBy, part: int, parts: int) -> pl.DataFrame:
        """Make groups: see `groundfault.engines.GroupingCounter.group`."""
        key, loss = pl.col(groups.key), _read(groups.loss)
        aggregates = [
            loss.mean().alias(groups.mean),
            loss.count().alias(SCORED),
            pl.len().alias(ROWS),
        ]
        for i, name in enumerate(groups.columns):
            value, count = pl.col(name), pl.col(name).count()
            differs = (value.min() != value.max()).fill_null(False)
            has_gaps = (count > 0) & (count < pl.len())
            aggregates += [value.min().alias(name), (differs | has_gaps).alias(name_difference(i))]
        table = self._scan.filter(key.hash() % parts == part) if parts > 1 else self._scan
        return _collect(table.group_by(key).agg(aggregates))

    @cached_property
    def _scan(self) -> pl.LazyFrame:
        scan = pl.scan_parquet(list(self.files), glob=False)
        floats = [name for name, dtype in scan.collect_schema().items() if dtype.is_float()]
        return scan.with_columns(pl.col(floats).fill_nan(None)) if floats else scan

    def _select(self, expressions: Mapping[str, str], where: str = "") -> pl.LazyFrame:
        # other names first: a column of the table must not stand in for a column of the result
        hashes: dict[str, str] = {}
        columns = {key: _replace_hashes(sql, hashes) for key, sql in expressions.items()}
        condition = _replace_hashes(where, hashes)
        table = self._scan
        if hashes:
            table = table.with_columns(
                _read(text).map_batches(_hash_texts, pl.String, is_elementwise=True).alias(name)
                for name, text in hashes.items()
            )
        table = table.filter(_read(condition)) if where else table
        # without expressions rows are counted, and no column read
        named = [_read(sql).alias(key) for key, sql in columns.items()]
        return table.select(named) if named else table


def _replace_hashes(sql: str, hashes: dict[str, str]) -> str:
    """Put a column in place of each MD5, and record the expression that the column hashes."""
    if "MD5" not in sql:
        return sql
    from sqlglot import exp, parse_one

    tree = exp.paren(parse_one(sql, read="postgres"))
    for node in list(tree.find_all(exp.MD5)):
        text = node.this.sql(dialect="postgres")
        # named by the hashed expression: one expression, one column
        name = _HASH.format(hashlib.sha256(text.encode()).hexdigest()[:16])
        hashes[name] = text
        node.replace(exp.column(exp.to_identifier(name, quoted=True)))
    return tree.sql(dialect="postgres")


def _hash_texts(texts: pl.Series) -> pl.Series:
    """Return the MD5 of each text, as hexadecimal digits."""
    digests = (
        None if t is None else hashlib.md5(t.encode(), usedforsecurity=False).hexdigest()
        for t in texts
    )
    return pl.Series(texts.name, digests, dtype=pl.String)


def _read(sql: str) -> pl.Expr:
    return Rule(sql, ()).to_polars()


def _collect(table: pl.LazyFrame) -> pl.DataFrame:
    try:
        return table.collect(engine="streaming")
    # polars panics on an expression that it has no code for
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise RuleError(f"polars cannot evaluate a rule: {first_line(error)}") from None
