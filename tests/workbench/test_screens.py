"""What the screens show is what the audit counted, and never a held-out row."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from bench_reports import make_answers, open_bench, visit, write_bench_report
from msgspec.structs import replace as change
from starlette.testclient import TestClient

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.auditing.report import Report
from groundfault.base.holdout_events import TRIED
from groundfault.core.rules import Rule
from groundfault.render import words
from groundfault.render.audit_groups import main_cell
from groundfault.workbench.auth import SECRET
from groundfault.workbench.opened_report import OpenedReport
from groundfault.workbench.pages import load_templates
from groundfault.workbench.row_index import PAGE, RowQuery
from groundfault.workbench.rows import load_apart

RULE = "lang = 'de' AND n_words >= 13"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> OpenedReport:
    return open_bench(write_bench_report(tmp_path_factory.mktemp("screens")))


def read(client: TestClient, path: str, status: int = 200, **query: object) -> str:
    answer = client.get(path, params={k: v for k, v in query.items() if v is not None})
    assert answer.status_code == status, answer.text[:500]
    return unescape(answer.text)


def list_ids(page: str) -> list[str]:
    return re.findall(r"<code>(e\d{3})</code></a>", page)


def discovery_of(bench: OpenedReport) -> pl.DataFrame:
    return make_answers().filter(pl.col("id").is_in(bench.rows.frame["id"].implode()))


def test_no_line_of_a_hint_ends_inside_an_option() -> None:
    template = load_templates().from_string("{{ hint | keep_options }}")
    text = template.render(hint="copies count as one; --group <b>id</b>")
    assert text == 'copies count as one; <span class="option">--group</span> &lt;b&gt;id&lt;/b&gt;'
    templates = Path(groundfault.__file__).parent / "workbench" / "templates"
    assert "words.capital(hint) | keep_options" in (templates / "modes.html.j2").read_text()


def test_the_first_screen_has_every_mode_and_what_was_not_said(
    client: TestClient, bench: OpenedReport
) -> None:
    report, page = bench.report, read(client, "/")
    assert report is not None
    assert report.modes
    for mode in report.modes:
        assert mode.meaning in page
    assert "Opened 1×" in page
    assert report.conclusion in page
    assert 'href="/examples?mode=1"' in page


def test_findings_are_listed_filtered_and_ordered(client: TestClient, bench: OpenedReport) -> None:
    page = read(client, "/findings")
    assert "german" in page
    assert bench.report is not None
    intervals = {words.interval(main_cell(finding)) for finding in bench.report.findings}
    assert all(interval in page for interval in intervals)
    assert "german" not in read(client, "/findings", verdict="untestable")
    page = read(client, "/findings", q="LONG", sort="p")
    assert "n_words > 12" in page
    assert "german" not in page


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """A report with candidates about answers, by a finder and by hand."""
    folder = tmp_path_factory.mktemp("measured")
    cut = (pl.col("lang") == "de") & (pl.col("n_words") > 13)
    table = make_answers().with_columns(
        finish_reason=pl.when(cut).then(pl.lit("length")).otherwise(pl.lit("stop")),
        template=pl.Series(["chat" if i % 3 else "plain" for i in range(200)]),
    )
    table.write_csv(folder / "answers.csv")
    evidence = Evidence.from_table(
        folder / "answers.csv", id="id", outcome="error", instrument=["template"]
    )
    candidates = [
        Candidate("german", "lang = 'de'"),
        Candidate("cut off", "finish_reason = 'length'"),
        Candidate("odd", "prompt LIKE '%7%'", source="instrument"),
        Candidate("plain template", "template = 'plain' AND n_words > 12"),
        Candidate("long", "n_words > 12"),
    ]
    report = groundfault.audit(evidence, Plan(judge="janus"), candidates, ledger=folder / "l.db")
    report.write(folder / "report")
    return visit(replace(open_bench(folder / "report"), ledger=None))


def test_findings_about_the_instrument_come_first_or_alone(measured: TestClient) -> None:
    assert "3 about the instrument" in read(measured, "/")
    assert "instrument=first" in read(measured, "/")

    def names(**query: str) -> list[str]:
        page = read(measured, "/findings", sort="name", **query)
        return re.findall(r'data-open href="[^"]+">([^<]+)</a>', page)

    about, others = ["cut off", "odd", "plain template"], ["german", "long"]
    assert names() == sorted((*about, *others))
    assert names(instrument="first") == [*about, *others]
    assert names(instrument="only") == about
    assert names(instrument="out") == others
    assert names(instrument="only", q="cut") == about[:1]
    assert read(measured, "/findings").count('class="tag">instrument<') == 3


def test_a_report_without_findings_about_the_instrument_names_none(client: TestClient) -> None:
    assert "about the instrument" not in read(client, "/")


def test_counts_are_those_of_the_audit(client: TestClient, bench: OpenedReport) -> None:
    assert bench.report is not None
    for finding in bench.report.findings:
        cell = bench.index.count(finding.rule)[""]
        seen = finding.discovery
        assert (cell.on, cell.on_errors, cell.off, cell.off_errors, cell.lift) == (
            seen.on,
            seen.on_errors,
            seen.off,
            seen.off_errors,
            seen.lift,
        )
        for path in ("/rule", "/examples"):
            page = read(client, path, rule=finding.rule)
            assert words.share(seen, "on") in page
            assert words.share(seen, "off") in page


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("failing", "({rule}) AND error = 1"),
        ("passing", "({rule}) AND error = 0"),
        ("inside", "{rule}"),
        ("all", "error >= 0"),
    ],
)
def test_each_view_lists_the_rows_that_the_rule_holds_for(
    client: TestClient, bench: OpenedReport, view: str, expected: str
) -> None:
    table = discovery_of(bench)
    ids = table.filter(Rule.parse(expected.format(rule=RULE)).holds(table))["id"].to_list()
    pages = [read(client, "/rows", rule=RULE, view=view, start=n) for n in range(0, 120, PAGE)]
    first, second = map(list_ids, pages)
    assert first + (second if len(ids) > PAGE else []) == ids
    assert f"of {len(ids)}" in pages[0]


def test_no_page_shows_a_held_out_row(client: TestClient, bench: OpenedReport) -> None:
    table = make_answers()
    held_out = set(table["id"]) - set(bench.rows.frame["id"])
    assert len(held_out) == 100
    paths = ["/", "/findings", "/rule", "/holdout", "/ledger", "/rows", f"/examples?rule={RULE}"]
    for path in [*paths, "/examples?mode=1"]:
        assert not held_out & set(re.findall(r"\be\d{3}\b", client.get(path).text)), path
    one = min(held_out)
    assert f"no example '{one}'" in read(client, "/row", 400, id=one)
    assert "No row is like that" in read(client, "/rows", where=f"id = '{one}'")
    assert "No row is like that" in read(client, "/rows", q=f"Question {int(one[1:])}:")


@pytest.mark.slow
def test_numbers_are_verified_in_a_process_of_their_own(bench: OpenedReport) -> None:
    assert replace(bench, apart=True).verify().reproduces


@pytest.mark.slow
def test_the_rows_are_the_same_when_they_are_read_apart(bench: OpenedReport) -> None:
    assert bench.report is not None
    rows = load_apart(bench.report, bench.place)
    assert rows.total == bench.rows.total
    assert rows.frame.equals(bench.rows.frame)
    assert rows.evidence.loss.equals(bench.rows.evidence.loss)


def test_near_misses_stand_beside_with_the_condition_that_fails(
    client: TestClient, bench: OpenedReport
) -> None:
    page = read(client, "/examples", rule=RULE)
    near = page[page.index('id="near-head"') :]
    assert 'Not: "n_words" >= 13, missed by 1' in near
    assert "Not: \"lang\" = 'de'<" in near
    table = discovery_of(bench)
    ids = set(list_ids(near))
    hits = table.filter(pl.col("id").is_in(list(ids)))
    assert ids
    assert ((hits["lang"] == "de") != (hits["n_words"] >= 13)).all()
    # a mode says its conditions in words
    assert bench.report is not None
    page = read(client, "/examples", mode=1)
    for condition in bench.report.modes[0].conditions:
        assert f"Not: {condition}" in page


def test_examples_of_both_sides_are_inside(client: TestClient, bench: OpenedReport) -> None:
    page = read(client, "/examples", rule=RULE)
    failing, passing = page.split('id="passing-head"')
    table = discovery_of(bench)
    for part, error in ((failing, 1), (passing.split('id="near-head"')[0], 0)):
        rows = table.filter(pl.col("id").is_in(list_ids(part)))
        assert rows.height >= 2
        assert Rule.parse(RULE).holds(rows).all()
        assert (rows["error"] == error).all()


def test_what_a_rule_reads_is_highlighted(client: TestClient) -> None:
    page = read(client, "/rows", rule=r"prompt ~ '\btimes\b' AND n_words > 12", q="FIRST")
    assert "<mark>times</mark>" in page
    assert "<mark>13</mark>" in page
    assert "Think <mark>first</mark>." in page
    assert "<br>" in page


def test_filters_searches_and_orders_agree_with_the_table(
    client: TestClient, bench: OpenedReport
) -> None:
    table = discovery_of(bench)
    page = read(client, "/rows", where="n_words = 15", q="it IS 1", sort="-target")
    some = table.filter((pl.col("n_words") == 15) & pl.col("answer").str.contains("It is 1"))
    order = some.sort(pl.col("target").cast(pl.Int64), descending=True)
    assert list_ids(page)[0] == order["id"][0]
    assert set(list_ids(page)) == set(some["id"])


def test_filters_are_tried_rules_and_searches_are_none(tmp_path: Path) -> None:
    bench = open_bench(write_bench_report(tmp_path))
    client = visit(bench)
    assert bench.ledger is not None
    read(client, "/rows", q="Question 1", view="failing")
    read(client, "/row", at=0)
    assert bench.ledger.events(TRIED) == []
    for _ in range(2):
        page = read(client, "/rows", where="n_words = 15")
        assert "needs fresh data" in page
    read(client, "/rows", where="n_words = 15", rule="lang = 'de'", view="passing")
    # a rule of the report is no try, and a filter beside it is one
    first, second = bench.ledger.events(TRIED)
    assert first.body["rule"] == Rule.parse("(n_words = 15)").sql
    assert second.body["rule"] == Rule.parse("(lang = 'de') AND (n_words = 15)").sql
    frame, fails = bench.rows.frame, bench.rows.fails
    inside = (frame["n_words"] == 15).to_numpy()
    counts = [inside.sum(), fails[inside].sum(), (~inside).sum(), fails[~inside].sum()]
    assert first.body["counts"][""] == counts
    assert "2 rules tried" in read(client, "/rule")


def test_columns_are_described_in_plain_words(client: TestClient) -> None:
    page = read(client, "/rule")
    assert re.search(r"<code>n_words</code> <span[^>]*>whole numbers<", page)
    assert re.search(r"<code>prompt</code> <span[^>]*>text<", page)


def test_a_click_on_a_value_filters_by_it(client: TestClient, bench: OpenedReport) -> None:
    page = read(client, "/rows", column="lang")
    link = next(one for one in re.findall(r'href="([^"]+)"', page) if "+%3D+%27de%27" in one)
    german = discovery_of(bench).filter(pl.col("lang") == "de")
    assert f"of {german.height}" in unescape(client.get(link).text)


@pytest.mark.parametrize("name", ["id", "lang", "n_words", "prompt", "error"])
def test_every_column_has_values_to_filter_by_that_hold_for_as_many(
    bench: OpenedReport, name: str
) -> None:
    from groundfault.workbench.row_index import summarise_column

    summary = summarise_column(bench.index, RowQuery(), name)
    assert summary.values
    for one in summary.values:
        assert len(bench.index.select(RowQuery(where=(one.where,)))) == one.count


@pytest.mark.parametrize("values", [[0.5, 1.25, 3.0], list(range(100)), [1e300, -1e300, 0.0]])
def test_ranges_of_numbers_hold_for_as_many_as_they_say(values: list[float]) -> None:
    from groundfault.workbench.row_index import _count_ranges

    column = pl.Series("x", values * 3)
    ranges = _count_ranges("x", column)
    table = column.to_frame()
    assert sum(one.count for one in ranges) == len(column)
    for one in ranges:
        assert Rule.parse(one.where).holds(table).sum() == one.count


@pytest.mark.parametrize(
    ("path", "query", "message"),
    [
        ("/rows", {"rule": "nothing = 1"}, "'nothing'"),
        ("/rows", {"where": "n_words >"}, "not SQL"),
        ("/rows", {"sort": "nothing"}, "no column 'nothing'"),
        ("/rows", {"column": "nothing"}, "no column 'nothing'"),
        ("/rows", {"view": "other"}, "no view 'other'"),
        ("/rows", {"start": "-1"}, "not '-1'"),
        ("/examples", {"mode": "99"}, "no mode 99"),
        ("/examples", {"finding": "nobody"}, "no finding 'nobody'"),
        ("/row", {"id": "e999"}, "no example 'e999'"),
    ],
)
def test_what_cannot_be_shown_is_said(
    client: TestClient, path: str, query: dict[str, str], message: str
) -> None:
    page = read(client, path, 400, **query)
    assert message in page
    assert 'role="alert"' in page


@pytest.mark.parametrize(
    ("rule", "message"),
    [("lang", "not true or false"), ("(SELECT 1) = 1", "may not"), ("nothing = 1", "'nothing'")],
)
def test_a_rule_that_cannot_be_counted_stays_in_its_box(
    client: TestClient, rule: str, message: str
) -> None:
    page = read(client, "/rule", rule=rule)
    assert message in page[page.index('role="alert"') :]
    assert f">{rule}</textarea>" in page


@pytest.mark.parametrize(
    ("query", "message"),
    [({"rule": "lang = de"}, "'de'"), ({"where": "n_words >", "rule": RULE}, "not SQL")],
)
def test_what_cannot_be_selected_stays_in_its_boxes(
    client: TestClient, query: dict[str, str], message: str
) -> None:
    page = read(client, "/rows", 400, **query)
    assert message in page[page.index('role="alert"') :]
    assert f'value="{query["rule"]}"' in page
    assert "where" not in query or f"<code>{query['where']}</code>" in page


def test_a_search_stays_in_its_view_and_a_filter_comes_once(client: TestClient) -> None:
    assert '<input type="hidden" name="view" value="failing">' in read(
        client, "/rows", view="failing"
    )
    condition = "\"lang\" = 'de'"
    page = read(client, "/rows", where=condition, column="lang")
    once = "where=%22lang%22+%3D+%27de%27"
    assert once in page
    assert f"{once}&{once}" not in page


def test_a_single_equality_has_an_elsewhere_and_no_near_misses(client: TestClient) -> None:
    page = read(client, "/examples", rule="lang = 'de'")
    assert '<h2 id="near-head">Elsewhere' in page
    assert "Misses " not in page
    assert "Near misses:" not in read(client, "/rule", rule="lang = 'de'")
    assert '<h2 id="near-head">Near misses' in read(client, "/examples", rule="n_words > 12")


def test_parts_that_fail_differently_are_named(bench: OpenedReport) -> None:
    assert bench.report is not None
    data = change(bench.report.data, parts="Parts differ.")
    client = visit(replace(bench, report=Report.of(data, bench.report.library)))
    assert "<p>Parts differ.</p>" in read(client, "/")
    assert "<span>1 of " in read(client, "/examples", mode=1)


def test_sentences_end_once_and_keys_have_titles(client: TestClient) -> None:
    assert ".." not in re.sub(r"<[^>]+>", "", read(client, "/"))
    keys = read(client, "/keys")
    assert "<h2>Examples</h2>" in keys
    assert "<kbd>L</kbd></dt><dd>Ledger</dd>" in keys
    assert 'data-key="L"' in read(client, "/")


def test_neighbours_in_a_list_lead_from_row_to_row(client: TestClient) -> None:
    page = read(client, "/rows", rule=RULE, view="inside")
    ids = list_ids(page)
    middle = read(client, "/row", at=1, rule=RULE, view="inside")
    assert f"<h1>{ids[1]}" in middle
    following = re.search(r'href="([^"]+)" data-key="n"', middle)
    assert following is not None
    assert f"<h1>{ids[2]}" in unescape(client.get(following[1]).text)


def test_behind_a_proxy_every_address_has_its_path(bench: OpenedReport) -> None:
    from groundfault.workbench.app import make_app

    app = make_app(bench)
    client = TestClient(app, base_url="http://localhost", root_path="/audits")
    page = client.get("/audits/rule", headers={SECRET: app.state.access.secret}).text
    page += client.get("/audits/rows", headers={"accept": "text/html"}).text
    addresses = re.findall(r'(?:href|src|action)="([^"#]+)', page)
    assert len(addresses) > 8
    assert all(one.startswith("/audits/") for one in addresses)


def test_the_last_selections_are_remembered_and_the_first_forgotten(bench: OpenedReport) -> None:
    index = bench.index
    query = RowQuery(where=("n_words = 11",))
    assert index.select(query) is index.select(query)
    for number in range(40):
        index.select(RowQuery(text=f"no such {number}"))
    assert index._places.cache_info().currsize == 8
    assert index._matches.cache_info().currsize == 6


def test_a_report_without_its_evidence_still_shows_its_modes(tmp_path: Path) -> None:
    report = write_bench_report(tmp_path)
    (tmp_path / "answers.csv").unlink()
    client = visit(open_bench(report))
    assert "Failure" in read(client, "/") or "failure" in read(client, "/")
    assert "is not there" in read(client, "/rows", 400)
    assert "Examples and rows cannot be shown" in read(client, "/")


def test_evidence_may_be_in_several_places(tmp_path: Path) -> None:
    report = write_bench_report(tmp_path)
    moved = (tmp_path / "answers.csv").rename(tmp_path / "moved.csv")
    bench = OpenedReport.of_report(report, evidence=(moved,), ledger=tmp_path / "ledger.db")
    bench.apart = False
    assert len(bench.rows) > 0
    assert bench.trouble == ""
