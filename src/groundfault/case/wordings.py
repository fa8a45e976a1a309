"""What the probe of a case and its review come to."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from groundfault.case.probing import PROBE, RUNS, open_probe
from groundfault.case.settings import ProbeChoice, Step
from groundfault.case.wording_tests import Losses, ReworkedMode, collect_losses, judge_wordings
from groundfault.errors import LedgerError
from groundfault.probes.bank.rendering import probes
from groundfault.probes.review.reviewed_runs import MissedErrors, ReviewedRuns
from groundfault.probes.review.statuses import score_row
from groundfault.probes.running.runs import MANIFEST, REVIEWS

if TYPE_CHECKING:
    from pathlib import Path

    from groundfault.case.case import Case


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
        """Prompts that were asked."""
        return sum(self.answers.values())


class ReviewedWordings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What people decided about the answers, blind.

    Attributes
    ----------
    items, settled : int
        Items of the review, and those of them with a verdict.
    unblinded : int
        Decisions that were made after hidden fields were shown.
    statuses : dict of str to int
        Rows of answers by what was decided.
    controls : MissedErrors
        Errors among answers that matched.
    judged : tuple of ReworkedMode
        By errors of the model that people confirmed; empty until every item is settled.
    """

    items: int
    settled: int
    unblinded: int
    statuses: dict[str, int]
    controls: MissedErrors
    judged: tuple[ReworkedMode, ...]


def locate_runs(case: Case) -> Path:
    """Where the answers are."""
    return case.folder / PROBE / RUNS


def summarize_wordings(case: Case) -> tuple[Wordings | None, ReviewedWordings | None]:
    """What was asked in other words, and what people decided of it; None for what did not begin.

    Parameters
    ----------
    case : Case

    Raises
    ------
    LedgerError, InputError
        If what was recorded was changed.
    """
    choice, report = ProbeChoice.load(case.folder), case.report
    if choice is None or report is None:
        return None, None
    answers = _Answers(case, choice, len(report.modes))
    return answers.summarize(), answers.summarize_review()


class _Answers:
    """The answers to the tasks that a case chose."""

    def __init__(self, case: Case, choice: ProbeChoice, n_modes: int) -> None:
        self.settings, self.choice, self.n_modes = case.settings, choice, n_modes
        self.bank, self.grammar = open_probe(case)
        home = locate_runs(case)
        # answers that are not what the run recorded are refused here
        self.review = ReviewedRuns(home) if (home / MANIFEST).is_file() else None
        runs = None if self.review is None else self.review.runs
        self.rows = [] if runs is None else runs.rows
        if runs and (runs.bank.hash, runs.grammar.hash) != (choice.bank, choice.grammar):
            raise LedgerError(f"{home} holds other tasks or wordings than the case recorded")
        self.models = {row.model for row in self.rows}
        if len(self.models) > 1:
            raise LedgerError(
                f"{home} holds answers of {len(self.models)} models, and a probe asks one"
            )
        self.valid = sum(not probe.errors for probe in probes(self.bank, self.grammar))
        self.is_whole = len({row.key for row in self.rows}) == self.valid

    def summarize(self) -> Wordings:
        losses = collect_losses(self.rows, lambda row: row.score)
        return Wordings(
            modes=self.choice.modes,
            tasks=len(self.bank),
            prompts=self.valid,
            invalid=len(self.bank) * len(self.grammar) - self.valid,
            model=next(iter(self.models), ""),
            answers=dict(sorted(Counter(row.signal for row in self.rows).items())),
            judged=self._judge(losses, "probe") if self.is_whole else (),
        )

    def summarize_review(self) -> ReviewedWordings | None:
        reviewed = self.review
        if reviewed is None or not (reviewed.runs.folder / REVIEWS).exists():
            return None
        queue, statuses, resolutions = reviewed.queue, reviewed.statuses, reviewed.resolutions
        n_settled = sum(id in resolutions and bool(resolutions[id].verdict) for id in queue.by_id)
        losses = collect_losses(self.rows, lambda row: score_row(row, statuses)[0])
        is_reviewed = self.is_whole and n_settled == len(queue.items)
        return ReviewedWordings(
            items=len(queue.items),
            settled=n_settled,
            unblinded=sum(decision.unblinded for decision in reviewed.decisions),
            statuses=dict(sorted(Counter(statuses.values()).items())),
            controls=reviewed.control_errors,
            judged=self._judge(losses, "review") if is_reviewed else (),
        )

    def _judge(self, losses: Losses, step: Step) -> tuple[ReworkedMode, ...]:
        return judge_wordings(
            losses,
            self.bank,
            self.grammar,
            self.choice.modes,
            tests=self.n_modes,
            alpha=self.settings.share_alpha(step),
        )
