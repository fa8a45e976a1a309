"""Time 10,000 e-processes of 400 steps, beside a plain NumPy loop over sequences and steps.

Run with ``python benchmarks/e_processes.py [--json]``. The loop is timed on a few sequences and
scaled up; both give the same numbers, which is checked. Beside the paper's shares, the default
ones, and the other bets. ``--json`` ends with the ratios.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from groundfault.sequential import BETS, e_process

SEQUENCES, STEPS, LOOPED = 10_000, 400, 20
Q, ALTERNATIVE, ETA, BUDGET = 0.85, 0.82, 0.1, 40
GRID = np.array([0.6, 0.655, 0.71, 0.765, 0.82])
FORECAST = np.full(STEPS, 0.8)
PAPERS = ("lr", "lr-ui", "sr-lr", "sr-lr-ui")


def loop(scores: np.ndarray, bet: str) -> np.ndarray:
    """The textbook program: one sequence, one step at a time."""
    out = np.empty(scores.shape)
    for i, row in enumerate(scores):
        weights, wealth = np.full(len(GRID), 1 / len(GRID)), 0.0 if bet.startswith("sr-") else 1.0
        for t, y in enumerate(row):
            p = weights @ GRID if bet.endswith("-ui") else ALTERNATIVE
            if bet.startswith("sr-"):
                wealth += 1 / BUDGET if t < BUDGET else 0.0
            wealth *= (p / Q) ** y * ((1 - p) / (1 - Q)) ** (1 - y)
            if bet.endswith("-ui"):
                weights = weights * ((GRID / Q) ** y * ((1 - GRID) / (1 - Q)) ** (1 - y)) ** ETA
                weights = weights / np.sum(weights)
            out[i, t] = np.log(wealth)
    return out


def measure(scores: np.ndarray, bet: str, **settings: object) -> tuple[float, np.ndarray]:
    """CPU seconds, the best of three, and the log e-values."""
    took = []
    for _ in range(3):
        start = time.process_time()
        log_e = e_process(
            scores,
            Q,
            bet=bet,
            alternative=ALTERNATIVE,
            grid=GRID,
            eta=ETA,
            burn_in=BUDGET,
            forecast=FORECAST,
            **settings,
        )
        took.append(time.process_time() - start)
    return min(took), log_e


def main() -> None:
    scores = (np.random.default_rng(0).random((SEQUENCES, STEPS)) < Q).astype(float)
    print(f"{SEQUENCES:,} e-processes of {STEPS} steps on one core; CPU time, best of 3")
    ratios = {}
    for bet in BETS:
        default, _ = measure(scores, bet, shares="heavy-tailed", idle_mass=True)
        line = f"{bet:13} default {default:5.2f} s"
        if bet in PAPERS:
            took, ours = measure(scores, bet)
            start = time.process_time()
            plain = loop(scores[:LOOPED], bet)
            scaled = (time.process_time() - start) * SEQUENCES / LOOPED
            np.testing.assert_allclose(ours[:LOOPED], plain, atol=1e-9)
            ratios[bet] = scaled / took
            line += f"   the paper's {took:5.2f} s   plain loop {scaled:6.1f} s (scaled)"
            line += f"   {scaled / took:5.0f} x"
        print(line)
    if "--json" in sys.argv[1:]:
        print(json.dumps(ratios))


if __name__ == "__main__":
    main()
