"""Hostile logs from the shell: one line, exit status 2, nothing written, little memory."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard
from click.testing import CliRunner
from commands import run_program

from groundfault import Evidence, InputError
from groundfault.cli.main import cli, main

HEADER = b'{"eval":{"task":"t","model":"m"}}'
SAMPLE = json.dumps({"id": "a", "epoch": 1, "scores": {"match": {"value": "C"}}}).encode()
MAP = '[columns]\nexample_id = "doc_id"\nvalue = "acc"\n'
EVIL = "\x1b[31m\x1b]0;x\x07[bold red]x[/]<script>alert(1)</script>\u202e\x9b2J"


def archive(path: Path, entries: list[tuple[str, bytes, int]], *, overlap: int = 1) -> None:
    """A ZIP of zstd entries of declared sizes; ``overlap`` names for the data of the last."""
    out, directory, count = bytearray(), bytearray(), 0
    for i, (name, data, claimed) in enumerate(entries):
        packed, crc, offset = zstandard.compress(data), zlib.crc32(data), len(out)
        sizes = (crc, len(packed), claimed)
        out += (
            struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 63, 0, 93, 0, 0, *sizes, len(name), 0)
            + name.encode()
            + packed
        )
        for j in range(overlap if i == len(entries) - 1 else 1):
            name_bytes = name.replace("0_epoch", f"{j}_epoch").encode()
            fixed = (
                b"PK\x01\x02",
                63,
                63,
                0,
                93,
                0,
                0,
                *sizes,
                len(name_bytes),
                0,
                0,
                0,
                0,
                0,
                offset,
            )
            directory += struct.pack("<4sHHHHHHIIIHHHHHII", *fixed) + name_bytes
            count += 1
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(out), 0)
    path.write_bytes(out + directory + end)


def zstd(
    data: bytes, name: str = "samples/0_epoch_1.json", claimed: int | None = None, **more: Any
) -> Callable[..., None]:
    entries = [
        ("header.json", HEADER, len(HEADER)),
        (name, data, len(data) if claimed is None else claimed),
    ]
    return lambda path: archive(path, entries, **more)


def deflate(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as compressor:
        compressor.writestr("header.json", HEADER)
        compressor.writestr("samples/0_epoch_1.json", b" " * (1 << 20))
    path.write_bytes(
        path.read_bytes().replace(struct.pack("<I", 1 << 20), struct.pack("<I", 500 << 20))
    )


def sparse(start: bytes, size: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with path.open("wb") as stream:
            stream.write(start)
            stream.truncate(size)

    return make


def text(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


DEEP = b"[" * 100_000 + b"]" * 100_000
INSPECT = (
    b'{"eval":{"task_id":"","run_id":"","created":"","dataset":{},"task":"t","model":"m"},'
    b'"samples":'
)
LINE = b'{"doc_id":1,"doc":{},"resps":["'

HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut.eval": (text(b"PK\x03\x04 and then the disk was full"), "is cut short"),
    "bomb.eval": (deflate, "claim to hold"),
    "zstd.eval": (zstd(b" " * (300 << 20)), "claim to hold"),
    "liar.eval": (zstd(b" " * (1 << 20), claimed=100), "length or checksum is wrong"),
    "overlap.eval": (zstd(os.urandom(100_000), overlap=50), "claim to hold"),
    "out.eval": (zstd(SAMPLE, name="../../tmp/samples/0_epoch_1.json"), "leads out of the archive"),
    "root.eval": (zstd(SAMPLE, name="/tmp/samples/0_epoch_1.json"), "leads out of the archive"),
    "long.jsonl": (sparse(LINE, 1 << 30), "line 1 is longer than"),
    "long.json": (sparse(INSPECT, 3 << 30), "larger than 2,147,483,648 bytes"),
    "deep.jsonl": (text(LINE[:-2] + DEEP + b"}"), "nested too deeply"),
    "deep.json": (
        text(INSPECT + b'[{"id":1,"metadata":{"a":' + DEEP + b"}}]}"),
        "nested too deeply",
    ),
    "latin.json": (text(INSPECT + b'[{"id":"\xe9"}]}'), "not UTF-8"),
    "wide.json": (text("\ufeff{}".encode("utf-16-le")), "UTF-16"),
    "empty.eval": (text(b""), "is empty"),
    "pipe.eval": (os.mkfifo, "neither a file nor a folder"),
    "folder.eval": (Path.mkdir, "no log of a known tool"),
    "loop.eval": (lambda path: path.symlink_to(path), "does not exist"),
}


def require_refusal(
    folder: Path, *words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """What the command says, in this process, as `main` would print it."""
    before = sorted(folder.rglob("*"))
    monkeypatch.setattr(sys, "argv", ["groundfault", *words])
    began = time.process_time()
    with pytest.raises(SystemExit) as result:
        main()
    assert result.value.code == 2
    assert time.process_time() - began < 5
    message = capsys.readouterr()
    assert message.out == ""
    assert message.err.count("\n") == 1
    assert sorted(folder.rglob("*")) == before
    return message.err


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_log_is_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, message = HOSTILE[name]
    make(tmp_path / name)
    out = str(tmp_path / "out")
    assert message in require_refusal(
        tmp_path, "import", str(tmp_path / name), "-o", out, capsys=capsys, monkeypatch=monkeypatch
    )


@pytest.mark.parametrize(
    "name", ["long.jsonl", "long.csv", "pipe.jsonl", "empty.csv", "half.jsonl", "huge.jsonl"]
)
def test_a_hostile_table_is_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By --map: tables are read by another library, which would take a line of any length."""
    huge = b'{"doc_id":"a","acc":1}\n{"doc_id":"b","acc":%s}\n' % (b"9" * 400)
    paths: dict[str, tuple[Callable[[Path], None], str]] = {
        "long.jsonl": (sparse(LINE, 1 << 30), "a line longer than"),
        "long.csv": (sparse(b"doc_id,acc\n", 1 << 30), "a line longer than"),
        "pipe.jsonl": (os.mkfifo, "neither a file nor a folder"),
        "empty.csv": (text(b""), "is empty"),
        "half.jsonl": (text(b'{"doc_id":"a","acc":1}\n{"doc_id":"b","ac'), "line 2"),
        "huge.jsonl": (text(huge), "cannot be read"),
    }
    make, message = paths[name]
    make(tmp_path / name)
    (tmp_path / "map.toml").write_text(MAP)
    words = (
        "import",
        str(tmp_path / name),
        "--map",
        str(tmp_path / "map.toml"),
        "-o",
        str(tmp_path / "out"),
    )
    assert message in require_refusal(tmp_path, *words, capsys=capsys, monkeypatch=monkeypatch)


def test_numbers_that_are_none_are_not_taken_for_scores(tmp_path: Path) -> None:
    """NaN as Python writes it is no failure: whoever maps the table says what it is."""
    (tmp_path / "a.jsonl").write_text(
        '{"doc_id":"a","acc":1}\n{"doc_id":"b","acc":NaN}\n{"doc_id":"c","acc":0}\n'
    )
    (tmp_path / "map.toml").write_text(MAP)
    words = ["import", f"{tmp_path}/a.jsonl", "--map", f"{tmp_path}/map.toml", "--json"]
    with pytest.raises(InputError, match=r"value 'NaN' \(1 in all\) is not a number"):
        CliRunner().invoke(cli, words, catch_exceptions=False)
    (tmp_path / "map.toml").write_text(MAP + '[statuses]\nNaN = "missing"\n')
    counts = json.loads(CliRunner().invoke(cli, words).output)["statuses"]
    assert (counts["scored"], counts["missing"]) == (2, 1)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_bracket_in_a_name_is_no_pattern(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model[8b]*.{suffix}"
    table = pl.DataFrame({"doc_id": ["a", "b"], "acc": [1.0, 0.0]})
    {"csv": table.write_csv, "jsonl": table.write_ndjson, "parquet": table.write_parquet}[suffix](
        path
    )
    (tmp_path / "map.toml").write_text(MAP)
    assert len(Evidence.from_logs(path, map=tmp_path / "map.toml")) == 2
    table.rename({"doc_id": "example_id", "acc": "value"}).write_parquet(
        tmp_path / "log[1].parquet"
    )
    assert len(Evidence.from_logs(tmp_path / "log[1].parquet")) == 2


def evil(folder: Path) -> None:
    rows = [
        {
            "example_id": f"{EVIL}{i}",
            "model": f"{EVIL}m",
            "scorer": EVIL,
            "value": int(i % 3 > 0),
            "task": EVIL,
        }
        | {"prompt": f"{EVIL}{i}", "response": EVIL, f"level{EVIL}": f"{EVIL}{i % 4}", "n": i % 50}
        for i in range(200)
    ]
    pl.DataFrame(rows).write_parquet(folder / "[bold]\x1b[31mlog[.parquet")


def test_nothing_from_a_log_steers_the_terminal_or_the_page(tmp_path: Path) -> None:
    evil(tmp_path)
    for words in (
        ["import", "."],
        ["import", ".", "--scorer", "none"],
        ["audit", ".", "--no-ledger", "--out", "report"],
    ):
        end = run_program(*words, folder=tmp_path)
        assert "Traceback" not in end.errors
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", end.output + end.errors)
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<script>alert(1)" not in page
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", page)


def test_progress_takes_names_for_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file called [/] is no mark-up, and its escapes reach no terminal."""
    from groundfault.cli.output import show_progress

    monkeypatch.setattr("rich.console.Console.is_terminal", property(lambda _: True))
    with show_progress(quiet=False) as progress:
        progress(f"reading log 1 of 1: [/]{EVIL}")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_import_that_is_stopped_leaves_no_half_of_a_folder(
    tmp_path: Path, how: signal.Signals
) -> None:
    """Stopped in the middle of writing, as far as a program can be."""
    pl.DataFrame({"example_id": ["a", "b"], "value": [1.0, 0.0]}).write_parquet(
        tmp_path / "a.parquet"
    )
    script = (
        "import os, signal, sys; from groundfault.readers import importing; from "
        "groundfault.cli.main import main\n"
        "write = importing.write_text\n"
        f"importing.write_text = lambda *a: (write(*a), os.kill(os.getpid(), {int(how)}))\n"
        "sys.argv = ['groundfault', 'import', 'a.parquet', '-o', 'out']; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode in (130, -signal.SIGKILL)
    if how == signal.SIGINT:
        assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]
        assert result.stderr.split() == ["stopped"]
    else:
        assert [p for p in (tmp_path / "out").iterdir() if not p.name.startswith(".")] == []
