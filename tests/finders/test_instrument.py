"""The instrument as a suspect: proposed by default, it leads the report; what follows from the
outcome is refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import groundfault
from groundfault import Candidate, Evidence, Plan, RuleError
from groundfault.auditing.column_timing import LEAK, measure_columns
from groundfault.finders.columns import Instrument
from groundfault.render.audit_words import Outline
from groundfault_lab.testing import check_finder


def make_evidence(n: int = 600, seed: int = 0, cut: float = 0.6) -> pl.DataFrame:
    """Answers of which those cut off at the token limit fail with rate ``cut`` and the others with
    .2.
    """
    rng = np.random.default_rng(seed)
    truncated = rng.random(n) < 0.3
    error = (rng.random(n) < np.where(truncated, cut, 0.2)).astype(int)
    return pl.DataFrame(
        {
            "item": np.arange(n),
            "error": error,
            "words": rng.integers(1, 100, n),
            "truncated": truncated,
            "answer": [f"{i}{[' ', '.', ''][i % 3]}" for i in range(n)],
            "target": [str(i) for i in range(n)],
            "judge_model": rng.choice(["a", "b", "c"], n),
        }
    )


def evidence(frame: pl.DataFrame, **roles: object) -> Evidence:
    return Evidence.from_table(frame, id="item", outcome="error", **roles)  # type: ignore[arg-type]


def test_measured_columns_are_proposed_and_examples_are_not():
    candidates = {c.name: c for c in Instrument().propose(evidence(make_evidence()))}
    assert {
        "truncated",
        "answer has white space at an end",
        "answer differs from the target in form alone",
    } <= set(candidates)
    assert {"judge_model = a", "judge_model = b", "judge_model = c"} <= set(candidates)
    assert {c.source for c in candidates.values()} == {"instrument"}
    assert not any("words" in c.columns for c in candidates.values())


def test_targets_that_are_numbers_are_not_compared_with_texts():
    table = make_evidence().with_columns(pl.col("target").cast(pl.Int64))
    evidence = Evidence.from_table(table, id="item", outcome="error")
    names = {candidate.name for candidate in Instrument().propose(evidence)}
    assert "truncated" in names
    assert not [name for name in names if "target" in name]


def test_columns_can_be_declared_to_be_of_the_instrument():
    frame = make_evidence().rename({"truncated": "cut"})
    assert "cut" not in {c.name for c in Instrument().propose(evidence(frame))}
    declared = evidence(frame, instrument=["cut"])
    assert "cut" in {c.name for c in Instrument().propose(declared)}
    assert "cut" not in declared.attributes


def test_the_finder_keeps_the_contract_for_plug_ins():
    assert len(check_finder(Instrument(), evidence(make_evidence()))) > 5


def test_a_confirmed_fault_of_the_instrument_leads_the_report():
    report = groundfault.audit(evidence(make_evidence()))
    sentence = Outline(report)
    assert sentence.groups[0].lead.name == "truncated"
    assert "more failures among answers that were cut off" in sentence.instrument
    assert "(truncated)" in sentence.instrument
    for text in (report.to_markdown(), report.to_html()):
        assert text.index("The grader may be at fault") < text.index("truncated holds")


def test_without_such_a_finding_nothing_is_said():
    report = groundfault.audit(evidence(make_evidence(cut=0.2)), modes=False)
    assert not report.confirmed
    assert Outline(report).instrument == ""


@pytest.mark.parametrize(
    # at alpha .10 fewer than 2 in 100 such sets of worlds have more errors
    ("worlds", "errors"),
    [(12, 4), pytest.param(60, 11, marks=pytest.mark.slow)],
)
def test_null_worlds_confirm_nothing_of_the_instrument(worlds, errors):
    wrong = 0
    for seed in range(worlds):
        report = groundfault.audit(
            evidence(make_evidence(300, seed, cut=0.2)), finders=["instrument"], modes=False
        )
        wrong += bool(report.confirmed)
    assert wrong <= errors


def test_what_an_earlier_finder_proposed_is_not_proposed_again():
    report = groundfault.audit(evidence(make_evidence()), modes=False)
    rules = [f.rule for f in report.findings]
    assert len(set(rules)) == len(rules)


def test_a_known_fault_of_a_grader_is_found(shared: Path):
    """447 answers of CRUXEval were marked wrong for their white space and the like; a small model
    has 3.8 % of them.
    """
    folder = shared / "real" / "zeroeval"
    rows = pl.read_parquet(folder / "outcomes.parquet").filter(
        benchmark="crux", model="gemma-2-2b-it"
    )
    table = rows.join(
        pl.read_parquet(folder / "examples.parquet").drop("benchmark"), on="example_id"
    )
    data = Evidence.from_table(table, id="example_id", outcome="correct", positive_is_good=True)
    plan = Plan(judge="janus", prevalence=("0.02", "0.98"), seed=1)
    report = groundfault.audit(data, plan, modes=False)
    assert "answer differs from the target in form alone" in {f.name for f in report.confirmed}
    assert "The grader may be at fault" in Outline(report).instrument


def leaking(n: int = 200, wrong: int = 2) -> pl.DataFrame:
    frame = make_evidence(n)
    follows = frame["error"].to_numpy().copy()
    follows[:wrong] = 1 - follows[:wrong]
    return frame.with_columns(
        reason=pl.Series(np.where(follows == 1, "gave up", "solved")), retries=follows * 3
    )


def test_a_column_that_tells_the_outcome_is_left_out_and_named():
    report = groundfault.audit(evidence(leaking()), modes=False)
    assert not any("reason" in f.rule or "retries" in f.rule for f in report.findings)
    assert report.deciding is not None
    assert [one.column for one in report.deciding] == ["reason"]
    assert any("left out" in hint and "'retries'" in hint for hint in report.hints)


def test_a_candidate_that_reads_it_is_refused_unless_it_is_allowed():
    candidate = Candidate("gave up", "reason = 'gave up'")
    with pytest.raises(
        RuleError, match=r"'gave up' reads 'reason', which predicts \d+% of the rarer outcome"
    ):
        groundfault.audit(evidence(leaking()), candidates=[candidate])
    other = evidence(leaking(), allow_leakage=["reason"])
    assert groundfault.audit(other, candidates=[candidate], modes=False).confirmed


def test_a_declared_consequence_is_no_attribute_and_no_candidate():
    data = evidence(leaking(wrong=60), post_outcome=["reason", "retries"])
    assert not {"reason", "retries"} & set(data.attributes)
    with pytest.raises(RuleError, match="was declared to follow from the outcome"):
        groundfault.audit(data, candidates=[Candidate("gave up", "reason = 'gave up'")])


def test_the_reason_why_episodes_end_is_a_leak(shared: Path):
    rows = pl.read_parquet(shared / "real" / "mint" / "episodes.parquet").filter(
        max_turns=5, model="gpt-4-0613"
    )
    rows = rows.filter(pl.col("terminate_reason") != "error").with_columns(
        error=1 - pl.col("correct")
    )
    data = Evidence.from_table(rows, id="example_id", outcome="correct", positive_is_good=True)
    report = groundfault.audit(data, modes=False)
    assert any("left out" in hint and "'terminate_reason'" in hint for hint in report.hints)


@given(st.integers(0, 10_000))
def test_noise_is_no_leak_however_many_levels_it_has(seed: int):
    rng = np.random.default_rng(seed)
    n = 80
    frame = pl.DataFrame(
        {
            "item": np.arange(n),
            "error": rng.permutation(np.arange(n) % 2),
            "level": rng.integers(0, 30, n).astype(str),
            "own": [f"v{i}" for i in range(n)],
            "number": rng.normal(size=n),
            "one": np.ones(n),
        }
    )
    shares = measure_columns(evidence(frame), ["level", "own", "number", "one"])
    assert not any(share >= LEAK for share in shares.values())


@pytest.mark.parametrize("column", ["flag", "word", "number", "missing", "score"])
def test_leaks_of_every_kind_are_seen(column: str):
    n = 100
    error = np.arange(n) % 2
    frame = pl.DataFrame(
        {
            "item": np.arange(n),
            "error": error,
            "flag": error == 0,
            "word": np.where(error == 1, "x", "y"),
            "number": np.where(error == 1, 5.0, -5.0) + np.linspace(0, 1, n),
            "missing": [None if e else 1 for e in error],
            "score": np.where(error == 1, np.linspace(0, 0.4, n), np.linspace(0.5, 1, n)),
        }
    )
    assert measure_columns(evidence(frame), [column])[column] >= LEAK
