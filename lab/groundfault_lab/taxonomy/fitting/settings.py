"""Settings of a taxonomy: decided before looking, with two presets."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from groundfault.base.long_work import stream
from groundfault.errors import PlanError, require_word
from groundfault_lab.taxonomy.fitting.matrix import Imputation

Signature = Literal["residual", "passes"]
Reducer = Literal["signal", "none", "pca", "umap"]
Clusterer = Literal["means", "hdbscan"]
Publication = Literal["worlds", "label_fixed"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The rules by which examples are clustered, and a cluster is published.

    Parameters
    ----------
    signature : {"residual", "passes"}
        What distinguishes examples: by how much each model does better or worse than its ability
        and the item's difficulty explain, or which models pass.
    alpha : float
        Weight of the texts beside failures, from 0 to 1; default 0. Needs texts or vectors if
        above 0.
    reducer : {"signal", "none", "pca", "umap"}
        Dimension reduction; default signal. ``signal`` takes the principal directions of the
        residuals that are stronger than any of worlds with one ability; ``pca`` and ``umap`` take
        `dimensions` of them.
    dimensions : int
        Largest number of dimensions after reduction; default 8.
    clusterer : {"means", "hdbscan"}
        Clustering; default means. K-means has one centre more than there are directions, and leaves
        out examples between two centres.
    min_cluster_size, min_samples : int
        Of HDBSCAN; smaller clusters of k-means are noise too.
    core : float
        K-means keeps examples that belong to their centre with at least this chance.
    split : int, optional
        Clusters of more examples are split once more, by answers and failing that by what they say.
    parameters : {1, 2}
        Of an item in the item-response fit.
    imputation : {"column_mean", "row_mean", "half", "zero", "none"}
        Values for missing answers in the paper's preset; default column_mean. See
        `groundfault_lab.taxonomy.fitting.matrix.Matrix.imputed`.
    frontier : tuple of str
        Keep only examples that this model, or another one named, failed.
    score : float
        Score from which a try is a pass; default 0.7.
    rate : float
        Share of passed tries from which an example is passed; default 0.5. See
        `groundfault_lab.taxonomy.fitting.matrix.Matrix.of`.
    level : float
        Level of the tests against null worlds; default 0.05.
    stability : float
        Smallest Jaccard index of a published cluster; default 0.6. It is the mean over changed
        examples, models and seeds.
    permutations : int
        Number of permutations of the paper's label-fixed test; default 1000.
    worlds : int
        Number of null worlds of each kind; default 99.
    refits : int
        Number of refits on halves of the examples and of the models; default 20.
    bootstraps : int
        Number of resamples of the examples; default 20, 50 in the paper.
    rules : bool
        Publish rules over the examples' attributes as leaves: those under which models fail more
        than their ability explains. Default true; not in the paper's preset. See
        `groundfault_lab.taxonomy.fitting.leaves.find_leaves`.
    publication : {"worlds", "label_fixed"}
        Clusters that are published: those that beat null worlds and are found again, or all of
        them if the paper's test rejects. Default worlds; label_fixed in the paper's preset.
    seed : int
        Seed of every random draw; default 0, 42 in the paper's preset.
    """

    signature: Signature = "residual"
    alpha: float = 0.0
    reducer: Reducer = "signal"
    dimensions: int = 8
    clusterer: Clusterer = "means"
    min_cluster_size: int = 10
    min_samples: int = 5
    core: float = 0.8
    split: int | None = None
    parameters: Literal[1, 2] = 2
    imputation: Imputation = "column_mean"
    frontier: tuple[str, ...] = ()
    score: float = 0.7
    rate: float = 0.5
    level: float = 0.05
    stability: float = 0.6
    permutations: int = 1000
    worlds: int = 99
    refits: int = 20
    bootstraps: int = 20
    rules: bool = True
    publication: Publication = "worlds"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kind in {
            "signature": Signature,
            "reducer": Reducer,
            "clusterer": Clusterer,
            "imputation": Imputation,
            "publication": Publication,
        }.items():
            require_word(name, getattr(self, name), get_args(kind))
        # no number of worlds gives a p-value of 0
        if self.level == 0:
            raise PlanError("level must be above 0")
        for name in ("alpha", "core", "level", "stability"):
            if not 0 <= getattr(self, name) <= 1:
                raise PlanError(f"{name} must be in [0, 1], not {getattr(self, name):g}")
        minima = {"dimensions": 1, "min_cluster_size": 2, "min_samples": 1}
        minima |= dict.fromkeys(("permutations", "worlds", "refits", "bootstraps", "seed"), 0)
        for name, low in minima.items():
            if getattr(self, name) < low:
                raise PlanError(f"{name} must be at least {low}, not {getattr(self, name)}")
        if self.parameters not in (1, 2):
            raise PlanError(f"parameters must be 1 or 2, not {self.parameters}")
        if self.reducer == "signal" and self.signature != "residual":
            raise PlanError(
                "reducer='signal' compares residuals with worlds of one ability: it needs residuals"
            )
        # 19 worlds is the fewest with a p-value of 0.05
        if self.reducer == "signal" and self.worlds < 19:
            raise PlanError(
                "reducer='signal' needs at least 19 null worlds to set its bar by, not "
                f"{self.worlds}"
            )

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Settings:
        """Return the settings of a preset, with some changed.

        Parameters
        ----------
        name : {"default", "paper"}
            ``default`` is deterministic and adjusts for ability; ``paper`` is FailureScope
            (arXiv:2606.09878): passes and texts at alpha 0.1, UMAP to 30 dimensions, HDBSCAN (10,
            5), clusters above 200 split, all of them published if its test of fixed labels
            rejects.

        Raises
        ------
        PlanError
            If the name or a setting is unknown, or a setting is out of range.
        """
        require_word("preset", name, _PRESETS)
        try:
            return cls(**(_PRESETS[name] | changes))
        except TypeError as error:
            raise PlanError(f"not the settings of a taxonomy: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain words and numbers."""
        # lists, as JSON gives them back: the hash is of this form
        return dataclasses.asdict(self) | {"frontier": list(self.frontier)}

    @property
    def hash(self) -> str:
        """Return the SHA-256 of everything decided."""
        # keys are sorted, so that a hash does not depend on the order of fields
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def rng(self, purpose: str, counter: int = 0) -> np.random.Generator:
        """Make a generator of its own for each purpose and counter."""
        return stream(self.seed, purpose, counter)


_PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # FailureScope, arXiv:2606.09878
    "paper": {
        "signature": "passes",
        "alpha": 0.1,
        "reducer": "umap",
        "dimensions": 30,
        "clusterer": "hdbscan",
        "split": 200,
        "bootstraps": 50,
        "rules": False,
        "publication": "label_fixed",
        "seed": 42,
    },
}
