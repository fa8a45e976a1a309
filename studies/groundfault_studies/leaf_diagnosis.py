"""Leaving one model out: how many answers show which leaves it fails, and how well they are
predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.core.rules import Rule
from groundfault_lab.taxonomy.fitting.leaves import find_leaves
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.use.basis import MIN_OF_EACH_CLUSTER, Basis, draw_by_group
from groundfault_lab.taxonomy.use.diagnosis import TargetExamples, estimate_profile
from groundfault_lab.taxonomy.use.leaf_evidence import choose_for_leaves, weigh_leaves
from groundfault_lab.taxonomy.use.prediction import Method, Peers
from groundfault_studies.ranks import area, tau_b

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

MOST, BATCH, PROBE = 150, 5, 50
_LEVEL = 0.1
_METHODS: tuple[Method, ...] = ("nearest", "neighbours", "ability")


def list_rules(matrix: Matrix) -> list[str]:
    """Rules of the leaves of a matrix."""
    return [leaf.rule for leaf in find_leaves(matrix, matrix.informative(), Settings())]


def make_basis(matrix: Matrix, rules: Sequence[str]) -> tuple[Basis, Matrix]:
    """Basis by these rules and the informative examples, which it is of."""
    used = matrix.informative()
    holds = [Rule.parse(rule).holds(used.attributes).to_numpy() for rule in rules]
    return Basis.of(used, np.column_stack(holds).astype(np.bool_)), used


def read_failures(matrix: Matrix, used: Matrix, model: str) -> Bools:
    """Failures of a model on the examples of ``used``."""
    rows = [matrix.places[name] for name in used.examples]
    return np.asarray(matrix.values[rows, matrix.models.index(model)] == 0)


def diagnose_model(
    matrix: Matrix, model: str, rng: np.random.Generator, rules: Sequence[str] | None = None
) -> dict[str, Any]:
    """Numbers of one model, diagnosed by the leaves of the others, or by these rules.

    Returns
    -------
    dict
        ``failing``, leaves that all answers show it to fail; ``cluster`` and ``leaves``, answers
        until all of these are named, `MOST` where they are not, when examples are drawn by cluster
        as in the paper and by what is open; ``wrong``, other leaves named on the way by either.
        ``tau`` and ``auc`` of each method at 50 random answers, on the leaves' rates elsewhere.
        Empty where there are fewer than two leaves.
    """
    others = matrix.without(model)
    rules = list_rules(others) if rules is None else rules
    if len(rules) < 2:
        return {}
    basis, used = make_basis(others, rules)
    failures = read_failures(matrix, used, model)
    every = np.ones(len(basis), dtype=np.bool_)
    bar = len(rules) / _LEVEL
    failing = weigh_leaves(basis, every, failures)[0] >= bar
    row: dict[str, Any] = {"failing": int(failing.sum()), "wrong": 0}
    priority = rng.random(len(basis))
    orders = {"cluster": draw_clusters(basis, priority)}
    orders["leaves"] = ask_open(basis, failures, bar, priority)
    for name, order in orders.items():
        row[name] = MOST
        for answered in order:
            named = weigh_leaves(basis, answered, failures & answered)[0] >= bar
            if failing.any() and named[failing].all():
                row[name] = int(answered.sum())
                break
        row["wrong"] += int((named & ~failing).sum())
    truth, guesses = predict_leaves(basis, used, failures, rng)
    return row | score_guesses(truth, guesses)


def predict_others(
    matrix: Matrix, half: Sequence[str], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """A row for each model that is not in a half, predicted by the leaves of those that are.

    The last row is of the order of these models, by the mean of the leaves' rates: ``rank`` of each
    method, Kendall's tau with the true order; ``rank asked`` by the share failed of the answers.
    """
    known = matrix.select(half)
    rules = list_rules(known)
    if len(rules) < 2:
        return []
    basis, used = make_basis(known, rules)
    rows, means = [], []
    for model in (name for name in matrix.models if name not in half):
        truth, guesses = predict_leaves(basis, used, read_failures(matrix, used, model), rng)
        rows.append({"model": model} | score_guesses(truth, guesses))
        means.append([one.mean() for one in (truth, *guesses.values())])
    order, first = dict(zip(("truth", *guesses), np.transpose(means), strict=True)), "truth"
    ranks = {f"rank {name}": float(tau_b(one, order[first])) for name, one in order.items()}
    return [*rows, {name: one for name, one in ranks.items() if name != f"rank {first}"}]


def draw_clusters(basis: Basis, priority: Floats) -> Iterator[Bools]:
    """What has been answered after each batch: three of each leaf, then by size."""
    for budget in range(BATCH, MOST + 1, BATCH):
        answered = np.zeros(len(basis), dtype=np.bool_)
        free = ~answered
        rows = draw_by_group(basis.labels, free, priority, budget, min_each=MIN_OF_EACH_CLUSTER)
        answered[rows] = True
        yield answered


def ask_open(basis: Basis, failures: Bools, bar: float, priority: Floats) -> Iterator[Bools]:
    """What has been answered after each batch, of leaves that are still open."""
    answered = np.zeros(len(basis), dtype=np.bool_)
    while answered.sum() < MOST:
        fails, passes = weigh_leaves(basis, answered, failures & answered)
        wanted = [c for c in np.argsort(-fails) if max(fails[c], passes[c]) < bar]
        parts = (answered, failures & answered, np.array(wanted, dtype=np.intp))
        answered[choose_for_leaves(basis, *parts, BATCH, priority)] = True
        yield answered


def predict_leaves(
    basis: Basis, matrix: Matrix, failures: Bools, rng: np.random.Generator
) -> tuple[Floats, dict[str, Floats]]:
    """Rates of leaves on examples that were not asked, true and guessed from 50 random answers."""
    probe = np.zeros(len(basis), dtype=np.bool_)
    probe[rng.permutation(len(basis))[: min(PROBE, len(basis) // 2)]] = True
    rest = ~probe
    size = np.maximum(basis.inside[rest].sum(axis=0), 1)
    truth = basis.inside[rest].T @ failures[rest] / size
    peers, trials = Peers.of(matrix, basis.items), probe[:, None].astype(np.int64)
    passes = trials * ~failures[:, None]
    guesses: dict[str, Floats] = {
        name: basis.inside[rest].T @ (1 - peers.chances(name, passes, trials)[0][rest, 0]) / size
        for name in _METHODS
    }
    own = estimate_profile(basis, failures, probe[None], TargetExamples.of(basis, rest[None]))
    asked = np.full(basis.clusters, failures[probe].mean())
    return truth, guesses | {"shrunk": own.shrunk[0], "asked": asked}


def score_guesses(truth: Floats, guesses: dict[str, Floats]) -> dict[str, float | None]:
    """Kendall's tau of guessed rates, and the area for rates above one half, by method."""
    bad = truth > 0.5
    out: dict[str, float | None] = {}
    for name, guess in guesses.items():
        out[f"tau {name}"] = float(np.nan_to_num(tau_b(guess[None], truth[None]))[0])
        out[f"auc {name}"] = float(area(guess, bad)) if 0 < bad.sum() < len(bad) else None
    return out
