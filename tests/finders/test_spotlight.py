"""Spotlight: the reference's windows, balls with members, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundfault.errors import InputError, PlanError
from groundfault_lab.slicing.spotlight import Spotlight
from groundfault_lab.stats.spotlight import Window, climb, is_inside, objective
from groundfault_studies.discovery import share

DATASETS = ("pub_a", pytest.param("pub_b", marks=pytest.mark.slow))


def load_golden(shared: Path, dataset: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    folder = shared / "edisa_public"
    return dict(np.load(folder / f"{dataset}_input.npz")), dict(
        np.load(folder / f"{dataset}__spotlight.npz")
    )


@pytest.mark.parametrize("dataset", DATASETS)
def test_weights_are_the_reference(shared: Path, dataset: str) -> None:
    """Its weights sum to 1 over the examples, and were kept in single precision."""
    data, out = load_golden(shared, dataset)
    z = data["Z_val"].astype(float)
    for number, theirs in enumerate(out["weights_val"].T):
        ours = Window(out["means"][number].astype(float), out["log_precisions"][number]).weights(z)
        np.testing.assert_allclose((ours / ours.sum())[: len(theirs)], theirs, rtol=1e-6)


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_climb_is_the_reference(shared: Path, dataset: str) -> None:
    """In the units of the embedding, on losses with a second softmax; the reference runs in single
    precision.
    """
    data, out = load_golden(shared, dataset)
    p, y = data["P_val"].astype(float), data["y_val"]
    losses = np.log(np.exp(p).sum(axis=1)) - p[np.arange(len(y)), y]
    slicer = Spotlight(pca=None, reference=True, learning_rate=1e-3).fit_losses(
        data["Z_val"], losses
    )
    for number, window in enumerate(slicer.windows_):
        np.testing.assert_allclose(window.centre, out["means"][number], atol=5e-5)
        assert window.log_precision == pytest.approx(out["log_precisions"][number], abs=5e-6)


@pytest.mark.parametrize("dataset", DATASETS)
def test_windows_leave_the_start_and_find_what_is_planted(shared: Path, dataset: str) -> None:
    """The reference's five slices hold 0.91, 0.01, 0.19, 0.19, 0.19 of planted examples on the
    first data set.
    """
    data, _ = load_golden(shared, dataset)
    slicer = Spotlight().fit(data["Z_val"], data["y_val"], data["P_val"])
    members = slicer.members(data["Z_test"])
    planted = data["planted_test"] >= 0
    for slice_members in members.T:
        assert 0.01 < slice_members.mean() < 0.04
        assert share(planted, slice_members) > 0.9
    slices = {int(np.bincount(data["planted_test"][m & planted]).argmax()) for m in members.T}
    assert len(slices) >= 4


def bump(n: int = 1000, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Losses that are high around one corner of the embedding."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    z[: n // 20] = rng.normal(size=(n // 20, d)) * 0.2 + 4.0
    losses = np.where(np.arange(n) < n // 20, 1.0, rng.random(n) < 0.05)
    return z, losses


def test_a_ball_holds_its_share_of_the_examples_fitted() -> None:
    z, losses = bump()
    slicer = Spotlight(n_slices=2, size=0.05).fit_losses(z, losses)
    members = slicer.members(z)
    assert members.sum(axis=0).tolist() == [50, 50]
    assert members[:50, 0].mean() > 0.9
    assert not members.all(axis=1).any()
    assert slicer.losses_[0] == pytest.approx(losses[members[:, 0]].mean())
    first = slicer.predict(z)
    assert set(first) == {-1, 0, 1}
    np.testing.assert_array_equal(first == 0, members[:, 0])
    weights = slicer.weights(z)
    assert weights[members[:, 0], 0].min() >= weights[~members[:, 0], 0].max()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_units_do_not_matter(scale: float) -> None:
    z, losses = bump()
    once = Spotlight(n_slices=2, size=0.05).fit_losses(z, losses)
    other = Spotlight(n_slices=2, size=0.05).fit_losses(z * scale + scale, losses * scale)
    np.testing.assert_array_equal(other.members(z * scale + scale), once.members(z))


def test_the_gradient_is_the_slope_of_the_objective() -> None:
    z, losses = bump(60, 3)
    window = Window(np.array([0.3, -0.2, 0.5]), -0.7)
    for floor, scale in (
        (1.0, None),
        (50.0, None),
        (1.0, 10.0),
        (50.0, 10.0),
    ):  # above the floor, and below it
        _, gradient = objective(window, z, losses, floor, scale)
        for i in range(4):
            step = np.eye(4)[i] * 1e-6
            shift = [
                Window(window.centre + s * step[:3], window.log_precision + s * step[3])
                for s in (1, -1)
            ]
            up, down = (objective(w, z, losses, floor, scale)[0] for w in shift)
            assert gradient[i] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_a_climb_ends_near_the_size_wanted() -> None:
    z, losses = bump()
    spread = np.sqrt((z**2).sum(axis=1).mean())
    window = climb(z / spread, losses / losses.mean(), 50.0, 1000, 0.03)
    assert 40 < window.weights(z / spread).sum() < 60


def test_as_near_as_the_last_is_inside_too() -> None:
    z = np.repeat(np.eye(3), 30, axis=0)
    slicer = Spotlight(n_slices=3, size=0.1, steps=50).fit_losses(z, np.arange(90) % 7 == 0)
    assert (slicer.members(z).sum(axis=0) >= 9).all()
    assert np.isfinite(slicer.losses_).all()


def test_inside_is_at_most_the_radius() -> None:
    ball = {"middle": np.array([1.0, 0.0]), "square": np.array([4.0])}
    assert is_inside(ball, np.array([[3.0, 0.0], [3.1, 0.0], [1.0, 2.0]])).tolist() == [1, 0, 1]


def test_bad_input_is_refused() -> None:
    z, losses = bump(200)

    def refused(message: str, z: Any = z, losses: Any = losses, **parameters: Any) -> None:
        with pytest.raises((InputError, PlanError), match=message):
            Spotlight(**parameters).fit_losses(z, losses)

    refused("every loss is the same", losses=np.zeros(200))
    refused("200 numbers of at least 0", losses=-losses)
    refused("200 numbers of at least 0", losses=losses[:10])
    refused("holds nan in row 0", z=np.full((200, 2), np.nan))
    refused("size must be a share", size=1.0)
    refused("size must be a number above 0", size=0)
    refused("steps must be a whole number", steps=0)
    refused("2 examples are too few for slices of 2", z=z[:2], losses=[0.0, 1.0], size=0.9)
    with pytest.raises(InputError, match="not fitted"):
        Spotlight().members(z)


def test_as_a_slicer_it_suspects_what_its_balls_hold() -> None:
    z, losses = bump()
    slicer = Spotlight(n_slices=2, size=0.05, pca=None).fit_losses(z, losses)
    np.testing.assert_array_equal(slicer.labels_, slicer.predict(z))
    prone = slicer.error_prone(z)
    np.testing.assert_array_equal(prone, slicer.labels_ >= 0)
    suspicion = slicer.error_probability(z)
    assert ((suspicion >= 0) & (suspicion <= 1)).all()
    assert suspicion[prone].min() > np.median(suspicion[~prone])
