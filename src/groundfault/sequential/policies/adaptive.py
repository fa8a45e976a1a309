"""Adaptive: the paper's auditor, networks that learn from every score where the failures are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from groundfault.base.arrays import Floats, Places
from groundfault.base.long_work import one_thread
from groundfault.errors import PlanError
from groundfault.sequential.policies import History, Query
from groundfault.sequential.policies.learned import Cache, claim_lowest, predict_group_rests

Singles = NDArray[np.float32]

# Adam and its batches as in the reference implementation of the paper; see `train`
_RATE, _DECAY, _DECAY_SQUARES, _TINY = 0.01, 0.9, 0.999, 1e-8
_LARGEST_BATCH = 32  # of that implementation
_WEIGHTS, _ORDERS = 1, 2  # streams of random numbers
_WIDE = 100  # from here on one product for all networks takes a third of the time, with equal bits


@dataclass(frozen=True, eq=False)
class Networks:
    """K networks of one hidden ReLU layer for each width, at one length of training.

    Attributes
    ----------
    widths : tuple of int
        H is their sum.
    hidden : float32 array, shape (K, D + 1, H)
        Weights of the hidden units, their bias last.
    out : float32 array, shape (K, H)
    bias : float32 array, shape (K, W)
        Of the output, one a width.
    """

    widths: tuple[int, ...]
    hidden: Singles
    out: Singles
    bias: Singles

    def predict(self, features: Singles) -> Singles:
        """Return the probability of a pass, of each case by each network: float32, shape (W, K,
        n).
        """
        inputs = self.hidden[:, :-1]
        if len(features) < _WIDE:
            units = features @ inputs
        else:
            flat = features @ np.moveaxis(inputs, 1, 0).reshape(features.shape[1], -1)
            units = np.moveaxis(flat.reshape(len(features), *self.out.shape), 1, 0)
        units += self.hidden[:, -1:]
        np.maximum(units, 0, out=units)
        return np.moveaxis(_sigmoid(self._total(units)), 2, 0)

    def _total(self, units: Singles) -> Singles:
        starts = np.cumsum((0, *self.widths[:-1]))
        return np.add.reduceat(units * self.out[:, None], starts, axis=2) + self.bias[:, None]


def train(
    features: Singles,
    scores: Singles,
    *,
    widths: Sequence[int],
    epochs: Sequence[int],
    members: int,
    seed: int = 0,
) -> tuple[Networks, ...]:
    """Train ``members`` networks of each width, kept after each number of epochs.

    Networks of fewer epochs are an earlier stage of those with more: they start from the same
    weights and see the same batches, so each is trained once.

    Parameters
    ----------
    features : float32 array, shape (n, D)
    scores : float32 array, shape (n,)
        In [0, 1].
    widths, epochs : sequence of int
        Epochs in increasing order.
    members : int
    seed : int
        Seed of the first weights and of the order of cases, independent of n.

    Returns
    -------
    tuple of Networks, one for each number of epochs

    Notes
    -----
    Mean cross-entropy, Adam at rate .01, batches of min(32, n // 2) + 1 cases in an order of its
    own for each member, weights drawn uniformly within one over the root of the number of inputs:
    as in the reference implementation of https://doi.org/10.48550/arXiv.2605.07002."""
    count, stages = len(features), []
    rows = np.concatenate([features, np.ones((count, 1), dtype=np.float32)], axis=1)
    nets = _begin(rows.shape[1], tuple(widths), members, seed)
    parts = (nets.hidden, nets.out, nets.bias)
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in parts]
    shuffles = np.random.default_rng([seed, _ORDERS, count])
    size, step = min(_LARGEST_BATCH, count // 2) + 1, 0
    for epoch in range(1, epochs[-1] + 1):
        order = shuffles.permuted(np.tile(np.arange(count), (members, 1)), axis=1)
        for start in range(0, count, size):
            batch, step = order[:, start : start + size], step + 1
            for part, gradient, moment in zip(
                parts, _gradients(nets, rows[batch], scores[batch]), moments, strict=True
            ):
                _adam(part, gradient, moment, step)
        if epoch in epochs:
            stages.append(Networks(nets.widths, *(part.copy() for part in parts)))
    return tuple(stages)


def _begin(inputs: int, widths: tuple[int, ...], members: int, seed: int) -> Networks:
    """Return weights before training; ``inputs`` counts the constant."""
    rng, total = np.random.default_rng([seed, _WEIGHTS]), sum(widths)
    hidden = rng.uniform(-1, 1, (members, inputs, total)) / np.sqrt(inputs - 1)
    fan = np.sqrt(np.repeat(widths, widths))
    out = rng.uniform(-1, 1, (members, total)) / fan
    bias = rng.uniform(-1, 1, (members, len(widths))) / np.sqrt(widths)
    return Networks(widths, *(array.astype(np.float32) for array in (hidden, out, bias)))


def _gradients(nets: Networks, rows: Singles, scores: Singles) -> tuple[Singles, Singles, Singles]:
    """Return the gradients of a batch's mean cross-entropy (K, b, D + 1): hidden, out, bias."""
    units = rows @ nets.hidden
    active = units > 0
    units *= active
    wrong = _sigmoid(nets._total(units))
    wrong -= scores[:, :, None]
    wrong /= np.float32(scores.shape[1])
    back = np.repeat(wrong, nets.widths, axis=2)
    out = np.einsum("kbh,kbh->kh", back, units)
    back *= nets.out[:, None]
    back *= active
    return rows.transpose(0, 2, 1) @ back, out, wrong.sum(axis=1)


def _adam(part: Singles, gradient: Singles, moments: tuple[Singles, Singles], step: int) -> None:
    """Take one step of Adam, in place."""
    # both corrections for the start at zero, in one factor and in the guard against division by
    # zero
    later = np.sqrt(1 - _DECAY_SQUARES**step)
    guard, rate = _TINY * later, _RATE * later / (1 - _DECAY**step)
    numbers = (_DECAY, 1 - _DECAY, _DECAY_SQUARES, 1 - _DECAY_SQUARES, guard, rate)
    flat = map(np.ravel, (part, gradient, *moments))
    _compile_pass()(*flat, tuple(map(np.float32, numbers)))


def _pass(
    part: Singles, gradient: Singles, mean: Singles, squares: Singles, numbers: tuple[Any, ...]
) -> None:  # pragma: no cover - compiled
    """Take a step of Adam in one pass over flat arrays, in place."""
    keep, new, keep_squares, new_squares, guard, rate = numbers
    for i in range(len(part)):
        mean[i] = mean[i] * keep + gradient[i] * new
        squares[i] = squares[i] * keep_squares + gradient[i] * gradient[i] * new_squares
        part[i] -= mean[i] / (np.sqrt(squares[i]) + guard) * rate


@cache
def _compile_pass() -> Any:
    """Compile `_pass` when networks are first trained: loading numba takes .3 s."""
    from numba import njit

    # error_model numpy: without checks for zero the loop vectorises
    return njit(cache=True, error_model="numpy")(_pass)


def _sigmoid(x: Singles) -> Singles:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -60, 60))), dtype=np.float32)


# the ensemble and the 2 % that its loss forgets are the paper's; two scores make a batch
_WIDTHS, _EPOCHS, _MEMBERS, _KEEP, _MIN_SCORES = (5, 10), (2, 4, 8, 16), 20, 0.98, 2
# ours: see `Adaptive` on what one round in twenty, and every other one, are for
_EXPLORE, _INSIST = 0.05, 0.5
_SURE = 1e-6  # keeps a cross-entropy finite


@dataclass(frozen=True)
class Adaptive:
    """Claim what networks predict to be worst, if that is below the threshold; else explore.

    After every score, 20 networks of one hidden layer are trained anew for each of {5, 10} hidden
    units and {2, 4, 8, 16} epochs; the setting that has foretold past scores best is used, by a
    cross-entropy that forgets 2 % a score. In one round of twenty a place is drawn at random, and
    nothing is claimed. Otherwise, with mu and sd the mean and the standard deviation of the
    ensemble's predictions:

    - if the group of lowest mu, compared with what the group needs, is short of it, that group is
      claimed;
    - if none is, then in every other round, at random, the lowest is claimed all the same, so that
      a sound model can pass; in the others one is drawn from the half with the lowest mu - sd, and
      nothing is claimed.

    Where any set of cases may be named, the same is said of cases: the lowest share epsilon of
    those left, and the half of them with the lowest bound.

    Parameters
    ----------
    variant : {"", "paper"}
        ``paper`` is the reference implementation, which neither draws at random nor insists.

    Raises
    ------
    PlanError
        If the variant is another.

    Notes
    -----
    The networks read the embedding, scaled to the length of those in the paper, and membership of
    the groups, which there are words of the text that is embedded. In groups, cases count with
    their rest that is not yet labelled. The networks' first weights are the same in every audit;
    the reference draws new ones for each, too.

    References
    ----------
    https://doi.org/10.48550/arXiv.2605.07002, appendix C, and its code.
    """

    variant: str = ""
    warm_up: ClassVar[int] = 2
    _memory: dict[str, _EnsembleState] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _features: Cache = field(default_factory=Cache, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.variant not in ("", "paper"):
            raise PlanError(
                f"the policy adaptive:{self.variant} is not there; it is adaptive or adaptive:paper"
            )

    @property
    def name(self) -> str:
        """Return ``adaptive`` or ``adaptive:paper``."""
        return f"adaptive:{self.variant}" if self.variant else "adaptive"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """Return the worst that is predicted, or a place to learn more."""
        mine = self.variant == ""
        # both draws come first, so that the stream of the others does not depend on their outcome
        wander, insist = mine and rng.random() < _EXPLORE, mine and rng.random() < _INSIST
        with one_thread():
            predictions = self._predict(history)
        if history.anywhere:
            return _query_cases(history, predictions, wander, insist)
        features = self._features.of(history)
        rests = predict_group_rests(history, features, predictions[:, features.cells.first])
        return _query_group(history, *rests, wander, insist, rng)

    def _predict(self, history: History) -> Floats:
        """Return the predictions of each network for each case, from where the last history ended:
        (20,
        N).
        """
        has_score = ~np.isnan(history.scores)
        positions = history.positions[has_score]
        scores = history.scores[has_score].astype(np.float32)
        inputs = self._features.of(history).inputs
        state = self._memory.get("last")
        # what is kept only saves time: from the first score on, the same answer is worked out to
        # the last bit
        if state is None or not state.leads_to(inputs, positions, scores):
            state = _EnsembleState(inputs)
        old = len(state.positions)
        for case, score in zip(positions[old:], scores[old:], strict=True):
            state = state.after(case, score)
        self._memory["last"] = state
        return state.predict() if state.stages else np.full((1, len(inputs)), history.threshold)


def _query_cases(history: History, predictions: Floats, wander: bool, insist: bool) -> Query | None:
    among = np.flatnonzero(history.available)
    if len(among) < max(1, history.min_eligible):
        return None
    if wander:
        return Query(items=history.available)
    mean = predictions.mean(axis=0)
    if insist or np.sum(mean[among] <= history.threshold) >= history.min_eligible:
        return claim_lowest(history, mean)
    # nothing looks bad: look where predictions are low or in doubt, at the lower half by bound
    lower_bounds = (mean - predictions.std(axis=0))[among]
    half = np.zeros_like(history.available)
    half[among[lower_bounds <= np.median(lower_bounds)]] = True
    return Query(items=half if half.sum() >= history.min_eligible else history.available)


def _query_group(
    history: History,
    useful: Places,
    means: Floats,
    wander: bool,
    insist: bool,
    rng: np.random.Generator,
) -> Query | None:
    if not len(useful):
        return None
    if wander:
        return Query(history.groups[int(rng.choice(useful))])
    short = means.mean(axis=0) - history.rest_targets[useful]
    if insist or short.min() <= 0:
        return Query(history.groups[useful[short.argmin()]], claim=True)
    lower_bounds = short - means.std(axis=0)
    return Query(history.groups[int(rng.choice(useful[lower_bounds <= np.median(lower_bounds)]))])


@dataclass(frozen=True, eq=False)
class _EnsembleState:
    """Networks trained on the scores so far, and how well each setting has foretold them.

    Attributes
    ----------
    inputs : float32 array, shape (N, D)
    positions, scores : arrays, shape (n,)
    stages : tuple of Networks, one for each number of epochs
    loss : float64 array, shape (4, 2)
        Running loss of each number of epochs and each width.
    """

    inputs: Singles
    positions: Places = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    scores: Singles = field(default_factory=lambda: np.empty(0, dtype=np.float32))
    stages: tuple[Networks, ...] = ()
    loss: Floats = field(default_factory=lambda: np.zeros((len(_EPOCHS), len(_WIDTHS))))

    def leads_to(self, inputs: Singles, positions: Places, scores: Singles) -> bool:
        """Return whether these scores begin with the scores it was trained on."""
        count = len(self.positions)
        same = np.array_equal(positions[:count], self.positions) and np.array_equal(
            scores[:count], self.scores
        )
        return inputs is self.inputs and same

    def after(self, case: np.intp, score: np.float32) -> _EnsembleState:
        """Return the state after one more score."""
        positions, scores = np.append(self.positions, case), np.append(self.scores, score)
        loss = self._loss(case, float(score))
        state = replace(self, positions=positions, scores=scores, loss=loss)
        if len(positions) < _MIN_SCORES:
            return state
        inputs = self.inputs[positions]
        stages = train(inputs, scores, widths=_WIDTHS, epochs=_EPOCHS, members=_MEMBERS)
        return replace(state, stages=stages)

    def _loss(self, case: np.intp, score: float) -> Floats:
        if not self.stages:
            return self.loss
        # the loss is of predictions made before the score: it chooses among settings without a
        # validation set
        row = self.inputs[[case]]
        predictions = np.array(
            [nets.predict(row).mean(axis=(1, 2)) for nets in self.stages], dtype=np.float64
        )
        chance = predictions.clip(_SURE, 1 - _SURE)
        likelihood = score * np.log(chance) + (1 - score) * np.log(1 - chance)
        return np.asarray((_KEEP - 1) * likelihood + _KEEP * self.loss)

    def predict(self) -> Floats:
        """Return the predictions of the setting with the least loss: float64, shape (20, N)."""
        stage, width = np.unravel_index(self.loss.argmin(), self.loss.shape)
        return np.asarray(self.stages[stage].predict(self.inputs)[width], dtype=np.float64)
