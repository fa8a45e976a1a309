"""The matrix of passes: binarised by a rule, repeats counted, holes kept, rows that say nothing set
apart and named.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, MissingExtraError, PlanError
from groundfault_lab.taxonomy.fitting.fit import make_matrix
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.settings import Settings

_ = None


def evidence(cells: list[list[object]], **more: object) -> Evidence:
    """Evidence of a small table of losses, examples in rows."""
    rows = [
        {"id": f"e{i}", "model": f"m{j}", "loss": value, **more}
        for i, row in enumerate(cells)
        for j, value in enumerate(row)
        if value != "hole"
    ]
    frame = pl.DataFrame(rows, schema_overrides={"loss": pl.Float64})
    return Evidence.from_table(
        frame, outcome="loss", id="id", model="model", null_outcome="missing"
    )


CELLS: list[list[object]] = [[0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 0], [_, _, _], ["hole", 0, 1]]


def test_passes_holes_and_what_was_not_scored() -> None:
    matrix = Matrix.of(evidence(CELLS))
    np.testing.assert_array_equal(matrix.values[:2], [[1, 0, 0], [0, 1, 1]])
    assert np.isnan(matrix.values[4]).all()
    assert np.isnan(matrix.values[5, 0])
    assert matrix.holes == pytest.approx(4 / 18)


def test_a_graded_try_passes_from_seven_tenths_on() -> None:
    cells: list[list[object]] = [[0.3, 0.30001, 0.2], [0.0, 1.0, 0.5]]
    assert Matrix.of(evidence(cells)).values.tolist() == [[1, 0, 1], [1, 0, 0]]
    assert Matrix.of(evidence(cells), score=0.5).values.tolist() == [[1, 1, 1], [1, 0, 1]]


def test_repeats_are_kept_as_counts() -> None:
    frame = pl.DataFrame(
        {
            "id": ["a"] * 6 + ["b"] * 6,
            "model": ["x", "x", "y", "y", "z", "z"] * 2,
            "try": [0, 1] * 6,
            "ok": [1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1],
        }
    )
    data = Evidence.from_table(
        frame, outcome="ok", positive_is_good=True, id="id", model="model", repeat="try"
    )
    matrix = Matrix.of(data)
    assert matrix.passed.tolist() == [[1, 2, 0], [0, 1, 2]]
    assert matrix.values.tolist() == [[1, 1, 0], [0, 1, 1]]  # half of the tries is a pass
    assert Matrix.of(data, rate=0.6).values.tolist() == [[0, 1, 0], [0, 0, 1]]


def test_rows_that_say_nothing_are_set_apart_by_name() -> None:
    informative = Matrix.of(evidence(CELLS)).informative()
    assert informative.examples == ("e0", "e1", "e5")
    assert informative.apart.all_failed == ("e2",)
    assert informative.apart.all_passed == ("e3",)
    assert informative.apart.unanswered == ("e4",)


def test_the_frontier_filter() -> None:
    matrix = Matrix.of(evidence(CELLS)).keep_failures_of(["m0"])
    assert matrix.examples == ("e1", "e2")
    assert matrix.apart.easy == ("e0", "e3", "e4", "e5")
    with pytest.raises(InputError, match="no results of model 'm9'"):
        matrix.keep_failures_of(["m9"])


def test_constant_models_are_named_and_left_out() -> None:
    cells = [[1, *row] for row in ([0, 1, 1], [1, 0, 0], [1, 0, 1], [0, 1, 0])]
    informative = Matrix.of(evidence(cells)).informative()
    assert informative.models == ("m1", "m2", "m3")
    assert informative.apart.constant_models == ("m0",)


def test_imputation() -> None:
    matrix = Matrix.of(evidence([[0, 1, 1], [1, 0, "hole"], [0, 0, 0]]))
    assert matrix.impute()[1].tolist() == [0, 1, 0.5]
    assert matrix.impute("row_mean")[1].tolist() == [0, 1, 0.5]
    assert matrix.impute("row_mean", training=["m1"])[1].tolist() == [0, 1, 1]
    assert [matrix.impute(how)[1, 2] for how in ("half", "zero", "none")] == [0.5, 0, -1]
    with pytest.raises(PlanError, match="imputation must be one of"):
        matrix.impute("median")  # type: ignore[arg-type]


def test_a_column_mean_of_other_models_knows_nothing_of_this_one() -> None:
    cells: list[list[object]] = [[0, 1, 1, 0], [1, "hole", 0, 1], [1, 1, 0, 1]]
    other_cells = [[*row[:3], 1 - row[3]] for row in cells]
    for how in ("column_mean", "row_mean"):
        a, b = (Matrix.of(evidence(c)).without("m3").impute(how) for c in (cells, other_cells))
        np.testing.assert_array_equal(a, b)


def test_attributes_join_by_id() -> None:
    matrix = Matrix.of(evidence(CELLS))
    table = pl.DataFrame(
        {"key": [f"e{i}" for i in reversed(range(6))], "words": [5, 4, 3, 2, 1, 0]}
    )
    assert matrix.describe(table, "key").attributes["words"].to_list() == list(range(6))
    with pytest.raises(InputError, match="lacks 1 of 6 examples, such as 'e5'"):
        matrix.describe(table[1:], "key")
    with pytest.raises(InputError, match="the ids do not match"):
        matrix.describe(table.with_columns(key=pl.col("key") + "x"), "key")
    with pytest.raises(InputError, match="more than once"):
        matrix.describe(pl.concat([table, table]), "key")
    with pytest.raises(InputError, match="no column 'id'"):
        matrix.describe(table, "id")


def test_what_examples_say_is_a_column_of_vectors_or_of_texts() -> None:
    vectors, texts = (
        {"e0": [3.0, 4.0], "e1": [1.0, 0.0], "e2": [0.0, 2.0]},
        {"e0": "a cat", "e1": "a dog", "e2": "no cat"},
    )
    frame = pl.DataFrame(
        {
            "id": [e for e in vectors for _ in range(3)],
            "model": ["x", "y", "z"] * 3,
            "loss": [0, 1, 1] * 3,
        }
    )
    rows = frame.with_columns(
        vector=pl.Series([vectors[e] for e in frame["id"]], dtype=pl.List(pl.Float64)),
        text=pl.Series([texts[e] for e in frame["id"]]),
    )
    data = Evidence.from_table(rows, outcome="loss", id="id", model="model")
    weighed = Settings.preset("paper", alpha=0.3, reducer="pca")
    by_column = make_matrix(data, weighed, vectors="vector").semantic
    np.testing.assert_allclose(by_column, [[0.6, 0.8], [1, 0], [0, 1]])
    np.testing.assert_array_equal(
        make_matrix(data, weighed, vectors=list(vectors.values())).semantic, by_column
    )
    by_text = make_matrix(data, weighed, text="text").semantic
    assert by_text is not None
    assert len(by_text) == 3
    assert by_text[0] @ by_text[1] < 0.99
    rows = rows.with_columns(text=pl.when(pl.col("id") != "e1").then("text"))
    lacking = Evidence.from_table(rows, outcome="loss", id="id", model="model")
    with pytest.raises(InputError, match="example 'e1' has no text in column 'text'"):
        make_matrix(lacking, weighed, text="text")
    for wrong, message in (
        ({"vectors": "id"}, "id"),
        ({"vectors": [[1.0, 2.0]]}, "each needs one row"),
        ({"vectors": [[1.0], [np.nan], [1.0]]}, "the vector of example 'e1' is missing"),
        ({"text": "vector"}, "not text"),
        ({"text": "words"}, "no attribute 'words'"),
        ({}, "name the column of their texts or vectors"),
    ):
        with pytest.raises(InputError, match=message):
            make_matrix(data, weighed, **wrong)  # type: ignore[arg-type]


def test_sentence_transformers_are_an_extra() -> None:
    try:
        import sentence_transformers  # noqa: F401
    except ImportError:
        cells: list[list[object]] = [[0, 1, 1], [1, 0, 0]]
        with pytest.raises(MissingExtraError, match=r"pip install 'groundfault\[embed\]'"):
            make_matrix(
                evidence(cells, text="a cat"),
                Settings.preset("paper", reducer="pca"),
                text="text",
                embedding="sentence",
            )
    else:
        pytest.skip("sentence-transformers is installed")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([[0, 1], [1, 0]], "needs at least 3 of them, not 2"),
        ([[_, _, _], [_, _, _]], "none of the 6 rows was scored"),
        ([[0, _, _], [_, 1, _], [_, _, 0]], "no example was scored for two models"),
    ],
)
def test_what_cannot_be_compared(cells: list[list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Matrix.of(evidence(cells))


def test_constant_columns_leave_too_few_models() -> None:
    with pytest.raises(
        InputError, match=r"only 2 models pass some and fail some of these \(m0 do not\)"
    ):
        Matrix.of(evidence([[0, 1, 1], [0, 0, 1], [0, 1, 0]])).informative()
    with pytest.raises(InputError, match="on 0 examples"):
        Matrix.of(evidence([[1, 1, 1], [0, 0, 0]])).informative()
    with pytest.raises(PlanError, match="score must be in"):
        Matrix.of(evidence(CELLS), score=0)


def test_real_results_with_holes(shared: Path) -> None:
    folder = shared / "real" / "zeroeval"
    data = Evidence.from_table(
        folder / "outcomes.parquet",
        outcome="correct",
        positive_is_good=True,
        id="example_id",
        model="model",
    )
    matrix = Matrix.of(data).describe(pl.read_parquet(folder / "examples.parquet"), "example_id")
    assert (len(matrix), len(matrix.models)) == (2119, 45)
    assert matrix.holes == pytest.approx(1 - 78446 / (2119 * 45))
    informative = matrix.informative()
    assert (
        len(informative) + len(informative.apart.all_failed) + len(informative.apart.all_passed)
        == 2119
    )
    assert informative.attributes["benchmark"].value_counts().height == 2
