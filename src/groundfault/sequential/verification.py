"""Verification: a certificate recomputed from its own rounds, and compared with the ledger."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from groundfault.auditing.report_schema import to_plain
from groundfault.auditing.verification_checks import (
    CheckStatus,
    Verification,
    VerificationCheck,
    check_anchor,
    check_foreign_pages,
    check_pages,
    differences_of,
    judge_differences,
    make_result_pages,
)
from groundfault.base.anchors import AnchorFiles
from groundfault.base.holdout_events import Event
from groundfault.base.ledger import Ledger
from groundfault.base.ledgers import LedgerChoice, find_witness, is_waived
from groundfault.base.long_work import version
from groundfault.core.plan import to_fraction
from groundfault.errors import GroundfaultError, InputError, LedgerError
from groundfault.sequential import policies
from groundfault.sequential.certificate import Certificate, CertificateRound, Judgement
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
from groundfault.sequential.session import SequentialAudit
from groundfault.sequential.stored_result import Confirmation, SurvivorState

CERTIFICATE, CONFIRMATION = "certificate.json", "confirmation.json"


def verify_confirmation(path: str | Path, *, ledger: LedgerChoice = True) -> Verification:
    """Check the pages beside a confirmation's JSON, its sentences, and its record in the ledger.

    Its e-values are not computed again: they take the evidence.

    Parameters
    ----------
    path : path
        The folder that ``label report`` wrote, or confirmation.json.
    ledger : Ledger, path, URL or bool, optional
        The one that has its labels. None and False do without.

    Raises
    ------
    InputError
        If there is no confirmation.
    """
    file = Path(path) / CONFIRMATION if Path(path).is_dir() else Path(path)
    confirmation = Confirmation.load(file)
    numbers = VerificationCheck(
        "recomputation",
        "unchecked",
        "the e-values of a confirmation follow from its evidence and its labels, which are not in "
        "the file: repeat label confirm with both to compute them again",
    )
    if differences := tuple(_contradict_itself(confirmation)):
        numbers = judge_differences(differences, "")
    absent: CheckStatus = "waived" if is_waived(ledger) else "unchecked"
    # of a file with another name no pages are known
    pages = (check_result_pages(file, confirmation, absent),) * (file.name == CONFIRMATION)
    book = find_witness(ledger, "", None)
    return Verification((numbers, *pages, *([_count_labels(confirmation, book)] if book else ())))


def _contradict_itself(confirmation: Confirmation) -> Iterator[str]:
    """Yield where the parts of a confirmation do not follow from each other."""
    bar = 1 / float(to_fraction(confirmation.plan.alpha))
    names = tuple(state.name for state in confirmation.survivors if state.confirmed)
    if names != confirmation.confirmed:
        yield f"confirmed: {confirmation.confirmed}, {names}"
    if confirmation.labelled > min(confirmation.held_out, confirmation.budget or math.inf):
        yield f"labelled: {confirmation.labelled}: beyond the budget, or what was held out"
    for state in confirmation.survivors:
        labels, stands = state.on + state.off, state.confirmed
        reason = SurvivorState.describe(state.e_value, labels, bar, confirmed=stands)
        if state.reason != reason:
            yield f"{state.name}: {state.reason!r}, {reason!r}"
        if labels > confirmation.labelled or (stands and state.e_value < bar):
            yield f"{state.name}: confirmed by {state.e_value:.3g} after {labels} labels"


def _count_labels(confirmation: Confirmation, book: Ledger) -> VerificationCheck:
    """Compare the number of labels with the ledger's number."""
    state = partial(VerificationCheck, "ledger")
    try:
        book.check()
        kinds = [e.kind for e in book.events() if e.body.get("audit") == confirmation.seal]
    except InputError as error:
        return state("unchecked", f"the record was not checked: {error}")
    except LedgerError as error:
        return state("failed", f"the ledger does not bear the confirmation out: {error}")
    labels = sum(kind.endswith("_told") - kind.endswith("_undone") for kind in kinds)
    if not kinds:
        return state("unchecked", f"the ledger {book.place} holds no label of it")
    if labels < confirmation.labelled:
        return state("failed", f"the ledger {book.place} holds {labels} of its labels")
    return state("passed", f"the ledger {book.place} is unbroken and holds its labels")


def check_result_pages(
    path: Path, result: Certificate | Confirmation, absent: CheckStatus
) -> VerificationCheck:
    """Make a result's files again, and compare them with the files of its folder.

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
    # confirmations do not say who wrote them, and no earlier version wrote pages of one
    writer = getattr(result, "groundfault_version", "") or version("groundfault")
    return check_foreign_pages(writer, absent, check=check)


def check_record(
    certificate: Certificate, book: Ledger | None, draws: Draws | None, absent: CheckStatus
) -> VerificationCheck:
    """Replay the ledger's events up to the certificate's, and compare.

    Parameters
    ----------
    certificate : Certificate
    book : Ledger or None
        The ledger to ask; None if there is none.
    draws : Draws or None
        None where their key is not known; then no round can be repeated.
    absent : {"unchecked", "waived"}
        The status without a ledger, or if the certificate says that there was none.
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
    """Yield contents of events that the certificate does not state."""
    stated, seal = certificate.ledger, certificate.seal
    assert stated is not None
    openings = [event for event in events if event.kind == OPENED]
    header: Mapping[str, Any] = next((e.body for e in openings if e.body["audit"] == seal), {})
    sealed = certificate.draws.hash if certificate.draws else None
    if (header.get("draws") or {}).get("hash") != sealed:
        yield "another key of the draws"
    audits, level = count_audits(openings, seal)
    if (stated.audits, stated.level) != (audits, level):
        yield f"{audits} audits of these cases"
    outline = Pool.from_outline(msgspec.to_builtins(certificate.pool))
    try:
        audit = _begin_again(certificate, outline, draws)
        for event in events:
            if event.body.get("audit") == seal:
                audit.replay(AuditEvent(event.seq, event.kind, event.body))
    except GroundfaultError as error:
        yield f"another record: {error}"
        return
    if audit.corrections != certificate.corrections:
        yield f"{audit.corrections} labels that were taken back, not {certificate.corrections}"
    for difference in compare_results(certificate, audit):
        yield f"another record: {difference}"


def _begin_again(certificate: Certificate, pool: Pool, draws: Draws | None) -> SequentialAudit:
    plan = certificate.plan.to_plan()
    return SequentialAudit.of(pool, plan, policy=policies.Absent(plan.policy), draws=draws)


def compare_results(certificate: Certificate, state: SequentialAudit) -> list[str]:
    """Return where a certificate differs from the one that a repeated audit would give."""
    again = state.certify(None)
    return list(differences_of(_select_stable(certificate), _select_stable(again)))


def read_key(book: Ledger | None, seal: str) -> Mapping[str, Any]:
    """Return the key of an audit's draws from a ledger; empty without one."""
    try:
        bodies = [] if book is None else [event.body for event in book.events(OPENED)]
    except (InputError, LedgerError):
        # what is wrong with the ledger is said where its rounds are compared
        return {}
    header = next((b for b in bodies if isinstance(b, dict) and b.get("audit") == seal), {})
    draws = header.get("draws")
    return draws if isinstance(draws, dict) else {}


def _select_stable(certificate: Certificate) -> dict[str, object]:
    """Return the part that a recomputed certificate must share: all but versions and places."""
    content = structs.replace(certificate, version=Certificate.LAYOUT).to_dict()
    content["pool"] = certificate.pool.hash
    # the key of the draws is held against its hash instead, and only a ledger knows of corrections
    others = ("groundfault_version", "ledger", "draws", "corrections")
    return {key: value for key, value in content.items() if key not in others}


@dataclass(frozen=True)
class CertificateCheck(Verification):
    """The trust in a certificate, and the checks behind it.

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
        Of a folder that ``label report`` wrote, its certificate; its pages are checked, too.
    pool : Pool, optional
        The cases as they are now; the certificate has to be about them.
    policy : bool
        Ask the policy again as well, whether it would have looked where it did. A policy that reads
        an embedding needs the pool.
    ledger : Ledger, path, URL or bool, optional
        The ledger to check the record against. True is the one that $GROUNDFAULT_LEDGER names, else
        groundfault-ledger.db in the current folder if the certificate names that one, else a file
        of the name that the certificate states beside it. What else a certificate names is never
        opened: it may be a server of anybody's. False and None do without, as in
        `groundfault.verify`.
    anchor : AnchorFiles, optional
        A signed head of the ledger, which the ledger has to hold still.

    Raises
    ------
    InputError
        If the source is no certificate.
    """
    file = None if isinstance(source, Certificate) else Path(source)
    with_pages = file is not None and file.is_dir()
    if file is not None and with_pages:
        file = file / CERTIFICATE
    certificate = source if isinstance(source, Certificate) else Certificate.load(file or source)
    folder = None if file is None else file.parent
    stated = certificate.ledger.path if certificate.ledger else ""
    book = find_witness(ledger, stated, folder)
    differences: list[str] = []
    outline = Pool.from_outline(msgspec.to_builtins(certificate.pool))
    if pool is not None and pool.hash_by_name != outline.hash_by_name:
        differences.append(
            f"pool: {outline.hash[:12]}, {pool.hash[:12]}: these are other cases or groups"
        )
    elif pool is not None:
        # the order of the groups, and the hash, stay those of the certificate
        outline = replace(outline, embedding=pool.embedding, cases=pool.cases)
    draws, draws_sentence = _find_draws(certificate, book)
    if draws is None:
        differences.append(f"draws: {draws_sentence}")
    differences += _compare_rounds(certificate, outline, draws, policy=policy)
    what = "every draw, bet, e-value and the verdict follow from the scores"
    absent: CheckStatus = "waived" if is_waived(ledger) else "unchecked"
    record = check_record(certificate, book, draws, absent)
    checks = [judge_differences(differences, what), record]
    if file is not None and with_pages:
        checks.append(check_result_pages(file, certificate, absent))
    if anchor is not None:
        head = certificate.ledger.head if certificate.ledger else None
        checks.append(check_anchor(anchor, book, head))
    return CertificateCheck(tuple(checks), draws_sentence)


def _compare_rounds(
    certificate: Certificate, outline: Pool, draws: Draws | None, *, policy: bool
) -> list[str]:
    """Return where the certificate differs from the outcome of its own rounds."""
    differences: list[str] = []
    try:
        state = _begin_again(certificate, outline, draws)
        for entry in _list_entries(certificate.rounds, certificate.reviews):
            if policy and entry.kind == ASKED and entry.body["step"] > certificate.plan.warm_up:
                differences += _compare_choice(state, entry)
            state.replay(entry)
        differences += compare_results(certificate, state)
    except GroundfaultError as error:
        differences.append(f"rounds: {error}")
    return differences


def _find_draws(certificate: Certificate, book: Ledger | None) -> tuple[Draws | None, str]:
    """Return the draws that the certificate, or its ledger, has the key of, with a sentence on
    it.
    """
    plan, sealed = certificate.plan, certificate.draws
    if plan.seed is not None:
        return Draws.begin(plan.seed), (
            f"they follow from the seed {plan.seed}, which was public from the start: whoever knew "
            "it could foresee them"
        )
    if sealed is None:
        return None, "the certificate has neither a seed nor the hash of a random key"
    if sealed.key is None:
        key = read_key(book, certificate.seal).get("key")
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


def _list_entries(
    rounds: Sequence[CertificateRound], reviews: Sequence[Judgement] = ()
) -> Iterator[AuditEvent]:
    """Yield the events that a ledger would hold of these rounds."""
    for point in rounds:
        body = to_plain(point)
        # the ledger's event is written before the score is there
        for key in ("told", "score", "log_e"):
            del body[key]
        yield AuditEvent(0, ASKED, body)
        for review in reviews:
            if review.step == point.step:
                yield AuditEvent(0, REVIEWED, msgspec.to_builtins(review))
        if point.closed:
            yield AuditEvent(0, TOLD, {"step": point.step, "id": point.id, "score": point.score})


def _compare_choice(state: SequentialAudit, entry: AuditEvent) -> Iterator[str]:
    """Yield where the policy, asked again, differs from the choice in the record."""
    stated = read_query(entry.body, len(state.pool))
    again = state.choose(policies.get(state.plan.policy))
    for name in ("group", "items", "claim", "stake", "forecast"):
        a, b = getattr(stated, name), None if again is None else getattr(again, name)
        same = (a == b) if name != "items" or a is None or b is None else bool((a == b).all())
        if not same:
            place = f"rounds[{entry.body['step'] - 1}].{name}"
            yield f"{place}: {a!r}, {b!r}: the policy would have looked elsewhere"
