"""Discover: how many of the examples that slice finders call error-prone, without labels, are
errors.

References
----------
Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural Language
Processing", TACL 11, 2023. https://doi.org/10.1162/tacl_a_00617. Its nine data sets and fine-tuned
transformers are not at hand; here are other models and their real mistakes, in the form of its
Tables 4 to 7 and Figure 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.base.progress import Progress, listener
from groundfault.finders.domino import Domino
from groundfault.finders.edisa import Edisa
from groundfault.finders.spotlight import Spotlight
from groundfault.stats.discovery import Discovery, score_discovery
from groundfault_studies.charts import lines
from groundfault_studies.real_models import Predictions, of_texts, shipped_classifiers
from groundfault_studies.shared_folder import find_shared
from groundfault_studies.tables import Kind, PaperRow, PaperStudy, PaperTable, Value

Discoveries = Mapping[str, Mapping[str, Sequence[Discovery]]]
"""By classifier, and by what was fitted: a discovery for each run."""
Fit = Callable[[Predictions], Callable[[Predictions], NDArray[np.bool_]]]

SOURCE = (
    "Hua et al. (2023), Discover, Explain, Improve, TACL 11, https://doi.org/10.1162/tacl_a_00617"
)
FITTED = 2 / 3
"""Share of the examples that slices are fitted on."""

WEIGHTS = (0.01, 0.05, 0.15, 0.5, 1.0)
STRUCTURES: Mapping[str, dict[str, float]] = {
    "probability alone": {"embedding_weight": 0.0, "error_weight": 0.0},
    "error and probability": {"embedding_weight": 0.0},
    "all three": {},
}
DIMENSIONS = (4, 16, 32, None)
SIZES = (0.125, 0.25, 0.5, 1.0)

_EXAMPLES_A_SLICE = 20
_COLUMNS: dict[str, tuple[str, Kind]] = {
    "count": ("found", "size"),
    "efficacy": ("efficacy", "rate"),
    "confidence": ("confidence", "rate"),
    "chance": ("chance", "rate"),
    "recall": ("recall", "rate"),
    "ahead": ("runs ahead", "text"),
}
_PAPER = {
    "edisa": {"efficacy": "63.32%", "confidence": "51.28%", "chance": "31.18%"},
    "domino": {"efficacy": "50.65%"},
}


_TABLE_5 = {
    "probability alone": ("78", "44.87%", "41.03%"),
    "error and probability": ("73", "46.58%", "43.84%"),
    "all three": ("38", "63.16%", "55.26%"),
}


SEEDS, QUICK_SEEDS = 5, 1


def study(
    shared: str | Path | None = None,
    *,
    seeds: int | None = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> PaperStudy:
    """Compare slice finders, and weights and sizes of Edisa, on the mistakes of real classifiers.

    Parameters
    ----------
    shared : path, optional
        Folder with ``real``, for the classifiers of texts; left out, ``$GROUNDFAULT_SHARED`` or
        ``../shared/data``. Without it they are lacking.
    seeds : int, optional
        How often classifiers are trained, each time on other examples; numbers are means. Left out,
        5, or quickly 1.
    quick : bool
        One seed: to see that it runs, not for conclusions.
    progress : callable, optional
    """
    progress = listener(progress)
    seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    folder = find_shared(shared, "real")
    runs: list[list[Predictions]] = []
    for seed in range(seeds):
        progress(f"training classifiers, {seed + 1} of {seeds}")
        runs.append(
            [*shipped_classifiers(seed), *(of_texts(folder, seed) if folder.is_dir() else ())]
        )
    lacking = (
        () if folder.is_dir() else ("classifiers of texts, which need the folder of shared data",)
    )
    settings = {
        "seeds": seeds,
        "fitted": FITTED,
        "slices": f"one for {_EXAMPLES_A_SLICE} examples, at most 128",
    }
    sizes = _sizes(runs, progress)
    tables = (
        table_4(_measure_all(runs, finders(), progress)),
        table_5(_measure_all(runs, structures(), progress)),
        _weights(runs, progress),
        _dimensions(runs, progress),
        sizes,
    )
    title = "Error-prone examples found without labels"
    return PaperStudy(
        "discover", title, SOURCE, settings, tables, lacking, {"figure-3": _draw_sizes(sizes)}
    )


def finders() -> dict[str, Fit]:
    """The rows of Table 4, with the weights that the paper gives."""
    return {
        "edisa": edisa(),
        "edisa, weights 1": edisa(embedding_weight=1.0, error_weight=1.0),
        # chosen on other data than the study's: see the page on the papers
        "edisa, weights of Explain": edisa(error_weight=1.0, confidence_weight=0.1),
        "domino": domino(confidence_weight=40.0),
        "spotlight": spotlight(),
    }


def structures() -> dict[str, Fit]:
    """The rows of Table 5."""
    return {name: edisa(**weights) for name, weights in STRUCTURES.items()}


def edisa(**parameters: Any) -> Fit:
    """Fit Edisa, and say which examples are error-prone."""
    return _slicer(Edisa, parameters)


def domino(**parameters: Any) -> Fit:
    """Fit Domino, and say which examples are error-prone."""
    return _slicer(Domino, parameters)


def spotlight(**parameters: Any) -> Fit:
    """Fit the Spotlight, whose slices are all said to be error-prone."""

    def fit(predictions: Predictions) -> Callable[[Predictions], NDArray[np.bool_]]:
        slicer = Spotlight(**parameters).fit(
            predictions.embedding, predictions.label, predictions.probability
        )
        return lambda other: slicer.error_prone(other.embedding)

    return fit


def measure(fit: Fit, predictions: Predictions, size: float = 1.0) -> Discovery:
    """Fit on the first two thirds of the examples, or the first part of those, and measure on the
    last third.
    """
    first, rest = predictions.split(FITTED)
    part, _ = first.split(size)
    return score_discovery(fit(part)(rest), rest.wrong, rest.probability)


def make_slicer(
    kind: type[Edisa] | type[Domino], predictions: Predictions, **parameters: Any
) -> Edisa | Domino:
    """A slicer, not fitted, with as many slices as so many examples can make."""
    return kind(**{"n_slices": min(128, len(predictions.label) // _EXAMPLES_A_SLICE)} | parameters)


def _slicer(kind: type[Edisa] | type[Domino], parameters: dict[str, Any]) -> Fit:
    def fit(predictions: Predictions) -> Callable[[Predictions], NDArray[np.bool_]]:
        slicer = make_slicer(kind, predictions, **parameters).fit(
            predictions.embedding, predictions.label, predictions.probability
        )
        return lambda other: slicer.error_prone(other.embedding, other.probability)

    return fit


def table_4(discoveries: Discoveries) -> PaperTable:
    """Error-prone examples by classifier and finder, among them ``edisa`` and ``domino`` with the
    paper's weights.
    """
    rows = [
        _row(f"{model}: {name}", runs)
        for model, by in discoveries.items()
        for name, runs in by.items()
    ]
    behind = _behind({row.label: row.here for row in rows}, list(discoveries))
    for name, numbers in _PAPER.items():
        rows.append(PaperRow(f"average of nine data sets, BERT: {name}", paper=numbers))
    note = (
        "Efficacy is the share of errors among the examples found; beside it that of equally many "
        "examples of least confidence, and of examples at random. Runs ahead: of those that found "
        f"any, how many beat confidence. {behind}"
    )
    return PaperTable("Table 4: error-prone examples", note, _COLUMNS, tuple(rows))


def _measure_all(
    runs: Sequence[Sequence[Predictions]], fits: Mapping[str, Fit], progress: Progress
) -> Discoveries:
    by_model: dict[str, dict[str, list[Discovery]]] = {}
    for number, first in enumerate(runs[0]):
        for name, fit in fits.items():
            progress(f"{name} on {first.name}")
            by_model.setdefault(first.name, {})[name] = [measure(fit, run[number]) for run in runs]
    return by_model


def _behind(rows: Mapping[str, Mapping[str, Value]], models: Sequence[str]) -> str:
    """Where Edisa, with the paper's weights, is not ahead of confidence, or of Domino."""
    sentences = []
    for rival, row, column in (
        ("confidence", "edisa", "confidence"),
        ("Domino", "domino", "efficacy"),
    ):
        gaps = {
            m: _number(rows[f"{m}: edisa"]["efficacy"]) - _number(rows[f"{m}: {row}"][column])
            for m in models
        }
        models_behind = [model for model, gap in gaps.items() if not gap > 0]
        where = (
            f"not ahead of {rival} on {'; '.join(models_behind)}"
            if models_behind
            else f"ahead of {rival} on all"
        )
        sentences.append(f"Edisa with the paper's weights is {where}.")
    return " ".join(sentences)


def _number(value: Value) -> float:
    return value if isinstance(value, float) else float("nan")


def table_5(discoveries: Discoveries) -> PaperTable:
    """What each view of an example adds, by classifier and structure."""
    rows = [
        _row(f"{model}: {name}", runs)
        for model, by in discoveries.items()
        for name, runs in by.items()
    ]
    for name, numbers in _TABLE_5.items():
        rows.append(
            PaperRow(
                f"CoLA, BERT: {name}",
                paper=dict(zip(("count", "efficacy", "confidence"), numbers, strict=True)),
            )
        )
    note = (
        "Edisa with the embedding, or the error too, left out of the likelihood. Slices start from "
        "clusters of the embedding all the same."
    )
    return PaperTable("Table 5: structure", note, _COLUMNS, tuple(rows))


def _dimensions(runs: Sequence[Sequence[Predictions]], progress: Progress) -> PaperTable:
    """Principal components kept, on the first classifier, whose embedding has 64 numbers."""
    classifiers = [run[0] for run in runs]
    rows = []
    for dimensions in DIMENSIONS:
        for weight in (0.15, 0.1, 0.05):
            progress(f"{dimensions or 'all'} dimensions, embedding weight {weight}")
            discoveries = [
                measure(edisa(pca=dimensions, embedding_weight=weight), predictions)
                for predictions in classifiers
            ]
            rows.append(
                _row(f"{dimensions or 'all'} dimensions, embedding_weight = {weight}", discoveries)
            )
    note = (
        f"Edisa on {classifiers[0].name}, whose embedding has {classifiers[0].embedding.shape[1]} "
        "dimensions. The paper goes from 32 of 1,024 to all of them, and finds hardly anything "
        "with all."
    )
    return PaperTable("Table 7: principal components", note, _COLUMNS, tuple(rows))


def _weights(runs: Sequence[Sequence[Predictions]], progress: Progress) -> PaperTable:
    """All weights on the second classifier."""
    classifiers = [run[1] for run in runs]
    rows = []
    for name in ("embedding_weight", "error_weight"):
        for weight in WEIGHTS:
            progress(f"{name} = {weight}")
            rows.append(
                _row(
                    f"{name} = {weight}",
                    [measure(edisa(**{name: weight}), predictions) for predictions in classifiers],
                )
            )
    note = f"Edisa on {classifiers[0].name}; the other weights are the defaults, 0.15, 0.1 and 1."
    return PaperTable("Table 6: weights", note, _COLUMNS, tuple(rows))


def _sizes(runs: Sequence[Sequence[Predictions]], progress: Progress) -> PaperTable:
    rows = []
    for number in (0, 1):
        classifiers = [run[number] for run in runs]
        for size in SIZES:
            progress(f"fitted on {size:.0%} of {classifiers[0].name}")
            discoveries = [measure(edisa(), predictions, size) for predictions in classifiers]
            rows.append(_row(f"{classifiers[0].name}: {size:.1%} of the examples", discoveries))
    note = (
        "Edisa fitted on part of the examples and measured on the same others; all are twice as "
        "many as those."
    )
    return PaperTable("Figure 3: examples to fit on", note, _COLUMNS, tuple(rows))


def _draw_sizes(sizes: PaperTable) -> str:
    """Figure 3: efficacy, and that of confidence, by how many examples there were to fit on for
    each to be measured.
    """
    series: dict[str, list[tuple[float, float]]] = {}
    ratio = FITTED / (1 - FITTED)
    for row, size in zip(sizes.rows, SIZES * 2, strict=True):
        name = row.label.split(":")[0]
        for what in ("efficacy", "confidence"):
            value = row.here[what]
            if isinstance(value, float):
                series.setdefault(f"{name}: {what}", []).append((ratio * size, value))
    return lines(series, "examples fitted, as a share of those measured", "share of errors")


def _row(label: str, discoveries: Sequence[Discovery]) -> PaperRow:
    def mean(name: str) -> float | None:
        values = [getattr(one, name) for one in discoveries]
        return float(np.nanmean(values)) if not np.isnan(values).all() else None

    means = {name: mean(name) for name in _COLUMNS if name != "ahead"}
    nonempty = list(_with_examples(discoveries))
    ahead = sum(one.efficacy > one.confidence for one in nonempty)
    return PaperRow(label, {**means, "ahead": f"{ahead} of {len(nonempty)}"})


def _with_examples(discoveries: Sequence[Discovery]) -> Iterator[Discovery]:
    return (one for one in discoveries if one.count)
