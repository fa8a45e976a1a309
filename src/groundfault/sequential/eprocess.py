"""E-processes: evidence against a null that may be read, and acted on, after every score."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundfault.base.arrays import Bools, Floats
from groundfault.base.reading import decode_json
from groundfault.errors import InputError, PlanError
from groundfault.sequential.bets import Bet, Null, Shares, Wealth
from groundfault.sequential.plan import to_stored_names
from groundfault.stats.betting import log_mean

_WARM = 5  # the reference lets the last five warm-up scores move the grid weights, and no others
# the names in `to_json` of the fields of Wealth, in their order, since version 0.1.0
_KEYS = ("log_arms", "log_weights", "seen")


@dataclass(frozen=True, eq=False)
class EProcess:
    """One bet, or the average of several, against one null; `update` returns a new one.

    Make one with `begin`. An update costs time and memory proportional to the grid, not to the
    number of steps. What a score would do is known before it is seen: ``process.update(0,
    q).log_e`` and ``process.update(1, q).log_e``.

    Attributes
    ----------
    bets : tuple of Bet
        Their e-values are averaged with equal weights; an average of e-processes is an e-process.
    wealth : tuple of Wealth
        Where each bet stands.
    steps : int
        Scores so far.

    Examples
    --------
    >>> process = EProcess.begin(Bet("lr", alternative=0.6))
    >>> for score in (0, 1, 0):
    ...     process = process.update(score, threshold=0.9)
    >>> round(float(process.log_e[0]), 3)
    2.367
    """

    bets: tuple[Bet, ...]
    wealth: tuple[Wealth, ...]
    steps: int = 0

    @classmethod
    def begin(cls, bets: Bet | Iterable[Bet], sequences: int = 1) -> EProcess:
        """Return the process before the first score, for ``sequences`` independent sequences side
        by side.

        Raises
        ------
        PlanError
            If there is no bet, or bets against different nulls.
        """
        bets = (bets,) if isinstance(bets, Bet) else tuple(bets)
        if len({bet.null for bet in bets}) != 1:
            raise PlanError("an e-process needs one bet or more, all against the same null")
        return cls(bets, tuple(bet.begin(sequences) for bet in bets))

    @property
    def sequences(self) -> int:
        """Return the number of sequences side by side, N."""
        return int(self.wealth[0].log_arms.shape[1])

    @cached_property
    def log_e(self) -> Floats:
        """Return the natural log of the e-value, (N,) array; ``inf`` once the null is
        impossible.
        """
        pairs = zip(self.bets, self.wealth, strict=True)
        values = [bet.log_e(wealth, self.steps) for bet, wealth in pairs]
        if len(values) == 1:
            return values[0].copy()
        # an average of e-values is one, under any dependence; a maximum or the best bet is not
        # (Vovk and Wang, 2021)
        return log_mean(np.stack(values), np.full((1, 1), -np.log(len(values))))

    def warm_start(self, scores: ArrayLike, threshold: ArrayLike) -> EProcess:
        """Let forecasts learn from scores that no e-value counts.

        Only the last five do, as in the reference.

        Parameters
        ----------
        scores : (k,) or (N, k) array in [0, 1]
        threshold : float or (N,) array

        Raises
        ------
        InputError
            If scores are outside [0, 1], or the first score has been bet on already.
        """
        if self.steps:
            raise InputError("a warm start comes before the first score")
        table = _scores(scores, "warm-up score")
        columns = np.atleast_2d(table).T[-_WARM:]
        if columns.ndim != 2 or columns.shape[1] not in (1, self.sequences):
            raise InputError(
                f"warm-up scores have shape {table.shape}; give one row, or one for each sequence"
            )
        level, wealth = _numbers(threshold, "threshold"), self.wealth
        for column in columns:
            pairs = zip(self.bets, wealth, strict=True)
            wealth = tuple(bet.warm(w, column, level) for bet, w in pairs)
        return EProcess(self.bets, wealth)

    def update(
        self,
        score: ArrayLike,
        threshold: ArrayLike,
        *,
        forecast: ArrayLike | None = None,
        stake: ArrayLike = True,
    ) -> EProcess:
        """Return the process after one more score.

        Parameters
        ----------
        score : float or (N,) array in [0, 1]
        threshold : float or (N,) array
            The threshold of this step, fixed before the score was seen. A `conditional_threshold`
            may leave [0, 1]: beyond what a score can reach the null is impossible and the e-value
            is infinite, and on the other side no bet is placed.
        forecast : float or (N,) array, optional
            Expected score, for ``-pred`` bets; fixed before the score was seen, clipped where it
            leaves (0, 1).
        stake : bool or (N,) array of bool
            Where false, the step counts without a bet and without learning. Fixed before the
            score was seen.

        Raises
        ------
        InputError
            If a score is outside [0, 1], a threshold or forecast is not a number, or a shape does
            not fit.
        """
        scores, levels = np.atleast_1d(_scores(score, "score")), _numbers(threshold, "threshold")
        stakes = np.atleast_1d(np.asarray(stake, dtype=bool))
        forecasts = None if forecast is None else _numbers(forecast, "forecast")
        _require_forecast(self.bets, forecasts)
        for array, fewest in ((scores, self.sequences), (levels, 1), (stakes, 1), (forecasts, 1)):
            if array is not None and array.shape not in ((fewest,), (self.sequences,)):
                raise InputError(
                    f"{array.shape} values do not fit {self.sequences} sequences; give one for each"
                )
        return self._advance(scores, levels, forecasts, stakes)

    def to_json(self) -> str:
        """Serialise exactly: ``EProcess.from_json`` returns a process that goes on bit for bit."""
        wealth = [dict(zip(_KEYS, map(_encode, w), strict=True)) for w in self.wealth]
        bets = [to_stored_names(asdict(bet)) for bet in self.bets]
        return json.dumps(
            {"groundfault_eprocess": 1, "steps": self.steps, "bets": bets, "wealth": wealth}
        )

    @classmethod
    def from_json(cls, text: str) -> EProcess:
        """Read a serialised process.

        Raises
        ------
        InputError
            If the text is not one.
        """
        try:
            data = decode_json(text, "the text")
            bets = tuple(_read_bet(bet) for bet in data["bets"])
            wealth = tuple(Wealth(*(_decode(w[key]) for key in _KEYS)) for w in data["wealth"])
            process = cls(bets, wealth, int(data["steps"]))
            fresh = cls.begin(bets, process.sequences)
            # a stored state is outside data: shapes and NaN are checked before it goes on betting
            shapes, due = ([[a.shape for a in w] for w in p.wealth] for p in (process, fresh))
            has_nan = any(np.isnan(a).any() for w in wealth for a in w)
            if shapes != due or process.steps < 0 or has_nan:
                raise ValueError("its parts do not fit together")
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            raise InputError(
                f"not a serialised e-process ({error}); replay the recorded scores instead"
            ) from None
        return process

    def _advance(
        self, score: Floats, threshold: Floats, forecast: Floats | None, stake: Bools
    ) -> EProcess:
        step = self.steps + 1
        pairs = zip(self.bets, self.wealth, strict=True)
        wealth = (bet.advance(w, step, score, threshold, forecast, stake) for bet, w in pairs)
        return EProcess(self.bets, tuple(wealth), step)


def advance_each(tries: Iterable[Try]) -> dict[Try, EProcess]:
    """Return several processes of one sequence each after one more score.

    Each process of the same bets is computed beside the others, and each try once.
    """
    alike: dict[tuple[Bet, ...], list[Try]] = {}
    for one in dict.fromkeys(tries):
        alike.setdefault(one[0].bets, []).append(one)
    after: dict[Try, EProcess] = {}
    for bets, own in alike.items():
        processes, scores, thresholds, forecasts, stakes = zip(*own, strict=True)
        sets = zip(*(each.wealth for each in processes), strict=True)
        wealth = tuple(Wealth(*map(np.hstack, zip(*each, strict=True))) for each in sets)
        steps = np.array([each.steps for each in processes])
        joined = EProcess(bets, wealth, steps).update(  # type: ignore[arg-type]
            scores, thresholds, forecast=None if None in forecasts else forecasts, stake=stakes
        )
        columns = (map(Wealth, *(a.T[..., None] for a in each)) for each in joined.wealth)
        for one, place in zip(own, zip(*columns, strict=True), strict=True):
            after[one] = EProcess(bets, place, one[0].steps + 1)
    return after


# a process, and the score, threshold, forecast and stake that `EProcess.update` takes
Try = tuple[EProcess, float, float, float | None, bool]


def e_process(
    scores: ArrayLike,
    threshold: ArrayLike,
    *,
    null: Null = "model",
    bet: str | Sequence[str] = "sr-lr-ui",
    alternative: float | None = None,
    grid: Sequence[float] | None = None,
    eta: float = 0.1,
    burn_in: int | None = None,
    warm_start: ArrayLike | None = None,
    forecast: ArrayLike | None = None,
    stake: ArrayLike = True,
    shares: Shares = "uniform",
    idle_mass: bool = False,
) -> Floats:
    """Compute the natural log of the e-value after each score; reject at ``log(1 / alpha)``.

    Parameters
    ----------
    scores : (T,) or (N, T) array in [0, 1]
        1 is a pass. N sequences are computed side by side.
    threshold : float in (0, 1), or (T,), (N, 1) or (N, T) array
        The target q, or one value a step, fixed before that step's score was seen
        (`conditional_threshold`).
    null : {"model", "auditor"}
        The model's null: expected scores are at least the threshold. The auditor's: from step
        ``burn_in`` on they are below it.
    bet : str or sequence of str
        One of `BETS`; several are averaged.
    alternative, grid, eta, burn_in, shares, idle_mass
        See `Bet`. The defaults of the last two are the paper's.
    warm_start : (k,) or (N, k) array in [0, 1]
        Scores that forecasts learn from (the last five) but no e-value counts.
    forecast : (T,) or (N, T) array, optional
        Expected scores for ``-pred`` bets.
    stake : bool, or (T,) or (N, T) array of bool
        Steps on which to bet; the others count towards the burn-in and nothing else.

    Returns
    -------
    (T,) or (N, T) array
        ``P(any of them >= log(1 / alpha)) <= alpha`` under the null, provided that given the past
        each score has expectation at least (at most) its threshold; `groundfault.sequential.bets`
        says when a group's mean implies that. A constant threshold is wrong for draws without
        replacement.

    Raises
    ------
    InputError
        If scores are outside [0, 1], thresholds or forecasts are not numbers, or shapes do not fit.
    PlanError
        If the settings are impossible, such as a constant threshold outside (0, 1) or an
        alternative on its wrong side.

    References
    ----------
    Zhou et al. (2026), https://doi.org/10.48550/arXiv.2605.07002, with the conventions of its code
    where the two differ.

    Examples
    --------
    >>> e_process([0, 0, 1], threshold=0.85, bet="lr", alternative=0.6).round(3)
    array([0.981, 1.962, 1.613])
    """
    names = (bet,) if isinstance(bet, str) else tuple(bet)
    points = () if grid is None else tuple(grid)
    bets = [Bet(name, null, alternative, points, eta, burn_in, shares, idle_mass) for name in names]
    table = _scores(scores, "score")
    if table.ndim not in (1, 2):
        raise InputError(f"scores have {table.ndim} axes; give one sequence, or one sequence a row")
    columns = np.ascontiguousarray(np.atleast_2d(table).T)
    levels = _per_step(_numbers(threshold, "threshold"), columns, "threshold")
    _check_constant(threshold, bets)
    forecasts = (
        None if forecast is None else _per_step(_numbers(forecast, "forecast"), columns, "forecast")
    )
    _require_forecast(bets, forecasts)
    stakes = _per_step(np.asarray(stake, dtype=bool), columns, "stake")
    process = EProcess.begin(bets, columns.shape[1])
    if warm_start is not None and np.size(warm_start) and len(columns):
        process = process.warm_start(warm_start, levels[0])
    result = np.empty(columns.shape)
    for step in range(len(columns)):
        expected = None if forecasts is None else forecasts[step]
        process = process._advance(columns[step], levels[step], expected, stakes[step])
        result[step] = process.log_e
    return np.ascontiguousarray(result.T).reshape(table.shape)


def _scores(values: ArrayLike, what: str) -> Floats:
    array = _to_floats(values, f"a {what} is not a number; {what}s lie in [0, 1]")
    wrong = ~((array >= 0) & (array <= 1))
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f" {where[0] if len(where) == 1 else where}" if where else ""
        raise InputError(f"{what}{place} is {array[where]:g}; {what}s lie in [0, 1]")
    return array


def _numbers(values: ArrayLike, what: str) -> Floats:
    array = _to_floats(values, f"a {what} is not a number")
    if np.isnan(array).any():
        raise InputError(f"a {what} is NaN; give a number for each step")
    return np.atleast_1d(array)


def _to_floats(values: ArrayLike, message: str) -> Floats:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(message) from None


def _check_constant(threshold: ArrayLike, bets: Sequence[Bet]) -> None:
    if np.ndim(threshold) == 0:
        level = float(np.asarray(threshold, dtype=float))
        if not 0 < level < 1:
            raise PlanError(f"threshold={level:g} must lie strictly between 0 and 1")
        for bet in bets:
            bet.require_side(level)


def _require_forecast(bets: Sequence[Bet], forecast: Floats | None) -> None:
    wanting = [bet.name for bet in bets if bet.source == "lr-pred"]
    if wanting and forecast is None:
        raise InputError(f"{wanting[0]} needs forecast=, the expected score of each step")


def _per_step(values: NDArray[Any], columns: Floats, what: str) -> NDArray[Any]:
    """Lay a number, (T,), (N, 1) or (N, T) array out as (T, 1) or (T, N)."""
    steps, sequences = columns.shape
    rows = np.atleast_2d(values).T
    if rows.ndim != 2 or rows.shape[0] not in (1, steps) or rows.shape[1] not in (1, sequences):
        raise InputError(
            f"{what} has shape {values.shape}; give one number, one a step ({steps}), or one a "
            f"score ({sequences}, {steps})"
        )
    return np.broadcast_to(rows, (steps, rows.shape[1]))


def _read_bet(stored: dict[str, Any]) -> Bet:
    content = {**stored, "grid": tuple(stored["grid"])}
    # the name that `to_json` keeps from version 0.1.0
    content["burn_in"] = content.pop("budget")
    return Bet(**content)


def _encode(array: Floats) -> list[list[float | str]]:
    return [[float(x) if np.isfinite(x) else str(float(x)) for x in row] for row in array]


def _decode(rows: list[list[float | str]]) -> Floats:
    return np.array([[float(x) for x in row] for row in rows], dtype=float)
