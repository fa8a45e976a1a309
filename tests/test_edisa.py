"""Edisa and Domino: the reference's numbers, laws of the likelihood, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundfault.errors import InputError, PlanError
from groundfault.finders.domino import Domino
from groundfault.finders.edisa import Edisa
from groundfault.stats.discovery import discovery, least_confident, share
from groundfault.stats.mixture import ROWS, blocks, em, log_joint, responsibilities
from groundfault.stats.unlabelled import principal_axes

EXACT = 1e-9
DATASETS = ("pub_a", "pub_b")
EDISA = ("edisa_discover_kmeans", "edisa_explain_confusion", "edisa_ones_random")
DOMINO = ("domino_default_confusion", "domino_deim_confusion", "dominomain_kmeans")


class Golden:
    """One fit of a reference implementation, and the same one here."""

    def __init__(self, folder: Path, dataset: str, config: str) -> None:
        self.out = dict(np.load(folder / f"{dataset}__{config}.npz"))
        self.meta = json.loads((folder / "meta.json").read_text())[f"{dataset}/{config}"]
        data = dict(np.load(folder / f"{dataset}_input.npz"))
        self.y, self.y_test = data["y_val"], data["y_test"]
        self.p, self.p_test = data["P_val"].astype(float), data["P_test"].astype(float)
        # the reference's PCA is randomised and unseeded, so its projection is taken as given
        self.z, self.z_test = (self._projected(data[name].astype(float)) for name in ("Z_val", "Z_test"))
        self.planted = data["planted_test"] >= 0
        self.planted_test, self.n_err = data["planted_test"], int(data["n_err"])

    def _projected(self, embedding: np.ndarray) -> np.ndarray:
        if "pca_mean" not in self.out:
            return embedding
        return (embedding - self.out["pca_mean"]) @ self.out["pca_components"].T

    def settings(self) -> dict[str, Any]:
        meta = self.meta
        known = {"n_slices": meta["k"], "pca": None, "random_state": meta["random_state"], "min_size": 1}
        init = self.out["init_labels"] if meta["init"] == "kmeans" else meta["init"]
        return known | {"init": init, "delta": meta.get("delta", 0.5), "max_iter": meta.get("max_iter", 100)}

    def fit(self, slicer: Any) -> Any:
        return slicer.fit(self.z, self.y, self.p)

    def edisa(self, **changed: Any) -> Edisa:
        weights = self.meta["weights_exp"]
        exponents = {
            "embedding_weight": weights["emb_log_likelihood_weight"],
            "error_weight": weights["distance_log_likelihood_weight"],
            "confidence_weight": weights["y_hat_log_likelihood_weight"],
        }
        return self.fit(Edisa(**{**self.settings(), **exponents, **changed}))

    def domino(self) -> Domino:
        weights = self.meta.get("weights_exp")
        if weights is None:
            return self.fit(Domino(**self.settings()))
        return self.fit(
            Domino(
                **self.settings(),
                embedding_weight=weights["emb_log_likelihood_weight"],
                label_weight=weights["y_log_likelihood_weight"],
                confidence_weight=weights["y_hat_log_likelihood_weight"],
            )
        )


@pytest.fixture(params=[(d, c) for d in DATASETS for c in EDISA], ids=lambda pair: "-".join(pair), scope="module")
def edisa(request: Any, shared: Path) -> tuple[Golden, Edisa]:
    golden = Golden(shared / "edisa_public", *request.param)
    return golden, golden.edisa()


@pytest.fixture(params=[(d, c) for d in DATASETS for c in DOMINO], ids=lambda pair: "-".join(pair), scope="module")
def domino(request: Any, shared: Path) -> tuple[Golden, Domino]:
    golden = Golden(shared / "edisa_public", *request.param)
    return golden, golden.domino()


def assert_fit(golden: Golden, slicer: Any) -> None:
    out, meta = golden.out, golden.meta
    assert slicer.n_iter_ == meta["n_iter"]
    np.testing.assert_allclose(slicer.log_likelihood_, out["loglik_hist"], rtol=0, atol=EXACT)
    np.testing.assert_array_equal(slicer.labels_, out["assign_val"])
    np.testing.assert_allclose(np.exp(slicer.mixture_.log_weight), out["weights"], atol=EXACT)
    np.testing.assert_allclose(
        slicer.predict_proba(golden.z[:300], golden.p[:300], golden.y[:300]), out["resp_val_head"], atol=1e-6
    )


def assert_slices(golden: Golden, slicer: Any) -> None:
    out = golden.out
    np.testing.assert_array_equal(slicer.slice_sizes_, out["slice_size_val"])
    filled = slicer.slice_sizes_ > 0
    np.testing.assert_allclose(slicer.slice_accuracies_[filled], out["slice_acc_val"][filled], atol=EXACT)
    np.testing.assert_array_equal(slicer.error_slices_, out["error_slices"])
    assert np.isnan(slicer.slice_accuracies_[~filled]).all()


def assert_unlabelled(golden: Golden, slicer: Any) -> None:
    out, z, p = golden.out, golden.z_test, golden.p_test
    np.testing.assert_array_equal(slicer.predict(z, p), out["assign_test"])
    # densities of saturated probabilities reach 1e6, so that 1e-9 is their last digit
    np.testing.assert_allclose(slicer.score_samples(z, p), out["loglik_rows_test"], rtol=EXACT, atol=1e-7)
    np.testing.assert_allclose(slicer.error_probability(z, p), out["error_prob_test"], atol=1e-7)
    np.testing.assert_allclose(slicer.predict_proba(z[:300], p[:300]), out["resp_test_head"], atol=1e-6)


def test_edisa_is_the_reference_where_labels_are_known(edisa: tuple[Golden, Edisa]) -> None:
    golden, slicer = edisa
    assert_fit(golden, slicer)
    assert_slices(golden, slicer)
    assert slicer.converged_ == golden.meta["converged"]
    d, c = golden.z.shape[1], golden.p.shape[1]
    for name, columns in {"Z": slice(0, d), "E": slice(d, d + c), "Y": slice(d + c, None)}.items():
        np.testing.assert_allclose(slicer.mixture_.mean[:, columns], golden.out[f"mu_{name}"], atol=1e-9)
        np.testing.assert_allclose(slicer.mixture_.variance[:, columns], golden.out[f"var_{name}"], atol=1e-9)
    rows = slicer.score_samples(golden.z, golden.p, golden.y)
    np.testing.assert_allclose(rows, golden.out["loglik_rows_val"], rtol=EXACT, atol=EXACT)


def test_edisa_is_the_reference_where_labels_are_not_known(edisa: tuple[Golden, Edisa]) -> None:
    assert_unlabelled(*edisa)
