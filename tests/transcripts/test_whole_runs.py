"""What a scanner, a code or a description says of whole runs is how they fail, and no rule."""

from __future__ import annotations

import pytest
from agent_worlds import mark_runs

from groundfault import Candidate, Evidence, audit
from groundfault.auditing.column_timing import Timing
from groundfault.auditing.preparation import prepare
from groundfault.errors import RuleError
from groundfault.render import to_markdown
from groundfault.transcripts.judging import Behaviour, judge_transcripts


def name_whole(evidence: Evidence) -> dict[str, Behaviour]:
    return {one.name: one for one in judge_transcripts(evidence, 0.1).behaviours if one.whole}


def test_a_scanner_of_answers_is_compared_within_tasks() -> None:
    evidence = mark_runs(0, (60, 4, 1), 0.5, steps=False)
    found = name_whole(evidence)
    assert set(found) == {"scan", "tone: warm", "tone: cold"}
    scan = found["scan"]
    assert scan.p is not None
    assert scan.p < 0.01
    assert scan.failed > scan.expected
    assert (scan.first_turn, scan.failing_runs) == (None, int(evidence.loss.sum()))
    report = audit(evidence, ledger=False)
    assert {"scan"} <= {one.name for one in report.behaviours}
    page = to_markdown(report)
    assert "Whole runs" in page
    # answers have no turns
    assert "What announces failure" not in page
    assert not {"scan", "tone"} & {c for mode in report.modes for c in mode.columns}


def test_long_runs_alone_name_no_scanner() -> None:
    worlds = 20
    named = [
        any(one.p is not None and one.p <= 0.1 for one in name_whole(world).values())
        for world in (mark_runs(seed, (150, 1, 1)) for seed in range(worlds))
    ]
    # without the length the flag of each world goes with failing
    raw = [
        one.failing / one.failing_runs - one.passing / one.passing_runs
        for one in (name_whole(mark_runs(seed, (150, 1, 1)))["scan"] for seed in (0, 1))
    ]
    assert min(raw) > 0.1
    assert sum(named) <= 5


def test_a_column_of_whole_runs_is_of_a_stage_and_in_no_rule() -> None:
    evidence = mark_runs(0, (60, 1, 1), 0.5, steps=False)
    stages = {one.column: one for one in prepare(evidence).stages}
    assert (stages["scan"].stage, stages["scan"].reason) == (Timing.DURING, "declared")
    with pytest.raises(RuleError, match="'scan', which says how runs fail"):
        audit(evidence, candidates=[Candidate.from_text("flagged: scan")], ledger=False)
