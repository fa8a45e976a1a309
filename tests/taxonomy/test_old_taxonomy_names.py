"""Names of 0.1.0 in taxonomies warn and work."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from groundfault_lab.taxonomy.use import regimes
from groundfault_lab.taxonomy.worlds import AbilityWorld

TRACES = pl.DataFrame({"grader": [1] * 5, "ran": [0] * 5})


def test_gaps_of_a_judge() -> None:
    with pytest.warns(DeprecationWarning, match="grader_gaps"):
        judge_gaps = regimes.judge_gaps  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"grader_gaps\(grader=\)"):
        (gap,) = judge_gaps(TRACES, judge="grader", execution="ran")
    with pytest.warns(DeprecationWarning, match="grader_rate"):
        assert gap.judged == gap.grader_rate
    with pytest.warns(DeprecationWarning, match="grader_only"):
        assert gap.judge_only == 5


def test_methods_of_a_matrix() -> None:
    matrix, _ = AbilityWorld(examples=30, models=4).draw(np.random.default_rng(0))
    with pytest.warns(DeprecationWarning, match="impute"):
        values = matrix.imputed()  # type: ignore[attr-defined]
    assert (values == matrix.impute()).all()
    with pytest.warns(DeprecationWarning, match="keep_failures_of"):
        assert len(matrix.failed_by(matrix.models)) <= 30  # type: ignore[attr-defined]
