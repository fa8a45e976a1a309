"""One file holds the rows that may be looked at, sorted as the rules of the report say."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from explorer_files import HOSTILE, ExplorerFile, make_hostile, make_results, write_report

from groundfault import Report
from groundfault.cli.reports import export
from groundfault.core.rules import Rule
from groundfault.modes.examples import find_near
from groundfault.workbench.packing import find_rule_marks


def write_file(report: Path, *options: str) -> ExplorerFile:
    out = report.parent / f"file{len(options)}.html"
    arguments = [str(report), "--to", "html-explorer", "-o", str(out), *options]
    result = CliRunner().invoke(export, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "rows" in result.output
    return ExplorerFile(out)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one model, nothing held out."""
    table = make_results().filter(pl.col("model") == "alpha").drop("model")
    return write_report(tmp_path_factory.mktemp("one"), table, id="id", pages=True)


@pytest.fixture(scope="module")
def file(report: Path) -> ExplorerFile:
    return write_file(report)


def list_ids(file: ExplorerFile, rows: list[int]) -> list[str]:
    return [file.columns["id"][row] for row in rows]


def test_lists_are_what_the_rules_hold_for(report: Path, file: ExplorerFile) -> None:
    table = pl.read_parquet(report.parent / "answers.parquet").sort("id")
    modes = Report.load(report).modes
    assert modes
    for place, rule in enumerate(file.report["rules"][:-1]):
        inside = Rule.parse(rule["sql"]).holds(table)
        near = pl.Series(find_near(rule["sql"], table))
        wrong = table["error"] == 1
        sides = file.sides(place)
        for side, mask in (
            ("failing", inside & wrong),
            ("passing", inside & ~wrong),
            ("near", near),
        ):
            assert list_ids(file, sides[side]) == table["id"].filter(mask).to_list()
    (mode, *_), sides = modes, file.sides(0)
    assert len(sides["failing"]) == mode.errors
    assert len(sides["failing"]) + len(sides["passing"]) == mode.n
    # those that the report shows come first, near ones next across the threshold then
    first = list_ids(file, file.report["rules"][0]["first"])
    assert first[: len(mode.sample)] == [example.id for example in mode.sample]
    every = file.sides(len(file.report["rules"]) - 1)
    assert len(every["failing"]) == table["error"].sum()


def test_words_of_the_page_are_those_of_the_report(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDFAULT_LEDGER", str(report.parent / "ledger.db"))
    file = write_file(report)
    html = unescape((report / "report.html").read_text())
    for rule in file.report["rules"][:-1]:
        assert rule["sentence"].split(" (")[0] in html
        assert rule["blocks"]
    said = str(file.report["record"])
    assert "All 120 rows, with their outcomes; nothing was held out." in said
    assert "['ledger', 'passed', 'it is unbroken and records this look']" in said
    assert "['files', 'passed'," in said
    assert Report.load(report).hashes.plan in said


def test_held_out_rows_are_not_in_the_file(tmp_path: Path) -> None:
    table = make_results().filter(pl.col("model") == "alpha").drop("model")
    place = write_report(tmp_path, table, judge="janus", id="id")
    file, report = write_file(place), Report.load(place)
    from groundfault.auditing.report_examples import match_evidence
    from groundfault.core.evidence import Evidence

    evidence = Evidence.from_table(tmp_path / "answers.parquet", outcome="error", id="id")
    case = match_evidence(report, evidence)
    names = case.evidence.unit_names.filter(pl.Series(case.discovery_mask)).to_list()
    held = set(case.evidence.unit_names) - set(names)
    assert sorted(file.columns["id"]) == names
    assert len(names) == report.n_discovery < 120
    # neither in a column nor in words: not even as an example of a mode
    content = " ".join(file.bytes(name).decode("latin-1") for name in file.blocks)
    assert not [name for name in held if f'"{name}"' in content]
    finding = report.findings[0]
    place = next(i for i, r in enumerate(file.report["rules"]) if r["name"] == finding.name)
    sides = file.sides(place)
    assert len(sides["failing"]) == finding.discovery.on_errors
    assert file.report["part"] == "discovery"


def test_texts_can_be_left_out(report: Path) -> None:
    file = write_file(report, "--no-text")
    assert not {"prompt", "answer"} & set(file.columns)
    assert file.columns["lang"]
    content = " ".join(file.bytes(name).decode("latin-1") for name in file.blocks)
    assert "Nothing is here" not in content
    assert "alpha says" not in content


def test_what_a_rule_matches_is_marked_by_its_places() -> None:
    texts = {"prompt": pl.Series(["\U0001f600 nothing is not", None, "Not so", "not so, not"])}
    marks = {
        rule: find_rule_marks(texts, rule)
        for rule in (
            r"prompt ~* '\bnot\b' AND lang = 'de'",
            r"prompt ~* '\b(not|is)\b' AND prompt ~ 'so'",
            # a part of a word; not everywhere; no word; of two patterns the first stands later
            "prompt ~* 'not'",
            "prompt ~ '^not'",
            "prompt ~* 'is not'",
            "prompt ~ 'is' AND prompt ~ 'thing'",
        )
    }
    # a browser counts what lies beyond the first plane as two
    assert [some["prompt"] for some in marks.values()] == [
        {0: [14, 3], 2: [0, 3], 3: [0, 3, 8, 3]},
        {0: [11, 2, 14, 3], 2: [0, 3, 4, 2], 3: [0, 3, 4, 2, 8, 3]},
        {0: [3, 3, 14, 3], 2: [0, 3], 3: [0, 3, 8, 3]},
        {3: [0, 3]},
        {0: [11, 6]},
        {0: [5, 5, 11, 2]},
    ]
    # what matches most of a longer text says nothing about a place in it
    most = {"prompt": pl.Series(["a " * 30, "a b"])}
    assert find_rule_marks(most, "prompt ~ 'a .'") == {"prompt": {1: [0, 3]}}
    # a pattern for which a backtracking engine would take longer than anybody waits
    slow = {"prompt": pl.Series(["a" * 5000 + "!"] * 20)}
    assert find_rule_marks(slow, "prompt ~ '(a+)+b'") == {"prompt": {}}


def test_nothing_of_the_data_stands_in_the_page(report: Path, tmp_path: Path) -> None:
    place = write_report(tmp_path, make_hostile(), id=make_hostile().columns[0])
    hostile, plain = write_file(place), write_file(report)
    # but for compressed blocks, all files are the same
    assert hostile.shell.split() == plain.shell.split()
    assert not [text for text in HOSTILE if len(text) > 12 and text in hostile.shell]
    for name in hostile.blocks:
        content = hostile.bytes(name)
        if "mask" not in name:
            content.partition(b"\n")[0].decode("ascii")
    # what steers a terminal or the direction of a line is replaced
    texts = [
        text for column in hostile.columns.values() for text in column if isinstance(text, str)
    ]
    assert not any(c in text for text in texts for c in "\x00\x1b\u202e\u2066")


@pytest.mark.parametrize(
    ("values", "kind", "content", "places"),
    [
        ([1, None, 3], "number", [1, None, 3], None),
        ([0.1, float("nan"), float("inf")], "number", [None, 0.1], [1, 0, 0]),
        ([True, False, None] * 2, "levels", [None, "false", "true"], [2, 1, 0] * 2),
        (["a", "b", "c", "d", "e"], "text", ["a", "b", "c", "d", "e"], None),
        (["b", "b", "a", None, "b", "a"], "text", [None, "a", "b"], [2, 2, 1, 0, 2, 1]),
        (["x" * 3000], "text", ["x" * 2000 + " […]"], [0]),
        ([[1], [2]], None, None, None),
    ],
)  # fmt: skip
def test_columns_are_written_as_what_they_are(
    values: list[Any], kind: str, content: Any, places: list[int] | None
) -> None:
    from groundfault.workbench.packing import encode_column

    column = encode_column(pl.Series("c", values), is_text=kind == "text")
    assert (column and column.kind) == kind
    if column is not None:
        rows = column.rows
        assert rows.values == content
        assert (rows.places if rows.places is None else rows.places.tolist()) == places


@pytest.mark.parametrize(
    ("names", "head"),
    [
        (["e008", "e009", "e010"], {"prefix": "e", "width": 3}),
        (["a/8", "a/10", "a/300"], {"prefix": "a/", "width": 1}),
        (["12345678901", "12345678902", "12345678903"], {"prefix": "12", "width": 9}),
        (["e08", "e9", "e10"], None),
        (["a1", "b2", "c3"], None),
        (["a1", "a2", "a"], None),
        (["a1", "a2", None], None),
    ],
)
def test_names_that_are_numbered_are_their_numbers(names: list[Any], head: Any) -> None:
    from groundfault.workbench.packing import RowValues

    packed = RowValues.of(pl.Series(names)).pack()
    first, _, numbers = gzip.decompress(b64decode(packed)).partition(b"\n")
    assert json.loads(first) == (names if head is None else head)
    assert bool(numbers) == (head is not None)


def test_marks_take_a_few_bytes_each() -> None:
    from groundfault.workbench.packing import pack_spans

    spans = {"q": {7: [300, 3], 2: [0, 4, 9, 4]}, "none": {}}
    head, _, numbers = gzip.decompress(b64decode(pack_spans(spans))).partition(b"\n")
    assert json.loads(head) == [["q", 3, [1, 2, 1]], ["none", 0, [1, 1, 1]]]
    # steps between places, the low bytes of starts, their high bytes, lengths
    assert list(numbers) == [2, 0, 5, 0, 9, 44, 0, 0, 1, 4, 4, 3]


@pytest.mark.parametrize("different", [3, 300])
def test_values_that_repeat_take_the_bits_that_tell_them_apart(different: int) -> None:
    from groundfault.workbench.packing import RowValues

    numbers = np.random.default_rng(0).integers(0, different, 20_000)
    texts = pl.Series([f"an answer that is {number}" for number in numbers])
    bits = 8 * len(b64decode(RowValues.of(texts).pack())) / len(texts)
    # what Huffman codes and the list of values add
    assert np.log2(different) < bits < 1.35 * np.log2(different)


def test_no_text_goes_with_the_explorer_alone(report: Path) -> None:
    arguments = [str(report), "--to", "memberships", "-o", "x.csv", "--no-text"]
    result = CliRunner().invoke(export, arguments)
    assert "--no-text goes with --to html-explorer" in str(result.exception)
