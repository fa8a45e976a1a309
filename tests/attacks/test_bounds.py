"""What never ends is refused at once, wherever a command takes a file."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from commands import run_program

from groundfault.errors import InputError
from groundfault_lab.language.pipeline import read_norms

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0"
ROOM = 1 << 30  # bytes that a command may take beyond what is there; without a bound it takes all
TABLE = "t.csv --id id --outcome error --no-ledger"
# "zero" is the device, "zero.csv" and "zero.json" are links to it
COMMANDS = (
    "audit zero --outcome error",
    "audit zero.csv --outcome error",
    "audit zero.parquet --outcome error",
    "audit zero.json",
    f"audit {TABLE} --library zero",
    f"audit {TABLE} --library zero.json",
    f"audit {TABLE} --candidates zero",
    f"audit {TABLE} --candidates zero.toml",
    "audit t.csv --id id --outcome error --candidate a:n>1 --ledger zero",
    "check t.csv --id id --outcome error --library zero.json",
    "import zero -o evidence",
    "import t.csv --map zero.toml -o evidence",
    "verify zero",
    "verify report --evidence zero.csv",
    "verify report --ledger zero",
    "gate zero",
    "gate report --baseline zero",
    "show zero M1",
    "export zero --to memberships -o x.csv",
    "label run zero.csv --threshold 0.5 --label file",
    "label report zero",
    "label status zero",
    "lab taxonomy fit zero.csv --out o",
    "lab taxonomy diagnose zero",
    "lab taxonomy diagnose links",
    "lab probe check links",
    "lab probe run zero --model replay:zero",
    "lab probe run links/config.toml --model replay:zero",
    "lab probe report links",
    "label review runs --reviewer ben --import zero",
    "lab probe arena --replay zero",
    "lab probe release links --check",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a report, runs, and links to a device under every name that is looked for."""
    home = tmp_path_factory.mktemp("zero")
    rows = {"id": [f"i{i}" for i in range(40)], "n": range(40), "error": [i % 2 for i in range(40)]}
    pl.DataFrame(rows).write_csv(home / "t.csv")
    shutil.copytree(STORED / "frozen" / "report", home / "report")
    shutil.copytree(STORED / "probe" / "runs", home / "runs")
    links = "config.toml bank.toml grammar.toml manifest.json MANIFEST.json taxonomy.json"
    names = ["zero", *(f"zero.{kind}" for kind in ("csv", "json", "toml", "parquet"))]
    (home / "links").mkdir()
    for name in [*names, *(f"links/{each}" for each in links.split())]:
        (home / name).symlink_to("/dev/zero")
    return home


@pytest.fixture
def little_memory() -> Iterator[None]:
    """So that a read without a bound ends in an error, and not with the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="/proc tells what memory is used")
@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_device_is_refused_in_one_line(folder: Path, command: str) -> None:
    status, _, errors = run_program(*command.split(), folder=folder)
    assert status == 2, errors
    assert "Traceback" not in errors
    last = errors.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert "memory" not in last
    assert "No such option" not in last
    assert "Missing" not in last


@pytest.mark.usefixtures("little_memory")
def test_word_norms_without_end(folder: Path) -> None:
    with pytest.raises(InputError, match="is a device, which may never end"):
        read_norms(folder / "zero.csv")


def test_a_message_that_quotes_a_column_of_a_million_letters_is_short(tmp_path: Path) -> None:
    pl.DataFrame({"x" * 1_000_000: [1, 2], "error": [0, 1]}).write_csv(tmp_path / "t.csv")
    status, _, errors = run_program("audit", "t.csv", "--outcome", "failed", folder=tmp_path)
    assert status == 2
    assert len(errors) < 2100
    assert "characters ..." in errors
