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
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from groundfault.base.long_work import Progress, listener
from groundfault_lab.slicing.domino import Domino
from groundfault_lab.slicing.edisa import Edisa
from groundfault_lab.slicing.fusion import Fusion
from groundfault_lab.slicing.spotlight import Spotlight
from groundfault_studies.charts import lines
from groundfault_studies.discovery import Discovery, score_discovery
from groundfault_studies.real_models import Predictions, of_texts, shipped_classifiers
from groundfault_studies.resuming import Rows, resume_rounds
from groundfault_studies.shared_folder import find_shared
from groundfault_studies.tables import Kind, PaperRow, PaperStudy, PaperTable, Value

Discoveries = Mapping[str, Mapping[str, Sequence[Discovery]]]
"""By classifier, and by what was fitted: a discovery for each run."""
Slicer = TypeVar("Slicer", bound=Edisa | Domino | Fusion)
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
_OURS, _FUSED = "edisa, our default", "fusion"
_BASELINES = {"edisa": "paper's rule", "domino": "Domino"}
_FIRST, _SECOND = 0, 1  # the classifiers of Tables 6 and 7; Figure 3 has both


def study(
    shared: str | Path | None = None,
    *,
    seeds: int | None = None,
    first_seed: int = 0,
    quick: bool = False,
    keep: Path | None = None,
    progress: Progress | None = None,
    show: Callable[[PaperStudy], object] | None = None,
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
    first_seed : int
        Seed of the first training; the others follow it.
    quick : bool
        One seed: to see that it runs, not for conclusions.
    keep : path, optional
        File of what is done; a study that was interrupted goes on from there.
    progress : callable, optional
    show : callable, optional
        Called with the study of the seeds so far, after 1, 2 and 4 of them.
    """
    seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    shared_folder = find_shared(shared, "real")
    folder = shared_folder if shared_folder.is_dir() else None
    rounds = [
        {
            f"seed {seed}, table {table}, classifier {number}, {name}, {size:g} fitted, "
            f"{'texts too' if folder else 'no texts'}": (folder, seed, table, number, name, size)
            for table, number, name, size in _list_parts(4 if folder is None else 6)
        }
        for seed in range(first_seed, first_seed + seeds)
    ]
    lacking = () if folder else ("classifiers of texts, which need the folder of shared data",)

    def make(rows: Rows, count: int) -> PaperStudy:
        settings = {
            "seeds": count,
            "first seed": first_seed,
            "fitted": FITTED,
            "slices": f"one for {_EXAMPLES_A_SLICE} examples, at most 128",
        }
        tables = _tabulate(rows)
        figures = {"figure-3": _draw_sizes(tables[-1])}
        title = "Error-prone examples found without labels"
        return PaperStudy("discover", title, SOURCE, settings, tables, lacking, figures)

    partial = None if show is None else lambda rows, count: show(make(rows, count))
    return make(resume_rounds(rounds, _measure_part, keep, 1, listener(progress), partial), seeds)


def _list_parts(classifiers: int) -> Iterator[tuple[str, int, str, float]]:
    """Table, classifier, what is fitted and to which share of the examples, of one seed."""
    for table, numbers in (("4", range(classifiers)), ("5", range(classifiers))):
        yield from ((table, number, name, 1.0) for number in numbers for name in FITS[table]())
    yield from (("6", _SECOND, name, 1.0) for name in weights())
    yield from (("7", _FIRST, name, 1.0) for name in dimensions())
    yield from (("3", number, "edisa", size) for number in (_FIRST, _SECOND) for size in SIZES)


def _measure_part(
    folder: Path | None, seed: int, table: str, number: int, name: str, size: float
) -> Rows:
    """One row: what a finder makes of one training of a classifier."""
    predictions = _train(folder, seed)[number]
    discovery = measure(FITS[table]()[name], predictions, size)
    about = {"table": table, "classifier": predictions.name, "fit": name, "size": size}
    return [about | {"width": predictions.embedding.shape[1]} | asdict(discovery)]


@lru_cache(maxsize=1)
def _train(folder: Path | None, seed: int) -> tuple[Predictions, ...]:
    return (*shipped_classifiers(seed), *(of_texts(folder, seed) if folder else ()))


def _tabulate(rows: Rows) -> tuple[PaperTable, ...]:
    by_table: dict[str, dict[str, dict[str, list[Discovery]]]] = {}
    for row in rows:
        name = f"{row['size']:.1%} of the examples" if row["table"] == "3" else row["fit"]
        discovery = Discovery(*(row[each.name] for each in fields(Discovery)))
        by_model = by_table.setdefault(row["table"], {})
        by_model.setdefault(row["classifier"], {}).setdefault(name, []).append(discovery)
    width = next(row["width"] for row in rows if row["table"] == "7")
    return (
        table_4(by_table["4"]),
        *compare_rules(by_table["4"]),
        table_5(by_table["5"]),
        _table_6(by_table["6"]),
        _table_7(by_table["7"], width),
        _figure_3(by_table["3"]),
    )


def finders() -> dict[str, Fit]:
    """The rows of Table 4: the paper's weights and rules, and ours."""
    return {
        "edisa": edisa(),
        "edisa, weights 1": edisa(embedding_weight=1.0, error_weight=1.0),
        "edisa, weights of Explain": edisa(error_weight=1.0, confidence_weight=0.1),
        # chosen on other data than the study's: see the page on the papers
        _OURS: edisa(suspicion="calibrated"),
        _FUSED: _slicer(Fusion, {}),
        "domino": domino(confidence_weight=40.0),
        "spotlight": spotlight(),
    }


def structures() -> dict[str, Fit]:
    """The rows of Table 5."""
    return {name: edisa(**weights) for name, weights in STRUCTURES.items()}


def weights() -> dict[str, Fit]:
    """The rows of Table 6."""
    names = ("embedding_weight", "error_weight")
    return {f"{name} = {w}": edisa(**{name: w}) for name in names for w in WEIGHTS}


def dimensions() -> dict[str, Fit]:
    """The rows of Table 7."""
    return {
        f"{n or 'all'} dimensions, embedding_weight = {w}": edisa(pca=n, embedding_weight=w)
        for n in DIMENSIONS
        for w in (0.15, 0.1, 0.05)
    }


FITS: Mapping[str, Callable[[], dict[str, Fit]]] = {
    "4": finders,
    "5": structures,
    "6": weights,
    "7": dimensions,
    "3": finders,
}
"""What is fitted for each table, and for Figure 3."""


def edisa(**parameters: Any) -> Fit:
    """Fit Edisa by the paper's rule, and say which examples are error-prone."""
    return _slicer(Edisa, {"suspicion": "slices"} | parameters)


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


def make_slicer(kind: type[Slicer], predictions: Predictions, **parameters: Any) -> Slicer:
    """A slicer, not fitted, with as many slices as so many examples can make."""
    return kind(**{"n_slices": min(128, len(predictions.label) // _EXAMPLES_A_SLICE)} | parameters)


def _slicer(kind: type[Edisa | Domino | Fusion], parameters: dict[str, Any]) -> Fit:
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


def compare_rules(discoveries: Discoveries) -> tuple[PaperTable, PaperTable]:
    """What fusion of mixtures, and Edisa's default, gain over the paper's rule and its baseline, on
    the same trainings.
    """
    default = "Edisa's default"
    return (
        _compare(_FUSED, "Fusion", _BASELINES | {_OURS: default}, discoveries),
        _compare(_OURS, default, _BASELINES, discoveries),
    )


def _compare(
    rule: str, called: str, rivals: Mapping[str, str], discoveries: Discoveries
) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {}
    for key, head in (("lead", "lead"), ("f1", "F1")):
        columns[key] = (head, "lift" if key == "lead" else "rate")
        columns |= {f"{key} {name}": (f"less {said}", "text") for name, said in rivals.items()}
    rows = []
    for model, by in discoveries.items():
        here: dict[str, Value] = {}
        for key, value_of in (("lead", _lead), ("f1", _f1)):
            values = {name: np.array([value_of(one) for one in ones]) for name, ones in by.items()}
            here[key] = float(values[rule].mean())
            here |= {
                f"{key} {name}": format_interval(values[rule] - values[name]) for name in rivals
            }
        rows.append(PaperRow(model, here))
    note = (
        "Lead: efficacy less that of confidence. F1: of the errors that are found. Both are 0 if "
        "nothing is found. Fusion is a regression on the slices of three mixtures; Domino is the "
        "paper's baseline. In brackets 95% intervals over seeds, by Student's t; seeds share their "
        "data, so they speak of training anew on these, not of other data."
    )
    title = f"{called} beside the paper's rule and Domino"
    return PaperTable(title, note, columns, tuple(rows))


def _lead(one: Discovery) -> float:
    return one.efficacy - one.confidence if one.count else 0.0


def _f1(one: Discovery) -> float:
    total = one.efficacy + one.recall
    return 2 * one.efficacy * one.recall / total if one.count and total > 0 else 0.0


def format_interval(differences: NDArray[np.float64]) -> str:
    """The mean of differences, and its 95% interval where there are two or more."""
    from scipy.stats import t

    mean, n = differences.mean(), len(differences)
    if n < 2:
        return f"{mean:+.3f}"
    half = t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n)
    return f"{mean:+.3f} [{mean - half:+.3f}, {mean + half:+.3f}]"


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


def _table_6(discoveries: Discoveries) -> PaperTable:
    """All weights on the second classifier."""
    [(model, by)] = discoveries.items()
    note = f"Edisa on {model}; the other weights are the defaults, 0.15, 0.1 and 1."
    rows = tuple(_row(name, each) for name, each in by.items())
    return PaperTable("Table 6: weights", note, _COLUMNS, rows)


def _table_7(discoveries: Discoveries, width: int) -> PaperTable:
    """Principal components kept, on the first classifier."""
    [(model, by)] = discoveries.items()
    note = (
        f"Edisa on {model}, whose embedding has {width} dimensions. The paper goes from 32 of "
        "1,024 to all of them, and finds hardly anything with all."
    )
    rows = tuple(_row(name, each) for name, each in by.items())
    return PaperTable("Table 7: principal components", note, _COLUMNS, rows)


def _figure_3(discoveries: Discoveries) -> PaperTable:
    note = (
        "Edisa fitted on part of the examples and measured on the same others; all are twice as "
        "many as those."
    )
    rows = tuple(
        _row(f"{model}: {size}", each)
        for model, by in discoveries.items()
        for size, each in by.items()
    )
    return PaperTable("Figure 3: examples to fit on", note, _COLUMNS, rows)


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
