"""The form of taxonomy.json: what `Taxonomy.save` writes beside the arrays, and its versions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from groundfault.taxonomy.fitting.labels import EnrichedAttribute
from groundfault.taxonomy.fitting.matrix import Exclusions
from groundfault.taxonomy.fitting.power import DetectableClasses
from groundfault.taxonomy.fitting.settings import Settings

SCHEMA_VERSION = 1

Numbers = tuple[float | None, ...]
"""Numbers in a row, null where one is not known: JSON has no NaN."""


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the file; keys that this version does not know are refused."""


class StoredTest(_Section, frozen=True):
    """A statistic and its draws under a null hypothesis, with what follows from them."""

    name: str
    observed: float
    p: float
    mean: float | None
    spread: float | None
    draws: tuple[float, ...]


class StoredStability(_Section, frozen=True):
    """`Stability`, by what was changed in the refits."""

    jaccard: dict[str, Numbers]
    agreement: dict[str, float | None]
    bootstrap: dict[str, Numbers]
    refits: int


class StoredCluster(_Section, frozen=True):
    """`Cluster`, and its name."""

    number: int
    size: int
    failure: Numbers
    expected: Numbers
    stability: dict[str, float]
    published: bool
    reason: str
    terms: tuple[str, ...]
    attributes: tuple[EnrichedAttribute, ...]
    exemplars: tuple[str, ...]
    sources: dict[str, int]
    name: str


class TaxonomyData(_Section, frozen=True, omit_defaults=True):
    """The content of taxonomy.json.

    Attributes
    ----------
    groundfault_taxonomy : int
        Version of this form.
    verdict, coverage, by_the_papers_rule
        What follows from the rest, for readers of the file; computed anew on loading.
    apart : Exclusions
        Examples and models that were not clustered.
    detectable : DetectableClasses, optional
        What could have been seen, where no direction was; left out elsewhere.
    """

    groundfault_taxonomy: int
    verdict: str
    evidence_hash: str
    title: str
    settings: Settings
    models: tuple[str, ...]
    examples: tuple[str, ...]
    rate: float
    apart: Exclusions
    dimensions: int | None
    spread: float
    coverage: float
    by_the_papers_rule: int
    tests: dict[str, StoredTest]
    stability: StoredStability
    clusters: tuple[StoredCluster, ...]
    detectable: DetectableClasses | None = None


class _Version(msgspec.Struct):
    groundfault_taxonomy: int


def decode_taxonomy(content: bytes) -> TaxonomyData:
    """Read taxonomy.json; a file of a newer version is refused.

    Raises
    ------
    ValueError
        If it is no taxonomy, or of a version that is not known here.
    """
    version = msgspec.json.decode(content, type=_Version).groundfault_taxonomy
    # there is one version so far; the next one adds a function that changes version 1 into it
    if version != SCHEMA_VERSION:
        raise ValueError(f"its version is {version}, and {SCHEMA_VERSION} is read here")
    return msgspec.json.decode(content, type=TaxonomyData)


def null_unknown(values: Sequence[float]) -> Numbers:
    """Numbers as JSON holds them: None for NaN."""
    return tuple(None if np.isnan(value) else float(value) for value in values)


def restore_unknown(values: Numbers) -> tuple[float, ...]:
    """Numbers as arrays hold them: NaN for None."""
    return tuple(np.nan if value is None else value for value in values)
