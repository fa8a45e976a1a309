"""Whether a ledger holds the opening that a report states, of these outcomes and this plan."""

from __future__ import annotations

from functools import partial

import msgspec

from groundfault.auditing.report_schema import RecordedOpening, ReportData
from groundfault.auditing.verification_result import CheckStatus, VerificationCheck
from groundfault.base.holdout_events import Opening, select_looks
from groundfault.base.ledger import Ledger
from groundfault.errors import InputError, LedgerError

# what openings of 0.1 do not record
_LATER = ("holdout", "all_outcomes", "all_before", "looks")


def check_opening(data: ReportData, book: Ledger | None, absent: CheckStatus) -> VerificationCheck:
    """Hold what a report states of its opening against the ledger's events.

    Parameters
    ----------
    data : ReportData
    book : Ledger or None
        The ledger to ask; None where there is none that may be asked.
    absent : {"unchecked", "waived"}
        The status where there is none, or the report says that nothing was recorded.
    """
    state = partial(VerificationCheck, "ledger")
    if data.ledger is None:
        return state(absent, "the opening of the holdout was not recorded" + _say_looks(data, book))
    if book is None:
        return state(
            absent,
            f"the opening was not checked: the report names the ledger {data.ledger.path}, and no "
            "ledger is opened because a report names it; name it with --ledger",
        )
    try:
        opening = book.describe_opening(data.ledger.head, msgspec.structs.asdict(data.hashes))
    except InputError as error:
        # the caller named it, so it is not waived
        return state("unchecked", f"the opening was not checked: {error}")
    except LedgerError as error:
        return state("failed", f"the ledger contradicts the report: {error}")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # one that came with a report may be anybody's, and hold anything in an unbroken chain
        return state("failed", f"the ledger {book.place} holds no openings of groundfault: {error}")
    stated = read_opening(data.ledger)
    # events of 0.1 say less; whether one is of 0.1, the ledger says and not the report
    names = [name for name in Opening.__struct_fields__ if name not in ("path", *_LATER)]
    is_later = bool(data.ledger.looks) or any(look.rule for look in opening.looks)
    for name in (*names, *(_LATER if is_later else ())):
        if getattr(stated, name) != getattr(opening, name):
            return state(
                "failed",
                f"the ledger contradicts the report: ledger.{name} is stated as "
                f"{getattr(stated, name)!r}, and recorded as {getattr(opening, name)!r}",
            )
    return state("passed", f"the ledger {book.place} is unbroken and holds this opening")


def read_opening(entry: RecordedOpening) -> Opening:
    """The opening that a report states."""
    return msgspec.convert(entry, Opening, from_attributes=True)


def _say_looks(data: ReportData, book: Ledger | None) -> str:
    """What a ledger of the caller's holds of the outcomes of a report that recorded nothing."""
    if book is None:
        return ""
    try:
        looks = select_looks(book.events(), {data.hashes.outcome})
    except (LedgerError, InputError):
        return ""
    if not looks:
        return ""
    count = f"{len(looks)} look{'s' if len(looks) > 1 else ''}"
    return f", as the report says; the ledger {book.place} holds {count} at these outcomes"
