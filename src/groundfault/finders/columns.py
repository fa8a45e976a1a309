"""The default finders: categories, numbers, texts, flags, and the instrument.

Each reads one column at a time.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars import selectors as cs

from groundfault.base.reading import read_beside, read_text
from groundfault.core.candidate import Candidate, Library, Missing, unique_names
from groundfault.core.column_meaning import measures_answer
from groundfault.core.columns import (
    LEVELS,
    Column,
    Kind,
    check_quantiles,
    flag_rule,
    list_examples,
    match_attributes,
    profile,
    profile_examples,
    propose_missing,
    select_example_rows,
    select_named,
    shorten_value,
    take_sample,
)
from groundfault.core.evidence import Evidence
from groundfault.core.rules import Rule, literal, quote
from groundfault.errors import InputError, RuleError
from groundfault.finders import Parameters

# distinct values up to which numbers are proposed as levels too
_FEW = 6
# marks of texts and answers that SQL's regular expressions can check without a language model, so
# that anyone can re-check a rule
MARKS: dict[str, dict[str, str]] = tomllib.loads(read_beside(__file__, "marks.toml"))
_QUESTIONS = {word: word for word in ("what", "which", "who", "when", "where", "why", "how")} | {
    "how many or how much": "how (many|much)"
}
_MOST_WORDS = 1000  # engines refuse longer repetitions; characters cover longer texts
_RESPONSES = ("response", "answer", "output", "completion")
# differences in these are differences of form
_LEFT_OUT = " .,;:"


@dataclass(frozen=True)
class Categories(Parameters):
    """Propose one "is" rule for each frequent level of an attribute that repeats a few words.

    Of two levels without missing values only the rarer is proposed, since the other is its
    complement. Whole numbers with at most six distinct values are also levels, except the smallest
    and the largest, which are thresholds. An example without a value is off for the levels, and on
    for a separate candidate, "is missing". The finder ``declared`` proposes flags (true/false,
    0/1); ids and free text get no rules here.

    Parameters
    ----------
    max_levels : int
        A column with more levels is not a category.
    min_size : int
        A level needs at least this many discovery examples.
    columns : tuple of str, optional
        Names or globs; by default every attribute that repeats a few words. A flag named here gives
        one candidate.

    Raises
    ------
    InputError
        If a named column is not there, or has more than ``max_levels`` levels.
    """

    max_levels: int = LEVELS
    min_size: int = 5
    columns: tuple[str, ...] | None = None
    name: str = "categories"

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose candidates such as ``output_type = list``, then patterns of missing values."""
        table, columns = list_examples(discovery), profile_examples(discovery)
        if self.columns is not None:
            table = table.select(*match_attributes(discovery, self.columns))
        if self.columns is not None or self.max_levels != LEVELS:
            columns = profile(table, self.max_levels)
        candidates = [
            c for column in columns for c in self._propose_column(table[column.name], column)
        ]
        yield from unique_names(candidates)
        schema = table.schema
        numbers = [c for c in columns if c.kind in (Kind.NUMBER, Kind.CONSTANT)]
        numeric = [c for c in numbers if not self.columns and schema[c.name].is_numeric()]
        yield from propose_missing(table, [c for c in columns if c not in numeric], self.name)

    def _propose_column(self, values: pl.Series, column: Column) -> list[Candidate]:
        if column.kind in (Kind.CONSTANT, Kind.OTHER):
            return []
        if column.kind is Kind.FLAG:
            if not self.columns:
                return []
            rule = flag_rule(column.name, values.dtype)
            return [Candidate(column.name, rule, column.name, self.name, "drop")]
        if self.columns is None:
            few = column.kind is Kind.NUMBER and column.distinct <= _FEW
            if not few and column.kind is not Kind.LABEL:
                return []
        elif column.distinct > self.max_levels:
            raise InputError(
                f"column {column.name!r} has {column.distinct} or more levels and is "
                f"not a category: leave it out, or raise max_levels (now {self.max_levels})"
            )
        name, candidates = column.name, []
        for level in self._levels(values, column):
            text, rule = shorten_value(level), f"{quote(name)} = {literal(level)}"
            # "off": a missing value is not this level, and is a candidate of its own
            candidates.append(
                Candidate(f"{name} = {text}", rule, f"{name} is {text}", self.name, "off")
            )
        return candidates

    def _levels(self, values: pl.Series, column: Column) -> list[Any]:
        values_present = values.drop_nulls().alias("level")
        plain = values_present.dtype
        if not plain.is_integer():
            plain = pl.Float64() if plain.is_numeric() else pl.String()
        counts = dict(values_present.cast(plain).value_counts().sort("level").iter_rows())
        levels = [
            level
            for level, n in counts.items()
            # a level of too few examples, or without too few others, could not be tested
            if self.min_size <= n <= len(values) - self.min_size
        ]
        if self.columns is None and column.kind is Kind.NUMBER:
            whole = all(float(level).is_integer() for level in counts)
            # the finder of thresholds already proposes the smallest and the largest
            return [int(level) for level in levels if whole and min(counts) < level < max(counts)]
        if len(counts) == 2 and not column.missing:
            # one of two levels is enough: the other is its complement
            return sorted(levels, key=counts.__getitem__)[:1]
        return levels


@dataclass(frozen=True)
class Thresholds(Parameters):
    """Propose "above" rules that split numeric attributes at discovery quantiles.

    Only "above" is proposed, since "at most" is its complement and has the same lift with the other
    sign: a second candidate would count the same test twice. If failures are more frequent below
    the cut, the report says "at most" (`groundfault.core.finding.Finding.opposite`).

    If a quantile is the largest value, the cut is put just below it. Cuts are the shortest decimals
    that split discovery as the quantile does, and integers for columns of whole numbers. Examples
    without a value are left out of these candidates and get a separate candidate, "is missing".

    Parameters
    ----------
    quantiles : tuple of float
        In (0, 1).
    columns : tuple of str, optional
        Names or globs; by default every attribute that is a number, except 0/1 columns and ids.

    Raises
    ------
    InputError
        If a named column is missing or holds no numbers.
    """

    quantiles: tuple[float, ...] = (0.25, 0.5, 0.75, 0.9)
    columns: tuple[str, ...] | None = None
    name: str = "thresholds"

    def __post_init__(self) -> None:
        check_quantiles(self.quantiles)

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose candidates such as ``n_words > 400``, then the patterns of missing values."""
        table, columns = self._numbers(discovery)
        for column, column_cuts in choose_cuts(
            table, [c.name for c in columns if c.distinct > 1], self.quantiles
        ).items():
            for cut in column_cuts:
                name, meaning = f"{column} > {cut}", f"{column} is above {cut}"
                yield Candidate(name, f"{quote(column)} > {cut}", meaning, self.name, "drop")
        yield from propose_missing(table, columns, self.name)

    def _numbers(self, discovery: Evidence) -> tuple[pl.DataFrame, list[Column]]:
        if self.columns is None:
            # numbers only: levels of words belong to the finder of categories
            table = list_examples(discovery).select(cs.numeric())
            columns = [c for c in profile_examples(discovery) if c.name in table.columns]
            return table, [c for c in columns if c.kind in (Kind.NUMBER, Kind.CONSTANT)]
        reason = ", not numbers, so it has no thresholds"
        table = select_named(discovery, self.columns, cs.numeric(), reason)
        return table, list(profile(table))


def choose_cuts(
    table: pl.DataFrame, columns: Sequence[str], quantiles: Sequence[float]
) -> dict[str, list[str]]:
    """Return ascending cuts of columns as SQL numbers; empty for fewer than two values.

    Parameters
    ----------
    table : polars.DataFrame
    columns : sequence of str
        Numbers.
    quantiles : sequence of float
        In (0, 1).
    """
    cuts = {}
    for c in columns:
        # floats, since SQL compares all numbers in the same way; sorted once for all quantiles
        values = np.sort(table[c].cast(pl.Float64).drop_nulls().drop_nans().to_numpy())
        if len(values):
            # a cut at the largest value has no values above it
            below = values[: np.searchsorted(values, values[-1])]
            at = values[[int(q * (len(values) - 1)) for q in quantiles]]
            lower = np.unique(np.minimum(at, below[-1])) if len(below) else below
            lower = lower[np.isfinite(lower)]
            upper = values[np.searchsorted(values, lower, side="right")]
            cuts[c] = list(map(_shorten_cut, lower.tolist(), upper.tolist()))
    return cuts


def _shorten_cut(value: float, above: float) -> str:
    """Return the shortest decimal of at least ``value`` that is nearer to it than to ``above``."""
    middle = value / 2 + above / 2
    for digits in range(1, 18):
        for rounding in (ROUND_HALF_EVEN, ROUND_CEILING):
            cut = float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value)))
            if cut == value or value < cut < middle:
                return str(int(cut)) if cut.is_integer() and abs(cut) < 2**53 else repr(cut)
    return repr(value)


@dataclass(frozen=True)
class Text(Parameters):
    """Propose properties of text attributes that SQL can check: length, marks, question words.

    Characters and words are cut at quantiles, commas and semicolons at the third quartile. Words
    are runs of characters without white space. A sentence ends at ``.``, ``?`` or ``!`` before
    white space. Single quotes do not count as quotation marks, since they may be apostrophes. A
    property is left out if it is constant on the discovery examples, or marks the same examples as
    an earlier one of its column. Examples without a text are left out of these candidates.

    Parameters
    ----------
    quantiles : tuple of float
        In (0, 1), for characters and words.
    columns : tuple of str, optional
        Names or globs; by default every attribute of text, except categories and codes.

    Raises
    ------
    InputError
        If a named column is missing or holds no text.

    Notes
    -----
    The finder reads texts in a fixed sample of 20,000 examples; its rules apply to all examples.
    """

    quantiles: tuple[float, ...] = (0.25, 0.5, 0.75, 0.9)
    columns: tuple[str, ...] | None = None
    name: str = "text"

    def __post_init__(self) -> None:
        check_quantiles(self.quantiles)

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose candidates such as ``question has over 60 words``, column by column."""
        table = take_sample(select_texts(discovery, self.columns))
        for column in table.columns:
            rules = [*cut_lengths(table[column], self.quantiles), *_list_patterns(column)]
            candidates = [
                Candidate(f"{column} {what}", rule, f"{column} {what}", self.name, "drop")
                for what, rule in rules
            ]
            yield from drop_uninformative(table, candidates)


def select_texts(discovery: Evidence, columns: tuple[str, ...] | None) -> pl.DataFrame:
    """Return attributes that are texts: the named ones, or all except categories and codes.

    Raises
    ------
    InputError
        If a name or glob matches no attribute, or one without texts.
    """
    if columns is not None:
        return select_named(discovery, columns, cs.string(), ", not text")
    texts = [c.name for c in profile_examples(discovery) if c.kind is Kind.TEXT]
    return list_examples(discovery).select(texts).select(cs.string())


def cut_lengths(text: pl.Series, quantiles: tuple[float, ...]) -> Iterator[tuple[str, str]]:
    """Return lengths of a column of texts, cut at quantiles: each cut's meaning and rule."""
    column = quote(text.name)
    for cut in _cut_quantiles(text.str.len_chars(), quantiles):
        what = f"has over {cut} character{'s' * (cut > 1)}" if cut else "is not empty"
        yield what, f"LENGTH({column}) > {cut}"
    # SQL has no function to count words, so the rule uses a repetition in a pattern
    for cut in _cut_quantiles(text.str.count_matches(r"\S+"), quantiles):
        if 0 < cut <= _MOST_WORDS:
            yield f"has over {cut} word{'s' * (cut > 1)}", rf"{column} ~ '^\s*(\S+\s+){{{cut}}}\S'"
    # one cut, since most texts have few or no such marks
    for cut in _cut_quantiles(text.str.count_matches("[,;]"), (0.75,)):
        rule = f"LENGTH({column}) - LENGTH(REPLACE(REPLACE({column}, ',', ''), ';', '')) > {cut}"
        marks = "comma or semicolon" if cut < 2 else "commas or semicolons"
        yield f"has over {cut} {marks}" if cut else f"has a {marks}", rule


def _cut_quantiles(counts: pl.Series, quantiles: tuple[float, ...]) -> list[int]:
    cuts = {int(value) for q in quantiles if (value := counts.quantile(q, "lower")) is not None}
    return sorted(cuts)


def _list_patterns(column: str) -> Iterator[tuple[str, str]]:
    for mark, pattern in MARKS["texts"].items():
        yield f"has {mark}", f"{quote(column)} ~ {literal(pattern)}"
    for word, pattern in _QUESTIONS.items():
        anywhere, start = rf"\b{pattern}\b", rf"^\W*{pattern}\b"
        yield f'has "{word}"', f"{quote(column)} ~* {literal(anywhere)}"
        yield f'starts with "{word}"', f"{quote(column)} ~* {literal(start)}"


def drop_uninformative(table: pl.DataFrame, candidates: list[Candidate]) -> Iterator[Candidate]:
    """Drop candidates that are constant, or equal to an earlier one."""
    marks = table.select(
        Rule.parse(c.rule).to_polars().alias(str(i)) for i, c in enumerate(candidates)
    )
    columns = set()
    for i, candidate in enumerate(candidates):
        values = marks[str(i)].drop_nulls()
        # compared by value, since two patterns may mark the same texts
        bits = values.to_numpy().tobytes()
        if values.any() and not values.all() and bits not in columns:
            columns.add(bits)
            yield candidate


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
            patterns = {c.name: c.name for c in profile_examples(discovery) if c.kind is Kind.FLAG}
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
