"""Bets: the ways of turning scores into evidence against a null, and their assumptions.

The null
    At each step, given everything before it, the expected score is at least the threshold (the
    *model's* null), or at most the threshold at every staked step from the burn-in ``m`` on (the
    *auditor's*).

The guarantee, the same for every bet
    If the null holds, ``P(e >= 1/alpha at any step) <= alpha`` (Ville's inequality), whatever the
    stopping rule.

Fixed beforehand
    The case, the threshold, every forecast and whether to stake are fixed before the score is seen,
    from the past alone. Scores lie in [0, 1]; they need be neither independent nor 0/1. The bet
    itself is chosen before the first score: trying several and keeping the best is not covered,
    averaging them is.

When the null of a *group* implies the null above
    A constant threshold: fresh draws from the group, or uniform draws with replacement, or the
    model asked anew each time. Uniform draws *without* replacement from a finite group: the
    threshold of each step must be `conditional_threshold`. Drawing by predicted score inside the
    group, or one hand-picked item: never.

==============  ==================================================================================
``lr``          likelihood ratio of one fixed alternative; a nonnegative supermartingale
``lr-ui``       the alternative is forecast by exponential weights over a grid, from past scores
                only; a nonnegative supermartingale, for any grid and learning rate (1: the uniform
                mixture)
``lr-mix``      average of ``lr`` over a grid with fixed weights; a nonnegative supermartingale
``lr-pred``     the alternative is the caller's forecast, which must not know the score; likewise
``agrapa``      Waudby-Smith and Ramdas's adaptive bet from past mean and variance, for scores other
                than 0/1; likewise
``sr-...``      Shiryaev-Roberts: shares of the wealth start at steps 1, 2, ... and are summed.
                Needs shares fixed beforehand that add up to at most 1. Expectation at most
                min(t, m)/m under uniform shares, at most 1 with the idle mass added. With shares of
                1 each it would be no e-process
``cusum-...``   the best start instead of the sum: below the ``sr-`` form at every step, hence
                covered by it
==============  ==================================================================================

``sr-`` and ``cusum-`` forms exist for the model's null only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints
from groundfault.errors import PlanError, require_word
from groundfault.stats import betting

Null = Literal["model", "auditor"]
Shares = Literal["uniform", "heavy-tailed"]
SOURCES = ("lr", "lr-ui", "lr-mix", "lr-pred", "agrapa")
BETS = tuple(start + source for start in ("", "sr-", "cusum-") for source in SOURCES)
"""Names of all bets; see the module for what each needs."""

_LOWEST_FORECAST = 0.05
"""Lower bound of ``-pred`` forecasts, as in the reference implementation."""


class Wealth(NamedTuple):
    """Where one bet stands, for N sequences side by side.

    Attributes
    ----------
    log_arms : (K, N) array
        Log wealth that is at stake, one row for each alternative that bets by itself.
    log_weights : (A, 1) or (A, N) array
        Log weights of the alternatives: learnt by ``lr-ui``, constant otherwise.
    moments : (3, N) array
        Count, sum and squares of past scores, which ``agrapa`` keeps.
    """

    log_arms: Floats
    log_weights: Floats
    moments: Floats


@dataclass(frozen=True)
class Bet:
    """One way to bet against a null.

    Parameters
    ----------
    name : str
        One of `BETS`.
    null : {"model", "auditor"}
        The model's null says that scores are at least the threshold, the auditor's that they are
        below it.
    alternative : float in (0, 1), optional
        Expected score if the null is wrong (``lr``): below the threshold for the model's null,
        above it otherwise.
    grid : sequence of float in (0, 1), optional
        Several alternatives (``-ui``, ``-mix``).
    eta : float >= 0
        Learning rate of ``-ui``.
    burn_in : int >= 1, optional
        The paper's m: the auditor's bets start at step m, and uniform shares of an ``sr-`` form are
        1/m on 1..m.
    shares : {"uniform", "heavy-tailed"}
        Shares of an ``sr-`` or ``cusum-`` form: 1/m on steps 1..m as in the paper, or 1/(t(t+1))
        without end.
    idle_mass : bool
        Add the share that has not started yet, which the paper leaves out: nothing is lost, and
        ``sr-`` becomes a martingale at the threshold.

    Raises
    ------
    PlanError
        If a name is unknown, a number is outside its range, or one that the bet needs is missing.
        Those it does not need are ignored.

    Notes
    -----
    Where a conditional threshold passes an alternative, that alternative rests until the threshold
    is back. The lower bound .05 of ``-pred`` forecasts (.95 for the auditor), the weights of
    ``-mix`` (1, 2, ..., K towards the model's threshold, one minus the alternative for the auditor)
    and the absence of an ``sr-`` form for the auditor are those of the reference implementation of
    https://doi.org/10.48550/arXiv.2605.07002."""

    name: str
    null: Null = "model"
    alternative: float | None = None
    grid: tuple[float, ...] = ()
    eta: float = 0.1
    burn_in: int | None = None
    shares: Shares = "uniform"
    idle_mass: bool = False

    def __post_init__(self) -> None:
        _check_names(self)
        _check_numbers(self)
        object.__setattr__(self, "grid", tuple(sorted(float(point) for point in self.grid)))
        for name, kind in (("alternative", float), ("burn_in", int)):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, kind(value))

    @cached_property
    def source(self) -> str:
        """Return where its alternative comes from: one of `SOURCES`."""
        return self.name.removeprefix("sr-").removeprefix("cusum-")

    @cached_property
    def starts(self) -> str:
        """Return when shares of the wealth start: ``once``, ``uniform`` or ``heavy-tailed``."""
        return "once" if self.name == self.source else self.shares

    @cached_property
    def alternatives(self) -> tuple[float, ...]:
        """Return the fixed alternatives; none for ``lr-pred`` and ``agrapa``."""
        if self.source == "lr" and self.alternative is not None:
            return (self.alternative,)
        return self.grid if self.source in ("lr-ui", "lr-mix") else ()

    def require_side(self, threshold: float) -> None:
        """Raise `PlanError` if an alternative lies on the null's side of a constant threshold."""
        below = self.null == "model"
        wrong = [a for a in self.alternatives if (a >= threshold if below else a <= threshold)]
        if wrong:
            raise PlanError(
                f"the alternative {wrong[0]:g} does not contradict the {self.null}'s null at "
                f"threshold={threshold:g}; "
                f"{self.name} needs alternatives {'below' if below else 'above'} the threshold"
            )

    def begin(self, sequences: int) -> Wealth:
        """Return the state before the first step."""
        weights = np.ones((max(1, len(self.alternatives)), 1))
        if self.source == "lr-mix":
            ranks = np.arange(1.0, len(self.grid) + 1)
            weights = (ranks if self.null == "model" else 1.0 - np.array(self.grid))[:, None]
        log_weights = np.log(weights / weights.sum())
        if self.source == "lr-ui":
            log_weights = np.repeat(log_weights, sequences, axis=1)
        arms = len(self.grid) if self.source == "lr-mix" else 1
        return Wealth(np.full((arms, sequences), -np.inf), log_weights, np.zeros((3, sequences)))

    def warm(self, wealth: Wealth, score: Floats, threshold: Floats) -> Wealth:
        """Let ``lr-ui`` and ``agrapa`` learn from a score that is not bet on."""
        after = self.advance(wealth, self.burn_in or 1, score, threshold, None, np.array([True]))
        return after._replace(log_arms=wealth.log_arms)

    def advance(
        self,
        wealth: Wealth,
        step: Ints | int,
        score: Floats,
        threshold: Floats,
        forecast: Floats | None,
        stake: Bools,
    ) -> Wealth:
        """Return the state after one more score; ``step`` counts from 1, of all sequences or of
        each. Nothing is checked here.
        """
        if self.null == "auditor":
            # A score of at most q is a failure of at least 1 - q: one set of formulas serves both
            # nulls.
            score, threshold = 1.0 - score, 1.0 - threshold
            forecast = None if forecast is None else 1.0 - forecast
            stake = stake & (step >= (self.burn_in or 1))
        # Shiryaev-Roberts: a share of the wealth starts at every step, so that a failure mode that
        # the policy reaches late is not paid for by early losses
        with np.errstate(divide="ignore"):
            log_start = np.log(betting.start_weight(step, self.starts, self.burn_in or 1))
        rule = "max" if self.name.startswith("cusum-") else "sum"
        factors = betting.factor(score, self._forecasts(wealth, threshold, forecast), threshold)
        log_weights, moments = wealth.log_weights, wealth.moments
        if self.source == "lr-ui":
            # the weights that bet on this score come from earlier scores; those it teaches are used
            # from the next one on
            mixture, new_weights = betting.weigh(log_weights, factors, self.eta)
            log_weights = new_weights if stake.all() else np.where(stake, new_weights, log_weights)
            factors = mixture[None]
        elif self.source == "agrapa":
            moments = np.where(stake, betting.observe(moments, score), moments)
        # beyond what any score can reach, the null is impossible and counting decides
        log_steps = np.where(betting.is_refuted(threshold), np.inf, np.log(factors))
        log_steps = log_steps if stake.all() else np.where(stake, log_steps, 0.0)
        log_arms = betting.accumulate(wealth.log_arms, log_steps, log_start, rule)
        return Wealth(log_arms, log_weights, moments)

    def log_e(self, wealth: Wealth, step: int) -> Floats:
        """Return the natural log of the e-value after ``step`` steps, (N,) array; 0 before the
        first.
        """
        arms = wealth.log_arms
        if step == 0:
            return np.zeros(arms.shape[1])
        log_e = betting.log_mean(arms, wealth.log_weights) if len(arms) > 1 else arms[0]
        # shares that have not started are money in hand, worth their face value
        idle = betting.idle_weight(step, self.starts, self.burn_in or 1) if self.idle_mass else 0.0
        return np.logaddexp(log_e, np.log(idle)) if idle > 0 else log_e

    def _forecasts(self, wealth: Wealth, threshold: Floats, forecast: Floats | None) -> Floats:
        if self.source == "agrapa":
            return betting.agrapa(wealth.moments, threshold)
        if forecast is not None and self.source == "lr-pred":
            return np.atleast_2d(np.maximum(forecast, _LOWEST_FORECAST))
        points = np.array(self.alternatives)[:, None]
        return points if self.null == "model" else 1.0 - points


def _check_names(bet: Bet) -> None:
    for value, choices, what in (
        (bet.name, BETS, "bet"),
        (bet.null, get_args(Null), "null"),
        (bet.shares, get_args(Shares), "shares"),
    ):
        require_word(what, value, choices)
    if bet.null == "auditor" and bet.name != bet.source:
        raise PlanError(
            f"bet={bet.name!r} exists for the model's null only; use {bet.source!r} for the "
            "auditor's"
        )


def _check_numbers(bet: Bet) -> None:
    if bet.source == "lr" and bet.alternative is None:
        raise PlanError(f"{bet.name} needs alternative=, the expected score if the null is wrong")
    if bet.source in ("lr-ui", "lr-mix") and not len(bet.grid):
        raise PlanError(
            f"{bet.name} needs grid=, the expected scores to consider if the null is wrong"
        )
    for point in (*bet.grid, *(() if bet.alternative is None else (bet.alternative,))):
        if not (is_number(point) and 0 < point < 1):
            raise PlanError(
                f"an alternative is {point!r}; alternatives lie strictly between 0 and 1"
            )
    if not (is_number(bet.eta) and 0 <= bet.eta < np.inf):
        raise PlanError(f"eta={bet.eta!r} must be a finite number, 0 or more")
    if bet.burn_in is None and (bet.null == "auditor" or bet.starts == "uniform"):
        raise PlanError(
            f"{bet.name} against the {bet.null}'s null needs burn_in=, a whole number of 1 or more"
        )
    if bet.burn_in is not None and not (
        is_number(bet.burn_in) and bet.burn_in >= 1 and bet.burn_in % 1 == 0
    ):
        raise PlanError(f"burn_in={bet.burn_in!r} must be a whole number of 1 or more")


def is_number(value: object) -> bool:
    """Return whether a setting is a number; a truth value is none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
