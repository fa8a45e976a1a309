"""Fit: from evidence to a taxonomy that says what it rests on."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from groundfault.auditing.report_schema import to_plain
from groundfault.auditing.verification_checks import differences_of
from groundfault.base.arrays import Bools, Floats, Places
from groundfault.base.long_work import Progress, listener, version
from groundfault.core.candidate import matrix as numbers_of
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, list_some
from groundfault_lab.stats import irt
from groundfault_lab.stats.irt import OneAbility
from groundfault_lab.stats.silhouette import combine
from groundfault_lab.taxonomy.fitting import nulls
from groundfault_lab.taxonomy.fitting.attributes import (
    find_contrasting_terms,
    find_enriched_attributes,
)
from groundfault_lab.taxonomy.fitting.leaves import Leaf, find_leaves, list_telling
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.nulls import Test, measure_detectable_classes
from groundfault_lab.taxonomy.fitting.partition import Partition, make_partition
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.fitting.stability import Replicates, Stability, measure_stability
from groundfault_lab.taxonomy.fitting.taxonomy import (
    Cluster,
    Taxonomy,
)

# the examples nearest to the centre, which stand for a cluster in reports and prompts
_EXEMPLARS = 5
# of an embedding of texts
_DIRECTIONS = 100


def fit(
    evidence: Evidence | Matrix,
    settings: Settings | None = None,
    *,
    examples: Any = None,
    text: str | None = None,
    vectors: str | ArrayLike | None = None,
    embedding: str = "tfidf",
    benchmark: str | None = None,
    jobs: int = 1,
    resume: str | Path | None = None,
    progress: Progress | None = None,
) -> Taxonomy:
    """Name the failure modes of many models, and cluster examples by which models fail on them.

    Rules over the examples' attributes under which models fail beyond their ability come first;
    then clusters, of which it says which are real and stay.

    Parameters
    ----------
    evidence : Evidence or Matrix
        Results of at least three models on the same examples.
    settings : Settings, optional
    examples : path or table, optional
        Table that describes the examples, joined by --id.
    text : str, optional
        Column of texts, for labels and for --alpha above 0.
    vectors : str or array, optional
        Column of vectors of the examples, used instead of their texts. Or an array of them in the
        order of their names, shape (n, q).
    embedding : str
        Embedding of the texts: tfidf, sentence or sentence:MODEL. See
        `groundfault.slicing.embedding.fit`.
    benchmark : str, optional
        Column of the benchmark of an example.
    jobs : int
        Processes; no answer depends on them.
    resume : path, optional
        Directory for finished replicates: an interrupted fit that is run again goes on where it
        stopped.
    progress : callable, optional
        Called with a message at each step.

    Raises
    ------
    InputError
        If there is too little to compare, or a column is not there or holds something else.
    MissingExtraError
        If UMAP is asked for and not installed.

    Examples
    --------
    >>> from groundfault import Evidence
    >>> from groundfault_lab.taxonomy import fit
    >>> evidence = Evidence.from_table(  # doctest: +SKIP
    ...     "answers.parquet", id="id", model="model", outcome="error"
    ... )
    >>> fit(evidence).verdict  # doctest: +SKIP
    """
    settings = settings or Settings()
    report = listener(progress)
    report("reading who passed what")
    columns: dict[str, Any] = {"text": text, "vectors": vectors, "benchmark": benchmark}
    matrix = make_matrix(evidence, settings, examples=examples, embedding=embedding, **columns)
    matrix_used = nulls.prepare(matrix, settings)
    # stored replicates of other settings or data must not be taken for these
    key = f"{settings.hash} {hash_matrix(matrix)}"
    replicates = Replicates(jobs, report, resume, key)
    tests: dict[str, Test] = {}
    # fitted once: every world of one ability is drawn from the same population
    population = OneAbility.fit(matrix.passed, matrix.trials) if settings.worlds else None
    dimensions, detectable = None, None
    # the bar comes from all examples, since filters depend on answers that a world changes
    if settings.reducer == "signal":
        dimensions, tests["direction"] = nulls.count_directions(
            matrix, settings, replicates, population
        )
        if dimensions == 0 and population is not None:
            detectable = measure_detectable_classes(
                matrix, settings, tests["direction"], population, replicates
            )
    report("clustering")
    clustering = make_partition(matrix_used, settings, dimensions)
    if clustering.clusters:
        tests["label_fixed"] = nulls.shuffle_columns(matrix_used, clustering, settings)
        tests |= nulls.recluster_worlds(
            matrix, clustering, settings, dimensions, replicates, population
        )
    steady = measure_stability(matrix_used, clustering, settings, dimensions, replicates)
    leaves: list[Leaf] = []
    if settings.rules:
        report("searching rules under which models fail beyond their ability")
        leaves = find_leaves(matrix, matrix_used, settings)
    clusters = _make_clusters(
        matrix_used, clustering, leaves, tests, steady, settings, text, benchmark
    )
    of = evidence.hash if isinstance(evidence, Evidence) else ""
    parts = (matrix_used, clustering, clusters, tests, steady)
    made = Taxonomy(settings, *parts, dimensions, of, detectable=detectable)
    return replace(made, groundfault_version=version("groundfault"))


def make_matrix(
    evidence: Evidence | Matrix,
    settings: Settings,
    *,
    examples: Any = None,
    text: str | None = None,
    vectors: str | ArrayLike | None = None,
    embedding: str = "tfidf",
    benchmark: str | None = None,
) -> Matrix:
    """Make the matrix of all examples, with what describes them; see `fit`."""
    if isinstance(evidence, Matrix):
        matrix = evidence
    else:
        matrix = Matrix.of(evidence, score=settings.score, rate=settings.rate)
        if examples is not None:
            from groundfault.readers.table import read_table

            id = evidence.roles.id or ""
            matrix = matrix.describe(read_table(examples, text=(id,))[0], id)
    if text is not None and (dtype := matrix.attribute(text, "text").dtype) != pl.String:
        raise InputError(f"column {text!r} holds {dtype}, not text")
    if benchmark is not None and matrix.attribute(benchmark, "benchmark").n_unique() < 2:
        only = matrix.attributes[benchmark][0]
        raise InputError(
            f"column {benchmark!r} names one benchmark only ({only!r}); leave it out (benchmark=)"
        )
    semantic = _embed_examples(matrix, text, vectors, embedding, settings)
    if settings.alpha > 0 and semantic is None:
        raise InputError(
            f"alpha={settings.alpha:g} weighs what examples say; name the column of their texts or "
            "vectors (text=, vectors=), or set alpha to 0"
        )
    return replace(matrix, semantic=semantic)


def _embed_examples(
    matrix: Matrix,
    text: str | None,
    vectors: str | ArrayLike | None,
    embedding: str,
    settings: Settings,
) -> Floats | None:
    if isinstance(vectors, str):
        matrix.attribute(vectors, "vectors")
        directions = numbers_of(matrix.attributes, (vectors,))
    elif vectors is not None:
        directions = np.asarray(vectors, dtype=np.float64)
    elif text is not None and settings.alpha > 0:
        from groundfault.slicing.embedding import embed

        if matrix.attributes[text].null_count():
            # an empty text would get a vector of zeros, and zeros lie near to everything
            lacking = matrix.examples[matrix.attributes[text].is_null().arg_true()[0]]
            raise InputError(
                f"example {lacking!r} has no text in column {text!r}: fill it in, or set alpha to 0"
            )
        directions = embed(matrix.attributes[text].to_list(), embedding, dimensions=_DIRECTIONS)
    else:
        return matrix.semantic
    if directions.ndim != 2 or len(directions) != len(matrix):
        raise InputError(
            f"vectors have shape {directions.shape}; there are {len(matrix)} examples, and each "
            "needs one row"
        )
    if not np.isfinite(directions).all():
        where = matrix.examples[int(np.flatnonzero(~np.isfinite(directions).all(axis=1))[0])]
        raise InputError(
            f"the vector of example {where!r} is missing, or has a number that is not finite"
        )
    # unit length, so that alpha weighs answers and texts on one scale
    return combine(directions)


def hash_matrix(matrix: Matrix) -> str:
    """Hash what tells one matrix from another, for what is kept of an interrupted run."""
    # names are joined by a character that no name holds, so that ("ab", "c") is not ("a", "bc")
    digest = hashlib.sha256("\0".join((*matrix.examples, "", *matrix.models)).encode())
    digest.update(matrix.passed.tobytes() + matrix.trials.tobytes())
    if matrix.semantic is not None:
        digest.update(np.ascontiguousarray(matrix.semantic).tobytes())
    return digest.hexdigest()


def _make_clusters(
    matrix: Matrix,
    clustering: Partition,
    leaves: Sequence[Leaf],
    tests: dict[str, Test],
    steady: Stability,
    settings: Settings,
    text: str | None,
    benchmark: str | None,
) -> tuple[Cluster, ...]:
    labels = clustering.labels
    inside = np.array([leaf.holds for leaf in leaves], dtype=np.bool_).reshape(-1, len(matrix)).T
    inside = np.hstack([inside, labels[:, None] == np.arange(clustering.clusters)])
    if not inside.shape[1]:
        return ()
    # words describe a cluster and have no part in forming it unless alpha is above 0
    texts = None if text is None else matrix.attributes[text].to_list()
    terms: tuple[tuple[str, ...], ...] = ((),) * clustering.clusters
    if texts and clustering.clusters:
        terms = find_contrasting_terms(texts, labels)
    described = matrix.attributes.drop([] if text is None else text)
    attributes = find_enriched_attributes(described, labels, settings.level)
    failure, expectation = _measure_failures(matrix, inside, settings)

    def make(number: int, members: Places, **details: Any) -> Cluster:
        rows = np.flatnonzero(inside[:, number])
        return Cluster(
            number=number + 1,
            size=len(rows),
            failure=tuple(failure[number].tolist()),
            expected=tuple(expectation[number].tolist()),
            exemplars=tuple(matrix.examples[i] for i in members[:_EXEMPLARS]),
            sources=_count_sources(matrix.attributes[benchmark][rows]) if benchmark else {},
            **details,
        )

    clusters = [
        make(
            number,
            list_telling(matrix, leaf.holds, leaf.models),
            stability={},
            published=True,
            reason=_explain_leaf(leaf, settings),
            rule=leaf.rule,
            meaning=leaf.meaning,
            models=leaf.models,
        )
        for number, leaf in enumerate(leaves)
    ]
    lowest = steady.lowest(clustering.clusters)
    for c in range(clustering.clusters):
        stability = {axis: float(np.nan_to_num(row[c])) for axis, row in steady.jaccard.items()}
        published, reason = _decide_publication(tests, float(lowest[c]), stability, settings)
        details = {"stability": stability, "published": published, "reason": reason}
        details |= {"terms": terms[c], "attributes": attributes[c]}
        clusters.append(make(len(leaves) + c, clustering.list_nearest(c), **details))
    return tuple(clusters)


def _explain_leaf(leaf: Leaf, settings: Settings) -> str:
    return (
        f"{list_some(leaf.models)} {'fails' if len(leaf.models) == 1 else 'fail'} more often there "
        f"than ability and difficulty explain (adjusted p = {leaf.p:.3g}, level "
        f"{settings.level:g} for all rules and models)."
    )


def compare_clusters(taxonomy: Taxonomy) -> list[str]:
    """Return where a taxonomy's clusters differ from what its answers, tests and refits make them.

    Words and benchmarks of a cluster are left out: a taxonomy does not name their columns. Leaves
    are counted again by their rules.
    """
    # the search read examples that are set apart, and is not run again
    leaves = [
        Leaf(leaf.rule, leaf.meaning, leaf.models, taxonomy.inside[:, i], 1.0)
        for i, leaf in enumerate(taxonomy.leaves)
    ]
    parts = (taxonomy.matrix, taxonomy.partition, leaves, taxonomy.tests, taxonomy.stability)
    again = _make_clusters(*parts, taxonomy.settings, None, None)
    names = "number size failure expected stability published reason exemplars rule models".split()
    stated, made = (
        [
            {name: to_plain(getattr(cluster, name)) for name in names}
            # a leaf's reason holds the p-value of the search
            | ({"reason": ""} if cluster.rule else {})
            for cluster in clusters
        ]
        for clusters in (taxonomy.clusters, again)
    )
    return list(differences_of(stated, made, "clusters"))


def _decide_publication(
    tests: dict[str, Test], lowest: float, stability: dict[str, float], settings: Settings
) -> tuple[bool, str]:
    """Decide whether a cluster is published, and say why in a sentence."""
    if settings.publication == "label_fixed":
        p = tests["label_fixed"].p
        return p <= settings.level, (
            f"By the paper's rule, which shuffles columns under labels that stay: p = {p:.3g}, "
            f"level {settings.level:g}."
        )
    for key, of in (
        ("one_ability", "one ability a model"),
        ("column_shuffle", "models that fail independently"),
    ):
        if key not in tests or not tests[key].draws:
            return False, "No null worlds were run."
        # the smallest add-one p-value that so many worlds can give
        fewest = 1 / (1 + len(tests[key].draws))
        if fewest > settings.level:
            return False, (
                f"{len(tests[key].draws)} null worlds cannot give a p-value of {settings.level:g}; "
                f"run at least {math.ceil(1 / settings.level) - 1}."
            )
        # both nulls have to be rejected; shuffled columns alone do not rule out a common ability
        if tests[key].p > settings.level:
            return False, (
                f"The clusters are no tighter than those found in worlds of {of} (p = "
                f"{tests[key].p:.3g}, level {settings.level:g})."
            )
    # a cluster that was not refitted is withheld, never published on trust
    if not stability:
        return False, "It was not refitted, so nothing is known of its stability."
    if lowest < settings.stability:
        axis = min(stability, key=stability.__getitem__)
        return False, (
            f"It is not found again with other {axis}: mean Jaccard index {lowest:.2f}, below "
            f"{settings.stability:g}."
        )
    return True, (
        "It is found again with other examples, models and seeds: Jaccard index at least "
        f"{lowest:.2f}."
    )


def _measure_failures(matrix: Matrix, members: Bools, settings: Settings) -> tuple[Floats, Floats]:
    """Measure failures by cluster and model, and the share that ability and difficulty predict."""
    passes, trials = matrix.binary
    # item-response curves, so that a weak model on hard examples shows no excess
    chance = irt.fit(passes, trials, parameters=settings.parameters).probability()
    shape = (members.shape[1], len(matrix.models))
    failure, expectation = np.full(shape, np.nan), np.full(shape, np.nan)
    for c in range(shape[0]):
        inside = members[:, c]
        count = trials[inside].sum(axis=0)
        # a model without answers in a cluster has no rate: NaN rather than 0 failures
        some = count > 0
        for rates, values in ((failure, passes), (expectation, chance * trials)):
            rates[c, some] = 1 - values[inside].sum(axis=0)[some] / count[some]
    return failure, expectation


def _count_sources(words: pl.Series) -> dict[str, int]:
    counts = Counter(words.cast(pl.String).fill_null("unknown").to_list())
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
