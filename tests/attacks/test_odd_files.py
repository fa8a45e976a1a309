"""Odd and damaged files: each is audited, or refused in one line that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from commands import run_program

ROWS = range(60)
HEAD = "id,x,error\n"


def csv(make: Callable[[int], object], head: str = HEAD, rows: range = ROWS) -> bytes:
    """A table whose second column is made of the number of the row."""
    return (head + "".join(f"q{i},{make(i)},{i % 2}\n" for i in rows)).encode()


def jsonl(make: Callable[[int], str], key: str = "x") -> bytes:
    lines = (f'{{"id": "q{i}", "{key}": {make(i)}, "error": {i % 2}}}\n' for i in ROWS)
    return "".join(lines).encode()


def column(values: Any, name: str = "x") -> Callable[[Path], None]:
    ids, errors = [f"q{i}" for i in ROWS], [i % 2 for i in ROWS]
    table = pa.table([pa.array(ids), values, pa.array(errors)], names=["id", name, "error"])
    return lambda place: parquet.write_table(table, place)


PLAIN = csv(lambda i: i % 3)
READ: dict[str, bytes | Callable[[Path], None]] = {
    "zeros.csv": PLAIN.replace(b"q3", b"q\x003"),
    "lines.csv": PLAIN.replace(b"\n", b"\r\n"),
    "nameless.csv": csv(lambda i: i % 3, "id,,error\n"),
    "blank.csv": csv(lambda i: i % 3, "id, ,error\n"),
    "colour.csv": csv(lambda i: i % 3, "id,\x1b[31mred\x1b[0m,error\n"),
    "turned.csv": csv(lambda i: i % 3, "id,\u202egnp.exe,error\n"),
    "long_numbers.csv": csv(lambda i: 10**30 + i),
    "infinite.csv": csv(lambda i: ["inf", "-inf", "nan", "1e400"][i % 4]),
    "hexadecimal.csv": csv(lambda i: f"0x1p{i}"),
    "last_moment.csv": csv(lambda _: "9999-12-31T23:59:60Z"),
    "no_day.csv": csv(lambda i: f"0000-00-{i % 30:02d}"),
    "pattern.csv": csv(lambda _: '"' + "a" * 200 + '! (((("'),
    "long_word.csv": csv(lambda i: "x" * 100_000 + str(i)),
    "accents.csv": csv(lambda _: "a" + "\u0301" * 3_000),
    "joined.csv": csv(lambda i: "\U0001f469" + "\u200d" * i),
    "half.jsonl": jsonl(lambda _: '"\\ud83d"'),
    "mixed.jsonl": jsonl(lambda i: ["1", '"a"', '[1, {"b": 2}]', "null"][i % 4]),
    "deep.jsonl": jsonl(lambda _: "[" * 60 + "]" * 60),
    "zero_key.jsonl": jsonl(lambda i: str(i % 3), "a\\u0000b"),
    "prototype.jsonl": jsonl(lambda i: str(i % 3), "__proto__"),
    "map.parquet": column(pa.array([[("a", 1)]] * 60, pa.map_(pa.string(), pa.int64()))),
    "nanoseconds.parquet": column(pa.array([2**62] * 60, pa.timestamp("ns"))),
    "times.parquet": column(pa.array([1] * 60, pa.time64("ns"))),
    "far_days.parquet": column(pa.array([2**31 - 1 - i for i in ROWS], pa.date32())),
    "far_moments.parquet": column(pa.array([2**61 - i for i in ROWS], pa.timestamp("ms"))),
    "early_moments.parquet": column(pa.array([i - 2**61 for i in ROWS], pa.timestamp("us"))),
    "decimal.parquet": column(pa.array(ROWS).cast(pa.decimal128(38, 10))),
    "bytes.parquet": column(pa.array([b"\xff\xfe"] * 60)),
    "nested.parquet": column(pa.array([[[[[i]]]] for i in ROWS])),
    "nameless.parquet": column(pa.array([i % 3 for i in ROWS]), ""),
    "short.parquet": column(pa.array(np.arange(60, dtype=np.float16))),
    "coded.parquet": column(pa.array(["a", None] * 30).dictionary_encode()),
}
REFUSED: dict[str, tuple[bytes | Callable[[Path], None], str]] = {
    "wide.csv": (PLAIN.decode().encode("utf-16"), "is UTF-16 text; convert it first"),
    "old_lines.csv": (PLAIN.replace(b"\n", b"\r"), "two columns named"),
    "open_quote.csv": (PLAIN.replace(b"q0", b'"q0'), "cannot be read as a table of kind csv"),
    "columns.csv": (b",".join(b"c%d" % i for i in range(20_000)) + b"\n", "has no"),
    "twice.csv": (csv(lambda i: i, "id,id,error\n"), "has two columns named 'id'"),
    "ragged.csv": (PLAIN + b"q98,1,0,5\n", "more columns than its first; delete"),
    "head.csv": (HEAD.encode(), "has no rows"),
    "accent_twice.csv": (
        b"id,error\n" + "\u00e9,0\ne\u0301,1\n\u00e9,1\n".encode(),
        "share their key",
    ),
    "formula.csv": (b"id,error\n" + b"a,=1\nb,+0\n" * 9, "only you know which"),
    "page.csv": (b"<html><body>404</body></html>", "has no rows"),
    "archive.csv": (b"PK\x03\x04aaaa", "has no rows"),
    "arrow.csv": (lambda p: pl.DataFrame({"id": ["a"], "error": [1]}).write_ipc(p), "is not UTF-8"),
    "digits.jsonl": (jsonl(lambda _: "9" * 400), "int value too large"),
    "exponent.jsonl": (jsonl(lambda _: "1e999999999"), "line 1 is not laid out as expected"),
    "cut.jsonl": (jsonl(lambda i: str(i))[:-9], "is not JSON, or is cut short"),
    "lists.jsonl": (b"[1, 2]\n" * 30, "is not laid out as expected"),
    "texts.jsonl": (b'"abc"\n' * 30, "is not laid out as expected"),
    "signs.parquet": (b"PAR1" + b"x" * 100 + b"PAR1", "is damaged or cut short"),
    "empty.parquet": (b"", "is empty"),
    "link.csv": (lambda p: p.symlink_to("/etc/passwd"), "cannot be read as a table"),
    "folder.csv": (Path.mkdir, "has no CSV, TSV, JSON, JSONL, Parquet or Arrow file"),
}
AUDIT = "--id id --outcome error --no-ledger --out report"


def make(place: Path, content: bytes | Callable[[Path], None]) -> None:
    if callable(content):
        content(place)
    else:
        place.write_bytes(content)


@pytest.mark.parametrize("name", READ)
def test_what_is_odd_is_audited_and_obeyed_by_no_terminal(name: str, tmp_path: Path) -> None:
    make(tmp_path / name, READ[name])
    status, output, errors = run_program("audit", name, *AUDIT.split(), folder=tmp_path)
    assert status == 0, errors
    pages = [path.read_text() for path in (tmp_path / "report").glob("report.[hm]*")]
    for text in (output, errors, *pages):
        assert "\x1b[31m" not in text
        assert "\u202e" not in text


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    content, words = REFUSED[name]
    make(tmp_path / name, content)
    status, _, errors = run_program("audit", name, *AUDIT.split(), folder=tmp_path)
    assert status == 2
    (line,) = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert words in line
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('ledger = "postgresql://127.0.0.1:9/x"', "ledger names a server"),
        ('ledger = "postgresql+psycopg://me:secret@host/x"', "ledger names a server"),
        ('workers = "dask://127.0.0.1:9"', "there is no setting 'workers'"),
        ('command = "touch stolen"', "there is no setting 'command'"),
        ('out = "/etc"', "there is no setting 'out'"),
        ('outcome = ["a", "b"]', "one value is expected"),
        ("alpha = nan", "alpha"),
        ("[outcome]", "one value is expected"),
        ("outcome = 1\noutcome = 2", "is not valid TOML"),
    ],
)
def test_a_settings_file_that_came_with_data_names_no_server_and_no_program(
    settings: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_bytes(PLAIN)
    (tmp_path / "groundfault.toml").write_text(settings)
    ending = run_program("audit", "t.csv", "--outcome", "error", "--id", "id", folder=tmp_path)
    assert ending.status == 2, ending
    assert words in ending.errors
    assert "secret" not in ending.errors
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "groundfault.toml"}
