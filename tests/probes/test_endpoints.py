"""Endpoints of probe runs: rows and keys apart, first failures, shared keys, paired differences,
rates.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, strategies as st
from probe_rows import row
from scipy.stats import ttest_1samp

from groundfault.errors import InputError
from groundfault_lab.probes import comparison
from groundfault_lab.probes.endpoints import KeySets, Results, RowCounts
from groundfault_lab.stats.paired import student

CONFIRMED = "confirmed_model_error"


def audited(rows: list[Any], status: str = CONFIRMED) -> dict[str, Any]:
    return {each.id: status for each in rows if each.signal == "mismatch"}


def test_one_run_is_counted_by_rows_and_by_keys() -> None:
    rows = [
        row(1),
        row(2, "t1|plain|shortcut", "mismatch"),
        row(3, "t1|plain|shortcut", "mismatch"),
        row(4, "t2|plain|none", "mismatch"),
        row(5, "t2|reversed|none", "unreadable"),
        row(6, "t3|plain|none", "unanswered", status="error", response=None, score=None),
        row(7, "t3|plain|none", "unanswered", status="refused", score=None),
        row(8, "t2|reversed|shortcut", "mismatch"),
    ]
    statuses = {
        rows[1].id: CONFIRMED,
        rows[2].id: CONFIRMED,
        rows[3].id: "format_artifact",
        rows[4].id: "disputed",
    }
    (run,) = Results.of(rows, statuses, 10).runs  # type: ignore[arg-type]
    counts = run.rows
    assert (
        counts.queries,
        counts.mismatches,
        counts.unreadable,
        counts.refused,
        counts.failed,
    ) == (8, 4, 1, 1, 1)
    assert (
        counts.reviewed,
        counts.confirmed,
        counts.excluded,
        counts.disputed,
        counts.waiting,
    ) == (4, 2, 1, 1, 1)
    assert run.keys.confirmed == {"t1|plain|shortcut"}
    assert run.keys.open == {"t2|reversed|none", "t2|reversed|shortcut"}
    assert run.keys.tasks == {"t1"}
    assert (run.first, run.best, run.audited_yield) == (2, 1.0, 0.2)
    assert run.curve == (0, 1, 1, 1, 1, 1, 1, 1)


def test_rows_and_keys_are_never_added_together() -> None:
    one = row(1)
    rows, keys = RowCounts.of(one, "unaudited"), KeySets.of(one, "unaudited")
    assert (rows + rows).queries == 2
    assert len(KeySets.union([keys, keys]).asked) == 1
    for wrong in (lambda: rows + keys, lambda: rows + 1, lambda: keys + keys, lambda: keys + rows):
        with pytest.raises(TypeError):
            wrong()  # type: ignore[no-untyped-call]


def test_a_match_that_reviewers_find_wrong_is_confirmed_without_being_a_mismatch() -> None:
    rows = [row(1), row(2, "t2|plain|none")]
    (run,) = Results.of(rows, {rows[0].id: CONFIRMED, rows[1].id: "no_error"}, 2).runs
    assert (run.rows.mismatches, run.rows.confirmed, run.rows.no_error, run.rows.reviewed) == (
        0,
        1,
        1,
        2,
    )
    assert run.keys.mismatched == frozenset()


def test_a_key_that_is_confirmed_anywhere_is_open_nowhere() -> None:
    rows = [row(1, signal="mismatch"), row(1, signal="mismatch", policy="caps")]
    results = Results.of(rows, {rows[0].id: CONFIRMED}, 1)
    assert results.pool("caps").keys.open
    assert not results.keys.open
    assert results.rows.waiting == 1


def test_pools_sum_rows_and_unite_keys_over_seeds_and_models() -> None:
    rows = [
        row(1, signal="mismatch", seed=seed, model=model)
        for seed, model in itertools.product((0, 1), ("a", "b"))
    ]
    results = Results.of(rows, audited(rows), 4)
    pool = results.pool("uniform")
    assert (pool.rows.confirmed, len(pool.keys.confirmed), pool.budget, pool.audited_yield) == (
        4,
        1,
        16,
        0.25,
    )
    assert [p.model for p in results.pools] == ["a", "b", None]


def test_first_failure_is_censored_at_the_budget() -> None:
    rows = [
        row(q, f"t{q}|plain|none", "mismatch" if q == 3 + seed else "match", seed=seed)
        for seed in range(3)
        for q in (1, 2, 3, 4)
    ]
    results = Results.of(rows, audited(rows), 4)
    pool = results.pool("uniform")
    assert [run.first for run in results.select("uniform")] == [3, 4, None]
    assert (pool.runs_with_failure, pool.first) == (2, 4)
    late = Results.of([r for r in rows if r.seed], audited([r for r in rows if r.seed]), 4).pool(
        "uniform"
    )
    assert (late.runs_with_failure, late.first) == (1, 4)
    assert Results.of([r for r in rows if r.seed == 2], {}, 4).pool("uniform").first is None


def test_shared_keys_as_the_paper_counts_them() -> None:
    """The paper's v4: 13 and 11 rows, 12 and 11 keys, of which 11 are shared and one is CAPS's
    alone.
    """
    caps = [row(q, f"t{min(q, 12)}|plain|none", "mismatch", policy="caps") for q in range(1, 14)]
    uniform = [row(q, f"t{q}|plain|none", "mismatch") for q in range(1, 12)]
    results = Results.of([*caps, *uniform], audited([*caps, *uniform]), 96)
    shared = results.compare_keys("caps", "uniform")
    assert [len(keys) for keys in (shared.both, shared.first, shared.second)] == [11, 1, 0]
    assert [results.pool(p).rows.confirmed for p in ("caps", "uniform")] == [13, 11]
    assert [len(results.pool(p).keys.confirmed) for p in ("caps", "uniform")] == [12, 11]


def test_the_papers_fixture_ties_on_every_seed() -> None:
    """Table 6: five seeds, equal mean best scores of 0.8115, no wins."""
    scores = [0.75, 0.8, 0.8275, 0.83, 0.85]
    rows = [
        row(1, seed=seed, policy=policy, score=s)
        for seed, s in enumerate(scores)
        for policy in ("caps", "uniform")
    ]
    (duel,) = comparison.compute_duels(Results.of(rows, {}, 1), "uniform")
    assert duel.best == duel.control_best == pytest.approx(0.8115)
    assert (duel.seeds, duel.wins, duel.losses, duel.ties) == (5, 0, 0, 5)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), min_size=1, max_size=30)
)
def test_confirmed_keys_never_outnumber_rows_and_the_curve_ends_at_them(
    queries: list[tuple[int, bool, bool]],
) -> None:
    rows = [
        row(q, f"t{task}|plain|none", "mismatch" if m else "match")
        for q, (task, m, _) in enumerate(queries, 1)
    ]
    statuses = {r.id: CONFIRMED for r, (_, m, c) in zip(rows, queries, strict=True) if m and c}
    (run,) = Results.of(rows, statuses).runs  # type: ignore[arg-type]
    assert len(run.keys.confirmed) <= run.rows.confirmed <= run.rows.mismatches
    assert run.curve[-1] == len(run.keys.confirmed)
    assert list(run.curve) == sorted(run.curve)
    assert (run.first is None) == (run.curve[-1] == 0)
    assert run.rows.reviewed + run.rows.waiting == run.rows.routed


def test_bad_rows_are_refused() -> None:
    with pytest.raises(InputError, match="no query to report"):
        Results.of([], {})
    with pytest.raises(InputError, match="twice"):
        Results.of([row(1), row(1)], {})
    with pytest.raises(InputError, match="more than its budget"):
        Results.of([row(1), row(2)], {}, 1)


# --------------------------------------------------------------------------------------- comparison


def runs(result: dict[str, list[int]], budget: int = 6) -> tuple[list[Any], Results]:
    """Rows in which each policy confirms so many keys with each seed."""
    rows = [
        row(q, f"t{q}|plain|none", "mismatch" if q <= count else "match", policy=policy, seed=seed)
        for policy, counts in result.items()
        for seed, count in enumerate(counts)
        for q in range(1, budget + 1)
    ]
    return rows, Results.of(rows, audited(rows), budget)


def test_differences_are_paired_by_seed() -> None:
    _, results = runs({"caps": [3, 2, 5, 1], "uniform": [2, 2, 3, 2]})
    result = {d.endpoint: d for d in comparison.compute_differences(results, "uniform")}
    keys = result[comparison.PRIMARY]
    assert keys.values == (1, 0, 2, -1)
    low, high = ttest_1samp(keys.values, 0).confidence_interval(0.95)
    assert keys.interval == pytest.approx((low, high))
    assert (
        keys.p
        == sum(abs(a + 2 * b + c) >= 2 for a, b, c in itertools.product((1, -1), repeat=3)) / 8
    )
    assert keys.min_p == 0.125
    assert result["audited yield"].values == pytest.approx((1 / 6, 0, 2 / 6, -1 / 6))


def test_a_first_failure_beyond_the_budget_counts_as_the_budget() -> None:
    _, results = runs({"caps": [0, 1], "uniform": [1, 1]})
    result = {d.endpoint: d.values for d in comparison.compute_differences(results, "uniform")}
    assert result["query to first audited failure"] == (5, 0)


def test_equal_differences_have_no_interval() -> None:
    _, results = runs({"caps": [1, 1, 1], "uniform": [1, 1, 1]})
    keys = comparison.compute_differences(results, "uniform")[0]
    assert (keys.mean, keys.interval, keys.p) == (0, None, 1)


def test_unmatched_policies_are_not_compared() -> None:
    rows, _ = runs({"caps": [1, 1], "uniform": [1, 1]})
    short = [r for r in rows if (r.policy, r.seed, r.query) != ("caps", 1, 6)]
    results = Results.of(short, {}, 6)
    assert (
        comparison.explain_mismatch(results, "caps", "uniform")
        == "caps, seed 1, made 5 of 6 queries"
    )
    assert comparison.compute_differences(results, "uniform") == []
    other = Results.of(rows, {}, {"caps": 7, "uniform": 6})
    assert "different budgets (6, 7)" in comparison.explain_mismatch(other, "caps", "uniform")
    fewer = Results.of([r for r in rows if (r.policy, r.seed) != ("caps", 1)], {}, 6)
    assert "same models and seeds" in comparison.explain_mismatch(fewer, "caps", "uniform")


def test_the_control_is_a_policy_that_does_not_look() -> None:
    _, results = runs({"a": [1], "uniform, repeats": [1], "stratified, most=3": [1]})
    assert comparison.choose_control(results) == "stratified, most=3"
    assert comparison.choose_control(runs({"b": [1], "a": [1]})[1]) == "a"
    assert [
        comparison.is_adaptive(p)
        for p in ("uniform, most=2", "caps, repeats", "exhaustive, order=canonical")
    ] == [
        False,
        True,
        True,
    ]


def test_a_policy_reaches_as_far_as_there_are_prompts_and_its_cap_allows() -> None:
    assert comparison.count_reachable("gp", 600, 486, 18) == 486
    assert comparison.count_reachable("caps, repeats", 600, 486, 18) == 600
    assert comparison.count_reachable("uniform, repeats, most=4", 600, 486, 18) == 72


def rate(rows: list[Any], results: Results, prompts: int, even: bool = True) -> dict[str, Any]:
    return {
        r.policy: r
        for r in comparison.estimate_rates(results, rows, audited(rows), prompts, even=even)
    }


def test_rates_are_given_only_where_they_can_be_had() -> None:
    rows, results = runs({"caps": [3, 2], "uniform": [2, 1]})
    result = rate(rows, results, 100)
    assert (result["caps"].how, result["caps"].value, result["caps"].interval) == (
        "not available",
        None,
        None,
    )
    assert (result["uniform"].how, result["uniform"].value) == ("draws", 0.25)
    assert result["uniform"].interval == pytest.approx(
        (0.0889, 0.5323), abs=1e-4
    )  # Wilson's, of 3 in 12
    assert rate(rows, results, 100, even=False)["uniform"].how == "not available"
    assert rate(rows, results, 6)["caps"].how == "all asked"
    assert rate(rows, results, 6)["caps"].value == pytest.approx(3 / 6)


def test_known_chances_weight_an_adaptive_policy() -> None:
    rows, _ = runs({"caps, repeats": [3, 2]})
    weighted = [r.__class__(**{**r.__dict__, "chance": 0.1}) for r in rows]
    result = rate(weighted, Results.of(weighted, audited(weighted), 6), 10)["caps, repeats"]
    assert (result.how, result.value) == ("weighted", pytest.approx(5 / 12))
    assert result.interval is not None


def test_students_interval() -> None:
    values = [1.0, 2.5, -0.5, 3.0]
    assert student(values, 0.9) == pytest.approx(
        tuple(ttest_1samp(values, 0).confidence_interval(0.9))
    )
    assert student([1.0]) is None
    assert student([2.0, 2.0]) is None
