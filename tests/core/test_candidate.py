"""Candidates and libraries: what is refused, what is merged, and what is frozen."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from planted_tables import make_clusters

from groundfault.core.candidate import Candidate, FittedColumn, Library, matrix, unique_names
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, RuleError
from groundfault_lab.slicing.domino import Domino
from groundfault_lab.slicing.edisa import Edisa
from groundfault_lab.slicing.predictions import EmbeddedPredictions
from groundfault_lab.slicing.spotlight import Spotlight

BALL = FittedColumn("s", "ball", ("x", "y"), {"middle": np.zeros(2), "square": np.ones(1)})
NAMES = ("ape", "bee", "cat")


def test_the_meaning_is_the_rule_where_there_is_none() -> None:
    assert Candidate("long", "n > 3").meaning == "n > 3"
    assert Candidate.from_text("long : n > 3").rule == "n > 3"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((" ", "n > 3"), "not blank"),
        (("a", "n > 3", "", "declared", "keep"), "not one of reject, off, drop"),
        (("a", "n >"), "candidate 'a'"),
        (("a", "n > 3", "", "declared", "drop", BALL), "does not read its fitted column"),
    ],
)
def test_what_cannot_be_a_candidate(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(RuleError, match=message):
        Candidate(*arguments)
    with pytest.raises(RuleError, match="not of the form"):
        Candidate.from_text("n > 3")


def test_a_fitted_column_reads_its_sources() -> None:
    candidate = Candidate("ball", f'"{BALL.name}" = 1 AND n > 2', fitted_column=BALL)
    assert candidate.columns == ("n", "x", "y")


def test_the_stored_key_of_a_fitted_column_stays() -> None:
    library = Library.of([Candidate("ball", f'"{BALL.name}" = 1', fitted_column=BALL)])
    data = json.loads(library.to_json())
    assert data["candidates"][0]["derived"] == BALL.name
    assert list(data["derived"]) == [BALL.name]
    assert Library.from_json(library.to_json()) == library


def test_the_hash_ignores_order_and_meaning() -> None:
    a, b = Candidate("a", "n > 1"), Candidate("b", "n > 2", "more than two")
    assert Library.of([a, b]).hash == Library.of([Candidate("b", "n > 2"), a]).hash
    assert Library.of([a]).hash != Library.of([Candidate("a", "n > 1", missing="off")]).hash
    assert len(Library.of([a, a, b])) == 2


def test_an_edited_library_is_refused() -> None:
    text = Library.of([Candidate("a", "n > 1")]).to_json()
    with pytest.raises(InputError, match="do not match the hash"):
        Library.from_json(text.replace("n > 1", "n > 2"))
    for content in ("", "[]", "{}", text.replace("candidates", "others")):
        with pytest.raises(InputError, match="not a frozen groundfault library"):
            Library.from_json(content)


def test_lacking_columns_are_named_with_their_candidate() -> None:
    library = Library.of([Candidate("a", "n > 1 AND m > 2")])
    with pytest.raises(RuleError, match=r"candidate 'a' reads column 'm', which t does not have"):
        library.require_columns(["n"], where="t")


def test_names_in_use_are_numbered() -> None:
    candidates = unique_names([Candidate("a", "n > 1"), Candidate("a", "n > 2")], reserved=["a"])
    assert [c.name for c in candidates] == ["a (2)", "a (3)"]


def table(n: int = 600, seed: int = 0) -> tuple[pl.DataFrame, tuple[np.ndarray, ...]]:
    z, y, p = make_clusters(n, seed=seed)
    columns: dict[str, Any] = {
        "id": [f"{i:04d}" for i in range(n)],
        "error": (p.argmax(axis=1) != y).astype(int),
    }
    columns["embedding"] = pl.Series(list(z), dtype=pl.Array(pl.Float64, z.shape[1]))
    columns["label"] = np.array(NAMES)[y]
    columns |= {f"probability_{name}": p[:, i] for i, name in enumerate(NAMES)}
    return pl.DataFrame(columns), (z, y, p)


def evidence(frame: pl.DataFrame, **roles: Any) -> Evidence:
    return Evidence.from_table(frame, id="id", outcome="error", **roles)


@pytest.mark.parametrize("kind", [Edisa, Domino])
@pytest.mark.parametrize("pca", [None, 3])
def test_a_fitted_column_is_what_the_slicer_predicts(kind: Any, pca: int | None) -> None:
    frame, (z, y, p) = table()
    slicer = kind(n_slices=8, pca=pca).fit(z, y, p)
    column = slicer.to_column(("embedding", *(f"probability_{name}" for name in NAMES)))
    slices = column.apply(frame)
    assert slices.name == column.name
    assert slices.dtype == pl.Int64
    np.testing.assert_array_equal(slices.to_numpy(), slicer.predict(z, p))


def test_a_missing_number_gives_no_slice() -> None:
    frame, (z, y, p) = table()
    column = (
        Edisa(n_slices=8)
        .fit(z, y, p)
        .to_column(("embedding", *(f"probability_{name}" for name in NAMES)))
    )
    gaps = frame.with_columns(
        pl.when(pl.col("id") != "0003").then(pl.col("embedding")).alias("embedding"),
        pl.when(pl.col("id") != "0005").then(pl.col("probability_bee")).alias("probability_bee"),
    )
    slices = column.apply(gaps)
    assert slices.is_null().arg_true().to_list() == [3, 5]
    assert column.apply(gaps[3:4]).to_list() == [None]
    complete = frame["id"].is_in(["0003", "0005"]).not_()
    assert slices.filter(complete).equals(column.apply(frame).filter(complete))


@settings(max_examples=30, deadline=None)
@given(
    arrays=st.dictionaries(
        st.text(max_size=5),
        hnp.arrays(
            np.float64,
            hnp.array_shapes(max_dims=2, max_side=4),
            elements=st.floats(allow_subnormal=True),
        ),
        max_size=3,
    ),
    columns=st.lists(st.text(max_size=5), max_size=3).map(tuple),
)
def test_json_gives_an_equal_function_back(
    arrays: dict[str, np.ndarray], columns: tuple[str, ...]
) -> None:
    column = FittedColumn("s", "ball", columns, arrays)
    again = FittedColumn.from_dict(json.loads(json.dumps(column.to_dict())))
    assert again == column
    assert again.name == column.name
    for key, array in arrays.items():
        np.testing.assert_array_equal(again.arrays[key], array)


def test_names_tell_content_apart() -> None:
    ball = {"middle": np.zeros(2), "square": np.ones(1)}
    first = FittedColumn("s", "ball", ("x", "y"), ball)
    others = [
        FittedColumn("s", "ball", ("y", "x"), ball),
        FittedColumn("s", "mixture", ("x", "y"), ball),
        FittedColumn("s", "ball", ("x", "y"), ball | {"square": np.nextafter(np.ones(1), 2)}),
    ]
    assert len({first.name, *(o.name for o in others)}) == 4
    assert first == FittedColumn("s", "ball", ("x", "y"), dict(ball))


@pytest.mark.parametrize(
    "change",
    [
        {"function": "os.system"},
        {"arrays": {"middle": {"shape": [3], "float64": "AAAA"}}},
        {"arrays": {"middle": {"shape": [1], "float64": "not base64!"}}},
        {"arrays": {"middle": [0.0]}},
        {"arrays": [1]},
        {"columns": None},
    ],
)
def test_what_is_no_fitted_function_is_refused(change: dict[str, Any]) -> None:
    good = FittedColumn(
        "s", "ball", ("x",), {"middle": np.zeros(1), "square": np.ones(1)}
    ).to_dict()
    with pytest.raises((KeyError, TypeError, ValueError, RuleError)):
        FittedColumn.from_dict(good | change)
    with pytest.raises(KeyError):
        FittedColumn.from_dict({})


def test_other_columns_than_fitted_are_refused() -> None:
    column = FittedColumn("s", "ball", ("x",), {"middle": np.zeros(2), "square": np.ones(1)})
    with pytest.raises(InputError, match="the columns x do not fit the slices of s"):
        column.apply(pl.DataFrame({"x": [1.0]}))
    with pytest.raises(InputError, match="do not fit"):
        FittedColumn("s", "mixture", ("x",), {"classes": np.zeros(0)}).apply(
            pl.DataFrame({"x": [1.0]})
        )


def test_a_matrix_is_columns_side_by_side() -> None:
    frame = pl.DataFrame(
        {
            "a": [1, None],
            "b": [[1.0, None], [3.0, 4.0]],
            "c": [True, False],
            "d": ["x", "y"],
            "e": [[1], [1, 2]],
        }
    )
    expected = [[1.0, 1.0, np.nan, 1.0], [np.nan, 3.0, 4.0, 0.0]]
    np.testing.assert_array_equal(matrix(frame, ["a", "b", "c"]), expected)
    np.testing.assert_array_equal(matrix(frame.clear(), ["a"]), np.empty((0, 1)))
    assert np.isnan(
        matrix(frame.with_columns(b=pl.lit(None, dtype=pl.List(pl.Float64))), ["b"])
    ).all()
    with pytest.raises(InputError, match="column 'd' holds String"):
        matrix(frame, ["d"])
    with pytest.raises(InputError, match="column 'e' holds lists of 1 to 2 numbers"):
        matrix(frame, ["e"])
    with pytest.raises(InputError, match="holds empty lists"):
        matrix(pl.DataFrame({"f": [[], []]}, schema={"f": pl.List(pl.Float64)}), ["f"])


def test_what_is_observed_of_examples() -> None:
    frame, (z, y, p) = table(200)
    predictions = EmbeddedPredictions.of(
        evidence(frame, ignore=("label",)), "embedding*", None, "label"
    )
    np.testing.assert_array_equal(predictions.embedding, z)
    np.testing.assert_array_equal(predictions.probability, p)
    np.testing.assert_array_equal(predictions.label, y)
    assert predictions.classes == NAMES
    np.testing.assert_array_equal(predictions.wrong, frame["error"].to_numpy() == 1)
    numbered = frame.with_columns(
        label=pl.Series(y), proba=pl.Series(list(p), dtype=pl.List(pl.Float64))
    )
    numbered = numbered.select(
        "id", "error", "label", "proba", pl.col("embedding").arr.to_struct().struct.unnest()
    )
    from_lists = EmbeddedPredictions.of(evidence(numbered), "field_*", "proba", "label")
    np.testing.assert_array_equal(from_lists.embedding, z)
    np.testing.assert_array_equal(from_lists.label, y)
    assert from_lists.classes == ("0", "1", "2")


def test_without_probabilities_the_classes_are_pass_and_fail() -> None:
    frame, (z, _, _) = table(200)
    plain = frame.select("id", "error", "embedding").with_columns(
        error=pl.when(pl.col("id") == "0009").then(None).otherwise(pl.col("error"))
    )
    predictions = EmbeddedPredictions.of(
        evidence(plain, null_outcome="missing"), "embedding", None, "label"
    )
    assert not predictions.has_probabilities
    assert len(predictions.label) == 199
    np.testing.assert_array_equal(predictions.wrong, np.delete(frame["error"].to_numpy(), 9) == 1)
    several = pl.concat([plain.with_columns(model=pl.lit(m)) for m in "ab"]).fill_null(0)
    pooled = EmbeddedPredictions.of(evidence(several, model="model"), "embedding", None, "label")
    np.testing.assert_array_equal(pooled.embedding, z)


def test_what_cannot_be_observed_is_said() -> None:
    frame, _ = table(100)

    def check_refusal(
        message: str, frame: pl.DataFrame, probability: str | None = None, label: str = "label"
    ) -> None:
        with pytest.raises(InputError, match=message):
            EmbeddedPredictions.of(evidence(frame), "embedding*", probability, label)

    check_refusal("no attribute is named, or matches, 'embedding\\*'", frame.drop("embedding"))
    check_refusal("no column 'truth' with the true class", frame, label="truth")
    check_refusal(
        "'dog', which is none of the classes ape, bee, cat", frame.with_columns(label=pl.lit("dog"))
    )
    check_refusal("no attribute is named, or matches, 'proba'", frame, probability="proba")
    check_refusal("at least two classes", frame, probability="probability_ape")
    check_refusal("holds String", frame.with_columns(embedding=pl.lit("x")))


@pytest.mark.filterwarnings("ignore:.* proposes nothing")
def test_finders_propose_nothing_where_there_is_nothing_to_fit() -> None:
    frame, _ = table(100)
    few, flawless = (
        evidence(frame[:15]),
        evidence(frame.with_columns(error=0).drop(r"^(probability_.*|label)$")),
    )
    for finder in (Edisa(), Domino(), Spotlight()):
        assert list(finder.propose(few)) == [] or isinstance(finder, Spotlight)
        assert list(finder.propose(flawless)) == []


@pytest.mark.parametrize("finder", [Edisa(embedding_weight=1.0), Domino()], ids=["edisa", "domino"])
def test_proposals_say_what_they_are(finder: Any) -> None:
    frame, (z, y, p) = table(600)
    data = evidence(frame, ignore=("label",))
    candidates = list(finder.propose(data))
    assert list(finder.propose(data)) == candidates
    *slices, together = candidates
    assert together.name == f"{finder.name} error slices"
    slice_ids = slices[0].fitted_column.apply(frame)
    slicer = type(finder)(
        **finder.get_params() | {"n_slices": min(finder.n_slices, 600 // 20)}
    ).fit(z, y, p)
    np.testing.assert_array_equal(slice_ids.to_numpy(), slicer.predict(z, p))
    assert [c.rule for c in slices] == [f'"{slice_ids.name}" = {j}' for j in slicer.error_slices_]
    assert (
        together.rule
        == f'"{slice_ids.name}" IN ({", ".join(str(j) for j in slicer.error_slices_)})'
    )
    assert "label" not in slices[0].columns
    assert set(slices[0].columns) == {"embedding", *(f"probability_{name}" for name in NAMES)}
    assert "taken for" in slices[0].meaning
