"""Item response: one ability a model, one or two parameters an item, fitted to a matrix with holes.

The chance that a model passes an item is ``1 / (1 + exp(-(slope_i * ability_j + intercept_i)))``.
Abilities have mean 0 and standard deviation 1 over the models fitted; log slopes and intercepts are
drawn to their own means by normal penalties, because a few dozen models say little about one item.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from groundfault_lab.stats.mixture import responsibilities

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

GRID: Floats = np.linspace(-5.0, 5.0, 161)
"""Abilities at which posteriors are held; a spread below its step of 0.06, of thousands of answers,
is not resolved.
"""

FLOOR = 0.05
"""Least variance that a residual is divided by: one lucky answer must not outweigh a whole row."""

# Newton's steps are cut to this, since far from the optimum they overshoot
_MAX_STEP = 1.0
# an item that separates the models perfectly has no finite slope
_LOG_SLOPES = (-3.0, 3.0)


@dataclass(frozen=True)
class ItemResponse:
    """A fitted item-response model.

    Attributes
    ----------
    slope : float64 array, shape (n,)
        How sharply each item tells abilities apart; above 0, and one number throughout with one
        parameter.
    intercept : float64 array, shape (n,)
        Log odds of passing at ability 0; the difficulty is ``-intercept / slope``.
    ability : float64 array, shape (m,)
        Of the models fitted: mean 0, standard deviation 1.
    parameters : {1, 2}
    penalty : pair of float
        Standard deviations that log slopes and intercepts are penalised with.
    centre : pair of float
        What log slopes and intercepts are drawn to.
    iterations : int
    converged : bool
    """

    slope: Floats
    intercept: Floats
    ability: Floats
    parameters: Literal[1, 2] = 2
    penalty: tuple[float, float] = (0.5, 2.0)
    centre: tuple[float, float] = (0.0, 0.0)
    iterations: int = 0
    converged: bool = False

    def take(self, items: NDArray[np.intp] | NDArray[np.bool_]) -> ItemResponse:
        """Return the same model of some of the items."""
        return replace(self, slope=self.slope[items], intercept=self.intercept[items])

    def probability(self, ability: Floats | None = None) -> Floats:
        """Chance of a pass, shape (n, k), at some abilities; by default the fitted ones."""
        from scipy.special import expit

        at = self.ability if ability is None else np.asarray(ability, dtype=np.float64)
        return np.asarray(expit(np.multiply.outer(self.slope, at) + self.intercept[:, None]))

    def information(self, ability: Floats) -> Floats:
        """Fisher information of one answer to each item about each ability: shape (n, k)."""
        p = self.probability(ability)
        return np.asarray(self.slope[:, None] ** 2 * p * (1 - p))


def fit(
    passes: NDArray[np.integer[Any]],
    trials: NDArray[np.integer[Any]],
    *,
    parameters: Literal[1, 2] = 2,
    penalty: tuple[float, float] = (0.5, 2.0),
    tolerance: float = 1e-4,
    max_iterations: int = 200,
) -> ItemResponse:
    """Fit abilities and items together, by penalised likelihood.

    Parameters
    ----------
    passes, trials : int arrays, shape (n, m)
        Passes and scored tries of each item and model; a hole has no tries.
    parameters : {1, 2}
        One: all items have one slope, fitted. Two: each has its own.
    penalty : pair of float
        Standard deviations of log slopes and of intercepts about their means.
    tolerance : float
        Stop when no ability, and no item by root mean square, moves by more.
    max_iterations : int

    Notes
    -----
    Alternating Newton steps with Fisher's information, abilities standardised after each.
    Deterministic. Abilities are estimated jointly with the items, which is consistent only as items
    grow in number; slopes of single items are biased to the mean slope by design. Rasch 1960;
    Birnbaum 1968; Mislevy 1986, doi:10.1007/BF02293979 (penalties)."""
    right, tries = _counts(passes), _counts(trials)
    state = replace(_start(right, tries), parameters=parameters, penalty=penalty, converged=False)
    for iteration in range(1, max_iterations + 1):
        # alternating steps, standardised each time: scale and origin of ability are not identified
        step = _standardise(_ability_step(right, tries, state))
        step = _item_step(right, tries, _common_step(right, tries, step))
        change = max(
            float(np.abs(step.ability - state.ability).max(initial=0.0)),
            _rms(np.log(step.slope / state.slope)),
            _rms(step.intercept - state.intercept),
        )
        state = replace(step, iterations=iteration, converged=change < tolerance)
        if state.converged:
            break
    return state


def fit_items(
    passes: NDArray[np.integer[Any]],
    trials: NDArray[np.integer[Any]],
    like: ItemResponse,
    *,
    max_iterations: int = 30,
) -> ItemResponse:
    """Parameters of new items, from the answers of the models that ``like`` was fitted to.

    Parameters
    ----------
    passes, trials : int arrays, shape (k, m)
    like : ItemResponse
        Whose abilities, penalties and centres are kept.
    """
    right, tries = _counts(passes), _counts(trials)
    # a new item starts at the typical item
    slope, intercept = (
        np.full(len(passes), np.exp(like.centre[0])),
        np.full(len(passes), like.centre[1]),
    )
    state = replace(like, slope=slope, intercept=intercept)
    for _ in range(max_iterations):
        state = _item_step(right, tries, state, recentre=False)
    return state


def compute_residuals(
    passes: NDArray[np.integer[Any]], trials: NDArray[np.integer[Any]], model: ItemResponse
) -> Floats:
    """Passes minus expected passes over their standard deviation: shape (n, m).

    A hole holds 0, which is what a residual is expected to be. The variance of one try is at least
    `FLOOR`."""
    p = model.probability()
    scale = np.sqrt(np.maximum(trials, 1) * np.maximum(p * (1 - p), FLOOR))
    return np.asarray((passes - trials * p) / scale)


def compute_curves(model: ItemResponse) -> Floats:
    """Chance of a pass of each item at each ability of `GRID`: shape (n, len(GRID))."""
    return model.probability(GRID)


def compute_log_posterior(
    passes: NDArray[np.integer[Any]], trials: NDArray[np.integer[Any]], curve: Floats
) -> Floats:
    """Log density of the ability of new models on `GRID`, up to a constant.

    Parameters
    ----------
    passes, trials : int arrays, shape (n, k)
        Of k new models; items they were not asked have no tries.
    curve : float64 array, shape (n, len(GRID))
        From `curves`.

    Returns
    -------
    float64 array, shape (k, len(GRID))
        The prior, a standard normal, included: it stands for the models fitted.
    """
    has_trials = (trials > 0).any(axis=1)
    right = passes[has_trials].T.astype(np.float64)
    wrong = trials[has_trials].T - right
    p = np.clip(curve[has_trials], 1e-12, 1 - 1e-12)
    return np.asarray(right @ np.log(p) + wrong @ np.log1p(-p) - GRID**2 / 2)


def compute_moments(log_density: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of densities on `GRID`: two arrays of shape (k,)."""
    # the largest first taken off: log densities of many answers underflow
    weight = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = weight @ GRID
    return mean, np.sqrt(np.maximum(weight @ GRID**2 - mean**2, 0.0))


def _counts(values: NDArray[np.integer[Any]]) -> Counts:
    return np.ascontiguousarray(values, dtype=np.int64)


def _start(passes: Counts, trials: Counts) -> ItemResponse:
    tries = np.maximum(trials.sum(axis=0), 1)
    # half a pass and half a failure more: the logit of a perfect score is infinite
    rate = (passes.sum(axis=0) + 0.5) / (tries + 1)
    item = (passes.sum(axis=1) + 0.5) / (trials.sum(axis=1) + 1)
    slope, intercept = np.ones(len(passes)), np.log(item / (1 - item))
    centre = (0.0, float(intercept.mean()) if len(intercept) else 0.0)
    return _standardise(ItemResponse(slope, intercept, np.log(rate / (1 - rate)), centre=centre))


def _standardise(model: ItemResponse) -> ItemResponse:
    """Give abilities mean 0 and standard deviation 1, and leave the chances as they are."""
    mean, deviation = model.ability.mean(), model.ability.std()
    deviation = deviation if deviation > 1e-8 else 1.0
    return replace(
        model,
        ability=(model.ability - mean) / deviation,
        slope=model.slope * deviation,
        intercept=model.intercept + model.slope * mean,
        centre=(model.centre[0] + float(np.log(deviation)), model.centre[1]),
    )


def _ability_step(passes: Counts, trials: Counts, model: ItemResponse) -> ItemResponse:
    gradient, weight = _ability_sums(passes, trials, model.slope, model.intercept, model.ability)
    # + 1 and - ability: the standard normal prior, which also keeps perfect scores finite
    step = (gradient - model.ability) / (weight + 1)
    return replace(model, ability=model.ability + np.clip(step, -_MAX_STEP, _MAX_STEP))


def _common_step(passes: Counts, trials: Counts, model: ItemResponse) -> ItemResponse:
    """Move all log slopes together, which single items, held by their penalty, would do slowly."""
    sums = _item_sums(passes, trials, model.slope, model.intercept, model.ability).sum(axis=0)
    shift = float(np.clip(sums[0] / max(sums[2], 1e-12), -_MAX_STEP, _MAX_STEP))
    log_slope = np.clip(np.log(model.slope) + shift, *_LOG_SLOPES)
    return replace(
        model, slope=np.exp(log_slope), centre=(model.centre[0] + shift, model.centre[1])
    )


def _item_step(
    passes: Counts, trials: Counts, model: ItemResponse, *, recentre: bool = True
) -> ItemResponse:
    sums = _item_sums(passes, trials, model.slope, model.intercept, model.ability)
    log_slope, (slope_sd, intercept_sd) = np.log(model.slope), model.penalty
    g_a = sums[:, 0] - (log_slope - model.centre[0]) / slope_sd**2
    g_c = sums[:, 1] - (model.intercept - model.centre[1]) / intercept_sd**2
    # expected instead of observed information: it is positive definite everywhere (Fisher scoring)
    h_aa, h_cc, h_ac = sums[:, 2] + 1 / slope_sd**2, sums[:, 4] + 1 / intercept_sd**2, sums[:, 3]
    if model.parameters == 1:
        step_a, step_c = np.zeros(len(g_a)), g_c / h_cc
    else:
        determinant = h_aa * h_cc - h_ac**2
        step_a = (h_cc * g_a - h_ac * g_c) / determinant
        step_c = (h_aa * g_c - h_ac * g_a) / determinant
    log_slope = np.clip(log_slope + np.clip(step_a, -_MAX_STEP, _MAX_STEP), *_LOG_SLOPES)
    intercept = model.intercept + np.clip(step_c, -_MAX_STEP, _MAX_STEP)
    step = replace(model, slope=np.exp(log_slope), intercept=intercept)
    if not recentre or not len(intercept):
        return step
    return replace(step, centre=(float(log_slope.mean()), float(intercept.mean())))


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


@njit(cache=True)
def _ability_sums(
    passes: Counts, trials: Counts, slope: Floats, intercept: Floats, ability: Floats
) -> object:
    n, m = passes.shape
    gradient, weight = np.zeros(m), np.zeros(m)
    for i in range(n):
        for j in range(m):
            if trials[i, j]:
                # one pass over the answers: an n x m array of chances would not fit the cache
                p = 1.0 / (1.0 + np.exp(-(slope[i] * ability[j] + intercept[i])))
                gradient[j] += slope[i] * (passes[i, j] - trials[i, j] * p)
                weight[j] += slope[i] ** 2 * trials[i, j] * p * (1 - p)
    return gradient, weight


@njit(cache=True)
def _item_sums(
    passes: Counts, trials: Counts, slope: Floats, intercept: Floats, ability: Floats
) -> object:
    """Gradient and information in log slope and intercept: columns g_a, g_c, h_aa, h_ac, h_cc."""
    n, m = passes.shape
    out = np.zeros((n, 5))
    # the chances first: with the call of exp in it, the loop of the sums would not be vectorised
    p = np.empty(m)
    for i in range(n):
        for j in range(m):
            p[j] = 1.0 / (1.0 + np.exp(-(slope[i] * ability[j] + intercept[i])))
        g_a = g_c = h_aa = h_ac = h_cc = 0.0
        for j in range(m):
            error = passes[i, j] - trials[i, j] * p[j]
            weight = trials[i, j] * p[j] * (1 - p[j])
            lever = slope[i] * ability[j]
            g_a += error * lever
            g_c += error
            h_aa += weight * lever * lever
            h_ac += weight * lever
            h_cc += weight
        out[i] = (g_a, g_c, h_aa, h_ac, h_cc)
    return out


Integers = NDArray[np.integer[Any]]

# wide enough for the items of real benchmarks; shares go to 0 where there are none
_SLOPES = np.exp(np.linspace(-2.0, 1.5, 8))
_INTERCEPTS = np.linspace(-6.0, 6.0, 25)


@dataclass(frozen=True)
class OneAbility:
    """Abilities, and what each item may be.

    Attributes
    ----------
    ability : float64 array, shape (m,)
    curve : float64 array, shape (G, m)
        Chance of a pass of each kind of item, by model.
    share : float64 array, shape (G,)
        Of each kind in the population.
    posterior : float64 array, shape (n, G)
        Cumulative chances that an item is of each kind, given its answers.
    trials : int64 array, shape (n, m)
    """

    ability: Floats
    curve: Floats
    share: Floats
    posterior: Floats
    trials: Counts

    @classmethod
    def fit(
        cls,
        passes: Integers,
        trials: Integers,
        *,
        tolerance: float = 1e-6,
        max_iterations: int = 300,
    ) -> OneAbility:
        """Fit by marginal likelihood: EM over a grid of items with free shares.

        Parameters
        ----------
        passes, trials : int arrays, shape (n, m)
            All items, also those that every model passed or failed.
        tolerance : float
            Stop when the mean log-likelihood of an item gains less.
        max_iterations : int

        Notes
        -----
        As items grow in number, abilities and shares are consistent however few the models are, if
        a pass is logistic in one ability. Bock and Aitkin 1981, doi:10.1007/BF02293801, with items
        and persons exchanged."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        slope, intercept = (a.ravel() for a in np.meshgrid(_SLOPES, _INTERCEPTS, indexing="ij"))
        right, tries = np.asarray(passes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
        first = fit(passes, trials)
        ability, share, before = first.ability, _share(first, slope, intercept), -np.inf
        with threadpool_limits(1):  # many small products: a second thread waits more than it works
            for _ in range(max_iterations):
                items = ItemResponse(slope, intercept, ability)
                weight, likelihood = _posterior(right, tries, items.probability(), share)
                share = weight.mean(axis=0)
                ability = _step_abilities(items, weight.T @ right, weight.T @ tries)
                if likelihood - before < tolerance:
                    break
                before = likelihood
        curve = ItemResponse(slope, intercept, ability).probability()
        posterior = np.cumsum(_posterior(right, tries, curve, share)[0], axis=1)
        return cls(ability, curve, share, posterior, np.asarray(trials, dtype=np.int64))

    def draw(self, rng: np.random.Generator) -> Counts:
        """Passes of another world of the same models and trials: int64, shape (n, m)."""
        # inverse of the cumulative posterior: a kind for each item, as likely as its answers make
        # it
        kind = (rng.random((len(self.posterior), 1)) > self.posterior).sum(axis=1)
        # the last cumulative chance may be just below 1 by rounding
        p = self.curve[np.minimum(kind, len(self.curve) - 1)]
        if self.trials.max(initial=0) <= 1:
            return np.asarray((rng.random(p.shape) < p) & (self.trials > 0), dtype=np.int64)
        return np.asarray(rng.binomial(self.trials, p), dtype=np.int64)


def _share(first: ItemResponse, slope: Floats, intercept: Floats) -> Floats:
    """Shares to start from: normal about the centre of a first fit, and wider."""
    deviation = max(1.0, float(first.intercept.std()))
    away = ((np.log(slope) - first.centre[0]) / 0.6) ** 2 + (
        (intercept - first.centre[1]) / deviation
    ) ** 2
    # a share of 0 would stay 0 for ever
    weight = np.exp(-away / 2) + 1e-6
    return np.asarray(weight / weight.sum())


def _posterior(right: Floats, tries: Floats, curve: Floats, share: Floats) -> tuple[Floats, float]:
    """Chances of each kind for each item, shape (n, G), and the mean log-likelihood."""
    p = np.clip(curve, 1e-12, 1 - 1e-12)
    odds, wrong = np.log(p / (1 - p)), np.log1p(-p)
    weight = right @ odds.T
    weight += tries @ wrong.T
    weight += np.log(np.maximum(share, 1e-300))
    return weight, float(responsibilities(weight).mean())


def _step_abilities(items: ItemResponse, right: Floats, tries: Floats) -> Floats:
    """Abilities after a Newton step, standardised."""
    p, slope = items.probability(), items.slope[:, None]
    # a standard normal prior of abilities, hence - ability here and + 1 below: nobody runs off to
    # infinity
    gradient = (slope * (right - tries * p)).sum(axis=0) - items.ability
    weight = (slope**2 * tries * p * (1 - p)).sum(axis=0) + 1
    ability = items.ability + np.clip(gradient / weight, -1.0, 1.0)
    # standardised, since only slope * ability is identified
    return np.asarray((ability - ability.mean()) / max(float(ability.std()), 1e-8))
