"""Grading: how often the grader of an example failed, although there was an answer to grade."""

from __future__ import annotations

import polars as pl

from groundfault.core.status import Status

GRADER_ERRORS = "grader_errors"
"""Column: share of an example's answers that have no score because their grader failed."""


def add_grader_errors(table: pl.DataFrame) -> pl.DataFrame:
    """The rows of all scorers, with `GRADER_ERRORS` where a grader failed at least once.

    An answer that is there and was not scored because of an error says nothing of the model, but
    something of the grader: whether it fails on the examples that count as failures too is for the
    finder ``instrument`` to ask. The share is of all scorers, models and repeats of the example.
    """
    has_answer = pl.col("response").is_not_null()
    failed = has_answer & (pl.col("status") == Status.ERROR)
    if GRADER_ERRORS in table.columns or not table.select(failed.any()).item():
        return table
    share = failed.sum().over("task", "example_id") / has_answer.sum().over("task", "example_id")
    return table.with_columns(share.fill_nan(None).alias(GRADER_ERRORS))
