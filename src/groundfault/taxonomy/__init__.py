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
    from groundfault.taxonomy.fitting.fit import fit as fit
    from groundfault.taxonomy.fitting.matrix import Matrix as Matrix
    from groundfault.taxonomy.fitting.settings import Settings as Settings
    from groundfault.taxonomy.fitting.taxonomy import Cluster as Cluster
    from groundfault.taxonomy.fitting.taxonomy import Taxonomy as Taxonomy
    from groundfault.taxonomy.use.claims import add_answers as add_answers
    from groundfault.taxonomy.use.claims import judge_claims as judge_claims
    from groundfault.taxonomy.words.generation import generate as generate
    from groundfault.taxonomy.words.labeller import label as label

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
__all__ = sorted(_HOMES)

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
