"""What every policy has to satisfy, as a function that raises AssertionError and needs no test
framework.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groundfault.sequential import Audit, AuditPlan, Pool, policies
from groundfault.sequential.answers import replay
from groundfault.sequential.policies import Policy, Query
from groundfault.sequential.record import ASKED, TOLD, Entry
from groundfault.testing.checks import require

CLAIMS: dict[str, dict[str, Any]] = {
    "declared groups": {},
    "any set of cases": {"claim": "literal", "epsilon": 0.1},
    "rates": {"claim": "rates"},
    "generated cases": {},
}
"""What `check_policy` puts a policy to, and the settings of an `AuditPlan` that say so."""


def check_policy(
    policy: str | Callable[[Pool], Policy],
    *,
    seed: int = 0,
    rounds: int = 12,
    claims: Sequence[str] = tuple(CLAIMS),
) -> None:
    """Check that a policy foresees nothing, and goes on after an interruption as if there had been
    none.

    All that an e-value promises rests on the first. Under each claim an audit is run to its end.
    Then, for each of its rounds, a policy that was never asked before takes the audit up from its
    record, in a world where every case not yet scored has the opposite score: it must ask the same,
    draw the same case and bet the same, to the last bit. Taken up half-way in the same world, the
    audit must come to the same end. Asked twice about one history, with the same generator and
    another question in between, the policy must say the same.

    Parameters
    ----------
    policy : str, or function from Pool to Policy
        A function is for policies made out of a pool: it is given its recorded scores too, future
        ones turned round, and must not be misled.
    seed : int
        Of the cases, their scores and the audit.
    rounds : int
        After the warm-up.
    claims : sequence of str
        Among `CLAIMS`.

    Raises
    ------
    AssertionError
        If something does not hold; the message says what, under which claim, and in which round.
    """

    def made(pool: Pool) -> Policy:
        return policies.get(policy) if isinstance(policy, str) else policy(pool)

    for claim in claims:
        pool = _pool(seed, generated=claim == "generated cases")
        fresh = made(pool)
        warm_up = getattr(fresh, "warm_up", 0)
        plan = AuditPlan(
            threshold=0.85, alpha=1e-9, policy=fresh.name, seed=seed, warm_up=warm_up, limit=warm_up + rounds,
            **CLAIMS[claim],
        )  # fmt: skip
        whole = Audit.of(pool, plan, policy=fresh)
        whole.run(replay(pool))
        where = f"the policy {fresh.name!r}, under the claim of {claim},"
        for told in range(warm_up, len(whole.rounds)):
            _check_round(where, whole, told, made)
        _check_end(where, whole, made(pool))
        _check_repeated(where, whole, made(pool))


def _pool(seed: int, *, generated: bool) -> Pool:
    rng = np.random.default_rng(seed)
    group, points = np.repeat(list("abc"), 30), rng.normal(size=(90, 6))
    scores = (rng.random(90) < np.where(group == "b", 0.5, 0.9)).astype(float)
    return Pool.from_arrays(
        range(90), {"in": group}, embedding=points, scores=scores, generated=generated
    )


def _check_round(where: str, whole: Audit, told: int, made: Callable[[Pool], Policy]) -> None:
    """One round, asked by a fresh policy in a world whose future is the opposite."""
    assert whole.pool.recorded is not None
    seen = [whole.pool.position[r.query.id] for r in whole.rounds[:told]]
    future = np.where(
        np.isin(np.arange(len(whole.pool)), seen), whole.pool.recorded, 1 - whole.pool.recorded
    )
    pool = replace(whole.pool, recorded=future)
    again = _taken_up(whole, told, pool, made(pool))
    again.ask()
    before, after = (
        whole.rounds[told].asked(),
        again.rounds[-1].asked() if len(again.rounds) > told else {},
    )
    changed = [name for name in before if before[name] != after.get(name)]
    require(
        not changed,
        f"{where} knows what it was not told, or remembers what it should not: taken up in round {told + 1}, with "
        f"other scores to come, it does not ask the same ({', '.join(changed)})",
    )


def _check_end(where: str, whole: Audit, fresh: Policy) -> None:
    again = _taken_up(whole, len(whole.rounds) // 2, whole.pool, fresh)
    again.run(replay(whole.pool))
    require(
        [r.to_dict() for r in again.rounds] == [r.to_dict() for r in whole.rounds],
        f"{where} comes to another end when the audit is taken up half-way",
    )


def _check_repeated(where: str, whole: Audit, fresh: Policy) -> None:
    early, late = (
        _taken_up(whole, told, whole.pool, fresh)
        for told in (whole.plan.warm_up + 2, len(whole.rounds) - 1)
    )
    first, _, again = (audit.choice(fresh) for audit in (late, early, late))
    require(
        _words(first) == _words(again),
        f"{where} says something else when asked twice about one history with the same generator",
    )


def _taken_up(whole: Audit, rounds: int, pool: Pool, policy: Policy) -> Audit:
    """The audit after so many rounds, from its record."""
    audit = Audit.of(pool, whole.plan, policy=policy)
    for told in whole.rounds[:rounds]:
        audit.replay(Entry(0, ASKED, told.asked()))
        audit.replay(
            Entry(0, TOLD, {"step": told.query.step, "id": told.query.id, "score": told.score})
        )
    return audit


def _words(query: Query | None) -> Any:
    if query is None:
        return None
    return (
        query.group,
        None if query.items is None else query.items.tolist(),
        query.claim,
        query.stake,
        query.forecast,
    )
