"""Whether a ledger holds the audit that a certificate states, to the last round and review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from groundfault.auditing.verification_result import CheckStatus, VerificationCheck
from groundfault.base.json_diff import differences_of
from groundfault.errors import GroundfaultError, InputError, LedgerError
from groundfault.sequential.certificate import VERSION, Certificate, certify
from groundfault.sequential.pool import Pool
from groundfault.sequential.record import OPENED, AuditEvent, count_audits
from groundfault.sequential.state import AuditState

if TYPE_CHECKING:
    from groundfault.base.ledger import Event, Ledger
    from groundfault.sequential.draws import Draws


def check_record(
    certificate: Certificate, book: Ledger | None, draws: Draws | None, absent: CheckStatus
) -> VerificationCheck:
    """Replay the ledger's events up to the certificate's, and compare.

    Parameters
    ----------
    certificate : Certificate
    book : Ledger or None
        The ledger to ask; None where there is none that may be asked.
    draws : Draws or None
        None where their key is not known; then no round can be repeated.
    absent : {"unchecked", "waived"}
        The status where there is no ledger, or the certificate says that there was none.
    """
    state, stated = partial(VerificationCheck, "ledger"), certificate.ledger
    if stated is None:
        return state(absent, "the audit was not recorded in a ledger")
    if book is None:
        return state(
            absent,
            f"the record was not checked: the certificate names the ledger {stated.path}, and no "
            "ledger is opened because a certificate names it; name it with --ledger",
        )
    try:
        book.check(head=stated.head)
        events = book.events()
    except InputError as error:
        # the caller named it, so it is not waived
        return state("unchecked", f"the record was not checked: {error}")
    except LedgerError as error:
        return state("failed", f"the ledger does not bear the certificate out: {error}")
    # what came later is of later certificates
    last = next(event.seq for event in events if event.hash == stated.head)
    events = [event for event in events if event.seq <= last]
    try:
        trouble = next(_contradict(certificate, events, draws), "")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # one that came with a certificate may hold anything in an unbroken chain
        trouble = f"events that groundfault did not write: {error}"
    if trouble:
        return state("failed", f"the ledger {book.place} is unbroken, and has {trouble}")
    return state("passed", f"the ledger {book.place} is unbroken and holds these rounds")


def _contradict(
    certificate: Certificate, events: list[Event], draws: Draws | None
) -> Iterator[str]:
    """What the events hold that is not what the certificate states."""
    stated, seal = certificate.ledger, certificate.seal
    assert stated is not None
    openings = [event for event in events if event.kind == OPENED]
    header: Mapping[str, Any] = next((e.body for e in openings if e.body["audit"] == seal), {})
    sealed = certificate.draws.hash if certificate.draws else None
    if (header.get("draws") or {}).get("hash") != sealed:
        yield "another key of the draws"
    counts = count_audits(openings, seal)
    if (stated.audits, stated.level) != tuple(counts.values()):
        yield f"{counts['audits']} audits of these cases"
    outline = Pool.from_outline(msgspec.to_builtins(certificate.pool))
    try:
        audit = AuditState(outline, certificate.plan.to_plan(), draws)
        for event in events:
            if event.body.get("audit") == seal:
                audit.replay(AuditEvent(event.seq, event.kind, event.body))
    except GroundfaultError as error:
        yield f"another record: {error}"
        return
    for difference in compare_results(certificate, audit):
        yield f"another record: {difference}"


def compare_results(certificate: Certificate, state: AuditState) -> list[str]:
    """Where a certificate differs from the one that a repeated audit would give."""
    again = certify(state, None)
    return list(differences_of(_select_stable(certificate), _select_stable(again)))


def read_key(book: Ledger, seal: str) -> Mapping[str, Any]:
    """What a ledger holds of the key of an audit's draws; empty where there is nothing."""
    bodies = [event.body for event in book.events(OPENED)]
    header = next((b for b in bodies if isinstance(b, dict) and b.get("audit") == seal), {})
    draws = header.get("draws")
    return draws if isinstance(draws, dict) else {}


def _select_stable(certificate: Certificate) -> dict[str, Any]:
    """What a recomputed certificate must share: all but versions, the ledger and file names."""
    content = structs.replace(certificate, version=VERSION).to_dict()
    content["pool"] = certificate.pool.hash
    # the key of the draws is held against its hash instead
    others = ("groundfault_version", "ledger", "draws")
    return {key: value for key, value in content.items() if key not in others}
