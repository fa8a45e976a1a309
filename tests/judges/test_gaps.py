"""Gaps that go with the outcome confirm nothing; gaps that do not leave verdicts as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from groundfault import Candidate, Evidence, Plan, Verdict, audit, judges
from groundfault.core.units import Marks, Units
from groundfault.judges.gaps import find_gaps_by_outcome
from groundfault.judges.rule import rule
from groundfault.stats import bits
from groundfault.testing import World, calibrate

PLAN = Plan(min_lift=0.1, permutations=199).resolve(lift_ranked=False, gated=True)


def make_units(empty: np.ndarray, losses: np.ndarray, on: np.ndarray | None = None) -> Units:
    n = len(losses)
    on = np.arange(n) % 2 == 0 if on is None else on
    marks = Marks(n, bits.pack((on & ~empty)[None]), None, ("",), bits.pack(empty[None]))
    return Units.of(marks, losses[None].astype(float))


@pytest.mark.parametrize("name", ["janus", "split-holm", "holm", "max-t"])
@pytest.mark.parametrize("lost", [0.1, 0.3])
def test_values_lost_by_failing_confirm_nothing(name: str, lost: float) -> None:
    """Nothing is related to the losses but the gaps: without the test, up to 1.00 of audits."""
    world = World(units=300, candidates=10, lost=lost)
    assert calibrate(name, PLAN, worlds=[world], replicates=30).passed


def test_gaps_are_tested_in_each_part_and_for_each_outcome() -> None:
    rng = np.random.default_rng(0)
    losses, empty = (rng.random(400) < 0.4), rng.random(400) < 0.2
    harmless = make_units(empty, losses)
    harmful = make_units(losses & (rng.random(400) < 0.5), losses)
    for parts, answer in (
        ([harmless], False),
        ([harmful], True),
        ([harmless, harmless], False),
        ([harmful, harmless], True),
        ([harmless, harmful], True),
        ([replace(harmful, marks=replace(harmful.marks, empty=None))], False),
    ):
        assert find_gaps_by_outcome(parts, PLAN, rng).tolist() == [answer]
    two = replace(harmful, losses=np.stack([harmful.losses[0], rng.permutation(losses)]))
    assert find_gaps_by_outcome([two], PLAN, rng)[0]


def test_only_the_copy_with_gaps_is_refused() -> None:
    """A flag that is off wherever the value is missing is another rule, and has no gaps."""
    rng = np.random.default_rng(1)
    losses = rng.random(400) < 0.4
    empty = losses & (rng.random(400) < 0.5)
    on = ~empty & (rng.random(400) < 0.8)
    packed = bits.pack(np.stack([on, on]))
    nowhere = np.zeros_like(empty)
    marks = Marks(400, packed, None, ("", ""), bits.pack(np.stack([empty, nowhere])))
    units = Units.of(marks, losses[None].astype(float))
    plan = replace(PLAN, min_lift=0)
    ruling = rule(judges.get("holm"), plan, units, None, marks)
    assert ruling.verdicts == (Verdict.UNTESTABLE, Verdict.CONFIRMED)
    assert ruling.reasons == (("missing_by_outcome",), ())


@pytest.mark.parametrize("missing", ["drop", "off"])
def test_the_finding_says_it(missing: str) -> None:
    rng = np.random.default_rng(2)
    failed = rng.random(600) < 0.4
    tool = rng.random(600) < 0.5
    lost = failed & (rng.random(600) < np.where(tool, 0.6, 0.1))
    values = [None if gone else bool(used) for gone, used in zip(lost, tool, strict=True)]
    table = pl.DataFrame({"error": failed.astype(int), "tool": values})
    evidence = Evidence.from_table(table, outcome="error")
    candidates = [Candidate("tool", "tool", missing=missing)]
    (finding,) = audit(evidence, Plan(judge="max-t"), candidates, modes=False).findings
    assert finding.verdict is Verdict.UNTESTABLE
    assert finding.reason.startswith("missing_by_outcome: whether it has a value goes with the")
