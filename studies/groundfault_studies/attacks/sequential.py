"""Verdicts of sequential audits, under attack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groundfault.sequential import Pool, SequentialAudit
from groundfault.sequential.answers import replay
from groundfault.sequential.draws import pick
from groundfault.sequential.policies import History, Policy, Query
from groundfault_studies.attacks.attack import Attack

THRESHOLD, GROUPS, SIZE = 0.85, 25, 12
FOUND = "failure mode found"


def _make_pool(rates: np.ndarray, seed: int, size: int = SIZE) -> Pool:
    """Groups of a size, whose cases are a sample of populations with these rates of a pass."""
    rng = np.random.default_rng(seed)
    scores = (rng.random(len(rates) * size) < np.repeat(rates, size)).astype(float)
    labels = np.repeat([f"g{i:02d}" for i in range(len(rates))], size)
    return Pool.from_arrays(range(len(scores)), {"in": labels}, scores=scores)


def _run(pool: Pool, policy: str | Policy = "logistic", **settings: object) -> SequentialAudit:
    settings = {"threshold": THRESHOLD, **settings}
    audit = SequentialAudit(pool, policy=policy, ledger=None, **settings)  # type: ignore[arg-type]
    audit.run(replay(pool))
    return audit


def _sound_groups(seed: int) -> bool:
    return _run(_make_pool(np.full(GROUPS, 0.97), seed), seed=seed).verdict == FOUND


def _groups_at_the_threshold(seed: int) -> bool:
    pool = _make_pool(np.full(GROUPS, THRESHOLD), seed)
    return _run(pool, seed=seed, budget=100).verdict == FOUND


def _one_failing_group(seed: int) -> bool:
    rates = np.full(GROUPS, 0.97)
    rates[seed % GROUPS] = 0.3
    return _run(_make_pool(rates, seed), seed=seed).verdict == FOUND


@dataclass(frozen=True)
class Drainer:
    """Uses up the good part of a group by way of another group, and claims the group then."""

    name: str = "drainer"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:  # noqa: ARG002
        """The good part while it lasts, without a stake; then the whole."""
        good, whole = (history.groups.index(name) for name in ("good", "whole"))
        if history.open[good]:
            return Query("good", stake=False)
        return Query("whole", claim=True) if history.open[whole] else None


def _good_part_is_used_up(seed: int) -> bool:
    rng = np.random.default_rng(seed)
    good = np.arange(200) < 100
    scores = (rng.random(200) < np.where(good, 1.0, 2 * THRESHOLD - 1)).astype(float)
    groups = {"good": good, "whole": np.ones(200, dtype=np.bool_)}
    return _run(Pool.from_arrays(range(200), groups, scores=scores), Drainer()).verdict == FOUND


@dataclass(frozen=True)
class Seer:
    """Knows every score, and every draw that follows from the seed in its generator."""

    pool: Pool
    name: str = "seer"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """A group whose next case is one that fails, if it foresees right."""
        sequence = rng.bit_generator.seed_seq
        seed = sequence.entropy[0]  # type: ignore[attr-defined]
        scores = self.pool.recorded
        assert scores is not None
        step = len(history.positions) + 1
        for name, members in zip(history.groups, history.members, strict=True):
            among = np.flatnonzero(members & history.available)
            if len(among) and scores[among[pick(seed, "draw", step, len(among))]] == 0:
                return Query(name, claim=True)
        return Query(history.groups[0], stake=False) if history.available.any() else None


def _policy_foresees_the_draws(seed: int) -> bool:
    rng = np.random.default_rng(seed)
    block = np.arange(20) < 17  # each group is exactly at the threshold
    scores = np.concatenate([rng.permutation(block) for _ in range(20)]).astype(float)
    pool = Pool.from_arrays(
        range(400), {"in": np.repeat([f"g{i:02d}" for i in range(20)], 20)}, scores=scores
    )
    return _run(pool, Seer(pool), claim="declared-groups", budget=200).verdict == FOUND


@dataclass(frozen=True)
class LuckReader:
    """Claims the group whose unlabelled rest must be best for the group to reach the threshold.

    Where every group is exactly at the threshold, that rest *is* as good: this auditor knows it,
    and goes to the worst.
    """

    name: str = "luck-reader"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:  # noqa: ARG002
        """The open group of the lowest mean that its rest must have."""
        means = np.where(history.open & history.strata, history.rest_targets, np.inf)
        return (
            Query(history.groups[int(means.argmin())], claim=True) if history.open.any() else None
        )


def _luck_runs_out(seed: int) -> bool:
    rng = np.random.default_rng(seed)
    block = np.arange(20) < 17
    scores = np.concatenate([rng.permutation(block) for _ in range(20)]).astype(float)
    labels = np.repeat([f"g{i:02d}" for i in range(20)], 20)
    pool = Pool.from_arrays(range(400), {"in": labels}, scores=scores)
    audit = _run(pool, LuckReader(), claim="declared-groups", burn_in=400, seed=seed)
    return audit.verdict == FOUND


def _few_labels_suffice(seed: int) -> bool:
    pool = _make_pool(np.array([0.9, 0.2]), seed, size=200)
    audit = _run(pool, "oracle:in=g01", threshold=0.5, seed=seed)
    return audit.verdict == FOUND and audit.labelled <= 30


_FOUND_RATE = "rate of audits that find a failure mode"

ATTACKS: tuple[Attack, ...] = (
    Attack(
        point=17,
        name="25 small groups, all sound",
        world="25 groups of 12 cases, every population at .97, threshold .85; all defaults",
        promise="a failure mode is found with probability at most alpha = .05",
        before="8 of 20",
        statistic=_FOUND_RATE,
        trial=_sound_groups,
        at_most=0.05,
    ),
    Attack(
        point=17,
        name="25 small groups at the threshold",
        world="25 groups of 12 cases, every population at the threshold .85; at most 100 labels, "
        "other settings default",
        promise="a failure mode is found with probability at most alpha = .05",
        before="not measured; nearly always, by counting",
        statistic=_FOUND_RATE,
        trial=_groups_at_the_threshold,
        at_most=0.05,
    ),
    Attack(
        point=17,
        name="the good part is used up",
        world="a group at .85, half of it at 1 and half at .7; a policy labels the good half by "
        "way of another group before it claims the whole",
        promise="a failure mode is found with probability at most alpha = .05",
        before="not measured: the claim was about the pool",
        statistic=_FOUND_RATE,
        trial=_good_part_is_used_up,
        at_most=0.05,
    ),
    Attack(
        point=17,
        name="the pool claim, where luck ran out",
        world="20 groups of 20 cases, each exactly at .85 in the pool; the auditor draws from the "
        "group whose rest is worst; claim declared-groups, other settings default",
        promise="a failure mode is found with probability at most alpha = .05",
        before="at most .05 with the bets of then; now each group has a wealth of its own",
        statistic=_FOUND_RATE,
        trial=_luck_runs_out,
        at_most=0.05,
    ),
    Attack(
        point=17,
        name="one small group fails",
        world="25 groups of 12 cases, one population at .3 and the others at .97; all defaults",
        promise="the claim about the population keeps power: at least half of the audits find it",
        before="not measured; the claim about the pool finds some group in all, by counting",
        statistic=_FOUND_RATE,
        trial=_one_failing_group,
        at_least=0.5,
    ),
    Attack(
        point=18,
        name="the policy foresees the draws",
        world="20 groups of 20 cases, each exactly at .85; a policy knows every score, reads the "
        "seed off its generator, and claims a group where its next case fails; default seed",
        promise="a failure mode is found with probability at most alpha = .05",
        before="40 of 40",
        statistic=_FOUND_RATE,
        trial=_policy_foresees_the_draws,
        at_most=0.05,
    ),
    Attack(
        point=20,
        name="a group far below the threshold",
        world="threshold .5, a group whose population is at .2, drawn from alone; default bets",
        promise="30 labels suffice in at least 7 of 10 audits (the median was 31)",
        before="31 labels where 15 suffice",
        statistic="rate of audits that find it with 30 labels or fewer",
        trial=_few_labels_suffice,
        at_least=0.7,
    ),
)
