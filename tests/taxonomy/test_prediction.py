"""What a model will do on examples it has not answered, from models that have."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, PlanError
from groundfault_lab.stats import irt, low_rank
from groundfault_lab.taxonomy.fitting.fit import fit
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.use.prediction import METHODS, Peers, predict
from groundfault_lab.taxonomy.worlds import AbilityWorld

CELLS = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 1, 0]])


def peers(cells: np.ndarray = CELLS, holes: np.ndarray | None = None) -> Peers:
    trials = np.ones_like(cells) if holes is None else 1 - holes
    names = tuple(f"e{i}" for i in range(len(cells))), tuple(f"m{j}" for j in range(cells.shape[1]))
    return Peers.of(
        Matrix(*names, (cells * trials).astype(np.int64), trials.astype(np.int64)), rank=0
    )


def answer_matrix(answers: dict[int, int], n: int = 4) -> tuple[np.ndarray, np.ndarray]:
    passes, trials = np.zeros((2, n, 1), dtype=np.int64)
    for row, value in answers.items():
        passes[row], trials[row] = value, 1
    return passes, trials


def test_majority_nearest_and_neighbours_by_hand() -> None:
    passes, trials = answer_matrix(
        {0: 1, 2: 1}
    )  # as the first model; the others agree on one of two
    models = peers()
    np.testing.assert_allclose(
        models.chances("majority", passes, trials)[0][:, 0], [2 / 3, 1 / 3, 2 / 3, 1 / 3]
    )
    np.testing.assert_allclose(models.chances("nearest", passes, trials)[0][:, 0], CELLS[:, 0])
    assert models.nearest(passes, trials, 3).tolist() == [[0, 1, 2]]
    np.testing.assert_allclose(
        models.chances("neighbours", passes, trials)[0][:, 0], CELLS.mean(axis=1)
    )


def test_agreement_is_on_what_both_were_asked() -> None:
    holes = np.zeros_like(CELLS)
    holes[:2, 1] = 1
    passes, trials = answer_matrix({0: 1, 1: 0, 2: 1, 3: 1})
    assert peers(holes=holes).nearest(passes, trials, 1).tolist() == [
        [1]
    ]  # two of two, the first three of four


def test_ability_and_majority_say_nothing_beyond_ability() -> None:
    passes, trials = answer_matrix({0: 1, 1: 1})
    for method in ("ability", "majority"):
        chance, one = peers().chances(method, passes, trials)  # type: ignore[arg-type]
        np.testing.assert_array_equal(chance, one)


def test_rank_0_is_item_response() -> None:
    matrix, _ = AbilityWorld(examples=120, models=14).draw(np.random.default_rng(0))
    items = irt.fit(matrix.passed, matrix.trials)
    result = low_rank.fit(matrix.passed, matrix.trials, items, 0)
    np.testing.assert_allclose(result.probability(), items.probability())
    assert result.place(matrix.passed * 0, matrix.trials * 0).tolist() == [[0.0]] * 14


def test_factors_are_found_where_they_are_and_predict() -> None:
    world = AbilityWorld(examples=500, models=30, modes=2, strength=2.0)
    matrix, _ = world.draw(np.random.default_rng(1))
    assert low_rank.choose_rank(matrix.passed, matrix.trials) >= 1
    others = Peers.of(matrix.without("m0004").informative(), rank=1)
    rows = np.array([int(name[1:]) for name in matrix.without("m0004").informative().examples])
    own = matrix.passed[rows, 4]
    trials = (np.arange(len(rows)) % 3 == 0).astype(np.int64)[:, None]
    passes = own[:, None] * trials
    rest = trials[:, 0] == 0
    loss = {}
    for method in ("ability", "low_rank"):
        p = np.clip(others.chances(method, passes, trials)[0][rest, 0], 0.01, 0.99)  # type: ignore[arg-type]
        loss[method] = -np.mean(np.log(np.where(own[rest] == 1, p, 1 - p)))
    assert loss["low_rank"] < loss["ability"]


def test_no_factor_is_found_where_one_ability_is_all() -> None:
    matrix, _ = AbilityWorld(examples=400, models=24).draw(np.random.default_rng(2))
    assert low_rank.choose_rank(matrix.passed, matrix.trials) == 0


def test_a_prediction_and_what_it_refuses() -> None:
    matrix, _ = AbilityWorld(examples=200, models=12, modes=2, strength=1.6).draw(
        np.random.default_rng(4)
    )
    taxonomy = fit(
        matrix.without("m0000"), Settings(worlds=19, refits=0, permutations=0, bootstraps=0)
    )
    frame = pl.DataFrame(
        {"id": matrix.examples[:70], "error": 1 - matrix.passed[:70, 0], "model": ["new"] * 70}
    )
    data = Evidence.from_table(frame, id="id", model="model", outcome="error")
    truth = dict(zip(matrix.examples, 1 - matrix.passed[:, 0], strict=True))
    for method in METHODS:
        prediction = predict(taxonomy, data, method=method)
        assert set(prediction.frame["example"]) == set(taxonomy.matrix.examples) - set(
            matrix.examples[:70]
        )
        assert prediction.frame["failure"].is_between(0, 1).all()
        assert prediction.frame["failure"].to_list() == sorted(
            prediction.frame["failure"], reverse=True
        )
    real = np.mean([truth[name] for name in prediction.frame["example"]])
    assert predict(taxonomy, data).expected == pytest.approx(real, abs=0.12)
    with pytest.raises(PlanError, match="method"):
        predict(taxonomy, data, method="oracle")  # type: ignore[arg-type]
    empty = Evidence.from_table(
        frame.with_columns(error=pl.lit(None, dtype=pl.Int64)),
        id="id",
        model="model",
        outcome="error",
        null_outcome="missing",
    )
    with pytest.raises(InputError, match="nothing to predict from"):
        predict(taxonomy, empty)
