"""Agreement of reviewers on each question, from the decisions they made blind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.core.plan import Plan
from groundfault.review.decision import ANSWERS, VERDICTS, Decision, select_latest
from groundfault.stats import agreement as stats
from groundfault.stats.agreement import Agreement

QUESTIONS: dict[str, tuple[str, ...]] = {
    "prompt_valid": ANSWERS,
    "extraction_valid": ANSWERS,
    "model_wrong": ANSWERS,
    "verdict": VERDICTS,
}


def agreement(
    decisions: Iterable[Decision], *, seed: int = 0, level: float = 0.95
) -> dict[str, dict[str, Agreement]]:
    """Raw agreement, kappa, alpha and AC1 on each question and on the verdict.

    They are those of Cohen, Krippendorff and Gwet.

    The last decision that each reviewer made blind counts; adjudicators, who see only what is
    disputed, do not. A question that was moot to a reviewer is missing; "unsure" is an answer like
    the others.

    Parameters
    ----------
    decisions : iterable of Decision
    seed : int
        Of the bootstrap over items; see `groundfault.stats.agreement`.
    level : float in (0, 1)

    Returns
    -------
    dict of dict of Agreement
        By question, then by ``raw``, ``kappa``, ``alpha`` and ``ac1``.
    """
    # agreement after unblinding would measure the influence of what was shown
    blind = [d for d in decisions if d.role == "reviewer" and not d.unblinded]
    counting = list(select_latest(blind).values())
    return {
        question: _measure(counting, question, Plan(seed=seed), level) for question in QUESTIONS
    }


def summarize_agreement(
    decisions: Iterable[Decision], *, seed: int = 0
) -> dict[str, dict[str, dict[str, Any]]]:
    """`agreement` as JSON holds it: the fields of each `Agreement`, None for NaN."""
    return {
        question: {
            name: {key: None if value != value else value for key, value in asdict(each).items()}
            for name, each in measures.items()
        }
        for question, measures in agreement(decisions, seed=seed).items()
    }


def _measure(
    decisions: list[Decision], question: str, plan: Plan, level: float
) -> dict[str, Agreement]:
    ratings = _tabulate(decisions, question)
    size = len(QUESTIONS[question])
    measures = {
        "raw": stats.raw,
        "kappa": stats.cohen,
        "alpha": stats.krippendorff,
        "ac1": stats.gwet,
    }
    results: dict[str, Agreement] = {}
    for name, measure in measures.items():
        # Cohen (1960) defined it for two; more need alpha or AC1
        if name == "kappa" and ratings.shape[1] != 2:
            reason = f"Cohen's kappa is of two reviewers, not {ratings.shape[1]}"
            results[name] = Agreement(np.nan, np.nan, np.nan, results["raw"].items, reason)
        else:
            rng = plan.rng(f"agreement on {question}: {name}")
            results[name] = measure(ratings, size, rng, level=level)
    return results


def _tabulate(decisions: list[Decision], question: str) -> NDArray[np.int64]:
    """Items by reviewers: the place of each answer among those there are."""
    items = {item: row for row, item in enumerate(sorted({d.item for d in decisions}))}
    people = {name: column for column, name in enumerate(sorted({d.reviewer for d in decisions}))}
    table = np.full((len(items), len(people)), stats.MISSING, dtype=np.int64)
    for decision in decisions:
        answer = getattr(decision, question)
        if answer is not None:
            table[items[decision.item], people[decision.reviewer]] = QUESTIONS[question].index(
                answer
            )
    return table
