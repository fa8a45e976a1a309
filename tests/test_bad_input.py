"""Bad input: one clear line, exit status 2, no traceback, nothing written."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from commands import run_program

ROWS = 60


def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "id": [f"i{i:02d}" for i in range(ROWS)],
            "error": [i % 3 == 0 for i in range(ROWS)],
            "words": [(7 * i) % 50 for i in range(ROWS)],
            "lang": [("de", "en")[i % 2] for i in range(ROWS)],
        }
    ).with_columns(pl.col("error").cast(pl.Int64))


def require_refusal(folder: Path, *words: str) -> str:
    """Run the real command in a folder of its own; give back what it said."""
    before = sorted(folder.rglob("*"))
    status, output, errors = run_program(*words, folder=folder)
    assert status == 2, output + errors
    assert "Traceback" not in errors
    assert output == ""
    assert sorted(folder.rglob("*")) == before
    return errors.strip()


def with_outcome(value: object) -> pl.DataFrame:
    values = [*table()["error"].to_list()[:-1], value]
    return table().with_columns(pl.Series("error", values, strict=False))


TABLES = {
    "outcome outside [0, 1]": (with_outcome(2), "not in [0, 1]"),
    "NaN": (
        with_outcome(float("nan")).with_columns(pl.col("error").cast(pl.Float64)),
        "--null-outcome",
    ),
    "empty outcome": (with_outcome(None), "--null-outcome"),
    "text": (table().with_columns(pl.lit("maybe").alias("error")), "'maybe'"),
    "duplicate ids": (
        table().with_columns(pl.lit("same").alias("id")),
        "--model-column or --repeat",
    ),
    "no rows": (table().head(0), "no rows"),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str, tmp_path: Path) -> None:
    frame, expected = TABLES[name]
    frame.write_parquet(tmp_path / "t.parquet")
    message = require_refusal(tmp_path, "audit", "t.parquet", "--id", "id", "--outcome", "error")
    assert expected in message
    assert len(message.splitlines()) == 1


FILES = {
    "empty.csv": (b"", "is empty"),
    "latin.csv": ("id,error,name\na,1,\xe9\nb,0,x\n".encode("latin1"), "UTF-8"),
    "truncated.parquet": (b"PAR1 and then the disk was full", "cannot be read"),
    "wide.csv": (
        ",".join(["id", "error", *(f"c{i}" for i in range(100_000))]).encode()
        + b"\n"
        + b"a,0"
        + b",1" * 100_000
        + b"\n",
        "columns",
    ),
    "strange.xyz": (b"id,error\na,1\n", "kind of file"),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, tmp_path: Path) -> None:
    data, expected = FILES[name]
    (tmp_path / name).write_bytes(data)
    message = require_refusal(tmp_path, "audit", name, "--id", "id", "--outcome", "error")
    assert expected in message
    assert len(message.splitlines()) == 1


OPTIONS = {
    "no such file": (["nowhere.csv", "--outcome", "error"], "does not exist; check the folder"),
    "a file of another name": (["tt.csv", "--outcome", "error"], "did you mean t.csv?"),
    "no such column": (["t.csv", "--outcome", "wrong"], "no column 'wrong'"),
    "no such id": (["t.csv", "--id", "item", "--outcome", "error"], "no column 'item'"),
    "malformed rule": (["t.csv", "--outcome", "error", "--candidate", "a: words >"], "such as"),
    "rule on no column": (
        ["t.csv", "--outcome", "error", "--candidate", "a: chars > 1"],
        "'chars'",
    ),
    "rule that is no truth": (
        ["t.csv", "--outcome", "error", "--candidate", "a: words + 1"],
        "not true or false",
    ),
    "rule with a query": (
        ["t.csv", "--outcome", "error", "--candidate", "a: words > (SELECT 1)"],
        "SUBQUERY",
    ),
    "rule with a file": (
        ["t.csv", "--outcome", "error", "--candidate", "a: read_csv('/etc/passwd') = 'x'"],
        "READCSV",
    ),
    "two statements": (
        ["t.csv", "--outcome", "error", "--candidate", "a: words > 1; DROP TABLE t"],
        "must be a single true/false expression",
    ),
    "rule of other types": (
        ["t.csv", "--outcome", "error", "--candidate", "a: words > 'x'"],
        "cannot",
    ),
    "rule on the outcome": (
        ["t.csv", "--outcome", "error", "--candidate", "a: error = 1"],
        "reads the outcome",
    ),
    "split words": (["t.csv", "--outcome", "error", "--split", "lang"], "'de'"),
    "unwritable": (
        ["t.csv", "--outcome", "error", "--json", "/proc/nowhere/x.json"],
        "cannot write",
    ),
    "unwritable directory": (
        ["t.csv", "--outcome", "error", "--out", "/proc/nowhere"],
        "cannot write",
    ),
    "judge": (["t.csv", "--outcome", "error", "--judge", "solomon"], "no judge is named 'solomon'"),
    "finder": (["t.csv", "--outcome", "error", "--finders", "keepers"], "no finder"),
    "level": (
        ["t.csv", "--outcome", "error", "--alpha", "1.5"],
        "alpha must be strictly between 0 and 1",
    ),
    "declared": (["t.csv", "--outcome", "error", "--declare", "d__*"], "d__*"),
    "not 0/1": (["t.csv", "--outcome", "error", "--declare", "words"], "'words'"),
    "contradiction": (
        ["t.csv", "--outcome", "error", "--no-ledger", "--reopen", "x"],
        "--no-ledger",
    ),
    "other library": (["t.csv", "--outcome", "error", "--library", "lib.json"], "'chars'"),
    "edited library": (
        ["t.csv", "--outcome", "error", "--library", "edited.json"],
        "do not match the hash",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str, tmp_path: Path) -> None:
    from groundfault import Candidate, Library

    words, message = OPTIONS[name]
    table().write_csv(tmp_path / "t.csv")
    library = Library.of([Candidate("long", "chars > 40")])
    library.freeze(tmp_path / "lib.json")
    (tmp_path / "edited.json").write_text(library.to_json().replace("40", "41"))
    assert message in require_refusal(tmp_path, "audit", *words)


def test_a_bad_rule_shows_one_line(tmp_path: Path) -> None:
    table().write_csv(tmp_path / "t.csv")
    message = require_refusal(
        tmp_path, "audit", "t.csv", "--outcome", "error", "--candidate", "a: words > 1\nOR"
    )
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "t.csv", "--outcome", "error", "--no-ledger", "--json"),
        ("lab", "slices", "t.csv", "--outcome", "error", "--json"),
        ("lab", "improve", "t.csv", "--label", "lang", "--out"),
        ("lab", "improve", "t.csv", "--label", "lang", "--json"),
        ("lab", "features", "t.csv", "--text", "lang", "--out"),
    ],
    ids=" ".join,
)
def test_no_command_writes_over_what_it_reads(words: tuple[str, ...], tmp_path: Path) -> None:
    table().write_csv(tmp_path / "t.csv")
    before = (tmp_path / "t.csv").read_bytes()
    assert "this command reads it" in require_refusal(tmp_path, *words, f"../{tmp_path.name}/t.csv")
    assert (tmp_path / "t.csv").read_bytes() == before
