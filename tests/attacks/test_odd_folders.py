"""Folders of results that came from anybody: what is odd in them is named, nothing outside is read,
and no one of them reproduces.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import run_program

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0"
TABLE = "evidence.csv --id item --outcome error"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole")
    shutil.copy(STORED / "confirmed" / "evidence.csv", home)
    ending = run_program("audit", *TABLE.split(), "--ledger", "l.db", "--out", "r", folder=home)
    assert ending.status == 0, ending.errors
    ending = run_program("verify", "r", "--ledger", "l.db", folder=home)
    assert ending.status == 0, ending
    return home


def rewrite(change: Callable[[str], str]) -> Callable[[Path], object]:
    return lambda place: (place / "report.json").write_text(
        change((place / "report.json").read_text())
    )


def edit(change: Callable[[dict[str, object]], object]) -> Callable[[Path], object]:
    def do(text: str) -> str:
        content = json.loads(text)
        change(content)
        return json.dumps(content)

    return rewrite(do)


def listen(place: Path) -> object:
    here = Path.cwd()
    os.chdir(place)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
    os.chdir(here)
    return None


def replace_by_link(place: Path) -> None:
    shutil.move(place / "report.html", place.parent / "elsewhere.html")
    (place / "report.html").symlink_to(place.parent / "elsewhere.html")
    (place.parent / "elsewhere.html").write_text("<p>All is well.</p>")


ODD: dict[str, Callable[[Path], object]] = {
    "a name of other bytes": lambda p: (p / os.fsdecode(b"\xff.html")).write_text("x"),
    "a name with a line break": lambda p: (p / "a\nreproduces").write_text("x"),
    "a name that steers a terminal": lambda p: (p / "\x1b[2J\x1b[1mreproduces").write_text("x"),
    "a name that turns round": lambda p: (p / "\u202elmth.xedni").write_text("x"),
    "a name like ours": lambda p: (p / "REPORT.HTML").write_text("x"),
    "a name in other letters": lambda p: (p / "r\u0435port.html").write_text("x"),
    "a name composed otherwise": lambda p: (
        p / unicodedata.normalize("NFD", "r\u00e9port.html")
    ).write_text("x"),
    "a name with a space": lambda p: (p / "report.html ").write_text("x"),
    "a pattern": lambda p: (p / "report.[hm]*").write_text("x"),
    "a copy of an editor": lambda p: (p / ".report.json.swp").write_text("x"),
    "a pipe": lambda p: os.mkfifo(p / "pipe"),
    "a socket": listen,
    "a link to nowhere": lambda p: (p / "gone").symlink_to("nowhere"),
    "a link to itself": lambda p: (p / "self").symlink_to("self"),
    "a link to the folder": lambda p: (p / "deep").symlink_to("."),
    "a link in place of a page": replace_by_link,
    "a folder in place of a page": lambda p: (
        (p / "report.md").unlink(),
        (p / "report.md").mkdir(),
    ),
    "a hundred folders deep": lambda p: (p / "/".join(["d"] * 100)).mkdir(parents=True),
    "no page": lambda p: (p / "report.html").unlink(),
    "no sums": lambda p: (p / "SHA256SUMS").unlink(),
    "sums of another file": lambda p: (p / "SHA256SUMS").write_text("0" * 64 + "  /etc/passwd\n"),
    "sums that name a way out": lambda p: (
        (p / "SHA256SUMS").open("a").write("0" * 64 + "  ../l.db\n")
    ),
    "sums of zeros": lambda p: (p / "SHA256SUMS").write_bytes(b"\0" * 1000),
    "a library of nothing": lambda p: (p / "library.json").write_text("{}"),
    "a page and a space": lambda p: (p / "report.html").open("a").write(" "),
    "a report and a mark": rewrite(lambda t: "\ufeff" + t),
    "a report and a space": rewrite(lambda t: t + " "),
    "a report with a key twice": rewrite(lambda t: t.replace("{", '{"modes": [],', 1)),
    "a report with a field more": edit(lambda c: c.update(approved=True)),
    "a report of version 99": edit(lambda c: c.update(schema_version=99)),
    "a report of version -1": edit(lambda c: c.update(schema_version=-1)),
    "a report that is a list": rewrite(lambda t: f"[{t}]"),
    "a report without modes": edit(lambda c: c.update(modes=[])),
    "a report without findings": edit(lambda c: c.update(findings=[])),
    "a report of no rows": edit(lambda c: c.update(manifest={})),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_named_and_never_reproduces(name: str, whole: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(whole, home)
    ODD[name](home / "r")
    status, output, errors = run_program("verify", "r", "--ledger", "l.db", folder=home)
    assert status in (1, 2), output
    assert "Traceback" not in errors
    lines = output.splitlines()
    assert "reproduces" not in lines
    for text in (output, errors):
        assert "\x1b[2J" not in text
        assert "\u202e" not in text
        assert "root:" not in text
