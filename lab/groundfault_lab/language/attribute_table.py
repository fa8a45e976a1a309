"""What is read off texts, as columns for use elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from groundfault.modes.text_attributes import TextCondition, read_text_conditions

_COUNTS = {
    "characters": ("number of characters", pl.col("text").str.len_chars()),
    "words": ("number of words", pl.col("text").str.count_matches(r"\S+")),
    "sentences": (
        "number of sentences",
        pl.col("text").str.count_matches(r"[^.!?][.!?][\"')]*\s+\S") + 1,
    ),
    "commas": ("number of commas", pl.col("text").str.count_matches(",")),
    "numbers": (
        "how many numbers are written in digits",
        pl.col("text").str.count_matches(r"\d[\d.,]*"),
    ),
    "digits": (
        "digits of the longest number",
        pl.col("text").str.extract_all(r"\d+").list.eval(pl.element().str.len_chars()).list.max(),
    ),
}
# families of conditions that cut one of these numbers
_CUT = {"length", "word count", "sentences", "commas", "number count", "number size"}
_CATEGORIES = {
    "language": "language of {}",
    "template": "template that {} is made from",
    "first sentence": "first word of {}",
    "last sentence": "first word of the last sentence of {}",
}
_WORD_COST = 2.0
_LONGEST_NAME = 40


@dataclass(frozen=True)
class Attribute:
    """One column read off texts.

    Attributes
    ----------
    values : polars.Series
        Numbers, categories, or 0 and 1; null where there is no text. Its name is the column's.
    meaning : str
        In English.
    """

    values: pl.Series
    meaning: str


def tabulate_attributes(text: pl.Series) -> list[Attribute]:
    """Return attributes of a column of texts, fixed by the texts alone.

    Parameters
    ----------
    text : polars.Series
        Strings, a row each; may have nulls.

    Returns
    -------
    list of Attribute
        Counts first, then categories (language, template, first words), then flags. Words and
        phrases are left out.
    """
    literals = [one for one in read_text_conditions(text) if one.cost < _WORD_COST]
    attributes = [*_list_counts(text), *_list_categories(text, literals)]
    names = {one.values.name for one in attributes}
    for one in literals:
        family = one.family.removeprefix(f"{text.name} ")
        if one.value is not None or family in _CUT or one.rule.startswith("NOT "):
            continue
        name = _make_name(text.name, one.meaning.removeprefix(f"{text.name} "), names)
        names.add(name)
        flags = pl.Series(name, one.on, dtype=pl.Int8)
        attributes.append(Attribute(_blank(flags, text), one.meaning))
    return attributes


def _list_counts(text: pl.Series) -> Iterator[Attribute]:
    frame = text.cast(pl.String).alias("text").to_frame()
    for name, (meaning, expression) in _COUNTS.items():
        counts = frame.select(expression.fill_null(0).cast(pl.Int64)).to_series()
        counts = counts.alias(f"{text.name}_{name}")
        yield Attribute(_blank(counts, text), f"{meaning} in {text.name}")


def _list_categories(text: pl.Series, literals: list[TextCondition]) -> Iterator[Attribute]:
    families = dict.fromkeys(one.family for one in literals if one.value is not None)
    for family in families:
        values = np.full(text.len(), None, dtype=object)
        # where two hold for a text, the first
        for one in reversed([one for one in literals if one.family == family]):
            if one.value is not None:
                values[one.on] = one.value
        name = family.removeprefix(f"{text.name} ")
        column = f"{text.name}_{name.replace(' ', '_')}"
        meaning = _CATEGORIES[name].replace("{}", text.name)
        yield Attribute(pl.Series(column, values.tolist(), dtype=pl.String), meaning)


def _blank(values: pl.Series, text: pl.Series) -> pl.Series:
    return (
        values.to_frame().select(pl.when(text.is_not_null()).then(pl.col(values.name))).to_series()
    )


def _make_name(column: str, meaning: str, names: set[str]) -> str:
    """Return a name like ``question_all_in_capitals``, different from all others."""
    meaning = re.sub(r"^(has|is) (an? |the )?", "", meaning)
    slug = re.sub(r"\W+", "_", meaning.lower()).strip("_")
    name = f"{column}_{slug[:_LONGEST_NAME].rstrip('_')}"
    same = sum(other == name or other.startswith(f"{name}_v") for other in names)
    return f"{name}_v{same + 1}" if same else name
