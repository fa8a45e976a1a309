"""One list of rules for several models: what all share, what one has alone, and what is luck."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import groundfault
from groundfault import Evidence, Report
from groundfault.modes.find import find_modes
from groundfault.render import to_markdown

MODELS = ("small", "middle", "large", "other")


def draw_table(rng: np.random.Generator, n: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "topic": rng.choice(["billing", "refund", "login", "legal"], n),
            "lang": rng.choice(["en", "de", "ar"], n, p=[0.5, 0.3, 0.2]),
            "words": rng.integers(5, 300, n),
            "vip": rng.random(n) < 0.3,
        }
    )


def draw_losses(rng: np.random.Generator, table: pl.DataFrame) -> NDArray[np.float64]:
    """Return losses of models that all fail in Arabic, and one of them on refunds."""
    rates = np.full((len(MODELS), table.height), 0.12)
    rates[:, (table["lang"] == "ar").to_numpy()] = 0.5
    rates[2, (table["topic"] == "refund").to_numpy()] = 0.6
    return (rng.random(rates.shape) < rates).astype(float)


@pytest.fixture(scope="module")
def report() -> Report:
    rng = np.random.default_rng(3)
    table = draw_table(rng, 900).with_row_index("id")
    losses = draw_losses(rng, table)
    long = pl.concat(
        table.with_columns(model=pl.lit(name), failed=pl.Series(row.astype(int)))
        for name, row in zip(MODELS, losses, strict=True)
    )
    evidence = Evidence.from_table(long, id="id", model="model", outcome="failed")
    return groundfault.audit(evidence, ledger=False)


def test_what_all_share_is_one_row_and_what_one_has_alone_another(report: Report) -> None:
    frame = report.matrix()
    rules = dict(zip(frame["rule"], frame.iter_rows(named=True), strict=True))
    shared, alone = rules["\"lang\" = 'ar'"], rules["\"topic\" = 'refund'"]
    assert all(shared[f"{name}: mark"] == "named" for name in MODELS)
    assert shared["only"] == ""
    assert alone["only"] == "large"
    assert [alone[f"{name}: mark"] for name in MODELS] == ["", "", "named", ""]
    assert len(frame) <= 3
    assert report.mode_search is not None
    assert [row.is_shared for row in report.mode_search.matrix].count(True) == 1


def test_rates_are_those_of_the_table(report: Report) -> None:
    assert report.mode_search is not None
    for row in report.mode_search.matrix:
        for cell in row.cells:
            listed = [m for m in report.modes if (m.rule, m.outcome) == (row.rule, cell.model)]
            for mode in listed:
                assert (cell.n, cell.errors) == (mode.n, mode.errors)
            # what is named for a model on its own list is confirmed in its cell
            assert cell.mark or not listed


def test_a_report_of_one_model_has_no_rows() -> None:
    rng = np.random.default_rng(4)
    table = draw_table(rng, 200).with_columns(failed=rng.integers(0, 2, 200))
    report = groundfault.audit(Evidence.from_table(table, outcome="failed"), ledger=False)
    assert report.matrix().is_empty()
    assert report.matrix().columns == ["rule", "meaning", "n", "only"]


def test_models_that_answered_different_examples_have_cells_of_their_own() -> None:
    rng = np.random.default_rng(5)
    table = draw_table(rng, 900)
    losses = draw_losses(rng, table)
    losses[0, :300], losses[3, 600:] = np.nan, np.nan
    _, search = find_modes(table, losses, outcomes=MODELS)
    arabic = (table["lang"] == "ar").to_numpy()
    (row,) = [row for row in search.matrix if row.rule == "\"lang\" = 'ar'"]
    for cell, values in zip(row.cells, losses, strict=True):
        inside = values[arabic & ~np.isnan(values)]
        assert (cell.n, cell.errors) == (len(inside), inside.sum())


def test_nothing_is_hardly_ever_confirmed_among_models_that_fail_by_chance() -> None:
    """Models that agree on what is hard, as they do. At a level of 10 % one draw of 20 worlds in 90
    has more than five with a row.
    """
    rows = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 9])
        table = draw_table(rng, 200)
        losses = (rng.random((4, 200)) < 0.5 * rng.random(200)).astype(float)
        _, search = find_modes(table, losses, outcomes=MODELS, depth=2, bars="bonferroni")
        rows += bool(search.matrix)
    assert rows <= 5


def test_a_screen_shows_one_table_of_all_models(report: Report) -> None:
    page = " ".join(to_markdown(report).split())
    assert "2 failure modes of 4 models, 1 of them in every model" in page
    assert "topic is refund (only large)" in page
    assert "no mark: no such excess was shown" in page


def test_models_whose_ranges_end_elsewhere_share_a_row() -> None:
    rng, n = np.random.default_rng(3), 1500
    day = rng.integers(1, 366, n)
    table = pl.DataFrame({"day": day, "rush": rng.random(n) < 0.4})
    inside = (day >= 97) & (day <= 118)
    losses = np.stack([rng.random(n) < np.where(inside, 0.9, 0.08) for _ in range(2)])
    modes, search = find_modes(table, losses.astype(float), outcomes=("a", "b"))
    assert any(mode.rule == '"day" BETWEEN 97 AND 118' for mode in modes)
    (row, *_) = search.matrix
    assert [cell.mark for cell in row.cells] == ["named", "named"]
    # one of their ends serves both
    (mode,) = [mode for mode in modes if (mode.outcome, mode.rule) == ("a", row.rule)]
    on = mode.holds(table).to_numpy()
    for cell, values in zip(row.cells, losses, strict=True):
        assert (cell.n, cell.errors) == (on.sum(), values[on].sum())


def test_a_row_of_one_model_ends_where_its_own_list_ends() -> None:
    rng, n = np.random.default_rng(3), 1500
    day = rng.integers(1, 366, n)
    table = pl.DataFrame({"day": day, "rush": rng.random(n) < 0.4})
    inside = (day >= 97) & (day <= 118)
    losses = np.stack([rng.random(n) < np.where(inside, 0.9, 0.08), rng.random(n) < 0.1])
    losses = losses.astype(float)
    losses[0, :300] = np.nan  # models that answered different examples
    modes, search = find_modes(table, losses, outcomes=("a", "b"))
    (mode,) = [mode for mode in modes if mode.outcome == "a"]
    (row,) = search.matrix
    assert mode.rule == '"day" BETWEEN 97 AND 117'
    on = mode.holds(table).to_numpy()
    assert (row.rule, row.n, row.only) == (mode.rule, on.sum(), "a")
    assert (row.cells[0].n, row.cells[0].errors) == (mode.n, mode.errors)
