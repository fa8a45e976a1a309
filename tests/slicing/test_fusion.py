"""Fusion: errors that no single view shows, counts by F1, and clear refusals."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.errors import InputError, PlanError
from groundfault_lab.improve import Flipping
from groundfault_lab.slicing import Domino, Edisa, Fusion


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors lie in one corner of the embedding, and where confidence is low."""
    rng = np.random.default_rng(seed)
    points, label = rng.normal(size=(n, 4)), rng.integers(0, 3, n)
    sure = rng.uniform(0.4, 0.95, n)
    chance = np.where((points[:, 0] > 0.8) & (points[:, 1] > 0), 0.85, 0.05 + 0.3 * (sure < 0.5))
    taken = np.where(rng.random(n) < chance, (label + 1) % 3, label)
    probability = np.tile(((1 - sure) / 2)[:, None], (1, 3))
    probability[np.arange(n), taken] = sure
    return points, label, probability


def score(prone: np.ndarray, wrong: np.ndarray) -> float:
    return float(2 * (prone & wrong).sum() / (prone.sum() + wrong.sum()))


def test_it_finds_more_errors_than_domino() -> None:
    first, rest = draw(600, 0), draw(600, 1)
    wrong = rest[2].argmax(axis=1) != rest[1]
    domino = Domino(n_slices=30, confidence_weight=40.0).fit(*first)
    fusion = Fusion(n_slices=30).fit(*first)
    prone, chance = fusion.suspect(rest[0], rest[2])
    assert score(prone, wrong) > score(domino.error_prone(rest[0], rest[2]), wrong) + 0.05
    # chances are chances: the mean is the rate, and the order tells errors
    assert chance.mean() == pytest.approx(wrong.mean(), abs=0.05)
    assert chance[wrong].mean() > 1.2 * chance[~wrong].mean()
    again = Fusion(n_slices=30).fit(*first).error_probability(rest[0], rest[2])
    assert again.tolist() == chance.tolist()


def test_labels_of_new_examples_are_never_asked_for() -> None:
    """Where errors are drawn by chance, those of the fitted examples tell nothing."""
    rng = np.random.default_rng(0)
    points, label = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    taken = np.where(rng.random(500) < 0.3, 1 - label, label)
    probability = np.where(np.eye(2, dtype=bool)[taken], 0.8, 0.2)
    fusion = Fusion(n_slices=25, count="f1").fit(points, label, probability)
    new = rng.normal(size=(500, 3))
    prone, chance = fusion.suspect(new, probability)
    # at worst all are suspected: no threshold gives a larger F1
    assert prone.mean() > 0.8
    assert chance.std() < 0.1


def test_as_many_as_lie_in_error_slices() -> None:
    first, rest = draw(600, 0), draw(600, 1)
    few = Fusion(n_slices=30, count="slices").fit(*first).error_prone(rest[0], rest[2])
    many = Fusion(n_slices=30, count="f1").fit(*first).error_prone(rest[0], rest[2])
    assert 0 < few.sum() <= many.sum()


def test_suspected_examples_are_relabelled_by_the_slices_of_edisa() -> None:
    first, rest = draw(600, 0), draw(600, 1)
    flipping = Flipping(Fusion(n_slices=30)).fit(*first)
    edisa = flipping.slicer_.slices_
    assert flipping.slicer_.labels_.tolist() == edisa.labels_.tolist()
    slices = flipping.slicer_.predict(rest[0], rest[2])
    assert slices.tolist() == edisa.predict(rest[0], rest[2]).tolist()
    before = rest[2].argmax(axis=1)
    changed = flipping.predict(rest[0], rest[2]) != before
    assert changed.any()
    assert not (changed & ~flipping.slicer_.error_prone(rest[0], rest[2])).any()


def test_slices_are_fitted_when_they_are_asked_for() -> None:
    first, rest = draw(600, 0), draw(600, 1)
    fusion = Fusion(n_slices=30).fit(*first)
    fusion.suspect(rest[0], rest[2])
    assert "slices_" not in vars(fusion)
    before = fusion.labels_
    assert fusion.slices_ is fusion.slices_
    # those of an earlier fit are not kept
    fusion.fit(*rest)
    expected = Edisa(n_slices=30, suspicion="slices").fit(*rest).labels_
    assert fusion.labels_.tolist() == expected.tolist() != before.tolist()


def draw_of_two_classes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Four in five are wrong in one part of the embedding, however sure; elsewhere unsure ones."""
    rng = np.random.default_rng(seed)
    points, label = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    sure = rng.uniform(0.5, 1, n)
    chance = np.where(points[:, 0] > 1.2, 0.8, 0.05 + 0.3 * (sure < 0.7))
    taken = np.where(rng.random(n) < chance, 1 - label, label)
    return points, label, np.where(np.eye(2)[taken] > 0, sure[:, None], 1 - sure[:, None])


def test_as_many_as_lead_confidence_most() -> None:
    """By lead fewer are suspected than by F1, further ahead of confidence."""
    first, rest = draw_of_two_classes(600, 3), draw_of_two_classes(3000, 1)
    wrong, unsure = rest[2].argmax(axis=1) != rest[1], np.argsort(rest[2].max(axis=1))
    by_lead = Fusion(n_slices=30).fit(*first).error_prone(rest[0], rest[2])
    by_f1 = Fusion(n_slices=30, count="f1").fit(*first).error_prone(rest[0], rest[2])
    lead, other = (
        wrong[prone].mean() - wrong[unsure[: prone.sum()]].mean() for prone in (by_lead, by_f1)
    )
    assert lead > other + 0.03
    assert 0.7 < score(by_lead, wrong) / score(by_f1, wrong) < 1


def test_refusals() -> None:
    points, label, probability = draw(200, 0)
    with pytest.raises(PlanError, match="count must be lead, f1 or slices"):
        Fusion(count="half").fit(points, label, probability)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs more examples"):
        Fusion(n_slices=190).fit(points[:60], label[:60], probability[:60])
    with pytest.raises(InputError, match="not fitted"):
        Fusion().error_prone(points, probability)
