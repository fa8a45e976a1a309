"""Draws: who can foresee them, and whether an audit that was killed goes on with the same."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pytest

from groundfault.base.ledger import Ledger
from groundfault.errors import LedgerError
from groundfault.sequential import Certificate, Pool, SequentialAudit, verify_certificate
from groundfault.sequential.answers import replay
from groundfault.sequential.draws import Draws, SealedKey, hash_key, pick, read_draws
from groundfault.sequential.policies import Query

SETTINGS = {"threshold": 0.85, "policy": "stratified", "budget": 12, "alpha": 1e-9}


@pytest.fixture
def pool():
    scores = (np.random.default_rng(0).random(60) < 0.9).astype(float)
    return Pool.from_arrays(range(60), {"in": ["a", "b", "c"] * 20}, scores=scores)


def list_ids(audit):
    return [r.query.id for r in audit.rounds]


def test_a_public_seed_draws_as_ever():
    draws = Draws.begin(5)
    assert (draws.key, draws.sealed, draws.sealed_key, draws.hash_alone) == ("5", False, None, None)
    assert draws.pick("draw", 3, 1000) == pick(5, "draw", 3, 1000)
    # what version 0.1.0 drew, written out: SHA-256 of "5:draw:3"
    assert pick(5, "draw", 3, 1000) == 879


def test_without_a_seed_every_audit_draws_otherwise(pool):
    firsts = [SequentialAudit(pool, **SETTINGS) for _ in range(8)]
    assert len({audit.draws.key for audit in firsts}) == 8
    assert len({audit.ask().id for audit in firsts}) > 1
    assert {audit.plan.seed for audit in firsts} == {None}


def test_a_policy_cannot_read_the_key_off_its_generator(pool):
    entropy = []

    @dataclass(frozen=True)
    class Curious:
        name: str = "curious"

        def ask(self, history, rng):
            entropy.append(rng.bit_generator.seed_seq.entropy)
            return Query(history.groups[0], claim=True)

    sealed = SequentialAudit(pool, **{**SETTINGS, "policy": Curious()})
    sealed.ask()
    public = SequentialAudit(pool, seed=7, **{**SETTINGS, "policy": Curious()})
    public.ask()
    assert entropy[1][0] == 7
    assert entropy[0][0] != int(sealed.draws.key, 16)


def test_the_key_is_sealed_until_the_end(pool, tmp_path):
    audit, answer = SequentialAudit(pool, ledger=tmp_path / "audit.db", **SETTINGS), replay(pool)
    key = audit.draws.key
    query = audit.ask()
    before = audit.certificate()
    assert before.draws == SealedKey(hash_key(key))
    for text in (before.to_json(), before.to_html(), before.to_markdown(), repr(query)):
        assert key not in text
    audit.tell(query, answer(query))
    audit.run(answer)
    after = audit.certificate()
    assert after.draws == SealedKey(before.draws.hash, key)
    assert after.draws.fits
    assert "random, and sealed until the audit had ended" in after.to_markdown()


def test_a_public_seed_is_called_public(pool):
    audit = SequentialAudit(pool, seed=3, **SETTINGS)
    audit.run(replay(pool))
    assert "3, public from the start" in audit.certificate().to_markdown()
    assert "whoever knew it could foresee them" in verify_certificate(audit.certificate()).draws


def test_a_certificate_shows_that_the_draws_were_not_chosen_afterwards(pool):
    audit = SequentialAudit(pool, **SETTINGS)
    audit.run(replay(pool))
    check = verify_certificate(audit.certificate())
    assert check.reproduces, check.differences
    assert "fits the hash that was written down before the first draw" in check.draws
    data = audit.certificate().to_dict()
    data["draws"]["key"] = "0" * 32
    check = verify_certificate(Certificate.from_dict(data))
    assert not check.reproduces
    assert "not the one whose hash was written down" in check.differences[0]
    data["draws"]["hash"] = hash_key("0" * 32)
    check = verify_certificate(Certificate.from_dict(data))
    assert not check.reproduces
    assert "does not reproduce" in " ".join(check.differences)


def test_another_hash_than_the_ledgers_is_noticed(pool, tmp_path):
    ledger = tmp_path / "audit.db"
    audit = SequentialAudit(pool, ledger=ledger, **SETTINGS)
    audit.run(replay(pool))
    certificate = audit.certificate()
    assert verify_certificate(certificate, ledger=ledger).reproduces
    other = msgspec.structs.replace(certificate, draws=SealedKey(hash_key("1"), "1"))
    check = verify_certificate(other, ledger=ledger)
    assert not check.reproduces
    assert "another key of the draws" in check.ledger


def test_an_unfinished_certificate_is_checked_with_its_ledger(pool, tmp_path):
    ledger = tmp_path / "audit.db"
    audit = SequentialAudit(pool, ledger=ledger, **SETTINGS)
    audit.tell(audit.ask(), 1.0)
    certificate = audit.certificate()
    check = verify_certificate(certificate, ledger=ledger)
    assert check.reproduces, check.differences
    assert "still sealed" in check.draws
    alone = verify_certificate(certificate, ledger=tmp_path / "none.db")
    assert not alone.reproduces
    assert "name the ledger that has it" in alone.differences[0]


def test_a_resumed_audit_goes_on_with_the_same_draws(pool, tmp_path):
    ledger, answer = tmp_path / "audit.db", replay(pool)
    audit = SequentialAudit(pool, ledger=ledger, **SETTINGS)
    for _ in range(4):
        query = audit.ask()
        audit.tell(query, answer(query))
    again = SequentialAudit(pool, ledger=ledger, **SETTINGS)
    assert again.draws == audit.draws
    audit.run(answer)
    assert list_ids(SequentialAudit.from_ledger(ledger)) == list_ids(audit)
    fresh = SequentialAudit.of(pool, audit.plan, ledger=None)
    fresh.draws = audit.draws
    fresh._begin_labels()
    fresh.run(answer)
    assert list_ids(fresh) == list_ids(audit)


def test_a_killed_audit_asks_the_same_afterwards(pool, tmp_path):
    ledger, answer = tmp_path / "audit.db", replay(pool)
    child = os.fork()
    if child == 0:
        audit = SequentialAudit(pool, ledger=ledger, **SETTINGS)
        for _ in range(3):
            query = audit.ask()
            audit.tell(query, answer(query))
        audit.ask()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    written = [event.body["id"] for event in Ledger(ledger).events("audit_asked")]
    audit = SequentialAudit(pool, ledger=ledger, **SETTINGS)
    audit.run(answer)
    assert list_ids(audit)[:4] == written
    assert len(set(list_ids(audit))) == 12
    assert verify_certificate(audit.certificate(), policy=True, ledger=ledger).reproduces


def test_a_key_that_was_touched_is_refused():
    key = "ab" * 16
    assert read_draws(None, {"hash": hash_key(key), "key": key}) == Draws(key, True)
    for recorded in (None, {"hash": hash_key(key)}, {"hash": hash_key(key), "key": "cd" * 16}):
        with pytest.raises(LedgerError, match="was altered"):
            read_draws(None, recorded)


def test_the_first_of_two_openings_counts(pool, tmp_path):
    ledger = tmp_path / "audit.db"
    first = SequentialAudit(pool, ledger=ledger, **SETTINGS)
    late = first.record.ledger.events("audit_opened")[0].body
    key = "0" * 32
    body = {**late, "draws": {"hash": hash_key(key), "key": key}}
    first.record.ledger.append("audit_opened", json.loads(json.dumps(body)))
    assert SequentialAudit(pool, ledger=ledger, **SETTINGS).draws == first.draws


def test_simulations_need_no_seed(pool):
    from groundfault.sequential.stopping_time import forecast_stopping

    plan = SequentialAudit(pool, **SETTINGS).plan
    forecasts = [
        forecast_stopping(pool, replace(plan, alpha=0.05), burn_ins=[5], replicates=3)
        for _ in range(2)
    ]
    assert forecasts[0] == forecasts[1]
