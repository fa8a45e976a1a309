"""Low-rank factors: rank 0 is item response, and a planted second skill is found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from groundfault_lab.stats import irt, low_rank


def draw_answers(second: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    ability, skill = rng.normal(size=(2, 24))
    logits = ability - rng.normal(size=(150, 1)) + second * rng.choice([-1, 1], (150, 1)) * skill
    passes = (rng.random(logits.shape) < expit(logits)).astype(np.int64)
    return passes, np.ones_like(passes)


def test_rank_0_is_item_response() -> None:
    passes, trials = draw_answers(0.0)
    items = irt.fit(passes, trials)
    model = low_rank.fit(passes, trials, items, 0)
    assert model.rank == 0
    assert model.probability() == pytest.approx(items.probability())


def test_a_second_skill_is_found_where_there_is_one() -> None:
    assert low_rank.choose_rank(*draw_answers(0.0), max_rank=1) == 0
    assert low_rank.choose_rank(*draw_answers(3.0), max_rank=1) == 1


def test_a_model_without_answers_is_placed_at_the_origin() -> None:
    passes, trials = draw_answers(2.0)
    model = low_rank.fit(passes, trials, irt.fit(passes, trials), 1)
    nothing = np.zeros_like(trials[:, :2])
    assert (model.place(nothing, nothing) == 0).all()
    assert model.place(passes, trials).shape == (24, 2)
