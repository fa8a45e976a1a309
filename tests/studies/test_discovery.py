"""Discovery of errors: shares by hand."""

from __future__ import annotations

import numpy as np

from groundfault_lab.stats.improvement import find_least_confident
from groundfault_studies.discovery import score_discovery, share


def test_shares_by_hand() -> None:
    probability = np.array([[0.9, 0.1], [0.55, 0.45], [0.4, 0.6], [0.2, 0.8]])
    wrong = np.array([False, True, False, True])
    score = score_discovery(np.array([True, False, False, True]), wrong, probability)
    assert (score.count, score.efficacy, score.confidence) == (2, 0.5, 0.5)
    assert (score.chance, score.recall) == (0.5, 0.5)


def test_ties_of_confidence_go_to_the_first() -> None:
    uncertain = find_least_confident(np.full((4, 2), 0.5), 2)
    assert uncertain.tolist() == [True, True, False, False]


def test_a_share_of_nothing_is_undefined() -> None:
    assert np.isnan(share(np.array([True]), np.array([False])))
