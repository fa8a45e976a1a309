"""Prepared audits: the split, the parts of the losses, and what finders see."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from audit_tables import audit_planted_table, make_planted_evidence, make_planted_table

from groundfault import Candidate, Evidence, Plan, RuleError
from groundfault.auditing.preparation import prepare, start_audit


def test_parts_share_out_the_losses() -> None:
    audit = audit_planted_table()
    losses = audit.losses()
    discovery, holdout = audit.parts(losses)
    assert holdout is not None
    assert len(discovery) + len(holdout) == losses.shape[1] == 400
    assert (discovery.losses == audit.discovery_units().losses).all()
    assert discovery.losses.sum() + holdout.losses.sum() == losses.sum()


def test_a_judge_without_a_holdout_shows_no_outcome_to_finders() -> None:
    audit = audit_planted_table(Plan(judge="max-t"))
    assert audit.discovery_mask.all()
    assert audit.visible_evidence.loss.null_count() == 400
    assert audit.parts(audit.losses())[1] is None


def test_finders_see_the_discovery_units_alone() -> None:
    audit = audit_planted_table()
    assert len(audit.visible_evidence) == np.count_nonzero(audit.discovery_mask) == 200


def test_finders_see_neither_leaks_nor_what_is_held_fixed() -> None:
    table = make_planted_table().with_columns(verdict=pl.col("error") * 2 + 5)
    evidence = Evidence.from_table(table, id="id", outcome="error")
    plan = Plan(judge="max-t", within=("lang",))
    audit = prepare(evidence, plan, [Candidate("hard", "hard")])
    assert set(evidence.attributes) == {"hard", "words", "lang", "verdict"}
    assert set(audit.visible_evidence.attributes) == {"hard", "words"}


def test_the_split_does_not_depend_on_the_candidates() -> None:
    start = start_audit(make_planted_evidence())
    assert start.split_hash == audit_planted_table().split_hash
    assert start.leaks == audit_planted_table().leaks == {}


def test_a_candidate_that_reads_the_outcome_is_refused() -> None:
    with pytest.raises(RuleError, match="explains failures by failing"):
        prepare(make_planted_evidence(), None, [Candidate("failed", "error = 1")])


def test_without_candidates_an_audit_tests_nothing() -> None:
    audit = prepare(make_planted_evidence(), None, [], finders=[])
    assert len(audit.library) == 0


def test_each_finder_is_announced() -> None:
    messages: list[str] = []
    prepare(make_planted_evidence(), finders=["thresholds", "categories"], progress=messages.append)
    assert [text.partition(" (")[0] for text in messages] == [
        "proposing candidates by thresholds",
        "proposing candidates by categories",
    ]
