"""The table of the study of FailureScope's clusters, from its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groundfault_lab.stats.paired import student
from groundfault_studies.resuming import Rows
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value

Floats = NDArray[np.float64]

_LINES = {
    "known_holes": {
        "published": "clusters published",
        "true": "of these, that are one of the 13 true modes",
        "recovered": "true modes that some published cluster is",
        "owned": "of these, by a leaf that names the model with the hole",
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
            if not paper.any() and key in ("owned", "named", "false") and len(ours):
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
        "for: `study modes` has the failure modes of each model."
    )
    return PaperTable("Clusters, and how many of them are so", note, columns, tuple(lines))


_COMPARED = (
    ("answers until each leaf that a model fails is named", "cluster", "leaves"),
    *(
        (f"{what} at 50 answers: {other}", f"{key} {first}", f"{key} shrunk")
        for what, key in (("tau", "tau"), ("area", "auc"))
        for other, first in (
            ("nearest model", "nearest"),
            ("5 nearest", "neighbours"),
            ("ability and difficulty", "ability"),
        )
    ),
    *(
        (f"tau of the order of models: {other}", f"rank {first}", "rank shrunk")
        for other, first in (
            ("share failed of the answers", "asked"),
            ("nearest model", "nearest"),
            ("5 nearest", "neighbours"),
            ("ability and difficulty", "ability"),
        )
    ),
)
_PARTS = {"left out": "", "halves": ", the other half of the models"}
_FRESH = ", fresh prompts"
"""Of known_holes, where leaves are of the same models on other prompts."""


def make_diagnosis_table(rows: Rows) -> PaperTable:
    """How models that are left out are diagnosed, and predicted, by the leaves of others."""
    columns: dict[str, tuple[str, Kind]] = {
        "paper": ("the paper's", "text"),
        "ours": ("leaves", "text"),
        "difference": ("difference", "text"),
    }
    lines: list[PaperRow] = []
    parts = dict.fromkeys((row["data"], row["rule"]) for row in rows if row["rule"] in _PARTS)
    for data, rule in parts:
        own = [row for row in rows if (row["data"], row["rule"]) == (data, rule)]
        head = data + (_FRESH if data == "known_holes" else _PARTS[rule])
        for label, first, second in _COMPARED:
            pairs = _average_pairs(own, first, second)
            if len(pairs) > 1:
                what = "draws" if first.startswith("rank") else "models"
                here: dict[str, Value] = {
                    "paper": f"{pairs[:, 0].mean():.2f}",
                    "ours": f"{pairs[:, 1].mean():.2f}",
                    "difference": _format_difference(pairs[:, 1] - pairs[:, 0]),
                }
                lines.append(PaperRow(f"{head}, {len(pairs)} {what}: {label}", here))
        if any("wrong" in row for row in own):
            wrong = sum(row.get("wrong", 0) for row in own)
            lines.append(PaperRow(f"{head}: leaves named wrongly", {"ours": str(wrong)}))
    note = (
        "Leaves by the attributes of the questions. A model fails a leaf if all its answers show "
        "it, at 10 % over the leaves. The first line of the paper's is cluster sampling, three of "
        "each and then by size, with the same test; ours asks for the leaves that are open, five "
        "questions at a time, and 150 stands for more. Tau and area (share failed above one half) "
        "are of the leaves' rates on questions that were not asked. One model is left out, or half "
        "of them, draw by draw; of known_holes, leaves are of other prompts and all models. Paired "
        "differences, a model's draws averaged, with Student's 95 % intervals over models; the "
        "order of the models is by the mean of the leaves' rates, with intervals over halves."
    )
    return PaperTable("A model that is left out", note, columns, tuple(lines))


def _average_pairs(rows: Rows, first: str, second: str) -> Floats:
    """Both numbers of each model, means over its draws, where both are known."""
    found: dict[object, list[tuple[float, float]]] = {}
    for row in rows:
        # answers are counted where there is a leaf to name
        if first == "cluster" and not row.get("failing"):
            continue
        if row.get(first) is None or row.get(second) is None:
            continue
        found.setdefault(row.get("model", row["draw"]), []).append((row[first], row[second]))
    return np.array([np.mean(pairs, axis=0) for pairs in found.values()]).reshape(-1, 2)


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
