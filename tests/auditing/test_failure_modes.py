"""What the search for failure modes is given by an audit, and what it is not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from audit_tables import make_planted_evidence, make_planted_table

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.auditing.failure_modes import name_modes, tabulate_attributes
from groundfault.auditing.prepared import prepare
from groundfault.core.column_names import describes_answer


def test_the_planted_failure_is_named_with_examples_and_nothing_else() -> None:
    report = groundfault.audit(make_planted_evidence())
    (mode,) = report.modes
    assert mode.rule == '"hard"'
    assert mode.rate > 0.5 > mode.rate_outside
    assert {example.side for example in mode.sample} == {"failing", "passing", "near"}
    assert report.mode_search is not None
    assert report.mode_search.columns == ("hard", "words", "lang")
    (coverage,) = report.mode_search.outcomes
    assert (coverage.covered, coverage.covered_errors) == (mode.n, mode.errors)


def test_modes_rest_on_all_units_whatever_the_judge() -> None:
    evidence = make_planted_evidence()
    reports = [groundfault.audit(evidence, Plan(judge=judge)) for judge in ("max-t", "janus")]
    assert reports[0].modes == reports[1].modes
    assert reports[1].n_holdout == 200
    assert reports[0].modes[0].n + reports[0].modes[0].n_outside == 400


def test_noise_has_no_mode() -> None:
    report = groundfault.audit(make_planted_evidence(lift=0.0))
    assert report.modes == ()
    assert report.mode_search is not None
    assert report.mode_search.rules > 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("answer", True),
        ("Model_Answer", True),
        ("modelResponse", True),
        ("output.completion", True),
        ("response_chars", True),
        ("finish_reason", True),
        ("gold_answer", False),
        ("expected_output", False),
        ("answer_type", False),
        ("question", False),
    ],
)
def test_columns_about_the_answer_are_known_by_their_names(name: str, expected: bool) -> None:
    assert describes_answer(name) is expected


def test_what_rules_may_not_name_is_left_out_and_said() -> None:
    frame = make_planted_table().with_columns(
        answer=pl.when(pl.col("error") == 1).then(pl.lit("no")).otherwise(pl.lit("yes")),
        grade=pl.col("error") * 3 + 1,
        key=pl.format("k{}", pl.int_range(pl.len())),
        judge_version=pl.lit("a"),
    )
    audit = prepare(Evidence.from_table(frame, id="id", outcome="error", instrument=["key"]))
    table, remarks = tabulate_attributes(audit)
    assert table.columns == ["hard", "words", "lang"]
    assert remarks == (
        "not used in rules, because they hold or describe the model's answer, by their names alone "
        "(--allow-leakage uses a column that was known before the answer): judge_version",
        "not used in rules, because they predict over 95% of the rarer outcome: answer, grade",
    )


def test_a_column_that_its_name_leaves_out_is_used_where_the_caller_vouches_for_it() -> None:
    frame = make_planted_table().rename({"words": "output_chars", "hard": "f1"})
    roles = {"id": "id", "outcome": "error"}
    audit = prepare(Evidence.from_table(frame, **roles))
    assert tabulate_attributes(audit)[0].columns == ["lang"]
    vouched = Evidence.from_table(frame, allow_leakage=["output_chars", "f1"], **roles)
    table, remarks = tabulate_attributes(prepare(vouched))
    assert table.columns == ["f1", "output_chars", "lang"]
    assert remarks == ()


def test_of_groups_columns_that_are_the_same_in_all_rows_are_used() -> None:
    frame = make_planted_table(600).with_columns(
        item=pl.format("i{}", pl.int_range(pl.len()) // 3), easy=pl.int_range(pl.len()) // 3 % 2
    )
    audit = prepare(Evidence.from_table(frame, id="id", outcome="error", group="item"))
    table, remarks = tabulate_attributes(audit)
    assert table.columns == ["easy"]
    assert table.height == 200
    assert remarks == (
        "not used in rules, because they differ between rows of one group: hard, words, lang",
    )


def test_without_a_column_there_is_no_mode_and_the_search_says_why() -> None:
    frame = make_planted_table().select("id", "error", "hard")
    evidence = Evidence.from_table(frame, id="id", outcome="error", instrument=["hard"])
    report = groundfault.audit(evidence, candidates=[Candidate("hard", "hard")])
    assert report.modes == ()
    assert report.mode_search is not None
    assert report.mode_search.remarks[-1].startswith("no column describes the examples")
    assert report.mode_search.outcomes[0].errors == frame["error"].sum()
    assert report.confirmed


def test_several_models_have_modes_of_each_and_comparisons_none() -> None:
    one, two = make_planted_table(), make_planted_table(lift=0.0)
    both = pl.concat([one.with_columns(model=pl.lit("one")), one.with_columns(model=pl.lit("two"))])
    quiet = both.with_columns(
        error=pl.when(pl.col("model") == "two")
        .then(pl.concat([two["error"], two["error"]]))
        .otherwise("error")
    )
    evidence = Evidence.from_table(quiet, id="id", outcome="error", model="model")
    report = groundfault.audit(evidence)
    assert "one" in {mode.outcome for mode in report.modes}
    assert "two" not in {mode.outcome for mode in report.modes}
    compared = groundfault.audit(evidence, compare=("two", "one"))
    assert compared.modes == ()
    assert compared.mode_search is None


def test_a_column_held_fixed_is_in_no_rule() -> None:
    table = make_planted_table(800)
    report = groundfault.audit(
        Evidence.from_table(table, id="id", outcome="error"), Plan(within=("hard",))
    )
    assert report.modes == ()
    assert not report.confirmed
    assert report.mode_search is not None
    assert report.mode_search.within == ("hard",)
    assert "hard" not in report.mode_search.columns


def test_candidates_that_the_caller_named_are_rules_too() -> None:
    rng = np.random.default_rng(5)
    odd = rng.integers(0, 1000, 600)
    frame = pl.DataFrame(
        {
            "id": [f"q{i:03d}" for i in range(600)],
            "number": odd,
            "error": (rng.random(600) < np.where(odd % 7 < 3, 0.7, 0.1)).astype(int),
        }
    )
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    sevens = Candidate("sevens", "number % 7 < 3", "the number leaves 0 to 2 of sevens")
    assert groundfault.audit(evidence).modes == ()
    report = groundfault.audit(evidence, candidates=[sevens])
    (mode,) = report.modes
    assert (mode.rule, mode.meaning, mode.source) == (sevens.rule, sevens.meaning, "declared")
    assert report.manifest.own_rules == ("sevens",)


def test_mined_candidates_are_tested_on_the_holdout_alone() -> None:
    audit = prepare(make_planted_evidence(), finders=["sliceline"])
    assert audit.own_rules
    flipped = audit.losses()
    flipped[:, ~audit.discovery_mask] = 0.0
    modes, _ = name_modes(audit, flipped)
    assert all(mode.source == "modes" for mode in modes), "nothing fails in the holdout"


def test_mined_candidates_go_with_units_that_were_not_scored() -> None:
    frame = make_planted_table().with_columns(
        error=pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise("error")
    )
    evidence = Evidence.from_table(frame, id="id", outcome="error", null_outcome="refused")
    report = groundfault.audit(evidence, finders=["sliceline"])
    assert report.judge == "split-holm"
    mode = report.modes[0]
    assert mode.rule == '"hard"'
    # what a finder proposed counts on the units that it did not see; those of the search on all
    units = 320 if mode.source == "modes" else report.findings[0].holdout
    whole = units if isinstance(units, int) else units.on + units.off
    assert mode.n + mode.n_outside == whole
