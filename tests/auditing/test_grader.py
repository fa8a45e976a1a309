"""The grader may be at fault: said where something speaks for it, and nowhere else."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from msgspec import structs

import groundfault
from groundfault import Evidence, Report
from groundfault.auditing.assemble import STRATA, estimate_difficulty, is_suspect, tabulate_features
from groundfault.auditing.preparation import prepare
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.render.audit_words import Outline


def report(own_effect: float, *, known: bool = True, n: int = 2000, seed: int = 4) -> Report:
    """Hard questions have long answers; a long answer fails more of its own by ``own_effect``."""
    rng = np.random.default_rng(seed)
    level = rng.integers(1, 6, n)
    length = np.exp(rng.normal(5 + 0.2 * level, 0.5))
    long = length > np.median(length)
    frame = pl.DataFrame(
        {
            "id": [f"q{i:04d}" for i in range(n)],
            "level": level if known else rng.permutation(level),
            "response_chars": length.round(),
            "error": (rng.random(n) < 0.15 * level - 0.1 + own_effect * long).astype(int),
        }
    )
    data = Evidence.from_table(frame, id="id", outcome="error")
    return groundfault.audit(data, modes=False, ledger=None)


def test_long_answers_to_hard_questions_are_a_hint() -> None:
    result = report(0.0)
    assert any(is_suspect(finding) for finding in result.findings)
    assert result.grader == ()
    assert Outline(result).instrument == ""
    assert "may be at fault" not in result.to_markdown()
    (hint,) = (hint for hint in result.hints if "describe answers, not examples" in hint)
    assert "response_chars" in hint
    assert hint == result.hints[-1]


def test_a_length_that_matters_among_like_questions_is_evidence() -> None:
    result = report(0.3)
    assert result.grader
    for one in result.grader:
        assert one.lift is not None
        assert one.lift_within is not None
        assert one.lift_within > 0.1
        assert one.p is not None
        assert one.p < 0.1
    assert "also where examples are equally hard (response_chars" in Outline(result).instrument
    assert not any("describe answers, not examples" in hint for hint in result.hints)


def test_where_difficulty_is_not_known_nothing_speaks_for_a_fault() -> None:
    assert report(0.3, known=False).grader == ()


@pytest.mark.parametrize(
    ("column", "value", "other"),
    [
        ("truncated", True, False),
        ("finish_reason", "length", "stop"),
        ("answer_parsed", False, True),
    ],
)
def test_cut_off_and_unparsed_answers_speak_for_themselves(
    column: str, value: object, other: object
) -> None:
    rng = np.random.default_rng(6)
    cut = rng.random(800) < 0.2
    frame = pl.DataFrame(
        {
            "id": np.arange(800),
            "error": (rng.random(800) < np.where(cut, 0.8, 0.2)).astype(int),
            column: [value if each else other for each in cut],
        }
    )
    result = groundfault.audit(
        Evidence.from_table(frame, id="id", outcome="error"), modes=False, ledger=None
    )
    assert result.grader
    assert {one.basis for one in result.grader} == {"answers that were cut off or not parsed"}
    assert "among answers that were cut off or not parsed" in result.to_markdown()


def test_reports_of_before_say_nothing_of_the_grader() -> None:
    result = report(0.3)
    old = Report.of(structs.replace(result.data, grader=None), result.library)
    assert Outline(old).instrument == ""


def prepared(informative: bool, n: int = 1200, seed: int = 2) -> PreparedAudit:
    rng = np.random.default_rng(seed)
    level = rng.integers(1, 6, n)
    wrong = rng.random(n) < (level / 6 if informative else 0.4)
    frame = pl.DataFrame(
        {
            "id": [f"q{i:04d}" for i in range(n)],
            "level": level,
            "topic": rng.choice(["x", "y", "z"], n),
            "question": [
                f"what is {a} plus {a} times {i} {'or so ' * a}?" for i, a in enumerate(level)
            ],
            "response_chars": rng.integers(10, 900, n),
            "error": wrong.astype(int),
        }
    )
    return prepare(Evidence.from_table(frame, id="id", outcome="error"))


def test_strata_order_units_by_difficulty() -> None:
    audit = prepared(True)
    losses = audit.losses()
    difficulty = estimate_difficulty(audit, losses, 0, tabulate_features(audit))
    assert 0.1 < difficulty.explained < 0.5
    codes = np.unique(difficulty.strata)
    assert 2 < len(codes) <= STRATA
    rates = [losses[0][difficulty.strata == code].mean() for code in codes]
    assert rates[0] < 0.3 < 0.7 < rates[-1]


def test_noise_explains_nothing() -> None:
    audit = prepared(False)
    assert estimate_difficulty(audit, audit.losses(), 0, tabulate_features(audit)).explained < 0.02


def test_what_is_measured_of_answers_is_no_feature() -> None:
    audit = prepared(True)
    features = tabulate_features(audit)
    lengths = audit.evidence.frame["response_chars"].to_numpy()
    assert not any(np.array_equal(column, lengths) for column in features.T)
    assert features.shape[0] == audit.evidence.unit_count


def test_texts_without_a_word_in_common_are_known_by_their_lengths() -> None:
    """Such as the prompts of a benchmark that are each an identifier of their own."""
    texts = [f"x{i} y{i}{' ?' * (i % 7)}" for i in range(250)]
    frame = pl.DataFrame({"id": range(250), "question": texts, "error": [0, 1] * 125})
    features = tabulate_features(prepare(Evidence.from_table(frame, id="id", outcome="error")))
    assert sorted(features.T[0]) == sorted(map(len, texts))


def test_an_outcome_decides_nothing_about_its_own_unit() -> None:
    audit = prepared(True, n=400)
    losses, features = audit.losses(), tabulate_features(audit)
    flipped = losses.copy()
    flipped[0, 7] = 1 - flipped[0, 7]
    before, after = (estimate_difficulty(audit, each, 0, features) for each in (losses, flipped))
    # cuts move by what the others' fits learn from unit 7, so the strata of the others may, too
    rank = [np.mean(one.strata < one.strata[7]) for one in (before, after)]
    assert abs(rank[0] - rank[1]) < 0.05


def test_without_features_all_units_are_in_one_stratum() -> None:
    audit = prepared(True, n=300)
    nothing = np.zeros((300, 0))
    difficulty = estimate_difficulty(audit, audit.losses(), 0, nothing)
    assert (difficulty.explained, len(np.unique(difficulty.strata))) == (0.0, 1)


@pytest.mark.parametrize("word", ["8", "I don't know"])
def test_one_wrong_answer_that_a_model_repeats_is_no_evidence(word: str) -> None:
    rng = np.random.default_rng(1)
    hard = rng.random(800) < 0.3
    wrong = rng.random(800) < np.where(hard, 0.55, 0.08)
    repeats = wrong & (rng.random(800) < 0.7)
    numbers = rng.integers(10, 99, 800) + wrong
    responses = pl.Series(np.where(repeats, word, np.char.mod("%d", numbers)))
    frame = pl.DataFrame(
        {
            "question": [f"item {i} of {'sums' if h else 'lists'}" for i, h in enumerate(hard)],
            "response": responses.cast(pl.Int64) if word.isdigit() else responses,
            "error": wrong.astype(int),
        }
    )
    result = groundfault.audit(Evidence.from_table(frame, outcome="error"), ledger=None)
    assert any(is_suspect(finding) for finding in result.findings)
    assert result.grader == ()
    assert Outline(result).instrument == ""


@pytest.mark.filterwarnings("error")
def test_infinite_numbers_warn_of_nothing() -> None:
    rng = np.random.default_rng(2)
    hard = rng.random(600) < 0.4
    wrong = rng.random(600) < np.where(hard, 0.6, 0.15)
    frame = pl.DataFrame(
        {
            "hard": hard,
            "response_chars": np.where(
                wrong, rng.integers(80, 200, 600), rng.integers(10, 120, 600)
            ),
            "limit": np.where(np.arange(600) % 7 == 0, -np.inf, np.inf),
            "error": wrong.astype(int),
        }
    )
    report = groundfault.audit(Evidence.from_table(frame, outcome="error"), ledger=None)
    assert any(is_suspect(finding) for finding in report.findings)


def test_a_model_that_answered_another_part_needs_no_value_of_a_column() -> None:
    """Of five models one ran on crux alone, where `level` is empty throughout."""
    rng = np.random.default_rng(0)
    chars = rng.integers(10, 400, 600)
    rows = [
        {
            "id": f"q{i:03}",
            "model": model,
            "level": i % 5 if i < 400 else None,
            "n_words": i * 7 % 113,
            "response_chars": int(chars[i]),
            "error": int(rng.random() < (0.7 if chars[i] > 250 else 0.15)),
        }
        for model in "abcde"
        for i in range(400 if model == "e" else 0, 600)
    ]
    evidence = Evidence.from_table(rows, id="id", model="model", outcome="error")
    result = groundfault.audit(evidence, modes=False, ledger=None)
    assert any(is_suspect(finding) for finding in result.findings if finding.outcome == "e")
    assert result.grader is not None
    assert result.left_out == ()
