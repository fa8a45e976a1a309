"""Progress: a line now and then where no terminal is, with the time that is left."""

from __future__ import annotations

from itertools import count
from threading import Event

import pytest

from groundfault.cli import output
from groundfault.cli.output import TimeLeft, show_progress


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
