"""The results of a case's probe and of its review."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

from groundfault.case.probing import PROBE, QUESTIONS, RUNS, SIDES, Side, name_family, open_probe
from groundfault.case.settings import ProbeChoice, Step
from groundfault.core.plan import to_fraction
from groundfault.errors import LedgerError
from groundfault.probes.bank.rendering import probes
from groundfault.probes.review.reviewed_runs import MissedErrors, ReviewedRuns
from groundfault.probes.review.statuses import score_row
from groundfault.probes.running.runs import MANIFEST, REVIEWS
from groundfault.stats.paired import sign_flips

if TYPE_CHECKING:
    from pathlib import Path

    from groundfault.case.folder import CaseFolder
    from groundfault.probes.bank.bank import Bank
    from groundfault.probes.bank.grammar import Assignment, Grammar
    from groundfault.probes.running.runs import ProbeRow

Losses = Mapping[str, Mapping["Assignment", float]]
"""The loss of each task in each wording that could be scored."""


class WordingEffect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effect of an option of the wording on one side of a mode, within each task.

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
        one = ReworkedMode(
            number=number,
            pairs=len(pairs),
            rate=rate,
            rate_outside=rate_outside,
            p=p,
            holds=p <= level and rate > rate_outside,
            effects=tuple(effects),
        )
        judged.append(one)
    return tuple(judged)


def collect_losses(
    rows: Sequence[ProbeRow], score: Callable[[ProbeRow], float | None]
) -> dict[str, dict[Assignment, float]]:
    """Return the loss of each task and wording that has one."""
    losses: dict[str, dict[Assignment, float]] = defaultdict(dict)
    for row in rows:
        loss = score(row)
        if loss is not None:
            losses[row.task][row.assignment] = loss
    return losses


def _compare_options(
    losses: Losses, grammar: Grammar, side: Side, tasks: Sequence[str], factor: int, level: float
) -> Iterator[WordingEffect]:
    """Yield each option against the plain one of its group, within the tasks of one side."""
    names, table = [], []
    for place, group in enumerate(grammar.groups):
        plain = group.options[0].name
        for option in group.options[1:]:
            names.append({"group": group.name, "option": option.name, "plain": plain})
            contrast = partial(_contrast, place=place, option=option.name, plain=plain)
            table.append([contrast(losses.get(task, {})) for task in tasks])
    if not names:
        return
    # a task without both sides carries no information: 0 has no weight in the test
    columns = [[0.0 if d is None else d for d in column] for column in table]
    ps = sign_flips(list(zip(*columns, strict=True)))
    for name, column, raw in zip(names, table, ps, strict=True):
        differences = [d for d in column if d is not None]
        mean, p = fmean(differences or [0.0]), min(1.0, factor * float(raw))
        yield WordingEffect(
            side=side, tasks=len(differences), difference=mean, p=p, differs=p <= level, **name
        )


def _contrast(
    losses: Mapping[Assignment, float], place: int, option: str, plain: str
) -> float | None:
    """Return the mean over the wordings of the rest that were scored under both options."""
    differences = [
        loss - losses[twin]
        for assignment, loss in losses.items()
        if assignment[place] == option
        and (twin := (*assignment[:place], plain, *assignment[place + 1 :])) in losses
    ]
    return fmean(differences) if differences else None


class Wordings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answers to tasks of modes in other words.

    Attributes
    ----------
    modes : tuple of int
        The modes that were asked about.
    tasks, prompts, invalid : int
        Tasks, prompts to ask, and prompts that may not be asked and were left out.
    model : str
        Empty before the first answer.
    answers : dict of str to int
        Answers by signal: match, mismatch, unreadable, unanswered.
    judged : tuple of ReworkedMode
        By answers that do not match the key; empty until all prompts are answered.
    """

    modes: tuple[int, ...]
    tasks: int
    prompts: int
    invalid: int
    model: str
    answers: dict[str, int]
    judged: tuple[ReworkedMode, ...]

    @property
    def asked(self) -> int:
        """Return prompts that were asked."""
        return sum(self.answers.values())


class ReviewedWordings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Blind decisions of people about the answers.

    Attributes
    ----------
    items, settled : int
        Items of the review, and items with a verdict.
    unblinded : int
        Decisions that were made after hidden fields were shown.
    statuses : dict of str to int
        Rows of answers by decision.
    controls : MissedErrors
        Errors among answers that matched.
    judged : tuple of ReworkedMode
        By failures of the model that people confirmed; empty until every item is settled.
    """

    items: int
    settled: int
    unblinded: int
    statuses: dict[str, int]
    controls: MissedErrors
    judged: tuple[ReworkedMode, ...]


def locate_runs(case: CaseFolder) -> Path:
    """Return the folder of the answers."""
    return case.folder / PROBE / RUNS


def summarize_wordings(case: CaseFolder) -> tuple[Wordings | None, ReviewedWordings | None]:
    """Summarize answers in other words and their review; None for a step that did not begin.

    Parameters
    ----------
    case : CaseFolder

    Raises
    ------
    LedgerError, InputError
        If the record was changed.
    """
    choice, report = ProbeChoice.find(case.folder), case.report
    if choice is None or report is None:
        return None, None
    bank, grammar = open_probe(case)
    reviewed, rows = _read_answers(locate_runs(case), choice)
    valid = sum(not probe.errors for probe in probes(bank, grammar))
    is_whole = len({row.key for row in rows}) == valid
    modes = choice.modes

    def judge(losses: Losses, step: Step) -> tuple[ReworkedMode, ...]:
        alpha = case.settings.share_alpha(step)
        return judge_wordings(losses, bank, grammar, modes, tests=len(report.modes), alpha=alpha)

    wordings = Wordings(
        modes=modes,
        tasks=len(bank),
        prompts=valid,
        invalid=len(bank) * len(grammar) - valid,
        model=rows[0].model if rows else "",
        answers=dict(sorted(Counter(row.signal for row in rows).items())),
        judged=judge(collect_losses(rows, lambda row: row.score), "probe") if is_whole else (),
    )
    if reviewed is None or not (reviewed.runs.folder / REVIEWS).exists():
        return wordings, None
    queue, statuses, resolutions = reviewed.queue, reviewed.statuses, reviewed.resolutions
    n_settled = sum(id in resolutions and bool(resolutions[id].verdict) for id in queue.by_id)
    losses = collect_losses(rows, lambda row: score_row(row, statuses)[0])
    is_reviewed = is_whole and n_settled == len(queue.items)
    return wordings, ReviewedWordings(
        items=len(queue.items),
        settled=n_settled,
        unblinded=sum(decision.unblinded for decision in reviewed.decisions),
        statuses=dict(sorted(Counter(statuses.values()).items())),
        controls=reviewed.control_errors,
        judged=judge(losses, "review") if is_reviewed else (),
    )


def _read_answers(
    home: Path, choice: ProbeChoice
) -> tuple[ReviewedRuns | None, Sequence[ProbeRow]]:
    """Return the answers to the tasks that a case chose, and their review; empty before a run."""
    if not (home / MANIFEST).is_file():
        return None, ()
    # answers that are not what the run recorded are refused here
    reviewed = ReviewedRuns(home)
    runs = reviewed.runs
    if (runs.bank.hash, runs.grammar.hash) != (choice.bank, choice.grammar):
        raise LedgerError(f"{home} holds other tasks or wordings than the case recorded")
    models = {row.model for row in runs.rows}
    if len(models) > 1:
        raise LedgerError(f"{home} holds answers of {len(models)} models, and a probe asks one")
    return reviewed, runs.rows
