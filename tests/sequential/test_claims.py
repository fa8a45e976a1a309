"""Cells: what a draw from a group says of the group, whatever was drawn from others before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault.sequential.claims import Cells

MEMBERS = np.array(
    [
        [1, 1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 0, 0, 0, 0, 0],
        [0, 1, 1, 1, 1, 0, 0, 0],
    ],
    dtype=bool,
)


def test_cases_of_the_same_groups_share_a_cell():
    cells = Cells.of(MEMBERS)
    assert cells.numbers.shape == (8,)
    of = cells.numbers
    assert of[1] == of[2]
    assert of[3] == of[4]
    assert of[5] == of[6] == of[7]
    assert len(set(of.tolist())) == 4


def test_many_groups_make_cells_too():
    # more groups than fit into a byte
    members = np.eye(12, dtype=bool)[:, np.arange(24) // 2]
    numbers = Cells.of(members).numbers.reshape(12, 2)
    assert (numbers[:, 0] == numbers[:, 1]).all()
    assert len(set(numbers[:, 0].tolist())) == 12


def test_a_labelled_case_is_replaced_from_its_own_cell():
    cells, available = Cells.of(MEMBERS), np.array([0, 1, 0, 0, 0, 1, 1, 0], dtype=bool)
    assert cells.find_open(available).tolist() == [0, 1, 1, 0, 0, 1, 1, 1]
    assert cells.find_rest(2, available).tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert cells.find_rest(7, available).tolist() == [0, 0, 0, 0, 0, 1, 1, 0]


def test_the_threshold_stays_while_no_cell_is_used_up():
    cells = Cells.of(MEMBERS)
    for available in (np.ones(8, dtype=bool), np.array([1, 1, 0, 1, 0, 0, 0, 1], dtype=bool)):
        low, high = cells.compute_thresholds(0.85, available)
        assert low.tolist() == high.tolist() == [0.85] * 3


def test_nothing_is_bet_where_all_cells_are_used_up():
    low, high = Cells.of(MEMBERS).compute_thresholds(0.85, np.zeros(8, dtype=bool))
    assert (low == -np.inf).all()
    assert (high == np.inf).all()


@settings(max_examples=count_examples(60))
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.95))
def test_no_population_is_wronged(seed, threshold):
    """If a group's mean is at the threshold, no draw from it is below the first bound or above the
    second, whatever the means of its cells are.
    """
    rng = np.random.default_rng(seed)
    members = rng.random((4, 40)) < rng.uniform(0.2, 0.9, (4, 1))
    members[0] = True
    cells, available = Cells.of(members), rng.random(40) < rng.uniform(0.05, 0.9)
    low, high = cells.compute_thresholds(threshold, available)
    means = rng.random(cells.numbers.max() + 1) ** rng.choice([0.1, 1, 10])
    # cells that are used up may be as good, or as bad, as they like
    open_cells = np.unique(cells.numbers[available])
    used_up = np.setdiff1d(np.arange(len(means)), open_cells)
    means[used_up] = rng.choice([0.0, 1.0], len(used_up))
    for g in range(4):
        inside = members[g]
        if not (inside & available).any():
            continue
        mean = means[cells.numbers[inside]].mean()
        drawn = means[cells.numbers[inside & cells.find_open(available)]].mean()
        if mean >= threshold:
            assert drawn >= low[g] - 1e-12
        if mean <= threshold:
            assert drawn <= high[g] + 1e-12


def test_draws_are_made_by_the_shares_of_the_whole_group():
    from groundfault.sequential import Pool, SequentialPlan
    from groundfault.sequential.claims import Claim, LabelCounts
    from groundfault.sequential.draws import Draws
    from groundfault.sequential.policies import Query

    # half of the whole is the part, of which all but two cases are labelled
    part = np.arange(40) < 20
    pool = Pool.from_arrays([f"c{i:02d}" for i in range(40)], {"part": part})
    claim = Claim.of(SequentialPlan(threshold=0.85), pool)
    in_part = []
    for seed in range(400):
        counts = LabelCounts(claim, Draws.begin(seed))
        for position in range(18):
            counts.add(Query("part"), position, 1.0)
        query = Query("all cases")
        in_part.append(counts.draw(query, counts.find_available()) < 20)
    # of what is left 2 of 22 cases are of the part, of the whole group one half
    assert np.mean(in_part) == pytest.approx(0.5, abs=0.08)
