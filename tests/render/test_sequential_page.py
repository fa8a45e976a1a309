"""Pages of sequential audits and confirmations: the verdict, where the evidence stands, and what
was never labelled.
"""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from markdown_it import MarkdownIt
from pages import HOSTILE, SCRIPT, Page
from rich.cells import cell_len
from rich.console import Console

from groundfault.render import (
    make_outline,
    sequential_page,
    to_html as html,
    to_markdown as markdown,
)
from groundfault.render.sequential_page import make_confirmation_page, make_page
from groundfault.render.terminal import show
from groundfault.sequential import Certificate, Confirmation, Pool, SequentialAudit

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0" / "sequential"


def hostile_certificate(labels: int = 30, **settings: object) -> Certificate:
    """An audit of cases and groups whose every name means mischief; one score is missing."""
    names = [f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(120)]
    topics = np.array(HOSTILE)[np.arange(120) % len(HOSTILE)]
    pool = Pool.from_arrays(names, {SCRIPT: topics}, **settings)
    audit = SequentialAudit(
        pool, threshold=0.8, burn_in=20, policy="stratified", budget=labels, seed=1
    )
    while (query := audit.ask()) is not None:
        audit.tell(query, None if query.step == 2 else 1.0)
    return audit.certificate()


@pytest.fixture(scope="module")
def hostile() -> Certificate:
    return hostile_certificate()


@pytest.fixture(scope="module")
def stored() -> Certificate:
    return Certificate.load(STORED / "certificate.json")


@pytest.fixture(scope="module")
def confirmation() -> Confirmation:
    return Confirmation.load(STORED / "confirm.json")


def show_in_terminal(result: Certificate | Confirmation, width: int = 80) -> str:
    out = io.StringIO()
    show(make_outline(result), Console(file=out, width=width, force_terminal=False))
    return out.getvalue()


def test_the_page_says_the_verdict_its_grounds_and_what_was_not_labelled(
    stored: Certificate,
) -> None:
    text = Page(html(stored)).text
    assert "Failure mode found" in text
    assert "domain=tables is below 0.85 whatever its other cases would score" in text
    assert "88 of 100 cases were never labelled" in text
    assert "Groups without a label: domain=dates, domain=names, domain=sums" in text
    assert "the e-value against it is infinite (counted)" in text
    assert stored.seal in text


def test_html_is_well_formed_and_loads_nothing(hostile: Certificate) -> None:
    page = Page(html(hostile))
    assert page.errors == []
    assert page.all("script", "iframe", "object") == []
    sources = [a.get(key) or "" for _, a in page.tags for key in ("src", "href")]
    assert all(not source or source.startswith("#") for source in sources)


def test_names_from_data_are_text_wherever_they_stand(hostile: Certificate) -> None:
    page = Page(html(hostile))
    assert SCRIPT in page.text
    assert page.all("img") == []
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(markdown(hostile))
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inline)}
    assert not kinds & {"html_block", "html_inline", "link_open", "image"}
    for forbidden in ("\x1b", "\u202e"):
        for text in (html(hostile), markdown(hostile), show_in_terminal(hostile)):
            assert forbidden not in text


def test_the_path_of_the_evidence_is_drawn(stored: Certificate) -> None:
    figures = [
        figure
        for section in make_page(stored).sections
        for block in section.content
        for figure in getattr(block, "figures", ())
    ]
    assert [figure.name for figure in figures] == ["wealth"]
    drawing = ElementTree.fromstring(figures[0].svg)
    assert drawing.tag.endswith("svg")
    assert "12 labels" in figures[0].alt
    assert not any("svg" in tag for tag, _ in Page(markdown(stored)).tags)


def test_an_audit_without_a_label_has_a_page_without_a_figure() -> None:
    pool = Pool.from_arrays(["a", "b"], {"topic": ["x", "y"]})
    certificate = SequentialAudit(pool, threshold=0.5, policy="uniform").certificate()
    page = make_page(certificate)
    assert [section.title for section in page.sections] == [
        "Groups", "What was never labelled", "Manifest",
    ]  # fmt: skip
    assert page.title == "arrays"
    assert "2 of 2 cases were never labelled" in markdown(certificate)


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_it_without_long_lines(hostile: Certificate, width: int) -> None:
    text = show_in_terminal(hostile, width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "Every label" not in text
    assert "Mean can be" in text or "Mean can" in " ".join(text.split())


def test_a_case_without_a_score_is_marked(hostile: Certificate) -> None:
    table = next(
        block
        for section in make_page(hostile).sections
        if section.title == "Every label"
        for block in section.content
    )
    rows = getattr(table, "rows", ())
    assert [row[3] for row in rows][:3] == ["1", "–", "1"]
    assert "Unscored" in markdown(hostile)


def test_of_very_many_labels_the_first_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequential_page, "MAX_LABELS", 50)
    pool = Pool.from_arrays(range(70), {"topic": ["x"] * 70})
    audit = SequentialAudit(pool, threshold=0.5, alpha=1e-300, burn_in=65, policy="uniform")
    while (query := audit.ask()) is not None and query.step <= 53:
        audit.tell(query, float(query.step % 2))
    text = markdown(audit.certificate())
    assert "The last 3 are in the certificate" in text


def test_where_the_error_rate_is_unknown_the_page_says_so() -> None:
    pool = Pool.from_arrays(range(40), {"topic": ["x", "y"] * 20})
    audit = SequentialAudit(
        pool, threshold=0.8, policy="uniform", sampling="paper", budget=3, warm_up=0
    )
    audit.run(lambda _: 1.0)
    text = markdown(audit.certificate())
    assert "no bound on the error rate is known" in text
    assert "the audit may stop at any time" not in text


def test_a_confirmation_has_a_page(confirmation: Confirmation) -> None:
    page = Page(html(confirmation))
    assert page.errors == []
    assert "1 confirmed finding" in page.text
    assert "German" in page.text
    assert "Holdout opened 1 time." in page.text
    assert "Alpha 10%" in show_in_terminal(confirmation)
    assert max(map(cell_len, show_in_terminal(confirmation).splitlines())) <= 80


def test_a_confirmation_without_survivors_says_that_no_label_is_worth_buying(
    confirmation: Confirmation,
) -> None:
    data = confirmation.to_dict() | {"survivors": [], "confirmed": [], "opening": None}
    page = make_confirmation_page(Confirmation.from_dict(data))
    assert page.verdict == "No reportable finding"
    assert not page.good
    assert [section.title for section in page.sections] == ["Survivors of the screen", "Manifest"]
    text = markdown(Confirmation.from_dict(data))
    assert "no label is worth buying" in text


def test_results_write_their_pages(
    stored: Certificate, confirmation: Confirmation, tmp_path: Path
) -> None:
    for result in (stored, confirmation):
        assert result.to_html(tmp_path / "page.html") == (tmp_path / "page.html").read_text()
        assert result.to_markdown(tmp_path / "page.md") == (tmp_path / "page.md").read_text()
        assert result.to_markdown().startswith("# ")
