"""Null games: worlds where the null is true, and auditors that do their worst, for thousands of
replicates at once.

An auditor of these games knows the truth, chooses what is drawn next, and stops when the e-value is
at its largest. It does what an audit's claim lets it do, or, in the paper's sampling, what that
lets it do."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundfault.sequential import EProcess, conditional_threshold
from groundfault.sequential.bets import Null
from groundfault.sequential.plan import Sampling, SequentialPlan

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Q, EPSILON = 0.85, 0.05


class Move(NamedTuple):
    """What one step of N replicates is about, before the score: shapes (N,).

    Attributes
    ----------
    needed : float64 array
        What a rigorous audit tests the score against; the paper's tests it against the threshold.
    stake : bool array
        Where the auditor bets.
    chance : float64 array, optional
        Of a score of 1, which is 0 else; None where the scores are graded.
    graded : float64 array, optional
        Those scores.
    """

    level: Floats
    stake: Bools
    chance: Floats | None = None
    graded: Floats | None = None


Moves = Generator[Move, Floats, None]


@dataclass(frozen=True)
class Game:
    """A world where a null is true, and an auditor in it.

    Attributes
    ----------
    name, rule : str
        The world, and what the auditor does.
    moves : callable
        Of a random generator, a number of replicates, and whether the sampling is the paper's; a
        generator that gives a `Move` and is sent the scores.
    null : {"model", "auditor"}
    threshold : float
    """

    name: str
    rule: str
    moves: Callable[[np.random.Generator, int, bool], Moves]
    null: Null = "model"
    threshold: float = Q


def count_rejections(
    game: Game, bets: Sequence[str], sampling: Sampling, replicates: int, seed: Sequence[int]
) -> Bools:
    """Where the null falls at any step, under each of a plan's bets: bool, shape (B, N)."""
    plans = [SequentialPlan(threshold=game.threshold, bet=bet, sampling=sampling) for bet in bets]
    processes = [EProcess.begin(plan.bets(game.null), replicates) for plan in plans]
    fell = np.zeros((len(bets), replicates), dtype=np.bool_)
    rng, luck = (np.random.default_rng([*seed, purpose]) for purpose in (0, 1))
    play = game.moves(rng, replicates, sampling == "paper")
    move = next(play, None)
    while move is not None:
        level = move.level if sampling == "guaranteed" else np.full(1, game.threshold)
        forecast, score = luck.random(replicates), _score(move, luck.random(replicates))
        for b, process in enumerate(processes):
            processes[b] = process.update(score, level, stake=move.stake, forecast=forecast)
            fell[b] |= processes[b].log_e >= -log(plans[b].alpha)
        move = _send(play, score)
    return fell


def weigh_rejections(
    game: Game, bet: str, replicates: int, seed: Sequence[int]
) -> tuple[float, float]:
    """The chance that the null falls, by importance sampling: estimate and standard error.

    Scores of 0 and 1 are drawn with the odds that the wealth itself gives, so that nearly every
    path ends in a rejection, and each path weighs what the true odds make of it: unbiased whether
    the bet is valid or not, and far more precise than counting rare rejections. A default plan's
    bets; scores that are graded cannot be weighed."""
    plan = SequentialPlan(threshold=game.threshold, bet=bet)
    process, bar = EProcess.begin(plan.bets(game.null), replicates), -log(plan.alpha)
    log_weight, fell = np.zeros(replicates), np.zeros(replicates, dtype=np.bool_)
    rng, luck = (np.random.default_rng([*seed, purpose]) for purpose in (0, 1))
    play = game.moves(rng, replicates, False)
    move = next(play, None)
    while move is not None and move.chance is not None:
        forecast = luck.random(replicates)
        fail, success = (
            process.update(
                np.full(replicates, end), move.level, stake=move.stake, forecast=forecast
            )
            for end in (0.0, 1.0)
        )
        e = [np.exp(np.minimum(after.log_e, 700.0)) for after in (fail, success)]
        mean = move.chance * e[1] + (1 - move.chance) * e[0]
        score = (luck.random(replicates) < move.chance * e[1] / mean).astype(float)
        log_weight += np.where(fell, 0.0, np.log(mean / np.where(score == 1, e[1], e[0])))
        process = process.update(score, move.level, stake=move.stake, forecast=forecast)
        fell |= process.log_e >= bar
        move = _send(play, score)
    return _mean_and_error(np.where(fell, np.exp(log_weight), 0.0))


def _score(move: Move, chance: Floats) -> Floats:
    if move.graded is not None:
        return move.graded
    assert move.chance is not None
    return (chance < move.chance).astype(float)


def _send(play: Moves, score: Floats) -> Move | None:
    try:
        return play.send(score)
    except StopIteration:
        return None


def _mean_and_error(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / np.sqrt(len(values)))


# ---------------------------------------------------------------------------------- --- fresh draws


def fresh(law: Literal["0/1", "graded"], steps: int, null: Null = "model", q: float = Q) -> Game:
    """Independent scores of expectation q, 0/1 or beta distributed."""

    def moves(rng: np.random.Generator, n: int, paper: bool) -> Moves:  # noqa: ARG001
        level, always = np.full(n, q), np.ones(n, dtype=np.bool_)
        for _ in range(steps):
            if law == "0/1":
                yield Move(level, always, level)
            else:
                yield Move(level, always, graded=rng.beta(2 * q, 2 * (1 - q), n))

    name = f"fresh draws, {law} scores" + (f", q = {q:g}" if q != Q else "")
    return Game(name, f"looks after each of {steps}", moves, null, q)


def lowest_of_nine(steps: int) -> Game:
    """Generated cases: nine categories at the threshold, their cases good (.95) or bad (.55).

    The paper's auditor is shown a case of each and takes the one of lowest, noisy, prediction. A
    rigorous one names the category first, here the one that did worst so far."""
    good, bad = 0.95, 0.55
    share = (Q - bad) / (good - bad)

    def moves(rng: np.random.Generator, n: int, paper: bool) -> Moves:
        level, always, rows = np.full(n, Q), np.ones(n, dtype=np.bool_), np.arange(n)
        looks_at, passes = np.full((n, 9), 1e-9), np.zeros((n, 9))
        for _ in range(steps):
            chance = np.where(rng.random((n, 9)) < share, good, bad)
            looks = (
                chance + rng.normal(0, 0.3, chance.shape)
                if paper
                else passes / looks_at + 1e-9 * rng.random((n, 9))
            )
            which = looks.argmin(axis=1)
            score = yield Move(level, always, chance[rows, which])
            looks_at[rows, which] += 1
            passes[rows, which] += score

    return Game("generated cases, 9 categories", "picks the worst looking", moves)


# ------------------------------------------------------ --- finite pools, drawn without replacement


@dataclass(frozen=True)
class Groups:
    """Groups of cases whose mean score is at the threshold, or next to it, drawn from until
    ``steps``.

    Attributes
    ----------
    count : int
    scores : tuple of float
        Of the cases of each group, in an order that nobody knows.
    steps : int
    threshold : float
    null : {"model", "auditor"}
    rule : {"draws at random", "goes where luck ran out", "bets where luck ran out"}
        The second takes the group whose rest is worst (best, against the auditor's null); the third
        takes a random one and bets only where the rest is .10 beyond the threshold.
    """

    count: int
    scores: tuple[float, ...]
    steps: int
    threshold: float = Q
    null: Null = "model"
    rule: Literal["draws at random", "goes where luck ran out", "bets where luck ran out"] = (
        "goes where luck ran out"
    )

    def game(self, name: str) -> Game:
        """The game."""
        return Game(name, self.rule, self._moves, self.null, self.threshold)

    def _moves(self, rng: np.random.Generator, n: int, paper: bool) -> Moves:  # noqa: ARG002
        size, rows, sign = len(self.scores), np.arange(n), 1 if self.null == "model" else -1
        draws, total = np.zeros((n, self.count), dtype=np.intp), np.zeros((n, self.count))
        whole = float(np.sum(self.scores))
        graded = None
        if set(self.scores) - {0.0, 1.0}:
            order = np.broadcast_to(np.arange(size), (n, self.count, size))
            graded = np.array(self.scores)[rng.permuted(order, axis=2)]
        for _ in range(min(self.steps, self.count * size)):
            remaining = size - draws
            rest = np.where(
                remaining > 0, (whole - total) / np.maximum(remaining, 1), sign * np.inf
            )
            noise = rng.random(rest.shape)
            worst = self.rule == "goes where luck ran out"
            g = (
                sign * rest + 1e-9 * noise if worst else np.where(remaining > 0, noise, np.inf)
            ).argmin(axis=1)
            label_count, own = draws[rows, g], rest[rows, g]
            picky = self.rule == "bets where luck ran out"
            stake = sign * (self.threshold - own) >= 0.10 if picky else np.ones(n, dtype=np.bool_)
            level = conditional_threshold(self.threshold, size, label_count, total[rows, g])
            graded_score = None if graded is None else graded[rows, g, label_count]
            score = yield Move(
                level, stake, np.clip(own, 0.0, 1.0) if graded_score is None else None, graded_score
            )
            draws[rows, g] += 1
            total[rows, g] += score


def worst_cases(cases: int, bad: int, chance: float, steps: int = 250) -> Game:
    """The paper's own null, every set of epsilon N cases: ``bad`` cases pass with ``chance`` and
    the others always.

    The paper's appendix draws the single lowest case; an auditor who knows them draws the bad ones
    first. A rigorous draw is uniform over the worst epsilon N of the unlabelled cases."""
    min_cases = ceil(round(EPSILON * cases, 9))
    assert 1 - bad * (1 - chance) / min_cases >= Q, "the null has to be true"

    def moves(rng: np.random.Generator, n: int, paper: bool) -> Moves:
        level, always, remaining = np.full(n, Q), np.ones(n, dtype=np.bool_), np.full(n, bad)
        for _ in range(steps):
            hit = remaining > 0 if paper else rng.random(n) < remaining / min_cases
            yield Move(level, always, np.where(hit, chance, 1.0))
            remaining = remaining - hit

    return Game(f"worst of {cases:,}, {bad} bad at {chance:g}", "knows the worst cases", moves)


# ----------------------------------------------------------------- --- the strongest auditor of all


def bold(
    bet: str, null: Null, replicates: int, steps: int, seed: Sequence[int], q: float = Q
) -> tuple[float, float]:
    """Chance that the null falls to an auditor who shapes each score's law to land exactly on the
    bar.

    Scores have expectation q whatever came before, and two values: 0 and 1 or, once that would
    overshoot the bar, the one that lands on it. No law loses less wealth in overshoot, so this
    comes as close to alpha as any auditor can.

    Returns
    -------
    float, float
        Estimate and standard error, as of `weigh_rejections`.
    """
    plan = SequentialPlan(threshold=q, bet=bet)
    process, rng, bar = (
        EProcess.begin(plan.bets(null), replicates),
        np.random.default_rng(seed),
        -log(plan.alpha),
    )
    against, other = (0.0, 1.0) if null == "model" else (1.0, 0.0)
    log_weight, fell = np.zeros(replicates), np.zeros(replicates, dtype=np.bool_)
    for _ in range(steps):
        forecast = rng.random(replicates)
        after = {
            end: np.exp(
                np.minimum(
                    process.update(np.full(replicates, end), q, forecast=forecast).log_e, 700.0
                )
            )
            for end in (against, other)
        }
        gap = np.maximum(after[against] - after[other], 1e-300)
        share = np.clip((np.exp(bar) * (1 + 1e-12) - after[other]) / gap, 1e-9, 1.0)
        share = np.where(after[against] > np.exp(bar), share, 1.0)
        value = other + share * (against - other)
        fair = np.clip((q - other) / (value - other), 0.0, 1.0)
        reached = after[other] + share * (after[against] - after[other])
        mean = fair * reached + (1 - fair) * after[other]
        lands = rng.random(replicates) < fair * reached / mean
        log_weight += np.where(
            fell, 0.0, np.log(mean) - np.log(np.where(lands, reached, after[other]))
        )
        process = process.update(np.where(lands, value, other), q, forecast=forecast)
        fell |= process.log_e >= bar
    return _mean_and_error(np.where(fell, np.exp(log_weight), 0.0))
