"""The benchmark DEIM, all three modules, on pairs of data and model that a small file describes.

References
----------
Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural Language
Processing", TACL 11, 2023. https://doi.org/10.1162/tacl_a_00617. Its nine data sets and fine-tuned
transformers are not at hand: what is computed is of other models and data, in the form of its
tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.base.long_work import Progress, listener, stream
from groundfault.errors import MissingExtraError, PlanError
from groundfault.probes.bank.toml_tables import locate_errors
from groundfault_lab.improve import (
    Acquisition,
    Learning,
    LeastConfident,
    RandomOrder,
    SuspectSlices,
)
from groundfault_lab.language import BLANK, DEFAULT, FEATURES, Pipeline, load_pipeline
from groundfault_lab.slicing.spotlight import Spotlight
from groundfault_lab.stats.improvement import find_least_confident, reject, relabel
from groundfault_studies import deim_explain, discover, improve
from groundfault_studies.charts import lines
from groundfault_studies.discover import FITTED, SOURCE
from groundfault_studies.discovery import Discovery
from groundfault_studies.pairs import SHIPPED, Pair, read_pairs
from groundfault_studies.real_models import Predictions
from groundfault_studies.resuming import Rows, resume_parts
from groundfault_studies.tables import PaperStudy, PaperTable

SEEDS, PERMUTATIONS = 6, 999
QUICK_SEEDS, QUICK_PERMUTATIONS, QUICK_ROUNDS = 1, 199, 4

_TITLE = "Discover, Explain, Improve, on other models and data than the paper's"
_HELD = (0.5, 0.75)
"""Of active learning: where the pool ends, and where the validation examples do."""


def study(
    *,
    pairs: str | Path | None = None,
    pipeline: str | None = None,
    seeds: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Tables 4, 5, 8 to 12 and Figure 6 of DEIM, in form.

    Parameters
    ----------
    pairs : path, optional
        TOML file of pairs, see `groundfault_studies.pairs.read_pairs`; left out, those that ship
        with groundfault.
    pipeline : str, optional
        spaCy pipeline that reads texts. Left out, ``en_core_web_sm``, or ``blank`` where that is
        not installed: `Study.lacking` then says which features could not be told.
    seeds : int, optional
        How often models are trained, or of given predictions others fitted to; left out, 6, or
        quickly 1.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        Fewer seeds, permutations and rounds of active learning: to see that it runs, not for
        conclusions.
    keep : path, optional
        File where the rows of each pair and seed are kept; a study that was stopped goes on from
        there. Learning curves are kept beside it.
    progress : callable, optional
        Called with a message at each step.

    Raises
    ------
    InputError
        If the pairs cannot be read, or what is kept is of other data.
    MissingExtraError
        If the pipeline is named and not installed.
    """
    progress = listener(progress)
    selection = read_pairs(pairs or SHIPPED)
    reader, lacking = _reader(pipeline)
    seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    permutations = QUICK_PERMUTATIONS if quick else PERMUTATIONS
    place = None if keep is None else Path(keep)
    # a stored row is used again only where all that it depends on is the same, so its name says all
    reading = f"{reader.key[:16]}, {' + '.join(improve.SLICERS)}"
    todo = {
        f"{pair.name}, seed {seed} ({pair.key}, {reading}, {permutations})": (
            pair,
            seed,
            reader.name,
            permutations,
        )
        for pair in selection
        for seed in range(seeds)
    }
    progress(f"training and measuring {len(todo)} times")
    rows = resume_parts(todo, measure_pair, place, jobs, progress)
    curves, short = _curves(selection, seeds, jobs, quick, place, progress)
    lacking += short
    tables = (*_tables(rows), *improve.learning_tables(curves))
    if not _by_pair(rows, "explain"):
        lacking += ("Tables 8 to 10 (Explain), which need a pair with texts",)
    settings = {
        "pairs": {pair.name: pair.key for pair in selection},
        "seeds": seeds,
        "fitted": FITTED,
        "permutations": permutations,
        "pipeline": reader.name,
        "quick": quick,
    }
    figures = {f"figure-6-{_slug(name)}": _draw_curves(one) for name, one in curves.items()}
    return PaperStudy("deim", _TITLE, SOURCE, settings, tables, lacking, figures)


def _reader(name: str | None) -> tuple[Pipeline, tuple[str, ...]]:
    """The pipeline, and what cannot be told with it."""
    try:
        return load_pipeline(name or DEFAULT), ()
    except MissingExtraError as error:
        if name:
            raise
        missing = str(error)
    blank = load_pipeline(BLANK)
    count = sum(bool(blank.lacking(feature)) for feature in FEATURES.values())
    return blank, (f"{count} of {len(FEATURES)} linguistic features: {missing}",)


# --------------------------------------------------------------------------------- what is measured


def measure_pair(pair: Pair, seed: int, pipeline: str, permutations: int) -> Rows:
    """All rows of one pair and seed, but those of active learning.

    Parameters
    ----------
    pair : Pair
    seed : int
    pipeline : str
    permutations : int

    Raises
    ------
    InputError
        If the predictions cannot be used, for example where there is no error.
    """
    with locate_errors(f"pair {pair.name!r}"):
        return _measure_rows(pair, seed, pipeline, permutations)


def _measure_rows(pair: Pair, seed: int, pipeline: str, permutations: int) -> Rows:
    predictions = pair.predictions(seed)
    rows: Rows = [
        {"pair": pair.name, "module": "discover", "table": table, "method": method}
        | asdict(discover.measure(fit, predictions))
        for table, fits in (("4", discover.finders()), ("5", discover.structures()))
        for method, fit in fits.items()
    ]
    for method, by_act in _improve(predictions, seed).items():
        for one in by_act.values():
            row = {"pair": pair.name, "module": "improve", "method": method}
            rows.append(row | improve.store_improvement(one))
    rows.append(
        {"pair": pair.name, "module": "relearnt", "gain": improve.learn_instead(predictions)}
    )
    if predictions.texts:
        explanations = deim_explain.rows(predictions, load_pipeline(pipeline), seed, permutations)
        rows += [{"pair": pair.name, "module": "explain", **row} for row in explanations]
    return rows


def _improve(predictions: Predictions, seed: int) -> improve.Improvements:
    """Slicers, and as many examples as Edisa suspects by confidence and by chance."""
    first, rest = predictions.split(FITTED)
    labelled_part, fresh_part = (
        (part.embedding, part.label, part.probability) for part in (first, rest)
    )
    out = {name: improve.measure(predictions, name) for name in improve.SLICERS}
    out["spotlight"] = improve.acts(Spotlight(), labelled_part, fresh_part)
    count = out["edisa"]["rejected"].steps
    second = np.argsort(-rest.probability, axis=1, kind="stable")[:, 1]
    chance = stream(seed, "deim chance").random(len(rest.label))
    for name, suspicion in (("confidence", -rest.probability.max(axis=1)), ("random", chance)):
        prone = (
            _highest(suspicion, count)
            if name == "random"
            else find_least_confident(rest.probability, count)
        )
        new = np.where(prone, second, rest.probability.argmax(axis=1))
        out[name] = {
            "rejected": reject(suspicion, prone, rest.probability, rest.wrong),
            "relabelled": relabel(suspicion, prone, rest.probability, rest.label, new),
        }
    return out


def _highest(score: NDArray[np.float64], count: int) -> NDArray[np.bool_]:
    return np.asarray(np.argsort(np.argsort(-score)) < count)


def _curves(
    pairs: Sequence[Pair], seeds: int, jobs: int, quick: bool, keep: Path | None, progress: Progress
) -> tuple[dict[str, Learning], tuple[str, ...]]:
    """Learning curves of a logistic regression of each pair's embedding, and of which pairs there
    can be none.
    """
    slicers: list[Acquisition] = [
        SuspectSlices(kind(**weights)) for kind, weights in improve.SLICERS.values()
    ]
    policies: list[Acquisition] = [
        LeastConfident(),
        *slicers,
        SuspectSlices(Spotlight()),
        RandomOrder(),
    ]
    max_rounds = QUICK_ROUNDS if quick else improve.ROUNDS
    place = keep.with_suffix(f".{max_rounds}-rounds.jsonl") if keep else None
    curves, lacking = {}, []
    for pair in pairs:
        predictions = pair.predictions(0)
        cuts = tuple(int(share * len(predictions.label)) for share in _HELD)
        parts = [
            (predictions.embedding[rows], predictions.label[rows])
            for rows in np.split(np.arange(len(predictions.label)), cuts)
        ]
        rounds = min(max_rounds, (cuts[0] - improve.START) // improve.BATCH)
        task = improve.LearningTask(f"{pair.name} ({pair.key})", (parts[0], parts[1], parts[2]))
        try:
            curves[pair.name] = improve.learn_curves(
                task, seeds, jobs, place, progress, policies, rounds
            )
        except PlanError as error:  # hardly any example of another class
            lacking.append(f"Figure 6 of {pair.name}: {error}")
    return curves, tuple(lacking)


# ------------------------------------------------------------------------------------ what is shown


def _tables(rows: Rows) -> Iterator[PaperTable]:
    yield discover.table_4(_collect_discoveries(rows, "4"))
    yield from discover.compare_rules(_collect_discoveries(rows, "4"))
    yield discover.table_5(_collect_discoveries(rows, "5"))
    explained = _by_pair(rows, "explain")
    if explained:
        yield from deim_explain.tables(explained)
    relearnt = {
        pair: [row["gain"] for row in ones] for pair, ones in _by_pair(rows, "relearnt").items()
    }
    yield from improve.tables(
        {pair: _runs(ones) for pair, ones in _by_pair(rows, "improve").items()}, relearnt
    )


def _by_pair(rows: Rows, module: str) -> dict[str, Rows]:
    by_pair: dict[str, Rows] = {}
    for row in rows:
        if row["module"] == module:
            by_pair.setdefault(row["pair"], []).append(row)
    return by_pair


def _collect_discoveries(rows: Rows, table: str) -> discover.Discoveries:
    by_pair: dict[str, dict[str, list[Discovery]]] = {}
    for pair, ones in _by_pair(rows, "discover").items():
        for row in ones:
            if row["table"] == table:
                one = Discovery(**{key: row[key] for key in Discovery.__dataclass_fields__})
                by_pair.setdefault(pair, {}).setdefault(row["method"], []).append(one)
    return by_pair


def _runs(rows: Rows) -> list[improve.Improvements]:
    """Improvements of one pair, a mapping for each seed: a method that comes again begins the
    next.
    """
    runs: list[improve.Improvements] = []
    for row in rows:
        if not runs or row["act"] in runs[-1].get(row["method"], {}):
            runs.append({})
        runs[-1].setdefault(row["method"], {})[row["act"]] = improve.read_improvement(row)
    return runs


def _draw_curves(learning: Learning) -> str:
    """Figure 6 of a pair: mean accuracy by how many examples were labelled."""
    means: dict[str, Any] = {
        policy: learning.curves(policy).mean(axis=0) for policy in learning.policies
    }
    series = {
        name: list(zip(learning.labelled.tolist(), mean.tolist(), strict=True))
        for name, mean in means.items()
    }
    return lines(series, "examples labelled", "accuracy", percent=False)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
