"""CPU seconds per labelled case of a full adaptive audit, beside those recorded of the reference
implementation.

Run with ``python benchmarks/adaptive_audit.py``. The audit labels 250 of 448 cases with embeddings
of 768 numbers, as the paper's first experiment does, and never stops early. The reference took 4.5
CPU seconds for a case when 6 or fewer were labelled and 17.9 at 250, on this kind of machine: it
trains 160 networks anew after every label."""

from __future__ import annotations

import argparse
import time

import numpy as np

from groundfault.sequential import Pool, SequentialAudit, policies

CASES, NUMBERS, LABELS = 448, 768, 250
REFERENCE = {6: 4.5, 250: 17.9}
GOAL = 50


def pool(seed: int = 448) -> tuple[Pool, np.ndarray]:
    """Cases of three kinds, of which one fails, with embeddings as long as those in the paper; and
    their scores.
    """
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, size=CASES, p=[0.27, 0.31, 0.42])
    directions = rng.normal(size=(4, NUMBERS))
    directions *= np.array([[16], [5], [5], [5]]) / np.linalg.norm(
        directions, axis=1, keepdims=True
    )
    points = (
        directions[0]
        + directions[1 + kind]
        + 8 / np.sqrt(NUMBERS) * rng.normal(size=(CASES, NUMBERS))
    )
    scores = (rng.random(CASES) < np.array([0.98, 0.9, 0.72])[kind]).astype(float)
    return Pool.from_arrays(
        [f"{i:03d}" for i in range(CASES)], {"kind": kind}, embedding=points
    ), scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--policies", nargs="+", default=["adaptive", "logistic", "gp", "boosted", "thompson"]
    )
    parser.add_argument("--labels", type=int, default=LABELS)
    options = parser.parse_args()
    cases, scores = pool()
    print(
        f"{options.labels} of {CASES} cases labelled, embeddings of {NUMBERS} numbers; CPU seconds "
        "per labelled case"
    )
    for name in options.policies:
        policy = policies.get(name)
        # a level that no evidence reaches keeps the audit going
        audit = SequentialAudit(
            cases,
            threshold=0.85,
            policy=policy,
            claim="literal",
            alpha=1e-280,
            budget=options.labels,
        )
        took = []
        while True:
            start = time.process_time()
            query = audit.ask()
            if query is None:
                break
            audit.tell(query, float(scores[int(query.id)]))
            took.append(time.process_time() - start)
        first, last = np.mean(took[:6]), np.mean(took[-6:])
        growth = (REFERENCE[250] - REFERENCE[6]) / (250 - 6)
        theirs = np.sum(REFERENCE[6] + growth * np.maximum(np.arange(1, len(took) + 1) - 6, 0))
        ratio = theirs / sum(took)
        print(
            f"{name:9} {np.mean(took):.4f} a case: {first:.4f} for the first six, {last:.4f} for "
            "the last six"
        )
        print(
            f"          the audit {sum(took):.1f} s, the reference {theirs:,.0f} s: {ratio:,.0f} "
            f"x, goal {GOAL} x"
        )


if __name__ == "__main__":
    main()
