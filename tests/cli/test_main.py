"""Exit statuses: 1 belongs to gates; trouble is one line and 2, a signal is 128 and its number."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from groundfault.cli import main as door
from groundfault.cli.main import describe_end, main
from groundfault.errors import LedgerError

ROWS = [f"{i},{int(i % 3 == 0)},{'ab'[i % 2]}" for i in range(60)]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["id,error,lang", *ROWS]) + "\n")
    return path


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["groundfault", *map(str, words)])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@contextmanager
def standard_output(place: str | int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch, open(place, "w", encoding="utf-8") as stream:  # noqa: PTH123 - or a descriptor
        patch.setattr(sys, "stdout", stream)
        yield


def test_a_command_does_not_search_its_libraries_for_cycles() -> None:
    code = (
        "import atexit, gc, sys; from groundfault.cli.main import main; sys.argv[1:] = ['--help'];"
        "atexit.register(lambda: print(gc.get_freeze_count() > 10_000, gc.get_threshold()[0]));"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True 100000"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (LedgerError("a\n ledger"), 2, "error: a ledger"),
        (click.UsageError("no such option"), 2, "error: no such option"),
        (OSError(28, "No space left on device"), 2, "error: No space left on device"),
        (FileNotFoundError(2, "No such file", "x\n.csv"), 2, "error: No such file: x .csv"),
        (RecursionError(), 2, "error: the input is nested too deeply"),
        (MemoryError(), 2, "error: there is not enough memory for this"),
        (KeyboardInterrupt(), 130, "stopped"),
        (click.Abort(), 130, "stopped"),
        (BrokenPipeError(), 141, None),
        (ZeroDivisionError(), 2, None),
    ],
)
def test_no_error_ends_as_a_gate_that_failed(
    error: BaseException, status: int, line: str | None
) -> None:
    assert describe_end(error) == (status, line)


def test_a_file_in_place_of_a_command_is_told_which_commands_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "label", "mine.csv") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: No such command 'mine.csv': name one of ")
    assert " run, " in line
    assert line.endswith("(see groundfault label --help)")


@pytest.mark.parametrize(("word", "place"), [("sequential", "label"), ("study", "lab study")])
def test_a_command_of_02_is_told_its_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], word: str, place: str
) -> None:
    assert run(monkeypatch, word, "modes") == 2
    error = f"error: No such command '{word}': type groundfault {place}\n"
    assert capsys.readouterr().err == error
    assert run(monkeypatch, "--no-such-option", word) == 2
    assert "No such option" in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), ("case",), ("label",), ("lab",)])
def test_the_name_of_a_group_alone_prints_its_help_in_its_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert run(monkeypatch, *words) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == " ".join(("Usage: groundfault", *words, "[OPTIONS] COMMAND [ARGS]..."))
    assert {"Options:", "Commands:"} <= set(lines)


@pytest.mark.parametrize(
    "words", [("--help",), ("check", "--help"), ("check", "t.csv", "--outcome", "error")]
)
@pytest.mark.parametrize("to_json", [False, True])
def test_output_that_nobody_reads_or_that_has_no_room(
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    to_json: bool,
) -> None:
    words = (*words, *(["--json", "-"] if to_json and "t.csv" in words else []))
    reader, writer = os.pipe()
    os.close(reader)
    with standard_output(writer, monkeypatch):
        assert run(monkeypatch, *words) == 128 + signal.SIGPIPE
    assert capfd.readouterr().err == ""
    with standard_output("/dev/full", monkeypatch):
        assert run(monkeypatch, *words) == 2
    assert capfd.readouterr().err == "error: No space left on device\n"


def test_a_fault_of_our_own_is_2_with_its_traceback(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(door.cli, "invoke", fail)
    assert run(monkeypatch, "check", "t.csv", "--outcome", "error") == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-1].startswith("error: this is a fault of groundfault")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_is_128_and_its_number_and_leaves_nothing_behind(
    table: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    from groundfault.auditing.report import Report

    (table.parent / "report").mkdir()
    (table.parent / "report" / "report.json").write_text("old")
    before = signal.getsignal(number)
    if before is signal.SIG_IGN:
        pytest.skip("what started these tests ignores this signal, as nohup does, and so do we")
    # in the middle of writing, where most could be left behind
    monkeypatch.setattr(Report, "to_json", lambda *_: signal.raise_signal(number))
    words = ("audit", table, "--outcome", "error", "--id", "id", "--out", "report")
    assert run(monkeypatch, *words) == 128 + number
    assert signal.getsignal(number) is before
    assert [path.name for path in (table.parent / "report").iterdir()] == ["report.json"]
    assert (table.parent / "report" / "report.json").read_text() == "old"


def test_a_second_command_into_one_folder_is_refused_before_it_looks(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from groundfault.base.files import replace_folder

    words = ("audit", table, "--outcome", "error", "--id", "id", "--out", "report")
    ledger = table.parent / "ledger.db"
    with replace_folder(table.parent / "report"):
        assert run(monkeypatch, *words, "--ledger", ledger) == 2
    assert "another command is writing into report" in capsys.readouterr().err
    assert not ledger.exists()


def test_names_of_files_that_are_no_text_and_terminals_without_letters(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from groundfault.auditing.verification import verify

    odd = os.fsdecode(os.fsencode(table.parent) + b"/caf\xe9.csv")
    table.rename(odd)
    words = ("audit", odd, "--outcome", "error", "--id", "id", "--judge", "janus")
    # as where LANG=C is not taken for UTF-8
    with monkeypatch.context() as patch, open("ascii.txt", "w", encoding="ascii") as stream:  # noqa: PTH123
        patch.setattr(sys, "stdout", stream)
        assert run(monkeypatch, *words, "--out", "report", "--json", "out.json") == 0
    assert "caf\\xe9.csv" in Path("ascii.txt").read_text("ascii")
    assert json.loads(Path("out.json").read_text("utf-8"))["manifest"]["sources"] == [
        str(table.with_name("caf\\xe9.csv"))
    ]
    assert verify("report", ledger=None, evidence=odd).reproduces
