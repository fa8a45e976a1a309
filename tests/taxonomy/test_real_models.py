"""Seventeen real models, of which every one but four has a hole: no cluster, but a leaf each."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from groundfault import Evidence
from groundfault_lab.taxonomy import Settings, fit


@pytest.mark.slow
def test_holes_of_single_models_are_leaves_and_no_cluster(shared: Path) -> None:
    """A cluster is shared by models; what one model alone never saw is a rule of its own."""
    data = shared / "real" / "known_holes"
    numbers = ["add", "subtract", "convert", "weekday", "month", "lookup", "sort", "compare"]
    examples = pl.read_parquet(data / "examples.parquet").sample(700, seed=0)
    outcomes = pl.read_parquet(data / "outcomes.parquet")
    table = outcomes.join(examples.filter(pl.col("task").is_in(numbers)), on="example_id")
    evidence = Evidence.from_table(
        table,
        outcome="correct",
        id="example_id",
        model="model",
        positive_is_good=True,
        ignore=["prompt", "target", "answer"],
    )
    taxonomy = fit(evidence, Settings(worlds=19, refits=3, bootstraps=2))
    assert len(taxonomy.matrix.models) == 17
    assert len(taxonomy.clusters) > len(taxonomy.leaves) >= 5
    assert taxonomy.published == taxonomy.leaves
    assert "no tighter than those found in worlds of one ability" in taxonomy.clusters[-1].reason
