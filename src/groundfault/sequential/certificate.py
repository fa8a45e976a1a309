"""Certificates: the whole of an audit as JSON, from which anyone recomputes its verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundfault.base.files import write_text
from groundfault.base.json_diff import differences_of
from groundfault.errors import GroundfaultError, InputError, LedgerError
from groundfault.sequential import policies
from groundfault.sequential.dual import Verdict
from groundfault.sequential.plan import AuditPlan
from groundfault.sequential.pool import Pool
from groundfault.sequential.record import ASKED, REVIEWED, TOLD, Entry, plain, query_of
from groundfault.sequential.state import Course

_VERSION = 1
_VOLATILE = ("groundfault_version", "ledger")


@dataclass(frozen=True)
class Certificate:
    """What an audit may say, and everything it rests on.

    Attributes
    ----------
    data : dict
        Verdict, reason, the null in words, plan, seal, the pool's ids and groups with their hash,
        and every round: group, draw, thresholds, what was bet on it, score, and both e-values. As
        JSON holds them.
    """

    data: dict[str, Any]

    @property
    def verdict(self) -> Verdict:
        """What was found."""
        return self.data["verdict"]  # type: ignore[no-any-return]

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain words and numbers."""
        return self.data

    def to_json(self, path: str | Path | None = None) -> str:
        """The certificate as JSON; also written to ``path``, whole or not at all, where one is
        given.
        """
        text = json.dumps(self.data, indent=1, ensure_ascii=False, allow_nan=False)
        if path is not None:
            write_text(Path(path), text)
        return text


@dataclass(frozen=True)
class CertificateCheck:
    """Whether a certificate reproduces.

    Attributes
    ----------
    reproduces : bool
    differences : tuple of str
        What differs, each as "where: stated, recomputed"; the first hundred.
    ledger : str
        What the ledger says of it.
    """

    reproduces: bool
    differences: tuple[str, ...]
    ledger: str


def certify(audit: Course, ledger: dict[str, str] | None) -> Certificate:
    """The certificate of an audit as it stands; `Audit.certificate` is the way to it."""
    from groundfault import __version__

    return Certificate(
        {
            "groundfault_certificate": _VERSION,
            "groundfault_version": __version__,
            "verdict": audit.verdict,
            "reason": audit.reason,
            "null": audit.null,
            "guaranteed": audit.claim.guaranteed,
            "log_wealth": plain(audit.log_wealth),
            "labelled": audit.rounds_told,
            "tested": audit.tested,
            "groups": audit.groups,
            "plan": audit.plan.settings,
            "seal": audit.seal,
            "pool": audit.pool.outline(),
            "rounds": [r.to_dict() for r in audit.rounds],
            "reviews": audit.reviews,
            "ledger": ledger,
        }
    )


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
    data = source.data if isinstance(source, Certificate) else _load(Path(source))
    try:
        plan, outline, rounds = (
            AuditPlan.from_settings(data["plan"]),
            Pool.from_outline(data["pool"]),
            data["rounds"],
        )
        entries = list(_entries(rounds, data["reviews"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"not a certificate of a sequential audit ({error})") from None
    differences: list[str] = []
    if pool is not None and pool.hash != outline.hash:
        differences.append(
            f"pool: {outline.hash[:12]}, {pool.hash[:12]}: these are other cases or groups"
        )
        pool = None
    try:
        course = Course(pool or outline, plan)
        for entry in entries:
            if policy and entry.kind == ASKED and entry.body["step"] > plan.warm_up:
                differences += _choices(course, entry)
            course.replay(entry)
        again = json.loads(certify(course, None).to_json())
        differences += differences_of(_stable(data), _stable(again))
    except GroundfaultError as error:
        differences.append(f"rounds: {error}")
    said, sound = _against_ledger(data, ledger)
    return CertificateCheck(not differences and sound, tuple(differences[:100]), said)


def _load(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"no certificate to verify: {path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("groundfault_certificate") != _VERSION:
        raise InputError(f"{path} is not a certificate of a sequential audit")
    return data


def _entries(rounds: list[dict[str, Any]], reviews: list[dict[str, Any]]) -> Iterator[Entry]:
    """The events that the rounds of a certificate were."""
    for told in rounds:
        yield Entry(
            0,
            ASKED,
            {key: value for key, value in told.items() if key not in ("told", "score", "log_e")},
        )
        yield from (
            Entry(0, REVIEWED, review) for review in reviews if review["step"] == told["step"]
        )
        if told["told"]:
            yield Entry(0, TOLD, {"step": told["step"], "id": told["id"], "score": told["score"]})


def _choices(course: Course, entry: Entry) -> Iterator[str]:
    """Where the policy, asked again, differs from what the record says it chose."""
    stated, again = (
        query_of(entry.body, len(course.pool)),
        course.choice(policies.get(course.plan.policy)),
    )
    for name in ("group", "items", "claim", "stake", "forecast"):
        a, b = getattr(stated, name), None if again is None else getattr(again, name)
        same = (a == b) if name != "items" or a is None or b is None else bool((a == b).all())
        if not same:
            yield f"rounds[{entry.body['step'] - 1}].{name}: {a!r}, {b!r}: the policy would have looked elsewhere"


def _stable(data: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in data.items() if key not in _VOLATILE}
    kept["pool"] = data["pool"]["hash"]
    return kept


def _against_ledger(data: dict[str, Any], ledger: str | Path | None) -> tuple[str, bool]:
    from groundfault.base.ledger import Ledger

    kept = data.get("ledger")
    if kept is None:
        return "the audit was not recorded in a ledger", True
    path = str(ledger or kept["path"])
    if "://" not in path and not Path(path).exists():
        return f"the ledger {path} is not there to be checked; name it", True
    book = Ledger(path)
    try:
        book.check(head=kept["head"])
    except LedgerError as error:
        return f"the ledger does not bear the certificate out: {error}", False
    recorded: dict[tuple[str, Any], Any] = {}
    for event in book.events():
        if event.body.get("audit") == data["seal"]:
            body = {key: value for key, value in event.body.items() if key != "audit"}
            recorded.setdefault((event.kind, body.get("step")), body)
    for entry in _entries(data["rounds"], []):
        if any(differences_of(recorded.get((entry.kind, entry.body["step"])), entry.body)):
            return (
                f"the ledger {path} is unbroken, and has another round {entry.body['step']}",
                False,
            )
    return f"the ledger {path} is unbroken and holds these rounds", True
