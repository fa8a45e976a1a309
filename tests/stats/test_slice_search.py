"""The slice search against a search of everything, and its replay on permuted errors."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from groundfault.stats.bits import unpack
from groundfault_lab.stats.slice_search import count_pairs, replay, search
from groundfault_lab.stats.slices import Errors, Predicates

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 3, (4, 300)).astype(np.uint8)
LOSS = ((CODES[0] == 1) & (CODES[2] == 0) | (RNG.random(300) < 0.1)).astype(np.float64)
ERRORS = Errors.of(LOSS)
OBJECTIVE = ERRORS.objective(0.95, 5)
PREDICATES = Predicates.of(CODES, np.full(4, 3), OBJECTIVE)


def list_scores() -> list[float]:
    rows, scores = unpack(PREDICATES.bits, 300), []
    for length in (1, 2):
        for members in combinations(range(len(rows)), length):
            if len(set(PREDICATES.column[list(members)])) == length:
                inside = rows[list(members)].all(axis=0)
                if inside.sum() >= 5:
                    size, error = np.array([inside.sum()]), LOSS[inside].sum(keepdims=True)
                    scores.append(float(OBJECTIVE.score(size, error.astype(np.int64))[0]))
    return sorted((score for score in scores if score > 0), reverse=True)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_best_slices_are_those_of_a_search_of_everything(threads: int) -> None:
    result = search(PREDICATES, ERRORS, OBJECTIVE, k=3, levels=2, threads=threads)
    assert np.sort(result.scores)[::-1][:3] == pytest.approx(list_scores()[:3])


def test_a_bounded_search_says_what_it_may_have_missed() -> None:
    bounded = search(PREDICATES, ERRORS, OBJECTIVE, k=1, levels=2, max_parents=2)
    best = max(list_scores())
    assert bounded.scores.max() == pytest.approx(best) or bounded.levels[0].missed >= best - 1e-9
    assert bounded.levels[0].extended <= 2


def test_pairs_of_predicates_share_rows() -> None:
    plain = unpack(PREDICATES.bits, 300).astype(np.int64)
    assert (count_pairs(PREDICATES) == plain @ plain.T).all()


def test_replays_are_searches_on_permuted_errors() -> None:
    null = replay(PREDICATES, ERRORS, OBJECTIVE, np.random.default_rng(1), 3, levels=2)
    [stream, *_] = np.random.default_rng(1).spawn(3)
    permutation = stream.permutation(300)
    once = search(PREDICATES, ERRORS, OBJECTIVE, k=1, levels=2, permutation=permutation)
    assert null[0] == max(0.0, once.scores.max(initial=0.0))
    assert len(replay(PREDICATES, ERRORS, OBJECTIVE, np.random.default_rng(1), 0, levels=2)) == 0
