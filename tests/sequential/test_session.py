"""Sequential audits: verdicts, claims, type-I error, kills, attacks on the record, certificates,
bad input.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import socket
import sqlite3
import time
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault.base.ledger import Ledger
from groundfault.cli.label import label
from groundfault.core.candidate import Candidate
from groundfault.core.evidence import Evidence
from groundfault.errors import GroundfaultError, InputError, LedgerError, PlanError
from groundfault.review.annotators import AnnotatorPanel
from groundfault.sequential import (
    ALL,
    Pool,
    SequentialAudit,
    SequentialPlan,
    e_process,
    verify_certificate,
)
from groundfault.sequential.answers import command, replay
from groundfault.sequential.certificate import Certificate
from groundfault.sequential.draws import pick
from groundfault.sequential.policies import History, Policy, Query, learned
from groundfault.sequential.stopping_time import advise_burn_in, count_to_stop, forecast_stopping

Q = 0.85


def pool_audit(pool, **settings):
    """An audit about the cases of the pool alone, with draws that do not change."""
    return SequentialAudit(pool, **{"claim": "declared-groups", "seed": 0, **settings})


def blocks(groups=3, size=20, passes=17, seed=0):
    """Groups of equal size with exactly so many passes each (one number, or one a group)."""
    rng = np.random.default_rng(seed)
    counts = np.broadcast_to(passes, groups)
    scores = np.concatenate([rng.permutation(np.arange(size) < count) for count in counts]).astype(
        float
    )
    labels = np.repeat([f"g{i}" for i in range(groups)], size)
    return Pool.from_arrays(
        [f"c{i:04d}" for i in range(groups * size)], {"in": labels}, scores=scores
    )


@dataclass(frozen=True)
class Always:
    """Asks what it is told to ask."""

    group: str | None = ALL
    claim: bool = True
    stake: bool = True
    items: object = None
    name: str = "always"

    def ask(self, history, _rng):
        items = None if self.items is None else np.asarray(self.items) & history.available
        return Query(self.group, items, self.claim, self.stake)


# --------------------------------------------------------------------------- --- asking and telling


def test_a_query_stays_until_it_is_told():
    audit = pool_audit(blocks(), threshold=Q)
    first = audit.ask()
    assert (first.step, first.audit) == (1, audit.seal)
    assert [audit.ask().id for _ in range(3)] == [first.id] * 3
    audit.tell(first, 1)
    assert audit.ask().step == 2


def test_the_record_holds_group_draw_and_bet_before_the_score(tmp_path):
    audit = pool_audit(blocks(), threshold=Q, ledger=tmp_path / "audit.db")
    query = audit.ask()
    event = Ledger(tmp_path / "audit.db").events()[-1]
    assert event.kind == "audit_asked"
    assert {"group", "eligible", "thresholds", "if_fail", "if_pass", "claim", "stake"} <= set(
        event.body
    )
    assert (event.body["id"], event.body["eligible"], event.body["group"]) == (
        query.id,
        20,
        query.group,
    )
    audit.tell(query, 0)
    assert audit.log_wealth.model == event.body["if_fail"][0] != event.body["if_pass"][0]
    assert Ledger(tmp_path / "audit.db").events()[-1].body["score"] == 0.0


def test_no_case_is_asked_twice_and_draws_come_from_the_group():
    pool = blocks()
    audit = pool_audit(
        pool, threshold=Q, alpha=1e-12, claim="literal", epsilon=0.01, policy="stratified"
    )
    audit.run(replay(pool))
    ids = [r.query.id for r in audit.rounds]
    assert len(set(ids)) == len(ids) == len(pool)
    for r in audit.rounds:
        assert pool.members[pool.groups.index(r.query.group), pool.position[r.query.id]]


def test_draws_are_uniform():
    counts = np.bincount(
        [pick(s, "draw", t, 7) for s in range(100) for t in range(70)],
        minlength=7,
    )
    assert ((counts - 1000) ** 2 / 1000).sum() < 22.5  # chi-square, 6 degrees of freedom: p > .001


def test_draws_do_not_depend_on_the_order_of_rows():
    table = pl.DataFrame(
        {"id": [f"q{i}" for i in range(40)], "lang": ["de", "fr"] * 20, "score": [1, 0, 1, 1] * 10}
    )
    permutation = table.sample(fraction=1, shuffle=True, seed=1)
    pools = [
        Pool.from_table(t, id="id", groups=["lang"], scores="score") for t in (table, permutation)
    ]
    audits = [pool_audit(pool, threshold=0.8, seed=3) for pool in pools]
    for audit, pool in zip(audits, pools, strict=True):
        audit.run(replay(pool))
    assert pools[0].hash == pools[1].hash
    assert audits[0].certificate().to_json() == audits[1].certificate().to_json()


def test_seeds_draw_differently():
    pool = blocks()
    assert len({pool_audit(pool, threshold=Q, seed=seed).ask().id for seed in range(20)}) > 5


# ------------------------------------------------------------------------------------- --- verdicts


def run(pool, policy="stratified", **settings_):
    audit = pool_audit(pool, policy=policy, **{"threshold": Q, **settings_})
    audit.run(replay(pool))
    return audit


def test_several_bets_are_averaged():
    pool = blocks(size=60, passes=50)
    wealth = {}
    for bet in ("lr", "sr-lr-ui", ("lr", "sr-lr-ui")):
        audit = run(pool, policy=Always("in=g1"), bet=bet, budget=12, alpha=1e-9)
        wealth[bet] = audit.wealth
    both = wealth["lr", "sr-lr-ui"]
    assert both.model == pytest.approx(
        (wealth["lr"].model + wealth["sr-lr-ui"].model) / 2, rel=1e-12
    )


def test_a_failing_group_is_found_by_betting():
    audit = run(blocks(size=100, passes=[96, 96, 50]), policy="oracle:in=g2")
    assert audit.verdict == "failure mode found"
    assert audit.wealth.model >= 20
    assert audit.labelled < 40
    assert "20" not in audit.null


def test_a_failing_group_is_found_by_counting():
    audit = run(blocks(size=20, passes=[20, 20, 16]), policy="oracle:in=g2", alpha=1e-9)
    assert (audit.verdict, audit.wealth.model) == ("failure mode found", math.inf)
    assert "counted: in=g2" in audit.reason


def test_a_sound_claim_passes_by_betting_after_the_burn_in():
    pool = blocks(size=200, passes=196)
    audit = run(pool, policy="oracle:in=g1", burn_in=30)
    assert audit.verdict == "audit passed"
    assert 30 < audit.tested < 140
    assert [r.log_e.auditor for r in audit.rounds[:29]] == [0.0] * 29
    assert audit.rounds[29].log_e.auditor != 0.0
    assert "did not hold a failing group" in audit.reason


def test_a_claim_that_has_reached_the_threshold_passes_by_counting():
    audit = run(blocks(size=20, passes=18), policy="oracle:in=g1", burn_in=2, alpha=1e-9)
    assert audit.verdict == "audit passed"
    assert "in=g1, which the auditor claimed" in audit.reason


def test_only_claims_count_in_the_auditors_test():
    pool = blocks(size=200, passes=200)
    idle = run(pool, policy=Always(claim=False), budget=400)
    assert (idle.verdict, idle.wealth.auditor) == ("inconclusive", 1.0)
    assert run(pool, policy=Always(claim=True), budget=400).verdict == "audit passed"


def test_an_audit_ends_at_its_budget_or_where_nothing_is_left():
    pool = blocks(groups=1, size=20, passes=18)
    audit = run(pool, budget=7, alpha=1e-9)
    assert (audit.labelled, audit.verdict, audit.finished) == (7, "inconclusive", True)
    assert audit.ask() is None
    assert run(pool, alpha=1e-9).verdict == "audit passed"  # by counting, whatever is bet
    audit_at_end = run(pool, alpha=1e-9, claim="literal")
    assert (audit_at_end.labelled, audit_at_end.verdict, audit_at_end.ask()) == (
        20,
        "inconclusive",
        None,
    )


def test_nothing_is_bet_on_the_warm_up():
    pool = blocks(size=90, passes=80)
    audit = pool_audit(pool, threshold=Q, warm_up=6)
    for _ in range(6):
        query = audit.ask()
        assert (query.group, query.stake) == (ALL, False)
        audit.tell(query, 0)
    assert (audit.tested, audit.wealth.model) == (0, 1.0)
    audit.tell(audit.ask(), 0)
    wealth_after_warm_up = audit.wealth.model
    plain = pool_audit(pool, threshold=Q)
    plain.tell(plain.ask(), 0)
    assert audit.tested == 1
    assert (
        wealth_after_warm_up > plain.wealth.model
    )  # six failures taught the forecast to expect more


def test_what_could_not_be_scored_speaks_for_neither_side():
    pool = blocks(size=60, passes=30)
    audits = {
        score: pool_audit(pool, threshold=Q, policy=Always("in=g0"), burn_in=2, budget=25)
        for score in (None, 0.0, 1.0)
    }
    for score, audit in audits.items():
        for t in range(25):
            if (query := audit.ask()) is None:
                break
            audit.tell(query, score if t % 3 == 0 else 1.0)
    assert audits[None].wealth.model == audits[1.0].wealth.model < audits[0.0].wealth.model
    assert audits[None].wealth.auditor == audits[0.0].wealth.auditor < audits[1.0].wealth.auditor
    assert audits[None].groups[1].unscored == 9


@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=9), min_size=1, max_size=4),
    st.sampled_from([0.5, 0.7, 0.75, 0.85]),
    st.integers(0, 99),
)
@settings(max_examples=count_examples(60), deadline=None)
def test_counting_never_errs(groups, q, seed):
    """With alpha out of reach of any bet, the verdict is the truth."""
    scores = np.concatenate(groups).astype(float)
    labels = np.repeat([f"g{i}" for i in range(len(groups))], [len(g) for g in groups])
    masks = {name: labels == name for name in set(labels)}
    pool = Pool.from_arrays(range(len(scores)), masks, scores=scores)
    audit = pool_audit(pool, threshold=q, alpha=1e-200, seed=seed, burn_in=2)
    means = [np.mean(g) for g in groups] + [scores.mean()]
    audit.run(replay(pool))
    if audit.verdict == "failure mode found":
        assert min(means) < q - 1e-9
    elif audit.verdict == "audit passed" and "every declared group" in audit.reason:
        assert min(means) >= q - 1e-9
    elif audit.verdict == "audit passed":
        claimed = audit.reason.split("counted: ")[1].split(",")[0]
        assert pool.recorded[pool.members[pool.groups.index(claimed)]].mean() >= q - 1e-9
    else:
        pytest.fail(f"labelled everything and decided nothing: {audit.reason}")


# ------------------------------------- --- claims: what may be drawn, and against what it is tested


def test_declared_groups_are_tested_against_what_their_rest_must_have():
    audit = pool_audit(blocks(), threshold=Q, policy=Always("in=g1"))
    expected = [0.85, (17 - 1) / 19, (17 - 2) / 18, (17 - 2) / 17]
    for level, score in zip(expected, (1, 1, 0, 1), strict=True):
        query = audit.ask()
        assert audit.rounds[-1].thresholds == pytest.approx((level, level), abs=1e-12)
        audit.tell(query, score)


def test_labels_of_overlapping_groups_count_in_each():
    pool = Pool.from_arrays(range(20), {"even": np.arange(20) % 2 == 0, "low": np.arange(20) < 10})
    audit = pool_audit(pool, threshold=0.5, policy=Always("even"), alpha=1e-9)
    for _ in range(6):
        audit.tell(audit.ask(), 0)
    low = sum(int(r.query.id) < 10 for r in audit.rounds)
    row = next(row for row in audit.groups if row.group == "low")
    assert row.labelled == low
    assert audit.counts.find_thresholds("low").model == pytest.approx(5 / (10 - low))


def test_a_declared_group_may_not_be_searched():
    audit = pool_audit(blocks(), threshold=Q, policy=Always(None, items=np.arange(60) < 5))
    with pytest.raises(PlanError, match="has to name a declared group"):
        audit.ask()


def test_a_group_that_is_used_up_cannot_be_asked():
    audit = pool_audit(
        blocks(size=4, passes=4), threshold=0.5, policy=Always("in=g0", claim=False), alpha=1e-9
    )
    for _ in range(4):
        audit.tell(audit.ask(), 1)
    with pytest.raises(PlanError, match="has no case left"):
        audit.ask()


def test_literal_draws_are_spread_over_epsilon_of_the_original_pool():
    pool = Pool.from_arrays(range(460))
    few = pool_audit(
        pool, threshold=Q, claim="literal", policy=Always(None, items=np.arange(460) < 22)
    )
    with pytest.raises(PlanError, match="no case is likelier than 1/23"):
        few.ask()
    enough = pool_audit(
        pool, threshold=Q, claim="literal", policy=Always(None, items=np.arange(460) < 23)
    )
    enough.tell(enough.ask(), 1)
    with pytest.raises(
        PlanError, match="needs 23"
    ):  # one is used: 5 % of what remains would be 22, and is too few
        enough.ask()


def test_literal_scores_are_tested_against_the_threshold_itself():
    audit = pool_audit(blocks(), threshold=Q, claim="literal")
    for score in (1, 1, 0):
        audit.tell(audit.ask(), score)
    assert {r.thresholds for r in audit.rounds} == {(Q, Q)}
    assert audit.counts.below.sum() == 0


def test_rates_ask_again_and_keep_the_threshold():
    pool = Pool.from_arrays(range(4))
    audit = pool_audit(pool, threshold=Q, claim="rates", policy=Always(), budget=60, alpha=1e-9)
    audit.run(lambda _: 1.0)
    ids = [r.query.id for r in audit.rounds]
    assert len(ids) == 60
    assert set(ids) == set(pool.ids)
    assert {r.thresholds for r in audit.rounds} == {(Q, Q)}


def test_generated_cases_are_fresh_draws_of_their_category():
    pool = Pool.from_arrays(range(40), {"topic": ["a", "b"] * 20}, generated=True)
    assert pool.groups == ("topic=a", "topic=b")
    for policy in ("uniform", "stratified"):
        audit = pool_audit(pool, threshold=Q, policy=policy, warm_up=4, alpha=1e-12)
        audit.run(lambda query: float(query.group == "topic=a"))
        assert {r.thresholds for r in audit.rounds} == {(Q, Q)}
        assert len({r.query.id for r in audit.rounds}) == 40
        assert "newly generated cases" in audit.null


def test_a_literal_claim_on_generated_cases_chooses_among_one_of_each_category():
    pool = Pool.from_arrays(range(90), {"topic": np.repeat(list("abcdefghi"), 10)}, generated=True)

    @dataclass(frozen=True)
    class First:
        name: str = "first"

        def ask(self, history, _rng):
            assert (history.members & history.available).sum(axis=1).tolist() == [1] * 9
            items = np.zeros_like(history.available)
            items[np.flatnonzero(history.available)[0]] = True
            return Query(items=items, claim=True)

    audit = pool_audit(pool, threshold=Q, claim="literal", policy=First(), alpha=1e-12)
    audit.run(lambda _: 1.0)
    assert audit.labelled == 10  # all nine are used up each time
    with pytest.raises(PlanError, match="needs 2"):
        pool_audit(pool, threshold=Q, claim="literal", epsilon=0.12, policy=First()).ask()


def test_paper_sampling_says_so():
    pool = blocks()
    audit = run(pool, sampling="paper", burn_in=1, budget=30)
    assert {r.thresholds for r in audit.rounds} == {(Q, Q)}
    assert audit.certificate().to_dict()["guaranteed"] is False
    assert "keeps no error rate" in audit.null


def test_paper_sampling_reproduces_the_golden_values(shared):
    golden = json.loads((shared / "savi_golden_public.json").read_text())
    names = {
        "lr": ("LR", "LR"),
        "sr-lr": ("SR-LR", "LR"),
        "lr-ui": ("LR-UI", "LR-UI"),
        "sr-lr-ui": ("SR-LR-UI", "LR-UI"),
    }
    compared = 0
    for sequence in golden["sequences"]:
        p, scores = sequence["params"], [*sequence["init_scores"], *sequence["scores"]]
        for expected in sequence["runs"]:
            for bet, (model, auditor) in names.items():
                audit = pool_audit(
                    Pool.from_arrays(range(len(scores))),
                    threshold=p["q"],
                    burn_in=expected["m"],
                    alpha=1e-280,
                    policy=Always(),
                    bet=bet,
                    sampling="paper",
                    warm_up=len(sequence["init_scores"]),
                    alternative=p["model_alt"],
                    auditor_alternative=p["auditor_alt"],
                    eta=p["eta"],
                    grid=sequence["grids_used"]["model"],
                    auditor_grid=sequence["grids_used"]["auditor"],
                    budget=len(sequence["init_scores"]) + 60,
                )
                audit.run(lambda query, scores=scores: scores[query.step - 1])
                ours = np.array([r.log_e for r in audit.rounds if r.query.stake])
                np.testing.assert_allclose(
                    ours[:, 0], expected["model"][model][: len(ours)], atol=1e-9
                )
                np.testing.assert_allclose(
                    ours[:, 1], expected["auditor"][auditor][: len(ours)], atol=1e-9
                )
                compared += len(ours)
    assert compared > 3000


# ---------------------------------------- --- type-I error where a naive audit has none to speak of


@dataclass(frozen=True)
class Lucky:
    """Knows that every group is exactly at the threshold, and bets where luck has left the fewest
    passes.
    """

    bar: float = 0.75
    name: str = "lucky"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        means = np.where(history.open & history.strata, _mean_of_rest(history), np.inf)
        group = int(means.argmin())
        if not np.isfinite(means[group]):
            return None
        if means[group] <= self.bar:
            return Query(history.groups[group], claim=True)
        return Query(
            history.groups[int(rng.choice(np.flatnonzero(np.isfinite(means))))], stake=False
        )


def _mean_of_rest(history: History):
    sizes = history.members.sum(axis=1)
    labels = history.members[:, history.positions]
    with np.errstate(invalid="ignore", divide="ignore"):
        return (Q * sizes - labels @ history.scores) / (sizes - labels.sum(axis=1))


def count_depleted_errors(sampling, replicates, bet="sr-lr-ui"):
    """Spec 6c (ii): 20 groups of 20, each exactly at .85, tested only once their rest is at .75 or
    less.
    """
    errors = 0
    for seed in range(replicates):
        pool = blocks(20, 20, 17, seed=seed)
        audit = run(pool, policy=Lucky(), sampling=sampling, epsilon=0.05, seed=seed, bet=bet)
        errors += audit.verdict == "failure mode found"
    return errors


def test_depleted_groups_do_not_fool_the_audit():
    assert (
        count_depleted_errors("paper", 3) == 3
    )  # the test can fail: with the threshold itself nearly every audit is wrong
    assert count_depleted_errors("guaranteed", 4) <= 1  # alpha .05: two or more have chance .014


@pytest.mark.slow
@pytest.mark.parametrize("bet", ["lr", "lr-ui", "sr-lr", "sr-lr-ui", "joint-lr-ui", None])
def test_depleted_groups_in_numbers(bet):
    replicates = 150
    assert count_depleted_errors(
        "guaranteed", replicates, bet
    ) <= replicates * 0.05 + 2.6 * math.sqrt(replicates * 0.05 * 0.95)


@dataclass(frozen=True)
class KnowsWorst:
    """Knows the 17 cases that fail, names them, and fills up with others to the size it is told
    to.
    """

    size: int
    name: str = "knows worst"

    def ask(self, history: History, _rng: np.random.Generator) -> Query | None:
        among = np.flatnonzero(history.available)
        items = np.zeros_like(history.available)
        items[among[: self.size]] = True  # ids sort the failing cases first
        return Query(items=items, claim=True)


def worst(sampling, size, replicates, budget=120):
    """Spec 6c (iii): 2,268 cases of which 17 fail for certain, so that the worst 5 % are right 97
    times in 114.
    """
    pool = Pool.from_arrays([f"{i:04d}" for i in range(2268)], scores=np.arange(2268) >= 17)
    errors = 0
    for seed in range(replicates):
        policy = KnowsWorst(size)
        audit = run(
            pool,
            policy=policy,
            claim="literal",
            sampling=sampling,
            seed=seed,
            budget=budget,
            bet="sr-lr-ui",
        )
        errors += audit.verdict == "failure mode found"
    return errors


def test_single_cases_do_not_fool_the_audit():
    assert worst("paper", 1, 3) == 3
    with pytest.raises(PlanError, match="needs 114"):
        worst("guaranteed", 1, 1)
    assert worst("guaranteed", 114, 12) <= 3  # four or more have chance .002


def test_draws_with_replacement_keep_the_error_where_answers_vary():
    """Spec 6c (iii), last row but two: conditional thresholds would be wrong for rates, and are not
    used.
    """
    pool, errors = blocks(4, 30), 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        audit = pool_audit(
            pool, threshold=Q, claim="rates", policy="stratified", seed=seed, budget=100, burn_in=2
        )
        audit.run(lambda _, rng=rng: float(rng.random() < Q))
        errors += audit.verdict == "failure mode found"
    assert errors <= 3


# ------------------------------------------------- --- the record: resuming, kills, other processes

SETTINGS = {
    "threshold": Q,
    "policy": "stratified",
    "seed": 5,
    "burn_in": 10,
    "alpha": 1e-9,
    "budget": 40,
    "warm_up": 3,
}


def hard_pool():
    rng = np.random.default_rng(4)
    grades = np.round(rng.random(60), 3)
    return Pool.from_arrays(
        [f"c{i:04d}" for i in range(60)], {"in": ["a", "b", "c"] * 20}, scores=grades
    )


def reference(pool):
    audit = pool_audit(pool, **SETTINGS)
    audit.run(replay(pool))
    return audit


def test_resuming_is_bit_identical(tmp_path):
    pool = hard_pool()
    whole = reference(pool)
    for step in range(100):
        audit = pool_audit(pool, ledger=tmp_path / "audit.db", **SETTINGS)
        query = audit.ask()
        if step % 3 == 2 or query is None:  # now and then, leave after asking
            if query is None:
                break
            continue
        audit.tell(query, pool.recorded[pool.position[query.id]])
    assert audit.log_wealth == whole.log_wealth
    assert [r.to_dict() for r in audit.rounds] == [r.to_dict() for r in whole.rounds]


def live_and_die(pool, ledger, log, seconds):
    """Audit in a child process that is killed without warning; whatever `tell` returned from is in
    the log.

    Whether it was killed, and had not come to its end before.
    """
    child = os.fork()
    if child == 0:
        try:
            out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            audit, answer = pool_audit(pool, ledger=ledger, **SETTINGS), replay(pool)
            while (query := audit.ask()) is not None:
                audit.tell(query, answer(query))
                os.write(out, f"{query.step} {query.id}\n".encode())
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def kill_until_the_end(pool, folder, rng, most):
    """One audit, killed again and again until it is done or was killed ``most`` times; how often it
    was.
    """
    ledger, log = folder / "audit.db", folder / "told.txt"
    kills = 0
    while kills < most and live_and_die(pool, ledger, log, rng.uniform(0.005, 0.1)):
        kills += 1
    audit = pool_audit(pool, ledger=ledger, **SETTINGS)
    audit.run(replay(pool))
    events = [(e.body["step"], e.body["id"]) for e in Ledger(ledger).events("audit_told")]
    assert len(set(events)) == len(events) == audit.labelled  # none twice
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    log_lines = [(int(step), name) for step, name in (line.split() for line in lines)]
    assert set(log_lines) <= set(events)  # none lost
    assert len(log_lines) == len(set(log_lines))
    assert [r.to_dict() for r in audit.rounds] == [r.to_dict() for r in reference(pool).rounds]
    assert verify_certificate(audit.certificate(), pool=pool, policy=True).reproduces
    return kills


def kill(times, tmp_path):
    rng, kills, part = random.Random(times), 0, 0
    while kills < times:
        folder = tmp_path / str(part)
        folder.mkdir()
        kills += kill_until_the_end(hard_pool(), folder, rng, times - kills)
        part += 1
    return part


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    kill(20, tmp_path)


@pytest.mark.slow
def test_two_hundred_kills(tmp_path):
    assert (
        kill(200, tmp_path) > 0
    )  # how many audits two hundred kills take to their end is the machine's affair


def test_two_processes_ask_the_same_and_only_one_tells(tmp_path):
    pool, ledger = hard_pool(), tmp_path / "audit.db"
    ours, theirs = (pool_audit(pool, ledger=ledger, **SETTINGS) for _ in range(2))
    mine, yours = ours.ask(), theirs.ask()
    assert (mine.step, mine.id) == (yours.step, yours.id)
    ours.tell(mine, 0.25)
    with pytest.raises(InputError, match=r"has a score already; its score 0\.25 stands"):
        theirs.tell(yours, 0.75)
    assert theirs.ask().step == 2
    theirs.tell(theirs.ask(), 1)
    assert ours.ask().step == 3
    assert ours.log_wealth == theirs.log_wealth


def test_the_first_of_two_scores_stands_even_in_a_race(tmp_path):
    pool, ledger = hard_pool(), tmp_path / "audit.db"
    ours, theirs = (pool_audit(pool, ledger=ledger, **SETTINGS) for _ in range(2))
    mine, yours = ours.ask(), theirs.ask()
    theirs.catch_up = lambda: None  # as if both had looked before either wrote
    ours.tell(mine, 0.25)
    with pytest.raises(LedgerError, match=r"scored query 1 first; its score 0\.25 stands"):
        theirs.tell(yours, 0.75)
    assert pool_audit(pool, ledger=ledger, **SETTINGS).rounds[0].score == 0.25


def test_other_settings_need_a_reason(tmp_path):
    pool, ledger = hard_pool(), tmp_path / "audit.db"
    pool_audit(pool, ledger=ledger, **SETTINGS).ask()
    for change in (
        {"seed": 6},
        {"burn_in": 11},
        {"threshold": 0.8},
        {"bet": "lr-ui"},
        {"policy": "uniform"},
    ):
        with pytest.raises(LedgerError, match="holds an audit of these cases with other settings"):
            pool_audit(pool, ledger=ledger, **{**SETTINGS, **change})
    again = pool_audit(
        pool, ledger=ledger, reopen="the first labeller left", **{**SETTINGS, "seed": 6}
    )
    opening = again.record.ledger.events("audit_opened")[-1].body
    assert (opening["reason"], opening["before"]) == ("the first labeller left", 1)
    assert again.certificate().caution == (
        "this is one of 2 audits of these cases: the chance that any of their verdicts is wrong is "
        "at most 2e-07%, if none was chosen by what an earlier one showed"
    )
    assert "his is one of 2 audits of these cases: " in again.certificate().to_markdown()
    other = Pool.from_arrays(["x", "y", "z"])
    assert (
        pool_audit(other, ledger=ledger, **SETTINGS).labelled == 0
    )  # other cases are another matter


def test_two_models_are_two_audits_of_the_same_cases(tmp_path):
    pool, ledger = hard_pool(), tmp_path / "audit.db"
    first = pool_audit(pool, ledger=ledger, model="first", **SETTINGS)
    first.tell(first.ask(), 0.0)
    second = pool_audit(pool, ledger=ledger, model="second", **SETTINGS)
    assert (first.labelled, second.labelled) == (1, 0)
    assert second.certificate().ledger.audits == 1
    assert pool_audit(pool, ledger=ledger, model="first", **SETTINGS).labelled == 1
    certificate = first.certificate()
    assert certificate.plan.model == "first"
    assert msgspec.json.decode(certificate.to_json(), type=Certificate) == certificate
    assert first.plan.seal("") != second.plan.seal("")
    assert "model" not in SequentialPlan(threshold=0.5).settings
    with pytest.raises(LedgerError, match="holds an audit of these cases with other settings"):
        pool_audit(pool, ledger=ledger, model="first", **{**SETTINGS, "seed": 6})


def test_a_certificate_states_the_level_over_all_audits_of_its_cases(tmp_path):
    pool, ledger = hard_pool(), tmp_path / "audit.db"
    settings = {**SETTINGS, "alpha": 0.4, "budget": 5}
    audits = [
        pool_audit(pool, ledger=ledger, reopen="again", **{**settings, "seed": seed})
        for seed in range(3)
    ]
    certificate = audits[1].certificate()
    assert certificate.ledger.audits == 3
    assert certificate.caution == (
        "no error rate is guaranteed any more, after 3 audits of these cases"
    )
    assert verify_certificate(certificate, ledger=ledger).reproduces
    alone = msgspec.structs.replace(
        certificate,
        ledger=msgspec.structs.replace(certificate.ledger, audits=1, level=None),
    )
    check = verify_certificate(alone, ledger=ledger)
    assert not check.reproduces
    assert "has 3 audits of these cases" in check.ledger
    text = certificate.to_json()
    assert Certificate.from_dict(json.loads(text)) == certificate
    single = pool_audit(pool, ledger=tmp_path / "other.db", **settings).certificate()
    assert single.caution == ""
    assert "audits" not in json.loads(single.to_json())["ledger"]


def test_a_ledger_that_a_certificate_names_is_not_opened(tmp_path, monkeypatch):
    audit = pool_audit(hard_pool(), ledger=tmp_path / "audit.db", **SETTINGS)
    audit.ask()
    certificate = audit.certificate()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        url = f"postgresql+psycopg://127.0.0.1:{listener.getsockname()[1]}/audits"
        place = msgspec.structs.replace(certificate.ledger, path=url)
        monkeypatch.setenv("PGPASSWORD", "a secret")
        monkeypatch.delenv("GROUNDFAULT_LEDGER")
        check = verify_certificate(msgspec.structs.replace(certificate, ledger=place))
        with pytest.raises(TimeoutError):
            listener.accept()
    assert "no ledger is opened because a certificate names it" in check.ledger
    monkeypatch.setenv("GROUNDFAULT_LEDGER", str(tmp_path / "audit.db"))
    assert "holds these rounds" in verify_certificate(certificate).ledger


# -------------------------------------------------------------------------------------- --- attacks


def test_telling_what_was_not_asked_is_refused():
    audit = pool_audit(blocks(), threshold=Q)
    query = audit.ask()
    for forged, message in (
        (replace(query, step=2), "query 2 was not asked; query 1 waits"),
        (replace(query, id="c0001" if query.id != "c0001" else "c0002"), "query 1 asked for case"),
        (replace(query, audit="0" * 64), "not of this audit"),
        (Query("in=g0", step=1, id=query.id), "not of this audit"),
        ("c0001", "not of this audit"),
        (pool_audit(blocks(), threshold=Q, seed=1).ask(), "not of this audit"),
    ):
        with pytest.raises(InputError, match=message) as error:
            audit.tell(forged, 0)
        assert "\n" not in str(error.value)
    assert audit.labelled == 0
    audit.tell(query, 0)
    with pytest.raises(InputError, match=r"query 1 \(case .*\) has a score already"):
        audit.tell(query, 1)
    with pytest.raises(InputError, match="query 2 was not asked; no query is open"):
        audit.tell(replace(query, step=2), 1)
    assert [r.score for r in audit.rounds] == [0.0]


@pytest.mark.parametrize("score", [-0.01, 1.01, float("nan"), float("inf"), "1", [1], object()])
def test_a_score_outside_the_unit_interval_changes_nothing(score, tmp_path):
    audit = pool_audit(blocks(), threshold=Q, ledger=tmp_path / "audit.db")
    query = audit.ask()
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        audit.tell(query, score)
    assert [e.kind for e in Ledger(tmp_path / "audit.db").events()] == [
        "audit_opened",
        "audit_asked",
    ]
    assert audit.ask().id == query.id


@pytest.fixture
def unfinished_audit(tmp_path):
    pool = hard_pool()
    audit = pool_audit(pool, ledger=tmp_path / "audit.db", **SETTINGS)
    answer = replay(pool)
    for _ in range(8):
        audit.tell(query := audit.ask(), answer(query))
    return pool, tmp_path / "audit.db", audit


def test_an_edited_ledger_is_refused(unfinished_audit):
    pool, path, audit = unfinished_audit
    with sqlite3.connect(path) as book:
        table = book.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()[0]
        (body,) = book.execute(f"SELECT body FROM {table} WHERE kind = 'audit_told'").fetchone()
        change = json.dumps({**json.loads(body), "score": 0.0})
        book.execute(f"DROP TRIGGER IF EXISTS {table}_update")
        for (name,) in book.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            book.execute(f'DROP TRIGGER "{name}"')
        book.execute(f"UPDATE {table} SET body = ? WHERE body = ?", (change, body))
    with pytest.raises(LedgerError):
        pool_audit(pool, ledger=path, **SETTINGS)
    with pytest.raises(LedgerError):
        audit.certificate()


def rewrite(path, new, change):
    """The same events in a new ledger with an unbroken chain, after a change."""
    book = Ledger(new)
    events = [(e.kind, dict(e.body)) for e in Ledger(path).events()]
    for kind, body in change(events):
        book.append(kind, body)
    return new


def _edit(index, **changes):
    return lambda events: [
        (k, {**b, **changes} if i == index else b) for i, (k, b) in enumerate(events)
    ]


def _swap(i, j):
    def change(events):
        events[i], events[j] = events[j], events[i]
        return events

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_edit(9, id="c0000"), r"does not reproduce \(id"),
        (_edit(9, group="in=c"), r"does not reproduce"),
        (_edit(9, thresholds=[0.99, 0.99]), r"does not reproduce \(thresholds"),
        (_edit(9, if_fail=[3.0, 0.0]), r"does not reproduce \(if_fail"),
        (_edit(3, stake=True), r"does not reproduce"),
        (_edit(9, group="nowhere"), "does not follow the plan"),
        (_edit(9, items="zz"), "was altered"),
        (_edit(10, score=7), "was altered"),
        (_edit(10, id="c0000"), "asks for"),
        (_swap(8, 10), "goes on with round 5 where 4 is due"),
        (lambda events: events[:8] + events[9:], "goes on with round 5 where 4 is due"),
        (lambda events: events[:7] + events[8:], "goes on with round 4 where 4 is due"),
        (lambda events: events[:7] + events[9:], "goes on with round 5 where 4 is due"),
    ],
)
def test_a_rewritten_ledger_does_not_reproduce(unfinished_audit, tmp_path, change, message):
    pool, path, _ = unfinished_audit
    new = rewrite(path, tmp_path / "new.db", change)
    Ledger(new).check()  # the chain alone finds nothing wrong
    with pytest.raises(LedgerError, match=message) as error:
        pool_audit(pool, ledger=new, **SETTINGS)
    assert "\n" not in str(error.value)


def test_a_certificate_finds_a_score_that_was_rewritten_or_cut_off(unfinished_audit, tmp_path):
    _, path, audit = unfinished_audit
    certificate = audit.certificate()
    assert verify_certificate(certificate).reproduces
    flip = _edit(18, score=0.0)
    for change in (lambda events: flip(events), lambda events: events[:-2]):
        new = rewrite(path, tmp_path / f"{random.random()}.db", change)
        check = verify_certificate(certificate, ledger=new)
        assert not check.reproduces
        assert "does not bear the certificate out" in check.ledger


# --------------------------------------------------------------------------------- --- certificates


def test_a_certificate_is_recomputed_from_itself(unfinished_audit, tmp_path):
    pool, _, audit = unfinished_audit
    text = audit.certificate().to_json(tmp_path / "certificate.json")
    data = json.loads(text)
    assert {
        "verdict",
        "reason",
        "null",
        "plan",
        "seal",
        "pool",
        "rounds",
        "ledger",
        "log_wealth",
    } <= set(data)
    assert data["seal"] == audit.plan.seal(pool.hash)
    assert verify_certificate(tmp_path / "certificate.json").reproduces
    assert verify_certificate(tmp_path / "certificate.json", pool=pool, policy=True).reproduces
    other = verify_certificate(tmp_path / "certificate.json", pool=blocks())
    assert not other.reproduces
    assert "these are other cases" in other.differences[0]


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("verdict",), "audit passed"),
        (("log_wealth", 0), 3.5),
        (("rounds", 4, "score"), 0.123),
        (("rounds", 5, "log_e", 0), 1.0),
        (("rounds", 5, "thresholds", 1), 0.5),
        (("rounds", 6, "id"), "c0000"),
        (("rounds", 6, "claim"), None),
        (("plan", "seed"), 6),
        (("plan", "alpha"), 0.05),
        (("groups", 1, "total"), 0.0),
        (("null",), "all is well"),
        (("seal",), "0" * 64),
    ],
)
def test_a_certificate_that_was_touched_does_not_reproduce(
    unfinished_audit, tmp_path, where, value
):
    data = json.loads(unfinished_audit[2].certificate().to_json())
    part = data
    for key in where[:-1]:
        part = part[key]
    part[where[-1]] = (not part[where[-1]]) if value is None else value
    (tmp_path / "touched.json").write_text(json.dumps(data))
    check = verify_certificate(tmp_path / "touched.json", ledger=unfinished_audit[1])
    assert not check.reproduces
    assert check.differences or "another record: rounds[6]" in check.ledger


def test_a_certificate_of_altered_groups_is_refused(unfinished_audit, tmp_path):
    data = json.loads(unfinished_audit[2].certificate().to_json())
    data["pool"]["groups"]["in=a"] = data["pool"]["groups"]["in=b"]
    (tmp_path / "touched.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="was altered"):
        verify_certificate(tmp_path / "touched.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InputError, match="is not a certificate"):
        verify_certificate(tmp_path / "other.json")


def test_another_choice_than_the_policys_is_seen(tmp_path):
    """A record that reproduces may still have been steered by hand; asking the policy again
    tells.
    """
    pool = hard_pool()

    @dataclass(frozen=True)
    class Steered:
        name: str = "stratified"

        def ask(self, _history, _rng):
            return Query("in=a")

    audit = pool_audit(
        pool, policy=Steered(), **{k: v for k, v in SETTINGS.items() if k != "policy"}
    )
    answer = replay(pool)
    for _ in range(4):
        audit.tell(query := audit.ask(), answer(query))
    assert verify_certificate(audit.certificate()).reproduces
    check = verify_certificate(audit.certificate(), policy=True)
    assert not check.reproduces
    assert "would have looked elsewhere" in check.differences[0]


def test_an_audit_is_read_back_from_its_ledger_alone(unfinished_audit):
    pool, path, audit = unfinished_audit
    audit.ask()
    again = SequentialAudit.from_ledger(path)
    assert (again.log_wealth, again.labelled, again.pool.hash) == (
        audit.log_wealth,
        8,
        pool.hash,
    )
    assert again.open.query.id == audit.open.query.id
    with pytest.raises(InputError, match="holds no audit"):
        SequentialAudit.from_ledger(path, seal="zz")


# ------------------------------------------------------------------------------------- --- policies


@pytest.mark.parametrize("name", ["uniform", "stratified", "oracle:in=b", "prelearned"])
def test_policies_are_pure_functions_of_history_and_generator(name):
    pool = hard_pool()
    audits = [
        pool_audit(pool, threshold=0.3, policy=name, seed=2, alpha=1e-12, warm_up=5)
        for _ in range(2)
    ]
    answer = replay(pool)
    for _ in range(12):
        history = audits[0].counts.make_history()
        queries = [audit.choose(audit.policy) for audit in audits]
        assert queries[0].group == queries[1].group
        assert isinstance(audits[0].policy, Policy)
        with pytest.raises(ValueError, match="read-only"):
            history.available[0] = False
        for audit in audits:
            audit.tell(query := audit.ask(), answer(query))


def test_stratified_claims_what_looks_bad():
    pool = blocks(size=50, passes=[50, 50, 10])
    audit = run(pool, alpha=1e-6)
    claims = {r.query.group for r in audit.rounds if r.query.claim}
    assert claims == {"in=g2"}


def test_prelearned_finds_the_planted_group_from_the_warm_up():
    audit = run(blocks(groups=4, size=60, passes=[58, 58, 30, 58]), policy="prelearned")
    assert (audit.plan.warm_up, audit.verdict) == (32, "failure mode found")
    assert {r.query.group for r in audit.rounds[32:]} == {"in=g2"}
    with pytest.raises(PlanError, match="has 0 scores to learn from"):
        pool_audit(blocks(), threshold=Q, policy="prelearned", warm_up=0).ask()


def test_one_prelearned_policy_serves_audits_of_other_warm_ups(monkeypatch):
    pool = blocks(groups=4, size=60, passes=[58, 58, 30, 58])
    plans = [{"seed": 0}, {"seed": 1}, {"seed": 1, "warm_up": 40}, {"seed": 0}]
    alone = [run(pool, policy=learned.PreLearned(), **{"warm_up": 32, **one}) for one in plans]
    predict, calls = learned.predict_by_ridge, []

    def count(history, rounds):
        calls.append(len(rounds))
        return predict(history, rounds)

    monkeypatch.setattr(learned, "predict_by_ridge", count)
    policy = learned.PreLearned()
    shared = [run(pool, policy=policy, **{"warm_up": 32, **one}) for one in plans]
    for one, other in zip(shared, alone, strict=True):
        assert [r.query.id for r in one.rounds] == [r.query.id for r in other.rounds]
        assert (one.verdict, one.labelled) == (other.verdict, other.labelled)
    assert calls == [32, 32, 40, 32]


def test_prelearned_names_the_lowest_predictions_of_a_literal_claim():
    rng = np.random.default_rng(0)
    position = rng.normal(size=(400, 5))
    pool = Pool.from_arrays(
        [f"{i:03d}" for i in range(400)], embedding=position, scores=position[:, 0] > -1
    )
    audit = run(pool, policy="prelearned", claim="literal", warm_up=60)
    assert audit.verdict == "failure mode found"
    assert all(r.query.items.sum() == 20 for r in audit.rounds[60:])


def test_policies_on_the_shared_pool(shared):
    folder = shared / "savi_pool"
    table = pl.read_parquet(folder / "pool_a.parquet").join(
        pl.read_parquet(folder / "labels_a.parquet"), on="question_id"
    )
    verdicts = {"Large": 0, "None": 0}
    for setting in verdicts:
        for seed in (1, 2, 3):
            pool = Pool.from_table(
                table, id="question_id", groups=["domain"], scores=f"{setting}_s{seed:03d}"
            )
            audit = run(pool, policy="oracle:domain=Chemistry", seed=seed, budget=250)
            verdicts[setting] += audit.verdict == "failure mode found"
            assert setting != "Large" or audit.labelled <= 20
            assert setting != "None" or audit.verdict == "audit passed"
    assert verdicts == {"Large": 3, "None": 0}


def test_unknown_policies_and_groups():
    pool = blocks()
    with pytest.raises(PlanError, match="no policy is named 'best'"):
        pool_audit(pool, threshold=Q, policy="best")
    with pytest.raises(PlanError, match="needs an argument"):
        pool_audit(pool, threshold=Q, policy="oracle")
    with pytest.raises(PlanError, match="takes nothing after a colon"):
        pool_audit(pool, threshold=Q, policy="uniform:3")
    with pytest.raises(PlanError, match="there is no declared group"):
        pool_audit(pool, threshold=Q, policy="oracle:in=g9").ask()


# ---------------------------------------------------------------------------------------- --- pools


def table(**columns):
    return pl.DataFrame(
        {"id": ["a", "b", "c", "d"], "lang": ["de", "fr", "de", None], "n": [1, 2, 3, 4], **columns}
    )


def test_groups_from_columns_combinations_and_rules():
    frame = table(level=[1, 1, 2, 2])
    pool = Pool.from_table(frame, id="id", groups=["level", Candidate("long", "n > 2")])
    assert pool.groups == (ALL, "level=1", "level=2", "long")
    assert pool.members.astype(int).tolist() == [[1] * 4, [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    wide = pl.DataFrame({"a": ["x", "y"] * 8, "b": ["u", "u", "v", "v"] * 4})
    assert Pool.from_table(wide, groups=["a*b"]).groups[1:] == (
        "a=x, b=u",
        "a=x, b=v",
        "a=y, b=u",
        "a=y, b=v",
    )


def test_cases_without_a_value_are_a_group():
    wide = pl.DataFrame({"lang": ["de", None, "de", None, "de", None]})
    assert Pool.from_table(wide, groups=["lang"]).groups == (ALL, "lang is missing", "lang=de")


@pytest.mark.parametrize("embedding", ["e*", ["e1", "e2"], "vector", "matrix", "file"])
def test_embeddings_from_columns_lists_matrices_and_files(embedding, tmp_path):
    values = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]
    frame = table(e1=[v[0] for v in values], e2=[v[1] for v in values], vector=values)
    path = tmp_path / "embedding.parquet"
    frame.select("id", "e1", "e2").reverse().write_parquet(path)
    source = (
        {"matrix": np.array(values), "file": str(path)}.get(embedding, embedding)
        if isinstance(embedding, str)
        else embedding
    )
    pool = Pool.from_table(frame, id="id", embedding=source)
    np.testing.assert_array_equal(pool.embedding, values)
    assert pool.hash != Pool.from_table(frame, id="id").hash


def test_a_pool_from_evidence():
    evidence = Evidence.from_table(table(error=[0, 1, 0, 1]), id="id", outcome="error")
    pool = Pool.from_evidence(evidence, groups=[Candidate("long", "n > 2")])
    assert pool.recorded.tolist() == [1, 0, 1, 0]
    assert "error" not in pool.case(0)
    several = Evidence.from_table(
        pl.DataFrame({"id": ["a", "a"], "model": ["x", "y"], "error": [0, 1]}),
        id="id",
        model="model",
        outcome="error",
    )
    with pytest.raises(InputError, match="several rows an example"):
        Pool.from_evidence(several)


def test_recorded_scores_are_neither_shown_nor_hashed():
    pools = [
        Pool.from_table(table(score=s), id="id", scores="score")
        for s in ([1, 0, 1, 1], [0, 0, 0, 0])
    ]
    assert pools[0].hash == pools[1].hash
    assert "score" not in pools[0].case(0)
    assert "score" not in pool_audit(pools[0], threshold=Q).ask().case


def test_an_outline_gives_the_pool_back():
    pool = hard_pool()
    again = Pool.from_outline(json.loads(json.dumps(pool.outline())))
    assert again.hash == pool.hash
    np.testing.assert_array_equal(again.members, pool.members)


# ------------------------------------------------------------------------------------ --- bad input

BAD_POOLS = {
    "empty": (lambda: Pool.from_arrays([]), "pool is empty"),
    "empty table": (lambda: Pool.from_table(table().clear(), id="id"), "pool is empty"),
    "duplicate ids": (lambda: Pool.from_arrays(["a", "b", "a"]), "'a'; ids must be unique"),
    "ids that become the same": (lambda: Pool.from_arrays([1, "1"]), "ids must be unique"),
    "missing id": (
        lambda: Pool.from_table(table(k=["a", None, "c", "d"]), id="k"),
        "every case needs an id",
    ),
    "no such column": (
        lambda: Pool.from_table(table(), id="id", groups=["topic"]),
        "no column 'topic'",
    ),
    "NaN in the embedding": (
        lambda: Pool.from_arrays(["a", "b"], embedding=[[1.0], [float("nan")]]),
        "the embedding holds nan in row 1, column 0",
    ),
    "NULL in the embedding": (
        lambda: Pool.from_table(table(e=[1.0, None, 2, 3]), id="id", embedding="e"),
        "the embedding holds nan in row 1",
    ),
    "embedding of another length": (
        lambda: Pool.from_arrays(["a", "b"], embedding=[[1.0]]),
        r"shape \(1, 1\)",
    ),
    "embedding of a missing text": (
        lambda: Pool.from_table(table(), id="id", embedding="lang"),
        "row 3 is missing",
    ),
    "no embedding": (
        lambda: Pool.from_table(table(), id="id", embedding="nowhere"),
        "no column, and there is no file",
    ),
    "score above 1": (
        lambda: Pool.from_table(table(s=[0, 1, 2, 1]), id="id", scores="s"),
        r"the score 2; .*\[0, 1\]",
    ),
    "score of words": (lambda: Pool.from_table(table(), id="id", scores="lang"), "numbers in"),
    "too many levels": (
        lambda: Pool.from_table(table(), id="id", groups=["n"]),
        "4 levels in 4 cases",
    ),
    "rule that is not boolean": (
        lambda: Pool.from_table(table(), groups=[Candidate("x", "n + 1")]),
        "not true or false",
    ),
    "rule without an answer": (
        lambda: Pool.from_table(table(), groups=[Candidate("x", "lang = 'de'")]),
        "neither true",
    ),
    "group without cases": (
        lambda: Pool.from_table(table(), groups=[Candidate("x", "n > 9")]),
        "has no cases",
    ),
    "one name twice": (lambda: Pool.from_arrays(["a"], {ALL: [True]}), "two groups are named"),
    "generated without category": (
        lambda: Pool.from_arrays(["a", "b"], generated=True),
        "one category each",
    ),
}


@pytest.mark.parametrize("case", BAD_POOLS)
def test_bad_pools(case):
    make, message = BAD_POOLS[case]
    with pytest.raises(InputError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


BAD_PLANS = {
    "threshold 0": ({"threshold": 0.0}, "threshold=0 must lie strictly between 0 and 1"),
    "threshold 1": ({"threshold": 1}, "strictly between"),
    "threshold NaN": ({"threshold": float("nan")}, "must be a number"),
    "threshold of words": ({"threshold": "high"}, "must be a number"),
    "alpha 1": ({"alpha": 1}, "alpha=1 must lie"),
    "burn-in 0": ({"burn_in": 0}, "burn_in must be a whole number from 2, not 0"),
    "burn-in 1": ({"burn_in": 1}, "from 2, not 1"),
    "half a burn-in": ({"burn_in": 2.5}, "whole number"),
    "epsilon 0": ({"epsilon": 0}, r"epsilon=0 must lie in \(0, 1\]"),
    "budget 0": ({"budget": 0}, "budget must be"),
    "warm-up and nothing else": ({"budget": 5, "warm_up": 5}, "has to be larger than warm_up"),
    "unknown bet": ({"bet": "all in"}, "bet must be one of"),
    "grid on the wrong side": ({"grid": [0.9]}, "below the threshold"),
    "auditor's grid on the wrong side": ({"auditor_grid": [0.6]}, "above the threshold"),
    "unknown claim": ({"claim": "all"}, "one of population, declared-groups, literal, rates"),
    "rates without end": ({"claim": "rates"}, "set budget"),
    "rates as in the paper": (
        {"claim": "rates", "sampling": "paper", "budget": 9},
        "without replacement",
    ),
    "population as in the paper": (
        {"claim": "population", "sampling": "paper"},
        "not of their population",
    ),
    "unknown setting": ({"colour": "red"}, "no setting 'colour'"),
    "negative seed": ({"seed": -1}, "seed must be .*, not -1"),
}


@pytest.mark.parametrize("case", BAD_PLANS)
def test_bad_plans(case, tmp_path):
    changes, message = BAD_PLANS[case]
    with pytest.raises(PlanError, match=message) as error:
        pool_audit(blocks(), ledger=tmp_path / "audit.db", **{"threshold": Q, **changes})
    assert "\n" not in str(error.value)
    assert not (tmp_path / "audit.db").exists()


def test_the_default_alternatives_are_the_papers_at_its_threshold():
    plan = SequentialPlan(threshold=0.85)
    paper = [0.6, 0.655, 0.71, 0.765, 0.82]
    np.testing.assert_allclose(plan.grid, [0.2, 0.4, *paper], atol=1e-15)
    preset = SequentialPlan(threshold=0.85, sampling="paper")
    np.testing.assert_allclose(preset.grid, paper, atol=1e-15)
    assert (preset.eta, preset.claim, preset.epsilon) == (0.1, "declared-groups", 0.05)
    np.testing.assert_allclose(plan.auditor_grid, [0.88, 0.91, 0.94], atol=1e-15)
    assert (plan.alternative, plan.auditor_alternative) == pytest.approx((0.82, 0.9), abs=1e-15)
    for q in (0.01, 0.5, 0.999):
        plan = SequentialPlan(threshold=q)
        assert (
            0
            < min(plan.grid)
            < max(plan.grid)
            < q
            < min(plan.auditor_grid)
            < max(plan.auditor_grid)
            < 1
        )
    assert SequentialPlan.from_settings(json.loads(json.dumps(plan.settings))).seal(
        "x"
    ) == plan.seal("x")


# -------------------------------------------------------------------- --- people, programs, outlook


def test_two_labellers_and_an_adjudicator(tmp_path):
    pool = blocks()
    audit = pool_audit(pool, threshold=Q, ledger=tmp_path / "audit.db")
    panel = AnnotatorPanel(audit, ["ann", "ben"], "cy")
    query = audit.ask()
    assert not panel.judge("ann", query, 1)
    assert panel.waiting() == ("ben",)
    with pytest.raises(InputError, match="ben judge first"):
        panel.judge("cy", query, 1)
    with pytest.raises(InputError, match="not on the panel"):
        panel.judge("eve", query, 1)
    resumed = pool_audit(
        pool, threshold=Q, ledger=tmp_path / "audit.db"
    )  # ben sits at another machine
    theirs = AnnotatorPanel(resumed, ["ann", "ben"], "cy")
    assert theirs.waiting() == ("ben",)
    assert theirs.judge("ben", resumed.ask(), 1)
    assert resumed.labelled == 1
    query = audit.ask()
    panel.judge("ann", query, 1)
    panel.judge("ben", query, 0)
    assert panel.waiting() == ("cy",)
    assert panel.judge("cy", query, 0)
    assert [r.score for r in audit.rounds] == [1.0, 0.0]
    assert panel.agreement() == (1, 2)
    certificate = audit.certificate()
    assert [r["labeller"] for r in certificate.to_dict()["reviews"]] == [
        "ann",
        "ben",
        "ann",
        "ben",
        "cy",
    ]
    assert verify_certificate(certificate).reproduces
    with pytest.raises(PlanError, match="name an adjudicator"):
        AnnotatorPanel(audit, ["ann", "ben"])


def test_a_program_gives_scores(tmp_path):
    script = tmp_path / "score.py"
    script.write_text(
        "import json, sys\ncase = json.load(sys.stdin)\nprint('note')\n"
        "print(1 if case['id'] > 'c0030' else 'fail')\n"
    )
    query = Query("g", step=1, id="c0050", audit="x")
    answer = command([os.sys.executable, str(script)])
    assert (answer(query), answer(replace(query, id="c0001"))) == (1.0, 0.0)
    for arguments, message in (
        (["/nonexistent/program"], "failed for case"),
        ([os.sys.executable, "-c", "raise SystemExit(3)"], "exit status 3"),
        ([os.sys.executable, "-c", "print('perhaps')"], "'perhaps'"),
        ([os.sys.executable, "-c", "pass"], "a number in"),
    ):
        with pytest.raises(InputError, match=message):
            command(arguments)(query)


def test_what_it_would_take_to_stop_is_what_it_takes():
    pool = blocks(size=60, passes=50)
    for score, index, verdict in ((0.0, 1, "failure mode found"), (1.0, 2, "audit passed")):
        audit = pool_audit(pool, threshold=Q, policy=Always("in=g1"), burn_in=5)
        audit.tell(audit.ask(), 1)
        audit.ask()
        run_length = count_to_stop(audit)[index]
        for _ in range(run_length):
            assert audit.verdict == "inconclusive"
            audit.tell(audit.ask(), score)
        assert audit.verdict == verdict


def test_prospects_before_a_label_is_spent():
    plan = SequentialPlan(threshold=Q, policy="oracle:in=g1", budget=60)
    pool = blocks(size=40)
    forecasts = forecast_stopping(
        pool, plan, burn_ins=(40, 10), failing="in=g1", at=(0.4,), replicates=6
    )
    assert [(p.world.startswith("everywhere"), p.burn_in) for p in forecasts] == [
        (True, 10),
        (True, 40),
        (False, 10),
        (False, 40),
    ]
    for p in forecasts:
        assert p.failure_rate + p.pass_rate + p.inconclusive_rate == pytest.approx(1)
        assert 1 <= p.labels[0] <= p.labels[1] <= p.labels[2] <= 60
    assert forecasts[2].failure_rate == 1.0
    assert forecasts[0].labels[1] <= forecasts[1].labels[1]
    assert advise_burn_in(forecasts, 0.05) == 10
    assert forecasts == forecast_stopping(
        pool, plan, burn_ins=(10, 40), failing="in=g1", at=(0.4,), replicates=6
    )


def test_the_script_of_shorter_burn_ins_is_what_the_policy_would_have_done():
    """`prospects` runs the longest burn-in and replays its queries for the others: exact, because
    draws share a seed.
    """
    pool, plan = blocks(size=40), SequentialPlan(threshold=Q, budget=60)
    alone = forecast_stopping(pool, plan, burn_ins=(10,), at=(0.5,), replicates=5)
    together = forecast_stopping(pool, plan, burn_ins=(10, 40), at=(0.5,), replicates=5)
    assert alone == [p for p in together if p.burn_in == 10]


# ------------------------------------------------------------------------------------ --- the shell


@pytest.fixture
def shell(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    topic = np.repeat(["a", "b", "c"], 40)
    frame = pl.DataFrame(
        {
            "id": [f"q{i:03d}" for i in range(120)],
            "topic": topic,
            "text": ["what \x1b[31mis\x1b[0m it?"] * 120,
        }
    ).with_columns(
        score=pl.Series((rng.random(120) < np.where(topic == "b", 0.4, 0.97)).astype(int))
    )
    frame.write_parquet(tmp_path / "pool.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GROUNDFAULT_LEDGER")

    def call(*arguments, text=None):
        return CliRunner().invoke(label, [str(a) for a in arguments], input=text)

    return call


POOL = ("pool.parquet", "--id", "id", "--groups", "topic", "--threshold", "0.85")


def test_run_status_and_certificate(shell, tmp_path):
    result = shell(
        "run",
        *POOL,
        "--policy",
        "oracle:topic=b",
        "--label",
        "file",
        "--certificate",
        "certificate.json",
    )
    assert result.exit_code == 0, result.output
    assert "failure mode found" in result.output
    assert "each of 4 declared groups has expected score 0.85 or more for new" in result.output
    assert verify_certificate(tmp_path / "certificate.json").reproduces
    again = shell("status")
    assert result.output.splitlines()[0] == again.output.splitlines()[0]
    data = json.loads(shell("status", "groundfault-ledger.db", "--json", "-").output)
    assert data["verdict"] == "failure mode found"
    assert (
        shell("run", *POOL, "--policy", "oracle:topic=b", "--label", "file", "--gate").exit_code
        == 1
    )


def test_asking_a_person_and_going_on_later(shell):
    first = shell(
        "run", *POOL, "--label", "ask", "--show", "text", "--cost", "2", text="p\nperhaps\nf\nq\n"
    )
    assert first.exit_code == 0, first.output
    assert "'perhaps'" in first.output
    assert "\x1b" not in first.output
    assert "score:" in first.output
    assert "cost 4.00" in first.output
    status = shell("status")
    assert "next: case" in status.output
    case = next(line.split()[2] for line in status.output.splitlines() if line.startswith("next"))
    second = shell("run", *POOL, "--label", "ask", text="u\nq\n")
    assert f"case {case}" in second.output
    assert "3 labelled" in second.output


def test_an_interruption_has_the_status_of_one_and_loses_nothing(shell, monkeypatch):
    cut_off = shell("run", *POOL, "--label", "ask", text="p\n")
    assert cut_off.exit_code == 130
    assert "stopped; your labels are saved" in cut_off.output

    def interrupt(query, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("groundfault.cli.labelling.ask", interrupt)
    again = shell("run", *POOL, "--label", "ask", "--gate")
    assert again.exit_code == 130
    assert "1 labelled" in again.output


def test_several_labellers_in_the_shell(shell):
    who = ("--labellers", "ann,ben", "--adjudicator", "cy", "--label", "ask")
    ann = shell("run", *POOL, *who, "--as", "ann", text="p\n")
    assert "waits for ben" in ann.output
    ben = shell("run", *POOL, *who, "--as", "ben", text="f\n")
    assert "waits for cy" in ben.output
    assert (
        "pass" not in ben.output.split("query 1")[1].split("score:")[0]
    )  # ben does not see what ann said
    cy = shell("run", *POOL, *who, "--as", "cy", "--cost", "2", text="f\n")
    assert "agreed on 0 of 1" in cy.output
    assert "cost 6.00" in cy.output  # three people judged one case


def test_a_bare_number_is_refused_and_the_last_label_taken_back(shell):
    typed = shell("run", *POOL, "--label", "ask", text="b\n1\n0\np\nb\nfailed\nq\n")
    assert typed.exit_code == 0, typed.output
    assert "your answer is 'b'" in typed.output
    assert "'1' can mean a pass or a failure: type p for passed, f for failed" in typed.output
    assert "'0' can mean a pass or a failure" in typed.output
    assert typed.output.count("(query 1)") == 2
    audit = SequentialAudit.from_ledger("groundfault-ledger.db")
    assert ([r.score for r in audit.rounds if r.closed], audit.corrections) == ([0.0], 1)


def test_an_old_outcome_is_not_shown(shell):
    result = shell("run", *POOL, "--label", "ask", "--scores", "text", text="q\n")
    assert "  score: " not in result.output
    assert "it may hold an outcome: text, score; --show" in result.output
    shown = shell("run", *POOL, "--label", "ask", "--show", "score", text="q\n").output
    assert "  score: " in shown


def test_a_person_is_not_shown_the_score_that_is_known(shell):
    result = shell("run", *POOL, "--label", "ask", "--scores", "text", text="q\n")
    assert "score:" in result.output
    assert "text:" not in result.output
    assert "text:" in shell("run", *POOL, "--label", "ask", text="q\n").output


def test_planning_in_the_shell(shell):
    result = shell(
        "plan",
        *POOL,
        "--failing-group",
        "topic=b",
        "--failing-rates",
        "0.3",
        "--replicates",
        "3",
        "--budget",
        "40",
        "--json",
        "-",
    )
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    assert [p["burn_in"] for p in data["prospects"]] == [10, 40, 70] * 2
    table_result = shell("plan", *POOL, "--replicates", "2", "--budget", "20", "--cost", "3")
    assert "Cost" in table_result.output.splitlines()[0]
    # a budget of 20 ends before a burn-in of 40, and long before enough passes after one of 10
    assert "within a budget of 20 labels no audit passed, not even" in table_result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nowhere.parquet", "--threshold", "0.85", "--label", "file"), "does not exist"),
        (("run", *POOL[:-1], "1.5", "--label", "file"), "strictly between 0 and 1"),
        (("run", *POOL, "--label", "file", "--scores", "grade"), "no column 'grade'"),
        (("run", *POOL, "--label", "file", "--burn-in", "0"), "burn_in must be"),
        (("run", *POOL, "--label", "file", "--budget", "0"), "budget must be"),
        (("run", *POOL, "--label", "file", "--epsilon", "1.5"), "epsilon=1.5"),
        (("run", *POOL, "--label", "file", "--grid", "a,b"), "numbers with commas"),
        (("run", *POOL, "--label", "cmd"), "needs --command"),
        (("run", *POOL, "--label", "cmd", "--command", "'"), "cannot be read"),
        (("run", *POOL, "--label", "ask", "--labellers", "a,b"), "--as"),
        (("run", *POOL, "--label", "file", "--as", "a"), "go with --label ask"),
        (("status", "nowhere.db"), "no ledger"),
        (("plan", *POOL, "--failing-group", "topic=z"), "no group 'topic=z'"),
        (("plan", *POOL, "--replicates", "0"), "one replicate"),
    ],
)
def test_bad_input_in_the_shell(shell, tmp_path, arguments, message):
    result = shell(*arguments)
    assert isinstance(result.exception, GroundfaultError), result.output
    assert message in str(result.exception)
    assert not list(tmp_path.glob("*.db"))


def test_the_session_agrees_with_the_plain_e_process():
    """The same scores, thresholds and stakes through `e_process` give the session's e-values to the
    last bit.
    """
    pool = hard_pool()
    audit = reference(pool)
    staked_rounds = [r for r in audit.rounds if r.query.stake]
    warm = [r.score for r in audit.rounds if not r.query.stake]
    common = {"bet": "lr-ui", "burn_in": 10, "warm_start": warm}
    auditor = e_process(
        [r.score for r in staked_rounds], [r.thresholds.auditor for r in staked_rounds],
        null="auditor",
        grid=audit.plan.auditor_grid, stake=[r.query.claim for r in staked_rounds], **common,
    )  # fmt: skip
    np.testing.assert_allclose(auditor, [r.log_e.auditor for r in staked_rounds], atol=1e-12)
