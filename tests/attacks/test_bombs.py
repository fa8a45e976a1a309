"""Small files that unpack to gigabytes: refused in one line, before any memory is spent on them."""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet
import pytest
import zstandard
from commands import Ending, run_program

from groundfault import readers
from groundfault.errors import InputError
from groundfault.readers import table_size
from groundfault.readers.importing import digest_log
from groundfault_lab.language.pipeline import load_memory, load_pipeline, read_norms

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0"
LINES, RECORDS = b"1,0\n" * 1_000_000, b'{"x": 1, "error": 0}\n' * 200_000


def make_zeros(rows: int) -> Any:
    zeros = pa.nulls(rows, pa.int64()).fill_null(0)
    return pa.table(dict.fromkeys(["x", "error", "id", "example_id", "value"], zeros))


def make_long_texts(count: int) -> Any:
    texts = ["a" * (1 << 20)] * count
    return pa.table({"x": texts, "id": range(count), "error": [0, 1] * (count // 2)})


def write_named_often(place: Path) -> None:
    """Four thousand times a text of a megabyte, which the file holds once."""
    texts = pa.DictionaryArray.from_arrays([0] * 4_000, ["a" * (1 << 20)])
    table = pa.table({"x": texts, "id": range(4_000), "error": [0, 1] * 2_000})
    parquet.write_table(table, place, store_schema=False)


def write_arrow(table: Any, place: Path, kind: Callable[..., Any] = ipc.new_file) -> None:
    options = ipc.IpcWriteOptions(compression="zstd")
    with place.open("wb") as file, kind(file, table.schema, options=options) as batches:
        batches.write_table(table)


def pack(compress: Callable[[bytes], bytes], data: bytes) -> Callable[[Path], object]:
    return lambda place: place.write_bytes(compress(data))


BOMBS: dict[str, Callable[[Path], object]] = {
    "rows.parquet": lambda p: parquet.write_table(make_zeros(5_000_000), p, compression="zstd"),
    "numbers.parquet": lambda p: parquet.write_table(
        make_zeros(5_000_000), p, use_dictionary=False, column_encoding="DELTA_BINARY_PACKED"
    ),
    "texts.parquet": lambda p: parquet.write_table(
        make_long_texts(100), p, compression="zstd", use_dictionary=False
    ),
    "prefixes.parquet": lambda p: parquet.write_table(
        make_long_texts(100),
        p,
        compression="zstd",
        use_dictionary=False,
        column_encoding={"x": "DELTA_BYTE_ARRAY"},
    ),
    "second.pq": lambda p: parquet.write_table(
        make_zeros(5_000_000), p, compression="brotli", data_page_version="2.0"
    ),
    "nothing.parquet": lambda p: parquet.write_table(
        pa.table({"error": pa.nulls(50_000_000, pa.int64())}), p
    ),
    "rows.arrow": lambda p: write_arrow(make_zeros(5_000_000), p),
    "texts.feather": lambda p: write_arrow(make_long_texts(100), p),
    "nothing.ipc": lambda p: write_arrow(pa.table({"error": pa.nulls(500_000_000)}), p),
    "stream.arrow": lambda p: write_arrow(make_zeros(5_000_000), p, ipc.new_stream),
    "gzip.csv": pack(gzip.compress, b"x,error\n" + LINES * 20),
    "zstd.csv": pack(zstandard.compress, b"x,error\n" + LINES * 20),
    "zlib.tsv": pack(zlib.compress, b"x\terror\n" + LINES * 20),
    "gzip.jsonl": pack(gzip.compress, RECORDS * 15),
    "zstd.ndjson": pack(zstandard.compress, RECORDS * 15),
}
TABLE = "--id id --outcome error --no-ledger"
COMMANDS = [
    f"audit {{}} {TABLE}",
    f"audit a={{}} b=t.csv {TABLE}",
    "verify report --evidence {}",
    "show report 'lang = de' --evidence {}",
    "lab describe {} --id id --outcome error --describer openai/x --out d",
    "lab improve {} --label x --id id --out o.csv",
    "label plan {} --threshold 0.5",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("bombs")
    for name, make in BOMBS.items():
        make(home / name)
        assert (home / name).stat().st_size < 300_000, name
    pl.DataFrame({"id": range(40), "error": [0, 1] * 20}).write_csv(home / "t.csv")
    shutil.copytree(STORED / "frozen" / "report", home / "report")
    return home


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound, so that bombs of this test need not take gigabytes to make."""
    monkeypatch.setattr(table_size, "_SMALL_TABLE", 10 << 20)


def require_refusal(ending: Ending) -> None:
    status, _, errors = ending
    assert status == 2, errors
    last = errors.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert "claim to hold over" in last or "is compressed; unpack it first" in last, last


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(name: str, folder: Path) -> None:
    require_refusal(run_program(*COMMANDS[0].format(name).split(), folder=folder))


@pytest.mark.parametrize("command", COMMANDS[1:])
@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "zstd.csv"])
def test_so_it_is_wherever_a_command_takes_a_table(name: str, command: str, folder: Path) -> None:
    require_refusal(run_program(*shlex.split(command.format(name)), folder=folder))


def test_so_it_is_where_a_reader_knows_its_columns(folder: Path) -> None:
    for words in ("import rows.parquet -o evidence", "init rows.parquet", "audit rows.parquet"):
        require_refusal(run_program(*words.split(), folder=folder))


@pytest.mark.parametrize("engine", ["polars", "duckdb", "spark"])
@pytest.mark.parametrize("name", [name for name in BOMBS if name.endswith((".parquet", ".pq"))])
def test_so_it_is_before_an_engine_starts(name: str, engine: str, folder: Path) -> None:
    words = f"{COMMANDS[0].format(name)} --engine {engine}".split()
    require_refusal(run_program(*words, folder=folder))


@pytest.mark.parametrize("words", ["", "--engine polars"])
def test_so_it_is_of_many_that_are_small(words: str, folder: Path, tmp_path: Path) -> None:
    """Each file is within the bound, and all together are not."""
    place = tmp_path / "parts"
    place.mkdir()
    for number in range(30):
        parquet.write_table(make_zeros(20_000), place / f"{number}.parquet")
    for path in place.iterdir():
        assert table_size.measure_table(path) < 1_000_000
    require_refusal(run_program(*f"{COMMANDS[0].format(place)} {words}".split()))


def test_so_it_is_in_a_saved_data_set(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "saved"
    place.mkdir()
    shutil.copy(folder / "stream.arrow", place / "data.arrow")
    (place / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    (place / "dataset_info.json").write_text('{"features": {}}')
    require_refusal(run_program(*COMMANDS[0].format(place).split()))


@pytest.mark.parametrize("words", ["", "--engine duckdb"])
def test_a_part_larger_than_memory_is_refused(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pl.DataFrame({"id": range(10_000), "error": [0, 1] * 5_000})
    table.write_parquet(tmp_path / "one.parquet")
    table.write_parquet(tmp_path / "many.parquet", row_group_size=1_000)
    monkeypatch.setattr(table_size, "measure_free_memory", lambda: 50_000)
    command = f"audit {{}} {TABLE} {words}"
    ending = run_program(*command.format("one.parquet").split(), folder=tmp_path)
    assert ending.status == 2
    assert "one.parquet has a part of 0.0 GB" in ending.errors
    assert table_size.measure_table(tmp_path / "many.parquet") >= 160_000


@pytest.mark.parametrize("words", ["", "--scorer x"])
def test_so_it_is_in_imported_evidence(words: str, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "evidence"
    shutil.copytree(STORED / "imported" / "evidence", place)
    card = json.loads((place / "evidence.json").read_text())
    digest = digest_log(folder / "rows.parquet")
    card["scores"] = {"sha256": digest, "measured": [], "headlines": [], "notes": []}
    card["scores"]["conflicts"] = []
    (place / "evidence.json").write_text(json.dumps(card))
    for table in ("observations.parquet", "scores.parquet"):
        shutil.copy(folder / "rows.parquet", place / table)
    require_refusal(run_program("audit", str(place), "--no-ledger", *words.split()))


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_so_it_is_in_a_table_of_promptfoo_and_in_word_norms(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    place = tmp_path / "packed.csv"
    place.write_bytes(compress(b"a,[p] x,Status\n" + b"1,2,PASS\n" * 100_000))
    with pytest.raises(InputError, match="is compressed; unpack it first"):
        readers.get("promptfoo").read(place)
    place.write_bytes(compress(b"word,arousal\n" + b"a,1\n" * 100_000))
    with pytest.raises(InputError, match="cannot read the word norms"):
        read_norms(place)


def test_so_it_is_in_a_taxonomy_and_in_a_cache_of_features(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(STORED / "taxonomy" / "fit", tmp_path / "fit")
    shutil.copy(folder / "rows.parquet", tmp_path / "fit" / "examples.parquet")
    require_refusal(run_program("verify", str(tmp_path / "fit")))
    with pytest.raises(InputError, match="claim to hold over"):
        load_memory(load_pipeline("blank"), folder / "rows.parquet")


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("", "the texts of often.parquet have 4,194,304,000 bytes"),
        ("--engine polars", "the texts of often.parquet have 4,194,304,000 bytes"),
        ("--engine duckdb", "maximum total string size"),
    ],
)
def test_texts_that_a_file_holds_once_and_names_often(
    engine: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_named_often(tmp_path / "often.parquet")
    monkeypatch.setattr(table_size, "measure_free_memory", lambda: 1 << 30)
    command = f"audit often.parquet {TABLE} {engine}"
    status, _, errors = run_program(*command.split(), folder=tmp_path)
    assert status == 2
    assert message in errors
    assert len(errors.splitlines()) == 1


def test_a_table_that_repeats_itself_is_no_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the bound of the program: a million rows of a few values."""
    monkeypatch.undo()
    place = tmp_path / "flags.parquet"
    flags = {f"x{i}": pl.repeat(0, 1_000_000, eager=True) for i in range(100)}
    pl.DataFrame(flags).write_parquet(place)
    assert place.stat().st_size < 200_000
    assert table_size.measure_table(place) == 400_000_000


def test_what_is_cut_short_or_changed_at_any_byte_is_measured_or_refused(tmp_path: Path) -> None:
    pl.DataFrame({"a": ["x", "y"] * 20, "b": range(40)}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"a": ["x", "y"] * 20}).write_ipc(tmp_path / "a.arrow", compression="zstd")
    for whole in (tmp_path / "a.parquet", tmp_path / "a.arrow"):
        content, place = whole.read_bytes(), whole.with_stem("b")
        for at in range(len(content)):
            for byte in (0, 127, 255):
                place.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
                measure(place)
            place.write_bytes(content[: at + 1])
            measure(place)


def measure(place: Path) -> None:
    with suppress(InputError):
        assert table_size.measure_table(place) >= 0
