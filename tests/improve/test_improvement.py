"""Accuracy after rejecting or relabelling, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault_lab.stats.improvement import find_best_threshold, reject, relabel, sum_in_order

PROBABILITY = np.array([[0.9, 0.1], [0.6, 0.4], [0.45, 0.55], [0.2, 0.8]])


def test_rejecting_errors_raises_accuracy() -> None:
    wrong = np.array([False, True, False, False])
    result = reject(np.array([0.0, 1.0, 0.5, 0.0]), np.array([0, 1, 1, 0]) > 0, PROBABILITY, wrong)
    assert result.original == 0.75
    assert result.accuracy == pytest.approx([1.0, 1.0])
    assert result.confidence == pytest.approx([2 / 3, 1.0])
    assert (result.steps, result.proportion, result.improvement) == (2, 1.0, 0.25)
    assert "2 examples rejected" in result.summary()


def test_relabelling_with_the_truth_mends_each_error() -> None:
    label = np.array([1, 1, 1, 1])
    prone = np.array([True, True, False, False])
    result = relabel(np.array([2.0, 1.0, 0.0, 0.0]), prone, PROBABILITY, label, label)
    assert result.original == 0.5
    assert result.accuracy == pytest.approx([0.75, 1.0])
    assert result.p == 0.25


def test_nothing_to_do_is_said_in_a_sentence() -> None:
    nothing = np.zeros(4, dtype=bool)
    result = reject(np.zeros(4), nothing, PROBABILITY, np.array([True, False, False, False]))
    assert result.improvement == 0
    assert np.isnan(result.proportion)
    assert result.summary() == "no example is error-prone, so none was rejected"


def test_sums_in_order_are_means_over_orders_of_ties() -> None:
    sums = sum_in_order(np.array([1.0, 1.0, 2.0]), np.array([3.0, 0.0, 5.0]))
    assert sums == pytest.approx([5.0, 6.5, 8.0])


@pytest.mark.parametrize(("gain", "threshold"), [([1, 1], np.inf), ([-1, -1], 0), ([1, -1], 0.5)])
def test_the_best_threshold(gain: list[float], threshold: float) -> None:
    assert find_best_threshold(np.array([0.4, 0.6]), np.array(gain, float)) == threshold
