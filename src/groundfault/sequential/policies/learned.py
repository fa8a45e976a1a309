"""Learned: claim the group whose test is expected to gain most, as a learner predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.base.long_work import one_thread
from groundfault.errors import PlanError
from groundfault.sequential.policies import Cells, History, Query

# sizes of features: more cost time in every round, and a few hundred scores do not fill them
_COMPONENTS, _CUTS, _WAVES = 32, 7, 32
_PAPERS_LENGTH = 19.5  # root mean squared length of the embeddings in the paper


@dataclass(frozen=True, eq=False)
class Features:
    """N cases as learners see them, of C kinds, without scores.

    Attributes
    ----------
    embedding : float64 array, shape (N, D), or None
    members : bool array, shape (G, N)
    """

    embedding: Floats | None
    members: Bools

    @cached_property
    def cells(self) -> Cells:
        """Return the C kinds of cases: without an embedding, cases of the same groups are alike."""
        if self.embedding is None:
            return Cells.of(self.members)
        return Cells(np.arange(self.members.shape[1]), self.members)

    @cached_property
    def groups(self) -> Floats:
        """Return the membership of proper groups, centred, of mean squared length 1: shape (N,
        G).
        """
        part = self._part.astype(np.float64)
        return _scale(part - part.mean(axis=0))

    @property
    def _part(self) -> Bools:
        return self.members[~self.members.all(axis=1)].T

    @cached_property
    def inputs(self) -> NDArray[np.float32]:
        """Return embedding and groups side by side, for networks: float32, shape (N, D + G).

        Each is as long as the paper's embeddings, on the whole: how fast networks learn depends on
        it."""
        kinds = [self.groups] if self.embedding is None else [_scale(self.embedding), self.groups]
        return (np.hstack(kinds) * _PAPERS_LENGTH).astype(np.float32)

    @cached_property
    def components(self) -> Floats:
        """Return the first principal components, of mean squared length 1: shape (N, at most
        32).
        """
        if self.embedding is None:
            return np.empty((self.members.shape[1], 0))
        centred = self.embedding - self.embedding.mean(axis=0)
        tall = centred.shape[0] > centred.shape[1]
        values, vectors = np.linalg.eigh(centred.T @ centred if tall else centred @ centred.T)
        values, vectors = values[::-1][:_COMPONENTS], vectors[:, ::-1][:, :_COMPONENTS]
        return _scale(centred @ vectors if tall else vectors * np.sqrt(np.maximum(values, 0.0)))

    @cached_property
    def waves(self) -> Floats:
        """Return random Fourier features of a Gaussian kernel: shape (N, 64), each row of length 1.

        References
        ----------
        Rahimi and Recht (2007), Random features for large-scale kernel machines, NeurIPS 20.
        """
        points = self.components
        if not points.shape[1]:
            return points
        phases = points @ np.random.default_rng(_WAVES).normal(size=(points.shape[1], _WAVES))
        return np.asarray(np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(_WAVES))

    @cached_property
    def linear(self) -> tuple[Floats, Floats]:
        """Return components and groups by kind, (C, d), and scales of their weights, (S, d)."""
        return self._weigh(self.components)

    @cached_property
    def smooth(self) -> tuple[Floats, Floats]:
        """Return waves and groups by kind, (C, d), and scales of their weights, (S, d)."""
        return self._weigh(self.waves)

    def _weigh(self, embedded: Floats) -> tuple[Floats, Floats]:
        first = self.cells.first
        parts = [np.ones((len(first), 1)), embedded[first], self.groups[first]]
        widths = [part.shape[1] for part in parts]
        kinds = [(_INTERCEPT,), *(_SCALES if width else (0.0,) for width in widths[1:])]
        scales = [np.repeat(draws, widths) for draws in product(*kinds)]
        return np.hstack(parts), np.array(scales)

    @cached_property
    def splits(self) -> Bools:
        """Return which cases exceed seven quantiles of each component, and groups: shape (N, S).

        The last column is true throughout, so that there is always one.
        """
        points = self.components
        cuts = np.quantile(points, np.arange(1, _CUTS + 1) / (_CUTS + 1), axis=0)
        above = (points[:, None] > cuts).reshape(len(points), -1)
        return np.hstack([above, self._part, np.ones((len(points), 1), dtype=np.bool_)])


def _scale(columns: Floats) -> Floats:
    """Return the columns with a mean squared length of 1."""
    length = np.sqrt((columns**2).sum(axis=1).mean())
    return np.asarray(columns / length) if length > 0 else columns


@dataclass(eq=False)
class Cache:
    """The features of the pool that was asked about last: worked out once, not in every round."""

    _last: Features | None = field(default=None)

    def of(self, history: History) -> Features:
        """Return the features of a history's pool."""
        last = self._last
        # the arrays of a pool cannot be written to: the same array holds the same numbers
        if (
            last is None
            or last.embedding is not history.embedding
            or last.members is not history.members
        ):
            self._last = last = Features(history.embedding, history.members)
        return last


def predict_group_rests(
    history: History, features: Features, predictions: Floats
) -> tuple[Places, Floats]:
    """Open groups below the threshold, and the predicted mean of the rest of each.

    Parameters
    ----------
    history : History
    features : Features
    predictions : float64 array, shape (K, C)

    Returns
    -------
    useful : intp array, shape (U,)
    means : float64 array, shape (K, U)
    """
    useful = np.flatnonzero(history.open & (history.rest_targets > 0))
    rest = features.cells.count(history.available)[useful]
    return useful, predictions @ (rest / rest.sum(axis=1, keepdims=True)).T


_MIN_SCORES = 2  # of one score no difference between cases can be learnt


@dataclass(frozen=True)
class PreLearned:
    """Predict every case's score from the warm-up alone, and claim where the prediction is lowest.

    The claim is the declared group of lowest predicted mean or, where any set of cases may be
    named, the cases of lowest prediction. Groups that are used up, or known to reach the threshold,
    give way to the next.

    Notes
    -----
    The paper's version predicts with the adaptive auditor's ensemble of networks; this one with
    ridge regression on groups and embedding, which 32 scores feed as well."""

    name: ClassVar[str] = "prelearned"
    warm_up: ClassVar[int] = 32
    _last: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:  # noqa: ARG002
        """Return the lowest prediction among cases that are left.

        Raises
        ------
        PlanError
            If there was no warm-up to learn from.
        """
        predictions = self._predict(history)
        if history.anywhere:
            return claim_lowest(history, predictions)
        useful = history.open & (history.rest_targets > 0)
        useful = useful & history.strata if (useful & history.strata).any() else useful
        if not useful.any():
            return None
        means = history.members @ predictions / history.members.sum(axis=1)
        return Query(history.groups[int(np.where(useful, means, np.inf).argmin())], claim=True)

    def _predict(self, history: History) -> Floats:
        """Return the predictions from the warm-up, worked out once."""
        rounds = _find_warm_up(history)
        labels = (history.positions[rounds].tobytes(), history.scores[rounds].tobytes())
        # the arrays of a pool cannot be written to: the same array holds the same numbers
        key = (id(history.members), id(history.embedding), *labels)
        if self._last.get("key") != key:
            predictions = predict_by_ridge(history, rounds)
            # the history too, so that no other array comes to stand in the place of its own
            self._last.update(key=key, history=history, predictions=predictions)
        kept: Floats = self._last["predictions"]
        return kept


def _find_warm_up(history: History) -> Places:
    """Return scored rounds before anything was staked."""
    rounds = np.flatnonzero(np.cumsum(history.staked) == 0)
    return rounds[~np.isnan(history.scores[rounds])]


def claim_lowest(history: History, predictions: Floats) -> Query | None:
    """Claim the offered cases of lowest prediction; None where there are too few."""
    among = np.flatnonzero(history.available)
    if len(among) < max(1, history.min_eligible):
        return None
    items = np.zeros_like(history.available)
    items[among[np.argsort(predictions[among], kind="stable")[: history.min_eligible]]] = True
    return Query(items=items, claim=True)


def predict_by_ridge(history: History, rounds: Places, penalty: float = 1.0) -> Floats:
    """Return scores of all cases, predicted from the scores of some rounds: float64, shape (N,).

    Groups, and the embedding where there is one, weigh the same: each is scaled to a mean squared
    length of one.

    Raises
    ------
    PlanError
        If there are fewer than two scores to learn from.
    """
    if len(rounds) < _MIN_SCORES:
        raise PlanError(
            f"a pre-learned policy has {len(rounds)} scores to learn from; set warm_up to "
            f"{_MIN_SCORES} or more"
        )
    kinds = [history.members.T.astype(float)]
    kinds += [] if history.embedding is None else [history.embedding]
    features = np.hstack([_scale(kind - kind.mean(axis=0)) for kind in kinds])
    rows, scores = features[history.positions[rounds]], history.scores[rounds]
    centre = scores.mean()
    weights = np.linalg.solve(rows @ rows.T + penalty * np.eye(len(rounds)), scores - centre)
    return np.asarray(centre + features @ (rows.T @ weights))


# draws whose mean is a prediction; steps that settle the mode, none of them far out
_DRAWS, _NEWTON, _MIN_CURVE = 100, 8, 0.02
_SETTLED = 1e-9  # a step this small changes no draw, which spread by tenths
# standard deviations in logits: of the intercept, and from no effect to one that decides alone
_INTERCEPT, _SCALES = 1.5, (0.0, 0.5, 1.0, 2.0, 4.0)
# small and strongly shrunk ensembles: they are fitted anew after every score
_BAGS, _ROUNDS, _RATE, _PENALTY = 40, 40, 0.3, 2.0


@dataclass(frozen=True, eq=False)
class LabelledData:
    """Scores to learn from.

    Attributes
    ----------
    features : Features
        Of all N cases.
    positions : intp array, shape (n,)
        Position of each scored case; there may be none.
    scores : float64 array, shape (n,)
        In [0, 1].
    threshold : float
        The expected score of a case without any information.
    ahead : float64 array, shape (C,), or float
        Logits of each kind beyond the threshold's, before any score.
    """

    features: Features
    positions: Places
    scores: Floats
    threshold: float
    ahead: Floats | float = 0.0

    @property
    def logit(self) -> float:
        """Return the logit of the threshold."""
        return float(np.log(self.threshold / (1 - self.threshold)))


Learner = Callable[[LabelledData, np.random.Generator], Floats]
"""A function from scores to draws for each kind, shape (K, C); pure but for the generator."""


def logistic(labels: LabelledData, rng: np.random.Generator) -> Floats:
    """Draw by Bayesian logistic regression on components of the embedding, and groups.

    How strongly each of the two may matter is not chosen but averaged over, by marginal likelihood:
    this is what keeps early predictions from being too sure."""
    return _linear([labels], labels.features.linear, [rng])[0]


def gaussian_process(labels: LabelledData, rng: np.random.Generator) -> Floats:
    """Draw with a Gaussian kernel over the components, in random Fourier features."""
    return _linear([labels], labels.features.smooth, [rng])[0]


def _linear(
    labels: Sequence[LabelledData],
    design: tuple[Floats, Floats],
    rngs: Sequence[np.random.Generator],
) -> list[Floats]:
    """Draw from logistic models with normal weights, by Laplace's approximation.

    Models of several audits of one pool are fitted side by side, which costs little more than one.
    """
    columns, scales = design
    # cases of a kind are one row that counts as often as there are scores
    kinds = [each.features.cells.numbers[each.positions] for each in labels]
    size = len(columns)
    counts = np.array([np.bincount(own, minlength=size) for own in kinds])
    totals = np.array(
        [np.bincount(own, x.scores, size) for own, x in zip(kinds, labels, strict=True)]
    )
    labelled = np.flatnonzero(counts.any(axis=0))
    counts = counts[:, labelled]
    means = totals[:, labelled] / np.maximum(counts, 1)
    rows = columns[labelled] * scales[:, None]
    offset = labels[0].logit + np.broadcast_to(labels[0].ahead, size)
    modes, roots, evidence = _laplace(rows, means, offset[labelled], counts)
    # scales are averaged by marginal likelihood (MacKay, 1992): choosing the best of them would
    # make early predictions too sure
    shares = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    # a normal with precision L L^T is L^-T times white noise
    inverses = np.linalg.inv(np.swapaxes(roots, -1, -2))
    result = []
    for mode, inverse, share, rng in zip(modes, inverses, shares, rngs, strict=True):
        draws = rng.choice(len(scales), size=_DRAWS, p=share)
        noise = np.einsum("sij,sj->si", inverse[draws], rng.normal(size=(_DRAWS, columns.shape[1])))
        logits = ((mode[draws] + noise) * scales[draws]) @ columns.T
        logits += offset
        result.append(_sigmoid(logits))
    return result


def _laplace(
    rows: Floats, scores: Floats, offset: Floats, counts: Ints
) -> tuple[Floats, Floats, Floats]:
    """Return mode (R, S, d), Cholesky root of the precision (R, S, d, d), log evidence (R, S).

    They are of the weights of R fits to the same rows (S, n, d), each with mean scores (R, n) of so
    many cases (R, n).
    """
    mode, prior = np.zeros((len(scores), *rows.shape[::2], 1)), np.eye(rows.shape[2])
    transposed, counts = np.swapaxes(rows, 1, 2), counts[:, None, :, None]
    scores, offset = scores[:, None, :, None], offset[:, None]
    for _ in range(_NEWTON):
        chance = _sigmoid(offset + rows @ mode)
        # a curvature that is nearly zero would send Newton's step far out
        curve = counts * np.maximum(chance * (1 - chance), _MIN_CURVE)
        precision = transposed @ (rows * curve) + prior
        step = np.linalg.solve(precision, transposed @ (counts * (scores - chance)) - mode)
        mode += step
        if np.abs(step).max() < _SETTLED:
            break
    logits, roots = offset + rows @ mode, np.linalg.cholesky(precision)
    fit = (counts * (scores * logits - np.logaddexp(0.0, logits))).sum(axis=(2, 3))
    logs: Floats = np.log(np.diagonal(roots, axis1=2, axis2=3))
    evidence: Floats = fit - (mode**2).sum(axis=(2, 3)) / 2 - logs.sum(axis=2)
    return mode[..., 0], np.asarray(roots), evidence


def boosted(labels: LabelledData, rng: np.random.Generator) -> Floats:
    """Draw by gradient-boosted stumps on cuts of the components; each draw weights scores anew.

    References
    ----------
    Friedman (2001), https://doi.org/10.1214/aos/1013203451; Rubin (1981),
    https://doi.org/10.1214/aos/1176345338 (the Bayesian bootstrap)."""
    splits = labels.features.splits[labels.features.cells.first]
    places = labels.features.cells.numbers[labels.positions]
    rows = splits[places].astype(np.float64)
    # exponential weights are the Bayesian bootstrap: no score is left out, however few there are
    weights = rng.exponential(size=(_BAGS, len(places)))
    logits = np.full((_BAGS, len(splits)), labels.logit)
    for _ in range(_ROUNDS):
        chance = _sigmoid(logits[:, places])
        slope, curve = weights * (labels.scores - chance), weights * chance * (1 - chance)
        inside, bend = slope @ rows, curve @ rows + _PENALTY
        outside = slope.sum(axis=1)[:, None] - inside
        other = curve.sum(axis=1)[:, None] - bend + 2 * _PENALTY
        best = (inside**2 / bend + outside**2 / other).argmax(axis=1)
        bag = np.arange(_BAGS)
        up, down = (inside / bend)[bag, best], (outside / other)[bag, best]
        logits += _RATE * np.where(splits[:, best].T, up[:, None], down[:, None])
    return _sigmoid(logits)


def _sigmoid(x: Floats) -> Floats:
    """Return the logistic function in place of ``x``: most of the time went into new arrays."""
    np.negative(x, out=x)
    np.minimum(x, 500, out=x)
    np.exp(x, out=x)
    x += 1
    return np.divide(1, x, out=x)


_EDGE = 1e-9  # keeps a relative entropy finite
_PRIOR_SCORES = 8  # scores that an earlier mean counts as: as many without a failure overrule it


@dataclass(frozen=True)
class Learned:
    """Claim, in every round, the group that is expected to bring most evidence against the model.

    The gain of a group is the relative entropy between what its unlabelled rest is predicted to
    score and what it needs to reach the threshold, and nothing where the prediction is not short of
    the need: the rate at which the best bet would grow. Its mean over the learner's draws rises
    with doubt as well as with failure, so that groups of which little is known are looked into
    without any rule for exploring. Where no draw sees a group short, the one that comes nearest is
    claimed, so that a sound model can pass.

    Where any set of cases may be named, the cases of lowest prediction are claimed.

    Parameters
    ----------
    name : str
    learner : Learner
    thompson : bool
        Believe one draw at a time, in place of their mean.

    References
    ----------
    Thompson (1933), https://doi.org/10.1093/biomet/25.3-4.285. The gain is the growth rate of
    Kelly's bet (1956), https://doi.org/10.1002/j.1538-7305.1956.tb03809.x."""

    name: str
    learner: Learner
    thompson: bool = field(default=False, kw_only=True)
    _features: Cache = field(default_factory=Cache, init=False, repr=False, compare=False)

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """Return the group of largest gain; None if no group can fall short any more."""
        return self.ask_each([history], [rng])[0]

    def ask_each(
        self, histories: Sequence[History], rngs: Sequence[np.random.Generator]
    ) -> list[Query | None]:
        """Return the answers to several audits of a pool, whose models are fitted side by side."""
        features = self._features.of(histories[0])
        labels = []
        for history in histories:
            has_score = ~np.isnan(history.scores)
            seen = history.positions[has_score], history.scores[has_score]
            labels.append(LabelledData(features, *seen, history.threshold))
        # threads change the last bit, and a resumed audit must ask the same
        with one_thread():
            # a single draw may tie groups, and then the last bit decides, which company may change
            if self.learner is logistic and not self.thompson:
                draws = _linear(labels, features.linear, rngs)
            else:
                draws = list(map(self.learner, labels, rngs))
        return list(map(self._choose, histories, draws, rngs))

    def _choose(self, history: History, draws: Floats, rng: np.random.Generator) -> Query | None:
        features = self._features.of(history)
        if self.thompson:
            draws = draws[[rng.integers(len(draws))]]
        if history.anywhere:
            return claim_lowest(history, draws.mean(axis=0)[features.cells.numbers])
        useful, means = predict_group_rests(history, features, draws)
        if not len(useful):
            return None
        for column, group in enumerate(useful):
            if (mean := history.prior.get(history.groups[group])) is not None:
                means[:, column] = _draw_means(history, int(group), mean, len(means), rng)
        targets = history.rest_targets[useful]
        gains = compute_gain(means, targets).mean(axis=0)
        # no draw is short of the target: claim the nearest, so that a sound model can pass
        value = gains if gains.any() else targets - means.mean(axis=0)
        return Query(history.groups[useful[value.argmax()]], claim=True)


def _draw_means(
    history: History, group: int, prior: float, count: int, rng: np.random.Generator
) -> Floats:
    """Draw the mean of a group of a prior, by the scores in it and as many as the prior counts."""
    seen = int(history.counts[group])
    total = float(history.means[group]) * seen if seen else 0.0
    passes, failures = total + _PRIOR_SCORES * prior, seen - total + _PRIOR_SCORES * (1 - prior)
    return rng.beta(max(passes, _EDGE), max(failures, _EDGE), count)


def compute_gain(means: Floats, targets: Floats) -> Floats:
    """Return the Bernoulli relative entropy where the mean is below the needed one, else 0."""
    p, q = np.clip(means, _EDGE, 1 - _EDGE), np.clip(targets, _EDGE, 1 - _EDGE)
    return np.where(p < q, p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)), 0.0)


make_logistic = partial(Learned, "logistic", logistic)
make_gp = partial(Learned, "gp", gaussian_process)
make_boosted = partial(Learned, "boosted", boosted)
make_thompson = partial(Learned, "thompson", logistic, thompson=True)
