"""Audited rows as evidence: what has a loss, prompts with repeats, components within tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from probe_rows import CONFIRMED, GRAMMAR, everything, manifest, row

from groundfault.core.plan import Plan
from groundfault.core.status import Status as Outcome
from groundfault.errors import InputError, PlanError
from groundfault.probes.bank.grammar import ComponentGroup, Grammar, Option
from groundfault.probes.review.statuses import score_row
from groundfault_lab.probes import evidence as source
from groundfault_lab.probes.comparison import compute_effects
from groundfault_lab.probes.summary import Summary


@pytest.mark.parametrize(
    ("changes", "status", "expected"),
    [
        ({}, "unaudited", (0.0, Outcome.SCORED)),
        ({}, "no_error", (0.0, Outcome.SCORED)),
        ({}, CONFIRMED, (1.0, Outcome.SCORED)),
        ({"signal": "mismatch"}, CONFIRMED, (1.0, Outcome.SCORED)),
        ({"signal": "mismatch"}, "no_error", (0.0, Outcome.SCORED)),
        ({"signal": "mismatch"}, "unaudited", (None, Outcome.MISSING)),
        ({"signal": "mismatch"}, "disputed", (None, Outcome.MISSING)),
        ({"signal": "mismatch"}, "extraction_artifact", (None, Outcome.ARTEFACT)),
        ({"signal": "mismatch"}, "format_artifact", (None, Outcome.ARTEFACT)),
        ({"signal": "mismatch"}, "invalid_prompt", (None, Outcome.ARTEFACT)),
        ({"signal": "unreadable"}, "unaudited", (None, Outcome.UNPARSED)),
        ({"signal": "unanswered", "status": "refused"}, "unaudited", (None, Outcome.REFUSED)),
        ({"signal": "unanswered", "status": "error"}, "unaudited", (None, Outcome.ERROR)),
    ],
)
def test_only_what_review_settles_has_a_loss(changes: Any, status: Any, expected: Any) -> None:
    one = row(1, **changes)
    assert score_row(one, {one.id: status}) == expected


def test_a_prompt_asked_again_is_one_example_with_repeats() -> None:
    rows = [
        row(q, key, policy=p)
        for p in ("a", "b")
        for q, key in enumerate(["t1|plain|none", "t2|plain|none"] * 2, 1)
    ]
    created = source.evidence(rows, {}, GRAMMAR)
    assert (len(created), created.unit_count) == (8, 2)
    assert sorted(created.frame["repeat"].to_list()) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert set(created.attributes) == {"family", "cue", "distractor"}


def test_components_are_compared_within_tasks_and_families_between_them() -> None:
    rows, statuses = everything(10, lambda t, c, d: d == "shortcut")
    components = source.evidence(rows, statuses, GRAMMAR)
    assert source.choose_plan(components, 3) == Plan(seed=3, within=("task",))
    # one prompt a task has nothing beside it: what was drawn without regard to tasks is compared
    # over all of them
    sparse = source.evidence(rows[::4] + rows[1:2], statuses, GRAMMAR)
    assert (sparse.unit_count, sparse.roles.ignore) == (11, ("task",))
    assert source.choose_plan(sparse) == Plan()
    families = source.evidence(rows, statuses, GRAMMAR, unit="task")
    assert families.unit_count == 10
    assert source.choose_plan(families) == Plan()
    assert [c.name for c in source.candidates(rows, GRAMMAR)] == [
        "cue = plain",
        "cue = reversed",
        "distractor = none",
        "distractor = shortcut",
    ]
    assert [c.name for c in source.candidates(rows, GRAMMAR, unit="task")] == [
        "family = even",
        "family = odd",
    ]


def test_a_group_named_like_a_column_keeps_out_of_its_way() -> None:
    grammar = Grammar(
        "g", (ComponentGroup("family", (Option("a"), Option("b"))),), "{family} {question}"
    )
    rows = [row(1, "t1|a"), row(2, "t2|b")]
    created = source.evidence(rows, {}, grammar)
    assert created.frame["component_family"].to_list() == ["a", "b"]
    assert source.candidates(rows, grammar)[0].rule == "\"component_family\" = 'a'"


def test_one_task_is_no_evidence() -> None:
    with pytest.raises(InputError, match="two tasks at least"):
        source.evidence([row(1)], {}, GRAMMAR)


def test_the_audit_confirms_a_planted_component_and_family(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = rng.random((60, 2, 2)) < 0.05

    def wrong(t: int, cue: str, distractor: str) -> bool:
        planted = (distractor == "shortcut" and t % 5 < 3) or (t % 2 == 0 and t % 3 > 0)
        return bool(planted or noise[t, int(cue == "reversed"), int(distractor == "shortcut")])

    rows, statuses = everything(60, wrong)
    summary = Summary(tuple(rows), statuses, GRAMMAR, manifest(60, 240))
    result = source.run_audits(rows, summary, ledger=tmp_path / "ledger.db")
    components = {f.name: (str(f.verdict), f.discovery.lift) for f in result["components"].findings}
    assert components["distractor = shortcut"][0] == "confirmed"
    assert components["distractor = shortcut"][1] > 0.2
    assert components["cue = reversed"][0] == "below_floor"
    families = {f.name: str(f.verdict) for f in result["families"].findings}
    assert families["family = even"] == "confirmed"
    assert "families, planned together" in result["families"].to_json()
    again = source.run_audits(rows, summary, ledger=tmp_path / "ledger.db")
    assert [f.verdict for f in again["components"].findings] == [
        f.verdict for f in result["components"].findings
    ]


@pytest.mark.parametrize("tasks", [22, 88])
def test_a_component_with_9_of_30_failures_against_0_of_58_is_confirmed(tasks: int) -> None:
    """Whether a task was asked four times or once, and wherever a split would have fallen."""
    wordings = ComponentGroup("wording", tuple(Option(f"w{i}") for i in range(4)))
    grammar = Grammar(
        "three", (*GRAMMAR.groups, wordings), "{cue} {question} {distractor}{wording}"
    )
    on = np.random.default_rng(tasks).permutation(88) < 30
    wrong = set(np.flatnonzero(on)[:9].tolist())
    rows = []
    for i in range(88):
        cue, distractor = ("plain", "reversed")[i % 7 % 2], ("none", "shortcut")[int(on[i])]
        key = f"t{i % tasks:03d}|{cue}|{distractor}|w{i // tasks}"
        rows.append(row(i + 1, key, "mismatch" if i in wrong else "match"))
    statuses: Any = {r.id: CONFIRMED for r in rows if r.signal == "mismatch"}
    summary = Summary(tuple(rows), statuses, grammar, manifest(tasks, 88))
    findings = source.run_audits(rows, summary, ledger=False)["components"].findings
    verdicts = {f.name: str(f.verdict) for f in findings}
    assert verdicts["distractor = shortcut"] == "confirmed"
    assert verdicts["cue = reversed"] != "confirmed"


def test_a_policy_that_looks_is_no_source_of_evidence() -> None:
    rows, statuses = everything(4, lambda t, c, d: False, policy="gp")
    summary = Summary(tuple(rows), statuses, GRAMMAR, manifest(4, 16))
    with pytest.raises(PlanError, match="biased sample"):
        source.select_rows(summary, "gp")
    with pytest.raises(PlanError, match="no run of 'uniform'"):
        source.select_rows(summary, "uniform")
    assert summary.tables.effects == ()


def test_the_table_reads_back_as_the_command_says(tmp_path: Path) -> None:
    from groundfault.cli.main import cli

    rows, statuses = everything(30, lambda t, c, d: d == "shortcut" and t % 4 > 0)
    created = source.evidence(rows, statuses, GRAMMAR)
    command = source.write(
        created, source.candidates(rows, GRAMMAR), tmp_path / "audited rows.parquet"
    )
    import shlex

    from click.testing import CliRunner

    result = CliRunner().invoke(
        cli, [*shlex.split(command)[1:], "--no-ledger"], catch_exceptions=False
    )
    assert result.exit_code == 0
    assert "1 failure mode covers all of the failures" in result.output
    with pytest.raises(PlanError, match=r"\.parquet or \.csv"):
        source.write(created, [], tmp_path / "rows.xlsx")


# ------------------------------------------------------------------------------------------ effects


def test_effects_are_differences_within_tasks() -> None:
    rows, statuses = everything(8, lambda t, c, d: t < 4 and d == "shortcut")
    result = {(e.group, e.option): e for e in compute_effects(rows, statuses, GRAMMAR)}
    shortcut = result["distractor", "shortcut"]
    assert (shortcut.tasks, shortcut.difference) == (8, 0.5)
    assert shortcut.p == pytest.approx(2 / 2**4)  # four tasks differ, all to one side
    assert result["distractor", "none"].difference == -0.5
    assert (result["cue", "reversed"].difference, result["cue", "reversed"].p) == (0, 1)


def test_hard_tasks_are_no_effect_of_a_component_that_met_them_more_often() -> None:
    """Tasks 0 to 3 always fail and were asked mostly with the shortcut: within tasks there is
    nothing.
    """
    rows, _ = everything(8, lambda t, c, d: t < 4)
    queries = [
        r
        for r in rows
        if r.assignment[1] == ("shortcut" if int(r.task[1:]) < 4 else "none") or "plain" in r.key
    ]
    statuses = {r.id: CONFIRMED for r in queries if r.signal == "mismatch"}
    result = {
        (e.group, e.option): e.difference for e in compute_effects(queries, statuses, GRAMMAR)
    }
    assert result["distractor", "shortcut"] == 0


def test_without_both_sides_there_is_no_effect() -> None:
    rows = [row(1, "t1|plain|none"), row(2, "t2|plain|none")]
    assert {(e.tasks, e.difference, e.p) for e in compute_effects(rows, {}, GRAMMAR)} == {
        (0, None, 1.0)
    }
