"""Verification: a certificate recomputed from its own rounds, and compared with the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from groundfault.auditing.anchor_check import check_anchor
from groundfault.auditing.verification_result import (
    CheckStatus,
    Verification,
    VerificationCheck,
    judge_differences,
)
from groundfault.base.json_diff import differences_of
from groundfault.base.ledgers import LedgerChoice, find_witness, is_waived
from groundfault.errors import GroundfaultError, InputError, LedgerError
from groundfault.sequential import policies
from groundfault.sequential.certificate import Certificate, certify
from groundfault.sequential.certificate_schema import CertificateRound, Judgement
from groundfault.sequential.draws import Draws, hash_key
from groundfault.sequential.pool import Pool
from groundfault.sequential.record import (
    ASKED,
    OPENED,
    REVIEWED,
    TOLD,
    AuditEvent,
    count_audits,
    read_query,
)
from groundfault.sequential.state import AuditState

if TYPE_CHECKING:
    from groundfault.base.anchors import AnchorFiles
    from groundfault.base.ledger import Ledger


@dataclass(frozen=True)
class CertificateCheck(Verification):
    """Whether a certificate can be relied on, and what speaks for it.

    Attributes
    ----------
    draws : str
        Who could foresee the draws, in a sentence.
    """

    draws: str


def verify_certificate(
    source: str | Path | Certificate,
    *,
    pool: Pool | None = None,
    policy: bool = False,
    ledger: LedgerChoice = True,
    anchor: AnchorFiles | None = None,
) -> CertificateCheck:
    """Recompute every draw, threshold, bet, e-value and the verdict, and compare.

    Parameters
    ----------
    source : path or Certificate
    pool : Pool, optional
        The cases as they are now; the certificate has to be about them.
    policy : bool
        Ask the policy again as well, whether it would have looked where it did. A policy that reads
        an embedding needs the pool.
    ledger : Ledger, path, URL or bool, optional
        The ledger to check the record against. True is the one that $GROUNDFAULT_LEDGER names, else
        groundfault-ledger.db in the current folder if the certificate names that one. What a
        certificate names is never opened for that alone: it may be a server of anybody's.
    anchor : AnchorFiles, optional
        A signed head of the ledger, which the ledger has to hold still.

    Raises
    ------
    InputError
        If the source is no certificate.
    """
    certificate = source if isinstance(source, Certificate) else Certificate.load(source)
    plan, outline = (
        certificate.plan.to_plan(),
        Pool.from_outline(msgspec.to_builtins(certificate.pool)),
    )
    differences: list[str] = []
    if pool is not None and pool.hash_by_name != outline.hash_by_name:
        differences.append(
            f"pool: {outline.hash[:12]}, {pool.hash[:12]}: these are other cases or groups"
        )
    elif pool is not None:
        # the order of the groups, and the hash, stay those of the certificate
        outline = replace(outline, embedding=pool.embedding, cases=pool.cases)
    draws, draws_sentence = _find_draws(certificate, ledger)
    if draws is None:
        differences.append(f"draws: {draws_sentence}")
    try:
        state = AuditState(outline, plan, draws)
        for entry in _list_entries(certificate.rounds, certificate.reviews):
            if policy and entry.kind == ASKED and entry.body["step"] > plan.warm_up:
                differences += _compare_choice(state, entry)
            state.replay(entry)
        differences += differences_of(
            _select_stable(certificate), _select_stable(certify(state, None))
        )
    except GroundfaultError as error:
        differences.append(f"rounds: {error}")
    what = "every draw, bet, e-value and the verdict follow from the scores"
    checks = [judge_differences(differences, what), _compare_ledger(certificate, ledger)]
    if anchor is not None:
        stated = certificate.ledger
        book = find_witness(ledger, stated.path if stated else "")
        checks.append(check_anchor(anchor, book, stated.head if stated else None))
    return CertificateCheck(tuple(checks), draws_sentence)


def _find_draws(certificate: Certificate, ledger: LedgerChoice) -> tuple[Draws | None, str]:
    """The draws that the certificate, or its ledger, has the key of, with a sentence on it."""
    plan, sealed = certificate.plan, certificate.draws
    if plan.seed is not None:
        return Draws.begin(plan.seed), (
            f"they follow from the seed {plan.seed}, which was public from the start: whoever knew "
            "it could foresee them"
        )
    if sealed is None:
        return None, "the certificate has neither a seed nor the hash of a random key"
    if sealed.key is None:
        key = _read_ledger_key(certificate, ledger)
        if key is None or hash_key(key) != sealed.hash:
            return None, (
                "their key is sealed until the audit has ended; name the ledger that has it "
                "(--ledger) to check them"
            )
        return Draws(key, True), "their key is still sealed; the ledger has it, and it fits"
    if not sealed.fits:
        return None, "their key is not the one whose hash was written down before the first draw"
    return Draws(sealed.key, True), (
        "they follow from a random key that was sealed until the audit ended, and fits the hash "
        "that was written down before the first draw"
    )


def _read_ledger_key(certificate: Certificate, ledger: LedgerChoice) -> str | None:
    stated = certificate.ledger.path if certificate.ledger else ""
    try:
        book = find_witness(ledger, stated)
        return None if book is None else _get_key(_read_header(book, certificate.seal)).get("key")
    except (InputError, LedgerError):
        # what is wrong with the ledger is said where its rounds are compared
        return None


def _read_header(book: Ledger, seal: str) -> Mapping[str, Any]:
    """The header with which an audit was opened; empty where the ledger has none."""
    return next((e.body for e in book.events(OPENED) if e.body["audit"] == seal), {})


def _get_key(header: Mapping[str, Any]) -> Mapping[str, Any]:
    return header.get("draws") or {}


def _list_entries(
    rounds: Sequence[CertificateRound], reviews: Sequence[Judgement] = ()
) -> Iterator[AuditEvent]:
    """The events that a ledger would hold of these rounds."""
    for point in rounds:
        body: dict[str, Any] = msgspec.to_builtins(point)
        # the ledger's event is written before the score is there
        for key in ("told", "score", "log_e"):
            del body[key]
        yield AuditEvent(0, ASKED, {key: _to_list(value) for key, value in body.items()})
        for review in reviews:
            if review.step == point.step:
                yield AuditEvent(0, REVIEWED, msgspec.to_builtins(review))
        if point.closed:
            yield AuditEvent(0, TOLD, {"step": point.step, "id": point.id, "score": point.score})


def _to_list(value: Any) -> Any:
    """Tuples as JSON holds them."""
    return list(value) if isinstance(value, tuple) else value


def _compare_choice(state: AuditState, entry: AuditEvent) -> Iterator[str]:
    """Where the policy, asked again, differs from the choice in the record."""
    stated = read_query(entry.body, len(state.pool))
    again = state.choose(policies.get(state.plan.policy))
    for name in ("group", "items", "claim", "stake", "forecast"):
        a, b = getattr(stated, name), None if again is None else getattr(again, name)
        same = (a == b) if name != "items" or a is None or b is None else bool((a == b).all())
        if not same:
            place = f"rounds[{entry.body['step'] - 1}].{name}"
            yield f"{place}: {a!r}, {b!r}: the policy would have looked elsewhere"


def _select_stable(certificate: Certificate) -> dict[str, Any]:
    """What a recomputed certificate must share: all but versions, the ledger and file names."""
    content = certificate.to_dict()
    content["pool"] = certificate.pool.hash
    # the key of the draws is held against its hash instead
    others = ("groundfault_version", "ledger", "draws")
    return {key: value for key, value in content.items() if key not in others}


def _compare_ledger(certificate: Certificate, ledger: LedgerChoice) -> VerificationCheck:
    """Whether the ledger agrees with the rounds."""
    state = partial(VerificationCheck, "ledger")
    absent: CheckStatus = "waived" if is_waived(ledger) else "unchecked"
    if certificate.ledger is None:
        return state(absent, "the audit was not recorded in a ledger")
    book, stated = find_witness(ledger, certificate.ledger.path), certificate.ledger.path
    if book is None:
        return state(
            absent,
            f"the record was not checked: the certificate names the ledger {stated}, and no "
            "ledger is opened because a certificate names it; name it with --ledger",
        )
    path = book.place
    try:
        book.check(head=certificate.ledger.head)
    except (LedgerError, InputError) as error:
        return state("failed", f"the ledger does not bear the certificate out: {error}")
    hashed = certificate.draws.hash if certificate.draws else None
    if _get_key(_read_header(book, certificate.seal)).get("hash") != hashed:
        return state("failed", f"the ledger {path} is unbroken, and has another key of the draws")
    events = book.events()
    last = next(event.seq for event in events if event.hash == certificate.ledger.head)
    openings = [event for event in events if event.kind == OPENED and event.seq <= last]
    counts = count_audits(openings, certificate.seal)
    if (certificate.ledger.audits, certificate.ledger.level) != tuple(counts.values()):
        several = f"{counts['audits']} audits of these cases"
        return state("failed", f"the ledger {path} is unbroken, and has {several}")
    # of several events of one step and kind the first counts: later ones came too late
    bodies: dict[tuple[str, Any], Any] = {}
    for event in events:
        if event.body.get("audit") == certificate.seal:
            body = {key: value for key, value in event.body.items() if key != "audit"}
            bodies.setdefault((event.kind, body.get("step")), body)
    for entry in _list_entries(certificate.rounds):
        step = entry.body["step"]
        if any(differences_of(bodies.get((entry.kind, step)), entry.body)):
            return state("failed", f"the ledger {path} is unbroken, and has another round {step}")
    return state("passed", f"the ledger {path} is unbroken and holds these rounds")
