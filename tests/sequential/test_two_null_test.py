"""The wealth against the model's null, group by group."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from groundfault.errors import PlanError
from groundfault.sequential import (
    EProcess,
    Pool,
    SequentialAudit,
    SequentialPlan,
    verify_certificate,
)
from groundfault.sequential.answers import replay
from groundfault.sequential.bets import Bet
from groundfault.sequential.two_null_test import (
    EProcessPair,
    ModelWealth,
    ScoredCase,
    TwoNullTest,
    share_of,
    update_each,
)

Q = 0.85
BET = Bet("lr", alternative=0.5)
UI = Bet("lr-ui", grid=(0.1, 0.5, 0.8), eta=0.3)


def bet(wealth: ModelWealth, group: str | None, score: float, threshold: float = Q) -> ModelWealth:
    case = ScoredCase(score, EProcessPair(threshold, threshold), False, group)
    return TwoNullTest(wealth, EProcess.begin(BET)).update(case).model


@pytest.mark.parametrize("bets", [None, "agrapa", ("sr-lr-ui", "group-lr-mix", "joint-lr")])
@pytest.mark.parametrize("prior", [None, {"a": 0.5}])
def test_tests_side_by_side_go_on_as_alone(bets, prior):
    rng = np.random.default_rng(0)
    plans = [SequentialPlan(threshold=Q, bet=bets, burn_in=m, prior=prior) for m in (3, 9)]
    alone = together = [
        TwoNullTest.begin(plan, 3, rng.random(i)) for i in range(4) for plan in plans
    ]
    for _ in range(20):
        levels = rng.choice([Q, 0.9, 1.2], size=(len(alone), 2), p=(0.9, 0.08, 0.02))
        cases = [
            ScoredCase(
                rng.choice([0.0, 1.0, 0.3, None]), EProcessPair(*pair), rng.random() < 0.7, g
            )
            for pair, g in zip(
                levels.tolist(), rng.choice(["a", "b", None], len(alone)), strict=True
            )
        ]
        together = update_each(list(zip(together, cases, strict=True)))
        alone = [test.update(case) for test, case in zip(alone, cases, strict=True)]
    logs = [[test.log_e for test in tests] for tests in (together, alone)]
    np.testing.assert_allclose(*logs, rtol=1e-12)


@pytest.mark.parametrize("groups", [1, 2, 3, 26, 500])
def test_shares_add_up_to_one(groups):
    shares = [share_of(k, groups) for k in range(1, groups + 1)]
    assert sum(shares) == pytest.approx(1)
    assert min(shares) > 0.5 / groups
    assert shares[0] >= 0.25


def test_one_group_is_the_plain_e_process():
    wealth, plain = ModelWealth.begin([], [UI], 1), EProcess.begin(UI)
    assert wealth.log_e == 0
    for score in (0, 1, 0, 0, 1):
        wealth, plain = bet(wealth, "a", score), plain.update(score, Q)
    assert wealth.log_e == pytest.approx(plain.log_e[0])


def test_sound_groups_cost_a_failing_one_nothing_but_its_share():
    wealth = ModelWealth.begin([], [BET], 10)
    for _ in range(50):
        wealth = bet(wealth, "sound", 1)
    for _ in range(5):
        wealth = bet(wealth, "failing", 0)
    failures = EProcess.begin(BET)
    for _ in range(5):
        failures = failures.update(0, Q)
    assert wealth.log_e > np.log(share_of(2, 10)) + failures.log_e[0] > np.log(20)
    # one wealth for all rounds is lost on the sound group
    alike = EProcess.begin(BET)
    for score in [1] * 50 + [0] * 5:
        alike = alike.update(score, Q)
    assert alike.log_e[0] < 0


def test_bets_of_both_kinds_are_averaged():
    wealth = bet(ModelWealth.begin([BET], [UI], 2), "a", 0)
    only = [
        bet(ModelWealth.begin(alike, by_group, 2), "a", 0).log_e
        for alike, by_group in (([BET], []), ([], [UI]))
    ]
    assert np.exp(wealth.log_e) == pytest.approx(np.exp(only).mean())
    assert wealth.steps == 1


def test_groups_that_fail_together_refute_jointly():
    """None of four groups refutes the null by itself; a sound one takes at most half."""
    apart, joint = ModelWealth.begin([], [BET], 10), ModelWealth.begin([], [], 10, [BET])
    for group in "abcd":
        for score in (0, 0):
            apart = bet(apart, group, score)
            joint = bet(joint, group, score)
    alone = EProcess.begin(BET).update(0, Q).update(0, Q).log_e[0]
    assert joint.log_e == pytest.approx(4 * np.log((1 + np.exp(alone)) / 2))
    assert joint.log_e > np.log(20) > apart.log_e
    after = joint
    for _ in range(50):
        after = bet(after, "sound", 1)
    assert after.log_e >= joint.log_e - np.log(2)


def test_what_is_impossible_refutes_jointly_too():
    wealth = bet(ModelWealth.begin([], [], 3, [UI]), "a", 1)
    assert bet(wealth, "b", 0, 1.5).log_e == np.inf


@pytest.mark.parametrize(
    "kinds",
    [([], [UI]), ([BET], [UI]), ([], [BET, UI]), ([], [], [UI]), ([], [UI], [UI])],
)
def test_no_auditor_expects_more_than_one(kinds):
    """Every group at the threshold; the auditor chooses group and stop as is best for it."""

    def best(wealth, rounds):
        now = np.exp(wealth.log_e)
        if rounds == 0:
            return now
        by_choice = []
        for group in ("a", "b", None):
            after = [best(bet(wealth, group, score), rounds - 1) for score in (0, 1)]
            by_choice.append((1 - Q) * after[0] + Q * after[1])
        return max(now, *by_choice)

    alike, apart, *joint = kinds
    assert best(ModelWealth.begin(alike, apart, 3, *joint), 4) <= 1 + 1e-9


def test_the_order_of_the_first_bets_is_kept():
    wealth = ModelWealth.begin([], [BET], 3)
    for group in ("b", "a", "b", None, "a"):
        wealth = bet(wealth, group, 1)
    assert list(wealth.parts[0].by_group) == ["b", "a", None]
    assert [process.steps for process in wealth.parts[0].by_group.values()] == [2, 2, 1]


def test_it_is_the_default_where_groups_are_named():
    default = ("group-lr-ui", "joint-lr-ui")
    assert SequentialPlan(threshold=Q).bet == default
    assert SequentialPlan(threshold=Q, claim="declared-groups").bet == default
    for settings in ({"claim": "literal"}, {"sampling": "paper"}):
        assert SequentialPlan(threshold=Q, **settings).bet == ("sr-lr-ui",)
    plan = SequentialPlan(threshold=Q, bet=("sr-lr", "group-lr-mix", "joint-agrapa"))
    assert [bet.name for bet in plan.bets("model")] == ["sr-lr"]
    assert [bet.name for bet in plan.group_bets] == ["lr-mix"]
    assert [bet.name for bet in plan.joint_bets] == ["agrapa"]
    assert [bet.name for bet in plan.bets("auditor")] == ["lr", "lr-mix", "agrapa"]
    with pytest.raises(PlanError, match=r"bet must be one of joint-lr, .*not 'joint-sr-lr'"):
        SequentialPlan(threshold=Q, bet="joint-sr-lr")
    with pytest.raises(PlanError, match=r"bet must be one of group-lr, .*not 'group-sr-lr'"):
        SequentialPlan(threshold=Q, bet="group-sr-lr")


def test_a_failing_group_is_found_after_many_sound_ones():
    labels = np.repeat([f"g{i:02d}" for i in range(16)], 12)
    scores = np.where((labels == "g15") & (np.arange(192) % 4 > 0), 0.0, 1.0)
    pool = Pool.from_arrays([f"c{i:03d}" for i in range(192)], {"in": labels}, scores=scores)
    verdicts = {}
    for bet in ("group-lr-ui", None, "sr-lr-ui"):
        found = 0
        for seed in range(3):
            audit = SequentialAudit(
                pool, threshold=Q, bet=bet, policy="stratified", seed=seed, burn_in=500
            )
            found += audit.run(replay(pool)) == "failure mode found"
        verdicts[bet] = found
    assert verdicts["group-lr-ui"] == verdicts[None] == 3 > verdicts["sr-lr-ui"]


def test_every_way_of_betting_by_group_starts_at_one():
    sources = ("lr", "lr-ui", "lr-mix", "agrapa")
    for kind, source, scores in product(("group-", "joint-"), sources, ([], [0, 1])):
        plan = SequentialPlan(threshold=Q, bet=kind + source)
        wealth = ModelWealth.begin(plan.bets("model"), plan.group_bets, 4, plan.joint_bets)
        assert wealth.warm_start(scores, Q).log_e == 0 if scores else wealth.log_e == 0


def make_prior_world(seed: int, means: dict[str, float]) -> Pool:
    rng = np.random.default_rng(seed)
    names = np.repeat(list(means), 60)
    scores = rng.random(len(names)) < np.repeat(list(means.values()), 60)
    return Pool.from_arrays(range(len(names)), {"g": names}, scores=scores.astype(float))


def audit_with_prior(seed: int, means: dict[str, float], **settings) -> SequentialAudit:
    pool = make_prior_world(seed, means)
    audit = SequentialAudit(pool, threshold=0.8, seed=seed, **settings)
    audit.run(replay(pool))
    return audit


def test_an_earlier_mode_saves_labels():
    means = {"a": 0.9, "b": 0.9, "c": 0.3, "d": 0.9, "e": 0.9}
    labels = {
        len(prior): np.median(
            [audit_with_prior(seed, means, prior=prior).labelled for seed in range(9)]
        )
        for prior in ({}, {"g=c": 0.3})
    }
    assert labels[1] <= 0.7 * labels[0]


@pytest.mark.parametrize("audits", [50, pytest.param(400, marks=pytest.mark.slow)])
def test_a_wrong_prior_keeps_the_error_rate(audits: int):
    """All groups pass at the threshold, and the prior says that two of them fail."""
    means = dict.fromkeys("abcde", 0.8)
    prior = {"g=a": 0.1, "g=d": 0.6}
    verdicts = [
        audit_with_prior(seed, means, prior=prior, policy="oracle:g=a", budget=40).verdict
        for seed in range(audits)
    ]
    wrong = np.mean([verdict == "failure mode found" for verdict in verdicts])
    assert wrong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / audits)


def test_a_wrong_prior_costs_at_most_half_of_the_wealth():
    wrong = ModelWealth.begin([], [BET], 10, prior={"sound": [BET]})
    alone = ModelWealth.begin([], [BET], 10)
    for group, score in [("sound", 1)] * 50 + [("failing", 0)] * 9:
        wrong, alone = (bet(w, group, score) for w in (wrong, alone))
    assert wrong.log_e >= alone.log_e - np.log(2)


def test_a_prior_is_sealed_stored_and_verified():
    audit = audit_with_prior(1, {"a": 0.9, "b": 0.2}, prior={"g=b": 0.2})
    certificate = audit.certificate()
    assert certificate.plan.prior == {"g=b": 0.2}
    assert certificate.plan.to_plan() == audit.plan
    assert verify_certificate(certificate, policy=True).reproduces
    assert audit.seal != audit_with_prior(1, {"a": 0.9, "b": 0.2}).seal
    assert SequentialPlan(threshold=0.8, prior={}) == SequentialPlan(threshold=0.8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": {"g=a": 0.9}}, "below the threshold"),
        ({"prior": {"g=z": 0.1}}, "group of the prior"),
        ({"prior": {"g=a": 0.1}, "claim": "literal"}, "about declared groups"),
    ],
)
def test_a_prior_that_fits_no_audit_is_refused(settings, message):
    pool = make_prior_world(0, {"a": 0.9, "b": 0.2})
    with pytest.raises(PlanError, match=message):
        SequentialAudit(pool, threshold=0.8, **settings)
