"""One edit of a sequential audit's certificate: `verify` notices, or its reason is here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forgery import DELETED, change, edit, list_leaves

from groundfault.base.ledger import Ledger
from groundfault.errors import GroundfaultError
from groundfault.review.annotators import AnnotatorPanel
from groundfault.sequential import Pool, SequentialAudit, verify_certificate

EDITS: list[tuple[str, Any]] = [
    ("verdict", "audit passed"),
    ("reason", "all is well"),
    ("null", "all is well"),
    ("guaranteed", False),
    ("log_wealth.0", 30.5),
    ("labelled", 400),
    ("tested", 400),
    ("groups.0.labelled", 40),
    ("groups.0.unscored", 1),
    ("groups.1.total", 0.0),
    ("groups.0", DELETED),
    ("plan.threshold", 0.1),
    ("plan.burn_in", 1),
    ("plan.alpha", 0.5),
    ("plan.policy", "uniform"),
    ("plan.seed", 6),
    ("plan.claim", "rates"),
    ("plan.warm_up", 1),
    ("plan.budget", 80),
    ("plan.eta", 0.9),
    ("seal", "0" * 64),
    ("pool.ids.0", "another"),
    ("pool.groups", {}),
    ("pool.hash", "0" * 64),
    ("pool.generated", True),
    ("rounds.0", DELETED),
    ("rounds.3.id", "c0000"),
    ("rounds.4.score", 0.123),
    ("rounds.4.told", False),
    ("rounds.5.log_e.0", 1.0),
    ("rounds.5.thresholds.1", 0.5),
    ("rounds.5.if_fail.0", 7.9),
    ("rounds.5.group", "in=a"),
    ("rounds.5.claim", True),
    ("rounds.5.stake", False),
    ("rounds.5.eligible", 3),
    ("rounds.5.step", 5),
    ("reviews", []),
    ("reviews.0", DELETED),
    ("reviews.0.labeller", "somebody else"),
    ("reviews.0.score", 0.123),
    ("reviews.0.id", "c0000"),
    ("ledger.head", "0" * 64),
    ("ledger.audits", 2),
    ("ledger.level", 0.9),
    ("ledger", None),
    ("draws", {"hash": "0" * 64}),
    ("groundfault_certificate", 9),
    ("praise", "a field that is none"),
]

# nothing rests on them
HARMLESS = {
    "groundfault_version": "no check depends on which version wrote it",
    "ledger.path": "a ledger may be moved; the place is shown and never opened for that alone",
    "pool.sources.0": "names of files, which may be moved; the cases are hashed",
}


@dataclass
class Desk:
    """A certificate after six reviewed rounds, and its ledger."""

    content: dict[str, Any]
    ledger: Path
    forged: Path


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    home = tmp_path_factory.mktemp("certificate")
    scores = np.round(np.random.default_rng(4).random(30), 3)
    pool = Pool.from_arrays(
        [f"c{i:04d}" for i in range(30)], {"in": ["a", "b", "c"] * 10}, scores=scores
    )
    audit = SequentialAudit(
        pool,
        threshold=0.85,
        policy="stratified",
        seed=5,
        burn_in=10,
        alpha=1e-9,
        budget=20,
        warm_up=2,
        claim="declared-groups",
        ledger=home / "audit.db",
    )
    panel = AnnotatorPanel(audit, ["ann", "ben"], "cy")
    for _ in range(6):
        query = audit.ask()
        for labeller in ("ann", "ben"):
            panel.judge(labeller, query, 1.0)
    return Desk(audit.certificate().to_dict(), home / "audit.db", home / "forged.json")


def judge_forgery(desk: Desk, content: Any, ledger: Any) -> str:
    """What verifying comes to."""
    desk.forged.write_text(json.dumps(content), encoding="utf-8")
    try:
        return verify_certificate(desk.forged, ledger=ledger).verdict
    except GroundfaultError:
        return "refused"


@pytest.mark.parametrize(("path", "value"), EDITS, ids=lambda part: f"{part!r:.40}")
def test_an_edit_is_noticed(path: str, value: Any, desk: Desk) -> None:
    assert judge_forgery(desk, desk.content, desk.ledger) == "reproduces"
    edited = edit(desk.content, path, value)
    assert edited != desk.content
    verdict = judge_forgery(desk, edited, desk.ledger)
    assert verdict in ("does NOT reproduce", "refused") or path == "ledger"
    assert verdict != "reproduces", "what was not recorded is no success"


def test_every_value_is_compared(desk: Desk) -> None:
    silent = set()
    for keys, value in list_leaves(desk.content):
        # further rounds and cases have the same fields
        if any(isinstance(key, int) and key > 0 for key in keys):
            continue
        if judge_forgery(desk, edit(desk.content, keys, change(value)), desk.ledger) == (
            "reproduces"
        ):
            silent.add(".".join(map(str, keys)))
    assert silent == HARMLESS.keys()


@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_a_certificate_that_leaves_out_its_last_rounds_is_noticed(
    rounds: int, desk: Desk, tmp_path: Path
) -> None:
    """All of it follows from fewer rounds; that there were more, the ledger says."""
    from groundfault.sequential import Certificate
    from groundfault.sequential.draws import Draws
    from groundfault.sequential.record import TOLD, AuditEvent

    certificate = Certificate.from_dict(desk.content)
    pool = Pool.from_outline(desk.content["pool"])
    state = SequentialAudit.of(pool, certificate.plan.to_plan(), draws=Draws.begin(5))
    for event in Ledger(desk.ledger).events():
        state.replay(AuditEvent(event.seq, event.kind, event.body))
        if event.kind == TOLD and event.body["step"] == rounds:
            break
    shorter = state.certify(certificate.ledger)
    assert shorter.labelled == rounds
    result = verify_certificate(shorter, ledger=desk.ledger)
    assert result.checks[0].status == "passed"
    assert result.checks[1].status == "failed"
    assert "another record" in result.ledger


@pytest.mark.parametrize("body", [[], "x", 1, {}, {"plan": {}}, {"step": []}, {"draws": 1}])
@pytest.mark.parametrize("kind", ["audit_opened", "audit_asked", "audit_reviewed", "audit_told"])
def test_a_ledger_that_holds_anything_ends_in_no_traceback(
    kind: str, body: Any, desk: Desk, tmp_path: Path
) -> None:
    """A ledger that comes with a certificate may have been made for it, chain and all."""
    book = Ledger(tmp_path / "audit.db")
    for event in Ledger(desk.ledger).events():
        forged = {"audit": desk.content["seal"], **body} if isinstance(body, dict) else body
        book.append(event.kind, forged if event.kind == kind else event.body)
    content = edit(desk.content, "ledger.head", book.head)
    assert judge_forgery(desk, content, book.place) == "does NOT reproduce"
