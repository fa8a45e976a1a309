"""Discover: how many of the examples that slice finders call error-prone, without labels, are errors.

References
----------
Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural Language Processing", TACL
11, 2023. https://doi.org/10.1162/tacl_a_00617. Its nine data sets and fine-tuned transformers are not at hand; here are
other models and their real mistakes, in the form of its Tables 4 and 6 and Figure 3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.finders.domino import Domino
from groundfault.finders.edisa import Edisa
from groundfault.finders.spotlight import Spotlight
from groundfault.stats.discovery import Discovery, discovery
from groundfault.studies.real_models import Predictions, of_texts, shipped
from groundfault.studies.tables import Kind, Row, Study, Table

Progress = Callable[[str], object]
Fit = Callable[[Predictions], Callable[[Predictions], NDArray[np.bool_]]]

SOURCE = "Hua et al. (2023), Discover, Explain, Improve, TACL 11, https://doi.org/10.1162/tacl_a_00617"
FITTED = 2 / 3
"""Share of the examples that slices are fitted on."""

WEIGHTS = (0.01, 0.05, 0.15, 0.5, 1.0)
SIZES = (0.125, 0.25, 0.5, 1.0)

_EXAMPLES_A_SLICE = 20
_COLUMNS: dict[str, tuple[str, Kind]] = {
    "found": ("found", "size"),
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


def study(shared: str | Path | None = None, *, seeds: int = 5, progress: Progress = bool) -> Study:
    """Compare slice finders, and weights and sizes of Edisa, on the mistakes of real classifiers.

    Parameters
    ----------
    shared : path, optional
        Folder with ``real``, for the classifiers of texts; left out, ``$GROUNDFAULT_SHARED`` or ``../shared/data``.
        Without it they are lacking.
    seeds : int
        How often classifiers are trained, each time on other examples; numbers are means.
    progress : callable, optional
    """
    folder = Path(shared or os.environ.get("GROUNDFAULT_SHARED") or "../shared/data") / "real"
    runs: list[list[Predictions]] = []
    for seed in range(seeds):
        progress(f"training classifiers, {seed + 1} of {seeds}")
        runs.append([*shipped(seed), *(of_texts(folder, seed) if folder.is_dir() else ())])
    lacking = () if folder.is_dir() else ("classifiers of texts, which need the folder of shared data",)
    settings = {"seeds": seeds, "fitted": FITTED, "slices": f"one for {_EXAMPLES_A_SLICE} examples, at most 128"}
    tables = (_finders(runs, progress), _weights(runs, progress), _sizes(runs, progress))
    return Study("discover", "Error-prone examples found without labels", SOURCE, settings, tables, lacking)


def edisa(**parameters: Any) -> Fit:
    """Fit Edisa, and say which examples are error-prone."""
    return _slicer(Edisa, parameters)


def domino(**parameters: Any) -> Fit:
    """Fit Domino, and say which examples are error-prone."""
    return _slicer(Domino, parameters)


def spotlight(**parameters: Any) -> Fit:
    """Fit the Spotlight, whose slices are all said to be error-prone."""

    def fit(given: Predictions) -> Callable[[Predictions], NDArray[np.bool_]]:
        fitted = Spotlight(**parameters).fit(given.embedding, given.label, given.probability)
        return lambda other: np.asarray(fitted.members(other.embedding).any(axis=1))

    return fit


def measure(fit: Fit, given: Predictions, size: float = 1.0) -> Discovery:
    """Fit on the first two thirds of the examples, or the first part of those, and measure on the last third."""
    first, rest = given.split(FITTED)
    part, _ = first.split(size)
    return discovery(fit(part)(rest), rest.wrong, rest.probability)


def _slicer(kind: type[Edisa] | type[Domino], parameters: dict[str, Any]) -> Fit:
    def fit(given: Predictions) -> Callable[[Predictions], NDArray[np.bool_]]:
        slices = min(128, len(given.label) // _EXAMPLES_A_SLICE)
        fitted = kind(**{"n_slices": slices} | parameters).fit(given.embedding, given.label, given.probability)
        return lambda other: fitted.error_prone(other.embedding, other.probability)

    return fit


def _finders(runs: Sequence[Sequence[Predictions]], progress: Progress) -> Table:
    fits = {
        "edisa": edisa(),
        "edisa, weights 1": edisa(embedding_weight=1.0, error_weight=1.0),
        "domino": domino(confidence_weight=40.0),
        "spotlight": spotlight(),
    }
    rows = []
    for number, first in enumerate(runs[0]):
        for name, fit in fits.items():
            progress(f"{name} on {first.name}")
            rows.append(_row(f"{first.name}: {name}", [measure(fit, run[number]) for run in runs]))
    for name, printed in _PAPER.items():
        rows.append(Row(f"average of nine data sets, BERT: {name}", paper=printed))
    note = (
        "Efficacy is the share of errors among the examples found; beside it that of equally many examples of least "
        "confidence, and of examples at random. Runs ahead: of those that found any, how many beat confidence."
    )
    return Table("Table 4: error-prone examples", note, _COLUMNS, tuple(rows))


def _weights(runs: Sequence[Sequence[Predictions]], progress: Progress) -> Table:
    """All weights on the second classifier."""
    chosen = [run[1] for run in runs]
    rows = []
    for name in ("embedding_weight", "error_weight"):
        for weight in WEIGHTS:
            progress(f"{name} = {weight}")
            rows.append(_row(f"{name} = {weight}", [measure(edisa(**{name: weight}), given) for given in chosen]))
    note = f"Edisa on {chosen[0].name}; the other weights are the defaults, 0.15, 0.1 and 1."
    return Table("Table 6: weights", note, _COLUMNS, tuple(rows))


def _sizes(runs: Sequence[Sequence[Predictions]], progress: Progress) -> Table:
    chosen = [run[1] for run in runs]
    rows = []
    for size in SIZES:
        progress(f"fitted on {size:.0%}")
        rows.append(_row(f"{size:.1%} of the examples", [measure(edisa(), given, size) for given in chosen]))
    note = f"Edisa on {chosen[0].name}, fitted on part of the examples and measured on the same others."
    return Table("Figure 3: examples to fit on", note, _COLUMNS, tuple(rows))


def _row(label: str, measured: Sequence[Discovery]) -> Row:
    def mean(name: str) -> float | None:
        values = [getattr(one, name) for one in measured]
        return float(np.nanmean(values)) if not np.isnan(values).all() else None

    means = {name: mean(name) for name in _COLUMNS if name != "ahead"}
    found = list(_found(measured))
    ahead = sum(one.efficacy > one.confidence for one in found)
    return Row(label, {**means, "ahead": f"{ahead} of {len(found)}"})


def _found(measured: Sequence[Discovery]) -> Iterator[Discovery]:
    return (one for one in measured if one.found)
