"""Sequential audits: the paper's Figures 2, 3, C.1, C.2 and E.3, in form.

References
----------
Zhou et al. (2026), *Adaptive auditing of AI systems with anytime-valid guarantees*,
arXiv:2605.07002. Its questions, clinical notes and birds are not at hand: in their place stand a
pool and a bank of the same make, a language model's real answers in the categories of a published
tree, and a network's real mistakes on digits. Audits here test declared groups with a guarantee;
the paper's own sampling keeps none (see the study ``validity``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from groundfault.base.long_work import Progress, listener
from groundfault.errors import PlanError
from groundfault_studies import audit_charts
from groundfault_studies.audit_runs import (
    MAIN,
    METHODS,
    Setting,
    all_rows,
    digits,
    read_bank,
    read_pool,
    skills,
)
from groundfault_studies.shared_folder import find_shared
from groundfault_studies.tables import Kind, PaperRow, PaperStudy, PaperTable, Value

Rows = Sequence[dict[str, Any]]

SOURCE = (
    "Zhou et al. (2026), Adaptive auditing of AI systems with anytime-valid guarantees, "
    "arXiv:2605.07002"
)
ALPHA = 0.05
_FIGURES = {40: "Figure 2", 10: "Figure C.1", 70: "Figure C.2"}  # burn-in -> figure of the paper
_PAPERS_RHO = "−0.84"
_COLUMNS: dict[str, tuple[str, Kind]] = {
    "found": ("failure found", "rate"),
    "passed": ("passed", "rate"),
    "neither": ("neither", "rate"),
    "wrong": ("wrong", "rate"),
    "quarter": ("25 %", "count"),
    "median": ("labels", "count"),
    "three": ("75 %", "count"),
}


REPLICATES, QUICK_REPLICATES = 20, 1


def study(
    shared: str | Path | None = None,
    *,
    replicates: int | None = None,
    only: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    jobs: int = 1,
    quick: bool = False,
    keep: Path | None = None,
    progress: Progress | None = None,
    show: Callable[[PaperStudy], object] | None = None,
) -> PaperStudy:
    """Audit the settings of the paper's experiments, or their like, by its methods.

    Parameters
    ----------
    shared : path, optional
        Folder with ``savi_pool`` and ``real``; left out, ``$GROUNDFAULT_SHARED`` or
        ``../shared/data``. Without it the experiment on digits alone is run, and the others are
        lacking.
    replicates : int, optional
        Audits of each setting by each method; left out, 20, or quickly 1. The paper has 100 and 40.
    only : sequence of int, optional
        Burn-ins of the first experiment, of 10, 40 and 70; left out, all. The others have 40.
    methods : sequence of str, optional
        Policies, such as logistic, that of the default plan; left out, all.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        One audit of each: to see that it runs, not for conclusions.
    keep : path, optional
        Where audits that are done are kept; a study that was interrupted goes on from there.
    progress : callable, optional
    show : callable, optional
        Called with the study of the replicates so far, after 1, 2, 4, 8, ... of them.

    Raises
    ------
    InputError
        If a folder is named and is not there.
    PlanError
        If the paper has no figure of a burn-in, or no method has a policy.
    """
    progress = listener(progress)
    burn_ins = [m for m in sorted(_FIGURES) if only is None or m in only]
    if only and (others := set(only) - _FIGURES.keys()):
        raise PlanError(
            f"there is no figure of burn-in {min(others)}; choose from {sorted(_FIGURES)}"
        )
    policies = list(dict.fromkeys(method.policy for method in METHODS))
    if unknown := set(methods or ()) - set(policies):
        raise PlanError(f"there is no policy {min(unknown)!r} here; choose from {policies}")
    replicates = replicates or (QUICK_REPLICATES if quick else REPLICATES)
    folder, lacking = _folder(shared)
    first = [*read_pool(folder), *read_bank(folder)] if folder else []
    second, third = [skills(folder)] if folder else [], [digits()]
    rounds = [
        [
            (setting, policy, burn_ins if setting in first else (40,), replicate)
            for setting in [*first, *second, *third]
            for policy in policies
            if methods is None or policy in methods
        ]
        for replicate in range(1, replicates + 1)
    ]

    def make(rows: Rows, count: int) -> PaperStudy:
        labelled = _with_labels(rows, [*first, *second, *third])
        tables, figures = _tabulate(labelled, bool(folder), second, third)
        settings = {
            "replicates": count,
            "shared": str(folder) if folder else None,
            "burn-ins": burn_ins,
        }
        title = "Sequential audits, in form"
        return PaperStudy("sequential", title, SOURCE, settings, tuple(tables), lacking, figures)

    partial = None if show is None else lambda rows, count: show(make(rows, count))
    return make(all_rows(rounds, keep, jobs, progress, partial), replicates)


def _tabulate(
    rows: Rows, is_complete: bool, second: Sequence[Setting], third: Sequence[Setting]
) -> tuple[list[PaperTable], dict[str, str]]:
    """The tables and figures of all experiments; the first of them needs shared data."""
    tables: list[PaperTable] = []
    figures: dict[str, str] = {}
    for experiment, title in (
        (("1a", "pool without labels"), ("1b", "generated cases")) if is_complete else ()
    ):
        for burn_in, figure in _FIGURES.items():
            selection = [
                row for row in rows if row["experiment"] == experiment and row["m"] == burn_in
            ]
            if not selection:
                continue
            tables.append(
                _verdicts(f"{figure} ({experiment[1]}), m = {burn_in}: {title}", selection)
            )
            name = f"{figure.lower().replace(' ', '-').replace('.', '')}{experiment[1]}"
            figures |= _draw_figures(name, selection)
    for figure, name, settings in (
        ("Figure 3", "figure-3", second),
        ("Figure E.3", "figure-e3", third),
    ):
        for setting in settings:
            tables.append(_verdicts(_title(figure, setting), _of(rows, setting)))
            figures |= _draw_figures(name, _of(rows, setting))
            if any(row["method"] == MAIN for row in rows):
                tables.append(_attention(figure, rows, setting))
                figures |= _scatter(name, rows, setting)
    return tables, figures


def _folder(shared: str | Path | None) -> tuple[Path | None, tuple[str, ...]]:
    folder = find_shared(shared)
    if folder.is_dir():
        return folder, ()
    return None, (
        "experiments 1 and 2, which need the folder of shared data (--shared or "
        "$GROUNDFAULT_SHARED)",
    )


def _with_labels(rows: Rows, settings: Sequence[Setting]) -> list[dict[str, Any]]:
    """Rows with the labels until the right verdict; the budget where it did not come, as the paper
    plots it.
    """
    of = {(s.experiment, s.name): s for s in settings}
    out = []
    for row in rows:
        setting = of[row["experiment"], row["setting"]]
        budget = min(setting.budget, len(setting.pool))
        out.append({**row, "until": row["labelled"] if row["verdict"] == row["right"] else budget})
    return out


def _of(rows: Rows, setting: Setting) -> Rows:
    return [
        row
        for row in rows
        if (row["experiment"], row["setting"]) == (setting.experiment, setting.name)
    ]


def _title(figure: str, setting: Setting) -> str:
    low, high = min(setting.accuracy.values()), max(setting.accuracy.values())
    return (
        f"{figure}, in form: {setting.name}, {len(setting.pool):,} cases, accuracy {low:.2f} to "
        f"{high:.2f}, threshold {setting.threshold:g}"
    )


def _list_labels(rows: Rows) -> list[str]:
    labels = {row["method"] for row in rows}
    return [method.label for method in METHODS if method.label in labels]


def _verdicts(title: str, rows: Rows) -> PaperTable:
    out = []
    for setting in dict.fromkeys(row["setting"] for row in rows):
        for label in _list_labels(rows):
            mine = [row for row in rows if (row["setting"], row["method"]) == (setting, label)]
            verdicts = [row["verdict"] for row in mine]
            low, middle, high = np.quantile(
                [row["until"] for row in mine], (0.25, 0.5, 0.75), method="inverted_cdf"
            )
            here: dict[str, Value] = {
                "found": verdicts.count("failure mode found") / len(verdicts),
                "passed": verdicts.count("audit passed") / len(verdicts),
                "neither": verdicts.count("inconclusive") / len(verdicts),
                "wrong": sum(row["verdict"] not in (row["right"], "inconclusive") for row in mine)
                / len(verdicts),
                "quarter": int(low),
                "median": int(middle),
                "three": int(high),
            }
            out.append(PaperRow(f"{setting}: {label}", here))
    note = (
        "Shares of the audits by their verdict. Wrong: the verdict is not true, by the scores of "
        "given cases or by the generators of generated ones. Then quartiles of the cases "
        "labelled until the right verdict or the budget, warm-up included. The claim is that "
        "every declared group reaches the threshold. The plan is the default's but for policy, "
        "bet and m, and only claims count in the auditor's test: not the paper's sampling, which "
        "keeps no error rate."
    )
    return PaperTable(title, note, _COLUMNS, tuple(out))


def _shares(rows: Rows, setting: Setting) -> list[tuple[str, float, float]]:
    """Category, accuracy, and its share of what the main method drew, the mean over audits."""
    draws = [row["drawn"] for row in _of(rows, setting) if row["method"] == MAIN]
    names = sorted(setting.accuracy)
    counts = np.array([[audit.get(name, 0) for name in names] for audit in draws], dtype=float)
    shares = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).mean(axis=0)
    return [
        (name, setting.accuracy[name], float(share))
        for name, share in zip(names, shares, strict=True)
    ]


def _attention(figure: str, rows: Rows, setting: Setting) -> PaperTable:
    """Where the auditor looked, and how that goes with accuracy."""
    from scipy.stats import spearmanr

    points = sorted(_shares(rows, setting), key=lambda point: point[1])
    rho = float(spearmanr([a for _, a, _ in points], [s for _, _, s in points]).statistic)
    columns: dict[str, tuple[str, Kind]] = {
        "accuracy": ("accuracy", "rate"),
        "share": ("share of draws", "rate"),
    }
    lines = [
        PaperRow(name, {"accuracy": accuracy, "share": share}) for name, accuracy, share in points
    ]
    paper = {"share": _PAPERS_RHO} if setting.experiment == "2" else {}
    columns["rho"] = ("", "lift")
    lines.append(
        PaperRow("Spearman correlation", {"rho": rho}, {"rho": paper["share"]} if paper else {})
    )
    note = (
        f"{MAIN}, m = 40: the mean share of each category among the cases tested, and its accuracy."
    )
    return PaperTable(f"{figure}: where the auditor looked", note, columns, tuple(lines))


def _draw_figures(name: str, rows: Rows) -> dict[str, str]:
    """Bars of verdicts, boxes of labels, and the wealth of one audit."""
    out = {
        f"{name}-verdicts": audit_charts.verdicts(rows, _list_labels(rows)),
        f"{name}-labels": audit_charts.labels(rows, _list_labels(rows)),
    }
    curves = [row for row in rows if row["curve"]]
    if curves:
        out[f"{name}-wealth"] = audit_charts.wealth(curves[0]["curve"], ALPHA, curves[0]["m"])
    return out


def _scatter(name: str, rows: Rows, setting: Setting) -> dict[str, str]:
    return {f"{name}-frequency": audit_charts.frequency(_shares(rows, setting))}
