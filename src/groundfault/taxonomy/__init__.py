"""Taxonomies: clusters of examples by which models fail on them, and whether there is anything to them.

::

    from groundfault import Evidence
    from groundfault.taxonomy import fit

    evidence = Evidence.from_table("answers.parquet", id="id", model="model", outcome="error")
    taxonomy = fit(evidence)
    print(taxonomy.verdict)
    taxonomy.save("taxonomy/")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundfault.taxonomy.fitting import fit
    from groundfault.taxonomy.generation import generate
    from groundfault.taxonomy.held_out import claims, with_answers
    from groundfault.taxonomy.labeller import label
    from groundfault.taxonomy.matrix import Matrix
    from groundfault.taxonomy.settings import Settings
    from groundfault.taxonomy.taxonomy import Cluster, Taxonomy

_HOMES = {
    "Cluster": "taxonomy",
    "Matrix": "matrix",
    "Settings": "settings",
    "Taxonomy": "taxonomy",
    "claims": "held_out",
    "fit": "fitting",
    "generate": "generation",
    "label": "labeller",
    "with_answers": "held_out",
}

__all__ = ["Cluster", "Matrix", "Settings", "Taxonomy", "claims", "fit", "generate", "label", "with_answers"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'groundfault.taxonomy' has no attribute {name!r}")
    return getattr(import_module(f"groundfault.taxonomy.{_HOMES[name]}"), name)
