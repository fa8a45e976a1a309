"""FailureScope's clusters beside ours: which are seen again, and do they recover known modes?

Where small models lack known regions of their training, the true modes are known. Of real chat
models they are not; there clusters are sought again among the other half of the models.

References
----------
Saban (2026), *FailureScope*, arXiv:2606.09878."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.long_work import Progress, listener, stream
from groundfault.core.evidence import Evidence
from groundfault.core.rules import Rule
from groundfault_lab.taxonomy.fitting.fit import fit
from groundfault_lab.taxonomy.fitting.leaves import classify_difficulty
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy
from groundfault_studies.failure_scope_tables import make_diagnosis_table, make_table
from groundfault_studies.known_holes import FOLDER, find_folder, read_holes
from groundfault_studies.leaf_diagnosis import diagnose_model, list_rules, predict_others
from groundfault_studies.resuming import Rows, resume_rounds
from groundfault_studies.rule_scores import AS_GOOD_AS_NONE, jaccard, weigh_excess
from groundfault_studies.shared_folder import find_shared
from groundfault_studies.tables import PaperStudy
from groundfault_studies.taxonomy_paper import SOURCE

Bools = NDArray[np.bool_]

DRAWS, QUICK_DRAWS = 10, 3
LIKE = 0.5
"""Jaccard index from which a cluster recovers a hole, and is seen again."""

_SIZE = 2000  # prompts of a draw of known_holes
_FRONTIER = 4
_QUICK = {"worlds": 19, "refits": 6, "permutations": 99}
_RULES = ("paper", "default")
_LEFT_OUT, _HALVES = "left out", "halves"
_ID = "example_id"


@dataclass(frozen=True)
class ModelAnswers:
    """What many models made of the same examples.

    Attributes
    ----------
    name : str
    outcomes : polars.DataFrame
        ``example_id``, ``model`` and ``error``, a row an answer; every model answered everything.
    texts : polars.DataFrame
        ``example_id``, ``text`` and attributes, a row an example.
    holes : mapping of str to bool array, shape (examples,)
        The true modes, in the order of ``texts``; empty where they are not known.
    """

    name: str
    outcomes: pl.DataFrame
    texts: pl.DataFrame
    holes: Mapping[str, Bools]

    @property
    def models(self) -> list[str]:
        """Their names, in order."""
        return sorted(self.outcomes["model"].unique())


def study(
    shared: str | Path | None = None,
    *,
    replicates: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    keep: Path | None = None,
    progress: Progress | None = None,
    show: Callable[[PaperStudy], object] | None = None,
) -> PaperStudy:
    """Cluster by the paper's rule and by ours, draw by draw.

    Parameters
    ----------
    shared : path, optional
        Folder with ``real``; left out, ``$GROUNDFAULT_SHARED`` or ``../shared/data``. What it
        lacks is left out and said.
    replicates : int, optional
        Draws of each data set; left out, 10, or quickly 3.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        Fewer draws, null worlds and refits: to see that it runs, not for conclusions.
    keep : path, optional
        File of what is done; a study that was interrupted goes on from there.
    progress : callable, optional
    show : callable, optional
        Called with the study of the draws so far, after 1, 2, 4 and 8 of them.
    """
    folder = find_shared(shared)
    there = {name: place for name, place in _list_places(folder).items() if place.exists()}
    absent = [name for name in READERS if name not in there]
    draws = replicates or (QUICK_DRAWS if quick else DRAWS)
    changes = _QUICK if quick else {}
    reducer = "umap" if importlib.util.find_spec("umap") else "pca"
    rounds = [
        {
            f"{name}, {rule}, draw {draw}, {reducer}, {changes or 'full'}, {_digest(place)}": (
                (name, place, rule, reducer, changes, draw)
            )
            for name, place in there.items()
            for rule in (
                *_RULES,
                *([_HALVES] if draw == 0 or not quick else []),
                *([_LEFT_OUT] if draw == 0 else []),
            )
        }
        for draw in range(draws)
    ]

    def make(rows: Rows, count: int) -> PaperStudy:
        return PaperStudy(
            "failure-scope",
            "Clusters of failures: the paper's rule and ours",
            SOURCE,
            {"replicates": count, "quick": quick, "reducer": reducer, "like": LIKE, "size": _SIZE},
            (make_table(rows, count, LIKE, reducer), make_diagnosis_table(rows)) if there else (),
            tuple(f"{name}, which is not in {folder}" for name in absent),
        )

    partial = None if show is None else lambda rows, count: show(make(rows, count))
    return make(resume_rounds(rounds, measure_draw, keep, jobs, listener(progress), partial), draws)


def measure_draw(
    name: str, place: Path, rule: str, reducer: str, changes: Mapping[str, int], draw: int
) -> Rows:
    """One row: what a rule publishes of one draw, and how much of it is so."""
    data = _read(name, place)
    if rule == _LEFT_OUT:
        return [] if data.holes else leave_out_models(data, 6 if changes else None)
    if rule == _HALVES:
        return diagnose_again(data, draw) if data.holes else predict_halves(data, draw)
    if data.holes:
        kept = _draw_prompts(data, draw)
        ids = data.texts[_ID].gather(kept)
        taxonomy = _fit(data, data.models, ids, rule, reducer, changes)
        clusters = list_published(taxonomy, data, rule)
        numbers = score_holes(
            [one[kept] for one in clusters], [hole[kept] for hole in data.holes.values()]
        )
        fresh = np.setdiff1d(np.arange(len(data.texts)), kept)
        numbers |= count_false_leaves(taxonomy, data, fresh)
    else:
        models = stream(draw, f"failure scope {name}").permutation(data.models).tolist()
        half, ids = len(models) // 2, data.texts[_ID]
        first, second = (
            list_published(_fit(data, part, ids, rule, reducer, changes), data, rule)
            for part in (models[:half], models[half:])
        )
        numbers = score_again(first, second)
    return [{"data": name, "rule": rule, "draw": draw, **numbers}]


def leave_out_models(data: ModelAnswers, count: int | None = None) -> Rows:
    """A row a model: its diagnosis by the leaves of the others; of evenly many where counted."""
    matrix = _make_matrix(data)
    models = data.models[:: -(-len(data.models) // count) if count else 1]
    return [
        {"data": data.name, "rule": _LEFT_OUT, "draw": number, "model": model}
        | diagnose_model(matrix, model, stream(number, f"leaving out of {data.name}"))
        for number, model in enumerate(models)
    ]


def predict_halves(data: ModelAnswers, draw: int) -> Rows:
    """Rows of the models of each half, predicted by the leaves of the other half."""
    matrix, rng = _make_matrix(data), stream(draw, f"halves of {data.name}")
    models = rng.permutation(data.models).tolist()
    half = len(models) // 2
    return [
        {"data": data.name, "rule": _HALVES, "draw": 2 * draw + side} | row
        for side, part in enumerate((models[:half], models[half:]))
        for row in predict_others(matrix, part, rng)
    ]


def diagnose_again(data: ModelAnswers, draw: int) -> Rows:
    """A row a model with a hole: diagnosed on fresh prompts by the leaves of a draw's prompts.

    So a new version of each model is diagnosed: every hole is one model's alone, and leaves of the
    others would lack it.
    """
    matrix, kept = _make_matrix(data), _draw_prompts(data, draw)
    rest = np.setdiff1d(np.arange(len(matrix)), kept)
    rng = stream(draw, "fresh prompts")
    fresh = matrix.take(np.sort(rng.choice(rest, _SIZE, replace=False)))
    rules = list_rules(matrix.take(kept))
    return [
        {"data": data.name, "rule": _HALVES, "draw": draw, "model": model}
        | diagnose_model(fresh, model, rng, rules)
        for model in data.holes
    ]


def _draw_prompts(data: ModelAnswers, draw: int) -> NDArray[np.int64]:
    return np.sort(stream(draw, "failure scope").choice(len(data.texts), _SIZE, replace=False))


def _make_matrix(data: ModelAnswers) -> Matrix:
    failures = _tabulate_failures(data)
    names = tuple(data.texts[_ID].cast(pl.String)), tuple(data.models)
    passed, tries = (1 - failures).astype(np.int64), np.ones(failures.shape, dtype=np.int64)
    # by attributes alone: texts would be read anew for each model
    return Matrix(*names, passed, tries, attributes=data.texts.drop(_ID, "text"))


def list_published(taxonomy: Taxonomy, data: ModelAnswers, rule: str) -> list[Bools]:
    """What a rule publishes: a bool array of all examples each, in the order of ``data.texts``.

    Parameters
    ----------
    taxonomy : Taxonomy
    data : ModelAnswers
    rule : {"paper", "default", "leaves"}
        The paper publishes all clusters if its test of fixed labels rejects, ours leaves, and
        clusters that beat both null worlds and stay; or leaves alone.
    """
    places = {name: i for i, name in enumerate(taxonomy.matrix.examples)}
    rows = np.array([places.get(name, -1) for name in data.texts[_ID].cast(pl.String)])
    published = []
    for cluster in taxonomy.leaves if rule == "leaves" else taxonomy.published:
        inside = (rows >= 0) & taxonomy.inside[:, cluster.number - 1][rows]
        published.append(_evaluate(cluster.rule, data) if cluster.rule else inside)
    return published


def _evaluate(rule: str, data: ModelAnswers) -> Bools:
    return np.asarray(Rule.parse(rule).holds(data.texts).to_numpy(), dtype=np.bool_)


def count_false_leaves(
    taxonomy: Taxonomy, data: ModelAnswers, fresh: NDArray[np.intp]
) -> dict[str, float]:
    """How many leaves name a model, how many of these models fail no more there, and how many
    holes a leaf is that names their model.

    On examples that the fit did not see, among those that equally many models fail.
    """
    failures = _tabulate_failures(data)[fresh]
    classes = classify_difficulty(failures)
    owned = sum(
        any(
            model in leaf.models and jaccard(_evaluate(leaf.rule, data)[fresh], hole[fresh]) >= LIKE
            for leaf in taxonomy.leaves
        )
        for model, hole in data.holes.items()
    )
    excess = [
        weigh_excess(_evaluate(leaf.rule, data)[fresh], failures[:, j], classes)
        for leaf in taxonomy.leaves
        for j, model in enumerate(data.models)
        if model in leaf.models
    ]
    return {
        "owned": owned,
        "named": len(excess),
        "false": sum(not one > AS_GOOD_AS_NONE for one in excess),
    }


def _tabulate_failures(data: ModelAnswers) -> NDArray[np.float64]:
    table = data.outcomes.pivot(on="model", index=_ID, values="error")
    table = data.texts.select(_ID).join(table, on=_ID, how="left", maintain_order="left")
    return table.select(data.models).to_numpy()


def score_holes(clusters: Sequence[Bools], holes: Sequence[Bools]) -> dict[str, float]:
    """How many clusters are published, are some hole, and how many holes some cluster is."""
    overlaps = np.array([[jaccard(one, hole) for hole in holes] for one in clusters])
    overlaps = overlaps.reshape(len(clusters), len(holes))
    return {
        "published": len(clusters),
        "true": int((overlaps.max(axis=1, initial=0) >= LIKE).sum()),
        "recovered": int((overlaps.max(axis=0, initial=0) >= LIKE).sum()),
        "nearest": float(overlaps.max(axis=0, initial=0).mean()),
    }


def score_again(first: Sequence[Bools], second: Sequence[Bools]) -> dict[str, float]:
    """How many clusters one half of the models publishes, and the other half publishes too.

    Means over both directions.
    """
    overlaps = np.array([[jaccard(one, other) for other in second] for one in first])
    overlaps = overlaps.reshape(len(first), len(second))
    again = [(overlaps.max(axis=axis, initial=0) >= LIKE).sum() for axis in (0, 1)]
    return {
        "published": (len(first) + len(second)) / 2,
        "true": float(np.mean(again)),
    }


def _fit(
    data: ModelAnswers,
    models: Sequence[str],
    ids: pl.Series,
    rule: str,
    reducer: str,
    changes: Mapping[str, Any],
) -> Taxonomy:
    rows = data.outcomes.filter(pl.col("model").is_in(models), pl.col(_ID).is_in(ids.implode()))
    evidence = Evidence.from_table(rows, id=_ID, model="model", outcome="error")
    if rule == "default":
        # rules over columns: words of the questions would take several times as long
        settings = Settings(bootstraps=0, **changes)
        return fit(evidence, settings, examples=data.texts.drop("text"))
    rates = rows.group_by("model").agg(pl.col("error").mean()).sort("error", "model")
    # what the paper publishes rests on its test of fixed labels alone
    unused = dict.fromkeys(("worlds", "refits", "bootstraps"), 0)
    settings = Settings.preset(
        "paper",
        reducer=reducer,
        frontier=tuple(sorted(rates["model"][:_FRONTIER])),
        **{**changes, **unused},
    )
    return fit(evidence, settings, examples=data.texts, text="text")


def read_known_holes(place: Path) -> ModelAnswers:
    """Seventeen small models; thirteen lack one region of their training each."""
    data = read_holes(place)
    ids = data.examples[_ID]
    outcomes = pl.concat(
        pl.DataFrame({_ID: ids, "model": model, "error": errors})
        for model, errors in data.errors.items()
    )
    holes = {model: hole for model, (_, hole) in data.holes.items() if hole is not None}
    texts = data.examples.rename({"prompt": "text"})
    return ModelAnswers("known_holes", outcomes, texts, holes)


def read_zeroeval(place: Path) -> ModelAnswers:
    """Chat models on questions of mathematics and of code."""
    outcomes = pl.read_parquet(place / "outcomes.parquet", columns=[_ID, "model", "correct"])
    examples = pl.read_parquet(place / "examples.parquet").drop("target", "answer_abs")
    return _select_complete("zeroeval", outcomes, examples.rename({"question": "text"}))


def read_mint(place: Path) -> ModelAnswers:
    """Chat models with tools, at most five turns."""
    episodes = pl.read_parquet(place / "episodes.parquet")
    outcomes = episodes.filter(pl.col("max_turns") == 5).select(_ID, "model", "correct")
    examples = pl.read_parquet(place / "examples.parquet").drop("reference", "metadata")
    return _select_complete("mint", outcomes, examples.rename({"prompt": "text"}))


READERS: Mapping[str, Callable[[Path], ModelAnswers]] = {
    "known_holes": read_known_holes,
    "zeroeval": read_zeroeval,
    "mint": read_mint,
}


def _select_complete(name: str, outcomes: pl.DataFrame, texts: pl.DataFrame) -> ModelAnswers:
    """Models that answered everything."""
    texts = texts.filter(pl.col(_ID).is_in(outcomes[_ID].implode()))
    whole = outcomes.group_by("model").len().filter(pl.col("len") == len(texts))["model"]
    rows = outcomes.filter(pl.col("model").is_in(whole.implode()))
    errors = rows.select(_ID, "model", error=1.0 - pl.col("correct").cast(pl.Float64))
    return ModelAnswers(name, errors, texts, {})


def _list_places(folder: Path) -> dict[str, Path]:
    return {
        name: find_folder(folder) if name == FOLDER.name else folder / "real" / name
        for name in READERS
    }


@cache
def _read(name: str, place: Path) -> ModelAnswers:
    return READERS[name](place)


@cache
def _digest(place: Path) -> str:
    files = sorted(place.glob("*.parquet"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
