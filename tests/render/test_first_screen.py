"""The first screen: short, with what was read, an example and one line of trust; and the brief."""

from __future__ import annotations

import io
import json
import re
from datetime import date, timedelta
from hashlib import md5
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from msgspec import structs
from pages import Page
from rich.console import Console

import groundfault
from groundfault import Evidence, Report
from groundfault.auditing.report_schema import RecordedOpening
from groundfault.base.holdout_events import Look
from groundfault.exports import export
from groundfault.render.audit_page import make_page, make_summary
from groundfault.render.audit_words import Outline
from groundfault.render.brief import make_brief
from groundfault.render.first_screen import describe_excluded, describe_trust
from groundfault.render.html import html
from groundfault.render.terminal import show

ROWS = 500


def make_table(models: int = 1, strength: float = 0.6) -> pl.DataFrame:
    rng = np.random.default_rng(8 if strength else 11)
    topic = rng.choice(["refund", "login", "invoice"], ROWS)
    words = "where is my late parcel order today please".split()
    shared = {
        "id": [f"q{i}" for i in range(ROWS)],
        "topic": topic,
        "serial": [md5(str(i).encode()).hexdigest() for i in range(ROWS)],
        "question": [f"Question {i}: {' '.join(rng.choice(words, 9))}" for i in range(ROWS)],
    }
    frames = []
    for number in range(models):
        fails = rng.random(ROWS) < 0.1 + 0.02 * number + strength * (topic == "refund")
        outcome = np.where(fails, "incorrect", "correct")
        frames.append(pl.DataFrame(shared | {"model": f"m{number}", "outcome": outcome}))
    return pl.concat(frames)


def audit(models: int = 1, strength: float = 0.6, **settings: object) -> Report:
    table = make_table(models, strength)
    with pytest.warns(UserWarning, match="1 is a pass"):
        evidence = Evidence.from_table(table, id="id", model="model", outcome="outcome")
    return groundfault.audit(evidence, ledger=False, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def one() -> Report:
    return audit()


@pytest.fixture(scope="module")
def nothing() -> Report:
    return audit(strength=0.0)


def printed(report: Report, *, why: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=100, force_terminal=False)
    show(make_summary(report, "out/report.html", why=why), console)
    return stream.getvalue()


@pytest.mark.parametrize("models", [1, 10])
def test_it_is_short_for_one_model_and_for_ten(models: int) -> None:
    lines = printed(audit(models)).splitlines()
    start = next(i for i, line in enumerate(lines) if "topic is refund" in line)
    assert start <= 12
    assert len(" ".join(lines[:start]).split()) <= 80
    assert len(lines) <= 17
    # what was read, what was left out, the rate, an example, trust, what next
    text = " ".join(" ".join(lines).split())
    for part in (
        "Examples 500",
        "Failure rate",
        "Read correct as 1, incorrect as 0, and 1 is a pass.",
        "Not used in rules: serial (ids or" if models == 1 else "Models 10",
        "· question: Question",
        "The chance of a false mode in this list is at most 10%",
        "next: groundfault open out",
    ):
        assert part in text, part


def test_cells_of_many_models_have_colours_and_what_differs_between_answers_a_reason() -> None:
    table = make_table(2).with_columns(response_length=pl.int_range(pl.len()))
    first = pl.col("model") == pl.col("model").first()
    table = table.with_columns(pl.when(first).then(pl.lit("web")).alias("origin"))
    with pytest.warns(UserWarning, match="1 is a pass"):
        evidence = Evidence.from_table(table, id="id", model="model", outcome="outcome")
    report = groundfault.audit(evidence, ledger=False)
    assert report.unused["they differ between the answers to one example"] == ("response_length",)
    assert report.unused["not every version has them"] == ("origin",)
    page = make_page(report)
    assert html(page).count('class="number above"') == 2
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="standard")
    show(make_summary(report), console)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "response_length" in told
    assert re.search(r"\x1b\[1;31m\d+% ●", told)


def test_nobody_has_to_know_statistics_to_read_it(one: Report, nothing: Report) -> None:
    for report in (one, nothing):
        screen = printed(report)
        page = Page(html(make_page(report))).text
        first = page[page.index(Outline(report).headline, 200) : page.index("How sure this is")]
        for jargon in (
            "four times in five, a single condition",
            "No candidate was",
            "prevalence",
            "below the floor",
            "lift",
            "judged by",
            "power",
            "Error rate",
        ):
            assert jargon not in screen, jargon
            assert jargon not in first.split("Confirmed findings")[0], jargon
        assert "family-wise" in printed(report, why=True)


def test_nothing_found_shows_failures_and_says_what_is_excluded(nothing: Report) -> None:
    text = " ".join(printed(nothing).split())
    assert text.startswith("No failure mode stands out")
    assert text.count("A failure: q") == 3
    assert "A problem in 10% of the examples is found four times in five if" in text
    assert "is found four times in five if" in text
    assert text.index("A problem in") < text.index("A failure: q")
    page = Page(html(make_page(nothing))).text
    assert page.index("A problem in 10%") < page.index("Typical failures")
    assert nothing.sample
    without = audit(strength=0.0, texts=False)
    assert not without.sample


def test_examples_without_texts_show_attributes_and_left_out_columns_a_reason() -> None:
    rng = np.random.default_rng(0)
    n = 400
    columns = {"row": range(n), "lang": rng.choice(["de", "en"], n), "turns": rng.integers(1, 9, n)}
    table = pl.DataFrame({**columns, "error": rng.integers(0, 2, n)})
    report = groundfault.audit(Evidence.from_table(table, outcome="error"), ledger=None)
    text = " ".join(printed(report).split())
    assert (
        "rules: turns (they hold or describe the model's answer); row (numbers that never repeat)"
        in text
    )
    assert re.search(r"A failure: \d+ · lang: (de|en) · turns: \d", text)


def test_a_bar_shows_the_part_of_all_failures_that_each_rule_is_the_first_to_match(
    one: Report, nothing: Report
) -> None:
    assert one.mode_search is not None
    (coverage,) = one.mode_search.outcomes
    page = html(make_page(one))
    shares = list(map(float, re.findall(r"--share:([\d.]+)", page)))
    assert len(shares) == sum(mode.errors_new > 0 for mode in one.modes)
    assert sum(shares) == pytest.approx(100 * coverage.covered_errors / coverage.errors, abs=0.1)
    assert "All failures, each counted under the first rule that matches it; grey: no rule" in page
    assert "--share:" not in html(make_page(nothing))


def test_graded_losses_have_a_mean_and_no_failure_rate() -> None:
    rng = np.random.default_rng(0)
    langs = rng.choice(["de", "en", "fr"], 400)
    losses = np.where(langs == "de", 0.5, 0.2) + rng.uniform(-0.2, 0.2, 400).round(3)
    table = pl.DataFrame({"lang": langs, "loss": losses})
    report = groundfault.audit(Evidence.from_table(table, outcome="loss"), ledger=None)
    for text in (printed(report), report.to_markdown()):
        assert re.search(r"1 failure mode covers \d\d% of the loss", text)
        assert re.search(r"Mean loss:? 0\.\d\d\b", text), text
        assert "Failure rate" not in text.partition("Method")[0][:400]
    assert "All losses, each counted under the first rule" in html(make_page(report))
    even = table.with_columns(loss=pl.col("loss").shuffle(seed=1))
    report = groundfault.audit(Evidence.from_table(even, outcome="loss"), ledger=None)
    assert not report.modes
    assert "A high loss: " in printed(report)
    assert "A failure: " not in printed(report)


def test_attributes_are_told_whole_and_which_way_outcomes_are_read() -> None:
    days = [date(2026, 1, 1) + timedelta(days=i) for i in range(200)]
    hard = np.random.default_rng(0).random(200) < [0.1 + 0.6 * (day.month > 4) for day in days]
    columns = {"sent": days, "size": [float(i % 7) for i in range(200)], "tags": [["a", "b"]] * 200}
    table = pl.DataFrame({**columns, "outcome": [int(h) for h in hard]})
    report = groundfault.audit(Evidence.from_table(table, outcome="outcome"), ledger=None)
    text = " ".join(printed(report).split())
    assert re.search(r" · sent: 2026-\d\d-\d\d · size: \d", text)
    assert "Read 1 in outcome as a failure; if it is a pass: --positive-is-good." in text
    assert "Read 1" not in printed(audit())


def test_where_no_rule_could_be_named_a_sentence_says_why_or_what_is_excluded() -> None:
    few = pl.DataFrame({"lang": ["de", "en"] * 5, "error": [0, 1, 1, 0, 1] * 2})
    report = groundfault.audit(Evidence.from_table(few, outcome="error"), ledger=None)
    assert "too small to name a rule" in printed(report)
    # each model has examples of its own, and each answer its own topic
    rng = np.random.default_rng(0)
    names = [f"m{i % 2}" for i in range(600)]
    apart = {"id": range(600), "model": names, "error": rng.integers(0, 2, 600)}
    table = pl.DataFrame({**apart, "lang": rng.choice(["de", "en"], 600)})
    evidence = Evidence.from_table(table, id="id", model="model", outcome="error")
    text = " ".join(printed(groundfault.audit(evidence, ledger=None)).split())
    assert text.startswith("No failure mode stands out")
    assert "is found four times in five if it fails" in text
    varying = pl.DataFrame({**apart, "id": [i // 2 for i in range(600)], "lang": table["lang"]})
    evidence = Evidence.from_table(varying, id="id", model="model", outcome="error")
    text = " ".join(printed(groundfault.audit(evidence, ledger=None)).split())
    assert "No column describes the examples, so no rule could be tested" in text
    assert "too small" not in text


def test_an_example_that_is_a_conversation_is_told_in_words() -> None:
    call = {"id": "a", "function": {"name": "pay", "arguments": "{}"}}
    act = {"role": "assistant", "tool_calls": [call]}
    runs = [json.dumps([{"role": "user", "content": f"Book trip {i}."}, act]) for i in range(60)]
    columns = {"error": [0, 1] * 30, "lang": ["de", "en", "en"] * 20}
    table = pl.DataFrame({**columns, "messages": runs})
    report = groundfault.audit(Evidence.from_table(table, outcome="error"), ledger=None)
    told = " ".join(printed(report).split())
    assert re.search(r"messages: user: Book trip \d+\. assistant: calls pay", told)


def test_how_outcomes_were_read_is_said_without_a_search_too() -> None:
    report = audit(modes=False)
    assert report.manifest.grading == "correct as 1, incorrect as 0, and 1 is a pass"
    for text in (printed(report), Page(html(make_page(report))).text, report.to_markdown()):
        assert "Read correct as 1, incorrect as 0, and 1 is a pass." in text
        assert "Not used in rules: serial (ids or rare values)." in text


def test_a_held_out_failure_is_shown_by_nothing() -> None:
    report = audit(strength=0.0, plan=groundfault.Plan(judge="janus"), modes=False)
    assert report.n_holdout
    assert not report.sample


def look(times: int, *levels: float | None) -> RecordedOpening:
    return RecordedOpening(
        path="l.db",
        head="0",
        replay=False,
        times=times,
        libraries=1,
        plans=1,
        splits=1,
        versions=1,
        reasons=(),
        sentence="",
        holdout=False,
        looks=tuple(Look("max-t", level) for level in levels),
    )


def test_trust_is_one_line_and_follows_the_ledger(one: Report) -> None:
    def trust(opening: RecordedOpening | None, **changes: object) -> str:
        return describe_trust(Outline(structs.replace(one, ledger=opening, **changes)), "")

    start = "The chance of a false mode in this list is at most 10%"
    assert trust(None) == f"{start}, if this is a first look."
    assert trust(look(1, 0.1)) == f"{start}."
    assert trust(look(2, 0.1, 0.1)) == (
        "The chance of a false mode in this list is at most 20% over 2 looks."
    )
    assert trust(look(2, 0.1, 0.05)) == (
        "The chance of a false mode in this list is at most 15% over 2 looks."
    )
    assert trust(look(2, 0.1, None)).startswith("No error level holds any more after 2 looks")
    # no theorem where neighbours may belong together
    runs = ("in the order of ids failures come in runs: no error level holds",)
    assert trust(look(1, 0.1), hints=runs, doubts=1) == ""
    assert "--why" in describe_trust(Outline(one), "--why")


def test_a_doubt_of_the_whole_audit_is_on_the_first_screen(one: Report) -> None:
    doubts = ("in the order of ids failures come in runs", "was 'x' known before the answer?")
    report = structs.replace(one, hints=(*doubts, "losses are graded"), doubts=2)
    text = " ".join(printed(report).split())
    assert "In the order of ids failures come in runs. 1 more doubt: --why." in text
    assert "graded" not in text
    assert "Losses are graded." in printed(report, why=True)


def test_hashes_are_on_the_last_tab(one: Report) -> None:
    sections = make_page(one).sections
    assert [section.tab for section in sections if section.tab] == ["How sure, and why", "Verify"]
    assert sections[-1].anchor == "manifest"
    page = Page(html(make_page(one)))
    assert page.errors == []
    assert [a["href"] for a in page.all("a") if a.get("href") in ("#why", "#verify")] == [
        "#why",
        "#verify",
    ]


@pytest.mark.parametrize("models", [1, 3])
def test_a_brief_has_a_chart_three_examples_and_no_hash(models: int, tmp_path: Path) -> None:
    report = audit(models)
    page = Page(html(make_brief(report)))
    assert page.errors == []
    text = page.text
    for part in ("topic is refund", "Failure rate", "Question", "is at most 10%"):
        assert part in text, part
    assert ("m2: " in text) == (models > 1)
    for word in ("SHA", "family-wise", "p =", "--why", "lift", "max-t", report.hashes.evidence):
        assert word not in text, word
    assert len(page.all("dl")) <= 1 + 3
    report.write(tmp_path / "report")
    table = make_table(models)
    table.write_parquet(tmp_path / "table.parquet")


def test_a_brief_names_the_model_of_a_rate_and_begins_with_what_is_excluded(
    nothing: Report,
) -> None:
    many = Page(html(make_brief(audit(3)))).text
    assert re.search(r"(every model|m\d): \d+% wrong", many)
    text = Page(html(make_brief(nothing))).text
    assert text.index("is found four times") < text.index("Question ")


def test_a_brief_is_exported(one: Report, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="1 is a pass"):
        evidence = Evidence.from_table(make_table(), id="id", model="model", outcome="outcome")
    assert export(one, "brief", tmp_path / "brief.html", evidence=evidence) == "one page"
    assert "topic is refund" in (tmp_path / "brief.html").read_text("utf-8")


def test_all_passed_needs_no_second_sentence(nothing: Report) -> None:
    uniform = "500 of 500 passed; with this many, failures above 0.6% are excluded at 95%"
    assert describe_excluded(Outline(structs.replace(nothing, uniform=uniform))) == ""


def test_candidates_that_were_asked_for_have_their_verdict_there() -> None:
    named = [groundfault.Candidate("long", "LENGTH(question) > 60")]
    report = audit(candidates=named)
    assert "Candidates asked for: 0 of 1 confirmed." in printed(report)
    assert "asked for" not in printed(audit())
