"""Verification of a case: its files agree with its records, and its pages with its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from groundfault.auditing.verification import verify
from groundfault.auditing.verification_checks import (
    Verification,
    VerificationCheck,
    check_pages,
    make_result_pages,
)
from groundfault.base.holdout_events import Event
from groundfault.base.ledger import Ledger
from groundfault.case.case import CONFIRM, REPORT, SUMMARY, Case
from groundfault.case.folder import AUDIT, LEDGER, SEALED
from groundfault.case.parts import hide_outcomes
from groundfault.case.probing import PLANNED, make_bank, open_probe
from groundfault.case.settings import CHOICE, PROBE_CHOICE, ProbeChoice
from groundfault.case.wordings import summarize_wordings
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.sequential.confirmation import ASKED
from groundfault.sequential.verification import CONFIRMATION

_AGAIN = "write them again with groundfault case report"
_Step = Callable[[Case], str | Iterable[VerificationCheck] | None]
"""A step says what holds, or gives its checks; None where there is nothing to check."""


def verify_case(folder: str | Path) -> Verification:
    """Check every statement of a case: its rows, ledger, audit, labels and pages.

    The audit is computed again from its rows, and the confirmation from the labels in the ledger.

    Parameters
    ----------
    folder : path

    Returns
    -------
    Verification
        With the checks ``case`` and ``evidence``, those of the audit, and ``choice``,
        ``confirmation``, ``probe`` and ``report`` where there are such files.

    Raises
    ------
    InputError
        If there is no case in the folder.
    """
    case = Case(folder)
    checks: list[VerificationCheck] = []
    # what follows from rows or a record that were altered, would only repeat that
    for steps in _STEPS:
        if all(check.status == "passed" for check in checks):
            checks += [check for name, step in steps.items() for check in _try(name, step, case)]
    return Verification(tuple(checks))


def _try(name: str, step: _Step, case: Case) -> list[VerificationCheck]:
    """Make the checks of a step; one that raises, or cannot be made, has failed."""
    try:
        result = step(case)
        if isinstance(result, str):
            return [VerificationCheck(name, "passed", result)]
        return list(result or ())
    except (LedgerError, InputError, PlanError) as error:
        return [VerificationCheck(name, "failed", str(error))]


def _check_seal(case: Case) -> str:
    place = case.folder / LEDGER
    events = Ledger(place).events() if place.exists() else []
    # a file without events is one that a full disk kept from its first
    if not events and case.report is None:
        return "nothing was looked at yet"
    if not events:
        raise LedgerError(f"{LEDGER} is missing")
    Ledger(place).check()
    seals = [event.body.get("case") for event in events if event.kind == SEALED]
    # the first event: what was decided, was decided before any look
    if seals != [case.settings.seal] or events[0].kind != SEALED:
        raise LedgerError(
            "case.json was changed: the ledger recorded other decisions before the first look"
        )
    return "the ledger is unbroken, and begins with what case.json says was decided"


def _check_rows(case: Case) -> Iterator[VerificationCheck]:
    settings, places = case.settings, case.folder / "evidence"
    fresh = case.read_part("fresh").hash
    stated = {"audit": settings.audit, "fresh": settings.fresh}
    hashes = {"audit": case.read_part("audit").hash, "fresh": fresh}
    if settings.answers is not None:
        answers = case.read_part("answers")
        stated["answers"], hashes["answers"] = settings.answers, answers.hash
        if hide_outcomes(answers).hash != fresh:
            raise InputError("the answers are not of the fresh rows")
    differences = tuple(
        f"{places / name}: {stated[name]:.12}, {hashes[name]:.12}"
        for name in stated
        if stated[name] != hashes[name]
    )
    state = partial(VerificationCheck, "evidence")
    if differences:
        yield state("failed", "the rows are not those that the case was begun with", differences)
    else:
        yield state("passed", "the rows are those that the case began with")


def _check_choice(case: Case) -> str | None:
    if case.choice is not None:
        return "labels are bought for modes of the audit"
    if _list_events(case, ASKED):
        raise LedgerError(
            f"{CHOICE} is missing, and the ledger holds labels of the modes that it named"
        )
    return None


def _check_audit(case: Case) -> Iterator[VerificationCheck]:
    if case.report is None:
        return
    place, rows = case.folder / AUDIT, case.folder / "evidence" / "audit"
    for check in verify(place, evidence=(rows,), ledger=case.folder / LEDGER).checks:
        yield replace(check, name=f"audit {check.name}")


def _check_probe(case: Case) -> str | None:
    choice = ProbeChoice.find(case.folder)
    if choice is None:
        if _list_events(case, PLANNED):
            raise LedgerError(f"{PROBE_CHOICE} is missing, although the ledger recorded a probe")
        return None
    open_probe(case)
    bank = make_bank(case, choice.modes, choice.pairs, choice.question, choice.target)
    summarize_wordings(case)
    if bank.hash != choice.bank:
        raise LedgerError("the tasks are not those that the seed draws from the fresh rows")
    return "tasks, wordings, answers and reviews are as they were recorded"


def _check_labels(case: Case) -> Iterator[VerificationCheck]:
    labels = case.replay_confirmation()
    if labels is not None and (case.folder / CONFIRM).is_dir():
        pages = make_result_pages(CONFIRMATION, labels)
        yield _compare(case.folder / CONFIRM, pages, "confirmation")


def _check_report(case: Case) -> Iterator[VerificationCheck]:
    if (case.folder / REPORT).is_dir():
        summary = case.summarize()
        yield _compare(case.folder / REPORT, make_result_pages(SUMMARY, summary), "report")


_STEPS: tuple[dict[str, _Step], ...] = (
    {"case": _check_seal, "evidence": _check_rows},
    {"choice": _check_choice},
    {
        "audit": _check_audit,
        "probe": _check_probe,
        "confirmation": _check_labels,
        "report": _check_report,
    },
)
"""Steps by their names; each group is checked where all before it passed."""


def _list_events(case: Case, kind: str) -> list[Event]:
    return case.ledger.events(kind) if (case.folder / LEDGER).exists() else []


def _compare(place: Path, pages: dict[str, str], name: str) -> VerificationCheck:
    check = check_pages(place, pages, attested=False, source="the audit and the ledger")
    if check.status != "failed":
        return replace(check, name=name)
    detail = f"{place.name}/ does not say what audit and ledger say; {_AGAIN}"
    return replace(check, name=name, detail=detail)
