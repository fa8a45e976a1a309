"""Leaks: columns that predict the outcome almost perfectly, and noise that does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_tables import make_planted_table
from hypothesis import given, strategies as st

import groundfault
from groundfault import Candidate, Evidence, Report
from groundfault.auditing.column_timing import (
    LEAK,
    MIN_FAILURES,
    count_word_mistakes,
    find_leaking_rules,
    measure_columns,
    measure_marks,
    measure_rules,
)
from groundfault.core.candidate import Library
from groundfault.core.finding import Verdict
from groundfault.core.units import Marks


def evidence(n: int = 400) -> Evidence:
    frame = make_planted_table(n).with_columns(
        status_code=pl.when(pl.col("error") == 1).then(500).otherwise(200),
        score=1 - pl.col("error") * 0.5,
    )
    return Evidence.from_table(frame, id="id", outcome="error")


def test_a_column_that_follows_from_the_outcome_is_a_leak() -> None:
    shares = measure_columns(evidence(), ["status_code", "score", "hard", "words", "lang"])
    leaks = {name: share for name, share in shares.items() if share >= LEAK}
    assert leaks == {"status_code": 1.0, "score": 1.0}


def test_few_failures_say_nothing() -> None:
    small = evidence(20)
    assert int((small.loss > 0.5).sum()) < MIN_FAILURES
    assert measure_columns(small, ["status_code"]) == {}


def graded_answers(n: int = 400, seed: int = 3) -> pl.DataFrame:
    """Answers that are wrong where they differ from the target, with remarks of a grader."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < 0.3
    target = rng.integers(0, 50, n)
    # no single word tells: only the two beside each other
    remark = np.where(wrong, "not this: is incorrect", "is this: not incorrect")
    return pl.DataFrame(
        {
            "id": [f"q{i:03d}" for i in range(n)],
            "a": target + wrong,
            "b": target,
            "notes": [f"case {i} of {n}: {word}" for i, word in enumerate(remark)],
            "long": rng.random(n) < 0.5,
            "error": wrong.astype(int),
        }
    )


LEAKING = {
    "compares": "a <> b",
    "reads": "notes LIKE '%is incorrect%'",
    "joins": "notes LIKE '%is incorrect%' AND long",
    "turns round": "NOT (a <> b)",
}


def test_rules_that_tell_the_outcome_are_not_tested_and_the_report_says_why() -> None:
    data = Evidence.from_table(graded_answers(), id="id", outcome="error")
    candidates = [Candidate(name, rule) for name, rule in LEAKING.items()]
    candidates.append(Candidate("long", "long"))
    report = groundfault.audit(data, candidates=candidates, modes=False)
    verdicts = {finding.name: finding.verdict for finding in report.findings}
    assert verdicts.pop("long") is not Verdict.UNTESTABLE
    assert verdicts == dict.fromkeys(LEAKING, Verdict.UNTESTABLE)
    reasons = {finding.reason for finding in report.findings if finding.name in LEAKING}
    assert all(
        reason.startswith("leak: predicts the outcome almost perfectly") for reason in reasons
    )
    assert any("'compares', 'reads', 'joins', 'turns round'" in hint for hint in report.hints)


def test_a_user_may_vouch_for_the_columns_of_a_rule() -> None:
    rules = [Candidate("compares", "a <> b"), Candidate("reads", LEAKING["reads"])]
    data = Evidence.from_table(graded_answers(), id="id", outcome="error", allow_leakage=["a", "b"])
    report = groundfault.audit(data, candidates=rules, modes=False)
    verdicts = {f.name: f.verdict for f in report.findings}
    assert verdicts == {"compares": Verdict.CONFIRMED, "reads": Verdict.UNTESTABLE}


def test_conjunctions_of_finders_with_a_leaking_condition_are_leaks_too() -> None:
    data = Evidence.from_table(graded_answers(), id="id", outcome="error")
    library = Library.of(
        [
            Candidate("reads", LEAKING["reads"]),
            Candidate("long", "long"),
            Candidate("both", f"({LEAKING['reads']}) AND (long)", source="interactions"),
        ]
    )
    shares = measure_marks(data, Marks.of(data, library))
    assert shares[0] == 1.0
    assert shares[2] < LEAK
    assert sorted(find_leaking_rules(data, library, shares)) == [0, 2]


@pytest.mark.parametrize("elsewhere", [0.0, 0.05, 0.2])
def test_a_hole_in_which_nine_of_ten_fail_is_no_leak(elsewhere: float) -> None:
    rng = np.random.default_rng(1)
    hole = np.arange(2000) % 8 == 0
    wrong = rng.random(2000) < np.where(hole, 0.9, elsewhere)
    frame = pl.DataFrame(
        {"id": np.arange(2000), "hole": hole, "error": wrong.astype(int), "n": np.arange(2000) % 7}
    )
    report = groundfault.audit(Evidence.from_table(frame, id="id", outcome="error"))
    assert [f.name for f in report.confirmed] == ["hole"]
    assert [mode.rule for mode in report.modes] == ['"hole"']
    # it is asked about where nothing else fails, since a leak would look the same
    assert any("If 'hole' existed before" in hint for hint in report.hints) == (elsewhere < 0.02)


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=40, max_size=80),
)
def test_a_rule_is_measured_as_a_column_of_its_values_is(
    rows: list[tuple[bool, bool, bool]],
) -> None:
    frame = pl.DataFrame(rows, schema=["x", "y", "error"], orient="row")
    data = Evidence.from_table(frame, outcome="error")
    shares = measure_rules(data, ["x", "NOT y"])
    rarer = min(frame["error"].sum(), len(frame) - frame["error"].sum())
    for rule, column in (("x", "x"), ("NOT y", "y")):
        groups = frame.group_by(column).agg(pl.col("error").sum(), n=pl.len())
        mistakes = sum(min(bad, n - bad) for _, bad, n in groups.iter_rows())
        expected = 1 - mistakes / rarer if rarer >= MIN_FAILURES else 0.0
        assert shares[rule] == pytest.approx(max(0.0, expected))


def one_kind_fails(share: float, n: int = 600) -> pl.DataFrame:
    """Rows of six kinds: a share of one of them fails, and two others."""
    kind, place = np.arange(n) % 6, np.arange(n) // 6
    wrong = ((kind == 2) & (place < share * n / 6)) | ((kind == 4) & (place < 2))
    names = [f"q{i}" for i in range(n)]
    return pl.DataFrame({"id": names, "kind": list("abcdef") * (n // 6), "error": wrong * 1})


@pytest.mark.parametrize("share", [1.0, 0.99])
@pytest.mark.parametrize("others", [{}, {"length": pl.int_range(pl.len()) * 7 % 11}])
def test_a_column_that_decides_the_outcome_is_the_headline(
    share: float, others: dict[str, pl.Expr], tmp_path: Path
) -> None:
    table = one_kind_fails(share).with_columns(**others)
    report = groundfault.audit(Evidence.from_table(table, id="id", outcome="error"), ledger=None)
    assert report.modes == ()
    assert report.deciding is not None
    (deciding,) = report.deciding
    (mode,) = deciding.modes
    assert deciding.share >= LEAK
    assert (deciding.column, mode.rule, mode.n, mode.errors) == (
        "kind",
        "\"kind\" = 'c'",
        100,
        100 * share,
    )
    headline = "'kind' decides the outcome: your failure mode if it is known before the answer"
    assert report.conclusion.startswith(headline)
    assert "No reportable finding" not in report.to_markdown() + report.to_json()
    assert headline in report.to_markdown()
    report.write(tmp_path)
    assert Report.load(tmp_path).deciding == report.deciding


@pytest.mark.parametrize(("role", "modes"), [("allow_leakage", 1), ("post_outcome", 0)])
def test_one_word_says_what_a_column_that_decides_is(role: str, modes: int) -> None:
    table = one_kind_fails(1.0).with_columns(length=pl.int_range(pl.len()) * 7 % 11)
    said: dict[str, Any] = {role: ["kind"]}
    data = Evidence.from_table(table, id="id", outcome="error", **said)
    report = groundfault.audit(data, ledger=None)
    assert (len(report.modes), report.deciding) == (modes, ())
    assert report.conclusion.startswith("No reportable finding") == (not modes)


def test_columns_that_decide_leave_the_rest_of_the_list_as_it_is() -> None:
    rng = np.random.default_rng(4)
    hard = rng.random(1000) < 0.4
    wrong = rng.random(1000) < np.where(hard, 0.6, 0.1)
    table = pl.DataFrame({"hard": hard, "remark": np.where(wrong, "a", "b"), "error": wrong * 1})
    report = groundfault.audit(Evidence.from_table(table, outcome="error"), ledger=None)
    assert [mode.rule for mode in report.modes] == ['"hard"']
    assert report.deciding is not None
    assert [one.column for one in report.deciding] == ["remark"]
    page = report.to_markdown()
    assert page.index("remark is a") < page.index("Without remark: 1 failure mode covers")


def test_modes_name_no_rule_over_a_text_that_tells_the_outcome() -> None:
    rng = np.random.default_rng(8)
    wrong = rng.random(800) < 0.3
    counts = np.where(wrong, 14, 5)
    words = np.array("so we see how it is then but not".split())
    frame = pl.DataFrame(
        {
            "notes": [" ".join(rng.choice(words, k)) for k in counts],
            "long": rng.random(800) < 0.5,
            "error": wrong.astype(int),
        }
    )
    report = groundfault.audit(Evidence.from_table(frame, outcome="error"), ledger=None)
    assert report.modes == ()
    assert report.deciding is not None
    assert [one.column for one in report.deciding] == ["notes"]
    assert report.unused == {"a rule over them predicts over 95% of the rarer outcome": ("notes",)}
    assert not report.confirmed


texts = st.lists(
    st.tuples(st.sampled_from(["a b", "b, c!", "A c", "", None]), st.booleans()), min_size=1
)


@given(texts)
def test_the_best_word_is_the_one_that_a_loop_over_all_words_gives(
    rows: list[tuple[str | None, bool]],
) -> None:
    failures = np.array([failed for _, failed in rows])
    best = min(failures.sum(), (~failures).sum())
    for word in "abc":
        inside = np.array([word in re.findall(r"\w+", (text or "").lower()) for text, _ in rows])
        parts = [failures[inside], failures[~inside]]
        best = min(best, sum(min(part.sum(), (~part).sum()) for part in parts))
    column = pl.Series([text for text, _ in rows], dtype=pl.String)
    assert count_word_mistakes(column, failures) == best


def test_of_many_texts_a_sample_is_read_and_scaled() -> None:
    failures = np.arange(20_000) % 3 == 0
    column = pl.Series([f"{i} {'bad' if failed else 'good'}" for i, failed in enumerate(failures)])
    assert count_word_mistakes(column, failures) == 0
    assert 6000 < count_word_mistakes(column.str.slice(0, 2), failures) < 7500


def test_a_remark_is_a_leak_and_the_question_is_not() -> None:
    wrong = np.arange(300) % 4 == 0
    words = [f"item {i} {'is negated' if bad else 'is plain'}" for i, bad in enumerate(wrong)]
    frame = pl.DataFrame({"notes": words, "question": words, "error": wrong.astype(int)})
    shares = measure_columns(Evidence.from_table(frame, outcome="error"), ["notes", "question"])
    assert shares == {"notes": 1.0, "question": 0.0}
