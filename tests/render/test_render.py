"""Renderings: they say what the report says, load nothing, and never take text from data for
markup.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt
from msgspec import structs
from pages import HOSTILE, IMAGE, MARKDOWN, SCRIPT, TERMINAL, Page
from rich.cells import cell_len
from rich.console import Console

import groundfault
from groundfault import Candidate, Evidence, Finding, Plan, Report, Verdict
from groundfault.auditing.report_schema import to_plain
from groundfault.render import to_html as html, to_markdown as markdown, words
from groundfault.render.audit_figures import MAX_POINTS, figures
from groundfault.render.audit_groups import distinct
from groundfault.render.audit_page import MAX_ROWS, make_summary
from groundfault.render.audit_tables import write_estimate
from groundfault.render.audit_words import Outline
from groundfault.render.markdown import code, escape
from groundfault.render.preview_pages import make_check_page
from groundfault.render.terminal import show


def hostile_report(tmp: Path, **plan: object) -> Report:
    """Planted evidence whose every text means mischief, audited for the second time."""
    rng = np.random.default_rng(1)
    n = 400
    columns = {f"c{i}": rng.random(n) < 0.4 for i in range(12)}
    columns["c1"] = columns["c0"] ^ (rng.random(n) < 0.03)
    columns["c2"] = ~columns["c0"]
    columns["c11"] = np.arange(n) < 3
    failed = rng.random(n) < 0.1 + 0.45 * columns["c0"] + 0.35 * columns["c3"]
    scored = np.arange(n) % 40 != 0
    frame = pl.DataFrame(
        {
            "id": [f"{SCRIPT}{i}" for i in range(n)],
            "error": np.where(scored, failed, False),
            "status": np.where(scored, "scored", "refused"),
            **columns,
        }
    ).with_columns(error=pl.when(pl.col("status") == "scored").then(pl.col("error")))
    evidence = Evidence.from_table(frame, id="id", outcome="error", status="status")
    names = [*HOSTILE, *(f"harmless {i}" for i in range(8))]
    candidates = [
        Candidate(name, column, meaning=f"it says {name}", source=IMAGE)
        for name, column in zip(names, columns, strict=True)
    ]
    ledger = tmp / "ledger.sqlite"
    groundfault.audit(evidence, Plan(judge="janus"), candidates[:5], ledger=ledger, modes=False)
    return groundfault.audit(
        evidence,
        Plan(**{"judge": "janus", **plan}),
        candidates,
        ledger=ledger,
        reopen=f"lost it {SCRIPT}",
        robustness=5,
        modes=False,
    )


def plain_report(n: int = 300, lift: float = 0.0, models: int = 1, **plan: object) -> Report:
    rng = np.random.default_rng(3)
    columns = {f"f{i}": rng.random(n) < 0.4 for i in range(10)}
    frames = []
    for model in range(models):
        failed = rng.random(n) < 0.3 + lift * columns["f0"]
        frames.append(
            pl.DataFrame({"id": np.arange(n), "model": f"m{model}", "error": failed, **columns})
        )
    role = {"model": "model"} if models > 1 else {"ignore": ["model"]}
    evidence = Evidence.from_table(pl.concat(frames), id="id", outcome="error", **role)
    settings = {"judge": "janus", **plan}
    candidates = [Candidate(c, c) for c in columns]
    return groundfault.audit(evidence, Plan(**settings), candidates, modes=False)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return hostile_report(tmp_path_factory.mktemp("ledger"))


@pytest.fixture(scope="module")
def nothing() -> Report:
    return plain_report()


@pytest.fixture(scope="module")
def several() -> Report:
    return plain_report(lift=0.4, models=2)


@pytest.fixture(scope="module", params=["hostile", "nothing", "several"])
def page(request: pytest.FixtureRequest) -> Page:
    return Page(html(request.getfixturevalue(request.param)))


def test_page_is_well_formed(page: Page) -> None:
    assert page.errors == []


def test_page_loads_nothing_and_runs_nothing(page: Page) -> None:
    forbidden = (
        "script",
        "link",
        "img",
        "image",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
        "foreignobject",
        "use",
    )
    assert page.all(*forbidden) == []
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "srcset", "action", "xlink:href", "data", "poster"), (
                tag,
                name,
            )
            assert name != "href" or (value or "").startswith("#"), (tag, value)
            if name == "style":
                assert re.fullmatch(r"(--[a-z]+:\d+;?)+", value or ""), (tag, value)
    policy = [
        a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policy) == 1
    assert "default-src 'none'" in (policy[0] or "")


@pytest.mark.parametrize("name", ["hostile", "nothing", "several"])
def test_page_source_names_no_address(name: str, request: pytest.FixtureRequest) -> None:
    source = html(request.getfixturevalue(name)).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert source.startswith("<!doctype html>\n")
    assert not re.search(
        r"""(src|href)\s*=\s*["']?\s*(https?:)?//|url\(|@import|<script|javascript:""", source, re.I
    )
    if name != "hostile":
        assert not re.search(r"https?://", source)


def test_page_is_accessible(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for name in ("aria-labelledby", "for"):
            assert attributes.get(name) is None or attributes[name] in ids
    assert {a["href"] for a in page.all("a")} <= {f"#{i}" for i in ids}
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("caption")) == len(page.all("table"))
    for drawing in page.all("svg"):
        assert drawing["role"] == "img"
        assert len(drawing["aria-label"] or "") > 20
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_page_shows_hostile_text_as_text(hostile: Report) -> None:
    page = Page(html(hostile))
    confirmed = [f.name for f in hostile.confirmed]
    assert {SCRIPT, IMAGE, MARKDOWN, TERMINAL} <= set(confirmed)
    for name in HOSTILE:
        assert " ".join(words.clean(name).split()) in page.text
    assert f"it says {SCRIPT}" in page.text
    assert f"lost it {SCRIPT}" in page.text
    assert hostile.examples[SCRIPT][0] in page.text
    assert not set("\x1b\u202e") & set(page.text)


def test_figures_hold_hostile_text_as_text(hostile: Report) -> None:
    drawn = {figure.name: figure for figure in figures(hostile)}
    assert list(drawn) == ["shrinkage", "floor", "slices"]
    for figure in drawn.values():
        root = ElementTree.fromstring(figure.svg)
        names = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert names <= {"svg", "g", "path", "line", "rect", "text", "tspan"}
        attributes = {name.rpartition("}")[2] for element in root.iter() for name in element.attrib}
        assert not {a for a in attributes if a.startswith("on") or a in ("href", "src", "style")}
        assert root.attrib["aria-label"] == figure.alt
        assert all(
            "Arial" in e.attrib["font-family"] for e in root.iter() if "font-family" in e.attrib
        )
    texts = [
        "".join(e.itertext())
        for e in ElementTree.fromstring(drawn["slices"].svg).iter()
        if e.tag.endswith("text")
    ]
    assert SCRIPT in texts
    assert IMAGE in texts


def test_page_says_all_that_the_report_holds(hostile: Report) -> None:
    text = Page(html(hostile)).text
    for finding in hostile.findings:
        assert " ".join(words.clean(finding.name).split()) in text
        if finding.confirmed:
            assert " ".join(words.clean(finding.sentence).split()) in text
            # of two sides that both have words, that of more failures is told
            face = finding.face_failures()
            for cell in (face.discovery, face.holdout, face.full):
                assert words.share(cell, "on") in text
            # intervals of what was selected would be too narrow
            assert face.estimate is not None
            assert write_estimate(hostile, face.estimate)[1] in text
    for digest in to_plain(hostile.hashes).values():
        assert digest in text
    for said in (
        hostile.guarantee,
        hostile.conclusion,
        *hostile.hints,
    ):
        assert words.capital(said) in text or said in text
    assert "Holdout opened 2 times, with 2 candidate libraries" in text
    assert "10 observations could not be scored" in text
    assert "not a probability of being true" in text
    assert "not a cause" in text
    assert "min_on" in text
    assert "too few examples match the rule" in text


def test_answer_comes_first_and_overlapping_findings_stand_under_their_lead(
    hostile: Report,
) -> None:
    said = Outline(hostile)
    grouped = [f for group in said.groups for f in (group.lead, *group.others)]
    assert sorted(f.name for f in grouped) == sorted(f.name for f in hostile.confirmed)
    assert all(group.lead.representative is None for group in said.groups)
    assert all(f.representative == group.lead.name for group in said.groups for f in group.others)
    lead = next(
        group
        for group in said.groups
        if SCRIPT in (group.lead.name, *(f.name for f in group.others))
    )
    assert {SCRIPT, IMAGE, MARKDOWN} <= {lead.lead.name, *(f.name for f in lead.others)}
    text = Page(html(hostile)).text
    order = [
        said.headline,
        " ".join(words.clean(lead.lead.sentence).split()),
        "Confirmed findings",
        "Figures",
    ]
    order += ["What this audit could have missed", "All candidates", "Hashes (SHA-256)"]
    places = [text.rindex(part) if part in order[2:] else text.index(part) for part in order]
    assert places == sorted(places)


def test_another_name_for_the_same_slice_is_not_another_finding(hostile: Report) -> None:
    said = Outline(hostile)
    assert said.headline == "3 confirmed findings, in 2 groups"
    group = next(group for group in said.groups if group.lead.name == SCRIPT)
    assert [f.name for f in group.others] == [MARKDOWN, IMAGE]
    assert [f.name for f in group.distinct] == [IMAGE]
    assert group.lead.aliases == (f"not {MARKDOWN}",)
    assert distinct(hostile.confirmed) == distinct(distinct(hostile.confirmed))


def test_nothing_found_is_an_answer(nothing: Report) -> None:
    assert not nothing.confirmed
    assert nothing.minimum_detectable_lift is not None
    least = f"fails {100 * nothing.minimum_detectable_lift:.0f} points more often than the rest"
    page = Page(html(nothing))
    assert (
        page.text.index("No reportable finding")
        < page.text.index(least)
        < page.text.index("Figures")
    )
    assert "confirmed-head" not in [a.get("id") for a in page.all("h2")]
    assert [figure.name for figure in figures(nothing)] == ["shrinkage", "floor"]
    assert markdown(nothing).startswith("# No reportable finding\n")
    assert printed(nothing).startswith("No reportable finding")
    assert least in " ".join(printed(nothing).split())
    assert "this look is not recorded: no ledger" in page.text.lower()


def test_judge_without_holdout_claims_none() -> None:
    report = plain_report(lift=0.4, judge="holm")
    assert [f.name for f in report.confirmed] == ["f0"]
    text = Page(html(report)).text
    assert [figure.name for figure in figures(report)] == ["slices"]
    assert "No holdout" in text
    assert "Discovery (selected)" not in text
    assert "discovery*" not in printed(report)


def test_several_outcomes_are_told_apart(several: Report) -> None:
    labels = [words.label(f) for f in several.confirmed]
    assert sorted(labels) == ["f0 · m0", "f0 · m1"]
    text = Page(html(several)).text
    assert all(label in text for label in labels)
    assert "10 for 2 outcomes (20 of 20 tested)" in text
    assert all(label in printed(several) for label in labels)


def test_ratio_intervals_are_not_drawn_on_an_axis_of_lifts() -> None:
    report = plain_report(lift=0.4, effect="risk_ratio")
    assert report.confirmed
    text = Page(html(report)).text
    assert "interval (risk ratio)" in text
    assert "intervals of the holdout lift" not in text
    assert "|log risk ratio| on discovery" in text
    estimate = report.confirmed[0].estimate
    assert estimate is not None
    low, high = estimate.interval
    assert f"{estimate.effect:.2f}: {low:.2f} to {high:.2f}" in text


def test_page_is_the_same_every_time(nothing: Report) -> None:
    assert html(nothing) == html(nothing)


def many(report: Report, times: int) -> Report:
    found: tuple[Finding, ...] = tuple(
        replace(f, name=f"{f.name}/{i}")
        for f in sorted(report.findings, key=lambda f: list(Verdict).index(f.verdict))
        for i in range(times)
    )
    return structs.replace(report, findings=found)


def test_thousands_of_candidates_are_capped_and_the_page_says_so(nothing: Report) -> None:
    report = many(nothing, 600)
    shrinkage = next(figure for figure in figures(report) if figure.name == "shrinkage")
    drawn = shrinkage.svg.count('aria-roledescription="point"') or shrinkage.svg.count(
        "<path transform"
    )
    assert MAX_POINTS <= drawn <= MAX_POINTS + 10
    assert f"{MAX_POINTS} of 6,000 candidates are drawn" in shrinkage.caption
    page = Page(html(report))
    rows = [a for a in page.all("tr") if "style" in a]
    assert len(rows) == MAX_ROWS
    assert "The first 5,000 are shown here" in page.text
    assert f"{MAX_ROWS:,} are shown here" in markdown(report)


def test_orders_of_the_table_are_permutations(several: Report) -> None:
    rows = [a["style"] or "" for a in Page(html(several)).all("tr") if "style" in a]
    places = [dict(part.split(":") for part in row.split(";")) for row in rows]
    assert len(rows) == len(several.findings)
    for key in ("--discovery", "--p", "--size", "--name"):
        assert sorted(int(p[key]) for p in places) == list(range(1, len(rows) + 1))
    first = several.findings[[p["--p"] for p in places].index("1")]
    assert first.discovery.p == min(f.discovery.p for f in several.findings)


GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def test_markdown_holds_hostile_text_as_text(hostile: Report) -> None:
    page = Page(GITHUB.render(markdown(hostile)))
    assert page.errors == []
    ours = {"h1", "h2", "h3", "p", "ul", "li", "strong", "code", "blockquote"}
    assert {tag for tag, _ in page.tags} <= ours | {"table", "thead", "tbody", "tr", "th", "td"}
    for name in HOSTILE:
        assert " ".join(words.clean(name).split()) in page.text
    assert f"lost it {SCRIPT}" in page.text


@pytest.mark.parametrize("name", ["hostile", "nothing", "several"])
def test_markdown_tables_are_rectangular(name: str, request: pytest.FixtureRequest) -> None:
    rendered = GITHUB.render(markdown(request.getfixturevalue(name)))
    tables = re.findall(r"<table>.*?</table>", rendered, re.S)
    assert len(tables) >= 6
    for table in tables:
        widths = {
            len(re.findall(r"<t[hd]", row)) for row in re.findall(r"<tr>.*?</tr>", table, re.S)
        }
        assert len(widths) == 1
    # nothing that was meant as a table is left standing as text
    assert "|" not in re.sub(
        r"<table>.*?</table>|a\|b.*?&lt;b&gt;|\|(log|discovery)[^|]*\|", "", rendered, flags=re.S
    )


printable = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda t: words.clean(t).strip()
)


@given(printable)
def test_markdown_gives_back_any_text(text: str) -> None:
    seen = " ".join(words.clean(text).split())
    for written in (escape(text), code(text)):
        in_text = Page(GITHUB.render(f"It is {written} here"))
        assert " ".join(in_text.text.split()) == f"It is {seen} here".strip()
        assert {tag for tag, _ in in_text.tags} <= {"p", "code"}
        in_table = Page(GITHUB.render(f"| a | b |\n| --- | --- |\n| x {written} x | y |"))
        assert " ".join(in_table.text.split()) == f"a b x {seen} x y"
        assert {tag for tag, _ in in_table.tags} <= {
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "code",
        }


@given(st.text())
def test_clean_text_stands_on_one_line_and_steers_nothing(text: str) -> None:
    cleaned = words.clean(text)
    assert len(cleaned.splitlines()) <= 1
    assert not any(
        ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202d\u202e\u2066\u2067" for c in cleaned
    )
    cleaned.encode("utf-8")
    assert words.clean(cleaned) == cleaned


def printed(report: Report, width: int = 80, path: object = None) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=False)
    show(make_summary(report, path), console)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["hostile", "nothing", "several"])
@pytest.mark.parametrize("width", [80, 120])
def test_terminal_fits(name: str, width: int, request: pytest.FixtureRequest) -> None:
    lines = printed(request.getfixturevalue(name), width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert len(lines) < 45


def test_terminal_takes_no_markup_from_data(hostile: Report) -> None:
    said = printed(hostile, 200, path="out/[bold]report.html")
    assert "[bold]markup[/bold]" in said
    assert SCRIPT in said
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "Report: out/[bold]report.html · next: groundfault open out" in said
    assert "over 2 looks" in said
    assert "3 confirmed findings, in 2 groups" in said.splitlines()[0]


def test_check_is_shown_with_what_can_never_be_confirmed() -> None:
    rng = np.random.default_rng(5)
    columns = {f"f{i}": rng.random(200) < 0.4 for i in range(30)} | {"rare": np.arange(200) < 3}
    frame = pl.DataFrame({"id": np.arange(200), "error": rng.random(200) < 0.3, **columns})
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    candidates = [Candidate(TERMINAL if c == "rare" else c, c) for c in columns]
    found = groundfault.check(evidence, Plan(), candidates)
    stream = io.StringIO()
    show(make_check_page(found), Console(file=stream, width=80))
    said = stream.getvalue()
    assert "30 of 31 simple rules can be tested" in said
    assert "and 10 more" in said
    assert f"30%, {100 * found.summary.minimum_detectable_lift:.3g} points" in " ".join(
        said.split()
    )
    assert "min_on" in said
    assert "[bold]markup[/bold]" in said
    assert "\x1b" not in said
    assert max(map(cell_len, said.splitlines())) <= 80


@pytest.mark.parametrize(
    ("judge", "title", "units"),
    [
        ("max-t", "before anything is tested", "80 examples, none held out; failure rate 50%"),
        (
            "split-holm",
            "before the holdout is opened",
            "80 examples (40 discovery, 40 holdout); discovery",
        ),
    ],
)
def test_check_speaks_of_a_holdout_where_there_is_one(judge: str, title: str, units: str) -> None:
    frame = pl.DataFrame({"x": np.arange(80) % 5, "error": np.arange(80) % 2})
    evidence = Evidence.from_table(frame, outcome="error")
    check = groundfault.check(evidence, Plan(judge=judge), [Candidate("x", "x > 2")])
    page = make_check_page(check)
    assert page.title == title
    assert units in str(page.lead[0])


def test_check_shows_what_each_column_is_taken_for_and_how_to_overrule_it() -> None:
    rng = np.random.default_rng(5)
    wrong = rng.random(300) < 0.4
    columns = {"topic": rng.integers(0, 3, 300), "n_turns": rng.poisson(3, 300)}
    frame = pl.DataFrame({**columns, "flag": wrong ^ (rng.random(300) < 0.03), "error": wrong * 1})
    stream = io.StringIO()
    check = groundfault.check(Evidence.from_table(frame, outcome="error"))
    show(make_check_page(check), Console(file=stream, width=100))
    text = " ".join(stream.getvalue().split())
    assert "Columns Taken for Why" in text
    assert "n_turns measured with it by its name" in text
    assert "topic known before the answer by default" in text
    assert "of the rarer outcome: is that so?" in text
    assert (
        "To change it: --allow-leakage COLUMN (known before the answer), --during COLUMN (" in text
    )


def test_numbers_are_written_as_they_are_read() -> None:
    assert [words.signed(x) for x in (None, 0.0, -0.0, -0.004, 0.25, -0.25)] == [
        "–",
        "0.00",
        "0.00",
        "0.00",
        "+0.25",
        "−0.25",
    ]
    shares = [
        words.rate(x) for x in (None, 0.0, 0.0001, 0.0044, 0.095, 0.1, 0.5, 0.996, 0.9999, 1.0)
    ]
    assert shares == ["–", "0%", "<0.1%", "0.4%", "9.5%", "10%", "50%", "99.6%", ">99.9%", "100%"]
    assert [words.level(x) for x in (0.9, 0.975, 1 - 0.07)] == ["90%", "97.5%", "93%"]
    assert words.decimal("1/3") == pytest.approx(1 / 3, abs=1e-15)
    assert words.listing([]) == "none"
    assert words.listing(["a", "b", "c"], 2) == "a, b and 1 more"
    assert set(words.VERDICTS) == set(Verdict)


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    source = (
        "import sys, groundfault.render.audit_page, groundfault.render.terminal; "
        "print(sorted({'jinja2', 'markupsafe', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_report_of_the_paper_is_written_whole(shared: Path, tmp_path: Path) -> None:
    source = shared / "janus_public" / "table1_reconstruction.csv"
    evidence = Evidence.from_table(source, id="item_id", outcome="error", split="split")
    names = [c for c in pl.read_csv(source).columns if c.startswith("d__")]
    report = groundfault.audit(
        evidence, Plan(judge="janus-a"), [Candidate(c[3:], f"{c} = 1") for c in names]
    )
    report.write(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "SHA256SUMS",
        "library.json",
        "report.html",
        "report.json",
        "report.md",
    ]
    text = Page((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert "5 confirmed findings" in text
    assert "Where it does better: target_late" in text
    assert "floor 0.25" in text
    assert "27/39 (69%)" in text


def test_what_is_real_and_too_small_has_a_place_of_its_own() -> None:
    report = plain_report(lift=0.4, judge="holm", min_lift="0.9")
    assert [f.verdict for f in report.findings].count(Verdict.TOO_SMALL) == 1
    text = Page(html(report)).text
    assert "Real, and smaller than was asked for" in text
    assert "1 too small" in text
    assert "did not hold up on the holdout" not in text
    assert "Screened, not confirmed" not in text
