"""Policies: pure and predictable, quick to find what is planted, and never the reason for a wrong
verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from groundfault.errors import PlanError
from groundfault.sequential import Pool, SequentialAudit, policies
from groundfault.sequential.answers import replay
from groundfault.sequential.policies import Policy, Query, learned
from groundfault.sequential.policies.adaptive import Adaptive, train
from groundfault.sequential.policies.learned import Learned
from groundfault_lab.testing import check_policy

LEARNED = ("adaptive", "logistic", "gp", "boosted", "thompson")
NAMES = [f"{name}:in=b" if name == "oracle" else name for name in policies.NAMES]


def make_planted_pool(accuracy, size=80, seed=0, embedding=True):
    """Groups of a size, and the accuracy of each; the first axes of the embedding tell them
    apart.
    """
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(accuracy)), size)
    points = 3 * np.eye(len(accuracy))[group] + rng.normal(size=(len(group), len(accuracy)))
    scores = (rng.random(len(group)) < np.array(accuracy)[group]).astype(float)
    return Pool.from_arrays(
        range(len(group)), {"in": group}, embedding=points if embedding else None, scores=scores
    )


def run(pool, policy, **settings):
    # about these cases, so that policies may learn from the embedding; with draws that stay
    fixed = {"threshold": 0.85, "budget": 150, "claim": "declared-groups", "seed": 0}
    audit = SequentialAudit(pool, policy=policy, **{**fixed, **settings})
    audit.run(replay(pool))
    return audit


# -------------------------------------------------------------------- --- what every policy must be


# grader needs grades: tests/sequential/test_grader_policy.py
@pytest.mark.parametrize("name", [*NAMES[:-1], "adaptive:paper"])
def test_every_policy_is_predictable_and_resumes_to_the_last_bit(name):
    check_policy(name, rounds=4)


@dataclass(frozen=True)
class Cheat:
    """Looks at what the cases will score."""

    pool: Pool
    name: str = "cheat"

    def ask(self, history, rng):
        among = np.flatnonzero(history.open)
        fails = [
            1 - self.pool.recorded[history.members[g] & history.available].mean() for g in among
        ]
        return Query(history.groups[among[int(np.argmax(fails))]], claim=True)


@dataclass(frozen=True)
class Counting:
    """Remembers how often it was asked."""

    positions: list = field(default_factory=list)
    name: str = "counting"

    def ask(self, history, rng):
        self.positions.append(1)
        among = np.flatnonzero(history.open)
        return Query(history.groups[among[len(self.positions) % len(among)]])


@dataclass(frozen=True)
class Careless:
    """Uses a generator of its own."""

    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    name: str = "careless"

    def ask(self, history, rng):
        return Query(history.groups[int(self.rng.choice(np.flatnonzero(history.open)))])


@pytest.mark.parametrize("bad", [Cheat, lambda pool: Counting(), lambda pool: Careless()])
def test_the_check_sees_policies_that_are_not(bad):
    with pytest.raises(AssertionError, match="does not ask the same"):
        check_policy(bad, claims=["declared groups"])


@pytest.mark.parametrize("name", LEARNED)
def test_without_an_embedding_groups_alone_are_learnt_from(name):
    audit = run(make_planted_pool([0.95, 0.95, 0.4, 0.95], embedding=False), name)
    assert isinstance(audit.policy, Policy)
    assert audit.verdict == "failure mode found"


# ------------------------------------------------------------------------------- --- what they find


@pytest.mark.parametrize("name", LEARNED)
def test_a_failing_group_is_found_with_few_labels(name):
    audits = [
        run(make_planted_pool([0.95, 0.95, 0.95, 0.45, 0.95, 0.95], seed=seed), name, seed=seed)
        for seed in (1, 2, 3)
    ]
    verdicts = sum(audit.verdict == "failure mode found" for audit in audits)
    assert verdicts >= (2 if name == "boosted" else 3)
    assert np.median([audit.labelled for audit in audits]) <= 50


@pytest.mark.parametrize("name", LEARNED)
def test_a_sound_model_passes_though_nothing_looks_bad(name):
    assert run(make_planted_pool([0.98, 0.98, 0.98]), name, burn_in=10).verdict == "audit passed"


def test_fewer_labels_than_looking_everywhere_alike():
    worlds = [make_planted_pool([0.93] * 7 + [0.55], size=50, seed=seed) for seed in range(5)]
    ours, plain = (
        np.array(
            [run(world, policy, seed=s, budget=300).labelled for s, world in enumerate(worlds)]
        )
        for policy in ("logistic", "stratified")
    )
    assert np.median(ours) < 0.7 * np.median(plain)


@pytest.mark.parametrize("name", ["adaptive", "logistic", "boosted"])
def test_a_literal_claim_is_audited_by_the_cases_of_lowest_prediction(name):
    audit = run(make_planted_pool([0.97, 0.97, 0.3], size=60), name, claim="literal")
    assert audit.verdict == "failure mode found"
    draws = [int(r.query.id) for r in audit.rounds if r.query.claim][-8:]
    assert np.mean([position >= 120 for position in draws]) > 0.6


def test_a_group_that_has_reached_the_threshold_is_left_alone():
    pool = make_planted_pool([0.9, 1.0], size=20)
    audit = run(pool, "logistic", burn_in=500, alpha=1e-9, budget=None)
    for r in audit.rounds:
        assert r.thresholds.auditor > 0


# --------------------------------------------------------------------------------- --- type-I error


def wrong(name, replicates, **settings):
    """Spec 6c (ii): every group exactly at the threshold; how often the default audit says that one
    fails.
    """
    errors = 0
    for seed in range(replicates):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(8), 20)
        scores = np.concatenate([rng.permutation(np.arange(20) < 17) for _ in range(8)]).astype(
            float
        )
        points = (
            np.eye(8)[group]
            + 0.3 * rng.normal(size=(160, 8))
            + scores[:, None] * rng.normal(size=8)
        )
        pool = Pool.from_arrays(range(160), {"in": group}, embedding=points, scores=scores)
        errors += (
            run(pool, name, seed=seed, budget=None, **settings).verdict == "failure mode found"
        )
    return errors


@pytest.mark.parametrize("name", ["logistic", pytest.param("boosted", marks=pytest.mark.slow)])
def test_no_policy_makes_the_default_audit_wrong_too_often(name):
    """The embedding even gives the scores away: a policy that can tell passes from failures still
    cannot cheat.
    """
    assert wrong(name, 6) <= 2  # three or more at alpha .05: chance .002


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNED)
def test_type_one_error_of_every_learning_policy(name):
    replicates = 40 if name == "adaptive" else 200
    assert wrong(name, replicates) <= replicates * 0.05 + 2.6 * np.sqrt(replicates * 0.05 * 0.95)


# --------------------------------------------------------------------------------- --- the networks


def toy(count=40, seed=0):
    rng = np.random.default_rng(seed)
    rows = (4 * rng.normal(size=(count, 6))).astype(np.float32)
    return rows, (rows[:, 0] > 0).astype(np.float32)


def test_networks_learn_and_know_their_shape():
    rows, scores = toy()
    stages = train(rows, scores, widths=(5, 10), epochs=(2, 16), members=3)
    first, last = (stage.predict(rows) for stage in stages)
    assert first.shape == last.shape == (2, 3, 40)

    def loss(outputs):
        return -np.log(np.where(scores == 1, outputs, 1 - outputs)).mean()

    assert loss(last) < loss(first)


def test_fewer_epochs_are_an_earlier_stage_of_more():
    rows, scores = toy()
    together = train(rows, scores, widths=(5,), epochs=(2, 8), members=4)[0]
    alone = train(rows, scores, widths=(5,), epochs=(2,), members=4)[0]
    np.testing.assert_array_equal(together.hidden, alone.hidden)
    np.testing.assert_array_equal(together.predict(rows), alone.predict(rows))


def test_many_cases_are_predicted_as_few_are():
    rows, scores = toy(120)
    nets = train(rows[:9], scores[:9], widths=(5, 10), epochs=(4,), members=3)[0]
    few = np.concatenate([nets.predict(rows[:60]), nets.predict(rows[60:])], axis=2)
    np.testing.assert_allclose(nets.predict(rows), few, rtol=1e-6)


def test_the_batched_program_is_the_plain_one():
    """Oracle: one network, one case at a time, derivatives by finite differences, Adam as in its
    paper.
    """
    rows, scores = toy(7)
    settings = {"widths": (2,), "members": 1, "seed": 5}
    before = train(rows, scores, epochs=(1,), **settings)[0]
    after = train(rows, scores, epochs=(1, 2), **settings)[1]
    assert not np.array_equal(before.hidden, after.hidden)
    plain = _plain(rows.astype(float), scores, 2, 5, epochs=2)
    np.testing.assert_allclose(after.hidden[0], plain[0], atol=2e-4)
    np.testing.assert_allclose(after.out[0], plain[1], atol=2e-4)
    np.testing.assert_allclose(after.bias[0], plain[2], atol=2e-4)


def _plain(rows, scores, width, seed, epochs):
    from groundfault.sequential.policies.adaptive import _ORDERS, _begin

    nets = _begin(rows.shape[1] + 1, (width,), 1, seed)
    parts = [part[0].astype(float) for part in (nets.hidden, nets.out, nets.bias)]
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in parts]
    rng, step = np.random.default_rng([seed, _ORDERS, len(rows)]), 0

    def loss(batch):
        units = np.maximum(rows[batch] @ parts[0][:-1] + parts[0][-1], 0)
        logit = units @ parts[1] + parts[2][0]
        return np.mean(np.logaddexp(0, logit) - scores[batch] * logit)

    for _ in range(epochs):
        order = rng.permuted(np.arange(len(rows))[None], axis=1)[0]
        for start in range(0, len(rows), min(32, len(rows) // 2) + 1):
            batch, step = order[start : start + min(32, len(rows) // 2) + 1], step + 1
            slopes = []
            for part in parts:
                slope = np.zeros_like(part)
                for index in np.ndindex(part.shape):
                    value = part[index]
                    part[index] = value + 1e-5
                    up = loss(batch)
                    part[index] = value - 1e-5
                    slope[index] = (up - loss(batch)) / 2e-5
                    part[index] = value
                slopes.append(slope)
            for part, slope, (mean, squares) in zip(parts, slopes, moments, strict=True):
                mean[...] = 0.9 * mean + 0.1 * slope
                squares[...] = 0.999 * squares + 0.001 * slope**2
                part -= (
                    0.01 * (mean / (1 - 0.9**step)) / (np.sqrt(squares / (1 - 0.999**step)) + 1e-8)
                )
    return parts


def test_the_setting_that_foretells_best_is_used():
    pool = make_planted_pool([0.9, 0.4])
    audit = run(pool, "adaptive", budget=20, alpha=1e-9)
    audit.policy.ask(audit.counts.make_history(), np.random.default_rng(0))
    standing = audit.policy._memory["last"]
    assert standing.loss.shape == (4, 2)
    stage, width = np.unravel_index(standing.loss.argmin(), (4, 2))
    np.testing.assert_array_equal(
        standing.predict(), standing.stages[stage].predict(standing.inputs)[width].astype(float)
    )


# --------------------------------------------------------------------------------- --- the learners


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(600, 5))
    chance = np.where(points[:, 0] > 0.3, 0.35, 0.95)
    return learned.Features(points, np.ones((1, 600), dtype=bool)), chance


@pytest.mark.parametrize("learner", [learned.logistic, learned.gaussian_process, learned.boosted])
def test_learners_are_calibrated_and_doubt_less_with_more_scores(learner, world):
    features, chance = world
    rng = np.random.default_rng(1)
    doubts = []
    for count in (10, 300):
        positions = rng.permutation(600)[:count]
        scores = (rng.random(count) < chance[positions]).astype(float)
        data = learned.LabelledData(features, positions, scores, 0.85)
        draws = learner(data, np.random.default_rng(2))
        assert draws.shape[1] == 600
        assert ((draws > 0) & (draws < 1)).all()
        doubts.append(draws.mean(axis=1).std())
    low = draws.mean(axis=0)[chance < 0.5].mean()
    high = draws.mean(axis=0)[chance > 0.5].mean()
    assert doubts[1] < doubts[0]
    assert abs(low - 0.35) < 0.15
    assert abs(high - 0.95) < 0.15


@pytest.mark.parametrize("learner", [learned.logistic, learned.gaussian_process, learned.boosted])
def test_with_no_score_learners_expect_the_threshold(learner, world):
    data = learned.LabelledData(world[0], np.empty(0, dtype=np.intp), np.empty(0), 0.85)
    draws = learner(data, np.random.default_rng(0))
    assert abs(np.median(draws) - 0.85) < 0.1


def test_laplace_finds_the_mode():
    """Oracle: the gradient of the log posterior vanishes there, and the evidence is exact where
    nothing is seen.
    """
    rng = np.random.default_rng(3)
    rows, scores = rng.normal(size=(2, 30, 4)), (rng.random(30) < 0.7).astype(float)
    ones = np.ones(30, dtype=np.int64)
    mode = learned._laplace(rows, scores[None], ones / 2, ones[None])[0][0]
    for s in range(2):
        chance = 1 / (1 + np.exp(-(0.5 + rows[s] @ mode[s])))
        np.testing.assert_allclose(rows[s].T @ (scores - chance), mode[s], atol=1e-8)
    unseen = learned._laplace(rows[:, :0], scores[None, :0], ones[:0] / 2, ones[None, :0])
    assert unseen[2][0] == pytest.approx([0, 0], abs=1e-12)


def test_scores_of_cases_that_are_alike_are_one_row_and_each_kind_is_predicted_once():
    rng = np.random.default_rng(4)
    kinds, scores = rng.integers(0, 3, 50), (rng.random(50) < 0.7).astype(float)
    rows = rng.normal(size=(2, 3, 4))
    ones = np.ones(50, dtype=np.int64)
    every = learned._laplace(rows[:, kinds], scores[None], ones / 2, ones[None])
    counts = np.bincount(kinds)
    means = np.bincount(kinds, scores) / counts
    once = learned._laplace(rows, means[None], np.full(3, 0.5), counts[None])
    for a, b in zip(every, once, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    members = np.array([np.ones(50, dtype=bool), kinds == 0, kinds == 1])
    labels = learned.LabelledData(
        learned.Features(None, members), np.arange(50), scores, threshold=0.85
    )
    for learner in (learned.logistic, learned.boosted):
        draws = learner(labels, np.random.default_rng(0))
        assert draws.shape[1] == 3
        # near the mean of the scores of the kind, whichever number the kind has
        means = [scores[kinds == kinds[place]].mean() for place in labels.features.cells.first]
        assert np.corrcoef(draws.mean(axis=0), means)[0, 1] > 0.9


def test_audits_of_a_pool_that_ask_side_by_side_ask_as_each_would_alone():
    members = np.array([np.ones(90, dtype=bool), *(np.arange(90) % 3 == g for g in range(3))])
    pool = Pool.from_arrays(range(90), {str(g): m for g, m in enumerate(members[1:])})
    rng, histories = np.random.default_rng(0), []
    for count in (0, 1, 7, 40):
        audit = SequentialAudit(pool, threshold=0.8, seed=count)
        for _ in range(count):
            if (query := audit.ask()) is not None:
                audit.tell(query, float(rng.random() < 0.7))
        histories.append(audit.counts.make_history())
    for policy in map(policies.get, ("logistic", "boosted", "thompson")):
        alone = [policy.ask(h, np.random.default_rng(i)) for i, h in enumerate(histories)]
        rngs = [np.random.default_rng(i) for i in range(len(histories))]
        together = policy.ask_each(histories, rngs)
        assert [q and q.group for q in together] == [q and q.group for q in alone]


def test_principal_components_keep_the_distances_that_matter():
    rng = np.random.default_rng(0)
    for shape in ((50, 8), (8, 50)):
        points = rng.normal(size=shape)
        components = learned.Features(points, np.ones((1, shape[0]), dtype=bool)).components
        centred = points - points.mean(axis=0)
        scale = np.sqrt((centred**2).sum(axis=1).mean())
        np.testing.assert_allclose(
            components @ components.T, centred @ centred.T / scale**2, atol=1e-9
        )


# ---------------------------------------------------------------------------------------- --- names


def test_names_say_what_is_sealed():
    assert Adaptive().name == "adaptive"
    assert policies.get("adaptive:paper").name == "adaptive:paper"
    with pytest.raises(PlanError, match="adaptive or adaptive:paper"):
        policies.get("adaptive:fast")
    with pytest.raises(PlanError, match="takes nothing after a colon"):
        policies.get("logistic:1")


def test_a_learner_of_ones_own():
    def frequencies(data, rng):
        means = np.full(data.features.members.shape[1], data.threshold)
        for members in data.features.members[1:]:
            inside = members[data.positions]
            means[members] = (data.threshold + data.scores[inside].sum()) / (1 + inside.sum())
        return means[None]

    pool = make_planted_pool([0.95, 0.3, 0.95])
    audit = SequentialAudit(
        pool,
        threshold=0.85,
        policy=Learned("frequencies", frequencies),
        budget=120,
        claim="declared-groups",
        seed=0,
    )
    audit.run(replay(pool))
    assert audit.verdict == "failure mode found"


# ------------------------------------------------------------------- --- beside the paper's auditor


def test_fewer_labels_than_the_papers_auditor_on_the_same_scores(shared):
    """Spec 6b; the whole comparison is `groundfault lab study sequential-pool`."""
    from polars import col, read_parquet

    from groundfault_studies.sequential_pool import SEEDS, audits

    folder, seeds = shared / "savi_pool", SEEDS[:3]
    rows = [
        row
        for seed in seeds
        for row in audits(folder, "declared groups", "logistic", "Large", seed)
    ]
    recorded = read_parquet(folder / "results_rows.parquet").filter(
        (col("scenario") == "a")
        & (col("sampler") == "active")
        & (col("setting") == "Large")
        & col("seed").is_in(seeds)
    )
    for bet in ("lr", "sr-lr", "lr-ui", "sr-lr-ui"):
        ours = [row for row in rows if row["bet"] == bet and row["m"] == 40]
        theirs = recorded.filter((col("method") == bet.upper()) & (col("m") == 40))[
            "labelled"
        ].median()
        assert all(row["verdict"] == "failure mode found" for row in ours)
        assert np.median([row["labelled"] for row in ours]) <= 0.85 * theirs
