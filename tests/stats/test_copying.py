"""Copies: never by chance, never by mere likeness, always where the outcomes are the same."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from groundfault.stats.copying import MOST_CHANCE, are_copies


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(*[st.integers(0, n)] * 2, st.just(n))))
def test_it_is_a_binomial_tail_and_a_share(counts: tuple[int, int, int]) -> None:
    agreeing, commonest, shared = counts
    tail = binom.sf(agreeing - 1, shared, commonest / shared)
    room = shared - commonest
    expected = room > 0 and agreeing - commonest >= 0.8 * room and tail <= MOST_CHANCE
    assert are_copies(agreeing, shared, commonest) == expected


def test_no_source_without_knowledge_agrees_so_well() -> None:
    # every answer that a source can give, with its chance: 3 of 12 fail, and it says so of each
    # case with a chance of its own
    truth = np.array([1] * 3 + [0] * 9)
    for chances in ([0.25] * 12, [0.9] * 3 + [0.1] * 9, [0.0] * 12):
        agree = np.where(truth == 1, chances, 1 - np.array(chances))
        if agree.sum() > 9:
            continue  # it knows more than how common failing is
        exact = np.zeros(13)
        for hits in product([0, 1], repeat=12):
            exact[sum(hits)] += np.prod(np.where(np.array(hits) == 1, agree, 1 - agree))
        for least in range(10, 13):
            assert exact[least:].sum() <= binom.sf(least - 1, 12, 9 / 12) + 1e-12


def test_copies_with_corrections_are_known_and_two_runs_of_hard_cases_are_not() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        rate = rng.uniform(0.05, 0.95)
        size = int(rng.integers(300, 3000))
        first = rng.random(size) < rate
        common = max(first.sum(), size - first.sum())
        # one label in a hundred of the rarer outcome was corrected
        wrong = rng.random(size) < 0.01 * min(rate, 1 - rate)
        assert are_copies(int((first == (first ^ wrong)).sum()), size, common)
        other = rng.random(size) < rate
        assert not are_copies(int((first == other).sum()), size, common)
        # another run: two cases in three are decided by how hard they are
        again = np.where(rng.random(size) < 2 / 3, first, other)
        assert not are_copies(int((first == again).sum()), size, common)


def test_where_all_is_alike_nothing_is_known() -> None:
    assert not are_copies(5000, 5000, 5000)
    assert not are_copies(0, 0, 0)
