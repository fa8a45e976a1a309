"""Difficulty is told from known columns, and no unit's own outcome decides on its stratum."""

from __future__ import annotations

import numpy as np
import polars as pl

from groundfault import Evidence
from groundfault.auditing.difficulty import STRATA, estimate_difficulty, tabulate_features
from groundfault.auditing.preparation import prepare
from groundfault.auditing.prepared_audit import PreparedAudit


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
