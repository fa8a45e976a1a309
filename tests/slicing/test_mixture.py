"""Edisa and Domino: the reference's numbers, laws of the likelihood, and what is refused."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from planted_tables import make_clusters
from scipy.special import logsumexp

from groundfault.errors import InputError, PlanError
from groundfault_lab.slicing.domino import Domino
from groundfault_lab.slicing.edisa import Edisa
from groundfault_lab.stats.improvement import find_least_confident
from groundfault_lab.stats.mixture import ROWS, blocks, em, log_joint, responsibilities
from groundfault_lab.stats.mixture_predict import principal_axes
from groundfault_studies.discovery import score_discovery, share

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
        self.z, self.z_test = (
            self._projected(data[name].astype(float)) for name in ("Z_val", "Z_test")
        )
        self.planted = data["planted_test"] >= 0
        self.planted_test, self.n_err = data["planted_test"], int(data["n_err"])

    def _projected(self, embedding: np.ndarray) -> np.ndarray:
        if "pca_mean" not in self.out:
            return embedding
        return (embedding - self.out["pca_mean"]) @ self.out["pca_components"].T

    def settings(self) -> dict[str, Any]:
        meta = self.meta
        names = {
            "n_slices": meta["k"],
            "pca": None,
            "random_state": meta["random_state"],
            "min_size": 1,
        }
        init = self.out["init_labels"] if meta["init"] == "kmeans" else meta["init"]
        return names | {
            "init": init,
            "delta": meta.get("delta", 0.5),
            "max_iter": meta.get("max_iter", 100),
        }

    def fit(self, slicer: Any) -> Any:
        return slicer.fit(self.z, self.y, self.p)

    def edisa(self, **changed: Any) -> Edisa:
        weights = self.meta["weights_exp"]
        exponents = {
            "embedding_weight": weights["emb_log_likelihood_weight"],
            "error_weight": weights["distance_log_likelihood_weight"],
            "confidence_weight": weights["y_hat_log_likelihood_weight"],
        }
        return self.fit(Edisa(**{**self.settings(), **exponents, "suspicion": "slices", **changed}))

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


@pytest.fixture(
    params=[(d, c) for d in DATASETS for c in EDISA],
    ids=lambda pair: "-".join(pair),
    scope="module",
)
def edisa(request: Any, shared: Path) -> tuple[Golden, Edisa]:
    golden = Golden(shared / "edisa_public", *request.param)
    return golden, golden.edisa()


@pytest.fixture(
    params=[(d, c) for d in DATASETS for c in DOMINO],
    ids=lambda pair: "-".join(pair),
    scope="module",
)
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
        slicer.predict_proba(golden.z[:300], golden.p[:300], golden.y[:300]),
        out["resp_val_head"],
        atol=1e-6,
    )


def assert_slices(golden: Golden, slicer: Any) -> None:
    out = golden.out
    np.testing.assert_array_equal(slicer.slice_sizes_, out["slice_size_val"])
    filled = slicer.slice_sizes_ > 0
    np.testing.assert_allclose(
        slicer.slice_accuracies_[filled], out["slice_acc_val"][filled], atol=EXACT
    )
    np.testing.assert_array_equal(slicer.error_slices_, out["error_slices"])
    assert np.isnan(slicer.slice_accuracies_[~filled]).all()


def assert_unlabelled(golden: Golden, slicer: Any) -> None:
    out, z, p = golden.out, golden.z_test, golden.p_test
    np.testing.assert_array_equal(slicer.predict(z, p), out["assign_test"])
    # densities of saturated probabilities reach 1e6, so that 1e-9 is their last digit
    np.testing.assert_allclose(
        slicer.score_samples(z, p), out["loglik_rows_test"], rtol=EXACT, atol=1e-7
    )
    np.testing.assert_allclose(slicer.error_probability(z, p), out["error_prob_test"], atol=1e-7)
    np.testing.assert_allclose(
        slicer.predict_proba(z[:300], p[:300]), out["resp_test_head"], atol=1e-6
    )


def test_edisa_is_the_reference_where_labels_are_known(edisa: tuple[Golden, Edisa]) -> None:
    golden, slicer = edisa
    assert_fit(golden, slicer)
    assert_slices(golden, slicer)
    assert slicer.converged_ == golden.meta["converged"]
    d, c = golden.z.shape[1], golden.p.shape[1]
    for name, columns in {"Z": slice(0, d), "E": slice(d, d + c), "Y": slice(d + c, None)}.items():
        np.testing.assert_allclose(
            slicer.mixture_.mean[:, columns], golden.out[f"mu_{name}"], atol=1e-9
        )
        np.testing.assert_allclose(
            slicer.mixture_.variance[:, columns], golden.out[f"var_{name}"], atol=1e-9
        )
    rows = slicer.score_samples(golden.z, golden.p, golden.y)
    np.testing.assert_allclose(rows, golden.out["loglik_rows_val"], rtol=EXACT, atol=EXACT)


def test_edisa_is_the_reference_where_labels_are_not_known(edisa: tuple[Golden, Edisa]) -> None:
    assert_unlabelled(*edisa)


def test_edisa_discovers_what_the_reference_discovers(edisa: tuple[Golden, Edisa]) -> None:
    golden, slicer = edisa
    prone = slicer.error_prone(golden.z_test, golden.p_test)
    discovery = score_discovery(prone, golden.p_test.argmax(axis=1) != golden.y_test, golden.p_test)
    meta = golden.meta
    assert discovery.count == meta["n_error_prone_test"]
    assert discovery.efficacy == pytest.approx(meta["efficacy"], abs=EXACT)
    assert discovery.confidence == pytest.approx(meta["confidence_baseline_efficacy"], abs=EXACT)
    assert discovery.chance == pytest.approx(meta["random_efficacy"], abs=EXACT)
    assert share(golden.planted, prone) == pytest.approx(meta["planted_precision"], abs=EXACT)
    assert share(prone, golden.planted) == pytest.approx(meta["planted_recall"], abs=EXACT)


def test_domino_is_the_reference_where_labels_are_known(domino: tuple[Golden, Domino]) -> None:
    golden, slicer = domino
    assert_fit(golden, slicer)
    for ours, theirs in zip(
        slicer.mixture_.tables, (golden.out["p_Y"], golden.out["p_Yhat"]), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=EXACT)
    ranked = golden.out["slice_cluster_indices"]
    np.testing.assert_array_equal(slicer.ranking_[: len(ranked)], ranked)
    if "slice_size_val" in golden.out:
        assert_slices(golden, slicer)


@pytest.mark.parametrize(
    "dataset", [DATASETS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in DATASETS[1:])]
)
@pytest.mark.parametrize("config", DOMINO[:2])
def test_domino_is_the_reference_where_labels_are_not_known(
    shared: Path, dataset: str, config: str
) -> None:
    """With three classes too: the reference's sum over a label and its complement is right for
    these two fits.
    """
    golden = Golden(shared / "edisa_public", dataset, config)
    assert_unlabelled(golden, golden.domino())


def test_domino_assigns_labelled_examples_as_the_original(shared: Path) -> None:
    golden = Golden(shared / "edisa_public", "pub_b", "dominomain_kmeans")
    slices = golden.domino().predict(golden.z_test, golden.p_test, golden.y_test)
    np.testing.assert_array_equal(slices, golden.out["assign_test_with_labels"])


@pytest.mark.parametrize("dataset", DATASETS)
def test_pca_is_exact(shared: Path, dataset: str) -> None:
    z = np.load(shared / "edisa_public" / f"{dataset}_input.npz")["Z_val"].astype(float)
    centre, axes = principal_axes(z, 10)
    _, s, vt = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(centre, z.mean(axis=0), atol=EXACT)
    np.testing.assert_allclose(np.abs(axes @ vt[:10].T), np.eye(10), atol=1e-6)
    np.testing.assert_allclose(
        ((z - centre) @ axes.T).var(axis=0), (s[:10] ** 2) / len(z), rtol=1e-9
    )


# --- laws, without the shared data


def slow_joint(slicer: Edisa, z: np.ndarray, y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The log joint of the paper, one Gaussian density at a time."""
    m, d, c = slicer.mixture_, z.shape[1], p.shape[1]
    views = [
        (z, slice(0, d), slicer.embedding_weight),
        (np.eye(c)[y] - p, slice(d, d + c), slicer.error_weight),
        (p, slice(d + c, None), slicer.confidence_weight),
    ]
    out = np.tile(m.log_weight, (len(z), 1))
    for j in range(m.size):
        for x, columns, weight in views:
            mean, variance = m.mean[j, columns], m.variance[j, columns]
            out[:, j] += weight * (
                -0.5 * ((x - mean) ** 2 / variance + np.log(2 * np.pi * variance))
            ).sum(axis=1)
    return out


def test_the_joint_is_the_papers_equation_4_and_8() -> None:
    z, y, p = make_clusters(300)
    slicer = Edisa(n_slices=7, pca=None, suspicion="slices").fit(z, y, p)
    np.testing.assert_allclose(
        logsumexp(slow_joint(slicer, z, y, p), axis=1), slicer.score_samples(z, p, y)
    )
    m, d, c = slicer.mixture_, 6, 3
    error = m.view(slice(d, d + c))
    without = slow_joint(slicer, z, y, p) - log_joint(error, np.eye(c)[y] - p)
    summed = without + logsumexp([log_joint(error, np.eye(c)[[k]] - p) for k in range(c)], axis=0)
    number = summed.argmax(axis=1)
    np.testing.assert_array_equal(slicer.predict(z, p), number)
    responsibility = np.exp(summed - logsumexp(summed, axis=1, keepdims=True))
    np.testing.assert_allclose(slicer.predict_proba(z, p), responsibility, atol=1e-12)
    expected = responsibility[:, slicer.error_slices_].sum(axis=1)
    np.testing.assert_allclose(slicer.error_probability(z, p), expected, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), d=st.integers(1, 5), k=st.integers(2, 6), c=st.integers(2, 4))
def test_the_likelihood_never_falls(seed: int, d: int, k: int, c: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, d)) + 3 * rng.integers(0, 2, (400, 1))
    exponent, table = rng.uniform(0.1, 1.5, d), np.eye(c)[rng.integers(0, c, 400)]
    start = rng.dirichlet(np.ones(k), size=400)
    slicer = em(
        x,
        exponent,
        [start],
        tables=[table],
        table_exponents=[1.7],
        tolerance=0,
        max_iterations=15,
        floor=0.0,
    )
    assert np.diff(slicer.history).min() > -1e-10


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), floor=st.sampled_from([1e-6, 1e-2, 1.0]))
def test_a_floor_costs_no_more_likelihood_than_it_explains(seed: int, floor: float) -> None:
    """An added floor is the exact M-step of a likelihood less a penalty, which bounds how far the
    likelihood falls.
    """
    rng = np.random.default_rng(seed)
    x, exponent, k = rng.normal(size=(60, 3)), rng.uniform(0.1, 1.5, 3), 8
    start = rng.dirichlet(np.full(k, 0.1), size=60)
    fits = [
        em(x, exponent, [start], tolerance=0, max_iterations=t, floor=floor) for t in range(1, 9)
    ]
    for before, after in pairwise(fits):
        shares = log_joint(before.mixture, x)
        responsibilities(shares)
        penalties = [
            0.5 * floor * shares.mean(axis=0) @ (exponent / f.mixture.variance).sum(axis=1)
            for f in (before, after)
        ]
        assert after.history[-1] - before.history[-1] >= penalties[1] - penalties[0] - 1e-9


@pytest.mark.parametrize("kind", [Edisa, Domino])
def test_rows_in_another_order_and_threads_give_the_same_slices(kind: Any) -> None:
    z, y, p = make_clusters(3000)
    first = np.random.default_rng(1).integers(0, 8, len(z))
    one = kind(n_slices=8, init=first, tol=1e-6).fit(z, y, p)
    threads = kind(n_slices=8, init=first, tol=1e-6, n_jobs=3).fit(z, y, p)
    np.testing.assert_array_equal(one.log_likelihood_, threads.log_likelihood_)
    order = np.random.default_rng(2).permutation(len(z))
    other = kind(n_slices=8, init=first[order], tol=1e-6).fit(z[order], y[order], p[order])
    assert one.log_likelihood_[-1] == pytest.approx(other.log_likelihood_[-1], abs=1e-6)
    np.testing.assert_array_equal(one.labels_[order], other.labels_)


def test_fitting_again_gives_the_same_slices() -> None:
    z, y, p = make_clusters()
    for init in ("kmeans", "confusion", "random"):
        one, again = (Edisa(n_slices=12, init=init, random_state=3).fit(z, y, p) for _ in range(2))
        np.testing.assert_array_equal(one.log_likelihood_, again.log_likelihood_)
        np.testing.assert_array_equal(one.predict(z, p), again.predict(z, p))


def test_starting_from_labels_is_starting_from_their_responsibilities() -> None:
    z, y, p = make_clusters()
    first = np.arange(len(z)) % 9
    one, other = (Edisa(n_slices=9, init=start).fit(z, y, p) for start in (first, np.eye(9)[first]))
    np.testing.assert_allclose(one.log_likelihood_, other.log_likelihood_, atol=1e-12)


def test_planted_errors_are_found() -> None:
    z, y, p = make_clusters(3000)
    slicer = Edisa(n_slices=24, embedding_weight=1.0).fit(z[:2000], y[:2000], p[:2000])
    wrong = p.argmax(axis=1) != y
    slices = score_discovery(slicer.error_prone(z[2000:], p[2000:]), wrong[2000:], p[2000:])
    assert slices.efficacy > 0.7 > 0.4 > slices.chance
    assert slices.efficacy > slices.confidence
    assert slices.recall > 0.5
    order = slicer.error_probability(z[2000:], p[2000:])
    assert order[wrong[2000:]].mean() > order[~wrong[2000:]].mean() + 0.3


def test_a_floor_of_size_drops_slices_of_few_examples() -> None:
    z, y, p = make_clusters()
    start = np.arange(len(z)) % 40
    small = Edisa(n_slices=40, init=start, min_size=1, max_iter=3).fit(z, y, p)
    floored = Edisa(n_slices=40, init=start, min_size=20, max_iter=3).fit(z, y, p)
    slices = [j for j in small.error_slices_ if small.slice_sizes_[j] >= 20]
    assert floored.error_slices_.tolist() == slices
    assert set(slices) <= set(small.error_slices_.tolist())


@pytest.mark.parametrize("kind", [Edisa, Domino])
def test_single_precision_is_close(kind: Any) -> None:
    z, y, p = make_clusters(3000)
    double = kind(n_slices=8, max_iter=5, tol=0).fit(z, y, p)
    single = kind(n_slices=8, max_iter=5, tol=0, dtype="float32").fit(z, y, p)
    assert single.mixture_.mean.dtype == np.float32
    np.testing.assert_allclose(single.log_likelihood_, double.log_likelihood_, rtol=1e-4)


def test_fewer_distinct_points_than_slices_leave_some_empty() -> None:
    z, y, p = make_clusters(400)
    same = np.repeat(z[:5], 80, axis=0)
    slicer = Edisa(n_slices=20).fit(same, y, p)
    assert (slicer.slice_sizes_ == 0).any()
    assert np.isfinite(slicer.log_likelihood_).all()
    assert np.isfinite(slicer.error_probability(same, p)).all()


def test_constant_columns_do_no_harm() -> None:
    z, y, p = make_clusters(500)
    padded = np.hstack([z, np.full((500, 2), 7.0)])
    slicer = Edisa(n_slices=8, pca=None).fit(padded, y, p)
    assert np.isfinite(slicer.log_likelihood_).all()


def test_blocks_cover_the_rows_once() -> None:
    for n in (1, ROWS - 1, ROWS, 3 * ROWS + 5):
        assert np.concatenate([np.arange(n)[rows] for rows in blocks(n)]).tolist() == list(range(n))


def test_responsibilities_of_extreme_joints() -> None:
    joint = np.array([[-1e6, -1e6 - 1.0], [0.0, -2000.0], [5e5, 5e5]])
    likelihood = responsibilities(joint)
    np.testing.assert_allclose(joint.sum(axis=1), 1.0)
    np.testing.assert_allclose(joint[0, 0], 1 / (1 + np.exp(-1)))
    np.testing.assert_allclose(likelihood, [-1e6 + np.log1p(np.exp(-1)), 0.0, 5e5 + np.log(2)])


def test_estimator_conventions() -> None:
    from sklearn.base import clone

    slicer = Edisa(n_slices=9, error_weight=0.5)
    assert clone(slicer).get_params() == slicer.get_params()
    assert slicer.get_params()["error_weight"] == 0.5
    assert slicer.set_params(n_slices=4).n_slices == 4
    with pytest.raises(PlanError, match="no parameter 'slices'"):
        slicer.set_params(slices=4)
    z, y, p = make_clusters()
    assert slicer.fit(z, y, p) is slicer
    assert not hasattr(clone(slicer), "mixture_")
    Edisa(n_slices=-1)  # the constructor only stores


def test_confidence_takes_the_first_of_equals() -> None:
    p = np.array([[0.5, 0.5], [0.9, 0.1], [0.5, 0.5], [0.3, 0.7]])
    assert find_least_confident(p, 2).tolist() == [True, False, True, False]
    assert find_least_confident(p, 1).tolist() == [True, False, False, False]
    assert np.isnan(share(np.array([True]), np.array([False])))


# --- bad input


def refused(
    message: str,
    kind: Any = Edisa,
    *,
    z: Any = None,
    y: Any = None,
    p: Any = None,
    **parameters: Any,
) -> None:
    good = make_clusters(200)
    data = [good[i] if arguments is None else arguments for i, arguments in enumerate((z, y, p))]
    with pytest.raises((InputError, PlanError), match=message):
        kind(**{"n_slices": 10, **parameters}).fit(*data)


def test_no_array_of_examples_by_slices_is_made() -> None:
    import tracemalloc

    z, y, p = make_clusters(20_000)
    slicer = Edisa(n_slices=256, pca=None, init="random", max_iter=2)
    slicer.fit(z, y, p)
    tracemalloc.start()
    slicer.fit(z, y, p).error_prone(z, p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000 * 256 * 8 / 2


def test_bad_embeddings_are_refused() -> None:
    z = make_clusters(200)[0]
    for value in (np.nan, np.inf):
        damaged = z.copy()
        damaged[7, 2] = value
        refused("in row 7, column 2", z=damaged)
    refused("must be an array of numbers", z=[["a"] * 3] * 200)
    refused("a row for each example", z=z[:, 0])
    refused("squares overflow", z=z * 1e200)
    refused("200 examples cannot make 300 slices", n_slices=300)


def test_bad_probabilities_are_refused() -> None:
    p = make_clusters(200)[2]
    refused("no probability in row 0", p=p * 2)
    damaged = p.copy()
    damaged[3] = [-0.5, 1.0, 0.5]
    refused(r"row 3.*smallest is -0.5 .*\(1 such rows\)", p=damaged)
    refused("y_proba holds nan in row 5", p=np.where(np.arange(200)[:, None] == 5, np.nan, p))
    refused("two columns, 1 - p and p", p=p[:, 0])
    refused("two columns, 1 - p and p", p=p[:, :1])
    refused("y_proba has 100 rows", p=p[:100])


def test_bad_labels_are_refused() -> None:
    y = make_clusters(200)[1]
    refused("must hold numbers of columns", y=np.array(["cat"] * 200))
    refused("y_true is 3 in row", y=y + 1)
    refused("y_true has shape", y=y[:50])
    refused("must hold numbers of columns", y=y + 0.5)


def test_nothing_to_find_is_said() -> None:
    _, _, p = make_clusters(200)
    right = p.argmax(axis=1)
    refused("no prediction is wrong", y=right)
    refused("every prediction is wrong", y=(right + 1) % 3)
    refused("every example is of class 1", y=np.ones(200, dtype=int))


def test_bad_parameters_are_refused() -> None:
    for name, value in {
        "n_slices": 1,
        "pca": 0,
        "min_size": 0,
        "max_iter": 2.5,
        "n_jobs": True,
    }.items():
        refused(f"{name} must be a whole number", **{name: value})
    for name, value in {
        "embedding_weight": -1.0,
        "tol": np.nan,
        "reg_covar": 0,
        "delta": 0.0,
    }.items():
        refused(f"{name} must be a number", **{name: value})
    refused("delta must be a number above 0 and at most 1", delta=1.5)
    refused("init must be kmeans", init="k-means")
    refused("needs a slice for each of 9 cells", init="confusion", n_slices=8)
    refused("dtype must be", dtype="float16")
    refused("suspicion must be calibrated or slices", suspicion="paper")
    refused("label_weight must be a number", kind=Domino, label_weight="10")
    refused("init has shape", init=np.zeros(7, dtype=int))
    refused("slice numbers from 0 to 9", init=np.full(200, 10))
    refused("each row at least 0, with sum 1", init=np.full((200, 10), 0.2))


def test_other_data_than_fitted_is_refused() -> None:
    z, y, p = make_clusters(200)
    slicer = Edisa(n_slices=5, pca=None)
    with pytest.raises(InputError, match="this edisa is not fitted"):
        slicer.predict(z, p)
    slicer.init = np.zeros(3, dtype=int)
    with pytest.raises(InputError, match="init has shape"):
        slicer.fit(z, y, p)
    with pytest.raises(InputError, match="this edisa is not fitted"):
        slicer.error_probability(z, p)
    slicer.set_params(init="kmeans").fit(z, y, p)
    with pytest.raises(InputError, match="Z has 4 columns, but the slices were fitted with 6"):
        slicer.predict(z[:, :4], p)
    with pytest.raises(InputError, match="2 classes, but the slices were fitted with 3"):
        slicer.predict(z, p[:, :2] / p[:, :2].sum(axis=1, keepdims=True))
