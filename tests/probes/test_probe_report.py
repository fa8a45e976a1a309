"""The report of probe runs: what is said, and how; hostile text stays text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pages import list_sentences, list_tables
from probe_rows import GRAMMAR, manifest, row

from groundfault.errors import InputError, PlanError
from groundfault.probes.review.reviewed_runs import MissedErrors
from groundfault.render.html import html
from groundfault.render.markdown import markdown
from groundfault.render.terminal import show
from groundfault.review import Resolution
from groundfault_lab.pages import probe_page, probe_tables
from groundfault_lab.pages.probe_page import make_page, make_review_section
from groundfault_lab.probes.summary import Summary

CONFIRMED = "confirmed_model_error"


def summary(
    result: dict[str, list[int]], *, status: Any = CONFIRMED, budget: int = 6, **changes: Any
) -> Summary:
    """Runs in which each policy has so many mismatches with each seed, all of one status."""
    rows = [
        row(
            q,
            f"t{q}|plain|none",
            "mismatch" if q <= count else "match",
            policy=policy,
            seed=seed,
            **changes,
        )
        for policy, counts in result.items()
        for seed, count in enumerate(counts)
        for q in range(1, budget + 1)
    ]
    statuses = {r.id: status for r in rows if r.signal == "mismatch"} if status else {}
    return Summary(tuple(rows), statuses, GRAMMAR, manifest(50, budget))


def test_without_review_nothing_is_confirmed_and_that_is_said_first() -> None:
    created = make_page(summary({"gp": [2, 1], "uniform": [1, 0]}, status=None), "runs")
    assert created.verdict == "No model error is confirmed; 2 prompt keys open"
    assert created.sections[0].title == "What is still open"
    message = " ".join(list_sentences(created.sections[0]))
    assert "4 rows routed to review are unaudited (gp 3, uniform 1)" in message
    assert "the unique audited keys are 0 now and at most 2" in message


def test_few_seeds_are_no_evidence_and_the_report_says_how_many_would_be() -> None:
    message = " ".join(
        probe_page.draw_conclusions(summary({"gp": [5, 5, 4], "uniform": [1, 0, 0]}))
    )
    assert (
        "no matched-budget evidence that gp finds more unique audited prompt keys than uniform: "
        "+4.33 a seed" in message
    )
    assert "3 seeds" in message
    assert "the smallest p they allow is 0.250. At least 6 are needed" in message


def test_a_difference_that_the_seeds_show_is_said() -> None:
    seeds = 7
    more = summary({"gp": [5, 4] * 3 + [5], "uniform": [1] * seeds})
    assert "With the same budget gp finds more unique audited prompt keys" in " ".join(
        probe_page.draw_conclusions(more)
    )
    fewer = summary({"gp": [1] * seeds, "uniform": [5, 4] * 3 + [5]})
    assert "gp finds fewer" in " ".join(probe_page.draw_conclusions(fewer))
    assert probe_tables.compare_briefly(more, "gp", "m") == "gp finds more"


def test_conclusions_are_provisional_while_keys_are_open() -> None:
    created = summary({"gp": [2, 1], "uniform": [1, 1]}, status="disputed")
    message = " ".join(probe_page.draw_conclusions(created))
    assert "This may change while prompt keys are open" in message
    assert "no evidence for gp; keys open" in {
        cell
        for section in make_page(created, "r").sections
        for x in list_tables(section)
        for r in x.rows
        for cell in r
    }


def test_unmatched_policies_are_not_concluded_about() -> None:
    whole = summary({"gp": [2, 1], "uniform": [1, 1]})
    short = Summary(whole.rows[1:], whole.statuses, GRAMMAR, whole.manifest)
    assert "cannot be compared with matched budgets: gp, seed 0, made 5 of 6 queries" in " ".join(
        probe_page.draw_conclusions(short)
    )
    assert "1 run is not finished, such as m, gp, seed 0" in " ".join(
        probe_page.list_open_points(short)
    )


def test_every_table_of_the_paper_has_its_form() -> None:
    created = make_page(summary({"caps, repeats": [2, 1], "uniform, repeats": [1, 0]}), "runs")
    notes = " ".join(table.note for section in created.sections for table in list_tables(section))
    for tables in (
        "Table 2 ",
        "Table 5 ",
        "Table 6 ",
        "Tables 7, 9 and 11 ",
        "Tables 8, 10 and 12 ",
    ):
        assert f"The paper's {tables}in form" in notes
    result = {
        table.caption: table for section in created.sections for table in list_tables(section)
    }
    assert result["Matched comparison (audited)"].rows[0][:5] == (
        "caps, repeats",
        "24",
        "3 / 1",
        "2 / 1",
        "1 / 1 / 0",
    )
    assert result["Routing signals (not audited)"].rows[0][1:4] == ("12", "3", "25%")
    assert result["Best scores, seed by seed (routing signal)"].rows[0][1:] == (
        "2",
        "1.0000",
        "0.5000",
        "+0.5000",
        "1",
        "0",
        "1",
    )
    rates = result["How often prompts fail, where that can be told"].rows
    assert "not available: chances are neither equal nor known" in rates[0][-1]
    assert created.sections[1].content[-1].figures[0].svg.startswith("<svg")


def test_an_adaptive_yield_is_never_called_a_rate() -> None:
    created = make_page(summary({"gp": [2, 1], "uniform": [1, 0]}), "runs")
    rates = next(
        t for s in created.sections for t in list_tables(s) if t.caption.startswith("How often")
    )
    assert [r[1] for r in rates.rows] == ["–", "8.3%"]


def test_hostile_names_are_escaped() -> None:
    hostile = "<script>alert(1)</script>|`"
    created = make_page(summary({"gp": [1], "uniform": [1]}, model=hostile), hostile)
    assert "<script>" not in html(created)
    assert "<script>" not in markdown(created)
    assert "http" not in html(created).replace("http-equiv", "").replace("http://www.w3.org", "")


def test_terminal_json_and_control() -> None:
    from io import StringIO

    from rich.console import Console

    created = summary({"gp": [2, 1], "uniform": [1, 0], "stratified": [0, 0]})
    out = Console(file=StringIO(), width=100)
    show(make_page(created, "runs"), out)
    assert "Matched comparison" in out.file.getvalue()  # type: ignore[attr-defined]
    content = json.loads(json.dumps(created.tables.to_dict(), allow_nan=False))
    assert content["control"] == "stratified"
    assert {tuple(each["policies"]) for each in content["shared_keys"]} == {
        ("gp", "stratified"),
        ("gp", "uniform"),
        ("stratified", "uniform"),
    }
    other = Summary(created.rows, created.statuses, GRAMMAR, created.manifest, "uniform")
    assert {d.control for d in other.tables.differences} == {"uniform"}
    with pytest.raises(PlanError, match="no run of 'caps'"):
        Summary(created.rows, created.statuses, GRAMMAR, created.manifest, "caps").control  # noqa: B018
    with pytest.raises(InputError, match="lacks budget"):
        Summary(created.rows, created.statuses, GRAMMAR, {}).results  # noqa: B018


def test_several_models_are_told_apart_and_pooled_by_key() -> None:
    one, two = (summary({"gp": [2, 1], "uniform": [1, 0]}, model=name) for name in ("a", "b"))
    both = Summary((*one.rows, *two.rows), {**one.statuses, **two.statuses}, GRAMMAR, one.manifest)
    created = make_page(both, "runs")
    first = next(
        t for s in created.sections for t in list_tables(s) if t.caption.startswith("Matched")
    )
    assert [(r[0], r[3], r[5]) for r in first.rows] == [
        ("a", "3 / 1", "1 / 1 / 0"),
        ("b", "3 / 1", "1 / 1 / 0"),
        ("all models", "6 / 2", "1 / 1 / 0"),
    ]


def test_what_controls_and_reviewers_say() -> None:
    resolutions = {
        "a": Resolution("settled", "model_error", 2, True),
        "b": Resolution("adjudicated", "no_error", 2, False),
        "c": Resolution("waiting", None, 1, False),
    }
    section = make_review_section(resolutions, {}, MissedErrors(40, 4, 4, 1, 0.25, 0.05, 0.7))
    message = " ".join(list_sentences(section))
    assert (
        "3 items reviewed: 1 settled by reviewers, 1 by an adjudicator, 0 disputed, 1 waiting for "
        "more" in message
    )
    assert (
        "4 were reviewed unseen among the others: 1 are model errors all the same (25%, 95% "
        "interval 5.0% to" in message
    )
    assert "1 item rests on decisions made after unblinding" in message
    assert "their agreement is not known" in message
