"""The default claim, of the population that the cases were drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from groundfault.errors import PlanError
from groundfault.sequential import ALL, Certificate, Pool, SequentialAudit, verify_certificate
from groundfault.sequential.answers import replay
from groundfault.sequential.policies import Query

Q = 0.85


def sample(rates, size, seed):
    """Groups that are samples of populations with these rates of a pass."""
    rng = np.random.default_rng(seed)
    scores = (rng.random(len(rates) * size) < np.repeat(rates, size)).astype(float)
    labels = np.repeat([f"g{i:02d}" for i in range(len(rates))], size)
    return Pool.from_arrays(
        [f"c{i:04d}" for i in range(len(scores))], {"in": labels}, scores=scores
    )


def run(pool, policy="stratified", **settings):
    audit = SequentialAudit(pool, policy=policy, **{"threshold": Q, "seed": 0, **settings})
    audit.run(replay(pool))
    return audit


def test_noise_in_small_groups_is_no_failure_mode():
    pools = [sample([0.97] * 25, 6, seed) for seed in range(8)]
    by_claim = {
        claim: sum(run(pool, claim=claim).verdict == "failure mode found" for pool in pools)
        for claim in ("population", "declared-groups")
    }
    assert by_claim["population"] == 0
    # by counting, two failures of six are one too many in these cases
    assert by_claim["declared-groups"] >= 3


def test_it_is_the_default_and_says_of_whom_it_speaks():
    audit = run(sample([0.97, 0.2], 40, 1))
    assert audit.plan.claim == "population"
    assert audit.verdict == "failure mode found"
    assert audit.null == (
        "each of 3 declared groups has expected score 0.85 or more for new cases, drawn as these "
        "80 were"
    )
    certificate = audit.certificate()
    assert "in this pool" not in certificate.sentence + certificate.to_markdown()
    assert {r.thresholds for r in audit.rounds} == {(Q, Q)}
    check = verify_certificate(certificate, pool=audit.pool, policy=True)
    assert check.reproduces, check.differences


def test_a_verdict_on_a_pool_says_so_and_names_the_group_with_its_counts():
    scores = np.ones(43)
    scores[40] = 0
    labels = ["big"] * 40 + ["small"] * 3
    pool = Pool.from_arrays(range(43), {"in": labels}, scores=scores)
    certificate = run(pool, "oracle:in=small", claim="declared-groups").certificate()
    assert certificate.sentence.startswith("failure mode found in this pool of 43 cases: counted")
    page = certificate.to_markdown()
    assert "In this pool of 43 cases" in page
    assert "in=small, selected after looking: 1 error in" in page
    assert "of its 3 cases" in page
    # the same cases say nothing against the population
    assert run(pool, "oracle:in=small").verdict != "failure mode found"


def test_groups_too_small_for_epsilon_are_left_out_and_listed():
    labels = ["big"] * 40 + ["mid"] * 15 + ["tiny"] * 3
    pool = Pool.from_arrays(range(58), {"in": labels}, scores=np.ones(58))
    audit = run(pool, epsilon=0.1, budget=20)
    history = audit.counts.make_history()
    assert history.groups == (ALL, "in=big", "in=mid")
    assert history.members.shape == (3, 58)
    certificate = audit.certificate()
    assert dict(certificate.left_out) == {"in=tiny": 3}
    assert [count.group for count in certificate.groups] == [ALL, "in=big", "in=mid"]
    assert "each of 3 declared groups" in audit.null
    assert "Left out, with less than 0.1 of the cases: in=tiny (3)." in certificate.to_markdown()
    again = Certificate.from_dict(certificate.to_dict())
    assert verify_certificate(again, pool=pool, policy=True).reproduces
    assert set(audit.pool.groups) == {ALL, "in=big", "in=mid", "in=tiny"}
    with pytest.raises(PlanError, match="no declared group"):
        run(pool, "oracle:in=tiny", epsilon=0.1)


def test_a_policy_that_sees_more_than_groups_is_refused():
    pool = Pool.from_arrays(range(20), {"in": ["a", "b"] * 10}, embedding=np.zeros((20, 2)))
    with pytest.raises(PlanError, match="leave the embedding out, or choose the claim"):
        SequentialAudit(pool, threshold=Q)
    assert SequentialAudit(pool, threshold=Q, claim="declared-groups").ask() is not None


@dataclass(frozen=True)
class Drain:
    """Uses up one group without a bet before it claims another that it is a part of."""

    name: str = "drain"

    def ask(self, history, _rng):
        good = history.groups.index("good")
        return Query("good", stake=False) if history.open[good] else Query(ALL, claim=True)


def test_groups_that_overlap_do_not_fool_the_audit():
    """All cases together are at the threshold, and once the good ones are used up the rest is below
    it: against the plain threshold nearly every audit would find a failure mode.
    """
    good = np.arange(240) < 120
    rates = np.where(good, 1.0, 2 * Q - 1)
    wrong = 0
    for seed in range(4):
        scores = (np.random.default_rng(seed).random(240) < rates).astype(float)
        audit = run(
            Pool.from_arrays(range(240), {"good": good}, scores=scores), Drain(), budget=200
        )
        wrong += audit.verdict == "failure mode found"
        # of the used-up half no more is known than that it is at most 1
        assert audit.rounds[-1].thresholds == pytest.approx((0.7, 1.7))
    assert wrong <= 1


def test_type_one_error_at_the_threshold():
    """All populations exactly at the threshold, and an auditor that claims the worst looking."""

    @dataclass(frozen=True)
    class Worst:
        name: str = "worst"

        def ask(self, history, _rng):
            means = np.where(history.open & history.strata, np.nan_to_num(history.means), 2.0)
            return (
                Query(history.groups[int(means.argmin())], claim=True) if means.min() < 2 else None
            )

    wrong = sum(
        run(sample([Q] * 8, 8, seed), Worst(), burn_in=500).verdict == "failure mode found"
        for seed in range(15)
    )
    assert wrong <= 3  # P(more | 15, .05) is .005


def test_a_failing_population_is_found():
    verdicts = [
        run(sample([0.97, 0.97, 0.4, 0.97], 60, seed), "logistic", burn_in=80).verdict
        for seed in range(6)
    ]
    assert verdicts.count("failure mode found") >= 5


@pytest.mark.parametrize("claim", ["population", "declared-groups"])
def test_intervals_of_group_means_hold_at_once_whenever_one_stops(claim):
    """The policy goes where luck ran out, and stops early: 20 audits of three groups."""
    rates = {"a": 0.95, "b": 0.8, "c": 0.4}
    missed, widths = 0, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        names = np.repeat(list(rates), 60)
        scores = (rng.random(180) < np.repeat(list(rates.values()), 60)).astype(float)
        pool = Pool.from_arrays([f"{i:03}" for i in range(180)], {"g": names}, scores=scores)
        audit = SequentialAudit(
            pool, threshold=0.6, budget=75, policy="stratified", claim=claim, seed=seed
        )
        audit.run(replay(pool))
        intervals = audit.certificate().find_intervals()
        truth = rates if claim == "population" else {n: scores[names == n].mean() for n in rates}
        missed += any(
            not intervals[f"g={name}"][0] <= truth[name] <= intervals[f"g={name}"][1]
            for name in rates
        )
        widths += [
            (high - low) / (count.highest - count.lowest)
            for count, (low, high) in zip(audit.groups, intervals.values(), strict=True)
        ]
    # a chance of 5% gives 5 or more of 20 in one of 400 such tests
    assert missed <= 4
    # of these cases the labels leave means possible, if all other cases pass or fail
    assert claim == "population" or np.median(widths) < 0.85


def test_the_papers_sampling_gives_no_interval():
    pool = Pool.from_arrays(range(40), {"g": ["a", "b"] * 20}, scores=[1.0, 0.0] * 20)
    audit = SequentialAudit(pool, threshold=0.8, sampling="paper", policy="uniform", seed=1)
    audit.run(replay(pool))
    assert audit.certificate().find_intervals() == {}
