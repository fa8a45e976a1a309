"""Builds in a row: modes that are new, gone and growing; false alarms by their run length."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from commands import run_program
from hypothesis import given, strategies as st

from groundfault.auditing.history import add_build, list_first, list_trends, read_history
from groundfault.base.files import claim
from groundfault.errors import InputError, PlanError
from groundfault.stats.betting import detect_rise

COLUMNS = ("--id", "id", "--outcome", "error")


def build(place: Path, seed: int, n: int = 400, **rates: float) -> Path:
    """Audit fresh examples, of which those of a language fail at its rate, and others at 0.1."""
    rng = np.random.default_rng(seed)
    lang = rng.choice(["de", "en", "fr"], n)
    chance = np.full(n, 0.1)
    for name, rate in rates.items():
        chance[lang == name] = rate
    table = {"id": [f"{seed}-{i}" for i in range(n)], "lang": lang}
    table["error"] = (rng.random(n) < chance).astype(int)
    pl.DataFrame(table).write_csv(place / f"{seed}.csv")
    words = ("--no-ledger", "--out", str(place / str(seed)))
    ending = run_program("audit", str(place / f"{seed}.csv"), *COLUMNS, *words)
    assert ending.status == 0, ending.errors
    return place / str(seed)


def statuses(path: Path) -> dict[str, str]:
    return {one.meaning: one.status for one in list_trends(read_history(path))}


def test_modes_are_new_known_gone_and_growing(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    add_build(path, build(tmp_path, 1, de=0.5), name="monday")
    assert statuses(path) == {"all examples": "", "lang is de": "new"}
    add_build(path, build(tmp_path, 2, de=0.5))
    assert statuses(path)["lang is de"] == "known"
    add_build(path, build(tmp_path, 3, fr=0.5))
    assert statuses(path) == {"all examples": "", "lang is de": "gone", "lang is fr": "new"}
    add_build(path, build(tmp_path, 4, fr=0.5))
    assert statuses(path)["lang is de"] == ""
    add_build(path, build(tmp_path, 5, fr=0.85, n=900))
    assert statuses(path)["lang is fr"] == "growing"
    history = read_history(path)
    assert [one.name for one in history.builds] == ["monday", "2", "3", "4", "5"]
    # what was named once is counted in every table from then on
    table = pl.read_csv(tmp_path / "4.csv").filter(pl.col("lang") == "de")
    (counted,) = (one for one in history.builds[3].rules if one.meaning == "lang is de")
    assert (counted.n, counted.errors) == (len(table), table["error"].sum())


def test_a_mode_about_the_same_examples_in_other_words_is_known(tmp_path: Path) -> None:
    path, reports = tmp_path / "history.json", []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        words = rng.integers(0, 100, 900)
        error = rng.random(900) < np.where(words > 60 + 4 * seed, 0.7, 0.1)
        table = {"id": [f"{seed}-{i}" for i in range(900)], "words": words}
        pl.DataFrame({**table, "error": error.astype(int)}).write_csv(tmp_path / f"{seed}.csv")
        reports.append(tmp_path / str(seed))
        place, out = str(tmp_path / f"{seed}.csv"), str(reports[-1])
        run_program("audit", place, *COLUMNS, "--no-ledger", "--out", out)
    first, second = (add_build(path, report).builds[-1] for report in reports)
    assert first.rules[1].meaning == second.rules[1].meaning
    assert [one.meaning for one in second.rules if one.named] == [first.rules[1].meaning]
    assert len(second.rules) == 2


def test_a_report_counts_once(tmp_path: Path) -> None:
    path, report = tmp_path / "history.json", build(tmp_path, 1, de=0.5)
    assert add_build(path, report) == add_build(path, report) == read_history(path)
    assert len(read_history(path).builds) == 1


def test_two_builds_at_the_same_moment_do_not_overwrite_each_other(tmp_path: Path) -> None:
    history = tmp_path / "history.json"
    add_build(history, build(tmp_path, 1, de=0.5))
    before = history.read_bytes()
    late = build(tmp_path, 2, de=0.5)
    with claim(tmp_path, history), pytest.raises(InputError, match="another command is writing"):
        add_build(history, late)
    assert history.read_bytes() == before
    assert len(add_build(history, late).builds) == 2


def test_without_its_table_a_build_counts_only_what_the_report_has(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    add_build(path, build(tmp_path, 1, de=0.5))
    report = build(tmp_path, 2, fr=0.5)
    (tmp_path / "2.csv").unlink()
    history = add_build(path, report)
    assert "2.csv" in history.builds[1].note
    whole, german, _ = history.builds[1].rules
    assert (whole.n, german.n) == (400, None)


def test_the_gate_fails_on_what_grows_and_writes_a_page(tmp_path: Path) -> None:
    path, page = tmp_path / "h.json", tmp_path / "t.html"
    more = ("--history", str(path), "--fail-on", "kind = 'none'", "--trends", str(page))
    first = run_program("gate", str(build(tmp_path, 1, de=0.4)), *more)
    assert first.status == 0, first.errors
    assert "over 1 build: 0 growing, 1 new, 0 known, 0 gone" in first.output
    junit, markdown = tmp_path / "j.xml", tmp_path / "g.md"
    files = ("--junit", str(junit), "--markdown", str(markdown), "--build", "<b>")
    second = run_program("gate", str(build(tmp_path, 2, de=0.9)), *more, *files, "--json", "-")
    assert second.status == 1, second.errors
    trends = json.loads(second.output)["trends"]
    assert [(one["meaning"], one["status"]) for one in trends] == [
        ("all examples", "growing"),
        ("lang is de", "growing"),
    ]
    assert 'type="growing"' in junit.read_text()
    summary = markdown.read_text()
    assert summary.startswith("### Gate failed: failures are growing under 2 rules\n")
    assert "Growing: lang is de: 87% (111 of 127), limit 53%." in summary
    text = page.read_text()
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert "100 builds or more on average" in text
    # the stored verdict of the report alone still verifies
    stored = tmp_path / "gate.json"
    stored.write_text(second.output)
    assert run_program("verify", str(stored)).status == 0


COUNTS = '{"builds": [{"name": "1", "report": "a", "groundfault_version": "1", "rules": [%s]}]}'
ONE = '{"rule": "", "outcome": "", "meaning": "all", "n": 9, "errors": 3, "limit": 0.5}'


@pytest.mark.parametrize(
    "text",
    [
        *["", "[]", "{}x", '{"builds": 1}', '{"other": []}', "\xff"],
        '{"builds": [], "builds": []}',
        *(COUNTS % ONE.replace("9", n) for n in ("-9", "2", "null")),
        *(COUNTS % ONE.replace("3", errors) for errors in ("-3", "NaN", "1e999")),
        *(COUNTS % ONE.replace("0.5", limit) for limit in ("-0.5", "1.5", "NaN")),
    ],
)
def test_another_file_is_no_history(tmp_path: Path, text: str) -> None:
    path = tmp_path / "h.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="no history of builds"):
        read_history(path)
    path.write_text(COUNTS % ONE)
    assert read_history(path).builds[0].rules[0].rate == 1 / 3


def test_a_comparison_and_a_zero_run_length_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"{i},{m},{(i * 7 + (m == 'b')) % 3 == 0:d}\n" for i in range(90) for m in "ab")
    (tmp_path / "t.csv").write_text("id,model,error\n" + rows)
    words = ("--model-column", "model", "--compare", "a", "b", "--no-ledger")
    run_program("audit", str(tmp_path / "t.csv"), *COLUMNS, *words, "--out", str(tmp_path / "r"))
    with pytest.raises(InputError, match="compares two models"):
        add_build(tmp_path / "h.json", tmp_path / "r")
    assert not (tmp_path / "h.json").exists()
    with pytest.raises(PlanError, match="run_length"):
        list_trends(read_history(tmp_path / "h.json"), 0)
    ending = run_program("gate", str(tmp_path / "r"), "--trends", str(tmp_path / "p.html"))
    assert ending.status == 2
    assert "need --history" in ending.errors


# ------------------------------------------------------------------------------------- the monitor


def test_a_history_is_no_url(tmp_path: Path) -> None:
    report = str(build(tmp_path, 1))
    ending = run_program("gate", report, "--history", "https://ana:secret@example.org/h.json")
    assert ending.status == 2
    assert "download it" in ending.errors
    assert "secret" not in ending.errors + ending.output


def test_the_detector_is_the_recursion_of_its_definition() -> None:
    from groundfault.stats.betting import RISE_STAKES

    errors, sizes, limit = np.array([3.0, np.nan, 7.5]), np.array([10.0, np.nan, 12.0]), 0.3
    wealth = np.zeros(len(RISE_STAKES))
    for x, n in ((3, 10), (7.5, 12)):
        for k, stake in enumerate(RISE_STAKES):
            q = limit + (1 - limit) * stake
            ratio = (q / limit) ** x * ((1 - q) / (1 - limit)) ** (n - x)
            wealth[k] = (wealth[k] + 1) * ratio
    got = detect_rise(errors, sizes, limit)
    assert got[2] == pytest.approx(np.log(wealth.mean()))
    assert got[1] == got[0]


@given(
    st.floats(0.05, 0.9),
    st.lists(st.floats(0, 1), min_size=1, max_size=8),
)
def test_a_build_at_the_limit_is_a_fair_bet(limit: float, shares: list[float]) -> None:
    """E of the first step is at most 1, whatever the chances whose mean is the limit."""
    chances = np.array(shares) * limit / max(np.mean(shares), 1e-9)
    if chances.max() > 1:
        return
    sizes = len(chances)
    law = np.ones(1)
    for p in chances:
        law = np.convolve(law, [1 - p, p])
    steps = [
        np.exp(detect_rise(np.array([float(k)]), np.array([float(sizes)]), limit)[0])
        for k in range(sizes + 1)
    ]
    assert law @ steps <= 1 + 1e-9


@pytest.mark.parametrize("run_length", [10, 30])
def test_false_alarms_are_as_far_apart_as_stated(run_length: int) -> None:
    """With two rules at their limits, the mean run until any alarm is at least the stated one."""
    rng = np.random.default_rng(run_length)
    horizon, runs = 20 * run_length, 300
    ends = []
    for _ in range(runs):
        first = horizon
        for number, (limit, size) in enumerate([(0.3, 200), (0.5, 30)], 1):
            errors = rng.binomial(size, limit, horizon).astype(float)
            levels = detect_rise(errors, np.full(horizon, float(size)), limit)
            alarms = np.flatnonzero(levels >= np.log(run_length * number * (number + 1)))
            first = min(first, int(alarms[0]) + 1 if len(alarms) else horizon)
        ends.append(first)
    # cut at the horizon, the mean is too small, if anything
    assert np.mean(ends) + 3 * np.std(ends) / np.sqrt(runs) >= run_length


def test_a_shift_is_seen_within_a_few_builds() -> None:
    rng = np.random.default_rng(0)
    delays = []
    for _ in range(200):
        rates = np.r_[np.full(20, 0.25), np.full(30, 0.45)]
        errors = rng.binomial(60, rates).astype(float)
        levels = detect_rise(errors, np.full(50, 60.0), 0.3)
        alarms = np.flatnonzero(levels >= np.log(100 * 6))
        delays.append(alarms[0] - 19 if len(alarms) else 31)
    # 20 points above what it was, 15 above the limit, of 60 examples a build
    assert np.median(delays) <= 4
    assert np.mean(np.array(delays) <= 0) < 0.05


def test_rules_keep_their_order_and_first_limit(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    for seed in (1, 2):
        add_build(path, build(tmp_path, seed, de=0.5))
    first = list_first(read_history(path).builds)
    assert [one.meaning for one in first] == ["all examples", "lang is de"]
    assert all(one.limit is None for one in read_history(path).builds[1].rules)
    bars = [one.bar for one in list_trends(read_history(path))]
    assert np.exp(bars) == pytest.approx([200, 600])


def test_builds_without_a_mode_are_builds(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    for seed in (1, 2):
        add_build(path, build(tmp_path, seed))
    assert statuses(path) == {"all examples": ""}
