"""Every message of the page on troubleshooting is what groundfault says today."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import polars as pl
import pytest
from commands import run_program

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "troubleshooting.md"
MESSAGES = re.findall(r"^\| `(.+?)` \| ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
COLUMNS = "--id id --outcome error"
COMMANDS = f"""
audit nope.csv {COLUMNS}
audit notes.txt
audit results.json
audit t.csv --id id
audit t.csv --id nr --outcome error
audit t.csv --id id --outcome eror
audit none.csv {COLUMNS}
audit twice.csv {COLUMNS}
audit t.csv --id id --outcome score
audit t.csv --id id --outcome answer
audit empty.csv {COLUMNS}
audit t.csv twice.csv {COLUMNS}
audit t.csv {COLUMNS} --where "lang = de"
audit models.csv {COLUMNS} --model-column model --model v9
audit t.csv {COLUMNS} --model gpt
audit t.csv {COLUMNS} --ledger l.db --candidate "german: lang = 'de'"
compare t.csv {COLUMNS}
audit t.csv {COLUMNS} --candidate lang
audit t.csv {COLUMNS} --judge nope
audit t.csv {COLUMNS} --min-lift 2
audit t.csv {COLUMNS} --ledger l.db --no-ledger
audit t.csv {COLUMNS} --engine polars
audit t.csv {COLUMNS} --out t.csv
gate nothere
show report 9
show moved 1
gate report --fail-on "lft > 0"
gate report --baseline bad.json
audti t.csv
audit t.csv --opne
""".strip().splitlines()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("desk")
    lang = ["de", "en", "fr"] * 40
    error = [int(one == "de" and i % 5 > 0) for i, one in enumerate(lang)]
    table = pl.DataFrame({"id": range(120), "lang": lang, "error": error})
    more = table.with_columns(
        score=pl.col("error") * 3 + 2, answer=pl.Series(["A", "B", "C", "A"] * 30)
    )
    more.write_csv(place / "t.csv")
    (place / "results.json").write_text('{"results": {"add": {"acc,none": 1, "acc_stderr": 0}}}')
    pl.concat([table, table]).write_csv(place / "twice.csv")
    table.head(0).write_csv(place / "none.csv")
    table.with_columns(pl.col("error").replace({1: None})).write_csv(place / "empty.csv")
    models = [table.with_columns(model=pl.lit(name)) for name in ("v1", "v2")]
    pl.concat(models).write_csv(place / "models.csv")
    table.write_csv(place / "gone.csv")
    (place / "notes.txt").write_text("hello\n")
    (place / "bad.json").write_text("{")
    for name, out in (("t", "report"), ("gone", "moved")):
        words = f"audit {name}.csv {COLUMNS} --ignore score --ignore answer --ledger l.db"
        words = words if name == "t" else f"audit gone.csv {COLUMNS} --no-ledger"
        assert run_program(*words.split(), "--out", out, folder=place).status == 0
    (place / "gone.csv").unlink()
    return place


def test_there_is_a_command_for_each_message() -> None:
    assert len(MESSAGES) == len(COMMANDS) >= 25


@pytest.mark.parametrize(("command", "message"), list(zip(COMMANDS, MESSAGES, strict=False)))
def test_the_page_has_the_message(command: str, message: str, desk: Path) -> None:
    ending = run_program(*shlex.split(command), folder=desk)
    assert ending.status == 2
    pattern = re.sub(r"(?:\\ )?\\\.\\\.\\\.(?:\\ )?", ".*", re.escape(message))
    assert re.fullmatch(f"error: {pattern}.*\n", ending.errors), ending.errors
