"""Taxonomies: clusters of examples that models fail on together, tested against chance.

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

from groundfault.base.deprecation import rename_attributes

if TYPE_CHECKING:
    from groundfault.taxonomy.fitting.fit import fit
    from groundfault.taxonomy.fitting.matrix import Matrix
    from groundfault.taxonomy.fitting.settings import Settings
    from groundfault.taxonomy.fitting.taxonomy import Cluster, Taxonomy
    from groundfault.taxonomy.use.claims import add_answers, judge_claims
    from groundfault.taxonomy.words.generation import generate
    from groundfault.taxonomy.words.labeller import label

_HOMES = {
    "Cluster": "fitting.taxonomy",
    "Matrix": "fitting.matrix",
    "Settings": "fitting.settings",
    "Taxonomy": "fitting.taxonomy",
    "add_answers": "use.claims",
    "fit": "fitting.fit",
    "generate": "words.generation",
    "judge_claims": "use.claims",
    "label": "words.labeller",
}

__all__ = [
    "Cluster",
    "Matrix",
    "Settings",
    "Taxonomy",
    "add_answers",
    "fit",
    "generate",
    "judge_claims",
    "label",
]


_find_renamed = rename_attributes(
    __name__,
    {
        "claims": "groundfault.taxonomy:judge_claims",
        "with_answers": "groundfault.taxonomy:add_answers",
    },
)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        return _find_renamed(name)
    return getattr(import_module(f"groundfault.taxonomy.{_HOMES[name]}"), name)
