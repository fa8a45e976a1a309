"""Modes by counts: the tests are those of rows, and lists of rules keep their level."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from groundfault.modes import patterns
from groundfault.modes.patterns import PatternCells, judge_in_order
from groundfault.modes.strata import Losses, Strata
from groundfault.stats.bits import Layout


def make_rows(
    n: int, *, levels: int = 2, seed: int = 0
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Three rules that overlap, the first two of which go with losses, and losses."""
    rng = np.random.default_rng(seed)
    on = rng.random((n, 3)) < (0.3, 0.2, 0.4)
    chance = 0.2 + 0.15 * on[:, 0] + 0.1 * on[:, 1]
    return on, rng.binomial(levels - 1, chance) / (levels - 1)


def count_cells(
    on: NDArray[np.bool_],
    losses: NDArray[np.float64],
    tested: NDArray[np.bool_] | None = None,
    strata: NDArray[np.int64] | None = None,
) -> PatternCells:
    """The cells of rows."""
    strata = np.zeros(len(on), dtype=np.int64) if strata is None else strata
    tested = np.ones_like(on) if tested is None else tested
    names = [f"{part}{i}" for part in ("on", "tested") for i in range(on.shape[1])]
    frame = pl.DataFrame(np.concatenate([on, tested], axis=1), schema=names)
    frame = frame.with_columns(loss=pl.Series(losses), stratum=pl.Series(strata))
    cells = frame.group_by(pl.all()).len("units")
    width = on.shape[1]
    return PatternCells(
        cells.select(names[:width]).to_numpy(),
        cells.select(names[width:]).to_numpy(),
        cells["loss"].to_numpy(),
        cells["units"].to_numpy().astype(np.int64),
        cells["stratum"].to_numpy(),
    )


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("levels", [2, 5])
def test_cells_are_tested_as_their_rows_are(levels: int, classes: int) -> None:
    on, losses = make_rows(400, levels=levels)
    strata = np.arange(400) * classes // 400
    layout = Layout(strata)
    masks = [layout.pack(row[None])[0] for row in on.T]
    packed = Losses.of(losses, layout)
    tests = list(judge_in_order(count_cells(on[:, :2], losses, strata=strata), 0.5))
    for i, test in enumerate(tests):
        alone, beyond = Strata(layout, packed), Strata(layout, packed, masks[:i])
        assert test.log_marginal == pytest.approx(
            max(alone.log_p(masks[j]) for j in range(i + 1)), rel=1e-9
        )
        inside, new = on[:, i], on[:, i] & beyond.new
        assert test.inside == (inside.sum(), pytest.approx(losses[inside].sum()))
        assert test.outside == (400 - inside.sum(), pytest.approx(losses[~inside].sum()))
        assert test.new == (new.sum(), pytest.approx(losses[new].sum()))
    assert len(tests) == 2
    second = Strata(layout, packed, masks[:1]).log_p(masks[1])
    assert tests[1].log_conditional == pytest.approx(max(second, tests[0].log_conditional))


def test_the_saddlepoint_of_very_many_units_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    on = rng.random((40_000, 2)) < 0.3
    losses = (rng.random(40_000) < 0.2 + on @ (0.02, 0.02)).astype(np.float64)
    cells = count_cells(on, losses)
    exact = list(judge_in_order(cells, 0.9))
    monkeypatch.setattr(patterns, "_ATOMS", 0)
    again = list(judge_in_order(cells, 0.9))
    # a tail that is neither 1 nor too small to be told from 0
    assert -60 < exact[1].log_conditional < -1
    assert again[1].log_conditional == pytest.approx(exact[1].log_conditional, abs=0.01)


def test_units_taken_away_leave_the_others() -> None:
    on, losses = make_rows(300)
    cells, sample = count_cells(on, losses), slice(0, 100)
    both = PatternCells(
        np.concatenate([cells.on, on[sample]]),
        np.concatenate([cells.tested, np.ones_like(on[sample])]),
        np.concatenate([cells.losses, losses[sample]]),
        np.concatenate([cells.units, np.full(100, -1)]),
        np.concatenate([cells.strata, np.zeros(100, dtype=np.int64)]),
    )
    rest = count_cells(on[100:], losses[100:])
    assert list(judge_in_order(both, 0.9)) == pytest.approx(list(judge_in_order(rest, 0.9)))


def test_the_list_ends_at_the_first_rule_that_does_not_stand() -> None:
    on, losses = make_rows(400)
    order = on[:, [0, 2, 1]]
    assert len(list(judge_in_order(count_cells(order, losses), 0.1))) == 1
    assert list(judge_in_order(count_cells(on[:, :0], losses), 0.1)) == []


def test_a_rule_that_holds_nowhere_ends_the_list() -> None:
    on, losses = make_rows(100)
    on[:, 0] = False
    assert list(judge_in_order(count_cells(on, losses), 0.1)) == []


def test_only_what_is_tested_counts() -> None:
    on, losses = make_rows(400)
    tested = np.random.default_rng(1).random(on.shape) < 0.7
    (test, *_) = judge_in_order(count_cells(on & tested, losses, tested), 0.9)
    (alone,) = judge_in_order(count_cells(on[tested[:, 0]][:, :1], losses[tested[:, 0]]), 0.9)
    assert test == alone


def test_lists_keep_their_level_beside_a_true_mode() -> None:
    """Null rules of every kind: noise, a proxy of a true mode, and all of them alone."""
    false = {"marginal": 0, "conditional": 0}
    for seed in range(120):
        rng = np.random.default_rng(seed)
        on = rng.random((200, 3)) < 0.3
        # a proxy fails more often, and adds nothing
        on[:, 1] = np.where(rng.random(200) < 0.7, on[:, 0], on[:, 1])
        losses = (rng.random(200) < 0.2 + 0.5 * on[:, 0]).astype(np.float64)
        listed = len(list(judge_in_order(count_cells(on, losses), 0.1)))
        false["conditional"] += listed > 1
        noise = (rng.random(200) < 0.2).astype(np.float64)
        false["marginal"] += len(list(judge_in_order(count_cells(on, noise), 0.1))) > 0
    # 120 worlds at a level of 0.1: 12, and three standard errors
    assert false["conditional"] <= 21
    assert 3 <= false["marginal"] <= 21
