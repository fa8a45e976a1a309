"""Columns: the kind of each attribute, so that finders propose only rules that make sense."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any

import numpy as np
import polars as pl

from groundfault.base.arrays import Places
from groundfault.core.candidate import Candidate
from groundfault.core.column_meaning import names_a_thing
from groundfault.core.evidence import Evidence
from groundfault.core.rules import quote
from groundfault.errors import InputError

LEVELS = 60
"""A column of words with more levels than this is not a category."""

# rows that tell a category from prose; beyond them a profile would take longer than the audit
_SAMPLE = 20_000
# distinct values in a sample up to which all rows are counted
_COUNTED = 1_000
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Scripts that put no spaces between words, for a class of characters."""
# words with a mark between them; hashes and the like are no words, even with marks in them
_PARTED = rf"[{UNSPACED}]{{2}}|\p{{L}}\w*[@/\\.:+][^\s]*\w"
_HASH = r"^[0-9a-fA-F-]{16,}$"
_WORDS = (pl.String, pl.Categorical, pl.Enum)


class Kind(StrEnum):
    """Kind of a column, by which finders choose the rules to propose.

    ``constant`` has one value at most; ``flag`` holds true/false or 0/1; ``number`` has an order
    worth cutting; ``label`` repeats a few words; ``text`` is prose; ``code`` is ids, hashes and
    words of too many levels; ``other`` (dates, lists, structures) is looked at by its parts alone,
    see `groundfault.core.roles.add_parts`."""

    CONSTANT = "constant"
    FLAG = "flag"
    NUMBER = "number"
    LABEL = "label"
    TEXT = "text"
    CODE = "code"
    OTHER = "other"


@dataclass(frozen=True)
class Column:
    """One attribute at a glance.

    Attributes
    ----------
    name : str
    kind : Kind
    missing : int
        Examples without a value.
    distinct : int
        Distinct values without NULL; exact up to 1,000, a lower bound above.
    """

    name: str
    kind: Kind
    missing: int
    distinct: int


def select_example_rows(evidence: Evidence) -> pl.DataFrame:
    """Return one row of the table for each example: of several models or repeats, the first."""
    if evidence.roles.model or evidence.roles.repeat:
        return evidence.frame.filter(pl.col(evidence.roles.id or "").is_first_distinct())
    return evidence.frame


def list_examples(evidence: Evidence) -> pl.DataFrame:
    """Return the attributes, one row an example however many models and repeats answered it."""
    return select_example_rows(evidence).select(evidence.attributes)


def take_sample(table: pl.DataFrame, max_rows: int = _SAMPLE) -> pl.DataFrame:
    """Return at most ``most`` rows, always the same ones, in their order."""
    if table.height <= max_rows:
        return table
    return table[_draw_rows(table.height, max_rows)]


@lru_cache(8)
def _draw_rows(height: int, count: int) -> Places:
    # scattered rather than every k-th: tables often interleave k variants of each item
    return np.sort(np.random.default_rng(0).permutation(height)[:count])


def match_attributes(evidence: Evidence, patterns: Sequence[str]) -> dict[str, str]:
    """Return attributes that names or globs such as ``d__*`` select, with the first pattern of
    each.

    Raises
    ------
    InputError
        If a pattern stands for no attribute.
    """
    matches: dict[str, str] = {}
    for pattern in patterns:
        names = evidence.attributes
        hits = [pattern] if pattern in names else [n for n in names if fnmatchcase(n, pattern)]
        if not hits:
            raise InputError(_no_such_column(evidence, pattern))
        for name in hits:
            matches.setdefault(name, pattern)
    return matches


def select_named(
    evidence: Evidence, patterns: Sequence[str], types: pl.Expr, reason: str
) -> pl.DataFrame:
    """Return the attributes that names or globs select, one row an example.

    Parameters
    ----------
    evidence : Evidence
    patterns : sequence of str
    types : polars selector
        Columns of the types that are allowed, such as ``polars.selectors.numeric()``.
    reason : str
        Reason to refuse another type: the end of a sentence.

    Raises
    ------
    InputError
        If a pattern stands for no attribute, or for one of another type.
    """
    table = list_examples(evidence).select(*match_attributes(evidence, patterns))
    allowed = table.select(types).columns
    for name in table.columns:
        if name not in allowed:
            raise InputError(f"column {name!r} holds {table.schema[name]}{reason}")
    return table


def _no_such_column(evidence: Evidence, pattern: str) -> str:
    if pattern in (*evidence.roles.columns, *evidence.roles.ignore):
        return (
            f"column {pattern!r} does not describe the examples: it has another part (outcome, "
            "id, ...) or is ignored"
        )
    if pattern in evidence.frame.columns:
        # columns that an audit takes for answers are no attributes either
        single = len(evidence) == evidence.frame[evidence.roles.id or ""].n_unique()
        why = (
            "it describes the answer or its score, or predicts the outcome almost perfectly "
            "(--allow-leakage uses a column that was known before the answer)"
            if single
            else "it differs between rows of one example, or describes the answer or its score"
        )
        return f"column {pattern!r} does not describe the examples: {why}"
    near = difflib.get_close_matches(pattern, evidence.attributes, n=5, cutoff=0.5)
    names = near or list(evidence.attributes[:12])
    label = (
        "near it"
        if near
        else "the attributes"
        if len(names) == len(evidence.attributes)
        else "the first attributes"
    )
    return f"no attribute is named, or matches, {pattern!r}; {label}: {', '.join(names) or 'none'}"


def list_plain(table: pl.DataFrame) -> list[str]:
    """Return the first columns of flags, numbers and labels, to describe an example in a line.

    A date, a list or a path stands for its parts, such as ``sent`` for ``sent.month``.
    """
    plain = (Kind.FLAG, Kind.NUMBER, Kind.LABEL)
    names = [c.name for c in profile(take_sample(table)) if c.kind in plain]
    parts = [(name, name.rpartition(".")[0]) for name in names]
    wholes = {name for name, dtype in table.schema.items() if not isinstance(dtype, pl.Struct)}
    return list(dict.fromkeys(whole if whole in wholes else name for name, whole in parts))[:3]


def tell_value(value: object) -> str:
    """Write a value as a person would: a list by its elements, a whole number without a point."""
    if isinstance(value, list):
        return ", ".join(map(tell_value, value))
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def tell_number(column: str, value: float) -> str:
    """Write a whole number; of the days of a date, such as ``sent.day``, as 2026-05-01."""
    digits = f"{value:.0f}"
    is_day = column.endswith(".day") and re.fullmatch(r"\d{8}", digits)
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}" if is_day else digits


def profile_examples(evidence: Evidence) -> tuple[Column, ...]:
    """Return `profile` of all attributes, which every finder of an audit asks for."""
    known = vars(evidence)
    if "\0columns" not in known:
        known["\0columns"] = profile(list_examples(evidence))
    columns: tuple[Column, ...] = known["\0columns"]
    return columns


def profile(table: pl.DataFrame, max_levels: int = LEVELS) -> tuple[Column, ...]:
    """Look at each column of a table of examples once.

    Parameters
    ----------
    table : polars.DataFrame
        One row an example, from `examples`.
    max_levels : int
        Largest number of distinct values in a column of labels.
    """
    part = take_sample(table)
    sampled = _measure(
        part, {name: _sample_expressions(name, dtype) for name, dtype in part.schema.items()}
    )
    whole = {
        name: _full_expressions(name, dtype, sampled[name]) for name, dtype in table.schema.items()
    }
    full = sampled if part is table else _measure(table, whole)
    columns = []
    for name, dtype in table.schema.items():
        values = table[name]
        # thousands of flags would take an expression each
        levels = values.n_unique() - values.has_nulls() if dtype == pl.Boolean else 0
        distinct = full[name].get("distinct", sampled[name].get("sampled", levels))
        kind = _kind(name, dtype, distinct, sampled[name] | full[name], max_levels)
        columns.append(Column(name, kind, values.null_count(), distinct))
    return tuple(columns)


def _sample_expressions(name: str, dtype: pl.DataType) -> dict[str, pl.Expr]:
    """Return expressions whose value a sample tells well enough."""
    column = pl.col(name)
    if not _is_simple(dtype) or dtype == pl.Boolean:
        return {}
    expressions = {"sampled": column.drop_nulls().n_unique(), "present": column.count()}
    if dtype.is_integer():
        expressions |= {"low": column.min(), "high": column.max()}
    if dtype == pl.String:
        expressions["spaced"] = column.str.contains(r"\S\s+\S").sum()
        expressions["parted"] = (column.str.contains(_PARTED) & ~column.str.contains(_HASH)).sum()
    return expressions | _test_numbers(name, dtype)


def _test_numbers(name: str, dtype: pl.DataType) -> dict[str, pl.Expr]:
    """Return expressions that are true of all rows only if they are of a sample."""
    column = pl.col(name)
    if not dtype.is_numeric():
        return {}
    return {
        "zero_one": ((column == 0) | (column == 1)).all(),
        "whole": (column == column.round()).all(),
    }


def _full_expressions(name: str, dtype: pl.DataType, sampled: dict[str, Any]) -> dict[str, pl.Expr]:
    """Return expressions that need all rows."""
    column = pl.col(name)
    tests = _test_numbers(name, dtype).items()
    expressions = {what: test for what, test in tests if sampled[what]}
    if sampled.get("sampled", math.inf) <= _COUNTED:
        expressions["distinct"] = column.drop_nulls().n_unique()
    if dtype.is_integer():
        expressions |= {"low": column.min(), "high": column.max()}
    return expressions


def _measure(
    table: pl.DataFrame, expressions: dict[str, dict[str, pl.Expr]]
) -> dict[str, dict[str, Any]]:
    """Evaluate named expressions of every column in one pass."""
    named = [
        pl.struct(value.alias(what) for what, value in measures.items()).alias(name)
        for name, measures in expressions.items()
        if measures
    ]
    row = table.select(named).row(0, named=True) if named else {}
    return {name: row.get(name, {}) for name in expressions}


@cache  # comparing types of polars is slow
def _is_simple(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype in (*_WORDS, pl.Boolean, pl.Null)


def _kind(
    name: str, dtype: pl.DataType, distinct: int, measures: dict[str, Any], max_levels: int
) -> Kind:
    if not _is_simple(dtype):
        return Kind.OTHER
    if distinct <= 1:
        return Kind.CONSTANT
    if dtype == pl.Boolean or measures.get("zero_one"):
        return Kind.FLAG
    repeats = distinct <= max_levels and 2 * distinct <= measures["present"]
    if dtype.is_numeric() and not (measures["whole"] and names_a_thing(name)):
        return Kind.CODE if dtype.is_integer() and _never_repeats(measures) else Kind.NUMBER
    if repeats:
        return Kind.LABEL
    # texts need no spaces: prompts in Chinese, addresses and paths that hardly repeat
    is_parted = 2 * measures["sampled"] > measures["present"] and not names_a_thing(name)
    parted = measures.get("parted", 0) if is_parted else 0
    return (
        Kind.TEXT if 2 * max(measures.get("spaced", 0), parted) > measures["present"] else Kind.CODE
    )


def _never_repeats(measures: dict[str, Any]) -> bool:
    """Return whether integers number the examples: all differ, though chance would repeat some.

    The chance of no repeat is about exp(-n^2 / 2r); the line is drawn at one in a thousand.
    Integers too large for a double are hashes."""
    n, width = measures["present"], measures["high"] - measures["low"] + 1
    return bool(measures["sampled"] == n and (n * n > 14 * width or width > 2**53))


def flag_rule(name: str, dtype: pl.DataType) -> str:
    """Return the rule that is true where a column of true/false or 0/1 is true."""
    return quote(name) if dtype == pl.Boolean else f"{quote(name)} = 1"


def propose_missing(
    table: pl.DataFrame, columns: Sequence[Column], source: str
) -> Iterator[Candidate]:
    """Yield an "is missing" candidate for each pattern, named after the first column that has it.

    Parameters
    ----------
    table : polars.DataFrame
        One row an example.
    columns : sequence of Column
        The columns to look at; columns with no or only missing values are skipped.
    source : str
        The finder's name.
    """
    patterns: dict[bytes, list[str]] = {}
    for column in columns:
        if 0 < column.missing < table.height:
            bits = np.packbits(table[column.name].is_null().to_numpy()).tobytes()
            patterns.setdefault(bits, []).append(column.name)
    for first, *others in patterns.values():
        also = f", together with {_and(others)}" if others else ""
        yield Candidate(
            f"{first} is missing", f"{quote(first)} IS NULL", f"{first} is missing{also}", source
        )


def _and(names: Sequence[str], max_names: int = 3) -> str:
    more = len(names) - max_names
    parts = [*names[:max_names], f"{more} more"] if more > 1 else list(names)
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


_SHOWN = 60
"""Characters of a value in a name; the rule holds the whole value."""


def shorten_value(value: object) -> str:
    """Return a value short enough for a heading: on one line and not blank."""
    text = str(value)
    line = " ".join(text.split())
    short = line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."
    return short if line and line == text else f"'{short}'"


def check_quantiles(quantiles: Sequence[float]) -> None:
    """Raise `InputError` unless every quantile lies between 0 and 1."""
    if not all(0 < q < 1 for q in quantiles):
        raise InputError(f"quantiles={quantiles} must lie between 0 and 1")
