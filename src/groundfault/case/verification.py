"""Whether a case is as it was begun and recorded, and its pages say what follows from that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from groundfault.auditing.page_check import check_pages, make_result_pages
from groundfault.auditing.verification import verify
from groundfault.auditing.verification_result import Verification, VerificationCheck
from groundfault.base.ledger import Event, Ledger
from groundfault.case.case import AUDIT, CONFIRM, LEDGER, REPORT, SEALED, SUMMARY, Case
from groundfault.case.parts import hide_outcomes
from groundfault.case.probing import PLANNED, make_bank, open_probe
from groundfault.case.settings import CHOICE, PROBE_CHOICE, ProbeChoice
from groundfault.case.wordings import summarize_wordings
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.sequential.confirmation import ASKED
from groundfault.sequential.verification import CONFIRMATION

_AGAIN = "write them again with groundfault case report"


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
    checks = [_check_seal(case), _check_rows(case)]
    # what follows from rows or a record that were altered, would only repeat that
    for steps in ((_check_choice,), (_check_audit, _check_probe, _check_later_pages)):
        if all(check.status == "passed" for check in checks):
            checks += [check for step in steps for check in step(case)]
    return Verification(tuple(checks))


def _check_seal(case: Case) -> VerificationCheck:
    place = case.folder / LEDGER
    if not place.exists():
        if case.report is None:
            return VerificationCheck("case", "passed", "nothing was looked at yet")
        return VerificationCheck("case", "failed", f"{LEDGER} is missing")
    book = Ledger(place)
    try:
        book.check()
        events = book.events()
    except (LedgerError, InputError) as error:
        return VerificationCheck("case", "failed", str(error))
    seals = [event.body.get("case") for event in events if event.kind == SEALED]
    # the first event: what was decided, was decided before any look
    if seals != [case.settings.seal] or events[0].kind != SEALED:
        detail = "case.json is not what the ledger says was decided before the first look"
        return VerificationCheck("case", "failed", detail)
    detail = "the ledger is unbroken, and begins with what case.json says was decided"
    return VerificationCheck("case", "passed", detail)


def _check_rows(case: Case) -> VerificationCheck:
    settings, places = case.settings, case.folder / "evidence"
    try:
        fresh = case.read_part("fresh").hash
        stated = {"audit": settings.audit, "fresh": settings.fresh}
        hashes = {"audit": case.read_part("audit").hash, "fresh": fresh}
        if settings.answers is not None:
            answers = case.read_part("answers")
            stated["answers"], hashes["answers"] = settings.answers, answers.hash
            if hide_outcomes(answers).hash != fresh:
                detail = "the answers are not of the fresh rows"
                return VerificationCheck("evidence", "failed", detail)
    except InputError as error:
        return VerificationCheck("evidence", "failed", str(error))
    differences = tuple(
        f"{places / name}: {stated[name]:.12}, {hashes[name]:.12}"
        for name in stated
        if stated[name] != hashes[name]
    )
    if differences:
        detail = "the rows are not those that the case was begun with"
        return VerificationCheck("evidence", "failed", detail, differences)
    return VerificationCheck("evidence", "passed", "the rows are those that the case began with")


def _check_choice(case: Case) -> Iterator[VerificationCheck]:
    try:
        choice = case.choice
    except InputError as error:
        yield VerificationCheck("choice", "failed", str(error))
        return
    if choice is not None:
        yield VerificationCheck("choice", "passed", "labels are bought for modes of the audit")
    elif _list_events(case, ASKED):
        detail = f"{CHOICE} is missing, and the ledger holds labels of the modes that it named"
        yield VerificationCheck("choice", "failed", detail)


def _check_audit(case: Case) -> Iterator[VerificationCheck]:
    if case.report is None:
        return
    place, rows = case.folder / AUDIT, case.folder / "evidence" / "audit"
    for check in verify(place, evidence=(rows,), ledger=case.folder / LEDGER).checks:
        yield replace(check, name=f"audit {check.name}")


def _check_probe(case: Case) -> Iterator[VerificationCheck]:
    try:
        choice = ProbeChoice.load(case.folder)
        if choice is None:
            if _list_events(case, PLANNED):
                detail = f"{PROBE_CHOICE} is missing, and the ledger holds what it decided"
                yield VerificationCheck("probe", "failed", detail)
            return
        open_probe(case)
        bank = make_bank(case, choice.modes, choice.pairs, choice.question, choice.target)
        summarize_wordings(case)
    except (LedgerError, InputError, PlanError) as error:
        yield VerificationCheck("probe", "failed", str(error))
        return
    if bank.hash != choice.bank:
        detail = "the tasks are not those that the seed draws from the fresh rows"
        yield VerificationCheck("probe", "failed", detail)
    else:
        detail = "tasks, wordings, answers and reviews are as they were recorded"
        yield VerificationCheck("probe", "passed", detail)


def _check_later_pages(case: Case) -> Iterator[VerificationCheck]:
    try:
        labels = case.replay_confirmation()
    except (LedgerError, InputError, PlanError) as error:
        yield VerificationCheck("confirmation", "failed", str(error))
        return
    if labels is not None and (case.folder / CONFIRM).is_dir():
        pages = make_result_pages(CONFIRMATION, labels)
        yield _compare(case.folder / CONFIRM, pages, "confirmation")
    if (case.folder / REPORT).is_dir():
        try:
            summary = case.summarize()
        except (LedgerError, InputError) as error:
            yield VerificationCheck("report", "failed", str(error))
            return
        yield _compare(case.folder / REPORT, make_result_pages(SUMMARY, summary), "report")


def _list_events(case: Case, kind: str) -> list[Event]:
    return case.ledger.events(kind) if (case.folder / LEDGER).exists() else []


def _compare(place: Path, pages: dict[str, str], name: str) -> VerificationCheck:
    check = check_pages(place, pages, attested=False, source="the audit and the ledger")
    if check.status != "failed":
        return replace(check, name=name)
    detail = f"{place.name}/ does not say what audit and ledger say; {_AGAIN}"
    return replace(check, name=name, detail=detail)
