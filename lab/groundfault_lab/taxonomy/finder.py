"""Taxonomy: clusters of examples that models fail on together, as rules on what an example says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from groundfault.core.candidate import Candidate
from groundfault.core.columns import match_attributes
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError
from groundfault.finders import Parameters


@dataclass(frozen=True)
class Clusters(Parameters):
    """Propose the published clusters of a taxonomy of the discovery examples.

    An example belongs to the cluster with the nearest mean vector.

    Clusters are made from which models fail, on discovery examples alone; the rule for another
    example reads its vector. So the held-out axis is the example. For claims about held-out models
    see `groundfault_lab.taxonomy.claims`.

    Parameters
    ----------
    vectors : str
        Column of vectors of the examples.
    worlds, refits : int
        Null worlds of each kind, and refits on halves; see `groundfault_lab.taxonomy.Settings`.
    unstable : bool
        Also clusters that are not published.
    seed : int

    Raises
    ------
    InputError
        If there is no such column.
    """

    vectors: str = "embedding"
    worlds: int = 99
    refits: int = 20
    unstable: bool = False
    seed: int = 0
    name: str = "taxonomy"

    uses_outcomes = True

    def propose(self, discovery: Evidence) -> Iterable[Candidate]:
        """Propose clusters of the discovery examples; none for fewer than three models."""
        from groundfault_lab.taxonomy.fitting.fit import fit
        from groundfault_lab.taxonomy.fitting.settings import Settings

        match_attributes(discovery, [self.vectors])
        settings = Settings(
            worlds=self.worlds,
            refits=self.refits,
            bootstraps=0,
            permutations=0,
            rules=False,
            seed=self.seed,
        )
        try:
            taxonomy = fit(discovery, settings, vectors=self.vectors)
        except InputError:  # too little to compare is nothing to propose
            return []
        return taxonomy.text_candidates(self.vectors, unstable=self.unstable)
