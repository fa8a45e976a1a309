"""Two models side by side, and a report beside an earlier one."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from bench_reports import visit
from explorer_files import Explorer, ExplorerFile, make_results, unpack_masks, write_report

from groundfault import Candidate, Evidence, audit
from groundfault.auditing.report_examples import look_up_examples
from groundfault.core.rules import Rule
from groundfault.exports import export
from groundfault.modes.mode import EVERY_MODEL
from groundfault.render import words
from groundfault.render.mode_page import make_example_page
from groundfault.workbench.opened_report import OpenedReport


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("compare")
    return write_report(home, make_results(), id="id", model="model")


@pytest.fixture(scope="module")
def two(place: Path) -> OpenedReport:
    bench = OpenedReport.of_report(place, ledger=False)
    bench.apart = False
    return bench


def test_rules_to_contrast_hold_for_the_rows_of_the_table(two: OpenedReport, place: Path) -> None:
    assert two.report is not None
    client = visit(two)
    content = client.get("/data/rules").json()
    table = pl.read_parquet(place.parent / "answers.parquet").sort("id", "model")
    masks = unpack_masks(content["pool"], table.height)
    modes = {mode.rule: (mode.meaning, number) for number, mode in enumerate(two.report.modes, 1)}
    keys = [rule["key"] for rule in content["rules"]]
    assert modes
    assert len(keys) == len({str(key) for key in keys})
    for rule in content["rules"]:
        key = rule["key"]
        sql = (
            two.report.modes[key["mode"] - 1].rule
            if "mode" in key
            else next(one.rule for one in two.report.findings if one.key == key["finding"])
        )
        (mask,) = masks[rule["masks"]]
        assert mask.tolist() == Rule.parse(sql).holds(table).to_list()
    assert Explorer(client).report["models"] == ["alpha", "beta"]


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
    explorer = Explorer(client)
    assert explorer.report["pair"] == [explorer.report["models"].index(n) for n in ("old", "new")]
    told = explorer.rule(finding="german")
    assert told["sides"] == ["Better with new", "Not better with new", "Elsewhere"]
    shown = explorer.sides(finding="german")
    # what changed as it says, shown on the second model's answers
    assert len(shown["failing"]) == 60
    assert shown["passing"] == []
    first = told["first"][0]
    assert explorer.values([first], "model")["values"] == [["new"]]
    rule = unescape(client.get("/rule", params={"rule": "lang = 'en'"}).text)
    assert "From old to new the failure rate changes by +20 points inside, −100 elsewhere" in rule
    assert explorer.rule(rule="lang = 'en'")["sides"][0] == "Worse with new"
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


def test_the_file_and_the_server_have_the_same_units(two: OpenedReport, place: Path) -> None:
    out, client = place.parent / "two.html", visit(two)
    export(place, "html-explorer", out)
    file, explorer = ExplorerFile(out), Explorer(client)
    for name in ("units", "losses"):
        assert client.get(f"/data/block/{name}").text == file.blocks[name]
    column = explorer.names.index("model")
    assert client.get(f"/data/block/column-{column}").text == file.blocks[f"column-{column}"]
    assert explorer.report["columns"] == file.report["columns"]
    for number, mode in enumerate(file.report["rules"], 1):
        if mode["kind"] == "mode":
            sides = explorer.sides(mode=number)
            for name, rows in file.sides(number - 1).items():
                assert sorted(sides[name]) == sorted(file.columns["id"][row] for row in rows)


def test_a_mode_says_how_often_other_models_fail(two: OpenedReport) -> None:
    assert two.report is not None
    client = visit(two)
    modes = two.report.modes
    number = next(i for i, mode in enumerate(modes, 1) if mode.outcome == "beta")
    shown = client.get("/examples", params={"mode": number}).text
    assert "<dt>Other models</dt><dd>alpha fails " in shown
    odd = client.get("/compare", params={"first": "<b>", "cell": "9", "start": "9" * 20})
    assert odd.status_code == 200
    assert "<b>" not in odd.text


def test_a_model_is_named_as_it_is_written(two: OpenedReport) -> None:
    assert two.report is not None
    outcomes = {mode.outcome for mode in two.report.modes}
    page = visit(two).get("/").text
    heads = set(re.findall("<h2>([^<]+)</h2>", page))
    assert heads == {"The mean of all models" if one == EVERY_MODEL else one for one in outcomes}
    assert heads & {"alpha", "beta"}
    assert two.report.mode_search is not None
    for row in two.report.mode_search.matrix:
        for cell in row.cells:
            assert f'<td data-label="{cell.model}" class="number">{words.rate(cell.rate)}' in page


def test_a_report_is_held_against_an_earlier_one(tmp_path: Path) -> None:
    table = make_results().filter(pl.col("model") == "alpha").drop("model")
    good = table.with_columns(error=(pl.int_range(pl.len()) % 9 == 0).cast(pl.Int64))
    for name, content in (("then", good), ("now", table), ("few", good.head(12))):
        (tmp_path / name).mkdir()
        write_report(tmp_path / name, content, id="id")
    bench = OpenedReport.of_report(
        tmp_path / "now/report", ledger=False, baseline=tmp_path / "then/report"
    )
    page = unescape(visit(bench).get("/compare").text)
    assert "met the condition." in page
    assert "Got worse: " in page
    assert "Change: " in page
    assert "could have been missed." in page
    # a small report finds no rise, however large: the page says so
    small = OpenedReport.of_report(
        tmp_path / "few/report", ledger=False, baseline=tmp_path / "then/report"
    )
    assert "It could not have found a rise of failures" in visit(small).get("/compare").text
    # without a second model or report there is nothing to compare
    alone = OpenedReport.of_report(tmp_path / "now/report", ledger=False)
    assert visit(alone).get("/compare").status_code == 404


@pytest.mark.parametrize(("first", "second", "failing"), [("0", "x", "new"), ("x", "0", "old")])
def test_runs_of_different_examples_show_failures_of_the_worse_run(
    tmp_path: Path, first: str, second: str, failing: str
) -> None:
    rows = [
        {"id": f"{run}{i}", "run": run, "hard": i % 3 == 0, "error": i % 3 == 0 and own == "x"}
        for run, own in (("old", first), ("new", second))
        for i in range(120)
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "runs.parquet")
    evidence = Evidence.from_table(tmp_path / "runs.parquet", id="id", model="run", outcome="error")
    report = audit(evidence, compare=("old", "new"), ledger=None)
    (mode,) = report.modes
    assert {example.id[:3] for example in mode.examples()} == {failing}
    report.write(tmp_path / "report")
    bench = OpenedReport.of_report(tmp_path / "report", ledger=False)
    bench.apart = False
    explorer = Explorer(visit(bench))
    assert explorer.rule(mode="1")["sides"] == ["Fails inside", "Passes inside", "Elsewhere"]
    shown = explorer.sides(mode="1")
    assert (len(shown["failing"]), len(shown["passing"])) == (40, 0)
    assert explorer.values(explorer.rule(mode="1")["first"][:1], "run")["values"] == [[failing]]
    lookup = look_up_examples(tmp_path / "report", 1)
    assert "inside the rule, and wrong" in str(make_example_page(lookup, "failing"))


def test_runs_without_a_common_example_show_rates_and_no_change_of_pairs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"id": f"{model}{i}", "model": model, "lang": lang, "error": int(rng.random() < rate)}
        for model in ("old", "new")
        for i, lang in enumerate(["de", "en", "fr"] * 150)
        for rate in [0.7 if (lang, model) == ("de", "new") else 0.1]
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "answers.parquet")
    evidence = Evidence.from_table(
        tmp_path / "answers.parquet", id="id", outcome="error", model="model"
    )
    audit(evidence, compare=("old", "new"), ledger=None).write(tmp_path / "report")
    bench = OpenedReport.of_report(tmp_path / "report", ledger=False)
    bench.apart = False
    client = visit(bench)
    assert bench.index.measure_change("lang = 'de'", ("old", "new")) is None
    page = unescape(client.get("/examples", params={"mode": 1}).text)
    assert "new fails 105/150 (70%) inside" in page
    assert "; change" not in page
    edited = unescape(client.get("/rule", params={"rule": "lang = 'de'"}).text)
    assert "105/150" in edited
    assert "failure rate changes" not in edited
