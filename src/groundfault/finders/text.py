"""Properties of texts: their length, marks and question words."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
from polars import selectors as cs

from groundfault.base.reading import read_beside
from groundfault.core.candidate import Candidate
from groundfault.core.columns import (
    Kind,
    check_quantiles,
    list_examples,
    profile,
    select_named,
    take_sample,
)
from groundfault.core.evidence import Evidence
from groundfault.core.rules import Rule, literal, quote
from groundfault.slicing.parameters import Parameters

# marks of texts and answers that SQL's regular expressions can check without a language model, so
# that anyone can re-check a rule
MARKS: dict[str, dict[str, str]] = tomllib.loads(read_beside(__file__, "marks.toml"))
_QUESTIONS = {word: word for word in ("what", "which", "who", "when", "where", "why", "how")} | {
    "how many or how much": "how (many|much)"
}
_MOST_WORDS = 1000  # engines refuse longer repetitions; characters cover longer texts


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
    table = list_examples(discovery).select(cs.string())
    return table.select(column.name for column in profile(table) if column.kind is Kind.TEXT)


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
