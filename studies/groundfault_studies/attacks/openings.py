"""Guarantees after several openings of one holdout, under attack.

In every world the errors depend on no column, so that whatever is confirmed is false. Somebody
looks again and again, and hands on a report that confirms something. What it states as the chance
of that is held against how often it happens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault_studies.attacks.attack import Attack

EXAMPLES, COLUMNS, RATE = 300, 20, 0.3
_STATED = re.compile(r"at most ([\d.]+)%")

OTHER_PLANS = (
    Plan(judge="max-t"),
    Plan(judge="holm"),
    Plan(judge="janus"),
    Plan(judge="split-holm"),
    Plan(judge="max-t", prevalence=("0.4", "0.6")),
    Plan(judge="split-holm", min_lift="0.02"),
    Plan(judge="janus", prevalence=("0.45", "0.9")),
    Plan(judge="max-t", min_lift="0.05", permutations=999),
)
"""What an impatient auditor tries one after the other."""


def make_noise(seed: int, columns: int = COLUMNS) -> tuple[Evidence, list[Candidate]]:
    """Errors at random beside 0/1 columns at random, and a candidate for each column."""
    rng = np.random.default_rng(seed)
    marks = rng.random((columns, EXAMPLES)) < rng.uniform(0.2, 0.8, (columns, 1))
    frame = pl.DataFrame(
        {
            "id": [f"e{i}" for i in range(EXAMPLES)],
            **{f"c{j}": row.astype(int) for j, row in enumerate(marks)},
            "error": (rng.random(EXAMPLES) < RATE).astype(int),
        }
    )
    candidates = [Candidate(f"c{j}", f"c{j} = 1") for j in range(columns)]
    return Evidence.from_table(frame, id="id", outcome="error"), candidates


def look_again(
    evidence: Evidence, plans: Iterable[Plan], candidates: Sequence[Candidate]
) -> Iterator[groundfault.Report]:
    """The reports of looks at the same outcomes, each for a reason, in one ledger."""
    with TemporaryDirectory() as folder:
        for number, plan in enumerate(plans):
            yield groundfault.audit(
                evidence,
                plan,
                candidates,
                finders=[],
                ledger=Path(folder) / "ledger.db",
                reopen=f"look {number + 1}" if number else None,
                modes=False,
            )


def read_level(report: groundfault.Report) -> float:
    """The error level that a report states; infinite where it guarantees none."""
    stated = _STATED.search(report.guarantee)
    return float(stated[1]) / 100 if stated else np.inf


def _seeds(count: int) -> list[Plan]:
    return [Plan(judge="split-holm", seed=seed) for seed in range(count)]


def states_too_little(plans: Sequence[Plan], level: float, seed: int) -> bool:
    """Whether some report confirms something although nothing is there, and states the level."""
    evidence, candidates = make_noise(seed)
    for report in look_again(evidence, plans, candidates):
        # the level only grows from look to look: the rest would state more, too
        if read_level(report) > level + 1e-9:
            return False
        if report.confirmed:
            return True
    return False


def finds_by_looking(seed: int) -> bool:
    """Whether candidates made from what a first look showed are confirmed at a level of their own.

    The second look is at joined columns, chosen for how many errors they hold; its report may state
    a level only on the condition that this was not done.
    """
    evidence, candidates = make_noise(seed, columns=8)
    frame = evidence.frame
    names = [c.name for c in candidates]
    joined = [
        (frame.filter((pl.col(a) == 1) & (pl.col(b) == 1))["error"].mean() or 0.0, a, b)
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    ]
    _, a, b = max(joined)
    mined = [Candidate("mined", f"{a} = 1 AND {b} = 1")]
    with TemporaryDirectory() as folder:
        book = Path(folder) / "ledger.db"
        plan = Plan(judge="holm")
        groundfault.audit(evidence, plan, candidates, finders=[], ledger=book, modes=False)
        report = groundfault.audit(
            evidence, plan, mined, finders=[], ledger=book, reopen="it struck me", modes=False
        )
    condition = "if no look was chosen by the result of an earlier one"
    return bool(report.confirmed) and condition not in report.guarantee


ATTACKS: tuple[Attack, ...] = (
    Attack(
        point=5,
        name="best of 20 seeds",
        world="300 examples, 20 columns of noise; split-holm with 20 seeds, one after the other, "
        "each for a reason",
        promise="no report that states a family-wise error of 10 % confirms anything, but for one "
        "world in ten",
        before=".29, and every report says 10 %",
        statistic="rate of worlds with a report that confirms something and states 10 %",
        trial=partial(states_too_little, _seeds(20), 0.10),
        at_most=0.10,
        replicates=200,
    ),
    Attack(
        point=5,
        name="best of 3 seeds",
        world="the same, with 3 seeds",
        promise="what three looks confirm is false with the chance that the third states, 30 %",
        before="every report says 10 %",
        statistic="rate of worlds with a report that confirms something and states 30 % or less",
        trial=partial(states_too_little, _seeds(3), 0.30),
        at_most=0.30,
        replicates=300,
    ),
    Attack(
        point=5,
        name="other judges, windows and least lifts",
        world="the same columns; eight plans, one after the other, each for a reason",
        promise="no report that states a family-wise error of 10 % confirms anything, but for one "
        "world in ten",
        before="every report says 10 %",
        statistic="rate of worlds with a report that confirms something and states 10 %",
        trial=partial(states_too_little, OTHER_PLANS, 0.10),
        at_most=0.10,
        replicates=200,
    ),
    Attack(
        point=5,
        name="three other judges",
        world="the same, with the first three plans: max-t, holm and janus",
        promise="what three looks confirm is false with the chance that the third states, 30 %",
        before="every report says 10 %",
        statistic="rate of worlds with a report that confirms something and states 30 % or less",
        trial=partial(states_too_little, OTHER_PLANS[:3], 0.30),
        at_most=0.30,
        replicates=200,
    ),
    Attack(
        point=5,
        name="candidates made from the first look",
        world="300 examples, 8 columns of noise; the second look is at the pair of columns that "
        "held the most errors in the first",
        promise="the level is stated on the condition that no look was chosen by an earlier one, "
        "which this one was",
        before="the report says 10 %, unconditionally",
        statistic="rate of reports that confirm it and state a level without the condition",
        trial=finds_by_looking,
        at_most=0.0,
        replicates=200,
    ),
)
