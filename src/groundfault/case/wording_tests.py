"""What answers in other words show of a mode: whether it holds there, and what wording does.

Three questions are asked of each mode: do tasks inside fail more often than their twins outside;
which wordings change how often tasks inside fail; and which change it outside. Each is a test of
signs that could as well be flipped: of the two tasks of a pair, or of two wordings of a task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from groundfault.core.plan import to_fraction
from groundfault.stats.paired import sign_flips

if TYPE_CHECKING:
    from groundfault.probes.bank.bank import Bank
    from groundfault.probes.bank.grammar import Assignment, Grammar
    from groundfault.probes.running.runs import ProbeRow

Side = Literal["inside", "outside"]
SIDES: Final[tuple[Side, Side]] = ("inside", "outside")
"""Of the two tasks of a pair, in order."""
Losses = Mapping[str, Mapping["Assignment", float]]
"""The loss of each task in each wording that could be scored."""
QUESTIONS: Final = 3
"""Tests of each mode, each of them adjusted for all that it compares: whether it holds in other
words, what wording does inside, and what it does outside."""


class WordingEffect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an option of the wording does to one side of a mode, within each task.

    Attributes
    ----------
    side : {"inside", "outside"}
    group, option, plain : str
        The option, and the plain one that it is compared with, in all wordings of the rest.
    tasks : int
        Tasks that were scored under both.
    difference : float
        Mean failure rate under the option minus under the plain one.
    p : float
        Two-sided, adjusted for everything that the step compares.
    differs : bool
        Whether p is at most the level of the step.
    """

    side: Side
    group: str
    option: str
    plain: str
    tasks: int
    difference: float
    p: float
    differs: bool


class ReworkedMode(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mode in other words.

    Attributes
    ----------
    number : int
        In the audit's report, from 1.
    pairs : int
        Pairs with both tasks scored.
    rate, rate_outside : float
        Mean failure rates over wordings of the tasks inside, and of their twins outside.
    p : float
        Against tasks of a pair that could be swapped; two-sided, adjusted for everything that the
        step compares.
    holds : bool
        Whether p is at most the level of the step, and tasks inside fail more often.
    effects : tuple of WordingEffect
    """

    number: int
    pairs: int
    rate: float
    rate_outside: float
    p: float
    holds: bool
    effects: tuple[WordingEffect, ...]


def judge_wordings(
    losses: Losses, bank: Bank, grammar: Grammar, modes: Sequence[int], *, tests: int, alpha: str
) -> tuple[ReworkedMode, ...]:
    """Judge each mode by the losses of its tasks.

    Parameters
    ----------
    losses : mapping of task id to assignment to float
        Scored answers; a task or wording without is left out.
    bank : Bank
        Tasks in pairs, inside and outside in turn; the family says of which mode.
    grammar : Grammar
    modes : sequence of int
    tests : int
        How many modes could have been asked about. Who chose among them may have seen anything but
        these answers.
    alpha : str
        The level of the step, an exact number.

    Notes
    -----
    P(any ``holds`` or ``differs`` is false) <= alpha, if tasks of a pair are exchangeable where a
    mode has nothing to do with failing, and if wordings are where wording does nothing: Bonferroni
    over questions and modes, step-down max-T over the options within a question.
    """
    level, factor = float(to_fraction(alpha)), QUESTIONS * tests
    judged = []
    for number in modes:
        sides: dict[Side, list[str]] = {
            side: [task.id for task in bank if task.family == name_family(number, side)]
            for side in SIDES
        }
        pairs = [
            (fmean(losses[one].values()), fmean(losses[two].values()))
            for one, two in zip(sides["inside"], sides["outside"], strict=True)
            if losses.get(one) and losses.get(two)
        ]
        rate, rate_outside = (fmean(pair[k] for pair in pairs) if pairs else 0.0 for k in (0, 1))
        raw = float(sign_flips([[one - two] for one, two in pairs])[0]) if pairs else 1.0
        p = min(1.0, factor * raw)
        effects = (
            effect
            for side, tasks in sides.items()
            for effect in _compare_options(losses, grammar, side, tasks, factor, level)
        )
        judged.append(
            ReworkedMode(
                number=number,
                pairs=len(pairs),
                rate=rate,
                rate_outside=rate_outside,
                p=p,
                holds=p <= level and rate > rate_outside,
                effects=tuple(effects),
            )
        )
    return tuple(judged)


def name_family(number: int, side: Side) -> str:
    """The family of the tasks on one side of a mode."""
    return f"mode {number} {side}"


def collect_losses(
    rows: Sequence[ProbeRow], score: Callable[[ProbeRow], float | None]
) -> dict[str, dict[Assignment, float]]:
    """The loss of each task and wording that has one."""
    losses: dict[str, dict[Assignment, float]] = defaultdict(dict)
    for row in rows:
        loss = score(row)
        if loss is not None:
            losses[row.task][row.assignment] = loss
    return losses


def _compare_options(
    losses: Losses, grammar: Grammar, side: Side, tasks: Sequence[str], factor: int, level: float
) -> Iterator[WordingEffect]:
    """Each option against the plain one of its group, within the tasks of one side."""
    names, table = [], []
    for place, group in enumerate(grammar.groups):
        plain = group.options[0].name
        for option in group.options[1:]:
            names.append((group.name, option.name, plain))
            table.append(
                [_contrast(losses.get(task, {}), place, option.name, plain) for task in tasks]
            )
    if not names:
        return
    # a task without both sides carries no information: 0 has no weight in the test
    columns = [[0.0 if d is None else d for d in column] for column in table]
    ps = sign_flips(list(zip(*columns, strict=True)))
    for (group_name, option_name, plain), column, raw in zip(names, table, ps, strict=True):
        differences = [d for d in column if d is not None]
        p = min(1.0, factor * float(raw))
        yield WordingEffect(
            side=side,
            group=group_name,
            option=option_name,
            plain=plain,
            tasks=len(differences),
            difference=fmean(differences) if differences else 0.0,
            p=p,
            differs=p <= level,
        )


def _contrast(
    losses: Mapping[Assignment, float], place: int, option: str, plain: str
) -> float | None:
    """Mean over the wordings of the rest that were scored under both options."""
    differences = [
        loss - losses[twin]
        for assignment, loss in losses.items()
        if assignment[place] == option
        and (twin := (*assignment[:place], plain, *assignment[place + 1 :])) in losses
    ]
    return fmean(differences) if differences else None
