"""Copies: examples that repeat others under new ids, which then count as one unit.

A copy adds no information: an audit that counts it as a separate example would find chance effects
significant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import reduce

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.arrays import Floats, Places
from groundfault.core.column_names import describes_answer, holds_question, names_a_thing
from groundfault.core.columns import Column, Kind, list_examples, profile
from groundfault.core.evidence import Evidence
from groundfault.core.roles import list_parts
from groundfault.core.units import average_losses
from groundfault.stats.near_duplicates import find_near_duplicates, normalise_text

MOST_TEXTS = 2000
"""Most distinct texts for the search of near duplicates; exact ones are found among any number."""

# fewest distinct rows that all occur an even number of times: not chance
_MIN_ROWS = 12
# values of copies agree in each column, given all others; coincidences seldom do: nearly always,
# or in a good part of the cases and far more often than any two values of the column
_ALWAYS = 0.9
_OFTEN = 0.3  # the good part of the cases
_TIMES = 50  # far more often than by chance
_AGREEING = 0.95  # copies may differ in a slip of entry
# coincidences that independent columns would give, to one that there is
_EXPECTED = 0.05
# examples of one cluster on average: more are a design, or a table of few columns
_MEAN_SIZE = 10
_MIN_WORDS = 3  # shorter texts, such as "yes", are equal without being copies
# characters that two near duplicates share, in order
_ALIKE = 0.95


def join_copies(evidence: Evidence) -> Evidence:
    """Return the evidence with copies of an example joined to one unit, described by the first.

    Parameters
    ----------
    evidence : Evidence
        With a group column, its groups are the units, and no copies are joined.

    Notes
    -----
    Examples are copies of each other if

    - they have the same texts except for case, spacing and punctuation, or similar texts
      (`find_near_duplicates`, 95 % of characters equal; searched among up to 2,000 distinct texts)
      with the same numbers. They must also agree in all labels and flags and, if no column is named
      like a question, in 95 % of their outcomes; or, in a table without texts,
    - they agree in all columns, and coincidences are unlikely: agreement in all columns but one
      comes with agreement in that column far more often than by chance, and independent columns
      would give less than a twentieth of the agreements. Their outcomes also agree in at least 95 %
      of cases; or
    - every combination of values and outcome occurs a multiple of k times: the table was put
      together from k copies of itself.

    Columns of ids do not count. Whole rows are compared, before any split, and outcomes only to
    tell copies from similar rows. Copies of a few rows in a table of few columns look like
    coincidences, and are not found.
    """
    if evidence.roles.group is not None or evidence.clusters is not None:
        return evidence
    table = list_examples(evidence)
    parts = list_parts(evidence.frame)
    columns = [
        c
        for c in profile(table)
        if c.kind not in (Kind.CONSTANT, Kind.OTHER)
        and not names_a_thing(c.name)
        # parts of one date are redundant
        and c.name not in parts
        # integers that are all different number the examples
        if not (table[c.name].dtype.is_integer() and table[c.name].n_unique() == table.height)
    ]
    # a model's answers may differ between copies
    questions = [c for c in columns if not describes_answer(c.name)]
    texts = [c for c in questions if _is_text(table, c)]
    if texts:
        plain = [c.name for c in questions if c.kind in (Kind.LABEL, Kind.FLAG)]
        first = _join_texts(table, [c.name for c in texts], plain)
        # many questions have one description, and come out in their own ways
        is_told = any(holds_question(c.name) for c in texts)
        if not is_told and not _come_out_alike(first, average_losses(evidence).T):
            return evidence
    else:
        first = _join_rows(_code_labels(table, columns), average_losses(evidence).T)
    if (first == np.arange(len(first))).all():
        return evidence
    ids = table_ids(evidence)
    names = dict(zip(ids, np.asarray(ids)[first], strict=True))
    rows = evidence.frame[evidence.roles.id or ""].cast(pl.String)
    return replace(evidence, clusters=rows.replace_strict(names, return_dtype=pl.String))


def take_each_for_a_unit(evidence: Evidence) -> Evidence:
    """Return the evidence with every example as a separate unit, including copies.

    Named groups stay.
    """
    if evidence.roles.group is not None:
        return evidence
    return replace(evidence, clusters=evidence.frame[evidence.roles.id or ""].cast(pl.String))


def table_ids(evidence: Evidence) -> list[str]:
    """Return names of the examples, in the order of `list_examples`."""
    ids = evidence.frame[evidence.roles.id or ""].cast(pl.String)
    return ids.unique(maintain_order=True).to_list()


def _come_out_alike(first: Places, losses: Floats) -> bool:
    """Return whether units have the outcomes of the units they repeat, up to slips of entry."""
    repeats = np.flatnonzero(first != np.arange(len(first)))
    ours, theirs = losses[repeats], losses[first[repeats]]
    is_both = ~(np.isnan(ours) | np.isnan(theirs))
    return bool((ours == theirs)[is_both].mean() >= _AGREEING) if is_both.any() else True


def _is_text(table: pl.DataFrame, column: Column) -> bool:
    if column.kind not in (Kind.TEXT, Kind.CODE) or table[column.name].dtype != pl.String:
        return False
    # different texts are read as codes where nearly all differ; codes have no words
    words = table[column.name].str.split(" ").list.len().median()
    return words is not None and float(str(words)) >= (
        2 if column.kind is Kind.TEXT else _MIN_WORDS
    )


def _join_texts(table: pl.DataFrame, texts: Sequence[str], plain: Sequence[str]) -> Places:
    """Find for each example the first of nearly the same texts, and the same labels and flags."""
    whole = table.select(pl.concat_str(texts, separator=" ", ignore_nulls=True)).to_series()
    words = [normalise_text(text or "") for text in whole]
    rows = table.with_columns(pl.Series("\0text", words))
    first = _find_first(rows.select(*plain, "\0text"))
    kinds = _find_first(rows.select(*plain)) if plain else np.zeros_like(first)
    leaders = np.flatnonzero((first == np.arange(len(first))) & np.array([bool(w) for w in words]))
    # missing texts are not copies of each other
    blank = np.array([not w for w in words], dtype=np.bool_)
    first[blank] = np.flatnonzero(blank)
    if len(leaders) <= MOST_TEXTS:
        # a part of a longer text is another question, and so may be a text that differs in a few
        # words from a form that many texts share
        for pair in find_near_duplicates([words[i] for i in leaders], [], containment=math.inf):
            a, b = int(leaders[pair.text]), int(leaders[pair.other])
            numbers = [re.findall(r"\d+", words[i]) for i in (a, b)]
            alike = kinds[a] == kinds[b] and numbers[0] == numbers[1]
            match = SequenceMatcher(None, words[a], words[b], autojunk=False)
            if alike and match.ratio() >= _ALIKE:
                low, high = sorted((int(first[a]), int(first[b])))
                first[first == high] = low
    return first


def _code_labels(table: pl.DataFrame, columns: Sequence[Column]) -> pl.DataFrame:
    """Return the columns with numbers for words that repeat.

    The same rows are equal, and comparing them takes a fraction of the memory.
    """
    return pl.DataFrame(
        [
            table[c.name].cast(pl.String).cast(pl.Categorical).to_physical().shrink_dtype()
            if c.kind is Kind.LABEL
            else table[c.name]
            for c in columns
        ]
    )


def _join_rows(table: pl.DataFrame, losses: Floats) -> Places:
    """Find for each example the first that it is a copy of, by all columns together."""
    n = table.height
    alone = np.arange(n, dtype=np.intp)
    if not table.width or n < 2:
        return alone
    first = _find_first(table)
    sizes = np.bincount(first)
    sizes = sizes[sizes > 1]
    are_few = len(sizes) > 0 and sizes.mean() <= _MEAN_SIZE
    if are_few and _agree_in_outcomes(first, losses) and _are_no_coincidences(table):
        return first
    outcomes = pl.DataFrame({f"\0loss {i}": row for i, row in enumerate(losses.T)})
    rows = _find_first(pl.concat([table, outcomes], how="horizontal"))
    counts = np.bincount(rows)
    times = reduce(math.gcd, counts[counts > 0].tolist())
    if times < 2 or (counts > 0).sum() < _MIN_ROWS:
        return alone
    # rows that agree in everything are copies of each other in any order
    order = np.argsort(rows, kind="stable")
    out = np.empty(n, dtype=np.intp)
    out[order] = np.repeat(order[::times], times)
    return out


def _agree_in_outcomes(first: Places, losses: Floats) -> bool:
    """Return whether rows that agree in all columns have the outcomes of their first row.

    Outcomes of examples that only look the same would differ.
    """
    others = np.flatnonzero(first != np.arange(len(first)))
    a, b = losses[others], losses[first[others]]
    same = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return bool(same.mean() >= _AGREEING)


def _are_no_coincidences(table: pl.DataFrame) -> bool:
    """Return whether more rows agree in all columns than by chance."""
    codes = [_find_first(table.select(name)) for name in _drop_functions(table)]
    keys = np.random.default_rng(0).integers(0, 2**63, (len(codes), table.height), dtype=np.uint64)
    hashes = [key[code] for key, code in zip(keys, codes, strict=True)]
    # sums of random numbers stand for combinations of values: a column is taken out by subtraction
    whole = np.stack(hashes).sum(axis=0, dtype=np.uint64)
    agreeing = _count_pairs(whole)
    if agreeing == 0:
        return False
    pairs = table.height * (table.height - 1) / 2
    usual = [_count_pairs(code) / pairs for code in codes]
    if pairs * np.prod(usual) > _EXPECTED * agreeing:
        return False
    shares = [agreeing / _count_pairs(whole - one) for one in hashes]
    return all(
        share >= 1 - (1 - _ALWAYS) * (1 - by_chance)
        or (share >= _OFTEN and share >= _TIMES * by_chance)
        for share, by_chance in zip(shares, usual, strict=True)
    )


def _drop_functions(table: pl.DataFrame) -> Iterator[str]:
    """Yield columns that no one column before them in order of values determines."""
    names = sorted(table.columns, key=lambda name: -table[name].n_unique())
    independent: list[str] = []
    for name in names:
        if not any(
            table.select(pl.struct(other, name).n_unique()).item() == table[other].n_unique()
            for other in independent
        ):
            independent.append(name)
            yield name


def _find_first(table: pl.DataFrame) -> Places:
    """Find for each row the first that is equal to it; missing values are equal."""
    row = pl.int_range(pl.len()).alias("\0row")
    names = table.columns
    first = table.with_columns(row).select(pl.col("\0row").first().over(names))
    return first.to_series().to_numpy().astype(np.intp)


def _count_pairs(codes: NDArray[np.uint64] | Places) -> float:
    counts = np.unique(codes, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1)).sum() / 2)
