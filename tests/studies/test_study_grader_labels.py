"""The study of labels that a grader saves: its graders err as they are meant to, and it resumes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from groundfault.errors import InputError
from groundfault_studies import grader_labels

SHARED = Path(__file__).parents[3] / "shared" / "data"

needs_data = pytest.mark.skipif(
    not (SHARED / "real" / "zeroeval").is_dir(), reason="needs shared/data/real"
)


@needs_data
@pytest.mark.parametrize(
    ("model", "called_wrong", "called_right"),
    # a grader who reads the last character lets wrong answers pass; an exact match never does
    [("number_words#1", 0, 753), ("gemma-2-2b-it", 30, 0)],
)
def test_graders_err_where_they_are_meant_to(
    model: str, called_wrong: int, called_right: int
) -> None:
    table = grader_labels.read_graded(SHARED, model)
    too_strict = table.filter(pl.col("grade") > pl.col("human_label")).height
    too_lenient = table.filter(pl.col("grade") < pl.col("human_label")).height
    assert (too_strict, too_lenient) == (called_wrong, called_right)


@needs_data
def test_a_model_without_answers_is_named() -> None:
    with pytest.raises(InputError, match="no answers of 'nobody'"):
        grader_labels.read_graded(SHARED, "nobody")


def test_a_folder_without_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--shared"):
        grader_labels.study(tmp_path)


@needs_data
@pytest.mark.slow
def test_a_draw_with_and_without_grades(tmp_path: Path) -> None:
    keep = tmp_path / "rows.jsonl"
    first = grader_labels.study(SHARED, replicates=1, models=["spanish_dates#1"], keep=keep)
    again = grader_labels.study(
        SHARED, replicates=1, models=["spanish_dates#1"], keep=keep, stored=True
    )
    assert again == first
    assert [row.label for row in first.tables[0].rows] == [
        "spanish_dates#1: with grades",
        "spanish_dates#1: labels alone",
    ]
    assert "with grades" in first.to_markdown()
