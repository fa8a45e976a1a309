"""A folder that ``sequential report`` wrote: whether its pages show what its JSON says."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from groundfault.auditing.page_check import (
    check_foreign_pages,
    check_pages,
    make_result_pages,
)
from groundfault.auditing.verification_result import CheckStatus, Verification, VerificationCheck
from groundfault.base.ledgers import LedgerChoice, is_waived
from groundfault.errors import InputError
from groundfault.sequential.certificate import Certificate
from groundfault.sequential.confirmation_result import Confirmation

CERTIFICATE, CONFIRMATION = "certificate.json", "confirmation.json"


def find_result(folder: str | Path) -> Path | None:
    """The certificate or the confirmation of a folder; None where it holds neither, or a report.

    Raises
    ------
    InputError
        If it holds both, so that its pages could be of either.
    """
    place = Path(folder)
    results = [place / name for name in (CERTIFICATE, CONFIRMATION) if (place / name).is_file()]
    if not results or (place / "report.json").exists():
        return None
    if len(results) > 1:
        raise InputError(
            f"{folder} holds {CERTIFICATE} and {CONFIRMATION}, and pages of one of them: write "
            "each to a folder of its own (groundfault sequential report --out)"
        )
    return results[0]


def verify_confirmation(path: str | Path, *, ledger: LedgerChoice = True) -> Verification:
    """Check the pages beside a confirmation's JSON; its numbers are not computed again.

    Parameters
    ----------
    path : path
        confirmation.json in the folder that ``sequential report`` wrote.
    ledger : Ledger, path, URL or bool, optional
        None and False do without what only the evidence and a ledger show.

    Raises
    ------
    InputError
        If there is no confirmation.
    """
    file = Path(path)
    confirmation = Confirmation.load(file)
    numbers = VerificationCheck(
        "recomputation",
        "unchecked",
        "the numbers of a confirmation follow from its evidence and its labels, which are not in "
        "the file: repeat sequential confirm with both to compute them again",
    )
    absent: CheckStatus = "waived" if is_waived(ledger) else "unchecked"
    return Verification((numbers, check_result_pages(file, confirmation, absent)))


def check_result_pages(
    path: Path, result: Certificate | Confirmation, absent: CheckStatus
) -> VerificationCheck:
    """Make a result's files again, and compare them with those of its folder.

    Parameters
    ----------
    path : Path
        The JSON of the result; its pages are beside it.
    result : Certificate or Confirmation
        As it was read from there.
    absent : {"unchecked", "waived"}
        The status of pages that another version may have worded.
    """
    pages = make_result_pages(path.name, result)
    check = check_pages(path.parent, pages, attested=False, source=path.name)
    writer = result.groundfault_version if isinstance(result, Certificate) else ""
    # confirmations do not say who wrote them, and no earlier version wrote pages of one
    if check.status == "failed" and writer not in ("", version("groundfault")):
        return check_foreign_pages(writer, absent, attested=False)
    return check
