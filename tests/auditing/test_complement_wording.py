"""Opposites: short inputs that fail are said as such, and the numbers turn with the words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import groundfault
from groundfault import Candidate, Evidence, Plan, Report
from groundfault.auditing.findings import describe_complement
from groundfault.core.finding import Cell, Opposite
from groundfault.render import to_html as html, to_markdown as markdown
from groundfault.render.audit_words import BETTER

PLAN = Plan(judge="max-t", permutations=199)


@pytest.mark.parametrize(
    ("candidate", "name", "meaning"),
    [
        (Candidate("n > 12", '"n" > 12', "n is above 12"), "n <= 12", "n is at most 12"),
        (Candidate("long", "n_words >= 1.5e3"), "n_words < 1.5e3", "n_words is below 1.5e3"),
        (Candidate("cold", '"a ""b""" < -3', "cold"), 'a "b" >= -3', 'a "b" is at least -3'),
        (Candidate("low", "n <= 0"), "n > 0", "n is above 0"),
        (Candidate("polite", '"polite"', "polite holds"), "NOT polite", "polite does not hold"),
        (
            Candidate("long_chain", "d__long_chain = 1", "long chain holds"),
            "NOT long_chain",
            "long chain does not hold",
        ),
        (Candidate("NOT aside", "NOT aside", "aside does not hold"), "aside", "aside holds"),
        (Candidate("flag", "flag"), "NOT flag", "flag does not hold"),
        (
            Candidate("q has over 20 words", "LENGTH(q) > 9", "q has over 20 words", "text"),
            "q has at most 20 words",
            "q has at most 20 words",
        ),
        (
            Candidate("q has over 1 character", "LENGTH(q) > 1", "q has over 1 character", "text"),
            "q has at most 1 character",
            "q has at most 1 character",
        ),
        (
            Candidate("q is not empty", "LENGTH(q) > 0", "q is not empty", "text"),
            "q is empty",
            "q is empty",
        ),
        (
            Candidate("q has a digit", "q ~ '[0-9]'", "q has a digit", "text"),
            "q has no digit",
            "q has no digit",
        ),
    ],
)
def test_a_cut_or_a_flag_has_another_side_in_words(
    candidate: Candidate, name: str, meaning: str
) -> None:
    opposite = describe_complement(candidate, 60, 40)
    assert opposite is not None
    assert (opposite.name, opposite.meaning) == (name, meaning)
    values = {"n": [None, 0, 5, 12, 30], "n_words": [None, 1, 1500, 2000, 9]}
    values |= {'a "b"': [None, -9, -3, 0, 1], "q": [None, "a", "1", "b" * 30, "2" * 30]}
    flags = {name: [None, True, False, True, False] for name in ("polite", "aside", "flag")}
    table = pl.DataFrame(values | flags | {"d__long_chain": [None, 1, 0, 1, 0]})
    on, off = (
        table.select(rule.parsed.to_polars().alias("on"))["on"]
        for rule in (candidate, Candidate("other", opposite.rule))
    )
    assert (on == ~off).drop_nulls().all()
    assert on.null_count() == off.null_count()


@pytest.mark.parametrize(
    "candidate",
    [
        Candidate("lang = de", "lang = 'de'", "lang is de", "categories"),
        Candidate("grade = 1", "grade = 1", "grade is 1", "categories"),
        Candidate("n is missing", "n IS NULL", "n is missing"),
        Candidate("both", "n > 3 AND polite"),
        Candidate("n > 3", "n > 3", missing="off"),
        Candidate('q starts with "why"', "q ~* 'why'", 'q starts with "why"', "text"),
    ],
)
def test_other_candidates_have_none(candidate: Candidate) -> None:
    assert describe_complement(candidate, 60, 40) is None


def test_a_flag_that_few_have_is_not_turned_and_a_cut_is() -> None:
    assert describe_complement(Candidate("polite", "polite"), 10, 90) is None
    assert describe_complement(Candidate("q", "q ~ 'x'", "q has a digit", "text"), 10, 90) is None
    assert describe_complement(Candidate("n", "n > 3"), 10, 90) is not None


@pytest.fixture(scope="module")
def short() -> Report:
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {"n_words": rng.integers(1, 100, 600), "lang": rng.choice(["de", "en", "fr"], 600)}
    )
    rate = np.where(table["n_words"] <= 25, 0.7, 0.2) - 0.19 * (table["lang"] == "fr").to_numpy()
    error = (rng.random(600) < rate).astype(int)
    evidence = Evidence.from_table(table.with_columns(error=pl.Series(error)), outcome="error")
    candidates = [
        Candidate("n_words > 25", "n_words > 25", "n_words is above 25", "thresholds", "drop"),
        Candidate("lang = fr", "lang = 'fr'", "lang is fr", "categories", "off"),
    ]
    return groundfault.audit(evidence, PLAN, candidates, modes=False)


def test_short_inputs_that_fail_are_a_weakness_in_their_own_words(short: Report) -> None:
    [cut] = short.weaknesses
    assert cut.name == "n_words > 25"
    assert cut.full.lift is not None
    assert cut.full.lift < 0
    assert cut.opposite == Opposite("n_words <= 25", "n_words <= 25", "n_words is at most 25")
    start = "Confirmed association: failures are more frequent when n_words is at most 25 ("
    assert cut.sentence.startswith(start + f"{cut.full.off_errors:g} of {cut.full.off} that ")
    assert f"difference {-100 * cut.full.lift:+.0f} points" in cut.sentence
    # values of a category stay where the model does better
    assert [f.name for f in short.strengths] == ["lang = fr"]


def test_pages_tell_the_side_that_fails_with_its_numbers(short: Report) -> None:
    for page in (html(short), markdown(short)):
        assert "n_words &lt;= 25" in page or "n\\_words <= 25" in page or "n_words <= 25" in page
        assert "The other side of" in page
        assert BETTER in page
    face = short.weaknesses[0].face_failures()
    assert face.full.lift == -(short.weaknesses[0].full.lift or 0)
    assert not face.is_strength
    assert face.face_failures() == face


def test_a_finding_of_more_failures_is_told_as_it_is(short: Report) -> None:
    other = short.strengths[0]
    assert other.face_failures() is other


def test_sides_swap_with_their_intervals() -> None:
    cell = Cell(40, 60, 4, 18, -0.2, 0.01, 0.02, (-0.3, -0.1))
    assert cell.swap() == Cell(60, 40, 18, 4, 0.2, 0.01, 0.02, (0.1, 0.3))
    assert cell.swap().swap() == cell
    ratio = Cell(40, 60, 4, 18, -0.2, interval=(0.25, 0.5))
    assert ratio.swap("risk_ratio").interval == (2, 4)
    assert Cell(40, 60, 0, 18, -0.3, interval=(0, 0.5)).swap("odds_ratio").interval == (
        2,
        float("inf"),
    )


def test_a_report_is_stored_with_it(short: Report, tmp_path: Path) -> None:
    short.write(tmp_path)
    again = Report.load(tmp_path)
    assert [f.opposite for f in again.findings] == [f.opposite for f in short.findings]
    assert again.weaknesses == short.weaknesses


def test_where_the_other_side_is_a_candidate_too_that_one_says_it() -> None:
    rng = np.random.default_rng(4)
    n = rng.integers(1, 100, 400)
    table = pl.DataFrame({"n": n, "error": (rng.random(400) < np.where(n <= 30, 0.8, 0.1)) * 1})
    candidates = [Candidate("long", "n > 30"), Candidate("short", "n <= 30")]
    report = groundfault.audit(
        Evidence.from_table(table, outcome="error"), PLAN, candidates, modes=False
    )
    assert [f.name for f in report.weaknesses] == ["short"]
    assert all(f.opposite is None for f in report.findings)
