"""What the screens show is what the audit counted, and never a held-out row."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from bench_reports import make_answers, open_bench, visit, write_bench_report
from explorer_files import Explorer
from msgspec.structs import replace as change
from starlette.testclient import TestClient

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.auditing.report import Report
from groundfault.render import words
from groundfault.render.audit_groups import main_cell
from groundfault.workbench.auth import SECRET
from groundfault.workbench.opened_report import OpenedReport
from groundfault.workbench.pages import load_templates

RULE = "lang = 'de' AND n_words >= 13"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> OpenedReport:
    return open_bench(write_bench_report(tmp_path_factory.mktemp("screens")))


def read(client: TestClient, path: str, status: int = 200, **query: object) -> str:
    answer = client.get(path, params={k: v for k, v in query.items() if v is not None})
    assert answer.status_code == status, answer.text[:500]
    return unescape(answer.text)


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


def test_a_single_equality_has_an_elsewhere_and_no_near_misses(client: TestClient) -> None:
    explorer = Explorer(client)
    assert explorer.rule(rule="lang = 'de'")["sides"][2] == "Elsewhere"
    assert explorer.rule(rule="lang = 'de'")["missed"] == {}
    assert "Near misses:" not in read(client, "/rule", rule="lang = 'de'")
    assert explorer.rule(rule="n_words > 12")["sides"][2] == "Near misses"


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


def test_behind_a_proxy_every_address_has_its_path(bench: OpenedReport) -> None:
    from groundfault.workbench.app import make_app

    app = make_app(bench)
    client = TestClient(app, base_url="http://localhost", root_path="/audits")
    page = client.get("/audits/rule", headers={SECRET: app.state.access.secret}).text
    page += client.get("/audits/examples", headers={"accept": "text/html"}).text
    addresses = re.findall(r'(?:href|src|action)="([^"#]+)', page)
    assert len(addresses) > 8
    assert all(one.startswith("/audits/") for one in addresses)


def test_a_report_without_its_evidence_still_shows_its_modes(tmp_path: Path) -> None:
    report = write_bench_report(tmp_path)
    (tmp_path / "answers.csv").unlink()
    client = visit(open_bench(report))
    assert "Failure" in read(client, "/") or "failure" in read(client, "/")
    assert "is not there" in read(client, "/examples", 400)
    assert "Examples and rows cannot be shown" in read(client, "/")


def test_evidence_may_be_in_several_places(tmp_path: Path) -> None:
    report = write_bench_report(tmp_path)
    moved = (tmp_path / "answers.csv").rename(tmp_path / "moved.csv")
    bench = OpenedReport.of_report(report, evidence=(moved,), ledger=tmp_path / "ledger.db")
    bench.apart = False
    assert len(bench.rows) > 0
    assert bench.trouble == ""
