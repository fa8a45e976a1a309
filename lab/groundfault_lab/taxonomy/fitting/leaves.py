"""Leaves: rules under which models fail more than their ability and the difficulty explain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np
import polars as pl

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.core.columns import Kind, profile
from groundfault.core.rules import Rule
from groundfault.modes.condition import Condition, list_conditions
from groundfault.modes.find import find_modes
from groundfault.stats.contingency import log_tail
from groundfault.stats.multiple import holm
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.settings import Settings

_READ = (Kind.FLAG, Kind.NUMBER, Kind.LABEL, Kind.TEXT)
# more classes hold few examples each, and the search counts up to 64 fast
_CLASSES = 20
# overlap from which two models' rules are one leaf: two thirds, as of rules in one place
_SAME = 2 / 3
# share of a rule's failures that a narrower one keeps: fewer would name a part of the mode
_KEPT = 0.75
# level, over all conditions, at which failures are rarer among the examples that one leaves out
_RARER = 0.01


@dataclass(frozen=True, eq=False)
class Leaf:
    """A rule, and the models that fail more often where it holds.

    Attributes
    ----------
    rule, meaning : str
        In SQL over the attributes of the examples, and in English.
    models : tuple of str
        Those that fail there beyond their ability, the clearest first.
    holds : bool array, shape (n,)
        Of the examples of the taxonomy.
    p : float
        Adjusted p-value of the clearest.
    """

    rule: str
    meaning: str
    models: tuple[str, ...]
    holds: Bools
    p: float


def find_leaves(matrix: Matrix, shown: Matrix, settings: Settings) -> list[Leaf]:
    """Search the attributes of the examples for rules under which models fail beyond ability.

    Parameters
    ----------
    matrix : Matrix
        All examples: those that every model passes show where a rule ends.
    shown : Matrix
        The examples of the taxonomy.
    settings : Settings

    Returns
    -------
    list of Leaf
        Those with most failing models first, then by the clearest.

    Notes
    -----
    Each model's failures are compared inside and outside of a rule among examples that as many
    models, and models as able, fail. Given these, one ability a model and two parameters an item
    leave the failures of a model exchangeable, so that the search's bars hold: at most with
    probability `Settings.level` any rule of the lists of all models is named where these explain
    all. A rule gets one more condition if its p-value is at most the level over all models and
    rules of so many conditions. Further models of a leaf are tested by the same conditional test
    (Mantel and Haenszel 1959, doi:10.1093/jnci/22.4.719), Holm-adjusted over all leaves and models,
    at the same level.
    Abilities are cut in two, so it holds approximately; simulated worlds show how far.
    """
    table = select_attributes(matrix)
    if not table.width:
        return []
    answered: Bools = np.any(matrix.trials > 0, axis=1)
    matrix, table = matrix.take(answered), table.filter(pl.Series(answered))
    failures = np.where(matrix.trials > 0, (matrix.values == 0).astype(np.float64), np.nan)
    classes = classify_difficulty(failures)
    modes, _ = find_modes(
        table,
        failures.T.copy(),
        outcomes=matrix.models,
        level=settings.level,
        strata=classes,
        shared=False,
    )
    conditions = list_conditions(table)
    found = []
    for mode in sorted(modes, key=lambda mode: mode.p_marginal):
        holds, own = _evaluate(mode.rule, table), failures[:, matrix.models.index(mode.outcome)]
        leaf = Leaf(mode.rule, mode.meaning, (mode.outcome,), holds, mode.p_marginal)
        # Bonferroni over the models and the rules with one condition more
        rules = len(matrix.models) * float(len(conditions)) ** (len(mode.conditions) + 1)
        found.append(_narrow(leaf, conditions, own, classes, settings.level / rules))
    leaves = _add_models(_merge(found), matrix.models, failures, classes, settings.level)
    rows = [matrix.places[name] for name in shown.examples]
    return [replace(leaf, holds=leaf.holds[rows]) for leaf in leaves if leaf.holds[rows].any()]


def select_attributes(matrix: Matrix) -> pl.DataFrame:
    """Select the columns that rules may name: flags, numbers, labels and texts."""
    if not matrix.attributes.width:
        return matrix.attributes
    return matrix.attributes.select(
        column.name for column in profile(matrix.attributes) if column.kind in _READ
    )


def classify_difficulty(failures: Floats) -> Ints:
    """Number classes of examples that about as many models, and models as able, fail.

    Parameters
    ----------
    failures : float64 array, shape (n, m)
        NaN where a model was not asked.

    Notes
    -----
    How many models fail an example, and the sum of their abilities, are sufficient for an item's
    two parameters. Abilities are the log odds of each model's rate.
    """
    rate, failed = np.nanmean(failures, axis=0), np.nan_to_num(failures)
    # half an example is added to each side, so that a model without failures has odds
    n = len(failures)
    ability = -np.log((rate * n + 0.5) / ((1 - rate) * n + 0.5))
    mean_ability = failed @ ability / np.maximum(failed.sum(axis=1), 1)
    share = np.round(np.nanmean(failures, axis=1) * failures.shape[1])
    if len(np.unique(share)) > _CLASSES:
        # cut so that the classes are of about equal size
        edges = np.unique(np.quantile(share, np.arange(1, _CLASSES) / _CLASSES))
        share = np.searchsorted(edges, share, side="right").astype(np.float64)
    # each class in two by the median: without, rules that go with an item's slope are named
    middle = np.zeros(len(share))
    for one in np.unique(share):
        rows = share == one
        middle[rows] = mean_ability[rows] > np.median(mean_ability[rows])
    return np.unique(2 * share + middle, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _narrow(
    leaf: Leaf, conditions: Sequence[Condition], failures: Floats, classes: Ints, bar: float
) -> Leaf:
    """Add the condition, if any, that leaves out examples which the model hardly fails.

    Examples that all models pass are classes of their own and say nothing there, so that the search
    cannot tell a rule from one that has many of them beside.
    """
    rows = np.flatnonzero(leaf.holds & ~np.isnan(failures))
    narrow, least = leaf, _RARER / len(conditions)
    one_class = np.zeros(len(rows), dtype=np.int64)
    for condition in conditions:
        holds = leaf.holds & condition.units.unpack()
        kept = failures[rows] @ holds[rows] >= _KEPT * failures[rows].sum()
        if not kept or f'"{condition.column}"' in leaf.rule:
            continue
        p = _test(holds[rows], failures[rows], one_class)
        if p < least and _test(holds, failures, classes) <= bar:
            meaning = f"{leaf.meaning} and {condition.meaning}"
            narrow = replace(
                leaf, rule=f"{leaf.rule} AND {condition.rule}", meaning=meaning, holds=holds
            )
            least = p
    return narrow


def _evaluate(rule: str, table: pl.DataFrame) -> Bools:
    return np.asarray(Rule.parse(rule).holds(table).to_numpy(), dtype=np.bool_)


def _merge(found: Iterable[Leaf]) -> list[Leaf]:
    """Make one leaf of rules of several models that hold for nearly the same examples."""
    leaves: list[Leaf] = []
    for one in found:
        overlaps = [_measure_overlap(one.holds, leaf.holds) for leaf in leaves]
        best = int(np.argmax(overlaps)) if overlaps else 0
        if not overlaps or overlaps[best] < _SAME:
            leaves.append(one)
        elif one.models[0] not in leaves[best].models:
            leaves[best] = replace(leaves[best], models=(*leaves[best].models, *one.models))
    return leaves


def _measure_overlap(a: Bools, b: Bools) -> float:
    return float((a & b).sum() / max((a | b).sum(), 1))


def _add_models(
    leaves: Sequence[Leaf], models: Sequence[str], failures: Floats, classes: Ints, level: float
) -> list[Leaf]:
    """Add the models that fail a leaf beyond their ability by the conditional test."""
    if not leaves:
        return []
    p = np.array([[_test(leaf.holds, row, classes) for row in failures.T] for leaf in leaves])
    adjusted = holm(p.ravel()).reshape(p.shape)
    out = []
    for leaf, row in zip(leaves, adjusted, strict=True):
        more = [
            models[j]
            for j in np.argsort(row, kind="stable")
            if row[j] <= level and models[j] not in leaf.models
        ]
        out.append(replace(leaf, models=(*leaf.models, *more)))
    return sorted(out, key=lambda leaf: (-len(leaf.models), leaf.p))


def _test(inside: Bools, failures: Floats, classes: Ints) -> float:
    """Return the p-value of so many failures inside, exchangeable within classes."""
    scored = ~np.isnan(failures)
    count = int(classes.max()) + 1
    size, on, errors = (
        np.bincount(classes[rows], minlength=count).astype(np.int64)
        for rows in (scored, scored & inside, scored & (failures == 1))
    )
    return exp(log_tail(int((failures[inside & scored]).sum()), on, errors, size))


def list_telling(matrix: Matrix, inside: Bools, models: Sequence[str]) -> Places:
    """List examples of a leaf, those first that its models fail and the others pass."""
    rows, failed = np.flatnonzero(inside), 1 - np.nan_to_num(matrix.values, nan=0.5)
    own = np.isin(matrix.models, list(models))
    others = failed[rows][:, ~own].mean(axis=1) if not own.all() else 0.0
    return rows[np.argsort(others - failed[rows][:, own].mean(axis=1), kind="stable")]
