"""The table of the study of FailureScope's clusters, from its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.paired import student
from groundfault_studies.resuming import Rows
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value

Floats = NDArray[np.float64]

_LINES = {
    "known_holes": {
        "published": "clusters published",
        "true": "of these, that are one of the 13 true modes",
        "recovered": "true modes that some published cluster is",
        "nearest": "mean Jaccard index of a true mode with its nearest published cluster",
    },
    "zeroeval": {
        "published": "clusters published from half of the models",
        "true": "of these, that the other half publishes too",
    },
}
_LINES["mint"] = _LINES["zeroeval"]


def make_table(rows: Rows, draws: int, like: float, reducer: str) -> PaperTable:
    """The paper's rule, ours and the difference, a line a number and data set.

    Parameters
    ----------
    rows : list of dict
        A row for each data set, rule and draw.
    draws : int
    like : float
        Jaccard index from which two clusters are one.
    reducer : {"umap", "pca"}
        Of the paper's procedure.
    """
    columns: dict[str, tuple[str, Kind]] = {
        "paper": ("paper's rule", "text"),
        "ours": ("ours", "text"),
        "difference": ("difference", "text"),
    }
    lines = []
    for data, numbers in _LINES.items():
        for key, label in numbers.items():
            paper, ours = (_collect(rows, data, rule, key) for rule in ("paper", "default"))
            if len(paper) and len(ours):
                here: dict[str, Value] = {
                    "paper": f"{paper.mean():.2f}",
                    "ours": f"{ours.mean():.2f}",
                    "difference": _format_difference(ours - paper),
                }
                lines.append(PaperRow(f"{data}: {label}", here))
    how = "UMAP" if reducer == "umap" else "principal components, as UMAP is not installed"
    note = (
        f"Means of {draws} draws: of prompts of known_holes, of halves of the models of the "
        "others; paired differences with Student's 95 % intervals over draws, which share data. "
        f"Two clusters are one from a Jaccard index of {like:g}. The paper's rule publishes all "
        f"its clusters if the test of fixed labels rejects; it reduces by {how}. In known_holes "
        "every mode is that of one model alone, which is not what a taxonomy of many models looks "
        "for: `study known-holes` has the failure modes of each model."
    )
    return PaperTable("Clusters, and how many of them are so", note, columns, tuple(lines))


def _collect(rows: Rows, data: str, rule: str, key: str) -> Floats:
    """A number of each draw, in order."""
    drawn = sorted(
        (row for row in rows if (row["data"], row["rule"]) == (data, rule)),
        key=lambda row: row["draw"],
    )
    return np.array([row[key] for row in drawn], dtype=np.float64)


def _format_difference(differences: Floats) -> str:
    ends = student(differences)
    mean = f"{differences.mean():+.2f}"
    interval = f" [{ends[0]:+.2f}, {ends[1]:+.2f}]" if ends else ", alike in all draws"
    return (mean + interval).replace("-", "−")
