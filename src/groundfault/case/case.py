"""Case: a folder with one ledger, one evidence, and steps that hand over to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from groundfault.auditing.flow import audit
from groundfault.auditing.report import Report
from groundfault.auditing.verification_checks import make_result_pages
from groundfault.base.files import replace_folder, write_text
from groundfault.base.long_work import Progress
from groundfault.case.folder import AUDIT, CaseFolder
from groundfault.case.labelling import CaseConfirmation, make_confirmation, replay_confirmation
from groundfault.case.parts import Answer, find_losses, name_answer, write_case
from groundfault.case.probing import PROBE, begin_probe, open_probe
from groundfault.case.settings import ModeChoice, name_mode
from groundfault.case.summary import CaseSummary, summarize_case
from groundfault.case.wordings import locate_runs, summarize_wordings
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Number
from groundfault.errors import PlanError
from groundfault.models import Target
from groundfault.models.target import get
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.probes.running.run import run
from groundfault.probes.running.runs import Runs
from groundfault.sequential.policies import Query
from groundfault.sequential.stored_result import Confirmation
from groundfault.sequential.verification import CONFIRMATION

CONFIRM, REPORT = "confirm", "report"
SUMMARY = "case-report.json"


class Case(CaseFolder):
    """One investigation, from the first table to the last label, as a folder.

    ``case.json`` holds the decisions, ``evidence/`` the rows in two parts, ``ledger.db`` every look
    and every label, ``audit/`` the failure modes, ``confirm.json`` and ``confirm/`` their fresh
    labels, ``probe.json`` and ``probe/`` the prompts in other words and their review, and
    ``report/`` the page on the whole case. No file in it names a place outside.

    Parameters
    ----------
    folder : path
        That `create` made, here or on another machine.

    Attributes
    ----------
    settings : CaseSettings

    Raises
    ------
    InputError
        If the folder holds no case, or its rows differ from the rows at its beginning.

    Notes
    -----
    Every step that states something has a share of the level alpha (`SHARES`), and by the union
    bound the chance of any false statement in the case is at most alpha. The audit says of each
    mode that rows inside fail more often than rows outside, and errs at most at its share when rows
    are independent. The confirmation says the same of the fresh rows, whose outcomes the audit was
    not given, whichever modes were chosen and whenever one stops, when the outcomes of the fresh
    rows are exchangeable given the modes. Probe and review say of tasks among the fresh rows
    whether a mode holds in other words and what wording does; see `judge_wordings`.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> table = pl.DataFrame(
    ...     {
    ...         "item": [f"{i:03}" for i in range(400)],
    ...         "lang": ["de", "en", "fr", "it"] * 100,
    ...         "error": ([1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0] * 34)[:400],
    ...     }
    ... )
    >>> evidence = Evidence.from_table(table, outcome="error", id="item")
    >>> folder = tempfile.TemporaryDirectory()
    >>> case = Case.create(folder.name, evidence)
    >>> [mode.rule for mode in case.audit().modes]
    ['"lang" = \\'de\\'']
    >>> case.confirm().run(case.look_up)
    ('mode 1',)
    >>> folder.cleanup()
    """

    @classmethod
    def create(
        cls,
        folder: str | Path,
        evidence: Evidence,
        *,
        alpha: Number = "0.10",
        keep: Number | None = None,
        seed: int = 0,
        grader: str | None = None,
    ) -> Case:
        """Begin a case in a new folder, which appears whole or not at all.

        Parameters
        ----------
        folder : path
            Absent, or empty.
        evidence : Evidence
            One row for each example and model. Rows without an outcome are what can be labelled;
            where there are none, a share of the units is kept apart.
        alpha : number
            Error level of the whole case, which its steps share.
        keep : number, optional
            Share of the units that the audit does not look at, so that they can be labelled;
            default 0.5, or the units without an outcome where there are some.
        seed : int
            Seed of every random draw.
        grader : str, optional
            Column with a cheap grade of every row, as the outcome column would hold it: no rule
            names it, and it saves labels.

        Raises
        ------
        InputError, PlanError
            If the folder is in use, or the rows cannot be divided; see `divide`.
        """
        write_case(Path(folder), evidence, alpha=alpha, keep=keep, seed=seed, grader=grader)
        return cls(folder)

    # ----------------------------------------------------------------------------------- the steps

    def audit(self, *, texts: bool = True, progress: Progress | None = None) -> Report:
        """Name the failure modes of the rows that the audit looks at, and write audit/.

        Parameters
        ----------
        texts : bool
            Whether the report shows the texts of examples.
        progress : callable, optional
            Called with a message before each step.

        Returns
        -------
        Report
            The same each time: the audit again is a replay.

        Raises
        ------
        PlanError
            If modes of the case were already chosen for confirmation.
        """
        if self.report is not None and self.choice is not None:
            raise PlanError(
                "labels are bought for modes of this audit, so it stands as it is; to see it: "
                f"groundfault open {self.folder / AUDIT}"
            )
        report = audit(
            self.audit_evidence,
            self.settings.audit_plan,
            ledger=self.ledger,
            texts=texts,
            progress=progress,
        )
        report.write(self.folder / AUDIT)
        return report

    def confirm(
        self, modes: Sequence[int] | None = None, budget: int | None = None
    ) -> CaseConfirmation:
        """Begin to label fresh rows for chosen modes, or go on where labelling stopped.

        Parameters
        ----------
        modes : sequence of int, optional
            Numbers of the modes, from 1, in the order of the audit's report; all where left out.
        budget : int, optional
            The largest number of labels to buy.

        Returns
        -------
        CaseConfirmation
            Its modes are called ``mode 1``, ``mode 2``, ...; `look_up` labels from the table.

        Raises
        ------
        PlanError
            If there was no audit, it found no mode, or other modes or another budget were chosen
            before: a case has one confirmation.
        """
        ledger = self.ledger
        return make_confirmation(self, self._choose(modes, budget), ledger)

    def _choose(self, modes: Sequence[int] | None, budget: int | None) -> ModeChoice:
        earlier, report = self.choice, self.report
        if earlier is not None:
            same_modes = modes is None or tuple(modes) == earlier.modes
            if not same_modes or budget not in (None, earlier.budget):
                raise PlanError(
                    "a case has one confirmation, and this one is of "
                    f"{_describe(earlier)}: go on with it, or begin another case"
                )
            return earlier
        numbers = self.check_modes(modes)
        rules = tuple(report.modes[k - 1].rule for k in numbers) if report else ()
        choice = ModeChoice(modes=numbers, rules=rules, budget=budget)
        # before the first label: a rule or a budget that is chosen after it would be no plan
        make_confirmation(self, choice, None)
        choice.write(self.folder)
        return choice

    def look_up(self, query: Query) -> float | None:
        """Return the score that the table had of a fresh row that was kept apart; answers a query.

        Raises
        ------
        PlanError
            If the table had no outcome of the fresh rows.
        """
        return self._kept_scores[name_answer(query, self.fresh_evidence.roles.model)]

    def require_answers(self) -> None:
        """Raise `PlanError` where the table had no outcome of the fresh rows."""
        if self.settings.answers is None:
            raise PlanError(
                "the fresh rows have no outcome to look up: label them yourself (--label ask) or "
                "by a program (--label cmd)"
            )

    @cached_property
    def _kept_scores(self) -> dict[Answer, float | None]:
        self.require_answers()
        losses = find_losses(self._read("answers", self.settings.answers or ""))
        return {answer: None if loss is None else 1.0 - loss for answer, loss in losses.items()}

    replay_confirmation = replay_confirmation
    probe = begin_probe

    def ask(self, target: Target | str, *, progress: Progress | None = None) -> Runs:
        """Ask a model every prompt of the probe, or go on where that was interrupted.

        Parameters
        ----------
        target : Target or str
            The model that the case is of, as `groundfault.models.get` knows it.
        progress : callable, optional
            Called with a line of text.

        Raises
        ------
        PlanError, InputError, LedgerError
            If no probe was begun, it was changed, another model answered before, or as for
            `groundfault.probes.run`.
        """
        open_probe(self)
        target = get(target)
        wordings, _ = summarize_wordings(self)
        if wordings is not None and wordings.model not in ("", target.name):
            raise PlanError(
                f"a probe asks one model, and {wordings.model} answered before, not {target.name}"
            )
        config = self.folder / PROBE / "config.toml"
        return run(config, target, out=locate_runs(self), progress=progress)

    @property
    def review(self) -> ReviewedRuns:
        """Return the blind review of the answers.

        Raises
        ------
        InputError
            If no prompt was asked yet.
        """
        return ReviewedRuns(locate_runs(self))

    # --------------------------------------------------------------------------------- what it says

    summarize = summarize_case

    def write_confirmation(self) -> Confirmation | None:
        """Write confirm/: the result of the labels so far, as JSON and pages."""
        result = self.replay_confirmation()
        if result is not None:
            self._write_pages(CONFIRM, make_result_pages(CONFIRMATION, result))
        return result

    def write_report(self) -> CaseSummary:
        """Write report/: one page of the whole case, as HTML, Markdown and JSON."""
        summary = self.summarize()
        self._write_pages(REPORT, make_result_pages(SUMMARY, summary))
        return summary

    def _write_pages(self, folder: str, pages: Mapping[str, str]) -> None:
        with replace_folder(self.folder / folder) as place:
            for name, text in pages.items():
                write_text(place / name, text)


def _describe(choice: ModeChoice) -> str:
    names = ", ".join(map(name_mode, choice.modes))
    return f"{names} with " + (
        "no limit of labels" if choice.budget is None else f"at most {choice.budget} labels"
    )
