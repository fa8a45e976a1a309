"""Whether a ledger still holds what somebody signed of it, and since when that was so."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from groundfault.auditing.verification_result import VerificationCheck
from groundfault.base.anchors import AnchorFiles, name_key, read_anchor, read_time_stamp
from groundfault.errors import InputError, LedgerError, PlanError

if TYPE_CHECKING:
    from groundfault.base.ledger import Ledger


def check_anchor(files: AnchorFiles, book: Ledger | None, head: str | None) -> VerificationCheck:
    """Hold a ledger against an anchor of it.

    Parameters
    ----------
    files : AnchorFiles
    book : Ledger or None
        None where there is no ledger that may be asked.
    head : str or None
        Hash of the event that the verified result says it recorded.

    Raises
    ------
    InputError, MissingExtraError
        If a file, or a program that checks it, is not there or something else.
    PlanError
        If there is a time stamp, and nobody to believe it.
    """
    state = partial(VerificationCheck, "anchor")
    if files.time_stamp and not files.authority:
        raise PlanError("a time stamp is checked against its authority's certificates: --authority")
    try:
        anchor = read_anchor(files)
        time = f"on {anchor.time:%Y-%m-%d %H:%M} UTC by the signer's clock"
        if files.time_stamp and files.authority:
            stamp = read_time_stamp(files.time_stamp, files.authority, files.read())
            time += f", and not after {stamp:%Y-%m-%d %H:%M} UTC by the time stamp"
    except LedgerError as error:
        return state("failed", str(error))
    what = f"event {anchor.events} of the ledger was signed with {name_key(files.signer)} {time}"
    if book is None:
        return state("unchecked", f"{what}; name the ledger that has to hold it with --ledger")
    try:
        events = book.events()
        book.check()
    except (LedgerError, InputError) as error:
        return state("failed", f"{what}; now {error}")
    hashes = [event.hash for event in events]
    if hashes[anchor.events - 1 : anchor.events] != [anchor.head]:
        return state(
            "failed",
            f"{what}; {book.place} does not hold it any more: events were erased, the ledger was "
            "written anew, or it is another one",
        )
    result = f"{what}; {book.place} holds it, and all events before it are as they were then"
    if head in hashes[anchor.events :]:
        result += (
            f". This result was recorded later, as event {hashes.index(head) + 1}: of what came "
            "after the signature, the anchor says nothing"
        )
    return state("passed", result)
