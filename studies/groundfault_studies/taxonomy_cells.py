"""Numbers of folds, read off and compared: what tables and claims are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundfault.render import words
from groundfault_lab.taxonomy.use.basis import STRATEGIES
from groundfault_studies.ranks import bootstrap_bands
from groundfault_studies.taxonomy_folds import UNIFORM

if TYPE_CHECKING:
    from groundfault_lab.taxonomy.fitting.matrix import Matrix
    from groundfault_lab.taxonomy.fitting.settings import Settings
    from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy

Floats = NDArray[np.float64]
Folds = list[dict[str, Any]]
Pick = Callable[[dict[str, Any]], float | None]

GOAL = 50
"""Tasks at which strategies are compared in pairs, as in the paper's headline."""

METHODS_NAMED = {
    "majority": "Majority",
    "nearest": "Nearest model",
    "neighbours": "k-NN (k = 5)",
    "ability": "Item response, one ability",
    "low_rank": "Low-rank factors beyond ability",
    "clusters": "Rates of the clusters, shrunk",
}
PRESETS = {"paper": "the paper's procedure", "default": "default"}
KINDS = {"direct": "as asked", "shrunk": "shrunk", "ability": "by ability"}


@dataclass(frozen=True)
class TaxonomyEvaluation:
    """Everything that the tables are made of.

    Attributes
    ----------
    matrix : Matrix
        The models that were left out one at a time.
    incomplete : int
        Models with holes, which only Table 15 looks at.
    paper, default : Settings
    benchmark : str or None
    taxonomies : dict of str to Taxonomy
        Of all models, by preset.
    folds : dict of str to list
        By preset, and ``oracle``.
    sweeps : dict of str to list
        Rows of Tables 1, 10 and 15.
    trials : int
    """

    matrix: Matrix
    incomplete: int
    paper: Settings
    default: Settings
    benchmark: str | None
    taxonomies: dict[str, Taxonomy]
    folds: dict[str, list[dict[str, Any]]]
    sweeps: dict[str, list[dict[str, Any]]]
    trials: int


def usable(folds: Iterable[dict[str, Any]]) -> Folds:
    """Folds with clusters to rank."""
    return [row for row in folds if row["clusters"] >= 2]


def cell(row: Mapping[str, Any], mode: str, strategy: str, budget: int, *path: str) -> float | None:
    """A number of a fold, by where it was scored, strategy and budget; None where it was not
    measured.
    """
    at: Any = row.get(mode, {}).get(strategy, {}).get(str(budget))
    for step in path:
        at = None if at is None else at[step]
    return None if at is None else float(at)


def values(folds: Folds, pick: Pick) -> Floats:
    """What is known of the folds that can be used: shape (folds,)."""
    return np.array(
        [value for row in usable(folds) if (value := pick(row)) is not None], dtype=np.float64
    )


def complete(folds: Folds) -> Folds:
    """Folds in which every strategy could spend the budget of the paired comparison."""
    return [
        row
        for row in usable(folds)
        if row["held out"]["prior"]["tau"] is not None and str(GOAL) in row["held out"]["random"]
    ]


def contests(folds: Folds) -> list[tuple[str, str]]:
    """Every strategy with every way of estimating rates."""
    names = [s for s in (*STRATEGIES, UNIFORM) if folds and s in folds[0]["held out"]]
    return [(s, kind) for s in names for kind in KINDS]


def gain(folds: Folds, what: str, base: str) -> dict[tuple[str, str], Floats]:
    """Differences by model from a base: random as asked, random with the same rates, or the
    prior.
    """

    def value(row: dict[str, Any], strategy: str, kind: str) -> float:
        return float(row["held out"][strategy][str(GOAL)][kind][what])

    out = {}
    for strategy, kind in contests(folds):
        if strategy == "random" and (base == "same" or (base == "random" and kind == "direct")):
            continue
        if base == "prior":
            against = [float(row["held out"]["prior"][what]) for row in folds]
        else:
            against = [value(row, "random", kind if base == "same" else "direct") for row in folds]
        out[strategy, kind] = np.array([value(row, strategy, kind) for row in folds]) - against
    return out


def interval(mean: float, low: float, high: float) -> str:
    """A difference with its interval."""
    if not np.isfinite(low):
        return words.signed(mean, 3)
    return f"{words.signed(mean, 3)} [{words.signed(low, 3)}, {words.signed(high, 3)}]"


def with_error(values: Floats, digits: int = 2) -> str | None:
    """Mean over folds and half of its 95 % interval."""
    if not len(values):
        return None
    mean, _, high = bootstrap_bands(values[:, None])
    half, text = float(high[0] - mean[0]), plain(float(mean[0]), digits)
    return f"{text} ± {half:.{digits}f}" if np.isfinite(half) else text


def plain(value: float, digits: int = 2) -> str:
    """So many digits, with a true minus."""
    return f"{value if abs(value) >= 0.5 * 10**-digits else 0.0:.{digits}f}".replace("-", "−")
