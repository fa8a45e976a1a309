"""Conditions that are read off texts alone: what a prompt looks like and what it says.

None of them sees an outcome, so that rules made of them may be tested on all units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.rules import quote
from groundfault.modes.template_rules import draft_templates
from groundfault.modes.templates import find_templates
from groundfault.modes.text_conditions import MIN_TEXTS, Draft
from groundfault.modes.text_languages import detect_languages
from groundfault.modes.text_shapes import draft_shapes
from groundfault.modes.text_words import draft_phrases, draft_topics, draft_words

_SAMPLE = 20_000
# what is looked at text by text, and not by polars
_SMALL_SAMPLE = 5_000
_READ = 4_000
_MOSTLY = 0.5
# characters; rules of several parts have to stay below what a rule may have
_LONGEST_RULE = 1_500
_WORD_COST = 2.0
_SAME = 0.95
# what nearly all texts have is no condition, and that a text lacks what few have says little
_MAX_SHARE = 0.95
_MAX_NEGATION = 0.9


@dataclass(frozen=True)
class TextLiteral:
    """A condition on one column of texts, and the rows it holds for.

    Attributes
    ----------
    family : str
        What it is about, such as ``prompt language``. Literals of one family are alternatives of
        each other.
    rule, meaning : str
        In SQL, and in English.
    cost : float
        What it costs a reader: 1 for plain things, 2 or 3 for words.
    on : bool array, shape (rows,)
        Rows without a text are off.
    value : str or None
        In a family whose literals exclude each other: which one it is.
    """

    family: str
    rule: str
    meaning: str
    cost: float
    on: NDArray[np.bool_]
    value: str | None = None


def read_text_literals(text: pl.Series, *, max_words: int = 300) -> list[TextLiteral]:
    """Conditions on a column of texts, fixed by the texts alone.

    Parameters
    ----------
    text : polars.Series
        Strings, a row each; may have nulls.
    max_words : int
        Words at most, the most frequent first.

    Returns
    -------
    list of TextLiteral
        The plainest first; no two hold for the same rows, except for values of a family whose
        literals exclude each other.
    """
    text = text.cast(pl.String)
    sample = text.drop_nulls()
    if sample.len() > _SAMPLE:
        sample = sample.sample(_SAMPLE, seed=0)
    drafts = [draft for draft in _list_drafts(sample, max_words) if _is_short(draft)]
    return _drop_doubles(_keep_different(_evaluate(drafts, text)))


def _list_drafts(sample: pl.Series, max_words: int) -> list[Draft]:
    """What may be said of texts, the plainest first."""
    small = sample.sample(_SMALL_SAMPLE, seed=0) if sample.len() > _SMALL_SAMPLE else sample
    small = small.str.slice(0, _READ)
    words = small.str.to_lowercase().str.extract_all(r"\w+").to_list()
    languages = detect_languages([set(some) for some in words])
    templates = find_templates(small.to_list(), set(languages.list_words("spelled-out number")))
    drafts = [*draft_shapes(sample, languages), *draft_templates(small, templates)]
    # where texts are filled-in forms, the forms say it better
    if sum(map(bool, templates.labels)) < _MOSTLY * small.len():
        drafts += [*draft_topics(small), *draft_phrases(small)]
    return [*drafts, *draft_words(sample, max_words)]


def _is_short(draft: Draft) -> bool:
    return len(draft.condition.sql) <= _LONGEST_RULE


def _evaluate(drafts: Iterable[Draft], text: pl.Series) -> Iterator[TextLiteral]:
    drafts = list(drafts)
    column, present = quote(text.name), text.is_not_null().to_numpy()
    # each test once, however many literals share or negate it
    terms = {term.sql: term for draft in drafts for term in draft.condition.terms}
    frame = text.alias("text").to_frame()
    results = frame.select(term.expression.alias(sql) for sql, term in terms.items())
    passes = {sql: results[sql].fill_null(False).to_numpy() for sql in terms}
    for draft in drafts:
        on = present.copy()
        for term in draft.condition.terms:
            on &= passes[term.sql] == term.holds
        rule = draft.condition.sql.replace("{}", column)
        family, meaning = f"{text.name} {draft.family}", f"{text.name} {draft.meaning}"
        yield TextLiteral(family, rule, meaning, draft.cost, on, draft.value)


def _keep_different(literals: Iterable[TextLiteral]) -> list[TextLiteral]:
    """Without those that hold for too few or nearly all texts, or for the same as a plainer one."""
    extents: set[bytes] = set()
    different: list[TextLiteral] = []
    for one in literals:
        n, size = len(one.on), int(one.on.sum())
        most = _MAX_NEGATION if one.rule.startswith("NOT ") else _MAX_SHARE
        if not MIN_TEXTS <= size <= min(most * n, n - MIN_TEXTS):
            continue
        extent = np.packbits(one.on).tobytes()
        if extent not in extents or one.value is not None:
            different.append(one)
        extents.add(extent)
    return different


def _drop_doubles(literals: list[TextLiteral]) -> list[TextLiteral]:
    """Without words that hold for nearly the same texts as something plainer."""
    if not literals:
        return literals
    rows = np.array([one.on[:_SAMPLE] for one in literals], dtype=np.float32)
    sizes = rows.sum(axis=1)
    # one product: hundreds of small ones wait for each other's threads
    together = rows @ rows.T
    result = []
    for i, one in enumerate(literals):
        common = together[i, :i] if one.cost >= _WORD_COST else np.zeros(0)
        if not (common >= _SAME * (sizes[: len(common)] + sizes[i] - common)).any():
            result.append(one)
    return result
