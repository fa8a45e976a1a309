"""Taxonomy: clusters of examples by which models fail on them, with the tests behind them."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from msgspec import structs
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.base.files import replace_folder, write_bytes, write_text
from groundfault.base.reading import MAX_ROWS, decode_json, read_bytes
from groundfault.core.candidate import Candidate, FittedColumn
from groundfault.core.rules import Rule, quote
from groundfault.errors import InputError, first_line
from groundfault.readers.safely import Archive
from groundfault.readers.table_size import measure_table
from groundfault.render.words import plural
from groundfault_lab.taxonomy.fitting.leaves import list_telling
from groundfault_lab.taxonomy.fitting.matrix import Exclusions, Matrix
from groundfault_lab.taxonomy.fitting.nulls import DetectableClasses, Test
from groundfault_lab.taxonomy.fitting.partition import Partition
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.fitting.stability import Stability
from groundfault_lab.taxonomy.fitting.stored import (
    SCHEMA_VERSION,
    Numbers,
    Stored,
    decode_versioned,
    restore_unknown,
    set_fields,
)

ANSWER = "answer of "
"""What columns of the models' answers begin with, where a rule reads them; see `with_answers`."""


@dataclass(frozen=True)
class EnrichedAttribute:
    """An attribute that is more frequent in a cluster than in the others.

    Attributes
    ----------
    what : str
        Such as ``topic = algebra`` or ``n_words above 31``.
    inside, outside : float
        Share of the examples with it, of those for which it is known.
    p : float
        Exact one-sided p-value, Holm-adjusted over all attributes and clusters of the taxonomy.
    """

    what: str
    inside: float
    outside: float
    p: float


@dataclass(frozen=True)
class Cluster:
    """Examples that the same models fail on: a leaf, which is a rule, or a cluster of answers.

    Attributes
    ----------
    number : int
        From 1, by falling size.
    size : int
    failure, expected : tuple of float
        Share of its examples that each model failed, and that its ability and their difficulty lead
        one to expect; NaN where it was asked none.
    stability : dict of str to float
        Mean Jaccard index when examples, models and seeds change.
    published : bool
    reason : str
        Why, or why not, in a sentence.
    terms : tuple of str
        Words that set it apart.
    attributes : tuple of Enriched
    exemplars : tuple of str
        The examples nearest to its centroid.
    sources : dict of str to int
        Examples of each benchmark, where benchmarks are known.
    rule, meaning : str
        Of a leaf: the rule that its examples obey, in SQL over their attributes and in English.
    models : tuple of str
        Of a leaf: the models that fail in it beyond their ability.
    name : str
        Its number and what sets it apart.
    """

    number: int
    size: int
    failure: Numbers
    expected: Numbers
    stability: dict[str, float]
    published: bool
    reason: str
    terms: tuple[str, ...] = ()
    attributes: tuple[EnrichedAttribute, ...] = ()
    exemplars: tuple[str, ...] = ()
    sources: dict[str, int] = field(default_factory=dict)
    rule: str = ""
    meaning: str = ""
    models: tuple[str, ...] = ()
    name: str = field(init=False)

    def __post_init__(self) -> None:
        attribute = self.attributes[0].what if self.attributes else ""
        description = self.meaning or ", ".join(self.terms[:3]) or attribute
        kind = "leaf" if self.rule else "cluster"
        set_fields(
            self,
            failure=restore_unknown(self.failure),
            expected=restore_unknown(self.expected),
            name=f"{kind} {self.number}" + (f": {description}" if description else ""),
        )

    @property
    def excess(self) -> Floats:
        """Return failures beyond what ability and difficulty explain, by model."""
        return np.array(self.failure, dtype=np.float64) - np.array(self.expected, dtype=np.float64)


class TaxonomyData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
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
    groundfault_version : str
        The version that fitted it; 0.1 did not say.
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
    tests: dict[str, Test]
    stability: Stability
    clusters: tuple[Cluster, ...]
    detectable: DetectableClasses | None = None
    groundfault_version: str = ""


# settings that version 0.1 did not have, as it acted; and fields of a cluster that is a rule
_ADDED: dict[str, Any] = {"rules": False, "publication": "worlds"}
_OF_LEAVES: dict[str, Any] = {"rule": "", "meaning": "", "models": []}
_SHARED = (
    "settings clusters tests stability dimensions evidence_hash title detectable"
    " groundfault_version"
).split()
"""Fields that a taxonomy and the content of its file have in common."""


@dataclass(frozen=True, eq=False)
class Taxonomy(Stored):
    """A fitted taxonomy. `groundfault_lab.taxonomy.fit` makes one, `load` reads one.

    Attributes
    ----------
    settings : Settings
    matrix : Matrix
        The examples that were clustered, by the models that were looked at.
    partition : Partition
    clusters : tuple of Cluster
        All of them, stable or not.
    tests : dict of str to Test
        ``direction`` (of the signal reducer), ``label_fixed``, and for each kind of null world
        ``one_ability``, ``column_shuffle``, and the same with ``_reduced``.
    stability : Stability
    dimensions : int or None
        Directions found, of the signal reducer.
    evidence_hash : str
    title : str
        What it is of, for its report.
    detectable : DetectableClasses or None
        What could have been seen, where no direction was.
    groundfault_version : str
        The version that fitted it.
    """

    settings: Settings
    matrix: Matrix
    partition: Partition
    clusters: tuple[Cluster, ...]
    tests: dict[str, Test]
    stability: Stability
    dimensions: int | None = None
    evidence_hash: str = ""
    title: str = ""
    detectable: DetectableClasses | None = None
    groundfault_version: str = ""

    @property
    def published(self) -> tuple[Cluster, ...]:
        """Return clusters that are more than chance and ability, and stay."""
        return tuple(c for c in self.clusters if c.published)

    @property
    def unstable(self) -> tuple[Cluster, ...]:
        """Return the other clusters."""
        return tuple(c for c in self.clusters if not c.published)

    @property
    def by_the_papers_rule(self) -> int:
        """Count the clusters that the paper would publish: all, if the label-fixed test rejects."""
        test = self.tests.get("label_fixed")
        return self.partition.clusters if test is not None and test.p <= self.settings.level else 0

    @property
    def leaves(self) -> tuple[Cluster, ...]:
        """Return the rules among the clusters; they come first."""
        return tuple(c for c in self.clusters if c.rule)

    @cached_property
    def inside(self) -> Bools:
        """Return whether an example is in each cluster: shape (n, clusters)."""
        leaves, frame = self.leaves, self.matrix.attributes
        rules = [np.asarray(Rule.parse(leaf.rule).holds(frame), dtype=np.bool_) for leaf in leaves]
        labels = self.partition.labels[:, None]
        members = labels == np.arange(self.partition.clusters)
        return np.hstack([np.array(rules).reshape(-1, len(self.matrix)).T.astype(bool), members])

    @cached_property
    def labels(self) -> dict[str, int]:
        """Return the number of the first cluster of each example, by name; 0 for none."""
        # numbers start at 1 in all that users see; 0 stands for none
        first = np.where(self.inside.any(axis=1), self.inside.argmax(axis=1) + 1, 0)
        return dict(zip(self.matrix.examples, first.tolist(), strict=True))

    def list_members(self, number: int) -> Places:
        """List the examples of a cluster, by its number from 1, the most typical first."""
        cluster = self.clusters[number - 1]
        if cluster.rule:
            return list_telling(self.matrix, self.inside[:, number - 1], cluster.models)
        return self.partition.list_nearest(number - 1 - len(self.leaves))

    @property
    def verdict(self) -> str:
        """Return the conclusion in a sentence."""
        models = f"{len(self.matrix.models)} models on {len(self.matrix):,} examples"
        # first, because then there are no clusters to speak of either
        if self.dimensions == 0 and not self.leaves:
            head = (
                f"Nothing was seen beyond one ability a model: {models} "
                f"(p = {self.tests['direction'].p:.3g})."
            )
            return head if self.detectable is None else f"{head} {self.detectable.sentence}"
        if self.leaves:
            return self._describe_leaves(models)
        if not self.clusters:
            return (
                f"No clusters were seen among {models}; that excludes none that are weak or rare."
            )
        if not self.published:
            reason = self.clusters[0].reason
            return (
                f"None of {len(self.clusters)} clusters is published. The largest: "
                f"{reason[0].lower()}{reason[1:]}"
            )
        # of the clustered examples; those set apart are counted in the report
        coverage = self.inside[:, [c.number - 1 for c in self.published]].any(axis=1).mean()
        return (
            f"{len(self.published)} of {len(self.clusters)} clusters are published; they hold "
            f"{coverage:.0%} of {len(self.matrix):,} examples."
        )

    def _describe_leaves(self, models: str) -> str:
        leaves, clusters = self.leaves, self.clusters[len(self.leaves) :]
        failing = len({model for leaf in leaves for model in leaf.models})
        coverage = self.inside[:, : len(leaves)].any(axis=1).mean()
        verdict = (
            f"{plural(len(leaves), 'failure mode')} among {models}, as rules in which "
            f"{plural(failing, 'model')} fail beyond ability and difficulty; the rules hold for "
            f"{coverage:.0%} of the examples."
        )
        if not clusters:
            return verdict
        count = sum(c.published for c in clusters)
        return f"{verdict} {count} of {len(clusters)} clusters of answers are published."

    def candidates(self, *, unstable: bool = False) -> list[Candidate]:
        """Turn published clusters into candidates, by the centroid nearest to the models' answers.

        Parameters
        ----------
        unstable : bool
            Also those that are not published.

        Raises
        ------
        InputError
            If the taxonomy cannot be applied again: UMAP has no rule, and texts are no answers.

        Notes
        -----
        The rules read a column of answers for each of `matrix`'s models;
        `groundfault_lab.taxonomy.with_answers` adds them to the evidence of another model. They say
        nothing fair of the models whose answers they read.
        """
        clusters = self.clusters if unstable else self.published
        if not clusters:
            return []
        if not self.partition.rule and not all(c.rule for c in clusters):
            raise InputError(
                f"a taxonomy with reducer={self.settings.reducer!r} and "
                f"alpha={self.settings.alpha:g} has no rule for another example; fit it with "
                "reducer='pca', 'signal' or 'none', and alpha=0"
            )
        answers = tuple(ANSWER + model for model in self.matrix.models)
        by_answers = any(not c.rule for c in clusters)
        column = FittedColumn("taxonomy", "answers", answers, self.rule) if by_answers else None
        by = "the answers of the models it was fitted to"
        return [_make_candidate(c, column, by) for c in clusters]

    @property
    def rule(self) -> dict[str, Floats]:
        """Return what `groundfault_lab.taxonomy.centroids.of_answers` needs."""
        partition = self.partition
        # HDBSCAN has no variance: there the nearest centroid decides, however far
        level = self.settings.core if partition.spread > 0 else 0.0
        first = len(self.leaves)
        return partition.rule | _make_rule(partition.centroid, partition.spread, level, first)

    def text_candidates(self, column: str, *, unstable: bool = False) -> list[Candidate]:
        """Turn clusters into candidates, by the mean vector nearest to what an example says.

        Parameters
        ----------
        column : str
            The evidence's column of vectors, made in the same way as those of the taxonomy.
        unstable : bool

        Raises
        ------
        InputError
            If the taxonomy knows no vectors.
        """
        clusters = [c for c in (self.clusters if unstable else self.published) if not c.rule]
        if not clusters:
            return []
        if self.matrix.semantic is None:
            raise InputError(
                "the taxonomy was fitted without texts or vectors, so it has no rule by what "
                "examples say"
            )
        labels = self.partition.labels
        centroid = np.array(
            [self.matrix.semantic[labels == c].mean(axis=0) for c in range(self.partition.clusters)]
        )
        first = len(self.leaves)
        # a spread of 0 makes the rule "nearest", without a region in between
        derived = FittedColumn(
            "taxonomy", "centroid", (column,), _make_rule(centroid, 0.0, 0.0, first)
        )
        return [_make_candidate(c, derived, f"the vector in {column}") for c in clusters]

    @property
    def data(self) -> TaxonomyData:
        """Return the whole taxonomy but its arrays: the content of taxonomy.json."""
        return TaxonomyData(
            groundfault_taxonomy=SCHEMA_VERSION,
            verdict=self.verdict,
            models=self.matrix.models,
            examples=self.matrix.examples,
            rate=self.matrix.rate,
            apart=self.matrix.apart,
            spread=self.partition.spread,
            coverage=self.partition.coverage,
            by_the_papers_rule=self.by_the_papers_rule,
            **{name: getattr(self, name) for name in _SHARED},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain words and numbers, without what version 0.1 did not have."""
        data = super().to_dict()
        data["settings"] = _drop(data["settings"], _ADDED)
        data["clusters"] = [_drop(one, _OF_LEAVES) for one in data["clusters"]]
        return data

    def save(self, directory: str | Path) -> None:
        """Write ``taxonomy.json``, ``arrays.npz`` and ``examples.parquet`` into a directory."""
        clustering = self.partition
        arrays: dict[str, NDArray[Any]] = {
            # half the size on disk; read back as int64
            "passed": self.matrix.passed.astype(np.int32),
            "trials": self.matrix.trials.astype(np.int32),
            "labels": clustering.labels,
            "whole": clustering.whole,
            "points": clustering.points,
            "centroid": clustering.centroid,
            **{f"rule_{key}": array for key, array in clustering.rule.items()},
        }
        if self.matrix.semantic is not None:
            arrays["semantic"] = self.matrix.semantic
        stream, table = io.BytesIO(), io.BytesIO()
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        self.matrix.attributes.write_parquet(table)
        with replace_folder(directory) as place:
            write_bytes(place / "arrays.npz", stream.getvalue())
            write_bytes(place / "examples.parquet", table.getvalue())
            write_text(place / "taxonomy.json", self.to_json())

    @classmethod
    def load(cls, directory: str | Path) -> Taxonomy:
        """Read what `save` wrote; nothing in it is run.

        Raises
        ------
        InputError
            If the directory is not one of a taxonomy, or its parts do not fit each other.
        """
        place = Path(directory)
        try:
            content = read_bytes(place / "taxonomy.json")
            data = decode_versioned(content, TaxonomyData, "groundfault_taxonomy")
            stated = decode_json(content.decode(), "it")["settings"]
            earlier = {name: value for name, value in _ADDED.items() if name not in stated}
            data = structs.replace(data, settings=replace(data.settings, **earlier))
            Archive(place / "arrays.npz")  # refuses what unpacks to far more than its size
            # pickles could run code
            with np.load(place / "arrays.npz", allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            measure_table(place / "examples.parquet")
            table = pl.read_parquet(io.BytesIO(read_bytes(place / "examples.parquet", MAX_ROWS)))
            return _restore(data, arrays, table)
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            EOFError,
            RecursionError,
            MemoryError,  # an array that states a shape beyond any memory
            pl.exceptions.PolarsError,
            pl.exceptions.PanicException,
        ) as error:
            message = getattr(error, "strerror", None) or first_line(error)
            raise InputError(f"{place} is not the directory of a taxonomy: {message}") from None


def _drop(fields: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if k not in values or v != values[k]}


def _restore(data: TaxonomyData, arrays: dict[str, NDArray[Any]], table: pl.DataFrame) -> Taxonomy:
    passes, trials = (arrays[name].astype(np.int64) for name in ("passed", "trials"))
    shape = (len(data.examples), len(data.models))
    # files of two fits may have been mixed
    if not passes.shape == trials.shape == shape or len(arrays["labels"]) != shape[0]:
        raise ValueError("its arrays do not fit the examples and models that it names")
    names, semantic = (data.examples, data.models), arrays.get("semantic")
    matrix = Matrix(*names, passes, trials, data.rate, table, data.apart, semantic)
    rule = {name[5:]: array for name, array in arrays.items() if name.startswith("rule_")}
    parts = {name: arrays[name] for name in ("labels", "whole", "points", "centroid")}
    partition = Partition(**parts, spread=data.spread, rule=rule)
    shared: dict[str, Any] = {name: getattr(data, name) for name in _SHARED}
    return Taxonomy(matrix=matrix, partition=partition, **shared)


def _make_rule(centroid: Floats, spread: float, level: float, first: int) -> dict[str, Floats]:
    """Make the arrays by which `groundfault_lab.taxonomy.centroids` finds the nearest cluster."""
    # leaves come before the clusters
    numbers = np.arange(1.0, len(centroid) + 1) + first
    ends = {"spread": np.array([spread]), "level": np.array([level])}
    return {"centroid": centroid, "number": numbers, **ends}


def _make_candidate(cluster: Cluster, column: FittedColumn | None, by: str) -> Candidate:
    if cluster.rule:
        return Candidate(cluster.name, cluster.rule, cluster.meaning, "taxonomy")
    assert column is not None
    remark = "" if cluster.published else " (not published)"
    meaning = f"the example is nearest to {cluster.name}{remark} of a taxonomy, by {by}"
    rule = f"{quote(column.name)} = {cluster.number}"
    return Candidate(cluster.name, rule, meaning, "taxonomy", "drop", column)
