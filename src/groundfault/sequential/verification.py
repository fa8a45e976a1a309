"""Verification: a certificate recomputed from its own rounds, and compared with the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from groundfault.base.json_diff import differences_of
from groundfault.errors import GroundfaultError, LedgerError
from groundfault.sequential import policies
from groundfault.sequential.certificate import Certificate, certify
from groundfault.sequential.certificate_schema import CertificateRound, Judgement
from groundfault.sequential.pool import Pool
from groundfault.sequential.record import ASKED, REVIEWED, TOLD, AuditEvent, read_query
from groundfault.sequential.state import AuditState

_MAX_DIFFERENCES = 100


@dataclass(frozen=True)
class CertificateCheck:
    """Whether a certificate reproduces.

    Attributes
    ----------
    reproduces : bool
    differences : tuple of str
        What differs, each as "where: stated, recomputed"; the first hundred.
    ledger : str
        Whether the ledger agrees, in a sentence.
    """

    reproduces: bool
    differences: tuple[str, ...]
    ledger: str


def verify_certificate(
    source: str | Path | Certificate,
    *,
    pool: Pool | None = None,
    policy: bool = False,
    ledger: str | Path | None = None,
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
    ledger : path, optional
        The ledger to check the record against; left out, the one that the certificate names, where
        it still exists.

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
    if pool is not None and pool.hash != outline.hash:
        differences.append(
            f"pool: {outline.hash[:12]}, {pool.hash[:12]}: these are other cases or groups"
        )
        pool = None
    try:
        state = AuditState(pool or outline, plan)
        for entry in _list_entries(certificate.rounds, certificate.reviews):
            if policy and entry.kind == ASKED and entry.body["step"] > plan.warm_up:
                differences += _compare_choice(state, entry)
            state.replay(entry)
        differences += differences_of(
            _select_stable(certificate), _select_stable(certify(state, None))
        )
    except GroundfaultError as error:
        differences.append(f"rounds: {error}")
    sentence, agrees = _compare_ledger(certificate, ledger)
    return CertificateCheck(
        not differences and agrees, tuple(differences[:_MAX_DIFFERENCES]), sentence
    )


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
    return {
        key: value for key, value in content.items() if key not in ("groundfault_version", "ledger")
    }


def _compare_ledger(certificate: Certificate, ledger: str | Path | None) -> tuple[str, bool]:
    """Whether the ledger agrees with the rounds, with a sentence."""
    from groundfault.base.ledger import Ledger

    if certificate.ledger is None:
        return "the audit was not recorded in a ledger", True
    path = str(ledger or certificate.ledger.path)
    if "://" not in path and not Path(path).exists():
        return f"the ledger {path} is not there to be checked; name it", True
    book = Ledger(path)
    try:
        book.check(head=certificate.ledger.head)
    except LedgerError as error:
        return f"the ledger does not bear the certificate out: {error}", False
    # of several events of one step and kind the first counts: later ones came too late
    bodies: dict[tuple[str, Any], Any] = {}
    for event in book.events():
        if event.body.get("audit") == certificate.seal:
            body = {key: value for key, value in event.body.items() if key != "audit"}
            bodies.setdefault((event.kind, body.get("step")), body)
    for entry in _list_entries(certificate.rounds):
        step = entry.body["step"]
        if any(differences_of(bodies.get((entry.kind, step)), entry.body)):
            return f"the ledger {path} is unbroken, and has another round {step}", False
    return f"the ledger {path} is unbroken and holds these rounds", True
