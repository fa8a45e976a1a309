"""Hints: each one where it applies, and none where none does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from audit_tables import make_planted_results, make_planted_table
from leak_tables import make_later_columns

import groundfault
from groundfault import Candidate, Evidence, Plan, audit
from groundfault.auditing.hints import find_runs, sort_names, write_hints
from groundfault.core.units import average_losses


def test_a_plain_audit_has_no_hint() -> None:
    assert write_hints(make_planted_results()) == ((), ())


def test_a_window_through_a_candidate_is_pointed_out() -> None:
    _, (hint,) = write_hints(make_planted_results(Plan(judge="janus", prevalence=("0.1", "0.4"))))
    assert "near the edge of the window [0.1, 0.4]" in hint


def test_rare_errors_are_pointed_out() -> None:
    frame = make_planted_table(1000).with_columns(error=pl.col("error") * (pl.col("words") < 20))
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    hints = groundfault.audit(
        evidence, Plan(judge="janus"), [Candidate("hard", "hard")], modes=False
    ).hints
    assert any(hint.startswith("failures are rare") for hint in hints)


def test_graded_losses_say_whether_they_are_means_of_rows() -> None:
    frame = make_planted_table(120)
    pairs = frame.with_columns(pair=pl.int_range(pl.len()) // 2, hard=True)
    (of_pairs,) = (
        hint
        for hint in groundfault.audit(
            Evidence.from_table(pairs, id="id", outcome="error", group="pair"), modes=False
        ).hints
        if "random permutations" in hint
    )
    assert of_pairs.startswith("repeated examples were averaged")
    scores = frame.with_columns(error=pl.col("error") * 0.7)
    hints = groundfault.audit(
        Evidence.from_table(scores, id="id", outcome="error"), modes=False
    ).hints
    assert any(hint.startswith("losses are graded, so p-values") for hint in hints)


def make_parts(rates: dict[str, float]) -> Evidence:
    rng = np.random.default_rng(4)
    parts = [
        pl.DataFrame({"task": [name] * 100, "error": (rng.random(100) < rate).astype(int)})
        for name, rate in rates.items()
    ]
    words = pl.Series("words", rng.integers(1, 90, 100 * len(parts)))
    return Evidence.from_table(pl.concat(parts).with_columns(words), outcome="error")


def test_benchmarks_that_fail_very_differently_are_pointed_out() -> None:
    evidence = make_parts({"gsm8k": 0.1, "crux": 0.8, "bfcl": 0.3, "math": 0.5, "arc": 0.2})
    report = groundfault.audit(evidence)
    assert report.parts.startswith("The values of 'task' fail at very different rates: crux ")
    assert "..." in report.parts
    assert report.parts.endswith("To search inside each of them, add --within task.")
    assert "fail at very different rates" in report.to_markdown()
    fixed = groundfault.audit(evidence, Plan(within=("task",)))
    assert not fixed.parts
    assert any(hint.startswith("'task' held fixed") for hint in fixed.hints)


def test_benchmarks_that_fail_alike_are_not_pointed_out() -> None:
    assert not groundfault.audit(make_parts({"gsm8k": 0.3, "crux": 0.35}), modes=False).parts


def test_what_was_not_scored_makes_no_errors_rare_and_is_said_to_lie_where_it_lies() -> None:
    """600 of 700 English answers have no score, and a quarter of the scored ones failed."""
    rows = range(1000)
    frame = pl.DataFrame(
        {
            "lang": ["en" if i < 700 else "de" for i in rows],
            "hard": [i % 3 == 0 for i in rows],
            "error": [None if i < 600 else int(i % 4 == 0) for i in rows],
        }
    )
    evidence = Evidence.from_table(frame, outcome="error", null_outcome="error")
    hints = groundfault.audit(
        evidence, Plan(judge="janus"), [Candidate("hard", "hard")], modes=False
    ).hints
    assert not any("errors are rare" in hint for hint in hints)
    (hint,) = (hint for hint in hints if hint.startswith("600 error: not scored"))
    assert "They are 86% of the rows where lang is en and 0% where it is de" in hint


def test_what_readers_noted_of_a_log_is_said_in_its_audit(tmp_path: Path) -> None:
    """A CSV of promptfoo counts refusals as failures, and says so where the rates are."""
    rows = [f"{i},yes,{'FAIL' if i % 4 == 0 else 'PASS'},1,,ok," for i in range(80)]
    header = "n,[fake] Say {{n}},Status,Score,Named Scores,Grader Reason,Comment"
    (tmp_path / "results.csv").write_text("\n".join([header, *rows]))
    evidence = Evidence.from_logs(tmp_path / "results.csv")
    plan = Plan(judge="janus")
    hints = groundfault.audit(evidence, plan, [Candidate("low", "vars_n < '4'")], modes=False).hints
    assert any("a CSV of promptfoo counts refusals" in hint for hint in hints)


def hints(
    candidates: list[Candidate] | None = None, *, modes: bool = True, **roles: list[str]
) -> list[str]:
    data = Evidence.from_table(make_later_columns(), id="id", outcome="error", **roles)  # type: ignore[arg-type]
    return list(groundfault.audit(data, candidates=candidates, modes=modes).hints)


def test_what_predicts_most_of_the_outcome_is_asked_about_first() -> None:
    first = hints()[0]
    assert first.startswith("a rule predicts 87% of the rarer outcome")
    assert first.endswith(
        "If 'flag' existed before the answer, add --allow-leakage flag; if not, --post-outcome flag"
    )
    assert not any("If 'flag'" in hint for hint in hints(allow_leakage=["flag"]))


def test_columns_taken_by_their_names_are_listed_once() -> None:
    assert not any("by their names" in hint for hint in hints())  # the search lists them
    (hint,) = (hint for hint in hints(modes=False) if "by their names" in hint)
    assert (
        "'prediction', 'n_turns', 'response_chars' (measured with it) and "
        "'feedback' (follows from it)"
    ) in hint
    assert "to use one that existed before the answer, add --allow-leakage COLUMN" in hint
    assert "groundfault check" in hint


def test_leaks_are_named_with_the_way_to_overrule() -> None:
    told = hints(instrument=["reason"])
    assert any(hint.startswith("left out") and "'reason'" in hint for hint in told)
    # one that only a person can tell is the headline
    assert not any(hint.startswith("left out") for hint in hints())
    tested = hints([Candidate("stopped", "flag OR n_turns > 100", missing="off")])
    assert not any("not tested" in hint for hint in tested)


def test_a_named_rule_over_a_column_of_scores_is_judged_and_the_hint_says_what_it_reads() -> None:
    (hint,) = (
        hint
        for hint in hints([Candidate("graded down", "feedback = 'bad'")])
        if "how answers were scored" in hint
    )
    assert "'feedback'" in hint
    assert "'graded down'" in hint


def make_evidence(rates: np.ndarray, seed: int = 0, **columns: object) -> Evidence:
    rng = np.random.default_rng(seed)
    n = len(rates)
    table = pl.DataFrame(
        {
            # without zeros in front: text would sort q10 before q9
            "id": [f"q{i}" for i in range(n)],
            "error": (rng.random(n) < rates).astype(int),
            "flag": rng.random(n) < 0.5,
            **columns,
        }
    )
    group = "block" if "block" in columns else None
    return Evidence.from_table(table, id="id", outcome="error", group=group)


def has_runs(evidence: Evidence) -> bool:
    return find_runs(evidence, average_losses(evidence)) is not None


BLOCKS = np.repeat(np.random.default_rng(1).choice([0.1, 0.8], 40), 12)


def test_blocks_of_neighbours_are_seen() -> None:
    assert has_runs(make_evidence(BLOCKS))
    assert not has_runs(make_evidence(BLOCKS, block=np.arange(480) // 12))


def test_numbers_in_names_sort_as_numbers() -> None:
    one_each = ["q10", "q9", "p9", "q9b", "q09", "10"]
    assert [one_each[i] for i in sort_names(pl.Series(one_each))] == [
        "10", "p9", "q9", "q09", "q9b", "q10",
    ]  # fmt: skip
    numbers = ["10", "9", "09", "007"]
    assert [numbers[i] for i in sort_names(pl.Series(numbers))] == ["007", "9", "09", "10"]
    # none, two, and one too long for 64 bits
    others = ["q", "a10-2", "a10-1", f"q{10**20}", f"q{10**20 - 1}", "q٣"]
    assert [others[i] for i in sort_names(pl.Series(others))] == [
        "a10-1", "a10-2", "q", "q٣", f"q{10**20 - 1}", f"q{10**20}",
    ]  # fmt: skip


def test_a_random_order_has_no_runs() -> None:
    assert sum(has_runs(make_evidence(np.full(300, 0.3), seed)) for seed in range(60)) <= 1


def test_a_table_sorted_by_a_label_that_explains_it_is_no_news() -> None:
    task = np.repeat(["easy", "medium", "hard"], 160)
    rates = np.repeat([0.1, 0.4, 0.8], 160)
    assert not has_runs(make_evidence(rates, task=task))
    assert has_runs(make_evidence(rates))
    # sorted by the label, and dependent inside of its levels all the same
    assert has_runs(make_evidence(BLOCKS, task=task))


def test_the_report_names_the_option() -> None:
    report = audit(make_evidence(BLOCKS), Plan(judge="holm"), modes=False, ledger=False)
    assert any(
        "failures cluster in the order of ids" in hint and "--group" in hint
        for hint in report.hints
    )


def test_answers_that_crashed_are_grouped_by_what_they_say() -> None:
    down = "RuntimeError('docker daemon not reachable on port {}')"
    table = pl.DataFrame(
        {
            "value": [None] * 9 + [0, 1, 1] * 20,
            "status": ["error"] * 9 + ["scored"] * 60,
            "error": [down.format(8000 + i) for i in range(9)] + [None] * 60,
            "kind": ["a", "b", "c"] * 23,
        }
    )
    evidence = Evidence.from_table(
        table, outcome="value", positive_is_good=True, status="status", instrument=["error"]
    )
    report = audit(evidence, ledger=None)
    said = (
        "9 crashed, and are in no failure rate: 9 with 'RuntimeError: docker daemon not reachable"
    )
    assert report.hints[0].startswith(said)
    assert report.doubts == 1
