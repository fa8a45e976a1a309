"""Taxonomies of failures, evaluated: FailureScope's tables in form, on your models, beside the
honest version of each.

References
----------
Saban (2026), *FailureScope*, arXiv:2606.09878. Its models and tasks are not at hand: the numbers it
prints are those of other models and data, and stand beside ours to compare the form of the claims,
not their size."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from groundfault.base.long_work import Progress, listener
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, PlanError
from groundfault_lab.taxonomy.fitting.fit import fit, hash_matrix, make_matrix
from groundfault_lab.taxonomy.fitting.matrix import FEWEST_MODELS, Matrix
from groundfault_lab.taxonomy.fitting.nulls import prepare
from groundfault_lab.taxonomy.fitting.partition import make_partition
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.fitting.stability import Replicates
from groundfault_studies import taxonomy_tables as tables
from groundfault_studies.failure_scope import read_zeroeval
from groundfault_studies.shared_folder import find_shared
from groundfault_studies.tables import PaperStudy
from groundfault_studies.taxonomy_cells import TaxonomyEvaluation
from groundfault_studies.taxonomy_claims import holds
from groundfault_studies.taxonomy_figures import figures
from groundfault_studies.taxonomy_folds import BUDGETS, TaxonomyFold
from groundfault_studies.taxonomy_paper import SOURCE, TABLE_1, TABLE_10, TABLE_15

_FRONTIER = 4
_QUICK_EXAMPLES, _QUICK_MODELS = 500, 12


def study(
    evidence: Evidence | Matrix | None = None,
    *,
    shared: str | Path | None = None,
    quick: bool = False,
    examples: Any = None,
    text: str | None = None,
    vectors: str | None = None,
    benchmark: str | None = None,
    frontier: Sequence[str] = (),
    trials: int = 20,
    worlds: int = 99,
    refits: int = 20,
    permutations: int = 1000,
    seed: int = 0,
    jobs: int = 1,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Leave out one model at a time: is it diagnosed, and predicted, by clusters of the others'
    failures?

    Parameters
    ----------
    evidence : Evidence or Matrix, optional
        At least four models on the same examples. Models with holes are left out if four have none.
        Left out, the chat models of zeroeval in the shared folder.
    shared : path, optional
        Folder with ``real/zeroeval``; left out, ``$GROUNDFAULT_SHARED`` or ``../shared/data``.
    quick : bool
        Of zeroeval, twelve models and 500 questions, three trials, and fewer null worlds: to see
        that it runs, not for conclusions.
    examples, text, vectors, benchmark : optional
        As for `groundfault_lab.taxonomy.fit`.
    frontier : sequence of str
        For the paper's procedure: keep examples that one of these models failed; left out, the four
        that pass most.
    trials : int
        Random splits and draws of each fold; the paper has 50.
    worlds, refits, permutations : int
        Of null worlds of each kind, refits on halves, label-fixed shuffles.
    seed : int
    jobs : int
        Processes; the answer does not depend on it.
    keep : path, optional
        Directory for what is done: a study that was interrupted goes on from there.
    progress : callable, optional

    Raises
    ------
    InputError
        If there is too little to compare.
    PlanError
        If there are no trials, or too few null worlds.
    """
    progress = listener(progress)
    if evidence is None:
        evidence, examples = _read_zeroeval(shared, quick)
        text, benchmark = "text", "benchmark"
    if quick:
        trials, worlds, refits, permutations = 3, 19, 3, 99
    if trials < 1:
        raise PlanError(f"at least one trial is needed, not {trials}")
    alpha = 0.1 if text is not None or vectors is not None else 0.0
    default = Settings(
        seed=seed, worlds=worlds, refits=refits, permutations=permutations, bootstraps=0
    )
    progress("reading who passed what")
    whole = make_matrix(
        evidence,
        replace(default, alpha=alpha),
        examples=examples,
        text=text,
        vectors=vectors,
        benchmark=benchmark,
    )
    matrix = _complete(whole)
    paper = Settings.preset(
        "paper",
        alpha=alpha,
        reducer="umap" if importlib.util.find_spec("umap") else "pca",
        frontier=tuple(frontier) or _strongest(matrix),
        **{
            name: getattr(default, name)
            for name in ("worlds", "refits", "permutations", "bootstraps")
        },
        seed=seed or 42,
    )
    key = f"{default.hash} {paper.hash} {hash_matrix(whole)} {benchmark} {trials}"
    run = Replicates(jobs, progress, keep, key)
    sweeps = _sweeps(whole, matrix, paper, benchmark, run)
    presets = {"paper": paper, "default": default}
    taxonomies, folds = {}, {}
    for name, settings in presets.items():
        progress(f"{name}: fitting")
        taxonomies[name] = fit(
            matrix,
            settings,
            benchmark=benchmark,
            jobs=jobs,
            resume=keep and keep / name,
            progress=progress,
        )
        work = TaxonomyFold(matrix, settings, benchmark, trials)
        folds[name] = run.run(f"{name}: leaving out models", work.run, len(matrix.models))
    work = TaxonomyFold(
        matrix, paper, benchmark, trials, labels=taxonomies["paper"].labels, predict=False
    )
    folds["oracle"] = run.run("oracle: leaving out answers only", work.run, len(matrix.models))
    evaluation = TaxonomyEvaluation(
        matrix,
        len(whole.models) - len(matrix.models),
        paper,
        default,
        benchmark,
        taxonomies,
        folds,
        sweeps,
        trials,
    )
    return PaperStudy(
        "taxonomy",
        "Failure taxonomies, one model left out at a time",
        SOURCE,
        {
            "models": list(matrix.models),
            "examples": len(matrix),
            "trials": trials,
            "budgets": list(BUDGETS),
            "paper": paper.to_dict(),
            "default": default.to_dict(),
        },
        (holds(evaluation), *tables.all_tables(evaluation)),
        figures=figures(evaluation),
    )


def _read_zeroeval(shared: str | Path | None, quick: bool) -> tuple[Evidence, pl.DataFrame]:
    place = find_shared(shared) / "real" / "zeroeval"
    if not place.is_dir():
        raise InputError(f"there is no {place}: name the folder of the data with --shared")
    data = read_zeroeval(place)
    outcomes, texts = data.outcomes, data.texts
    if quick:
        texts = texts.sample(_QUICK_EXAMPLES, seed=0)
        models = data.models[:: -(-len(data.models) // _QUICK_MODELS)]
        outcomes = outcomes.filter(
            pl.col("model").is_in(models), pl.col("example_id").is_in(texts["example_id"].implode())
        )
    made = Evidence.from_table(outcomes, id="example_id", model="model", outcome="error")
    return made, texts


def _complete(matrix: Matrix) -> Matrix:
    """Models without holes where there are enough, or all."""
    if len(matrix.models) <= FEWEST_MODELS:
        raise InputError(
            f"leaving one of {len(matrix.models)} models out leaves too few to compare: at least "
            f"{FEWEST_MODELS + 1} models are needed"
        )
    trials = matrix.trials > 0
    full = np.asarray(trials[trials.any(axis=1)].all(axis=0))
    if full.sum() <= FEWEST_MODELS:
        return matrix
    return matrix.select([name for name, whole in zip(matrix.models, full, strict=True) if whole])


def _strongest(matrix: Matrix) -> tuple[str, ...]:
    answers = matrix.trials > 0
    rate = (matrix.values == 1).sum(axis=0) / np.maximum(answers.sum(axis=0), 1)
    order = np.argsort(-rate, kind="stable")[:_FRONTIER]
    return tuple(matrix.models[j] for j in sorted(order))


def _sweeps(
    whole: Matrix, matrix: Matrix, paper: Settings, benchmark: str | None, run: Replicates
) -> dict[str, list[dict[str, Any]]]:
    alphas = [float(a) for a in TABLE_1] if paper.alpha > 0 else [0.0]
    out = {
        "alpha": [(matrix, replace(paper, alpha=a)) for a in alphas],
        "size": [
            (matrix, replace(paper, min_cluster_size=int(size), split=None)) for size in TABLE_10
        ],
        "imputation": [(whole, replace(paper, imputation=how)) for how in TABLE_15],  # type: ignore[arg-type]
    }
    return {
        name: run.run(
            f"{name} of the paper's clusters", partial(_cluster, cases, benchmark), len(cases)
        )
        for name, cases in out.items()
    }


def _cluster(
    cases: Sequence[tuple[Matrix, Settings]], benchmark: str | None, number: int
) -> dict[str, Any]:
    matrix, settings = cases[number]
    complete = prepare(matrix, settings)
    clustering = make_partition(complete, settings)
    several: float | None = None
    if benchmark is not None and clustering.clusters:
        source = complete.attributes[benchmark].fill_null("unknown").cast(str).to_numpy()
        several = float(
            np.mean(
                [len(set(source[clustering.labels == c])) > 1 for c in range(clustering.clusters)]
            )
        )
    whole, reduced = clustering.silhouettes()
    return {
        "silhouette": whole,
        "reduced": reduced,
        "clusters": clustering.clusters,
        "several": several,
        "noise": 1 - clustering.coverage,
        "examples": len(complete),
        "holes": complete.holes,
    }
