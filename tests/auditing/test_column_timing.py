"""What columns are taken for: known before the answer, measured with it, or following from it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from leak_tables import make_later_columns

import groundfault
from groundfault import Evidence
from groundfault.auditing.checking import check
from groundfault.auditing.column_timing import SUSPECT, Timing, find_stages
from groundfault.auditing.preparation import prepare


def stages(**roles: list[str]) -> dict[str, tuple[Timing, str]]:
    data = Evidence.from_table(make_later_columns(), id="id", outcome="error", **roles)  # type: ignore[arg-type]
    return {one.column: (one.stage, one.reason) for one in prepare(data).stages}


def test_columns_are_taken_for_what_their_names_and_values_say() -> None:
    assert stages() == {
        "topic": (Timing.KNOWN, ""),
        "prediction": (Timing.MEASURED, "by its name"),
        "n_turns": (Timing.MEASURED, "by its name"),
        "response_chars": (Timing.MEASURED, "by its name"),
        "feedback": (Timing.FOLLOWS, "by its name"),
        "reason": (Timing.FOLLOWS, "predicts 100% of the rarer outcome"),
        "flag": (Timing.KNOWN, "predicts 87% of the rarer outcome"),
    }


def test_scores_of_other_scorers_do_not_describe_the_examples() -> None:
    """As in the data frames of Inspect: a mode "where another scorer says no" tells nothing."""
    table = make_later_columns().select(
        id="id", topic="topic", score_match=1 - pl.col("error"), score_includes="flag",
        total_time="n_turns", message_count="n_turns",
    )  # fmt: skip
    data = Evidence.from_table(table, id="id", outcome="score_match", positive_is_good=True)
    measured = {one.column for one in prepare(data).stages if one.stage is Timing.MEASURED}
    assert measured == {"score_includes", "total_time", "message_count"}
    other = Evidence.from_table(table.rename({"score_match": "error"}), id="id", outcome="error")
    assert {one.column: one.stage for one in prepare(other).stages}[
        "score_includes"
    ] is Timing.KNOWN


@pytest.mark.parametrize(
    ("role", "stage"),
    [
        ("allow_leakage", Timing.KNOWN),
        ("instrument", Timing.MEASURED),
        ("post_outcome", Timing.FOLLOWS),
    ],
)
def test_a_declaration_overrules_a_name(role: str, stage: Timing) -> None:
    names = ["topic", "n_turns", "feedback"]
    of = stages(**{role: names})
    assert {of[name] for name in names} == {(stage, "declared")}


def test_columns_with_a_part_of_their_own_have_no_stage() -> None:
    data = Evidence.from_table(make_later_columns(), id="id", outcome="error", ignore=["flag"])
    assert not {"id", "error", "flag"} & {one.column for one in find_stages(data, {})}


def test_only_the_finder_of_answers_reads_what_is_measured_with_them() -> None:
    data = Evidence.from_table(make_later_columns(), id="id", outcome="error")
    report = groundfault.audit(data)
    later = {"prediction", "n_turns", "response_chars"}
    sources = {f.source for f in report.findings if any(name in f.rule for name in later)}
    assert sources == {"instrument"}
    assert not [f for f in report.findings if "feedback" in f.rule or "reason" in f.rule]
    assert not [mode for mode in report.modes if set(mode.columns) - {"topic", "flag"}]
    vouched = Evidence.from_table(
        make_later_columns().drop("flag"), id="id", outcome="error", allow_leakage=["n_turns"]
    )
    again = groundfault.audit(vouched)
    assert {f.source for f in again.findings if "n_turns" in f.rule} == {"thresholds"}
    assert any("n_turns" in mode.columns for mode in again.modes)


def test_check_says_what_each_column_is_taken_for() -> None:
    data = Evidence.from_table(make_later_columns(), id="id", outcome="error")
    of = {use.column: use for use in check(data).summary.columns}
    assert of["n_turns"].stage == "measured with it"
    assert of["feedback"].reason == "by its name"
    assert [name for name, use in of.items() if use.suspect] == ["reason", "flag"]


@pytest.mark.parametrize("rate", [0.5, 0.3, 0.2])
def test_a_column_that_agrees_in_97_percent_of_rows_is_asked_about(rate: float) -> None:
    rng = np.random.default_rng(7)
    wrong = rng.random(1500) < rate
    frame = pl.DataFrame(
        {"flag": wrong ^ (rng.random(1500) < 0.03), "n": rng.normal(size=1500), "error": wrong * 1}
    )
    audit = prepare(Evidence.from_table(frame, outcome="error"))
    (one,) = (one for one in audit.stages if one.column == "flag")
    assert one.suspect
    assert audit.shares["flag"] >= SUSPECT
