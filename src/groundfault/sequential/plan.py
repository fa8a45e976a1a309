"""The plan of a sequential audit: the settings fixed before the first score, and their hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from math import ceil
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from groundfault.base.long_work import stream
from groundfault.core.plan import to_fraction
from groundfault.errors import PlanError, require_name, require_whole, require_word
from groundfault.sequential.bets import SOURCES, Bet, Null, Shares, is_number

_STORED_NAMES = {"burn_in": "budget", "budget": "limit"}
_NEW_NAMES = {stored: name for name, stored in _STORED_NAMES.items()}


def to_stored_names(settings: Mapping[str, object]) -> dict[str, Any]:
    """Return settings by the names of 0.1.0, in the same order."""
    return {_STORED_NAMES.get(name, name): value for name, value in settings.items()}


def from_stored_names(settings: Mapping[str, object]) -> dict[str, Any]:
    """Return settings by today's names; settings under these names are unchanged."""
    if "limit" not in settings or "burn_in" in settings:
        return dict(settings)
    return {_NEW_NAMES.get(name, name): value for name, value in settings.items()}


ClaimName = Literal["population", "declared-groups", "literal", "rates"]
Sampling = Literal["guaranteed", "paper"]

# the settings that every seal covers; it covers any later one that is not at its default, so that a
# new setting changes no older seal
_ALWAYS_SEALED = frozenset(
    "threshold burn_in alpha policy bet seed claim sampling epsilon budget warm_up alternative "
    "grid auditor_alternative auditor_grid eta shares idle_mass".split()
)
# alternatives at a threshold of .85; the paper's are carried to others as shares of the threshold
_PAPER_THRESHOLD, _PAPER_GRID = 0.85, (0.60, 0.655, 0.71, 0.765, 0.82)
# the paper's stop at .7 q, and a group that fails most of the time is then bet against as if it
# failed rarely: two lower ones, and weights that move faster, cost mild failures little (decisions
# 0024 and 0034)
_LOWER_POINTS, _FAST_ETA, _PAPER_ETA = (0.2, 0.4), 0.3, 0.1
# the paper's .88, .91, .94 and, nearer, .90 at its threshold, as shares of the .15 above it
_AUDITOR_SHARES = (0.12 / 0.15, 0.09 / 0.15, 0.06 / 0.15, 0.10 / 0.15)
# the paper's least share of a failure mode
_LITERAL_EPSILON = 0.05
# a group that failed throughout may pass once: one score of 1 must not cost all
_LOWEST_PRIOR = 0.05
_APART, _JOINT = "group-", "joint-"


@dataclass(frozen=True, kw_only=True)
class SequentialPlan:
    """Everything decided before the first score.

    Parameters
    ----------
    threshold : float in (0, 1)
        Mean score, 1 for a pass, below which a group is a failure mode. It is the paper's q.
    burn_in : int
        Number of tested cases (m) before the auditor's own null hypothesis is tested. At least 2.
    alpha : float in (0, 1)
        Largest probability of a wrong verdict. It holds whenever one stops.
    policy : str
        Policy that draws cases: logistic, grader, stratified, gp, boosted, thompson, adaptive,
        prelearned, uniform or oracle:GROUP.
    bet : str or sequence of str, optional
        Betting strategy; several are averaged; repeatable; default group-lr-ui and joint-lr-ui, and
        sr-lr-ui for any set of cases. One of `BETS`, or ``group-`` or ``joint-`` before one without
        a start, which is then placed group by group (`groundfault.sequential.two_null_test`). The
        auditor's test uses the same without ``group-``, ``joint-``, ``sr-`` or ``cusum-``.
    seed : int, optional
        Public seed of every draw, to repeat an audit; by default a random key, sealed until the
        audit has ended. Whoever knows the seed can foresee the draws; see
        `groundfault.sequential.draws`.
    claim : {"population", "declared-groups", "literal", "rates"}, optional
        Claim that is tested: population, which the cases were drawn from (default),
        declared-groups, of these cases alone, literal or rates. Where sampling is the paper's, the
        default is ``declared-groups``; see `groundfault.sequential.claims`.
    sampling : {"guaranteed", "paper"}
        Sampling: guaranteed, or paper, which keeps no error rate on a finite pool. ``paper`` draws
        and bets as the paper's code does.
    epsilon : float in (0, 1], optional
        Smallest share of the cases that makes a group; smaller ones are left out. They are listed.
        Left out, .05 for sampling and claims that need one, and none otherwise.
    budget : int, optional
        Most cases to label, warm-up and burn-in included; no more are asked for. Left out, all
        cases. An audit whose budget ends with its burn-in cannot pass.
    warm_up : int
        Number of first cases, drawn uniformly and not bet on; default by policy.
    alternative : float, optional
        Alternative of lr bets against the model's null hypothesis. Alternatives left out are at .85
        the paper's, with two lower ones in the grid; elsewhere the odds of those below the
        threshold have the same ratio to its odds, and those above it are in proportion.
    grid : sequence of float, optional
        Alternatives of -ui and -mix bets against the model's null hypothesis.
    auditor_alternative : float, optional
        Alternative of lr bets against the auditor's null hypothesis.
    auditor_grid : sequence of float, optional
        Alternatives of -ui and -mix bets against the auditor's null hypothesis.
    eta : float, optional
        Learning rate of -ui bets; default 0.3. Where sampling is the paper's, this and the shares
        are the paper's.
    shares : {"uniform", "heavy-tailed"}, optional
        Initial shares of sr- bets: heavy-tailed, or uniform as in the paper. See `Bet`.
    idle_mass : bool, optional
        Whether shares that have not started count; left out, unless sampling is the paper's.
    model : str
        Name of who answers, where several are asked the same cases: an audit each.
    prior : mapping of str to float, optional
        Failure modes of an earlier audit, to look at and bet on first. They are groups with their
        expected mean scores (`Pool.declare_modes`), of the last version or of another model.

    Raises
    ------
    PlanError
        If a setting is out of range, or contradicts another.

    Notes
    -----
    A prior leaves the error rate alone: it is fixed before the first score, so that a bet on it is
    a fair game where the null is true, whatever the prior says and wherever it is from. Right ones
    save labels. Wrong ones cost at most the half of the wealth that is staked on them, log(2) in
    log wealth, and the labels that the policy spends to see that they are wrong. The scores that
    the prior was learnt from must not be asked for again.
    """

    threshold: float
    burn_in: int = 40
    alpha: float = 0.05
    policy: str = "logistic"
    bet: str | Sequence[str] | None = None
    seed: int | None = None
    claim: ClaimName | None = None
    sampling: Sampling = "guaranteed"
    epsilon: float | None = None
    budget: int | None = None
    warm_up: int = 0
    alternative: float | None = None
    grid: Sequence[float] | None = None
    auditor_alternative: float | None = None
    auditor_grid: Sequence[float] | None = None
    eta: float | None = None
    shares: Shares | None = None
    idle_mass: bool | None = None
    model: str = ""
    prior: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        self._check_words()
        self._check_numbers()
        self._fill()
        shared = (self.bets("model"), self.group_bets, self.joint_bets, *self.prior_bets.values())
        for bet in (*chain(*shared), *self.bets("auditor")):
            bet.require_side(self.threshold)

    def _check_words(self) -> None:
        for name, words in (("claim", get_args(ClaimName)), ("sampling", get_args(Sampling))):
            if (value := getattr(self, name)) is not None or name != "claim":
                require_word(name, value, words)
        if not isinstance(self.model, str):
            raise PlanError(f"model={self.model!r} must be a name")
        if not isinstance(self.policy, str) or not self.policy:
            raise PlanError(f"policy={self.policy!r} must be a policy's name")
        if self.sampling == "paper" and self.claim == "rates":
            raise PlanError(
                'sampling="paper" draws without replacement; claim="rates" draws with it'
            )
        if self.sampling == "paper" and self.claim == "population":
            raise PlanError(
                'sampling="paper" speaks of these cases, and not of their population; leave claim '
                "out"
            )

    def _check_numbers(self) -> None:
        for name in ("threshold", "alpha"):
            value = self._number(name)
            if not 0 < value < 1:
                raise PlanError(f"{name}={value:g} must lie strictly between 0 and 1")
        if self.epsilon is not None and not 0 < self._number("epsilon") <= 1:
            raise PlanError(
                f"epsilon={self.epsilon:g} must lie in (0, 1]: the smallest share of a group"
            )
        # with m = 1 an auditor passes the model without having looked for anything
        self._whole("burn_in", 1 if self.sampling == "paper" else 2)
        for name, minimum in (("seed", 0), ("warm_up", 0), ("budget", 1)):
            if getattr(self, name) is not None:
                self._whole(name, minimum)
        if self.budget is None and self.claim == "rates":
            raise PlanError(
                'claim="rates" asks again without end: set budget, the most answers to score'
            )
        if self.budget is not None and self.budget <= self.warm_up:
            raise PlanError(f"budget={self.budget} has to be larger than warm_up={self.warm_up}")
        for name, mean in (self.prior or {}).items():
            if not (is_number(mean) and 0 <= mean < self.threshold):
                raise PlanError(
                    f"prior={{{name!r}: {mean!r}}} must be a mean score from 0 to below the "
                    f"threshold, {self.threshold:g}"
                )
        if self.prior and (self.sampling == "paper" or self.claim == "literal"):
            raise PlanError("a prior is about declared groups: leave out prior, or this claim")
        # an empty one changes no seal
        object.__setattr__(self, "prior", dict(self.prior) if self.prior else None)

    def _number(self, name: str) -> float:
        value = getattr(self, name)
        if not is_number(value) or value != value:
            raise PlanError(f"{name}={value!r} must be a number")
        object.__setattr__(self, name, float(value))
        return float(value)

    def _whole(self, name: str, minimum: int) -> None:
        value = getattr(self, name)
        require_whole(name, value, minimum)
        object.__setattr__(self, name, int(value))

    def _fill(self) -> None:
        # the paper's alternatives are for q = .85; the auditor's are elsewhere the same shares of
        # what lies above the threshold
        q, paper = self.threshold, self.sampling == "paper"
        below = tuple(q * (point / _PAPER_THRESHOLD) for point in _PAPER_GRID)
        if not paper:
            below = tuple(_keep_odds(point, q) for point in (*_LOWER_POINTS, *_PAPER_GRID))
        any_set = paper or self.claim == "literal"
        # the second misses a group that fails by itself after many sound ones, the first several
        # groups among which the labels are divided: the average costs either at most a factor of 2
        bet = self.bet or ("sr-lr-ui" if any_set else ("group-lr-ui", "joint-lr-ui"))
        *above, nearer = (1 - (1 - q) * share for share in _AUDITOR_SHARES)
        filled: dict[str, object] = {
            "bet": (bet,) if isinstance(bet, str) else tuple(bet),
            "alternative": below[-1],
            "grid": below,
            "auditor_alternative": nearer,
            "auditor_grid": tuple(above),
            "shares": "uniform" if paper else "heavy-tailed",
            "idle_mass": not paper,
            "claim": "declared-groups" if paper else "population",
            "eta": _PAPER_ETA if paper else _FAST_ETA,
            "epsilon": _LITERAL_EPSILON if any_set else None,
        }
        for name, value in filled.items():
            own = getattr(self, name)
            if name == "bet" or own is None:
                object.__setattr__(self, name, value)
            elif isinstance(value, tuple | bool):
                object.__setattr__(self, name, type(value)(own))

    def bets(self, null: Null, sharing: str = "") -> tuple[Bet, ...]:
        """Return the bets against a null: on all rounds alike, or ``group-`` or ``joint-`` ones."""
        names, point, grid = list(self.bet or ()), self.alternative, self.grid
        if null == "auditor":
            point, grid = self.auditor_alternative, self.auditor_grid
            # the auditor's bets start at m at once, so there are no shares to start later
            for start in (_APART, _JOINT, "sr-", "cusum-"):
                names = [name.removeprefix(start) for name in names]
        elif sharing:
            names = [name for name in names if name.startswith(sharing)]
            for name in names:
                require_word("bet", name, [sharing + source for source in SOURCES])
        else:
            names = [name for name in names if not name.startswith((_APART, _JOINT))]
        assert self.eta is not None
        assert self.shares is not None
        settings = (self.eta, self.burn_in, self.shares, bool(self.idle_mass))
        sources = dict.fromkeys(name.removeprefix(sharing) for name in names)
        return tuple(Bet(name, null, point, tuple(grid or ()), *settings) for name in sources)

    @property
    def group_bets(self) -> tuple[Bet, ...]:
        """Return the bets against the model's null whose wealth is added up over groups."""
        return self.bets("model", _APART)

    @property
    def joint_bets(self) -> tuple[Bet, ...]:
        """Return the bets against the model's null whose wealth is multiplied over groups."""
        return self.bets("model", _JOINT)

    @property
    def prior_bets(self) -> dict[str, tuple[Bet, ...]]:
        """Return the bets on each group of the prior: on its mean, and on the grid's."""
        # the earlier mean may have moved: a second bet learns it anew
        assert self.eta is not None
        grid = Bet("lr-ui", grid=tuple(self.grid or ()), eta=self.eta)
        return {
            name: (Bet("lr", alternative=max(mean, _LOWEST_PRIOR)), grid)
            for name, mean in (self.prior or {}).items()
        }

    def min_cases(self, total: int) -> int:
        """Return the fewest cases with a share of at least epsilon among ``cases``; 1 without an
        epsilon.
        """
        if self.epsilon is None:
            return 1
        return max(1, ceil(to_fraction(self.epsilon, "epsilon") * total))

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that the seal covers as plain words and numbers."""
        defaults = {field.name: field.default for field in fields(self)}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if key in _ALWAYS_SEALED or value != defaults[key]
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> SequentialPlan:
        """Return the plan that `settings` describes, or that version 0.1.0 stored."""
        settings = from_stored_names(settings)
        names = [field.name for field in fields(cls)]
        for name in settings:
            require_name("setting", name, names, where="sequential audit")
        try:
            return cls(**settings)
        except PlanError:
            raise
        # settings that were recorded, or written by hand, may be of any type
        except (TypeError, AttributeError, ValueError, OverflowError) as error:
            raise PlanError(f"not the settings of a sequential audit: {error}") from None

    @property
    def stored_settings(self) -> dict[str, Any]:
        """Return the settings as seals and ledgers have them, under the names of 0.1.0."""
        return to_stored_names(self.settings)

    def seal(self, pool_hash: str) -> str:
        """Return the SHA-256 of everything decided, the pool included: equal audits, equal
        seals.
        """
        # stored with every audit: keys and order of this text must never change
        text = json.dumps({"plan": self.stored_settings, "pool": pool_hash}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def rng(self, purpose: str, counter: int) -> np.random.Generator:
        """Return a generator of its own for each purpose and replicate of a simulation.

        The audit's own draws are those of `groundfault.sequential.draws`.
        """
        return stream(self.seed or 0, purpose, counter)


class FurtherSettings(TypedDict, total=False):
    """Settings of a `SequentialPlan` that are seldom needed."""

    claim: ClaimName | None
    sampling: Sampling
    epsilon: float | None
    warm_up: int | None
    alternative: float | None
    grid: Sequence[float] | None
    auditor_alternative: float | None
    auditor_grid: Sequence[float] | None
    eta: float | None
    shares: Shares | None
    idle_mass: bool | None
    model: str
    prior: Mapping[str, float] | None


def _keep_odds(point: float, threshold: float) -> float:
    """Return the alternative whose odds are to the threshold's as ``point``'s are to those of .85.

    Bets on it then grow alike, for like ratios of odds: in proportion to the threshold, those at .5
    would lie so near to it that a group at .2 is bet against as if it failed rarely.
    """
    ratio = point / (1 - point) * (1 - _PAPER_THRESHOLD) / _PAPER_THRESHOLD
    odds = ratio * threshold / (1 - threshold)
    return odds / (1 + odds)
