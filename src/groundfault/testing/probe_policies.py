"""What every policy for prompt keys has to satisfy, as a function that raises AssertionError."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import cast

import numpy as np

from groundfault.core.plan import Plan
from groundfault.probes.policies import get
from groundfault.probes.policies.history import Bools, Keys, PromptHistory, PromptPolicy
from groundfault.testing.checks import require

_TASKS, _SIZES, _SIZE, _BATCHES = 6, (3, 2), 4, 12


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

    def make() -> PromptPolicy:
        if isinstance(policy, str):
            return get(policy)
        if isinstance(policy, type) or not hasattr(policy, "ask"):
            return cast("Callable[[], PromptPolicy]", policy)()
        return copy.deepcopy(cast("PromptPolicy", policy))

    rng = np.random.default_rng(seed)
    count = _TASKS * int(np.prod(_SIZES))
    mismatch, blocked = rng.random(count) < 0.3, rng.random(count) < 0.2
    blocked[: count // _TASKS] = True  # a task of which nothing may be asked
    one, histories = make(), [_make_history(np.empty(0, dtype=np.intp), mismatch, blocked, 1)]
    for batch in range(1, _BATCHES + 1):
        where = f"the policy {one.name!r}, in batch {batch},"
        now = histories[-1]
        keys = _ask(one, now, seed)
        _check_keys(where, one, now, keys)
        require(
            np.array_equal(keys, _ask(make(), now, seed)),
            f"{where} asks other keys when resumed there: it keeps state between calls",
        )
        _ask(one, histories[batch // 2], seed)
        require(
            np.array_equal(keys, _ask(one, now, seed)),
            f"{where} asks other keys when called twice with one history and the same generators",
        )
        histories.append(_make_history(np.append(now.keys, keys), mismatch, blocked, batch + 1))


def _make_history(keys: Keys, mismatch: Bools, blocked: Bools, batch: int) -> PromptHistory:
    """A history whose arrays cannot be written to."""
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
