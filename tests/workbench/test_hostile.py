"""Thirty hostile strings in every field: each is text on every page, and none is obeyed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import polars as pl
import pytest
from bench_reports import open_bench, serve_in_thread, visit
from browser_watch import Watch
from explorer_files import Explorer
from pages import Page

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.core.rules import literal, quote
from groundfault.workbench.opened_report import OpenedReport

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "'><svg onload=alert(4)>",
    "<svg><script>alert(5)</script></svg>",
    "<svg><a xlink:href='javascript:alert(6)'><text>x</text></a></svg>",
    "<iframe srcdoc='<script>alert(7)</script>'></iframe>",
    "<math><mtext><style><img src=x onerror=alert(8)></style></mtext></math>",
    "<a href='javascript:alert(9)'>x</a>",
    "javascript:alert(10)",
    "data:text/html,<script>alert(11)</script>",
    "<form action='https://evil.example'><input name=q>",
    "<base href='https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<link rel=stylesheet href='https://evil.example/x.css'>",
    "<style>*{background:url(https://evil.example)}</style>",
    "<div hx-get='https://evil.example' hx-trigger=load>",
    "<p data-hx-on:load='alert(18)'>",
    "{{ 7 * 7 }} {% raw %}",
    "${alert(20)} `${1}`",
    "--><!-- <b>",
    "]]><![CDATA[",
    "&lt;script&gt;alert(23)&lt;/script&gt;",
    "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link",
    "\u202eevil\u2066 right to left",
    '=HYPERLINK("https://evil.example","x")',
    "null\x00byte and \ufffd in a lone surrogate's place",
    "' OR 1=1 --",
    "a\u2028b\u0085c",
    "x" * 3000 + "<img src=x onerror=alert(30)>",
)
ALLOWED = set(
    "html head meta title link script body a header nav p span strong main div h1 h2 h3 ol ul li "
    "dl dt dd section article details summary svg rect code mark br form label input select "
    "option button textarea table thead tbody tr th td aside kbd fieldset legend b".split()
) - {"b"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> OpenedReport:
    place = tmp_path_factory.mktemp("hostile")
    names = [f"{text[:60]} {n}" for n, text in enumerate(HOSTILE)]
    table = pl.DataFrame(
        {
            "id": names,
            "model": [*names[:2] * 15],
            "prompt": HOSTILE,
            "answer": HOSTILE[::-1],
            names[0]: [f"{names[n % 2]}" for n in range(30)],
            names[2]: list(range(30)),
            "error": [int(n % 2 == 0) if n % 7 else 1 for n in range(30)],
        }
    )
    table.write_parquet(place / "answers.parquet")
    evidence = Evidence.from_table(
        place / "answers.parquet", id="id", outcome="error", model="model"
    )
    rule = f"{quote(names[0])} = {literal(names[0])}"
    candidates = [Candidate(names[3], rule), Candidate(names[2], f"{quote(names[2])} > 14")]
    ledger = place / "ledger.db"
    # a judge that holds nothing out, so that every string may be shown
    report = groundfault.audit(evidence, Plan(judge="holm"), candidates, ledger=ledger)
    report.write(place / "report")
    return open_bench(place / "report")


def list_addresses(bench: OpenedReport, *, every: bool) -> list[str]:
    """Pages of hostile data, and with hostile strings in every part of their address."""
    assert bench.report is not None
    client = visit(bench)
    rule, finding = bench.report.library[0].rule, bench.report.findings[0].key
    name = bench.report.library[1].columns[0]
    own = f"{rule} AND {quote(name)} > 3"
    params: list[tuple[str, dict[str, object]]] = [
        ("/", {}),
        ("/findings", {}),
        ("/examples", {"finding": finding}),
        ("/examples", {"rule": own}),
        ("/examples", {"rule": own, "side": "near"}),
        ("/rule", {"rule": own}),
        ("/holdout", {}),
        ("/ledger", {}),
        *(("/examples", {"sort": name}) for name in bench.rows.columns),
        ("/examples", {"side": "failing"}),
        *(("/examples", {"row": place}) for place in range(0, len(bench.rows), 1 if every else 9)),
    ]
    for text in HOSTILE if every else ():
        params += [("/examples", {"words": text[:500]}), ("/rule", {"rule": text[:500]})]
    for key in ("rule", "where", "filter", "sort", "words", "side", "start", "row"):
        params.append(("/examples", {key: HOSTILE[2]}))
    for path, key in (("/examples", "finding"), ("/examples", "mode")):
        params.append((path, {key: HOSTILE[2]}))
    params += [("/ledger", {"kind": HOSTILE[2]}), (HOSTILE[0], {})]
    return [
        str(client.build_request("GET", path, params=q).url.raw_path, "ascii") for path, q in params
    ]


def check_page(source: str, where: str) -> None:
    page = Page(source)
    assert page.errors == [], where
    assert {tag for tag, _ in page.tags} <= ALLOWED, where
    scripts = [one.get("src") for one in page.all("script")]
    assert scripts == [], where
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith(("on", "hx-", "data-hx")), where
            assert name != "style", where
            if name in ("href", "src", "action", "formaction"):
                parts = urlsplit(value or "")
                assert not parts.scheme, (where, value)
                assert not parts.netloc, (where, value)
    assert not set(page.text) & set("\x00\x1b\x07\u202e\u2066\ud800"), where


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_page_takes_hostile_strings_for_text(bench: OpenedReport, every: bool) -> None:
    client = visit(bench)
    statuses = set()
    for address in list_addresses(bench, every=every):
        answer = client.get(address)
        statuses.add(answer.status_code)
        check_page(answer.text, address)
    assert statuses == {200, 400, 404}


def test_hostile_strings_are_there_to_be_read(bench: OpenedReport) -> None:
    explorer = Explorer(visit(bench))
    values = explorer.values(list(range(30)), "prompt", "answer")["values"]
    for one in HOSTILE[:23]:
        assert one in values[0]
        assert one in values[1]
    assert not set(str(values)) & set("\x00\x1b\x07\u202e\u2066\ud800")


@pytest.mark.browser
def test_none_runs_in_a_browser(bench: OpenedReport, browser: Browser) -> None:
    from playwright.sync_api import expect

    with serve_in_thread(bench) as address, Watch(browser, address) as page:
        page.goto(address)
        client = visit(bench)
        for one in list_addresses(bench, every=False):
            # of what is refused the browser complains itself
            if client.get(one).status_code == 200:
                page.goto(address.split("/#")[0] + one)
                expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
                planted = page.locator("#explorer :is(script, img, svg, iframe, object, link)")
                assert planted.count() == 0
        page.goto(address.split("/#")[0] + "/examples?side=failing")
        expect(page.locator(".excerpt").first).to_be_visible()
        text = page.locator("#explorer").inner_text()
        assert [one for one in HOSTILE[:23] if " ".join(one.split()) in " ".join(text.split())]
