"""E-processes: golden values, their definitions written out, exact fairness by enumeration, type-I
error, bad input.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from groundfault.errors import InputError, PlanError
from groundfault.sequential import BETS, Bet, EProcess, conditional_threshold, e_process

Q = 0.85
BELOW = {"alternative": 0.7, "grid": (0.3, 0.6, 0.82), "eta": 0.4, "burn_in": 3}
ABOVE = {"alternative": 0.95, "grid": (0.88, 0.91, 0.98), "eta": 0.4, "burn_in": 3}
AUDITOR = [bet for bet in BETS if not bet.startswith(("sr-", "cusum-"))]
BOTH = [("model", bet) for bet in BETS] + [("auditor", bet) for bet in AUDITOR]


def run(scores, threshold=Q, null="model", bet="lr", **changes):
    scores = np.asarray(scores, dtype=float)
    forecast = (0.5 if null == "model" else 0.93) * np.ones(scores.shape[-1])
    settings_ = {**(BELOW if null == "model" else ABOVE), "forecast": forecast, **changes}
    return e_process(scores, threshold, null=null, bet=bet, **settings_)


# -------------------------------------------------------------------------------- --- golden values


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads((shared / "savi_golden_public.json").read_text())


@pytest.fixture(scope="module")
def replay_golden(golden):
    """Our log e-values beside the expected ones: a list of (sequence, run, {null: {bet: log
    e}}).
    """
    table = []
    for sequence, run_ in ((s, r) for s in golden["sequences"] for r in s["runs"]):
        p = sequence["params"]
        ours = {
            null: {
                bet: e_process(
                    sequence["scores"],
                    threshold=p["q"],
                    null=null,
                    bet=bet.lower(),
                    alternative=p["model_alt" if null == "model" else "auditor_alt"],
                    grid=sequence["grids_used"][null],
                    eta=p["eta"],
                    burn_in=run_["m"],
                    warm_start=sequence["init_scores"],
                    forecast=sequence["forecast"],
                )
                for bet in run_[null]
            }
            for null in ("model", "auditor")
        }
        table.append((sequence, run_, ours))
    return table


def test_golden_log_e_values(replay_golden):
    compared = 0
    for sequence, run_, ours in replay_golden:
        for null, bet in [("model", bet) for bet in ours["model"]] + [
            ("auditor", bet) for bet in ours["auditor"]
        ]:
            where = f"{sequence['name']} m={run_['m']} {null} {bet}"
            np.testing.assert_allclose(
                ours[null][bet], run_[null][bet], rtol=0, atol=1e-9, err_msg=where
            )
            compared += 1
    assert compared == 5 * 3 * 16


def test_golden_first_rejections(golden, replay_golden):
    bar, compared = math.log(1 / golden["conventions"]["alpha"]), 0
    for _, run_, ours in replay_golden:
        for bet, expected in run_["first_rejection"].items():
            model = ours["model"][bet] >= bar
            auditor = ours["auditor"][bet.removeprefix("SR-")] >= bar
            stops = np.flatnonzero(model | auditor)
            which = "model" if len(stops) and model[stops[0]] else "auditor"
            assert expected == ({"t": stops[0] + 1, "which": which} if len(stops) else None)
            compared += 1
    assert compared == 5 * 3 * 8


def test_golden_forecasts(golden):
    for sequence in golden["sequences"]:
        run_, q = sequence["runs"][0], sequence["params"]["q"]
        bet = Bet("lr-ui", grid=sequence["grids_used"]["model"], eta=sequence["params"]["eta"])
        process = EProcess.begin(bet)
        if sequence["init_scores"]:
            process = process.warm_start(sequence["init_scores"], q)
        for score, expected in zip(sequence["scores"], run_["gamma"]["model"], strict=True):
            assert np.exp(process.wealth[0].log_weights[:, 0]) @ bet.grid == pytest.approx(
                expected, abs=1e-12
            )
            process = process.update(score, q)


# --------------------------------------------------------------------- --- definitions, written out

unit = st.floats(0, 1, allow_nan=False).map(lambda x: round(x, 3))
histories = st.lists(st.one_of(st.sampled_from([0.0, 1.0]), unit), min_size=1, max_size=25)
thresholds = st.floats(0.2, 0.95).map(lambda x: round(x, 3))


def steps(scores, q, p):
    scores = np.asarray(scores)
    return scores * p / q + (1 - scores) * (1 - p) / (1 - q)


@given(histories, thresholds, st.integers(1, 30))
def test_sr_and_cusum_are_the_sum_and_the_largest_over_starts(scores, q, m):
    p, count = q / 2, len(scores)
    s = steps(scores, q, p)
    for shares, weights in (
        ("uniform", [1 / m if j < m else 0 for j in range(count)]),
        ("heavy-tailed", [1 / ((j + 1) * (j + 2)) for j in range(count)]),
    ):
        products = [
            [weights[j] * np.prod(s[j : t + 1]) for j in range(t + 1)] for t in range(count)
        ]
        idle = 1 - np.cumsum(weights)
        options = {"alternative": p, "burn_in": m, "shares": shares}
        total, largest = (
            np.array([sum(row) for row in products]),
            np.array([max(row) for row in products]),
        )
        for bet, idle_mass, expected in (
            ("sr-lr", False, total),
            ("cusum-lr", False, largest),
            ("sr-lr", True, total + idle),
            ("cusum-lr", True, largest + idle),
        ):
            actual = e_process(scores, q, bet=bet, idle_mass=idle_mass, **options)
            np.testing.assert_allclose(actual, np.log(expected), atol=1e-9)


@given(histories, thresholds, st.sampled_from(["model", "auditor"]))
def test_forecaster_with_rate_one_is_the_uniform_mixture(scores, q, null):
    grid = (
        np.array([0.2, 0.5, 0.9]) * q
        if null == "model"
        else 1 - np.array([0.2, 0.5, 0.9]) * (1 - q)
    )
    mixture = np.log(np.mean([np.cumprod(steps(scores, q, g)) for g in grid], axis=0))
    ui = e_process(scores, q, null=null, bet="lr-ui", grid=grid, eta=1.0, burn_in=1)
    np.testing.assert_allclose(ui, mixture, atol=1e-9)


@given(histories, thresholds, st.sampled_from(AUDITOR))
def test_the_auditor_at_budget_one_is_the_model_in_a_mirror(scores, q, bet):
    if bet == "lr-mix":  # the reference weights the two grids differently
        return
    y = np.array(scores)
    p, grid, forecast = q / 3, (q / 4, q / 2), np.full(len(y), q / 5)
    model = e_process(y, q, bet=bet, alternative=p, grid=grid, forecast=forecast)
    mirror = e_process(
        1 - y,
        1 - q,
        null="auditor",
        bet=bet,
        alternative=1 - p,
        grid=[1 - g for g in grid],
        forecast=1 - forecast,
        burn_in=1,
    )
    np.testing.assert_allclose(model, mirror, atol=1e-9)


@given(histories, thresholds)
def test_agrapa_is_the_bet_of_its_paper(scores, q):
    log_e, total, spread, expected = 0.0, 0.0, 0.0, []
    for t, y in enumerate(scores):
        mean, variance = (0.5 + total) / (t + 1), (0.25 + spread) / (t + 1)
        bet = min(max((q - mean) / (variance + (q - mean) ** 2), 0), 0.75 / (1 - q))
        log_e += math.log(1 + bet * (q - y))
        expected.append(log_e)
        total += y
        spread += (y - (0.5 + total) / (t + 2)) ** 2
    np.testing.assert_allclose(e_process(scores, q, bet="agrapa"), expected, atol=1e-9)


@given(histories)
def test_several_bets_are_averaged(scores):
    one, two = np.exp(run(scores, bet="lr-ui")), np.exp(run(scores, bet="sr-agrapa"))
    np.testing.assert_allclose(
        np.exp(run(scores, bet=["lr-ui", "sr-agrapa"])), (one + two) / 2, rtol=1e-9
    )


# ----------------------------------------------------------------------------------------- --- laws


@pytest.mark.parametrize(("null", "bet"), BOTH)
@given(
    data=st.data(),
    scores=histories,
    shares=st.sampled_from(["uniform", "heavy-tailed"]),
    idle=st.booleans(),
)
@settings(max_examples=15)
def test_interrupted_and_resumed_is_bit_identical(null, bet, data, scores, shares, idle):
    q = np.array(
        data.draw(st.lists(st.floats(-0.5, 1.0), min_size=len(scores), max_size=len(scores)))
    )
    q = q if null == "model" else 1 - q
    options = {"shares": shares, "idle_mass": idle, "warm_start": [1, 0, 0.5]}
    whole = run(scores, q, null, bet, **options)
    side = BELOW if null == "model" else ABOVE
    process = EProcess.begin(Bet(bet, null, shares=shares, idle_mass=idle, **side)).warm_start(
        [1, 0, 0.5], q[0]
    )
    stop = data.draw(st.integers(0, len(scores)))
    actual = []
    for t, (score, level) in enumerate(zip(scores, q, strict=True)):
        if t == stop:
            process = EProcess.from_json(process.to_json())
        process.update(1 - score, 0.5, forecast=0.1)  # looking ahead changes nothing
        process = process.update(score, level, forecast=0.5 if null == "model" else 0.93)
        actual.append(process.log_e[0])
    assert np.array(actual).tobytes() == whole.tobytes()


@pytest.mark.parametrize(("null", "bet"), BOTH)
@given(scores=histories)
@settings(max_examples=15)
def test_log_e_is_finite_and_sequences_do_not_touch(null, bet, scores):
    extremes = np.array([scores, np.zeros(len(scores)), np.ones(len(scores))])
    together = run(extremes, null=null, bet=bet)
    assert together.shape == extremes.shape
    assert np.isfinite(together).all()
    np.testing.assert_allclose(
        together, [run(row, null=null, bet=bet) for row in extremes], atol=1e-12
    )


@pytest.mark.parametrize(("null", "bet"), BOTH)
def test_a_long_run_neither_overflows_nor_underflows(null, bet):
    scores = np.repeat([[0.0], [1.0]], 500, axis=1)
    q, p, grid = (0.99, 0.1, (0.1, 0.2)) if null == "model" else (0.01, 0.9, (0.8, 0.9))
    log_e = run(scores, q, null, bet, alternative=p, grid=grid)
    assert np.isfinite(log_e).all()
    assert np.ptp(log_e) > (300 if "agrapa" in bet else 745)  # a float holds 745 outside logs


@given(histories, st.sampled_from(BOTH))
def test_the_payoff_is_linear_in_the_score(scores, which):
    null, bet = which
    ends = [np.exp(run([*scores, y], null=null, bet=bet)[-1]) for y in (0, 0.25, 1)]
    assert ends[1] == pytest.approx(0.75 * ends[0] + 0.25 * ends[2], rel=1e-9)


@given(st.integers(1, 60), st.integers(1, 99), st.data())
def test_conditional_threshold_is_exact(size, percent, data):
    labelled = data.draw(st.integers(0, size - 1))
    passes = data.draw(st.integers(0, labelled))
    exact = (Fraction(percent, 100) * size - passes) / (size - labelled)
    actual = float(conditional_threshold(percent / 100, size, labelled, passes))
    assert actual == pytest.approx(float(exact), abs=1e-12)
    if exact in (0, 1):
        assert actual == exact
    assert (actual > 1) == (exact > 1)


def test_an_exhausted_group_is_decided():
    below, meets = conditional_threshold([0.85, 0.85], 20, 20, [16, 17])
    assert below == np.inf
    assert meets == -np.inf
    with pytest.raises(ValueError, match="labelled"):
        conditional_threshold(0.85, 10, 11, 5)


@pytest.mark.parametrize(("null", "bet"), BOTH)
def test_thresholds_beyond_reach(null, bet):
    """An impossible null is refuted for good; where the null is certain, nothing is staked."""
    impossible, certain = (1.2, -0.2) if null == "model" else (-0.2, 1.2)
    m = 3
    log_e = run(np.ones(6) * 0.5, [Q, Q, Q, impossible, Q, Q], null, bet, burn_in=m)
    assert np.isfinite(log_e[:3]).all()
    assert (log_e[3:] == np.inf).all()
    quiet = run([0, 1, 0, 1, 0, 1], [certain] * 6, null, bet, burn_in=1)
    np.testing.assert_allclose(quiet, 0, atol=1e-12)


def test_at_a_threshold_of_one_betting_is_free():
    log_e = run([1, 1, 1, 0], [1.0] * 4, bet="lr")
    assert (log_e[:3] == 0).all()
    assert math.log(1e5) < log_e[3] < np.inf


def test_rounding_does_not_refute_a_group_that_can_make_it():
    assert 0.07 * 100 > 7  # the trap
    level = float(conditional_threshold(0.07, 100, 93, 0))
    assert level == 1.0
    assert np.isfinite(run([1], [level])[0])


def test_unstaked_steps_pass_by():
    for null, bet in BOTH:
        if bet.startswith(("sr-", "cusum-")):
            continue
        scores, stake = np.array([0, 1, 1, 0, 1, 1]), np.array([1, 1, 1, 0, 1, 0], dtype=bool)
        some = run(scores, null=null, bet=bet, stake=stake, burn_in=1)
        staked_only = run(scores[stake], null=null, bet=bet, burn_in=1)
        np.testing.assert_allclose(some, staked_only[np.cumsum(stake) - 1], atol=1e-12)


def test_only_the_last_five_warm_up_scores_teach():
    late = run([1, 0, 1], bet="lr-ui", warm_start=[0, 0, 0, 0, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(late, run([1, 0, 1], bet="lr-ui", warm_start=[1] * 5))
    assert late[0] != run([1, 0, 1], bet="lr-ui")[0]
    np.testing.assert_array_equal(run([1, 0], warm_start=[0] * 9), run([1, 0]))


# ------ --- exact fairness: the best any adversary can do, by backward induction over all histories


def best_value(scores, log_e, outcomes, laws):
    """Largest expected e-value at a stopping time, whatever law of ``laws[t]`` each history is
    followed by.
    """
    e = at_histories(scores, log_e, outcomes)
    value = e[-1]
    for t in range(len(e) - 1, -1, -1):
        expected = np.max([value.reshape(-1, len(outcomes)) @ law for law in laws[t]], axis=0)
        value = expected if t == 0 else np.maximum(e[t - 1], expected)
    return float(value[0])


def at_histories(scores, log_e, outcomes):
    """For each t, the e-value after each history of t + 1 steps."""
    length = scores.shape[1]
    return [np.exp(log_e[:: len(outcomes) ** (length - t - 1), t]) for t in range(length)]


def extreme_laws(outcomes, q, null):
    """Extreme points of the laws on the outcomes with mean at least (at most) q."""
    laws = []
    for a, b in product(range(len(outcomes)), repeat=2):
        law = np.zeros(len(outcomes))
        low, high = outcomes[a], outcomes[b]
        if a == b and (low >= q if null == "model" else low <= q):
            law[a] = 1
        elif low < q < high:
            law[b] = (q - low) / (high - low)
            law[a] = 1 - law[b]
        else:
            continue
        laws.append(law)
    return laws


LEVELS = {
    "constant": [Q] * 6,
    "conditional": [0.85, 0.95, 0.5, 0.2, 0.9, 0.65],  # passes some alternatives, and comes back
}
DESIGNS = [("uniform", False), ("uniform", True), ("heavy-tailed", True)]


@pytest.mark.parametrize("kind", LEVELS)
@pytest.mark.parametrize("outcomes", [(0.0, 1.0), (0.0, 0.6, 1.0)], ids=["0/1", "real"])
@pytest.mark.parametrize(("null", "bet"), BOTH)
def test_no_law_of_the_null_and_no_stopping_rule_wins(null, bet, outcomes, kind):
    scores = np.array(list(product(outcomes, repeat=6 if len(outcomes) == 2 else 5)))
    level = LEVELS[kind][: scores.shape[1]]
    laws = [extreme_laws(outcomes, q, null) for q in level]
    if null == "auditor":  # says nothing of the steps before the budget
        laws[: ABOVE["burn_in"] - 1] = [list(np.eye(len(outcomes)))] * (ABOVE["burn_in"] - 1)
    for shares, idle in DESIGNS:
        log_e = run(scores, level, null, bet, shares=shares, idle_mass=idle)
        assert best_value(scores, log_e, outcomes, laws) <= 1 + 1e-12


@pytest.mark.parametrize(("null", "bet"), [b for b in BOTH if not b[1].startswith("cusum-")])
def test_at_the_threshold_wealth_is_fair_after_every_history(null, bet):
    """All but ``cusum-`` are martingales there (``sr-`` with its idle mass): nothing is given
    away.
    """
    scores = np.array(list(product((0.0, 1.0), repeat=6)))
    for shares in ("uniform", "heavy-tailed"):
        after = at_histories(
            scores, run(scores, Q, null, bet, shares=shares, idle_mass=True), (0.0, 1.0)
        )
        for t, (old, new) in enumerate(zip([np.ones(1), *after], after, strict=False)):
            np.testing.assert_allclose(
                new.reshape(-1, 2) @ [1 - Q, Q], old, rtol=1e-9, err_msg=f"step {t + 1}"
            )


@pytest.mark.parametrize("bet", [b for b in BETS if b.startswith("sr-")])
def test_uniform_shares_without_idle_mass_have_expectation_t_over_m(bet):
    scores = np.array(list(product((0.0, 1.0), repeat=6)))
    chance = np.prod(np.where(scores == 1, Q, 1 - Q), axis=1)
    expected = chance @ np.exp(run(scores, bet=bet, burn_in=4))
    np.testing.assert_allclose(expected, np.minimum(np.arange(1, 7), 4) / 4, rtol=1e-9)


def test_a_bet_on_the_wrong_side_would_be_caught():
    """The enumeration can fail: an alternative that agrees with the null makes money from it."""
    scores = np.array(list(product((0.0, 1.0), repeat=5)))
    log_e = np.cumsum(np.log(steps(scores, 0.5, 0.7)), axis=1)
    assert best_value(scores, log_e, (0.0, 1.0), [extreme_laws((0.0, 1.0), 0.5, "model")] * 5) > 1.5


# --------------- --- draws without replacement: two groups of four, tested for three passes in each


def finite_groups(null, bet, conditional, passes=3, length=5):
    """Largest expected e-value when the auditor picks the group of each draw, and when to stop."""
    size, q = 4, 0.75
    branches = list(product((0, 1), (0, 1)))  # group, score
    paths = np.array(list(product(range(4), repeat=length)))
    group, score = paths // 2, paths % 2
    draws, totals = np.zeros((len(paths), 2), int), np.zeros((len(paths), 2), int)
    level, chance = np.empty(paths.shape), np.empty(paths.shape)
    rows = np.arange(len(paths))
    for t in range(length):
        g, y = group[:, t], score[:, t]
        n, k = draws[rows, g], totals[rows, g]
        rest = np.maximum(size - n, 1)
        level[:, t] = (q * size - k) / rest if conditional else q
        right = np.clip((passes - k) / rest, 0, 1)
        chance[:, t] = np.where(n < size, np.where(y == 1, right, 1 - right), 0)
        draws[rows, g] += 1
        totals[rows, g] += y
    grid = (
        {"alternative": 0.5, "grid": (0.3, 0.6)}
        if null == "model"
        else {"alternative": 0.9, "grid": (0.8, 0.95)}
    )
    e = np.exp(run(score, level, null, bet, burn_in=2, idle_mass=True, **grid))
    value = e[:, -1]
    for t in range(length - 1, -1, -1):
        repeat = 4 ** (length - t - 1)
        p = chance[::repeat, t]
        stakes = (
            np.where(p > 0, p * np.where(p > 0, value, 0), 0)
            .reshape(-1, 2, len(branches) // 2)
            .sum(axis=2)
        )
        expected = stakes.max(axis=1)
        value = expected if t == 0 else np.maximum(e[:: repeat * 4, t - 1], expected)
    return float(value[0])


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize(("null", "bet"), BOTH)
def test_the_conditional_threshold_makes_finite_groups_fair(null, bet, spare):
    passes = 3 + spare if null == "model" else 3 - spare
    assert finite_groups(null, bet, conditional=True, passes=passes) <= 1 + 1e-12


@pytest.mark.parametrize(("null", "bet"), [b for b in BOTH if not b[1].startswith("cusum-")])
def test_a_constant_threshold_is_exploited_on_finite_groups(null, bet):
    assert finite_groups(null, bet, conditional=False) > 1.02


# -------------------------------------------------------- --- type-I error in simulated null worlds

PAPER = {
    "model": {"alternative": 0.82, "grid": (0.6, 0.655, 0.71, 0.765, 0.82), "burn_in": 40},
    "auditor": {"alternative": 0.9, "grid": (0.88, 0.91, 0.94), "burn_in": 40},
}
CUT = math.log(20)
REPLICATES = 2000
LIMIT = 0.05 + 3 * math.sqrt(0.05 * 0.95 / REPLICATES)


@pytest.mark.parametrize("world", ["0/1", "real"])
@pytest.mark.parametrize(("null", "bet"), BOTH)
def test_type_one_error_at_the_boundary(null, bet, world):
    rng = np.random.default_rng(8)
    shape = (REPLICATES, 150)
    scores = rng.random(shape) < Q if world == "0/1" else rng.beta(8.5 / 4, 1.5 / 4, shape)
    forecast = rng.uniform(0, 1, 150)
    log_e = e_process(
        scores,
        Q,
        null=null,
        bet=bet,
        forecast=forecast,
        eta=0.1,
        shares="heavy-tailed",
        idle_mass=True,
        **PAPER[null],
    )
    assert (log_e.max(axis=1) >= CUT).mean() <= LIMIT
    assert log_e.std() > 0


@pytest.mark.parametrize(("null", "bet"), BOTH)
def test_power(null, bet):
    """The other half: a bet that never wins controls its error too."""
    rng = np.random.default_rng(9)
    scores = rng.random((200, 250)) < (0.6 if null == "model" else 0.97)
    forecast = np.full(250, 0.6 if null == "model" else 0.97)
    log_e = e_process(scores, Q, null=null, bet=bet, forecast=forecast, **PAPER[null])
    assert (log_e.max(axis=1) >= CUT).mean() > (
        0.3 if bet == "agrapa" and null == "auditor" else 0.9
    )


def test_depleted_groups():
    """20 groups of 20, each at the threshold; the auditor goes where its luck has left the fewest
    passes.
    """
    rng = np.random.default_rng(10)
    replicates, groups, size, rows = 1000, 20, 20, np.arange(1000)
    items = rng.permuted(np.broadcast_to(np.arange(size) < 17, (replicates, groups, size)), axis=2)
    draws, passes = np.zeros((replicates, groups)), np.zeros((replicates, groups))
    names = ("lr", "lr-ui", "sr-lr", "sr-lr-ui")
    naive = {name: EProcess.begin(Bet(name, **PAPER["model"]), replicates) for name in names}
    right = dict(naive)
    rejections = {
        (kind, name): np.zeros(replicates, bool) for kind in ("naive", "right") for name in names
    }
    for _ in range(250):
        remainder = size - draws
        share = np.where(remainder > 0, (17 - passes) / np.maximum(remainder, 1), np.inf)
        g = np.argmin(share + 1e-9 * rng.random(share.shape), axis=1)
        score = items[rows, g, draws[rows, g].astype(int)].astype(float)
        level = conditional_threshold(Q, size, draws[rows, g], passes[rows, g])
        for name in names:
            naive[name] = naive[name].update(score, Q)
            right[name] = right[name].update(score, level)
            rejections["naive", name] |= naive[name].log_e >= CUT
            rejections["right", name] |= right[name].log_e >= CUT
        draws[rows, g] += 1
        passes[rows, g] += score
    rate = {key: value.mean() for key, value in rejections.items()}
    assert max(rate["right", name] for name in names) <= 0.05 + 3 * math.sqrt(
        0.05 * 0.95 / replicates
    )
    assert rate["naive", "lr-ui"] > 0.2
    assert rate["naive", "sr-lr-ui"] > 0.2


# ------------------------------------------------------------------------------------ --- bad input

GOOD = {"scores": [1, 0], "threshold": 0.85, "alternative": 0.7, "grid": [0.6, 0.7], "burn_in": 10}


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"scores": [1, 1.2]}, InputError, r"score 1 is 1.2"),
        ({"scores": [[1, 0], [1, -0.1]]}, InputError, r"score \(1, 1\) is -0.1"),
        ({"scores": [float("nan")]}, InputError, r"score 0 is nan"),
        ({"scores": ["pass"]}, InputError, "not a number"),
        ({"scores": [[[1]]]}, InputError, "3 axes"),
        ({"threshold": 0}, PlanError, "threshold=0 "),
        ({"threshold": 1.0}, PlanError, "between 0 and 1"),
        ({"threshold": 85}, PlanError, "between 0 and 1"),
        ({"threshold": float("nan")}, InputError, "NaN"),
        ({"threshold": "high"}, InputError, "not a number"),
        ({"threshold": [0.8, 0.8, 0.8]}, InputError, "threshold has shape"),
        ({"bet": "lrr"}, PlanError, "one of lr, lr-ui"),
        ({"bet": []}, PlanError, "one bet or more"),
        ({"null": "nobody"}, PlanError, "one of model, auditor"),
        ({"null": "auditor", "bet": "sr-lr", "alternative": 0.9}, PlanError, "model's null only"),
        ({"burn_in": 0}, PlanError, "burn_in=0"),
        ({"burn_in": 2.5}, PlanError, "burn_in=2.5"),
        ({"burn_in": None}, PlanError, "needs burn_in="),
        ({"null": "auditor", "bet": "agrapa", "burn_in": None}, PlanError, "needs burn_in="),
        ({"bet": "lr", "alternative": None}, PlanError, "needs alternative="),
        ({"bet": "lr", "alternative": 0.9}, PlanError, "does not contradict"),
        ({"bet": "lr", "alternative": 0.85}, PlanError, "does not contradict"),
        ({"bet": "lr-ui", "null": "auditor", "grid": [0.8, 0.9]}, PlanError, "above the threshold"),
        ({"alternative": 0.0}, PlanError, "strictly between"),
        ({"grid": [0.2, "x"]}, PlanError, "strictly between"),
        ({"grid": []}, PlanError, "needs grid="),
        ({"eta": -1}, PlanError, "eta=-1"),
        ({"bet": "lr-pred"}, InputError, "needs forecast="),
        ({"bet": "lr-pred", "forecast": [0.5, float("nan")]}, InputError, "NaN"),
        ({"bet": "lr-pred", "forecast": [0.5] * 3}, InputError, "forecast has shape"),
        ({"stake": [True] * 3}, InputError, "stake has shape"),
        ({"warm_start": [2]}, InputError, "warm-up score 0 is 2"),
        ({"warm_start": [[1], [0]]}, InputError, "warm-up scores have shape"),
        ({"shares": "equal"}, PlanError, "one of uniform"),
    ],
)
def test_bad_input_is_refused_in_one_line(changes, error, words):
    with pytest.raises(error, match=words) as refusal:
        e_process(**{**GOOD, **changes})
    assert "\n" not in str(refusal.value)


def test_bad_updates_are_refused():
    process = EProcess.begin(Bet("lr", alternative=0.5), 2)
    for score, level in (
        ([1], 0.9),
        ([1, 2], 0.9),
        ([1, 0], [0.9, 0.9, 0.9]),
        ([1, 0], float("nan")),
    ):
        with pytest.raises(InputError):
            process.update(score, level)
    with pytest.raises(InputError, match="before the first score"):
        process.update([1, 0], 0.9).warm_start([1], 0.9)
    with pytest.raises(PlanError, match="same null"):
        EProcess.begin(
            [Bet("lr", alternative=0.5), Bet("lr", "auditor", alternative=0.9, burn_in=2)]
        )
    for text in (
        "",
        "[]",
        "{}",
        process.to_json().replace('"lr"', '"lr-mix"'),
        process.to_json().replace("0.0", "NaN"),
    ):
        with pytest.raises(InputError, match="replay the recorded scores"):
            EProcess.from_json(text)


def test_nothing_seen_is_no_evidence():
    assert e_process([], **{k: v for k, v in GOOD.items() if k != "scores"}).shape == (0,)
    assert EProcess.begin(Bet("sr-lr", alternative=0.5, burn_in=4)).log_e.tolist() == [0.0]
