"""Two models side by side, and a report beside an earlier one."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from bench_reports import visit
from explorer_files import ExplorerFile, make_results, write_report

from groundfault import Candidate, Evidence, InputError, audit
from groundfault.auditing.report_examples import look_up_examples
from groundfault.core.rules import Rule
from groundfault.exports import export
from groundfault.modes.mode import EVERY_MODEL
from groundfault.render.mode_page import make_example_page
from groundfault.workbench.opened_report import OpenedReport
from groundfault.workbench.screens.rows import compare_models, find_unit_rows


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("compare")
    return write_report(home, make_results(), id="id", model="model")


@pytest.fixture(scope="module")
def two(place: Path) -> OpenedReport:
    bench = OpenedReport.of_report(place, ledger=False)
    bench.apart = False
    return bench


def test_cells_and_rules_are_counts_of_the_table(two: OpenedReport, place: Path) -> None:
    assert two.report is not None
    found = compare_models(two.index, two.report, "alpha", "beta")
    table = pl.read_parquet(place.parent / "answers.parquet")
    wide = table.pivot("model", index=["id", "lang", "size", "prompt"], values="error").sort("id")
    a, b = (wide[name].to_numpy() == 1 for name in ("alpha", "beta"))
    for cell, mask in zip(found.cells, (a & b, ~a & b, a & ~b, ~a & ~b), strict=True):
        assert cell.tolist() == np.flatnonzero(mask).tolist()
    assert found.size == wide.height
    rules = {mode.rule: mode.meaning for mode in two.report.modes}
    assert rules
    for rule, meaning in rules.items():
        inside = Rule.parse(rule).holds(wide).to_numpy()
        row = next(one for one in found.rules if meaning in one.name)
        only = ~a & b
        assert (row.inside, row.n_inside) == (int((only & inside).sum()), int(inside.sum()))
        assert (row.outside, row.n_outside) == (int((only & ~inside).sum()), int((~inside).sum()))
    lifts = [row.lift for row in found.rules]
    assert lifts == sorted(lifts, reverse=True)
    rows = find_unit_rows(two.rows, found.cells[1], "beta")
    assert two.rows.frame["model"][rows].unique().to_list() == ["beta"]
    assert two.rows.frame["id"][rows].to_list() == wide["id"].gather(found.cells[1]).to_list()
    with pytest.raises(InputError, match="there is no model 'gamma'"):
        compare_models(two.index, two.report, "alpha", "gamma")


def test_rules_count_the_cell_that_is_shown(two: OpenedReport) -> None:
    assert two.report is not None
    back = compare_models(two.index, two.report, "beta", "alpha")
    rules = compare_models(two.index, two.report, "alpha", "beta", 2).rules
    assert rules == back.rules
    page = unescape(visit(two).get("/compare", params={"cell": 2}).text)
    assert "Rules by how often only alpha fails" in page


def test_a_comparison_shows_what_changed(tmp_path: Path) -> None:
    rows = [
        {"id": f"e{i:03}", "model": model, "lang": "de" if i % 2 else "en", "error": int(wrong)}
        for i in range(120)
        for model, wrong in (("old", i % 2), ("new", i % 10 == 0))
    ]
    table = pl.DataFrame(rows)
    table.write_parquet(tmp_path / "answers.parquet")
    evidence = Evidence.from_table(
        tmp_path / "answers.parquet", id="id", outcome="error", model="model"
    )
    candidates = [Candidate("german", "lang = 'de'")]
    report = audit(evidence, None, candidates, compare=("old", "new"), ledger=None)
    report.write(tmp_path / "report")
    bench = OpenedReport.of_report(tmp_path / "report", ledger=False)
    bench.apart = False
    client = visit(bench)
    assert bench.index.measure_change("lang = 'de'", ("old", "new")) == (-1.0, 0.2)
    page = unescape(client.get("/examples", params={"finding": "german"}).text)
    assert "change −1.00 inside, +0.20 elsewhere" in page
    assert "Better with new" in page
    assert "Fails inside" not in page
    left, right = page.split('id="passing-head"')[0], page.split('id="passing-head"')[1]
    assert left.count('class="card"') == 8
    assert "new <span" in left
    assert 'class="card"' not in right.split('id="near-head"')[0]
    rule = unescape(client.get("/rule", params={"rule": "lang = 'en'"}).text)
    assert "From old to new the error rate changes by +0.20 inside, −1.00 elsewhere" in rule
    assert "Worse with new" in client.get("/examples", params={"rule": "lang = 'en'"}).text
    # the same words in one file, and in a terminal
    export(tmp_path / "report", "html-explorer", tmp_path / "change.html")
    rules = ExplorerFile(tmp_path / "change.html").report["rules"]
    worse, better = (rule for rule in rules if rule["kind"] == "mode")
    assert worse["sides"] == ["Worse with new", "Not worse with new", "Elsewhere"]
    assert better["sides"][0] == "Better with new"
    german = next(rule for rule in rules if rule["name"].startswith("german"))
    assert german["sides"] == ["Better with new", "Not better with new", "Elsewhere"]
    lookup = look_up_examples(tmp_path / "report", "german")
    assert "inside the rule, and better with new" in str(make_example_page(lookup, "failing"))
    assert "and not better with new" in str(make_example_page(lookup, "passing"))


def test_the_file_has_the_same_cells(two: OpenedReport, place: Path) -> None:
    assert two.report is not None
    out = place.parent / "two.html"
    export(place, "html-explorer", out)
    file = ExplorerFile(out)
    table = pl.DataFrame(
        {"unit": file.rows("units"), "model": file.columns["model"], "loss": file.rows("losses")}
    )
    wide = table.pivot("model", index="unit", values="loss", aggregate_function="mean")
    a, b = wide["alpha"] >= 0.5, wide["beta"] >= 0.5
    found = compare_models(two.index, two.report, "alpha", "beta")
    for cell, mask in zip(found.cells, (a & b, ~a & b, a & ~b, ~a & ~b), strict=True):
        assert sorted(cell.tolist()) == sorted(wide["unit"].filter(mask).to_list())


def test_the_page_lists_them(two: OpenedReport) -> None:
    assert two.report is not None
    found = compare_models(two.index, two.report, "beta", "alpha")
    client = visit(two)
    page = unescape(client.get("/compare", params={"a": "beta", "b": "alpha", "cell": 2}).text)
    assert "alpha against beta" in page
    modes = two.report.modes
    number = next(i for i, mode in enumerate(modes, 1) if mode.outcome == "beta")
    shown = client.get("/examples", params={"mode": number}).text
    assert "<dt>Other models</dt><dd>alpha fails " in shown
    for cell, name in zip(found.cells, found.names, strict=True):
        assert f"<strong>{len(cell)}</strong> {name}" in page
    assert page.count('class="sides pair"') == min(20, len(found.cells[2]))
    assert client.get("/compare", params={"a": "<b>"}).status_code == 400
    assert "<b>" not in client.get("/compare", params={"a": "<b>"}).text
    odd = client.get("/compare", params={"cell": "9", "start": "99999999999999999999"})
    assert odd.status_code == 200


def test_a_model_is_named_as_it_is_written(two: OpenedReport) -> None:
    assert two.report is not None
    outcomes = {mode.outcome for mode in two.report.modes}
    page = visit(two).get("/").text
    heads = set(re.findall("<h2>([^<]+)</h2>", page))
    assert heads == {"Every model" if one == EVERY_MODEL else one for one in outcomes}
    assert heads & {"alpha", "beta"}


def test_a_report_is_held_against_an_earlier_one(tmp_path: Path) -> None:
    table = make_results().filter(pl.col("model") == "alpha").drop("model")
    good = table.with_columns(error=(pl.int_range(pl.len()) % 9 == 0).cast(pl.Int64))
    for name, content in (("then", good), ("now", table)):
        (tmp_path / name).mkdir()
        write_report(tmp_path / name, content, id="id")
    bench = OpenedReport.of_report(
        tmp_path / "now/report", ledger=False, baseline=tmp_path / "then/report"
    )
    page = unescape(visit(bench).get("/compare").text)
    assert "met the rule." in page
    assert "Got worse: " in page
    assert "Change: more failures when" in page
    assert "could have been missed." in page
    # without a second model or report there is nothing to compare
    alone = OpenedReport.of_report(tmp_path / "now/report", ledger=False)
    assert visit(alone).get("/compare").status_code == 404
