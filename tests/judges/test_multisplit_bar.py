"""What multi-split e-values ask for: more of a larger library, about as much of any support."""

from __future__ import annotations

import numpy as np

from groundfault import Plan, judges
from groundfault.judges.multisplit_bar import SplitEvidence, make_find_level
from groundfault.testing import World


def weigh(p: np.ndarray) -> np.ndarray:
    return np.where(p <= 0.2, np.maximum(p, 1e-300) ** -0.5, 0.0)


def make_evidence(size: int = 20, errors: int = 60) -> SplitEvidence:
    rivals = np.full(4, 0.9 * size)
    rng = np.random.default_rng(0)
    return SplitEvidence(200, errors, size, 30, rivals, weigh, np.log((2.0, 5.0)), rng)


def test_a_larger_library_asks_for_a_smaller_p() -> None:
    levels = [make_evidence(size).find_level(60, 0.1) for size in (5, 50, 500)]
    assert levels == sorted(levels, reverse=True)
    assert 0 < levels[2] < levels[0] < 0.01


def test_where_no_count_is_enough_no_level_is() -> None:
    assert make_evidence(errors=2).find_level(60, 0.1) == 0.0


def test_others_beside_it_make_it_easier_and_answers_stay_the_same() -> None:
    find_level = make_find_level(make_evidence(), 0.1)
    assert find_level(60, 3) > find_level(60, 0)
    assert find_level(60, 0) == find_level(61, 0)


def test_the_judge_confirms_where_its_bar_says_so() -> None:
    """A planted slice well above the level is confirmed, and one well below it is not."""
    judge = judges.get("multisplit-e")
    plan = Plan(judge="multisplit-e", splits=20).resolve(lift_ranked=False, gated=False)
    units = World(units=300, candidates=12).draw(np.random.default_rng(0))
    bar = judge.find_bar(units, np.arange(12), plan, np.random.default_rng(0))
    assert bar.level is not None
    level = bar.level(90, 0)
    assert 1e-7 < level < 1e-2


def test_half_of_a_slice_is_seen_on_discovery() -> None:
    """Where all 60 failures are on a slice of 60, discovery's p is what weighing is called with."""
    seen = []

    def note(p: np.ndarray) -> np.ndarray:
        seen.append(p)
        return weigh(p)

    rng = np.random.default_rng(0)
    evidence = SplitEvidence(200, 60, 5, 30, np.full(4, 1.0), note, np.log((2.0, 5.0)), rng)
    assert evidence._average(60, 60) > 1e3
    # of 100 units on discovery some 30 fail, and all of these are on the slice
    assert np.median(seen[0]) < 1e-20
    assert evidence._average(60, 18) < 2
