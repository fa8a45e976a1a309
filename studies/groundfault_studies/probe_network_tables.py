"""Tables of the study of probe policies on real networks, from its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.probes.policies import DEFAULT
from groundfault_lab.stats.paired import student
from groundfault_studies.network_bank import GRAMMAR
from groundfault_studies.resuming import Rows
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Columns = dict[str, tuple[str, Kind]]

PAPERS = "caps, repeats"
POLICIES = (
    *("uniform, repeats", PAPERS, "uniform", "stratified", "caps", "gp", "hierarchical"),
    *("hierarchical, new_task=0.2", DEFAULT),
)


def make_tables(
    rows: Rows, wrong: Mapping[str, Bools], settings: Mapping[str, Any]
) -> tuple[PaperTable, ...]:
    """What the networks get wrong, then a table of policies for each budget.

    Parameters
    ----------
    rows : list of dict
        A row for each run: model, policy, budget, seed, unique failing keys and their tasks.
    wrong : mapping of str to bool array, shape (tasks, assignments)
        Where each network errs.
    settings : mapping
        Of the study.
    """
    return (
        _describe_networks(wrong),
        *(
            _compare_policies(rows, tuple(wrong), budget, settings)
            for budget in settings["budgets"]
        ),
    )


def _describe_networks(wrong: Mapping[str, Bools]) -> PaperTable:
    words = np.array([assignment[-1] == "words" for assignment in GRAMMAR])
    shares: dict[str, Callable[[Bools], Any]] = {
        "rate": lambda errs: errs.mean(),
        "digits": lambda errs: errs[:, ~words].mean(),
        "words": lambda errs: errs[:, words].mean(),
        "tasks": lambda errs: errs.any(axis=1).mean(),
        "always": lambda errs: errs.all(axis=1).mean(),
    }
    columns: Columns = {"keys": ("prompts", "count")}
    heads = ("fails", "numbers in digits", "in words", "tasks failed in some way", "in every way")
    columns |= {key: (head, "rate") for key, head in zip(shares, heads, strict=True)}
    lines = []
    for model, errs in wrong.items():
        here: dict[str, Value] = {"keys": errs.size}
        known = shares if errs.shape[1] == len(words) else shares.keys() - {"digits", "words"}
        here |= {key: float(shares[key](errs)) for key in known}
        lines.append(PaperRow(model, here))
    note = (
        "Every prompt was asked once, greedily. number_words never saw a number as a word in its "
        "training; control saw everything, for as long. SmolLM2 is a pretrained chat model, "
        "SmolLM2-135M-Instruct, whose recorded answers to other questions are used: 40 short ones "
        "with typos, in capitals and behind sentences beside the point."
    )
    return PaperTable("What the networks get wrong", note, columns, tuple(lines))


def _compare_policies(
    rows: Rows, models: Sequence[str], budget: int, settings: Mapping[str, Any]
) -> PaperTable:
    columns: Columns = {}
    for model in models:
        columns |= {
            f"{model} found": (f"{model}: keys (tasks)", "text"),
            f"{model} keys": ("keys of ours less these", "text"),
            f"{model} tasks": ("tasks of ours less these", "text"),
        }
    lines = []
    for policy in POLICIES:
        here: dict[str, Value] = {}
        for model in models:
            runs, ours = (_collect_runs(rows, model, each, budget) for each in (policy, DEFAULT))
            keys, tasks = runs.mean(axis=0)
            here[f"{model} found"] = f"{keys:.1f} ({tasks:.1f})"
            for key, gains in zip(("keys", "tasks"), (ours - runs).T, strict=True):
                here[f"{model} {key}"] = _format_difference(gains)
        lines.append(PaperRow(policy, here))
    note = (
        f"Unique failing prompts, and their tasks: means of {settings['seeds']} runs, each with "
        f"{settings['bank']} tasks drawn from {settings['tasks']} (SmolLM2: 40), the same for all "
        "policies; ours "
        f"is {DEFAULT}; paired differences with Student's 95 % intervals over runs. They speak of "
        "these models and tasks like these."
    )
    return PaperTable(f"{budget} queries", note, columns, tuple(lines))


def _collect_runs(rows: Rows, model: str, policy: str, budget: int) -> Floats:
    """Keys and tasks of each seed: shape (seeds, 2)."""
    return np.array(
        [
            (row["keys"], row["tasks"])
            for row in sorted(rows, key=lambda row: row["seed"])
            if (row["model"], row["policy"], row["budget"]) == (model, policy, budget)
        ],
        dtype=np.float64,
    )


def _format_difference(differences: Floats) -> str | None:
    ends = student(differences)
    if ends is None:
        return None
    mean, low, high = (f"{value:+.1f}".replace("-", "−") for value in (differences.mean(), *ends))
    return f"{mean} [{low}, {high}]"
