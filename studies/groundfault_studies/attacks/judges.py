"""The null contract of judges, under attack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

import groundfault
from groundfault import Candidate, Evidence, Plan, Verdict, judges
from groundfault.auditing.preparation import prepare
from groundfault.core.candidate import Missing
from groundfault_lab.testing import World
from groundfault_lab.testing.calibration import resolve_plan, run_rule
from groundfault_lab.testing.worlds import PlantedEffect
from groundfault_studies.attacks.attack import Attack

LEVEL = 0.1
_PLAN = Plan(permutations=199, splits=20)
_FLAGS = 10
_ROWS = 150


def count_confirmed(judge: str, world: World, seed: int) -> int:
    """Candidates of one draw of a world that a judge confirms."""
    rule = judges.get(judge)
    units = world.draw(np.random.default_rng([seed, 11]))
    ruling = run_rule(rule, resolve_plan(rule, _PLAN), units, f"attack/{seed}")
    return sum(verdict is Verdict.CONFIRMED for verdict in ruling.verdicts)


def confirms_any(judge: str, world: World, seed: int) -> bool:
    """Whether a judge confirms anything in one draw of a world."""
    return count_confirmed(judge, world, seed) > 0


def confirms_all_planted(judge: str, world: World, seed: int) -> bool:
    """Whether a judge confirms as many candidates as are planted, or more."""
    return count_confirmed(judge, world, seed) >= len(world.effects)


@dataclass(frozen=True)
class NullTable:
    """A table of flags that nothing is related to but what is done to it.

    Attributes
    ----------
    judge : str
    times : int
        So often every row is there, each time under a new id.
    lost : float
        Share of failures on a flag's side for which the flag has no value, which ``missing`` then
        says what to make of.
    missing : {"drop", "off"}
    """

    judge: str
    times: int = 1
    lost: float = 0.0
    missing: Missing = "drop"

    def draw(self, seed: int) -> pl.DataFrame:
        """The table."""
        rng = np.random.default_rng([seed, self.times, round(100 * self.lost)])
        failed = rng.random(_ROWS * 2) < 0.3
        flags = {}
        for i in range(_FLAGS):
            on = rng.random(len(failed)) < 0.2 + 0.06 * i
            lost = failed & on & (rng.random(len(failed)) < self.lost)
            flags[f"flag_{i}"] = [
                None if gone else bool(v) for gone, v in zip(lost, on, strict=True)
            ]
        table = pl.DataFrame({"error": failed.astype(int), **flags})
        table = pl.concat([table] * self.times)[rng.permutation(self.times * len(failed))]
        return table.with_columns(id=pl.Series([f"q{i:05d}" for i in range(table.height)]))

    def __call__(self, seed: int) -> bool:
        """Whether an audit of it confirms anything."""
        evidence = Evidence.from_table(self.draw(seed), id="id", outcome="error")
        rules = [Candidate(f"flag_{i}", f"flag_{i}", missing=self.missing) for i in range(_FLAGS)]
        audit = prepare(evidence, Plan(judge=self.judge, permutations=199, seed=seed), rules)
        ruling, _, _ = audit.judge_losses(audit.losses())
        return Verdict.CONFIRMED in ruling.verdicts


def is_silent_about_runs(seed: int) -> bool:
    """Whether a report on failures in blocks of ten neighbours has no hint that names --group."""
    rng = np.random.default_rng([seed, 13])
    blocks, size = 60, 10
    rates = np.repeat(rng.choice([0.05, 0.6], blocks), size)
    flags = {f"flag_{i}": np.repeat(rng.random(blocks) < 0.5, size) for i in range(4)}
    table = pl.DataFrame({"error": (rng.random(blocks * size) < rates).astype(int), **flags})
    evidence = Evidence.from_table(table, outcome="error")
    report = groundfault.audit(evidence, Plan(judge="holm"), modes=False, ledger=False)
    return not any("come in runs" in hint and "--group" in hint for hint in report.hints)


def _attack(
    point: int, name: str, world: str, before: str, trial: Callable[[int], bool], replicates: int
) -> Attack:
    """A null world, in which nothing may be confirmed above the level."""
    return Attack(
        point=point,
        name=name,
        world=world,
        promise="P(anything confirmed) is at most 10 %.",
        before=before,
        statistic="rate of audits that confirm something",
        trial=trial,
        at_most=LEVEL,
        replicates=replicates,
    )


def _list_graded() -> Iterator[Attack]:
    spread = World(units=300, candidates=1, losses="spread")
    groups = World(units=300, candidates=4, variants=15, fewest=8, uneven=0.2, rate=0.2)
    for judge, before in (("max-t", ".48 to .53"), ("split-holm", ".22 to .32"), ("holm", "-")):
        yield _attack(
            11,
            f"unequal spread, {judge}",
            "Losses on a slice of 20 % are 0 or 1, those of the rest lie near the same mean; 300 "
            "units.",
            before,
            partial(confirms_any, judge, spread),
            400,
        )
    for judge, before in (("max-t", ".16"), ("split-holm", "-")):
        yield _attack(
            11,
            f"unequal groups of a size class, {judge}",
            "Groups of 8 and of 15 rows of one error rate; candidates go with the small ones; 300 "
            "groups.",
            before,
            partial(confirms_any, judge, groups),
            400,
        )


def _list_gaps() -> Iterator[Attack]:
    missing: tuple[Missing, ...] = ("off", "drop")
    for judge in ("max-t", "split-holm"):
        for kind in missing:
            yield _attack(
                12,
                f"missing by outcome, {kind}, {judge}",
                "Of failures for which a flag holds, three in ten lack the flag; ten flags, 300 "
                "examples.",
                ".53 to .99",
                NullTable(judge, lost=0.3, missing=kind),
                300,
            )


def _list_copies() -> Iterator[Attack]:
    before = {(2, "max-t"): ".53", (2, "split-holm"): ".23", (4, "max-t"): ".82"}
    for times in (2, 4):
        for judge in ("max-t", "split-holm"):
            yield _attack(
                13,
                f"copies under new ids, x{times}, {judge}",
                f"Each of 300 examples is in the table {times} times, under an id of its own.",
                before.get((times, judge), ".47"),
                NullTable(judge, times=times),
                300,
            )


def _list_others() -> Iterator[Attack]:
    effects = tuple(PlantedEffect(i, 0.12, 0.4) for i in range(8))
    planted = World(units=5000, candidates=16, rate=0.36, effects=effects)
    yield Attack(
        point=10,
        name="large tables, multisplit-e",
        world="Eight flags raise the error rate by 0.12 each; 5,000 examples.",
        promise="All eight are confirmed, as holm does.",
        before="0 of 8 (e-values NaN)",
        statistic="rate of audits that confirm eight or more",
        trial=partial(confirms_all_planted, "multisplit-e", planted),
        at_least=0.9,
        replicates=100,
    )
    yield Attack(
        point=13,
        name="autocorrelated order",
        world="Blocks of ten neighbours have error rates of .05 or .6, and flags of their own; 600 "
        "examples, no group named.",
        promise="No level holds, and the report says so and names --group.",
        before=".93 to .99 confirm something, without a word",
        statistic="rate of reports that do not say it",
        trial=is_silent_about_runs,
        at_most=0.05,
        replicates=60,
    )


ATTACKS: tuple[Attack, ...] = (
    *_list_graded(),
    *_list_gaps(),
    *_list_copies(),
    *_list_others(),
)
