"""Sheets: nothing hidden on them, no formula in them, and nothing that was changed comes back
unseen.
"""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from profiles import count_examples

from groundfault.errors import InputError
from groundfault.review import Decision, Item
from groundfault.review.sheets import read, write

ITEMS = [
    Item(
        "bat",
        "How much?\nIn cents.",
        "5",
        "10",
        "It is tempting:\r\nAnswer: 10",
        question="How much?",
    ),
    Item(
        "bat",
        "How much?\nIn cents.",
        "5",
        None,
        '=HYPERLINK("http://x")\t"quoted", and; more\x1b[2J\x00',
    ),
    Item("egg", "-1 + 1?", "0", "+0", "@SUM(A1)\n\n", copy=2),
]
BY_ID = {item.id: item for item in ITEMS}
ANSWERS: list[dict[str, Any]] = [
    {
        "prompt_valid": "yes",
        "extraction_valid": "yes",
        "model_wrong": "yes",
        "note": "=1+1, ümlaut",
    },
    {"prompt_valid": "no"},
    {"prompt_valid": "yes", "extraction_valid": "no", "artefact": "format"},
]


def fill(path: Path, answers: list[dict[str, Any]], **changes: Any) -> Path:
    """What a reviewer, or their program, makes of a sheet; changes are of the first row."""
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".csv":
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    elif path.suffix == ".jsonl":
        rows = [json.loads(line) for line in text.splitlines()]
    else:
        tasks = json.loads(text)
        tasks[0]["data"].update(changes)
        for task, answer in zip(tasks, answers, strict=False):
            kinds = {"note": "text"}
            result = [
                {"from_name": name, "value": {kinds.get(name, "choices"): [value]}}
                for name, value in answer.items()
            ]
            task |= {
                "id": 7,
                "annotations": [{"result": result, "was_cancelled": False}],
                "predictions": [],
            }
        path.write_text(json.dumps(tasks), encoding="utf-8")
        return path
    for row, answer in zip(rows, answers, strict=False):
        row.update(answer)
    rows[0].update(changes)
    sheet_text = io.StringIO()
    if path.suffix == ".csv":
        sheet = csv.DictWriter(sheet_text, list(rows[0]))
        sheet.writeheader()
        sheet.writerows(rows)
    else:
        sheet_text.writelines(json.dumps(row) + "\n" for row in rows)
    path.write_text(sheet_text.getvalue(), encoding="utf-8", newline="")
    return path


FORMATS: list[Any] = ["csv", "jsonl", "labelstudio"]


@pytest.fixture(params=FORMATS)
def sheet(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"sheet.{'json' if request.param == 'labelstudio' else request.param}"
    write(ITEMS, path, request.param)
    return path


def test_a_sheet_comes_back_as_decisions(sheet: Path) -> None:
    fill(sheet, ANSWERS)
    decisions = [
        Decision(reviewer="ana", item=item.id, **answer)
        for item, answer in zip(ITEMS, ANSWERS, strict=True)
    ]
    assert read(sheet, BY_ID, "ana") == decisions
    assert {d.role for d in read(sheet, BY_ID, "cy", "adjudicator")} == {"adjudicator"}


def test_rows_without_an_answer_are_not_decided(sheet: Path) -> None:
    with pytest.raises(InputError, match="holds no decision"):
        read(sheet, BY_ID, "ana")
    fill(sheet, ANSWERS[:1])
    assert [d.item for d in read(sheet, BY_ID, "ana")] == [ITEMS[0].id]


def test_a_sheet_shows_the_item_and_its_id_alone(sheet: Path) -> None:
    text = sheet.read_text(encoding="utf-8-sig")
    item_columns = {"task", "question", "prompt", "answer", "extracted", "response", "copy"}
    answers = {"prompt_valid", "extraction_valid", "artefact", "model_wrong", "note"}
    if sheet.suffix == ".csv":
        assert set(next(csv.reader(io.StringIO(text)))) == {"item", *item_columns, *answers}
    elif sheet.suffix == ".jsonl":
        assert all(
            set(json.loads(line)) == {"item", *item_columns, *answers} for line in text.splitlines()
        )
    else:
        assert all(task == {"data": task["data"]} for task in json.loads(text))
        assert all(set(task["data"]) == {"item", *item_columns} for task in json.loads(text))


def test_label_studio_is_told_the_questions(tmp_path: Path) -> None:
    places = write(ITEMS, tmp_path / "tasks.json", "labelstudio")
    assert [place.name for place in places] == ["tasks.json", "tasks-config.xml"]
    root = ElementTree.parse(places[1]).getroot()
    texts = {each.get("name") for each in root.iter("Text")}
    choices = {
        each.get("name"): [c.get("value") for c in each.iter("Choice")]
        for each in root.iter("Choices")
    }
    assert choices == {
        "prompt_valid": ["yes", "no", "unsure"],
        "extraction_valid": ["yes", "no", "unsure"],
        "artefact": ["extraction", "format"],
        "model_wrong": ["yes", "no", "unsure"],
    }
    for each in (*root.iter("Choices"), *root.iter("TextArea")):
        assert each.get("toName") in texts
    values = {each.get("value", "").lstrip("$") for each in root.iter("Text")}
    assert values <= set(json.loads(places[0].read_text(encoding="utf-8"))[0]["data"])


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    write(ITEMS, tmp_path / "s.csv", "csv")
    for row in csv.reader(
        io.StringIO((tmp_path / "s.csv").read_text(encoding="utf-8-sig"), newline="")
    ):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for cell in row)


# -------------------------------------------------------------------------- what does not come back


@pytest.mark.parametrize(
    "name", ["task", "question", "prompt", "answer", "extracted", "response", "copy"]
)
def test_text_that_was_changed_is_refused(sheet: Path, name: str) -> None:
    fill(sheet, ANSWERS, **{name: "something else"})
    with pytest.raises(InputError, match=f"1?.*: {name} of item .* was changed"):
        read(sheet, BY_ID, "ana")


def test_an_unknown_item_is_refused(sheet: Path) -> None:
    fill(sheet, ANSWERS, item="f" * 64)
    with pytest.raises(InputError, match=r"'ffffffffffff' is not among those"):
        read(sheet, BY_ID, "ana")
    with pytest.raises(InputError, match="is not among those"):
        read(sheet, {ITEMS[0].id: ITEMS[0]}, "ana")


def test_a_row_that_comes_twice_is_refused(sheet: Path) -> None:
    fill(sheet, ANSWERS, item=ITEMS[2].id, **ITEMS[2].visible_texts)
    with pytest.raises(
        InputError,
        match=r"(row 4|line 3|task 3): item .* comes twice, first in .*(row 2|line 1|task 1)",
    ):
        read(sheet, BY_ID, "ana")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"prompt_valid": "jein"}, "prompt_valid is 'jein'"),
        ({"prompt_valid": "yes"}, "extraction_valid is missing"),
        ({"model_wrong": "yes"}, "prompt_valid is missing"),
        ({"prompt_valid": "yes", "extraction_valid": "no"}, "artefact is missing"),
        ({"note": "odd"}, "has a note and no answer"),
    ],
)
def test_an_answer_that_is_none_is_refused_with_its_row(
    sheet: Path, answer: dict[str, Any], message: str
) -> None:
    fill(sheet, [answer, *ANSWERS[1:]])
    with pytest.raises(InputError, match=rf"(row 2|line 1|task 1): .*{message}"):
        read(sheet, BY_ID, "ana")


def test_capitals_and_spaces_do_not_matter(sheet: Path) -> None:
    fill(sheet, [{"prompt_valid": " Yes", "extraction_valid": "YES ", "model_wrong": "No"}])
    assert read(sheet, BY_ID, "ana")[0].verdict == "no_error"


def test_an_annotation_of_each_of_two_is_refused_and_a_skipped_one_is_none(tmp_path: Path) -> None:
    write(ITEMS, tmp_path / "s.json", "labelstudio")
    fill(tmp_path / "s.json", ANSWERS)
    tasks = json.loads((tmp_path / "s.json").read_text())
    tasks[0]["annotations"].append({"result": [], "was_cancelled": True})
    (tmp_path / "s.json").write_text(json.dumps(tasks))
    assert len(read(tmp_path / "s.json", BY_ID, "ana")) == 3
    tasks[0]["annotations"].append({"result": []})
    (tmp_path / "s.json").write_text(json.dumps(tasks))
    with pytest.raises(InputError, match="task 1 has 2 annotations"):
        read(tmp_path / "s.json", BY_ID, "ana")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.csv", b"a,b\n1,2\n"),
        ("s.csv", b""),
        ("s.csv", b'item,prompt_valid,extraction_valid,artefact,model_wrong,note\n"unclosed'),
        ("s.csv", b"item,prompt_valid,extraction_valid,artefact,model_wrong,note\n1,2\n"),
        ("s.csv", "größe".encode("latin-1")),
        ("s.jsonl", b'{"item": 1}\n'),
        ("s.jsonl", b'{"item"\n'),
        ("s.jsonl", b"{}\n[1]\n"),
        ("s.json", b"[1]"),
        ("s.json", b'[{"data": []}]'),
        ("s.json", b'[{"data": {}, "annotations": [{"result": [{"value": 1}]}]}]'),
        ("s.json", b"[" * 100_000),
    ],
)
def test_what_is_no_sheet_is_one_clear_line(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}") as refused:
        read(tmp_path / name, BY_ID, "ana")
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_an_empty_sheet(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read(tmp_path / "none.csv", BY_ID, "ana")
    with pytest.raises(InputError, match="all items are decided"):
        write([], tmp_path / "s.csv", "csv")


def test_semicolons_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    write(ITEMS, tmp_path / "s.csv", "csv")
    rows = list(
        csv.reader(io.StringIO((tmp_path / "s.csv").read_text(encoding="utf-8-sig"), newline=""))
    )
    rows[1][-5:] = ["no", "", "", "", ""]
    sheet_text = io.StringIO()
    csv.writer(sheet_text, delimiter=";").writerows(
        [[cell.replace("\n", "\r\n") for cell in row] for row in rows]
    )
    (tmp_path / "s.csv").write_text(sheet_text.getvalue(), encoding="utf-8", newline="")
    assert [d.verdict for d in read(tmp_path / "s.csv", BY_ID, "ana")] == ["invalid_prompt"]


@pytest.mark.parametrize("format", FORMATS)
@example(text="a\x85b\u2028c\u2029d\x1ce\u0000\ud800")
@given(text=st.text(alphabet=st.characters(exclude_categories=[]), max_size=30))
@settings(
    max_examples=count_examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_text_survives_the_way_there_and_back(tmp_path: Path, format: Any, text: str) -> None:
    item = Item("t", text, text, text, text, question=text)
    path = tmp_path / f"s.{'json' if format == 'labelstudio' else format}"
    write([item], path, format)
    fill(path, [{"prompt_valid": "no"}])
    assert [d.item for d in read(path, {item.id: item}, "ana")] == [item.id]
