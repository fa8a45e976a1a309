"""The default finders and the default judge: rare slices are eligible, missing texts left out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import groundfault
from groundfault import Evidence, Plan, Verdict
from groundfault.finders.columns import Text

WORDS = np.array("please tell me about the order we had last week in town".split())


def make_topics(n: int, share: float, rates: tuple[float, float], seed: int = 0) -> Evidence:
    """One topic of a share of the examples fails at the first rate, all others at the second."""
    rng = np.random.default_rng(seed)
    others = rng.choice(["travel", "code", "law", "news", "maths", "food"], n)
    topic = np.where(rng.random(n) < share, "billing", others)
    error = rng.random(n) < np.where(topic == "billing", *rates)
    return Evidence.from_table(pl.DataFrame({"topic": topic, "error": error * 1}), outcome="error")


def test_a_topic_of_one_in_twenty_that_fails_four_times_as_often_is_confirmed_by_default() -> None:
    evidence = make_topics(50_000, 0.05, (0.59, 0.15))
    report = groundfault.audit(evidence, Plan(permutations=199), modes=False)
    first = report.weaknesses[0]
    assert first.name == "topic = billing"
    assert first.full.lift == pytest.approx(0.44, abs=0.03)
    assert all(f.verdict is not Verdict.UNTESTABLE for f in report.findings)


@pytest.mark.parametrize("judge", ["auto", "max-t", "split-holm", "holm"])
def test_judges_that_rank_by_p_have_no_prevalence_window(judge: str) -> None:
    plan = Plan(judge=judge, permutations=999)
    report = groundfault.audit(make_topics(4_000, 0.02, (0.9, 0.1)), plan, modes=False)
    assert "topic = billing" in [f.name for f in report.weaknesses]
    assert not any("prevalence" in f.reason for f in report.findings)


def test_eight_examples_are_enough_to_be_tested() -> None:
    names = ["rare"] * 8 + ["scarce"] * 7 + ["usual"] * 285
    table = pl.DataFrame({"kind": names, "error": [1] * 15 + [1, 0, 0, 0, 0] * 57})
    evidence = Evidence.from_table(table, outcome="error")
    report = groundfault.audit(evidence, Plan(judge="max-t", permutations=499), modes=False)
    verdicts = {f.name: f.verdict for f in report.findings}
    assert verdicts["kind = rare"] is Verdict.CONFIRMED
    assert verdicts["kind = scarce"] is Verdict.UNTESTABLE


def test_examples_without_a_text_are_neither_on_nor_off_its_properties() -> None:
    rng = np.random.default_rng(2)
    texts: list[str | None] = [" ".join(rng.choice(WORDS, rng.integers(8, 20))) for _ in range(300)]
    texts = [None if i % 4 == 0 else f"{t}?" if i % 3 == 0 else t for i, t in enumerate(texts)]
    table = pl.DataFrame({"prompt": texts, "error": (rng.random(300) < 0.3) * 1})
    evidence = Evidence.from_table(table, outcome="error")
    proposals = list(Text().propose(evidence))
    assert "prompt has a question mark" in [c.name for c in proposals]
    assert {c.missing for c in proposals} == {"drop"}
    report = groundfault.audit(evidence, Plan(judge="max-t", permutations=99), modes=False)
    sizes = {f.name: f.full.on + f.full.off for f in report.findings}
    assert sizes.pop("prompt is missing") == 300
    assert set(sizes.values()) == {225}
    empty = table.with_columns(prompt=pl.lit(None, dtype=pl.String))
    assert list(Text().propose(Evidence.from_table(empty, outcome="error"))) == []
