"""The result of a case: its findings, their fresh labels, and the limits of its search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from groundfault.auditing.messages import describe_unused
from groundfault.case.labelling import replay_confirmation
from groundfault.case.parts import group_modes
from groundfault.case.settings import CaseSettings, ModeChoice, name_mode
from groundfault.case.wordings import ReviewedWordings, Wordings, summarize_wordings
from groundfault.sequential.stored_result import StoredResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from groundfault.auditing.report import Report
    from groundfault.case.folder import CaseFolder
    from groundfault.sequential.stored_result import Confirmation

Standing = Literal["confirmed", "open", "too few fresh rows", "not chosen"]


class LabelledMode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mode of the audit, and its result on labels of fresh rows.

    Attributes
    ----------
    number : int
        In the audit's report, from 1.
    outcome : str
        The model whose answers it is about; empty where there is one alone, ``every model`` for
        the mean over all.
    rule, meaning : str
    n : int
        Units inside, in the audit.
    rate, rate_outside : float
        Failure rates in the audit: selected, so too far apart on average.
    context : str
        The condition that the units outside satisfy; empty where they are all others.
    p : float
        Against equal rates, adjusted for every rule that could have been said.
    fresh_inside : int
        Fresh units inside.
    standing : {"confirmed", "open", "too few fresh rows", "not chosen"}
    lift : float, optional
        Failure rate of labelled fresh units inside minus outside.
    labelled_inside, labelled_outside : int
    e_value : float, optional
    """

    number: int
    outcome: str = ""
    rule: str
    meaning: str
    n: int
    rate: float
    rate_outside: float
    context: str
    p: float
    fresh_inside: int
    standing: Standing
    lift: float | None = None
    labelled_inside: int = 0
    labelled_outside: int = 0
    e_value: float | None = None


class CaseSummary(StoredResult, frozen=True, kw_only=True):
    """All that the page of a case says.

    Attributes
    ----------
    version : int
        Of the layout; stored as ``groundfault_case_report``.
    settings : CaseSettings
    audited : bool
        Whether there was an audit.
    error_rate : float, optional
        Of the audited units.
    modes : tuple of LabelledMode
    rules : int
        How many rules the audit could have said.
    chosen : bool
        Whether modes were chosen to be confirmed.
    budget : int, optional
        The largest number of labels.
    labelled : int
        Labels that were bought.
    remarks : tuple of str
        Columns that the audit left out of its search.
    wordings : Wordings, optional
        Results of the modes' tasks in other words; None before a probe was begun.
    review : ReviewedWordings, optional
        Decisions of people about these answers; None before a review was begun.
    """

    KEY = "groundfault_case_report"
    LAYOUT = 1
    NOUN = TITLE = "a report of a case"

    version: int = msgspec.field(name="groundfault_case_report", default=1)
    settings: CaseSettings
    audited: bool
    error_rate: float | None
    modes: tuple[LabelledMode, ...]
    rules: int
    chosen: bool
    budget: int | None
    labelled: int
    remarks: tuple[str, ...]
    wordings: Wordings | None
    review: ReviewedWordings | None

    @property
    def confirmed(self) -> tuple[LabelledMode, ...]:
        """Return the modes that fresh labels confirmed."""
        return tuple(mode for mode in self.modes if mode.standing == "confirmed")


def summarize_case(case: CaseFolder) -> CaseSummary:
    """Combine the files that the steps of a case wrote."""
    report, choice, labels = case.report, case.choice, replay_confirmation(case)
    wordings, review = summarize_wordings(case)
    search = None if report is None else report.mode_search
    return CaseSummary(
        settings=case.settings,
        audited=report is not None,
        error_rate=None if report is None else report.error_rate,
        modes=tuple(_list_modes(case, report, choice, labels)),
        rules=0 if search is None else search.rules,
        chosen=choice is not None,
        budget=None if choice is None else choice.budget,
        labelled=0 if labels is None else labels.labelled,
        remarks=()
        if report is None or search is None
        else (*describe_unused(report.unused), *search.remarks),
        wordings=wordings,
        review=review,
    )


def _list_modes(
    case: CaseFolder, report: Report | None, choice: ModeChoice | None, labels: Confirmation | None
) -> Iterator[LabelledMode]:
    """Yield the modes of the audit with their results on fresh labels."""
    states = {state.name: state for state in labels.survivors} if labels else {}
    inside: dict[int, int] = {}
    for numbers in group_modes(report).values():
        counts = case.mark_fresh_units(numbers).sum(axis=1)
        inside |= dict(zip(numbers, counts.tolist(), strict=True))
    for number, mode in enumerate(report.modes if report else (), 1):
        state = states.get(name_mode(number))
        standing: Standing = "not chosen"
        if choice is not None and number in choice.modes:
            standing = "open" if state is not None else "too few fresh rows"
        if state is not None and state.confirmed:
            standing = "confirmed"
        yield LabelledMode(
            number=number,
            outcome=mode.outcome,
            rule=mode.rule,
            meaning=mode.meaning,
            n=mode.n,
            rate=mode.rate,
            rate_outside=mode.rate_outside,
            context=mode.context,
            p=mode.p_marginal,
            fresh_inside=inside[number],
            standing=standing,
            lift=None if state is None else state.lift,
            labelled_inside=0 if state is None else state.on,
            labelled_outside=0 if state is None else state.off,
            e_value=None if state is None else state.e_value,
        )
