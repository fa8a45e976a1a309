"""Adaptive: the paper's auditor, networks that learn from every score where the failures are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from groundfault.base.threads import one_thread
from groundfault.errors import PlanError
from groundfault.sequential.policies import History, Query
from groundfault.sequential.policies.features import Cache, rest_of_groups
from groundfault.sequential.policies.networks import Networks, train
from groundfault.sequential.policies.prelearned import lowest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Singles = NDArray[np.float32]

_WIDTHS, _EPOCHS, _MEMBERS, _LEAST_SCORES = (5, 10), (2, 4, 8, 16), 20, 2
_EXPLORE, _INSIST, _KEEP = 0.05, 0.5, 0.98
_SURE = 1e-6


@dataclass(frozen=True)
class Adaptive:
    """Claim what an ensemble of networks predicts to be worst, if that is below the threshold;
    otherwise explore.

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
    _kept: dict[str, _Standing] = field(default_factory=dict, init=False, repr=False, compare=False)
    _features: Cache = field(default_factory=Cache, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.variant not in ("", "paper"):
            raise PlanError(
                f"the policy adaptive:{self.variant} is not there; it is adaptive or adaptive:paper"
            )

    @property
    def name(self) -> str:
        """``adaptive`` or ``adaptive:paper``."""
        return f"adaptive:{self.variant}" if self.variant else "adaptive"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """The worst that is predicted, or a place to learn more."""
        mine = self.variant == ""
        wander, insist = mine and rng.random() < _EXPLORE, mine and rng.random() < _INSIST
        with one_thread():
            predicted = self._predicted(history)
        if history.anywhere:
            return _cases(history, predicted, wander, insist)
        return _group(history, predicted, wander, insist, rng)

    def _predicted(self, history: History) -> Floats:
        """Of each case by each network: float64, shape (20, N). Worked out from where the last
        history left off.
        """
        known = ~np.isnan(history.scores)
        asked, scores = history.asked[known], history.scores[known].astype(np.float32)
        inputs = self._features.of(history).inputs
        standing = self._kept.get("last")
        # what is kept only saves time: from the first score on, the same answer is worked out to
        # the last bit
        if standing is None or not standing.leads_to(inputs, asked, scores):
            standing = _Standing(inputs)
        for case, score in zip(
            asked[len(standing.asked) :], scores[len(standing.asked) :], strict=True
        ):
            standing = standing.after(case, score)
        self._kept["last"] = standing
        return (
            standing.predict() if standing.trained else np.full((1, len(inputs)), history.threshold)
        )


def _cases(history: History, predicted: Floats, wander: bool, insist: bool) -> Query | None:
    among = np.flatnonzero(history.offered)
    if len(among) < max(1, history.least):
        return None
    if wander:
        return Query(items=history.offered)
    mean = predicted.mean(axis=0)
    if insist or np.sum(mean[among] <= history.threshold) >= history.least:
        return lowest(history, mean)
    bound = (mean - predicted.std(axis=0))[among]
    half = np.zeros_like(history.offered)
    half[among[bound <= np.median(bound)]] = True
    return Query(items=half if half.sum() >= history.least else history.offered)


def _group(
    history: History, predicted: Floats, wander: bool, insist: bool, rng: np.random.Generator
) -> Query | None:
    useful, means = rest_of_groups(history, predicted)
    if not len(useful):
        return None
    if wander:
        return Query(history.groups[int(rng.choice(useful))])
    short = means.mean(axis=0) - history.needed[useful]
    if insist or short.min() <= 0:
        return Query(history.groups[useful[short.argmin()]], claim=True)
    bound = short - means.std(axis=0)
    return Query(history.groups[int(rng.choice(useful[bound <= np.median(bound)]))])


@dataclass(frozen=True, eq=False)
class _Standing:
    """Networks trained on the scores so far, and how well each setting has foretold them.

    Attributes
    ----------
    inputs : float32 array, shape (N, D)
    asked, scores : arrays, shape (n,)
    trained : tuple of Networks, one for each number of epochs
    loss : float64 array, shape (4, 2)
        Running loss of each number of epochs and each width.
    """

    inputs: Singles
    asked: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    scores: Singles = field(default_factory=lambda: np.empty(0, dtype=np.float32))
    trained: tuple[Networks, ...] = ()
    loss: Floats = field(default_factory=lambda: np.zeros((len(_EPOCHS), len(_WIDTHS))))

    def leads_to(self, inputs: Singles, asked: NDArray[np.intp], scores: Singles) -> bool:
        """Whether these scores begin with those that this is trained on."""
        told = len(self.asked)
        same = np.array_equal(asked[:told], self.asked) and np.array_equal(
            scores[:told], self.scores
        )
        return inputs is self.inputs and same

    def after(self, case: np.intp, score: np.float32) -> _Standing:
        """After one more score."""
        asked, scores = np.append(self.asked, case), np.append(self.scores, score)
        told = replace(self, asked=asked, scores=scores, loss=self._loss(case, float(score)))
        if len(asked) < _LEAST_SCORES:
            return told
        trained = train(
            self.inputs[asked], scores, widths=_WIDTHS, epochs=_EPOCHS, members=_MEMBERS
        )
        return replace(told, trained=trained)

    def _loss(self, case: np.intp, score: float) -> Floats:
        if not self.trained:
            return self.loss
        row = self.inputs[[case]]
        foretold = np.array(
            [nets.predict(row).mean(axis=(1, 2)) for nets in self.trained], dtype=np.float64
        )
        chance = foretold.clip(_SURE, 1 - _SURE)
        likelihood = score * np.log(chance) + (1 - score) * np.log(1 - chance)
        return np.asarray((_KEEP - 1) * likelihood + _KEEP * self.loss)

    def predict(self) -> Floats:
        """Of each case by each network of the setting with the least loss: float64, shape (20,
        N).
        """
        stage, width = np.unravel_index(self.loss.argmin(), self.loss.shape)
        return np.asarray(self.trained[stage].predict(self.inputs)[width], dtype=np.float64)
