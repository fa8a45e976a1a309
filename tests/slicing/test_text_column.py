"""Slices of texts: slices, explain and audits embed alike, and the slices apply to any texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundfault import Evidence, Library
from groundfault.core.candidate import FittedColumn
from groundfault.errors import InputError
from groundfault_lab.slicing import Domino, Edisa
from groundfault_lab.slicing.proposals import propose

WORDS = {True: "sort these words by letter please", False: "is this sentence about sports true"}


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    """240 questions of two kinds: those that ask to sort fail in nine cases of ten."""
    rng = np.random.default_rng(0)
    sorts = rng.random(240) < 0.25
    texts = [f"{WORDS[bool(s)]}: number {'abcdefgh'[i % 8] * 3} {i}" for i, s in enumerate(sorts)]
    fails = np.where(sorts, rng.random(240) < 0.9, rng.random(240) < 0.05)
    frame = pl.DataFrame({"id": range(240), "question": texts, "error": fails.astype(int)})
    return Evidence.from_table(frame, outcome="error", id="id")


@pytest.mark.parametrize("finder", [Edisa(n_slices=4), Domino(n_slices=4)])
def test_a_clear_pattern_of_texts_is_proposed_and_applies_to_other_texts(
    evidence: Evidence, finder: Edisa | Domino, tmp_path: Path
) -> None:
    proposals = propose(evidence, finder)
    assert proposals.rows[0].on_rate > 0.7
    proposals.library.freeze(tmp_path / "library.json")
    column = next(iter(Library.load(tmp_path / "library.json"))).fitted_column
    assert column == proposals.library.candidates[0].fitted_column
    number = int(proposals.rows[0].rule.rpartition("= ")[2])
    fresh = pl.DataFrame({"question": [f"{WORDS[True]}: number zzz", f"{WORDS[False]}: no", None]})
    labels = column.apply(fresh).to_list()
    assert [label == number for label in labels] == [True, False, False]
    assert labels[2] is None
    with pytest.raises(InputError, match="not text"):
        column.apply(fresh.select(question=pl.lit(1)))


def test_an_embedding_of_the_table_comes_before_its_texts(evidence: Evidence) -> None:
    points = pl.Series("embedding_0", np.arange(240.0))
    whole = replace(evidence, frame=evidence.frame.with_columns(points))
    for candidate in propose(whole, Edisa(n_slices=4, delta=1.0)).library:
        assert type(candidate.fitted_column) is FittedColumn


def test_without_an_embedding_or_texts_there_is_nothing_to_read(evidence: Evidence) -> None:
    bare = replace(evidence, frame=evidence.frame.drop("question").with_columns(a=pl.lit(1)))
    with pytest.raises(InputError, match="embedding"):
        propose(bare, Edisa())
    with pytest.raises(InputError, match="prompt"):
        propose(evidence, Edisa(text="prompt"))


@pytest.mark.slow
@pytest.mark.parametrize("finder", [Edisa(), Domino()])
def test_real_questions_with_a_clear_pattern_have_slices(
    shared: Path, finder: Edisa | Domino
) -> None:
    """Of BIG-Bench Hard a model fails all kinds of tasks, from none to three in four."""
    answers = pl.read_parquet(shared / "real" / "bbh_codex" / "outcomes.parquet")
    table = answers.unique("question", maintain_order=True).sample(600, seed=0)
    table = table.select(
        pl.int_range(pl.len()).alias("id"), "question", error=1 - pl.col("correct").cast(pl.Int8)
    )
    proposals = propose(Evidence.from_table(table, outcome="error", id="id"), finder)
    assert max(row.on_rate for row in proposals.rows) > 2 * table["error"].mean()
