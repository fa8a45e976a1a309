"""Progress: a line now and then where no terminal is, with the time that is left."""

from __future__ import annotations

import warnings
from itertools import count
from threading import Event

import numpy as np
import polars as pl
import pytest

from groundfault import Evidence, audit
from groundfault.cli import output
from groundfault.cli.output import TimeLeft, echo_warnings, show_progress


def test_a_step_that_counts_gets_an_estimate_and_others_stay_as_they_are() -> None:
    estimate = TimeLeft(count(0, 60).__next__)
    messages = [estimate(f"fit: {n:,} of 1,200") for n in (0, 600, 1000, 1200)]
    assert messages[0] == "fit: 0 of 1,200"
    assert messages[1] == "fit: 600 of 1,200, about 60 s left"
    assert messages[2] == "fit: 1,000 of 1,200, about 24 s left"
    assert messages[3] == "fit: 1,200 of 1,200"
    assert estimate("another: 1 of 3") == "another: 1 of 3"
    assert estimate("writing the report") == "writing the report"


def test_a_step_that_lasts_is_written_again_with_its_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = Event()
    monkeypatch.setattr(output, "_SILENT", 0.001)
    monkeypatch.setattr(output, "monotonic", count(0, 20).__next__)
    with output._repeat_step(lambda text: written.set() if "so far" in text else None) as progress:
        progress("looking for failure modes")
        assert written.wait(60)
    written.clear()
    # and no more once the command has ended
    assert not written.wait(0.05)
    with show_progress() as progress:
        progress("looking for failure modes")
        while "looking for failure modes, " not in (text := capsys.readouterr().err):
            pass
    assert "s so far" in text


def test_the_search_counts_its_passes_over_all_models() -> None:
    rng, n = np.random.default_rng(0), 400
    columns = {f"c{i}": rng.random(n) < 0.3 for i in range(6)}
    fails = rng.random((2, n)) < np.where(columns["c0"], 0.7, 0.1)
    rows = {"id": [*range(n)] * 2, "model": ["a"] * n + ["b"] * n, "error": fails.ravel()}
    table = pl.DataFrame(rows | {c: np.tile(v, 2) for c, v in columns.items()})
    evidence = Evidence.from_table(table, id="id", model="model", outcome="error")
    messages: list[str] = []
    audit(evidence, ledger=False, progress=messages.append)
    passes = [one for one in messages if "pass" in one]
    # the mean of both, then each
    starts = [f"looking for failure modes: pass {n} of 36" for n in (0, 12, 24)]
    assert [one for one in passes if one in starts] == starts
    counts = [int(one.split()[5]) for one in passes]
    assert counts == sorted(counts)
    estimate = TimeLeft(count(0, 10).__next__)
    assert estimate(passes[0]) == passes[0]
    assert estimate(passes[1]).endswith("about 6 min left")


def test_a_long_command_writes_lines_into_a_log_and_a_short_one_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = count(0, 2)
    monkeypatch.setattr(output, "monotonic", clock.__next__)
    with show_progress() as progress:
        progress("reading")
    assert capsys.readouterr().err == ""
    with show_progress() as progress:
        for n in range(9):
            progress(f"step: {n} of 9")
    lines = capsys.readouterr().err.splitlines()
    assert 1 < len(lines) < 9
    assert all("of 9" in line for line in lines)
    with show_progress(quiet=True) as progress:
        progress("reading")
    assert capsys.readouterr().err == ""


def test_a_note_is_printed_once_when_it_arises(capsys: pytest.CaptureFixture[str]) -> None:
    with echo_warnings():
        for _ in range(2):
            warnings.warn("a column is left out", stacklevel=1)
        assert capsys.readouterr().err == "note: a column is left out\n"
