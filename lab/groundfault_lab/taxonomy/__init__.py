"""Taxonomies: clusters of examples that models fail on together, tested against chance.

::

    from groundfault import Evidence
    from groundfault_lab.taxonomy import fit

    evidence = Evidence.from_table("answers.parquet", id="id", model="model", outcome="error")
    taxonomy = fit(evidence)
    print(taxonomy.verdict)
    taxonomy.save("taxonomy/")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault_lab.taxonomy.fitting.fit import fit as fit
    from groundfault_lab.taxonomy.fitting.matrix import Matrix as Matrix
    from groundfault_lab.taxonomy.fitting.settings import Settings as Settings
    from groundfault_lab.taxonomy.fitting.taxonomy import Cluster as Cluster, Taxonomy as Taxonomy
    from groundfault_lab.taxonomy.use.claims import (
        add_answers as add_answers,
        judge_claims as judge_claims,
    )
    from groundfault_lab.taxonomy.words.generation import generate as generate
    from groundfault_lab.taxonomy.words.labeller import label as label

__getattr__, __dir__, __all__ = open_front_door(__name__)
