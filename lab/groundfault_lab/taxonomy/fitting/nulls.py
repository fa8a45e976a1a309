"""Is it real: what the same procedure makes of worlds without failure modes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec
import numpy as np

from groundfault.errors import InputError
from groundfault_lab.stats.irt import OneAbility
from groundfault_lab.stats.silhouette import SINGLE, combine, shuffle_silhouettes, silhouette
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.partition import (
    MAX_COMPARED,
    Partition,
    make_partition,
    measure_directions,
)
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.fitting.stability import Replicates
from groundfault_lab.taxonomy.fitting.stored import set_fields

Kind = Literal["one ability", "column shuffle"]
KINDS: tuple[Kind, ...] = ("one ability", "column shuffle")

# directions weaker than this share of the first are bends of it (see `count_directions`)
_FEEBLE = 0.05


@dataclass(frozen=True)
class Test:
    """An observed statistic beside its draws under a null hypothesis.

    Attributes
    ----------
    name : str
    observed : float
    p : float
        Add-one p-value, ties counted against: (1 + draws at or above) / (1 + draws).
    mean, spread : float or None
        Mean and standard deviation of the draws.
    draws : tuple of float
    """

    name: str
    observed: float
    p: float = field(init=False)
    mean: float | None = field(init=False)
    spread: float | None = field(init=False)
    draws: tuple[float, ...] = field(repr=False)

    __test__ = False  # not one of pytest's

    def __post_init__(self) -> None:
        draws = np.array(self.draws)
        # SINGLE absorbs rounding, so that equal silhouettes count as equal
        p = (1 + (draws >= self.observed - SINGLE).sum()) / (1 + len(draws))
        mean, spread = (float(draws.mean()), float(draws.std())) if len(draws) else (None, None)
        set_fields(self, p=float(p), mean=mean, spread=spread)


def prepare(matrix: Matrix, settings: Settings) -> Matrix:
    """Keep the examples that are clustered: past the frontier filter, and informative.

    Raises
    ------
    InputError
        If too little is left.
    """
    hard = matrix.keep_failures_of(settings.frontier) if settings.frontier else matrix
    return hard.informative()


def draw_world(
    kind: Kind, matrix: Matrix, population: OneAbility | None, rng: np.random.Generator
) -> Matrix:
    """Draw a matrix with the same models and holes in which there is no failure mode.

    Parameters
    ----------
    kind : {"one ability", "column shuffle"}
        Answers drawn from a fitted item-response model with one ability; or each model's answers
        dealt out anew among the examples that it answered.
    matrix : Matrix
        All examples, before any filter: what is filtered out depends on the answers, so it is
        filtered anew.
    population : OneAbility, optional
        Of the first kind.
    """
    if kind == "one ability":
        assert population is not None
        # trials stay: a world has the same holes and repeats as the data
        return replace(matrix, passed=population.draw(rng))
    passes, trials = matrix.passed.copy(), matrix.trials.copy()
    # each model apart: this keeps its rate and breaks what models have in common
    for j in range(passes.shape[1]):
        rows = np.flatnonzero(matrix.trials[:, j])
        permutation = rng.permutation(rows)
        passes[rows, j] = matrix.passed[permutation, j]
        trials[rows, j] = matrix.trials[permutation, j]
    return replace(matrix, passed=passes, trials=trials)


def count_directions(
    matrix: Matrix,
    settings: Settings,
    replicates: Replicates | None = None,
    population: OneAbility | None = None,
) -> tuple[int, Test]:
    """Count the directions of the residuals that are stronger than in worlds of one ability.

    Parameters
    ----------
    matrix : Matrix
        All examples, before any filter.
    settings : Settings
    replicates : Replicates, optional
    population : OneAbility, optional
        Fitted to the matrix, where it has been.

    Returns
    -------
    int
        Directions above all but a share `Settings.level` of the strongest ones of those worlds, by
        at least a twentieth of what the first of them is above.
    Test
        Of the strongest one.

    Notes
    -----
    Parallel analysis (Horn 1965, doi:10.1007/BF02289447) against the law that is to be ruled out,
    rather than noise. With thousands of examples it would also count the bends that strong
    directions leave behind, because a chance is no sum of skills: in worlds of three modes, 15,000
    examples and 155 models, three directions more, with up to 4 % of the excess of the first one.
    """
    # arXiv:2606.09878 has no such null; without it ability alone makes clusters
    population = population or OneAbility.fit(matrix.passed, matrix.trials)
    strengths = measure_directions(prepare(matrix, settings), settings)
    purpose = "strongest direction under one ability"

    def draw_strongest(number: int) -> float:
        world = draw_world("one ability", matrix, population, settings.rng(purpose, number))
        return measure_strongest_direction(world, settings)

    draws = (replicates or Replicates()).run(purpose, draw_strongest, settings.worlds)
    bar = find_bar(draws, settings.level)
    # against the strongest direction of each world, which adjusts for looking at all of them
    excess = strengths - bar
    strong = min(
        int(((excess > 1e-9) & (excess >= _FEEBLE * excess[0])).sum()), settings.dimensions
    )
    return strong, Test(
        "strongest direction, worlds of one ability", float(strengths[0]), tuple(draws)
    )


def find_bar(draws: Sequence[float], level: float) -> float:
    """Return what a direction has to exceed: as many draws lie above as a p at the level allows."""
    return sorted(draws, reverse=True)[max(int(level * (len(draws) + 1)), 1) - 1]


def measure_strongest_direction(world: Matrix, settings: Settings) -> float:
    """Measure the first direction of a world's residuals; 0 where nothing is left of it."""
    try:
        return float(measure_directions(prepare(world, settings), settings)[0])
    except InputError:
        return 0.0


def shuffle_columns(matrix: Matrix, clustering: Partition, settings: Settings) -> Test:
    """Run the paper's test: silhouettes of the same labels when each model's answers are shuffled.

    Parameters
    ----------
    matrix : Matrix
        The examples that were clustered.
    """
    # a silhouette costs n squared, so a large matrix is thinned evenly
    step = -(-len(matrix) // MAX_COMPARED) or 1
    values, labels = matrix.impute(settings.imputation)[::step], clustering.labels[::step]
    semantic = None if matrix.semantic is None else matrix.semantic[::step]
    statistic = silhouette(combine(values, semantic, settings.alpha), labels)
    rng = settings.rng("label-fixed shuffles")
    draws = shuffle_silhouettes(
        values, labels, settings.permutations, rng, side_values=semantic, weight=settings.alpha
    )
    return Test("silhouette of the same labels, columns shuffled", statistic, tuple(draws.tolist()))


def recluster_worlds(
    matrix: Matrix,
    clustering: Partition,
    settings: Settings,
    dimensions: int | None,
    replicates: Replicates,
    population: OneAbility | None,
) -> dict[str, Test]:
    """Measure silhouettes of null worlds clustered anew, in the whole and in the reduced space.

    Parameters
    ----------
    matrix : Matrix
        All examples, before any filter.
    clustering : Partition
        Of the examples that passed them.
    dimensions : int, optional
        As it was found with: worlds are given as many, whether they have them or not.
    population : OneAbility, optional
        Fitted to the matrix; may be left out where no worlds are drawn.
    """
    silhouettes = clustering.silhouettes()
    tests: dict[str, Test] = {}
    for kind in KINDS:

        def recluster(number: int, kind: Kind = kind) -> tuple[float, float]:
            rng = settings.rng(f"clustering worlds of {kind}", number)
            try:
                world = prepare(draw_world(kind, matrix, population, rng), settings)
                return make_partition(world, settings, dimensions).silhouettes()
            except InputError:
                # the worst silhouette: a world without clusters never counts against the data
                return -1.0, -1.0

        draws = replicates.run(f"clustering worlds of {kind}", recluster, settings.worlds)
        for space, (where, key) in enumerate((("", ""), (" in the reduced space", "_reduced"))):
            tests[kind.replace(" ", "_") + key] = Test(
                f"silhouette{where}, {kind}, clustered anew",
                silhouettes[space],
                tuple(float(draw[space]) for draw in draws),
            )
    return tests


SHARES = (0.05, 0.1, 0.2, 0.4)
"""Shares of the examples that a planted class has."""
EFFECTS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Shares of what they would pass that the models of a class fail in it."""
POWER = 0.8
"""Share of worlds in which a class has to be seen: Cohen's convention (1988)."""
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
        """Say what could have been seen, and what is not excluded."""
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
    """Measure which planted classes are a direction stronger than in worlds of one ability.

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
            def measure_planted(number: int) -> float:
                rng = settings.rng(f"planted class of {share:g}, {effect:g}", number)
                world = plant_class(matrix, population, share, effect, rng)
                return measure_strongest_direction(world, settings)

            draws = run.run(f"planted classes of {share:g}, {effect:g}", measure_planted, WORLDS)
            return bool(np.mean(np.array(draws) > bar) >= POWER)

        least = bisect_left(EFFECTS, True, key=is_seen)
        effects[f"{share:g}"] = EFFECTS[least] if least < len(EFFECTS) else None
    return DetectableClasses(POWER, WORLDS, effects)


def plant_class(
    matrix: Matrix, population: OneAbility, share: float, effect: float, rng: np.random.Generator
) -> Matrix:
    """Draw a world of one ability, but for a class in which half of the models do worse.

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
    examples = rng.permutation(n)[: max(1, round(share * n))]
    inside = np.ix_(examples, rng.permutation(m)[: max(1, m // 2)])
    passed[inside] = rng.binomial(passed[inside], 1 - effect)
    return replace(matrix, passed=passed)
