"""Type-I error of sequential audits: small versions of `groundfault lab study validity`, and what a
naive audit does.
"""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.sequential.bets import BETS, SOURCES
from groundfault_studies import validity
from groundfault_studies.null_games import (
    Game,
    Groups,
    Move,
    bold,
    count_rejections,
    fresh,
    weigh_rejections,
    worst_cases,
)
from groundfault_studies.validity import games, measure, upper

PAPERS = list(validity.PAPERS)
MODEL, AUDITOR = games("model"), games("auditor")
SHORT = [key for key in MODEL if key not in ("long", "100x20")]


def max_share(replicates: int) -> float:
    """What 5 % may look like, but for one time in 10,000."""
    return 0.05 + 3.9 * np.sqrt(0.05 * 0.95 / replicates)


@pytest.mark.parametrize("key", SHORT)
def test_the_models_null_stands(key):
    counts = measure(MODEL[key], PAPERS, "guaranteed", 250)
    assert max(counts.values()) / 250 <= max_share(250)


@pytest.mark.parametrize("key", [key for key in SHORT if key in AUDITOR])
def test_the_auditors_null_stands(key):
    counts = measure(AUDITOR[key], SOURCES, "guaranteed", 150)
    assert max(counts.values()) / 150 <= max_share(150)


@pytest.mark.parametrize(
    ("key", "min_shares"),
    [
        (
            "20x20",
            {"lr": 0.07, "sr-lr": 0.04, "lr-ui": 0.22, "sr-lr-ui": 0.28},
        ),  # spec: .109 .065 .268 .342
        ("gated", {"lr-ui": 0.95, "sr-lr-ui": 0.95}),
        ("nine", {"lr": 0.99, "lr-ui": 0.99, "sr-lr-ui": 0.99}),
        ("2268", {"lr": 1.0, "lr-ui": 1.0, "sr-lr-ui": 1.0}),
        ("1000", {"lr-ui": 0.6, "sr-lr-ui": 0.1}),
        ("11788", {"lr": 1.0, "sr-lr": 1.0, "lr-ui": 1.0, "sr-lr-ui": 1.0}),
    ],
)
def test_the_papers_sampling_loses_it(key, min_shares):
    """Spec 6c, rows (ii), (iii) and (v): an audit that tests against the threshold itself is wrong
    far too often.
    """
    counts = measure(MODEL[key], PAPERS, "paper", 300)
    for bet, share in min_shares.items():
        assert counts[bet] / 300 >= share


def test_a_claim_of_the_auditors_is_lost_in_the_same_way():
    assert measure(AUDITOR["gated"], ["lr-ui"], "paper", 200)["lr-ui"] >= 190


@pytest.mark.parametrize(("null", "bets"), [("model", BETS), ("auditor", SOURCES)])
def test_no_shape_of_scores_beats_the_bar(null, bets):
    for bet in bets:
        rate, error = bold(bet, null, 300, 80, [1])
        assert rate <= 0.05 + 1e-12  # no path weighs more than alpha, if the bet is valid
        assert rate > 0 or error == 0.0


@pytest.mark.slow
def test_every_default_stays_below_alpha():
    """What the documentation prints, with its 10,000 replicates a cell."""
    study = validity.study(jobs=-1)
    tables = [table for table in study.tables if "default" in table.title]
    assert len(tables) == 4
    for table in tables:
        assert all(bound <= 0.05 for bound in table.rows[-1].here.values())


# ------------------------------------------------------------------------- --- the measuring itself


def test_weighing_agrees_with_counting():
    for game, bet in (
        (fresh("0/1", 100), "lr-ui"),
        (Groups(5, (0.0,) + (1.0,) * 9, 50, 0.9).game("five"), "agrapa"),
    ):
        share = count_rejections(game, [bet], "guaranteed", 4000, [1]).mean()
        rate, error = weigh_rejections(game, bet, 1000, [2])
        assert abs(share - rate) <= 4 * np.sqrt(rate * (1 - rate) / 4000) + 4 * error


def test_weighing_would_see_an_unfair_game():
    """Scores below the threshold: the null is false, and the weights say how often it falls, not
    alpha.
    """

    def moves(rng, n, paper):
        for _ in range(100):
            yield Move(np.full(n, 0.85), np.ones(n, dtype=bool), np.full(n, 0.70))

    rate, error = weigh_rejections(Game("unfair", "", moves), "lr-ui", 1000, [1])
    share = count_rejections(Game("unfair", "", moves), ["lr-ui"], "guaranteed", 1000, [1]).mean()
    assert share > 0.5
    assert abs(rate - share) < 5 * error + 0.08


def test_the_games_are_null():
    """Groups have the mean they claim, and the worst cases reach the threshold together."""
    rng = np.random.default_rng(0)
    for null, sign in (("model", 1), ("auditor", -1)):
        for key, game in games(null).items():
            groups = (
                game.moves.__self__
                if isinstance(getattr(game.moves, "__self__", None), Groups)
                else None
            )
            if groups is not None:
                assert sign * (np.mean(groups.scores) - groups.threshold) >= -1e-12, key
    play = worst_cases(1000, 15, 0.5).moves(rng, 4000, False)
    assert abs(next(play).chance.mean() - 0.85) < 0.01
    with pytest.raises(AssertionError):
        worst_cases(1000, 20, 0.5)


def test_the_upper_bound_is_clopper_and_pearsons():
    from scipy.stats import binom

    assert upper(0, 100) == pytest.approx(1 - 0.01 ** (1 / 100))
    assert binom.cdf(30, 1000, upper(30, 1000)) == pytest.approx(0.01)
    assert upper(5, 5) == 1.0


def test_a_study_that_was_stopped_goes_on(tmp_path, monkeypatch):
    few = {null: {"fresh": fresh("0/1", 20, null)} for null in validity.NULLS}
    monkeypatch.setattr(validity, "games", few.get)
    monkeypatch.setattr(validity, "_STEPS", 20)
    keep = tmp_path / "rows.jsonl"
    whole = validity.study(replicates=5, keep=keep)
    lines = keep.read_text().splitlines(keepends=True)
    keep.write_text("".join(lines[:3]) + lines[3][:30])  # killed while it wrote the fourth
    messages: list[str] = []
    again = validity.study(replicates=5, keep=keep, progress=messages.append)
    assert again == whole
    assert len(messages) == len(lines) - 3
    assert validity.study(replicates=5, keep=keep, progress=pytest.fail) == whole
