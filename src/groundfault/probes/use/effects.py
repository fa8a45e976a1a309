"""Component effects within tasks: each task is its own control, so hard tasks cancel out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.review.statuses import score_row
from groundfault.probes.running.runs import ProbeRow
from groundfault.stats.paired import sign_flips, student

if TYPE_CHECKING:
    from groundfault.probes.review.statuses import Status

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
    """The effect of every option of a group with two or more, by model.

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
    """By model: the mean loss of each prompt over its repeats."""
    by_model: dict[str, dict[str, dict[tuple[str, ...], list[float]]]] = {}
    for row in rows:
        loss, _ = score_row(row, statuses)
        if loss is not None:
            by_model.setdefault(row.model, {}).setdefault(row.task, {}).setdefault(
                row.assignment, []
            ).append(loss)
    return {
        model: {
            task: {a: fmean(losses) for a, losses in by_assignment.items()}
            for task, by_assignment in tasks.items()
        }
        for model, tasks in by_model.items()
    }


def _compute_differences(losses: Losses, place: int, option: str) -> dict[str, float]:
    """The difference within each task that has prompts on both sides."""
    by_task = {}
    for task, by_assignment in losses.items():
        # within a task its difficulty cancels; between tasks it would be confounded with options
        on = [loss for assignment, loss in by_assignment.items() if assignment[place] == option]
        off = [loss for assignment, loss in by_assignment.items() if assignment[place] != option]
        if on and off:
            by_task[task] = fmean(on) - fmean(off)
    return by_task
