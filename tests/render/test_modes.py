"""Failure modes as readers see them: a sentence and a bar each, and what was not seen."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt
from msgspec import structs
from pages import HOSTILE, IMAGE, SCRIPT, Page
from rich.cells import cell_len
from rich.console import Console

import groundfault
from groundfault import Candidate, Evidence, Plan, Report
from groundfault.auditing.messages import describe_rates
from groundfault.auditing.report_schema import GraderEvidence, RecordedOpening
from groundfault.modes.bars import SHARES
from groundfault.modes.changes import SHARES as CHANGE_SHARES
from groundfault.modes.mode import (
    Alternative,
    Coverage,
    DosePoint,
    MatrixRow,
    Mode,
    ModeExample,
    ModeSearch,
    RuleClass,
)
from groundfault.render import to_html as html, to_markdown as markdown
from groundfault.render.audit_figures import draw_cuts, draw_doses
from groundfault.render.audit_groups import read_cut
from groundfault.render.audit_page import make_summary
from groundfault.render.audit_words import Outline
from groundfault.render.highlights import find_patterns, find_spans, highlight
from groundfault.render.mode_page import find_openings
from groundfault.render.mode_words import (
    NAMES,
    SETS,
    ModeOutline,
    format_count,
)
from groundfault.render.page import Bar, Highlight
from groundfault.render.terminal import show

LONG = " and ".join(f"a_column_with_a_long_name_{i} is at least {i}00" for i in range(6))


def make_mode(number: int = 1, **fields: object) -> Mode:
    settings: dict[str, object] = {
        "rule": f"digits >= {number}",
        "meaning": f"digits is {number} or more",
        "conditions": (f"digits is {number} or more",),
        "outcome": "",
        "n": 69,
        "errors": 63,
        "n_outside": 931,
        "errors_outside": 205,
        "n_new": 69,
        "errors_new": 63,
        "interval": (0.82, 0.96),
        "p_marginal": 0.00012,
        "p_conditional": 0.0034,
    }
    return Mode(**(settings | fields))


def make_search(*outcomes: str, **fields: object) -> ModeSearch:
    settings: dict[str, object] = {
        "level": 0.1,
        "depth": 3,
        "columns": ("digits", "task"),
        "within": (),
        "classes": (
            RuleClass(name="single", rules=310, weight=0.7),
            RuleClass(name="pair", rules=22_690, weight=0.3),
        ),
        "outcomes": tuple(
            Coverage(outcome=name, n=1000, errors=268, covered=333, covered_errors=241)
            for name in outcomes or ("",)
        ),
        "detectable": {"0.01": None, "0.05": 0.52, "0.3": 0.4},
    }
    return ModeSearch(**(settings | fields))


@pytest.fixture(scope="module")
def plain() -> Report:
    """An audit of which nothing but numbers of findings is used."""
    rng = np.random.default_rng(5)
    n = 400
    columns = {f"f{i}": rng.random(n) < 0.4 for i in range(6)}
    steps = rng.integers(0, 20, n)
    failed = rng.random(n) < 0.15 + 0.4 * (steps > 9) - 0.14 * columns["f1"]
    table = pl.DataFrame({"id": np.arange(n), "error": failed, "steps": steps, **columns})
    evidence = Evidence.from_table(table, id="id", outcome="error")
    cuts = [Candidate(f"steps > {c}", f"steps > {c}", source="thresholds") for c in (5, 7, 9, 11)]
    candidates = [*(Candidate(c, c) for c in columns), *cuts]
    return groundfault.audit(evidence, Plan(judge="max-t"), candidates, modes=False)


def with_modes(report: Report, *modes: Mode, **search: object) -> Report:
    outcomes = tuple(dict.fromkeys(mode.outcome for mode in modes)) or ("",)
    return structs.replace(
        report, modes=modes, mode_search=make_search(*outcomes, **search), outcomes=outcomes
    )


def printed(report: Report, width: int = 80, *, why: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=False)
    show(make_summary(report, "out.html", why=why), console)
    return stream.getvalue()


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((69, 63, 931, 205), "91% wrong (63 of 69), against 22% elsewhere"),
        ((200, 24, 1800, 31), "12% wrong (24 of 200), 7 times as often as elsewhere (1.7%)"),
        ((200, 9, 1800, 31), "4.5% wrong (9 of 200), 2.6 times as often as elsewhere (1.7%)"),
        ((40, 40, 1960, 0), "100% wrong (40 of 40), against none of 1,960 elsewhere"),
        ((40, 30, 0, 0), "75% wrong (30 of 40)"),
        ((40, 20.5, 60, 12.25), "mean loss 0.51 (40 examples), against 0.20 elsewhere"),
    ],
)
def test_a_mode_is_one_sentence(counts: tuple[float, ...], sentence: str) -> None:
    n, errors, n_outside, errors_outside = counts
    mode = make_mode(n=n, errors=errors, n_outside=n_outside, errors_outside=errors_outside)
    assert describe_rates(mode) == sentence


def test_of_every_model_it_is_an_average() -> None:
    mode = make_mode(outcome="every model", errors=63.5)
    assert describe_rates(mode) == (
        "92% wrong on average over the models (69 examples), against 22% elsewhere"
    )


def test_large_counts_are_said_in_words() -> None:
    counts = (23_000, 1_704_828, 33_611_854_000, 16_137_840_532_893, 33 * 10**14, 2 * 10**20)
    assert [format_count(n) for n in counts] == [
        "23,000",
        "1.7 million",
        "33.6 billion",
        "16.1 trillion",
        "3.3 quadrillion",
        "2e+20",
    ]


def test_the_first_screen_answers_in_order(plain: Report) -> None:
    report = with_modes(plain, *(make_mode(i) for i in range(1, 8)))
    text = flat(printed(report))
    order = [
        "7 failure modes cover 90% of the failures",
        "1. digits is 1 or more",
        "91% wrong (63 of 69), against 22% elsewhere.",
        "3. digits is 3 or more",
        "and 4 more",
        "The chance of a false mode in this list is at most 10%",
        "Report: out.html · next: groundfault open .",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "█" not in text
    assert "4. digits" not in text


def test_everything_else_is_behind_why(plain: Report) -> None:
    report = with_modes(plain, *(make_mode(i) for i in range(1, 8)))
    text = flat(printed(report, why=True))
    text = text[text.index("Why") :]
    order = [
        "1. digits is 1 or more",
        "█",
        "7. digits is 7 or more 91% wrong (63 of 69)",
        "These 7 rules cover 90% of the failures in 33% of the examples; 27 failures "
        "match no rule.",
        "A problem in 5% of the examples is found four times in five if at least 52% of them fail",
        "in 30% if 40%. Smaller problems may be missed.",
        "Corrected for 23,000 possible rules over 2 columns.",
        "Findings: ",
        "Report: out.html",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert text.count("█ ") + text.count("█░") >= 5


def test_one_rule_is_one_rule(plain: Report) -> None:
    text = flat(printed(with_modes(plain, make_mode()), why=True))
    assert text.startswith("1 failure mode covers 90% of the failures")
    assert "This rule covers 90% of the failures in 33% of the examples; 27 fail" in text


def test_where_all_failures_are_covered_there_is_no_rest(plain: Report) -> None:
    report = with_modes(plain, make_mode())
    assert report.mode_search is not None
    (coverage,) = report.mode_search.outcomes
    whole = structs.replace(coverage, covered_errors=coverage.errors)
    search = structs.replace(report.mode_search, outcomes=(whole,))
    text = flat(printed(structs.replace(report, mode_search=search), why=True))
    assert "This rule covers all of the failures in 33% of the examples. Bars:" in text


def test_without_modes_it_says_what_one_would_have_needed(plain: Report) -> None:
    report = with_modes(plain)
    assert report.weaknesses
    for text in (flat(printed(report, why=True)), Page(html(report)).text, markdown(report)):
        assert "No failure mode was named." in text
        assert "A problem in 5% of the examples is found four times in five if at least 52%" in text
        assert "Corrected for 23,000 possible rules" in text
    assert Outline(report).headline == Outline(plain).headline
    # the headline that nothing can be reported says as much
    nothing = flat(printed(structs.replace(report, findings=())))
    assert nothing.startswith("No failure mode stands out")
    assert "No failure mode was" not in nothing
    excluded = "A problem in 5% of the examples is found four times in five if 52% of them fail"
    assert f"{excluded}." in nothing
    untested = structs.replace(with_modes(plain, classes=()), findings=())
    assert flat(printed(untested)).startswith("No rule could be tested")


def test_an_audit_that_did_not_search_says_nothing_of_modes(plain: Report) -> None:
    assert "failure mode" not in Page(html(plain)).text.lower()
    assert "failure mode" not in printed(plain).lower()


def test_a_second_look_at_all_outcomes_is_a_warning(plain: Report) -> None:
    once = RecordedOpening(
        path="ledger.db",
        head="0",
        replay=False,
        times=1,
        libraries=1,
        plans=1,
        splits=1,
        versions=1,
        reasons=(),
        sentence="all outcomes were looked at 1 time",
        holdout=False,
    )
    first = structs.replace(plain, ledger=once)
    assert "looked at before" not in flat(printed(first, why=True))
    assert "All outcomes were looked at 1 time." in flat(printed(first, why=True))
    twice = structs.replace(once, times=2, sentence="all outcomes were looked at 2 times")
    text = flat(printed(structs.replace(plain, ledger=twice), why=True))
    assert "These outcomes had been looked at before. All outcomes were looked at 2 times." in text
    worth = "listed, in a first look at these outcomes, which were looked at 2 times"
    modes = with_modes(structs.replace(plain, ledger=twice), make_mode())
    assert worth in flat(Page(html(modes)).text)
    assert "in a first look" not in flat(Page(html(with_modes(first, make_mode()))).text)
    held = structs.replace(once, holdout=True, all_before=True, sentence="holdout opened 1 time")
    text = flat(printed(structs.replace(plain, ledger=held)))
    assert "This holdout had been seen before. Holdout opened 1 time." in text


def test_rules_are_counted_over_all_kinds(plain: Report) -> None:
    classes = [
        RuleClass(name=name, rules=n, weight=0.3)
        for name, n in (("single", 1), ("mixed", 1), ("set of a pair", 2))
    ]
    search = make_search(classes=tuple(classes))
    text = flat(printed(structs.replace(plain, modes=(), mode_search=search), why=True))
    assert "Corrected for 4 possible rules over" in text
    search = make_search(classes=(classes[0],))
    text = flat(printed(structs.replace(plain, modes=(), mode_search=search), why=True))
    assert "Corrected for 1 possible rule over" in text


def test_an_audit_of_some_rows_says_so(plain: Report) -> None:
    manifest = structs.replace(plain.manifest, where="lang = 'de'")
    report = structs.replace(plain, manifest=manifest)
    for text in (printed(report), Page(html(report)).text, markdown(report)):
        assert "Only rows where lang = 'de'." in text


@pytest.mark.parametrize("width", [80, 100])
def test_long_rules_wrap_and_nothing_is_cut(plain: Report, width: int) -> None:
    endless = "x" * 200
    report = with_modes(plain, make_mode(meaning=LONG), make_mode(meaning=f"word is {endless}"))
    text = printed(report, width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert LONG in flat(text)
    assert endless in "".join(text.split())
    assert "…" not in text


def test_a_bar_shows_both_rates() -> None:
    assert Bar(0.5, 0.2).draw(10) == "▒▒███░░░░░"
    assert Bar(0.05, 0.0, 0.1).draw(10) == "█████░░░░░"
    assert Bar(1.0, 0.001).draw(10) == "▒█████████"
    assert Bar(0.91, 0.22).widths == (910, 220)


def test_bars_of_rare_failures_have_a_scale_of_their_own(plain: Report) -> None:
    rare = make_mode(n=200, errors=9, n_outside=1800, errors_outside=9)
    outline = ModeOutline(with_modes(plain, rare))
    assert outline.full == 0.05
    assert (
        outline.legend == "Bars: failure rate inside the rule; grey: elsewhere; the whole "
        "width is 5.0%."
    )


def test_a_mode_inside_another_says_so(plain: Report) -> None:
    inside = make_mode(2, n=100, errors=80, n_new=4, errors_new=1)
    mostly = make_mode(3, n=100, errors=80, n_new=40, errors_new=12)
    ((_, modes),) = ModeOutline(with_modes(plain, make_mode(), inside, mostly)).groups
    assert [one.nesting for one in modes] == [
        "",
        "Almost all inside mode 1: outside it, 1 of 4 fail.",
        "Mostly inside the modes before it: outside them, 12 of 40 fail.",
    ]


def test_a_part_of_a_mode_says_how_often_the_rest_of_it_fails(plain: Report) -> None:
    whole = make_mode(n=283, errors=260)
    part = make_mode(2, n=189, errors=189, n_new=0, errors_new=0)
    ((_, modes),) = ModeOutline(with_modes(plain, whole, part)).groups
    assert modes[1].nesting == "A part of mode 1; in the rest of it, 71 of 94 fail (76%)."


def test_modes_of_models_stand_apart_and_shared_ones_first(plain: Report) -> None:
    modes = [make_mode(i, outcome=o) for i, o in enumerate(["ada", "every model", "bert"], 1)]
    report = with_modes(plain, *modes)
    outline = ModeOutline(report)
    assert [name for name, _ in outline.groups] == ["every model", "ada", "bert"]
    assert outline.headline == "3 failure modes of 2 models"
    text = flat(printed(report))
    # the number is that of `groundfault show`, wherever the mode stands
    order = ["The mean of all models 2. digits is 2", "ada 1. digits is 1", "bert 3. digits is 3"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    page = Page(html(report))
    assert page.errors == []
    assert "The mean of all models" in page.text


def test_modes_of_the_mean_stand_below_the_table_of_models(plain: Report) -> None:
    modes = [make_mode(i, outcome=o) for i, o in enumerate(["ada", "every model", "every model"])]
    rows = [MatrixRow(rule=m.rule, meaning=m.meaning, n=m.n, cells=()) for m in modes[:2]]
    assert ModeOutline(with_modes(plain, *modes, matrix=tuple(rows))).averages == (
        "On average over the models, failures are also more frequent where digits is 2 or more "
        "(91%, elsewhere 22%)."
    )
    assert ModeOutline(with_modes(plain, *modes)).averages == ""


def test_many_models_do_not_fill_the_screen(plain: Report) -> None:
    modes = [make_mode(i, outcome=f"model{i // 3:02}") for i in range(60)]
    lines = printed(with_modes(plain, *modes)).splitlines()
    assert len(lines) <= 14
    assert "and 57 more" in lines
    assert "model19" in printed(with_modes(plain, *modes), why=True)


def test_findings_are_folded_below_modes_but_not_those_asked_for(plain: Report) -> None:
    report = with_modes(plain, make_mode())
    assert "steps > 9  " in printed(plain)
    assert "steps > 9  " in printed(report)
    assert report.manifest.own_rules
    by_default = structs.replace(report.manifest, own_rules=())
    assert "Finding " not in printed(structs.replace(report, manifest=by_default))
    page = Page(html(report))
    order = ["Confirmed findings", "Each failure mode makes two claims", "All candidates"]
    places = [page.text.index(part, page.text.index(order[0])) for part in order]
    assert places == sorted(places)


def test_a_suspicion_of_the_grader_stands_below_the_modes(plain: Report) -> None:
    suspects = tuple(replace(f, source="instrument") for f in plain.findings)
    grader = tuple(
        GraderEvidence(name=f.name, outcome=f.outcome, basis="answers that were cut off", lift=0.3)
        for f in suspects
    )
    report = structs.replace(with_modes(plain, make_mode()), findings=suspects, grader=grader)
    for text in (printed(report), Page(html(report)).text):
        assert text.index("1. digits is") < text.index("The grader may be at fault")
        # about answers, so no place where the model does better
        assert "Where it does better: " not in text


def test_where_it_does_better_is_listed_apart_and_not_counted(plain: Report) -> None:
    outline = Outline(plain)
    assert [f.name for f in outline.strengths] == ["f1"]
    assert all(group.lead.name != "f1" for group in outline.groups)
    confirmed = len(plain.confirmed)
    assert (
        f"{confirmed} confirmed ({confirmed - 1} with more failures, 1 with fewer),"
        in outline.tally
    )
    assert outline.headline.startswith(f"{confirmed - 1} confirmed finding")
    for text in (flat(printed(plain, why=True)), Page(html(plain)).text):
        assert "Where it does better: f1 (" in text
    assert "strengths" in [a.get("id") for a in Page(html(plain)).all("section")]


def test_cuts_of_one_column_are_one_line(plain: Report) -> None:
    (group,) = (g for g in Outline(plain).groups if g.lead.name.startswith("steps"))
    every = [group.lead, *group.others, *group.cuts]
    confirmed = {f.name for f in plain.confirmed if f.name.startswith("steps")}
    assert {f.name for f in every} == confirmed
    assert len(confirmed) > 2
    assert group.cuts
    page = Page(html(plain))
    assert "Other cuts of steps: " in page.text
    assert page.errors == []
    picture = next(d["aria-label"] for d in page.all("svg") if "by steps" in d["aria-label"])
    (figure,) = [draw_cuts(plain.findings, group.lead, "cuts")]
    assert figure is not None
    assert figure.alt == picture
    sizes = [int(n) for n in re.findall(r"of (\d+) at", figure.alt)]
    assert sum(sizes) == 400
    assert [part.split(" at ")[1] for part in figure.alt.rstrip(".").split("; ")] == [
        "≤ 5",
        "5 to 7",
        "7 to 9",
        "9 to 11",
        "> 11",
    ]


@pytest.mark.parametrize(
    ("rule", "column", "above", "inclusive"),
    [
        ("steps > 9", "steps", True, False),
        ('"a ""b""" >= -1.5e3', 'a "b"', True, True),
        ("steps < 2", "steps", False, True),
        ("steps <= 2", "steps", False, False),
    ],
)
def test_cuts_are_known_by_their_rules(
    rule: str, column: str, above: bool, inclusive: bool
) -> None:
    cut = read_cut(rule)
    assert cut is not None
    assert (cut.column, cut.above, cut.inclusive) == (column, above, inclusive)


@pytest.mark.parametrize("rule", ["f1", "n = 1", "n > 1 AND m > 2", "2 > n", "LENGTH(n) > 2"])
def test_other_rules_are_no_cuts(rule: str) -> None:
    assert read_cut(rule) is None


def examples() -> tuple[ModeExample, ...]:
    return tuple(
        ModeExample(
            id=f"{SCRIPT}{side}",
            side=side,
            texts={"prompt": f"say {text} NOT\n  twice", "answer": IMAGE},
            loss=loss,
        )
        for side, loss in (("failing", 1.0), ("passing", 0.0), ("near", 0.0))
        for text in HOSTILE
    )


@pytest.fixture(scope="module")
def hostile(plain: Report) -> Report:
    """Modes whose every text means mischief."""
    mode = make_mode(
        rule="prompt ~* '\\bnot\\b' AND \"<script>\" >= 2",
        meaning=f"prompt has {SCRIPT}",
        conditions=("prompt has not", f"{SCRIPT} is 2 or more"),
        alternatives=(Alternative(rule=IMAGE, meaning=IMAGE, overlap=0.96),),
        doses=tuple(
            DosePoint(column="<script>", low=v, high=v + w, n=20, errors=5 * v)
            for v, w in ((1, 0), (2, 0), (3, 2))
        ),
        sample=examples(),
        source=SCRIPT,
    )
    return with_modes(plain, mode, make_mode(2, meaning=IMAGE, sample=examples()))


def test_a_page_takes_nothing_of_a_mode_for_markup(hostile: Report) -> None:
    source = html(hostile)
    page = Page(source)
    assert page.errors == []
    assert page.all("script", "img") == []
    assert SCRIPT in page.text
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not set("\x1b\u202e") & set(page.text)
    levels = [int(tag[1]) for tag, _ in page.tags if tag in ("h1", "h2", "h3", "h4")]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    text = Page(MarkdownIt("commonmark").render(markdown(hostile)))
    assert text.all("script", "img", "a") == []
    assert SCRIPT in text.text
    assert "\x1b" not in printed(hostile)


def test_each_mode_shows_its_rule_numbers_and_examples(hostile: Report) -> None:
    page = Page(html(hostile))
    for part in (
        "prompt ~* '\\bnot\\b'",
        "82% to 96%",
        "p = 0.0001, corrected for the search of 23,000 rules",
        "p = 0.003, corrected in the same way, comparing only examples that match the same "
        "earlier modes",
        "(96% of the same examples): ",
        "Fails",
        "Passes, although it matches the rule",
        "Near misses: one condition does not match",
        "is at most 10%, over all rules that could have been listed",
        "validated by simulation",
    ):
        assert part in page.text, part
    assert len(page.all("mark")) == 12
    text = markdown(hostile)
    assert "**NOT**" in text


def test_what_all_prompts_begin_with_is_said_once(plain: Report) -> None:
    opening = "You are given a program. " * 5
    some = tuple(
        ModeExample(id=str(i), side="failing", texts={"prompt": f"{opening}task {i}\nend"})
        for i in range(3)
    )
    report = with_modes(plain, make_mode(sample=some))
    text = Page(html(report)).text
    # each of five times, and the beginning of one example on the first screen
    assert text.count("You are given") == 5 + 4
    assert "Every prompt begins" in text
    assert "[…] 2end" in text
    alike = tuple(structs.replace(e, texts={"prompt": opening}) for e in some)
    assert find_openings(alike) == {}
    assert find_openings(examples()) == {}


def test_doses_are_drawn_with_the_part_inside_marked() -> None:
    doses = tuple(
        DosePoint(column="digits", low=v, high=v, n=10, errors=e) for v, e in ((1, 1), (2, 9))
    )
    (figure,) = draw_doses(make_mode(2, doses=doses), "mode-1")
    assert figure.alt == "Failure rate by digits: 10% of 10 at 1; 90% of 10 at 2."
    assert figure.name == "mode-1-dose-1"
    assert "var(--bad" in figure.svg
    assert "var(--rest" in figure.svg
    assert draw_doses(make_mode(), "mode-1") == ()
    for column, low, high, label in (
        ("sent.day", 20260501, 20260630, "2026-05-01–2026-06-30"),
        ("tokens", 12_345, 12_349, "12345–12349"),
        ("share", 0.12345, 0.12346, "0.1235"),
    ):
        point = DosePoint(column=column, low=low, high=high, n=10, errors=1)
        (figure,) = draw_doses(make_mode(2, doses=(point,)), "mode-1")
        assert figure.alt == f"Failure rate by {column}: 10% of 10 at {label}."


def test_words_that_a_rule_names_are_highlighted() -> None:
    patterns = find_patterns("prompt ~* '\\b(not|never)\\b' AND task = 'add'")
    assert highlight("Do NOT, never!", patterns["prompt"]) == (
        "Do ",
        Highlight("NOT"),
        ", ",
        Highlight("never"),
        "!",
    )
    assert find_patterns("NOT prompt ~ 'x' AND n > 2 AND prompt ~ '(,[^,]*){2}'") == {}
    liked = find_patterns("prompt ILIKE '%a.b%' AND LOWER(prompt) LIKE '%c%'")
    assert liked == {"prompt": ("(?i)a\\.b", "(?i)c")}


def test_a_pattern_of_the_whole_text_highlights_nothing() -> None:
    text = "a text of more than forty characters, all of them"
    assert highlight(text, (r"^.*$",)) == (text,)
    assert highlight("all", (r"^.*$",)) == (Highlight("all"),)
    assert highlight("all", (r"(",)) == ("all",)


@given(st.text(), st.sampled_from([r"\w+", r"\p{Lu}", r"\d|a", "(?i)E", r"$"]))
def test_highlighting_keeps_every_character(text: str, pattern: str) -> None:
    assert "".join(map(str, highlight(text, (pattern,)))) == text


def test_a_match_is_highlighted_where_it_is_and_not_where_its_letters_stand_first() -> None:
    texts = pl.Series(["nothing is not", "not", "", None, "\ue000not\ue001 not", "aaa"])
    spans = find_spans(texts, r"\bnot\b")
    assert spans == [[(11, 14)], [(0, 3)], [], [], [(1, 4), (6, 9)], []]
    assert find_spans(texts, "a*")[-1] == [(0, 3)]
    assert find_spans(texts, "(?<=x)") == [[]] * 6


def test_every_class_of_rules_has_a_name_of_its_own() -> None:
    names = NAMES | SETS
    assert set(names) == set(SHARES) | set(CHANGE_SHARES)
    assert len(set(names.values())) == len(names)


def test_modes_that_other_rows_judged_say_so(plain: Report) -> None:
    report = with_modes(plain, make_mode(), searched=20_000)
    assert "20,000 rows drawn by their ids proposed" in ModeOutline(report).guarantee
    text = flat(markdown(report))
    assert "corrected, for equal failure rates" in text
    assert "without a holdout" not in text
