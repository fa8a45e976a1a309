"""What a notebook shows: a compact page without a script, and a short line where it is text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

import groundfault
from groundfault import Evidence, Report
from groundfault.errors import InputError

LOG = Path(__file__).parents[1] / "fixtures/logs/inspect_0.3.285_base.eval"
NASTY = "<script>alert(1)</script>"


class Tags(HTMLParser):
    """The tags of a page, each closed, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name == "src" for name, _ in attrs)
        if tag not in ("br", "meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    rows = [
        {"id": f"q{i}", "lang": NASTY if i % 3 else "en", "error": int(i % 7 < 5 * (i % 3 > 0))}
        for i in range(160)
    ]
    return Evidence.from_table(pl.DataFrame(rows), id="id", outcome="error")


@pytest.fixture(scope="module")
def report(evidence: Evidence) -> Report:
    return groundfault.audit(evidence, ledger=False, modes=False)


def unframe(frame: str) -> str:
    """The document in a frame that lets it do nothing."""
    settings: dict[str, str | None] = {}

    class Frame(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag == "iframe"
            settings.update(attrs)

    Frame().feed(frame)
    # an empty list of exceptions: no script, no form, no window, an origin of its own
    assert "sandbox" in settings
    assert not settings["sandbox"]
    assert settings["title"].startswith("groundfault ")
    return str(settings["srcdoc"])


def check(frame: str) -> str:
    page = unframe(frame)
    assert "default-src 'none'" in page
    page = page.split("<body>")[1].split("</body>")[0].strip()
    parsed = Tags(page)
    assert not parsed.open
    assert parsed.tags[0] == "div"
    assert not {"script", "iframe", "link", "html", "body"} & set(parsed.tags)
    # styles are of the page's own, and reach nothing else of the notebook
    style = page.split("<style>")[1].split("</style>")[0]
    selectors = [one for rule in re.findall(r"([^{}]+)\{", style) for one in rule.split(",")]
    assert all(selector.strip().startswith(".groundfault") for selector in selectors)
    assert "url(" not in style
    return " ".join("".join(parsed.words).split())


def test_a_report_is_its_first_screen(report: Report) -> None:
    words = check(report._repr_html_())
    assert "No reportable finding" in words
    assert "Failure rate 48%" in words
    assert len(report._repr_html_()) < 20_000
    assert repr(report).startswith("<Report: ")


def test_a_finding_is_its_sentence_and_its_counts(report: Report) -> None:
    (finding,) = report.confirmed
    words = check(finding._repr_html_())
    assert "confirmed" in words
    assert "failures are less frequent when lang is en (0 of 54 that match, 77 of 106 " in words
    assert repr(finding) == "<Finding: lang = en, confirmed, 0% of 54 against 73% of 106>"
    assert len(repr(finding)) < 120


def test_evidence_says_what_it_has(evidence: Evidence) -> None:
    words = check(evidence._repr_html_())
    assert "Describes examples: lang" in words
    assert repr(evidence) == "<Evidence: 160 examples, 160 rows, failure rate 48%>"
    logs = Evidence.from_logs(LOG)
    assert "scored by 'match' (beside it: 'includes')" in check(logs._repr_html_())
    assert repr(logs) == "<Evidence: 80 examples, 80 rows, failure rate 42%>"


def test_a_report_with_modes_draws_their_bars(evidence: Evidence) -> None:
    page = groundfault.audit(evidence, finders=["categories"], ledger=False)._repr_html_()
    check(page)
    assert 'class="bar"' in unframe(page)


def test_a_mode_is_its_rule_and_its_rates_and_a_rule_alone_is_no_candidate() -> None:
    rows = {"lang": ["de", "en"] * 60, "error": [1, 0, 1, 0, 0, 0] * 20}
    evidence = Evidence.from_table(pl.DataFrame(rows), outcome="error")
    (mode,) = groundfault.audit(evidence, ledger=False).modes
    assert repr(mode) == "<Mode: lang is de, 67% of 60, elsewhere 0%>"
    with pytest.raises(InputError, match="a candidate is a Candidate"):
        groundfault.audit(evidence, candidates=["lang = 'de'"], ledger=False)  # type: ignore[list-item]
