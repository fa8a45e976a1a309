"""Policies compared over the same seeds, and error rates where they can be estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.review.statuses import Status, score_row
from groundfault.probes.running.runs import ProbeRow
from groundfault.stats.intervals import wilson
from groundfault.stats.paired import sign_flips
from groundfault_lab.probes.endpoints import Results, RunEndpoints, group_by_run, is_open
from groundfault_lab.stats.paired import student
from groundfault_lab.stats.prevalence import estimate_with_repeats, estimate_without_repeats

LEVEL = 0.95  # coverage of intervals: the usual one
NON_ADAPTIVE = ("stratified", "uniform", "uniform, repeats", "exhaustive")
"""Policies that do not use signals; the first that ran is the control."""

PRIMARY = "unique audited keys"
ENDPOINTS: Mapping[str, Callable[[RunEndpoints], float]] = {
    PRIMARY: lambda run: run.unique_audited_keys,
    "audited yield": lambda run: run.audited_yield,
    "query to first audited failure": lambda run: run.budget if run.first is None else run.first,
    "tasks touched": lambda run: len(run.keys.tasks),
}
"""What is compared, each a function of a run. The first failure is restricted to the budget where
there is none.
"""


class Difference(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy minus the control in one endpoint, over the seeds that both have.

    Attributes
    ----------
    model : str or None
        None for the mean over models, seed by seed.
    policy, control, endpoint : str
    seeds : tuple of int
    values : tuple of float
        The difference of each seed.
    mean : float
    interval : pair of float, or None
        Student's, which assumes normal differences; None where they are all alike, or fewer than
        two.
    p : float
        Two-sided, over flips of the seeds' signs (`groundfault.stats.paired.sign_flips`); for the
        primary endpoint adjusted for all policies.
    """

    model: str | None
    policy: str
    control: str
    endpoint: str
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    mean: float
    interval: tuple[float, float] | None
    p: float

    @property
    def min_p(self) -> float:
        """Return the smallest p that so many seeds can give."""
        return 2.0 ** (1 - len(self.seeds))


class Duel(Struct, frozen=True, forbid_unknown_fields=True):
    """Best scores of two policies, seed by seed.

    The paper's check of its artefacts; it measures no discovery.
    """

    model: str | None
    policy: str
    control: str
    seeds: int
    best: float
    control_best: float
    wins: int
    losses: int
    ties: int


class Rate(Struct, frozen=True, forbid_unknown_fields=True):
    """An estimate, from one policy's runs, of how often prompts get a confirmed error.

    Attributes
    ----------
    model, policy : str
    how : {"all asked", "draws", "weighted", "not available"}
        Every prompt was asked; drawn with equal chances; drawn with chances that adapt but are
        known; or they are not.
    value : float or None
    interval : pair of float, or None
        Wilson's for equal chances; for weighted ones Student's over seeds, or, of a single seed, an
        approximate one.
    open : int
        Rows disputed, or routed and unaudited, which count as no error: with them the rate is at
        least the value.
    """

    model: str
    policy: str
    how: Literal["all asked", "draws", "weighted", "not available"]
    value: float | None = None
    interval: tuple[float, float] | None = None
    open: int = 0


def choose_control(results: Results) -> str:
    """Choose whom to compare others with: the first of `NON_ADAPTIVE`, else the first by name."""
    names = {_strip_cap(name): name for name in reversed(results.policies)}
    return next((names[kind] for kind in NON_ADAPTIVE if kind in names), results.policies[0])


def is_adaptive(policy: str) -> bool:
    """Tell whether a policy uses the signals of earlier queries."""
    return _strip_cap(policy) not in NON_ADAPTIVE


def count_reachable(policy: str, budget: int, prompts: int, tasks: int) -> int:
    """Count the queries of its budget that a policy can make, by its cap and the prompts."""
    parts = policy.split(", ")
    caps = [tasks * int(part.removeprefix("most=")) for part in parts if part.startswith("most=")]
    return min(budget, *caps, budget if may_repeat(policy) else prompts)


def may_repeat(policy: str) -> bool:
    """Tell whether a policy may ask a prompt again."""
    return "repeats" in policy.split(", ")


def _strip_cap(policy: str) -> str:
    """Return a policy's name without the cap on tasks, which uses no signals."""
    return ", ".join(part for part in policy.split(", ") if not part.startswith("most="))


def explain_mismatch(results: Results, policy: str, other: str, model: str | None = None) -> str:
    """Say why two policies cannot be compared with matched budgets; empty where they can."""
    both = results.select(policy, model), results.select(other, model)
    seeds = [{(run.model, run.seed) for run in runs} for runs in both]
    if seeds[0] != seeds[1]:
        return f"{policy} and {other} were not run with the same models and seeds"
    budgets = {run.budget for runs in both for run in runs}
    if len(budgets) > 1:
        return (
            f"{policy} and {other} had different budgets ({', '.join(map(str, sorted(budgets)))})"
        )
    # a run that ended early had fewer chances: its counts are of another budget
    short = [run for runs in both for run in runs if run.rows.queries < run.budget]
    if short:
        run = short[0]
        queries = f"{run.rows.queries} of {run.budget} queries"
        return f"{run.policy}, seed {run.seed}, made {queries}"
    return ""


def compute_differences(results: Results, against: str) -> list[Difference]:
    """Compute differences of matched policies from ``against``: by model, and their mean."""
    rows = []
    for model in results.scopes:
        runs = {policy: results.select(policy, model) for policy in results.policies}
        others = (policy for policy in results.policies if policy != against)
        rivals = [p for p in others if not explain_mismatch(results, p, against, model)]
        seeds = tuple(sorted({run.seed for run in runs[against]}))
        for endpoint, measure in ENDPOINTS.items() if rivals else ():
            means, *theirs = (
                np.array([fmean(measure(r) for r in runs[p] if r.seed == seed) for seed in seeds])
                for p in (against, *rivals)
            )
            values = [(mean - means).tolist() for mean in theirs]
            # one family of tests for the primary endpoint: p adjusted over all policies
            families = [values] if endpoint == PRIMARY else [[each] for each in values]
            ps = [p for each in families for p in sign_flips(list(zip(*each, strict=True)))]
            for rival, each, p in zip(rivals, values, ps, strict=True):
                numbers = (seeds, tuple(each), fmean(each), student(each, LEVEL), float(p))
                rows.append(Difference(model, rival, against, endpoint, *numbers))
    return rows


def compute_duels(results: Results, against: str) -> list[Duel]:
    """Compare best scores of other policies with one, on models and seeds that both have."""
    rows = []
    for model in results.models:
        control_best = {run.seed: run.best or 0.0 for run in results.select(against, model)}
        for rival in (policy for policy in results.policies if policy != against):
            runs = [run for run in results.select(rival, model) if run.seed in control_best]
            if runs:
                pairs = [(run.best or 0.0, control_best[run.seed]) for run in runs]
                means = fmean(a for a, _ in pairs), fmean(b for _, b in pairs)
                wins, losses = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
                ties = len(pairs) - wins - losses
                rows.append(Duel(model, rival, against, len(pairs), *means, wins, losses, ties))
    return rows


def estimate_rates(
    results: Results,
    rows: Sequence[ProbeRow],
    statuses: Mapping[str, Status],
    prompts: int,
    *,
    even: bool = True,
) -> list[Rate]:
    """Estimate how often the bank's prompts get a confirmed error, by model and policy.

    Parameters
    ----------
    results : Results
    rows, statuses
        The rows of the results, and their statuses.
    prompts : int
        Structurally valid prompts of bank and grammar.
    even : bool
        Whether every task has as many of them: policies that draw tasks alike draw prompts alike
        only then.

    Notes
    -----
    The share of errors in an adaptive policy's rows is no failure rate. Where it is known
    with which chance each prompt was drawn (``ProbeRow.chance``), runs are weighted by it, each for
    itself (`groundfault.stats.intervals`). The rate is of this bank's prompts, and of no others.
    """
    by_run = group_by_run(rows)
    return [
        _estimate_rate([by_run[model, policy, run.seed] for run in runs], statuses, prompts, even)
        for model in results.models
        for policy in results.policies
        if (runs := results.select(policy, model))
    ]


def _estimate_rate(
    runs: list[list[ProbeRow]], statuses: Mapping[str, Status], prompts: int, even: bool
) -> Rate:
    rows = [row for run in runs for row in run]
    first = rows[0]
    wrong = {row.id for row in rows if statuses.get(row.id) == "confirmed_model_error"}
    errors = [[float(row.id in wrong) for row in run] for run in runs]
    waiting = sum(is_open(row, statuses.get(row.id, "unaudited")) for row in rows)

    def rate(
        how: Any, value: float | None = None, interval: tuple[float, float] | None = None
    ) -> Rate:
        return Rate(first.model, first.policy, how, value, interval, waiting)

    # a census has no sampling error
    if len({row.key for row in rows}) == prompts:
        return rate("all asked", len({row.key for row in rows if row.id in wrong}) / prompts)
    # tasks are drawn alike; prompts are too only where every task has as many
    if even and not is_adaptive(first.policy):
        low, high = wilson(len(wrong), len(rows), LEVEL)
        return rate("draws", len(wrong) / len(rows), (float(low), float(high)))
    # inverse-probability weights need every chance
    if any(row.chance is None or not row.chance > 0 for row in rows):
        return rate("not available")
    estimate = estimate_with_repeats if may_repeat(first.policy) else estimate_without_repeats
    each = [
        estimate(run_errors, [row.chance or 0.0 for row in run], prompts, LEVEL)
        for run_errors, run in zip(errors, runs, strict=True)
    ]
    values, interval = [one.value for one in each], (each[0].low, each[0].high)
    return rate("weighted", fmean(values), student(values, LEVEL) if len(each) > 1 else interval)


Losses = Mapping[str, Mapping[tuple[str, ...], float]]
"""By task and assignment."""


class ComponentEffect(Struct, frozen=True, forbid_unknown_fields=True):
    """One option of a component against the others of its group, for one model.

    Attributes
    ----------
    model, group, option : str
    tasks : int
        With prompts on both sides.
    difference : float or None
        Mean over those tasks of the error rate under the option minus that under the others; None
        without tasks.
    interval : pair of float, or None
        Student's, over tasks.
    p : float
        Two-sided, over flips of the tasks' signs (`groundfault.stats.paired.sign_flips`), adjusted
        for all options of all groups.
    """

    model: str
    group: str
    option: str
    tasks: int
    difference: float | None
    interval: tuple[float, float] | None
    p: float


def compute_effects(
    rows: Iterable[ProbeRow], statuses: Mapping[str, Status], grammar: Grammar
) -> list[ComponentEffect]:
    """Compute the effect of every option of a group with two or more, by model.

    Parameters
    ----------
    rows : iterable of ProbeRow
        Rows of policies that are not adaptive.
    statuses : mapping of ProbeRow.id to status
    grammar : Grammar

    Notes
    -----
    Rows without a loss (`groundfault.probes.review.statuses.score_row`) are left out. Tasks are
    assumed independent. All rows are used, with nothing held out: the p-values are adjusted
    instead."""
    rows_of_effects = []
    for model, losses in sorted(_average_losses(rows, statuses).items()):
        options = [
            (place, group.name, option.name)
            for place, group in enumerate(grammar.groups)
            if len(group.options) > 1
            for option in group.options
        ]
        by_option = [_compute_differences(losses, place, option) for place, _, option in options]
        # a task without both sides carries no information: 0 has no weight in the sign-flip test
        table = [[differences.get(task, 0.0) for differences in by_option] for task in losses]
        for (_, group, option), differences, p in zip(
            options, by_option, sign_flips(table), strict=True
        ):
            values = list(differences.values())
            mean = fmean(values) if values else None
            rows_of_effects.append(
                ComponentEffect(model, group, option, len(values), mean, student(values), float(p))
            )
    return rows_of_effects


def _average_losses(rows: Iterable[ProbeRow], statuses: Mapping[str, Status]) -> dict[str, Losses]:
    """Average the losses of each prompt over its repeats, by model."""
    losses: dict[tuple[str, str, tuple[str, ...]], list[float]] = {}
    for row in rows:
        loss, _ = score_row(row, statuses)
        if loss is not None:
            losses.setdefault((row.model, row.task, row.assignment), []).append(loss)
    by_model: dict[str, dict[str, dict[tuple[str, ...], float]]] = {}
    for (model, task, assignment), each in losses.items():
        by_model.setdefault(model, {}).setdefault(task, {})[assignment] = fmean(each)
    return dict(by_model)


def _compute_differences(losses: Losses, place: int, option: str) -> dict[str, float]:
    """Compute the difference within each task that has prompts on both sides."""
    by_task = {}
    for task, by_assignment in losses.items():
        # within a task its difficulty cancels; between tasks it would be confounded with options
        on = [loss for assignment, loss in by_assignment.items() if assignment[place] == option]
        off = [loss for assignment, loss in by_assignment.items() if assignment[place] != option]
        if on and off:
            by_task[task] = fmean(on) - fmean(off)
    return by_task
