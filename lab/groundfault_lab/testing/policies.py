"""Checks of policies, of sequential audits and of prompt keys, that need no test framework."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundfault.base.arrays import Bools
from groundfault.core.plan import Plan
from groundfault.probes.policies import get
from groundfault.probes.policies.history import Keys, PromptHistory, PromptPolicy
from groundfault.sequential import Pool, SequentialAudit, SequentialPlan, policies
from groundfault.sequential.answers import replay
from groundfault.sequential.policies import Policy, Query
from groundfault.sequential.record import ASKED, TOLD, AuditEvent
from groundfault_lab.testing.checks import require

CLAIMS: dict[str, dict[str, Any]] = {
    "population": {},
    "declared groups": {"claim": "declared-groups"},
    "any set of cases": {"claim": "literal", "epsilon": 0.1},
    "rates": {"claim": "rates"},
    "generated cases": {},
}
"""What `check_policy` puts a policy to, and the settings of a `SequentialPlan` that say so."""

# under the others no policy may see one: see `groundfault.sequential.claims`
_WITH_EMBEDDING = ("declared groups", "any set of cases", "rates")
# a bank small enough to be asked to its end: 36 keys, of which some are blocked
_TASKS, _SIZES, _SIZE, _BATCHES = 6, (3, 2), 4, 12


def check_policy(
    policy: str | Policy | Callable[[Pool], Policy],
    *,
    seed: int = 0,
    rounds: int = 12,
    claims: Sequence[str] = tuple(CLAIMS),
) -> None:
    """Check that a policy knows no score in advance, and resumes an audit exactly.

    The guarantee of every e-value rests on the first. Under each claim an audit is run to its end.
    Then, for each of its rounds, a fresh policy resumes the audit from its record, in a world where
    every case not yet scored has the opposite score: it must ask the same, draw the same case and
    bet the same, to the last bit. Resumed half-way in the same world, the audit must end the same.
    Asked twice about one history, with the same generator and another question in between, the
    policy must answer the same.

    Parameters
    ----------
    policy : str, Policy, or function from Pool to Policy
        A policy is copied as it is now wherever a fresh one is needed. A function is for policies
        made out of a pool: it is given its recorded scores too, future ones turned round, and must
        not be misled.
    seed : int
        Of the cases, their scores and the audit.
    rounds : int
        After the warm-up.
    claims : sequence of str
        Among `CLAIMS`.

    Raises
    ------
    AssertionError
        If something fails; the message names it, the claim, and the round.
    """

    for claim in claims:
        is_generated = claim == "generated cases"
        pool = _make_pool(seed, embedding=claim in _WITH_EMBEDDING, generated=is_generated)
        fresh = _make_fresh(policy, policies.get, pool)
        warm_up = getattr(fresh, "warm_up", 0)
        plan = SequentialPlan(
            # so small that no verdict ends the audit before the limit
            alpha=1e-9,
            threshold=0.85,
            policy=fresh.name,
            seed=seed,
            warm_up=warm_up,
            budget=warm_up + rounds,
            **CLAIMS[claim],
        )
        whole = SequentialAudit.of(pool, plan, policy=fresh)
        whole.run(replay(pool))
        where = f"the policy {fresh.name!r}, under the claim of {claim},"
        for count in range(warm_up, len(whole.rounds)):
            _check_round(where, whole, count, policy)
        _check_end(where, whole, _make_fresh(policy, policies.get, pool))
        _check_repeated(where, whole, _make_fresh(policy, policies.get, pool))


def _make_fresh(policy: Any, get: Callable[[str], Any], *arguments: object) -> Any:
    """Return a policy that was never asked: what another remembers must not carry over."""
    if isinstance(policy, str):
        return get(policy)
    if isinstance(policy, type) or not hasattr(policy, "ask"):
        return policy(*arguments)
    return copy.deepcopy(policy)


def _make_pool(seed: int, *, embedding: bool, generated: bool) -> Pool:
    rng = np.random.default_rng(seed)
    group, points = np.repeat(list("abc"), 30), rng.normal(size=(90, 6))
    scores = (rng.random(90) < np.where(group == "b", 0.5, 0.9)).astype(float)
    known = points if embedding else None
    columns = {"in": group}
    return Pool.from_arrays(range(90), columns, embedding=known, scores=scores, generated=generated)


def _check_round(
    where: str, whole: SequentialAudit, count: int, policy: str | Policy | Callable[[Pool], Policy]
) -> None:
    """Check one round, asked by a fresh policy in a world whose future is the opposite."""
    assert whole.pool.recorded is not None
    positions = [whole.pool.position[r.query.id] for r in whole.rounds[:count]]
    # what is not yet labelled is turned round: a policy that peeks chooses another case
    future = 1 - whole.pool.recorded
    future[positions] = whole.pool.recorded[positions]
    pool = replace(whole.pool, recorded=future)
    again = _resume(whole, count, pool, _make_fresh(policy, policies.get, pool))
    again.ask()
    before = whole.rounds[count].to_query_event()
    after = again.rounds[-1].to_query_event() if len(again.rounds) > count else {}
    differences = [name for name in before if before[name] != after.get(name)]
    require(
        not differences,
        f"{where} uses scores that it was not shown, or memory from outside the audit: resumed "
        f"in round {count + 1} with other future scores, it does not ask the same "
        f"({', '.join(differences)})",
    )


def _check_end(where: str, whole: SequentialAudit, fresh: Policy) -> None:
    again = _resume(whole, len(whole.rounds) // 2, whole.pool, fresh)
    again.run(replay(whole.pool))
    require(
        [r.to_dict() for r in again.rounds] == [r.to_dict() for r in whole.rounds],
        f"{where} gives another result when the audit is resumed half-way",
    )


def _check_repeated(where: str, whole: SequentialAudit, fresh: Policy) -> None:
    early, late = (
        _resume(whole, count, whole.pool, fresh)
        for count in (whole.plan.warm_up + 2, len(whole.rounds) - 1)
    )
    first, _, again = (audit.choose(fresh) for audit in (late, early, late))
    require(
        _describe_query(first) == _describe_query(again),
        f"{where} answers differently when asked twice with the same history and generator",
    )


def _resume(whole: SequentialAudit, rounds: int, pool: Pool, policy: Policy) -> SequentialAudit:
    """Return the audit after so many rounds, from its record."""
    audit = SequentialAudit.of(pool, whole.plan, policy=policy)
    for one in whole.rounds[:rounds]:
        audit.replay(AuditEvent(0, ASKED, one.to_query_event()))
        answer = {"step": one.query.step, "id": one.query.id, "score": one.score}
        audit.replay(AuditEvent(0, TOLD, answer))
    return audit


def _describe_query(query: Query | None) -> Any:
    if query is None:
        return None
    items = None if query.items is None else query.items.tolist()
    return query.group, items, query.claim, query.stake, query.forecast


def check_probe_policy(
    policy: str | PromptPolicy | Callable[[], PromptPolicy], *, seed: int = 0
) -> None:
    """Check that a policy is a function of its history and generators, and asks valid keys only.

    A run over a small bank, with blocked keys and to its end, is gone through again with a policy
    made anew for every batch, as after an interruption: it must ask the same, to the last key.
    Asked twice with one history, and with another in between, it must choose the same. Every key
    has to be one of the bank's that is not blocked. Chances, where the policy knows them, must sum
    to 1 or, where no key is left, be 0, and every key that it asks must have a positive one.

    Parameters
    ----------
    policy : str, PromptPolicy, or function without arguments to one
        A name as `groundfault.probes.policies.get` takes it, a policy, which is copied wherever a
        fresh one is needed, or what makes the policy.
    seed : int
        Seed of the bank, its signals and the run.

    Raises
    ------
    AssertionError
        If something does not hold; the message says what, and in which batch.
    """

    rng = np.random.default_rng(seed)
    count = _TASKS * int(np.prod(_SIZES))
    mismatch, blocked = rng.random(count) < 0.3, rng.random(count) < 0.2
    blocked[: count // _TASKS] = True  # a task of which nothing may be asked
    one: PromptPolicy = _make_fresh(policy, get)
    histories = [_make_history(np.empty(0, dtype=np.intp), mismatch, blocked, 1)]
    for batch in range(1, _BATCHES + 1):
        where = f"the policy {one.name!r}, in batch {batch},"
        now = histories[-1]
        keys = _ask(one, now, seed)
        _check_keys(where, one, now, keys)
        require(
            np.array_equal(keys, _ask(_make_fresh(policy, get), now, seed)),
            f"{where} asks other keys when resumed there: it keeps state between calls",
        )
        _ask(one, histories[batch // 2], seed)
        require(
            np.array_equal(keys, _ask(one, now, seed)),
            f"{where} asks other keys when called twice with one history and the same generators",
        )
        histories.append(_make_history(np.append(now.keys, keys), mismatch, blocked, batch + 1))


def _make_history(keys: Keys, mismatch: Bools, blocked: Bools, batch: int) -> PromptHistory:
    """Return a history whose arrays cannot be written to."""
    signals = mismatch[keys]
    for array in (keys, signals, blocked):
        array.flags.writeable = False
    return PromptHistory(_TASKS, _SIZES, keys, signals, batch, _BATCHES, blocked)


def _ask(policy: PromptPolicy, history: PromptHistory, seed: int) -> Keys:
    plan = Plan(seed=seed)
    return policy.ask(
        history, _SIZE, plan.rng("tasks", history.batch), plan.rng("components", history.batch)
    )


def _check_keys(where: str, policy: PromptPolicy, history: PromptHistory, keys: Keys) -> None:
    require(len(keys) <= _SIZE, f"{where} asks {len(keys)} keys, where {_SIZE} were wanted")
    in_bank = (keys >= 0) & (keys < len(history.open))
    require(in_bank.all(), f"{where} asks a key that does not exist: {keys[~in_bank].tolist()}")
    require(
        history.open[keys].all(),
        f"{where} asks a key that is blocked: {keys[~history.open[keys]].tolist()}",
    )
    for key in keys:
        chance = policy.chances(history)
        if chance is None:
            return
        require(
            chance.shape == history.open.shape and (chance >= 0).all(),
            f"{where} has chances of another shape, or below 0",
        )
        require(
            abs(chance.sum() - 1) < 1e-9,
            f"{where} has chances that sum to {chance.sum():.6g}, not to 1",
        )
        # a key of chance 0 has infinite weight in an estimate by inverse chances
        require(chance[key] > 0, f"{where} asks the key {key}, whose chance is 0")
        history = history.after(int(key))
    last = policy.chances(history)
    if len(keys) < _SIZE and last is not None:
        require(not last.any(), f"{where} asks too few keys, although others have a chance above 0")
