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
        "named": "models named in a leaf",
        "false": "of these, that fail no more there on other prompts",
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
            if not paper.any() and key in ("named", "false") and len(ours):
                only: dict[str, Value] = {"paper": "no leaves", "ours": f"{ours.mean():.2f}"}
                lines.append(PaperRow(f"{data}: {label}", only))
            elif len(paper) and len(ours):
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


_COMPARED = (
    ("answers until each leaf that a model fails is named", "cluster", "leaves"),
    ("tau at 50 answers: nearest model", "tau nearest", "tau shrunk"),
    ("tau at 50 answers: 5 nearest", "tau neighbours", "tau shrunk"),
    ("tau at 50 answers: ability and difficulty", "tau ability", "tau shrunk"),
    ("area at 50 answers: nearest model", "auc nearest", "auc shrunk"),
    ("area at 50 answers: 5 nearest", "auc neighbours", "auc shrunk"),
    ("area at 50 answers: ability and difficulty", "auc ability", "auc shrunk"),
)


def make_diagnosis_table(rows: Rows) -> PaperTable:
    """How models that are left out are diagnosed by the leaves of the others."""
    columns: dict[str, tuple[str, Kind]] = {
        "paper": ("the paper's", "text"),
        "ours": ("leaves", "text"),
        "difference": ("difference", "text"),
    }
    lines = []
    for data in dict.fromkeys(row["data"] for row in rows if row["rule"] == "left out"):
        models = [row for row in rows if (row["data"], row["rule"]) == (data, "left out")]
        for label, first, second in _COMPARED:
            some = [row for row in models if first in row]
            if first == "cluster":
                some = [row for row in some if row["failing"]]
            pairs = np.array([(row[first], row[second]) for row in some], dtype=np.float64)
            pairs = pairs[~np.isnan(pairs).any(axis=1)] if len(pairs) else pairs
            if len(pairs) > 1:
                here: dict[str, Value] = {
                    "paper": f"{pairs[:, 0].mean():.2f}",
                    "ours": f"{pairs[:, 1].mean():.2f}",
                    "difference": _format_difference(pairs[:, 1] - pairs[:, 0]),
                }
                lines.append(PaperRow(f"{data}, {len(pairs)} models: {label}", here))
        wrong = sum(row.get("wrong", 0) for row in models)
        lines.append(PaperRow(f"{data}: leaves named wrongly", {"ours": str(wrong)}))
    note = (
        "Leaves by the attributes of the questions. A model fails a leaf if all its answers show "
        "it, at 10 % over the leaves. The first line of the paper's is cluster sampling, three of "
        "each and then by size, with the same test; ours asks for the leaves that are open, five "
        "questions at a time, and 150 stands for more. Tau and area (share failed above one half) "
        "are of the leaves' rates on questions that were not asked; paired differences with "
        "Student's 95 % intervals over models."
    )
    return PaperTable("A model that is left out", note, columns, tuple(lines))


def _collect(rows: Rows, data: str, rule: str, key: str) -> Floats:
    """A number of each draw, in order."""
    drawn = sorted(
        (row for row in rows if (row["data"], row["rule"]) == (data, rule) and key in row),
        key=lambda row: row["draw"],
    )
    return np.array([row[key] for row in drawn], dtype=np.float64)


def _format_difference(differences: Floats) -> str:
    ends = student(differences)
    mean = f"{differences.mean():+.2f}"
    interval = f" [{ends[0]:+.2f}, {ends[1]:+.2f}]" if ends else ", alike in all draws"
    return (mean + interval).replace("-", "−")
