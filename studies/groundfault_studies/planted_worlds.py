"""Worlds for slice finders: examples with columns, an embedding and probabilities, and errors that
are planted.

Nothing but what is planted has anything to do with the errors: in the null world whatever is
confirmed is false."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.evidence import Evidence

Bools = NDArray[np.bool_]

WORLDS = ("null", "rule", "threshold", "cluster", "unsure", "two")
BASE, RAISED = 0.15, 0.7
"""Error rates off and on what is planted."""

_CLUSTERS, _WIDTH, _APART = 5, 8, 1.5


@dataclass(frozen=True)
class PlantedWorld:
    """A data set, and the slices planted in it.

    Attributes
    ----------
    evidence : Evidence
    planted : dict of str to bool array, shape (n,)
        By a name, the examples of each slice, in the order of the evidence.
    """

    evidence: Evidence
    planted: dict[str, Bools]


def draw(world: str, rng: np.random.Generator, rows: int = 1000) -> PlantedWorld:
    """Draw a data set.

    Parameters
    ----------
    world : str
        ``null``; ``rule``: German examples of at least 400 of 1,000 words (a fifth of all);
        ``threshold``: the fifth of most words; ``cluster``: one of five clusters of the embedding;
        ``unsure``: the fifth of least confidence; ``two``: a rule and a cluster.
    rng : numpy.random.Generator
    rows : int
    """
    words, lang = rng.integers(0, 1000, rows), rng.choice(["de", "en", "fr"], rows)
    cluster, confidence = rng.integers(0, _CLUSTERS, rows), rng.uniform(0.5, 1.0, rows)
    centres = _APART * rng.normal(size=(_CLUSTERS, _WIDTH))
    slices = {
        "rule": (lang == "de") & (words >= 400),
        "threshold": words >= 800,
        "cluster": cluster == 0,
        "unsure": confidence < 0.6,
    }
    names = {"null": (), "two": ("rule", "cluster")}.get(world, (world,))
    planted = {name: slices[name] for name in names}
    on_slice = np.logical_or.reduce([np.zeros(rows, dtype=np.bool_), *planted.values()])
    error = rng.random(rows) < np.where(on_slice, RAISED, BASE)
    label = rng.integers(0, 2, rows)
    sure = np.where(label ^ error, confidence, 1 - confidence)
    frame = pl.DataFrame(
        {
            "id": [f"e{i:06d}" for i in range(rows)],
            "error": error,
            "words": words,
            "lang": lang,
            "score": rng.normal(size=rows),
            "flag": rng.random(rows) < 0.3,
            "embedding": pl.Series(list(centres[cluster] + rng.normal(size=(rows, _WIDTH)))),
            "probability_0": 1 - sure,
            "probability_1": sure,
            "label": label,
        }
    )
    # the label, beside the probabilities, would be the error itself
    return PlantedWorld(
        Evidence.from_table(frame, id="id", outcome="error", ignore=("label",)), planted
    )
