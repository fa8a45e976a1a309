"""Declared candidates: 0/1 columns, rules written by hand, and files of rules."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors as cs

from groundfault.base.reading import read_text
from groundfault.core.candidate import Candidate, Library, Missing
from groundfault.core.columns import Kind, flag_rule, list_examples, match_attributes, profile
from groundfault.core.evidence import Evidence
from groundfault.core.rules import literal, quote
from groundfault.errors import InputError, RuleError
from groundfault.slicing.parameters import Parameters


@dataclass(frozen=True)
class Declared(Parameters):
    """Propose candidates declared in advance: 0/1 columns, and rules written by hand.

    Parameters
    ----------
    columns : tuple of str
        Names or globs of attributes that hold 0/1, true/false or no value. A prefix of a glob that
        ends in two underscores is left out of the candidates' names: ``d__*`` turns
        ``d__long_chain`` into ``long_chain``.
    candidates : iterable of Candidate
        Proposed unchanged. Without columns and candidates, every attribute that holds only 0/1 or
        true/false, and both values, is a candidate.
    missing : {"reject", "off", "drop"}, optional
        How to treat an example without a value in a column. The default is ``reject`` for named
        columns and ``drop`` for columns that the finder selects.

    Raises
    ------
    InputError
        If a name or glob matches no attribute, or a column holds other values.
    RuleError
        If a candidate reads a missing column.
    """

    columns: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    missing: Missing | None = None
    name: str = "declared"

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose one candidate a column, then the candidates given."""
        table = list_examples(discovery)
        Library(tuple(self.candidates)).require_columns(
            discovery.frame.columns, where="the evidence"
        )
        if self.columns or self.candidates:
            patterns, missing = match_attributes(discovery, self.columns), self.missing or "reject"
            _check_flags(table, list(patterns))
        else:
            columns = profile(table.select(cs.numeric() | cs.boolean()))
            patterns = {c.name: c.name for c in columns if c.kind is Kind.FLAG}
            missing = self.missing or "drop"
        schema = table.schema  # made anew from all columns each time it is asked for
        for column, name in _name_candidates(patterns).items():
            rule = flag_rule(column, schema[column])
            yield Candidate(name, rule, f"{name.replace('_', ' ')} holds", self.name, missing)
        yield from self.candidates


def _name_candidates(patterns: dict[str, str]) -> dict[str, str]:
    """Return a candidate name for each column.

    This is the column's name, without a glob's ``prefix__``.
    """
    short = {}
    for column, pattern in patterns.items():
        prefix = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        # d__* names a family of columns; their prefix does not tell them apart
        globbed = prefix != pattern and prefix.endswith("__") and column != pattern
        short[column] = column.removeprefix(prefix) if globbed else column
    uses = Counter(short.values())
    names = {
        # two families may have a member of the same name
        column: name if uses[name] == 1 and name.strip() else column
        for column, name in short.items()
    }
    return {column: name if name.strip() else f"column {name!r}" for column, name in names.items()}


def _check_flags(table: pl.DataFrame, columns: Sequence[str]) -> None:
    for column in columns:
        values = table[column]
        if values.dtype in (pl.Boolean, pl.Null):
            continue
        bad = values.drop_nulls()
        if bad.dtype.is_numeric():
            bad = bad.filter((bad != 0) & (bad != 1))
        if len(bad):
            raise InputError(
                f"column {column!r} was declared, but holds {bad[0]!r}; it must hold 0/1, "
                "true/false or be empty. Write a rule instead, such as --candidate "
                f"'NAME: {quote(column)} = {literal(bad[0])}'"
            )


def read_candidates(path: str | Path) -> Library:
    """Read candidates from a handwritten file, or from a frozen library.

    Parameters
    ----------
    path : path
        ``.json``: a frozen library. ``.toml``: a table for each name, with ``rule`` and optionally
        ``meaning`` and ``missing``, or ``name = "rule"``. Other files: a line ``NAME: SQL`` for
        each candidate; blank lines and lines that begin with ``#`` are skipped.

    Raises
    ------
    InputError
        If the file cannot be read.
    RuleError
        If a rule cannot be used; the message names the file, and the line or the candidate.
    """
    path = Path(path)
    if path.suffix == ".json":
        return Library.load(path)
    try:
        text = read_text(path)
        is_toml = path.suffix == ".toml"
        candidates = _from_toml(tomllib.loads(text)) if is_toml else _from_lines(text)
        # the file's name as the source, so that a report says where a candidate came from
        return Library.of(replace(candidate, source=path.name) for candidate in candidates)
    except RuleError as error:
        raise RuleError(f"{path}: {error}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot read candidates from {path}: {error}") from None


def _from_lines(text: str) -> Iterator[Candidate]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                yield Candidate.from_text(line)
            except RuleError as error:
                raise RuleError(f"line {number}: {error}") from None


def _from_toml(tables: dict[str, Any]) -> Iterator[Candidate]:
    for name, value in tables.items():
        fields = {"rule": value} if isinstance(value, str) else value
        keys = fields.keys() if isinstance(fields, dict) else set()
        if not {"rule"} <= keys <= {"rule", "meaning", "missing"} or not all(
            isinstance(field, str) for field in fields.values()
        ):
            raise RuleError(
                f"candidate {name!r} needs a rule, and may have a meaning and missing, all as text"
            )
        yield Candidate(name, **fields)
