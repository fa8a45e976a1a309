"""What could have been seen: classes planted into worlds of one ability on the same matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import msgspec
import numpy as np

from groundfault.stats.irt import OneAbility
from groundfault.taxonomy.fitting.matrix import Matrix
from groundfault.taxonomy.fitting.nulls import Test, find_bar, measure_strongest_direction
from groundfault.taxonomy.fitting.replicates import Replicates
from groundfault.taxonomy.fitting.settings import Settings

SHARES = (0.05, 0.1, 0.2, 0.4)
"""Shares of the examples that a planted class has."""
EFFECTS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Shares of what they would pass that the models of a class fail in it."""
POWER = 0.8
WORLDS = 20
"""Simulated worlds of each share and effect."""


class DetectableClasses(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The weakest planted classes that the test of directions sees.

    Attributes
    ----------
    power : float
        Share of the simulated worlds in which a class has to be seen.
    worlds : int
        Simulated worlds of each kind.
    effects : dict of str to float or None
        By the share of the examples that a class has: the least share of what they would otherwise
        pass that half of the models has to fail there; None where not even all of it is enough.
    """

    power: float
    worlds: int
    effects: dict[str, float | None]

    @property
    def sentence(self) -> str:
        """What could have been seen, and what is not excluded."""
        effects = {float(s): effect for s, effect in self.effects.items() if effect is not None}
        if not effects:
            return (
                "This matrix is too small to show any class of examples: not even one in which "
                f"half of the models fail everything is seen in {self.power:.0%} of "
                f"{self.worlds} simulated worlds."
            )
        (share, effect), *others = effects.items()
        more = "".join(f", or {s:.0%} of the examples and {e:.0%}" for s, e in others)
        return (
            f"With {self.power:.0%} power it would have been seen if, in a class of {share:.0%} of "
            f"the examples, half of the models failed {effect:.0%} of what they would otherwise "
            f"pass{more} ({self.worlds} simulated worlds each); rarer or weaker classes are not "
            "excluded."
        )


def measure_detectable_classes(
    matrix: Matrix,
    settings: Settings,
    test: Test,
    population: OneAbility,
    replicates: Replicates | None = None,
) -> DetectableClasses:
    """Which planted classes are a direction stronger than in worlds of one ability.

    Parameters
    ----------
    matrix : Matrix
        All examples, before any filter.
    settings : Settings
    test : Test
        Of the strongest direction: its draws set the bar.
    population : OneAbility
        Fitted to the matrix.
    replicates : Replicates, optional

    Notes
    -----
    Seeing a direction comes first; that a class is also published asks for more (tighter clusters
    than in null worlds, found again in halves), so these are lower bounds of what has to be there.
    Effects are looked up by halving, which takes power to rise with the effect.
    """
    bar = find_bar(test.draws, settings.level)
    run = replicates or Replicates()
    effects: dict[str, float | None] = {}
    for share in SHARES:

        def is_seen(effect: float, share: float = share) -> bool:
            work = partial(_measure_planted, matrix, settings, population, share, effect)
            draws = run.run(f"planted classes of {share:g}, {effect:g}", work, WORLDS)
            return bool(np.mean(np.array(draws) > bar) >= POWER)

        effects[f"{share:g}"] = _find_least(is_seen)
    return DetectableClasses(POWER, WORLDS, effects)


def plant_class(
    matrix: Matrix,
    population: OneAbility,
    share: float,
    effect: float,
    rng: np.random.Generator,
) -> Matrix:
    """A world of one ability, but for a class in which half of the models do worse.

    Parameters
    ----------
    matrix : Matrix
    population : OneAbility
    share : float
        Of the examples, drawn at random, that are the class; in (0, 1).
    effect : float
        Chance that such a model fails there what it would pass; in [0, 1].
    rng : numpy.random.Generator
    """
    passed = population.draw(rng)
    n, m = passed.shape
    inside = np.ix_(
        rng.permutation(n)[: max(1, round(share * n))], rng.permutation(m)[: max(1, m // 2)]
    )
    passed[inside] = rng.binomial(passed[inside], 1 - effect)
    return replace(matrix, passed=passed)


def _measure_planted(
    matrix: Matrix,
    settings: Settings,
    population: OneAbility,
    share: float,
    effect: float,
    number: int,
) -> float:
    rng = settings.rng(f"planted class of {share:g}, {effect:g}", number)
    return measure_strongest_direction(
        plant_class(matrix, population, share, effect, rng), settings
    )


def _find_least(is_seen: Callable[[float], bool]) -> float | None:
    """The least of the effects that is seen, by halving; None where the largest is not."""
    low, high = 0, len(EFFECTS)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_seen(EFFECTS[middle]) else (middle + 1, high)
    return EFFECTS[low] if low < len(EFFECTS) else None
