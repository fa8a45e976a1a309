"""Described columns: decisions looked up by the text, stored without it, and read back strictly."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from groundfault import Candidate, Evidence, Library
from groundfault.descriptions import DescriptionColumn, ExampleDescription
from groundfault.descriptions.annotating import DescriptionAgreement
from groundfault.descriptions.column import show_texts
from groundfault.errors import GroundfaultError, InputError

TEXTS = ["eins", "zwei", "drei", "vier"]
AGREEMENT = DescriptionAgreement(annotator="b", checked=4, agreed=3, interval=(0.3, 0.95))


def make_column(marks: tuple[int, ...] = (1, 0, -1, 1), **more: object) -> DescriptionColumn:
    return DescriptionColumn.of(
        ("text",),
        ExampleDescription("it is German", ("outcomes",)),
        "a",
        "prompt",
        TEXTS,
        np.array(marks),
        **more,  # type: ignore[arg-type]
    )


def freeze(column: DescriptionColumn) -> str:
    candidate = Candidate("German", f'"{column.name}"', missing="drop", fitted_column=column)
    return Library.of([candidate]).to_json()


def test_texts_nobody_decided_on_are_unknown() -> None:
    frame = pl.DataFrame({"text": ["vier", "drei", None, "fünf", "zwei", "eins", "eins"]})
    assert make_column().apply(frame).to_list() == [True, None, None, None, False, True, True]
    nobody = make_column((-1, -1, -1, -1))
    assert nobody.apply(frame).to_list() == [None] * 7
    assert nobody.apply(frame).dtype == pl.Boolean


def test_the_name_is_of_the_decisions_and_not_of_their_check() -> None:
    assert make_column().name == make_column(agreement=AGREEMENT).name
    assert make_column().name != make_column((1, 0, -1, 0)).name


def test_a_library_holds_decisions_and_no_text() -> None:
    text = freeze(make_column(agreement=AGREEMENT))
    assert not any(word in text for word in TEXTS)
    [candidate] = Library.from_json(text)
    column = candidate.fitted_column
    assert isinstance(column, DescriptionColumn)
    assert column.agreement == AGREEMENT
    assert column.description == ExampleDescription("it is German", ("outcomes",))
    assert column.apply(pl.DataFrame({"text": TEXTS})).to_list() == [True, False, None, True]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("holds", ""),
        ("holds", "not base64!"),
        ("texts", 99),
        ("description", "two\nlines"),
        ("description", "x" * 400),
        ("description", "another description"),
        ("arms", ["nowhere"]),
        ("annotator", "somebody else"),
        ("agreement", {"annotator": 3}),
    ],
)
def test_an_edited_library_is_refused(key: str, value: object) -> None:
    data = json.loads(freeze(make_column()))
    [column] = data["derived"].values()
    column[key] = value
    with pytest.raises(GroundfaultError):
        Library.from_json(json.dumps(data))


def test_what_is_shown_of_several_columns() -> None:
    frame = pl.DataFrame({"a": ["x", None, None], "b": [1, 2, None], "c": [[1], [2], [3]]})
    assert show_texts(frame, ("a",)).to_list() == ["x", None, None]
    assert show_texts(frame, ("a", "b")).to_list() == ["a: x\nb: 1", "b: 2", None]
    with pytest.raises(InputError, match="'c' holds List"):
        show_texts(frame, ("c",))
    with pytest.raises(InputError, match="no column 'd'"):
        show_texts(frame, ("d",))


def test_a_candidate_is_judged_where_it_was_decided() -> None:
    from groundfault.core.units import Marks

    table = pl.DataFrame({"id": TEXTS, "text": TEXTS, "error": [1, 0, 1, 0]})
    evidence = Evidence.from_table(table, id="id", outcome="error")
    marks = Marks.of(evidence, Library.from_json(freeze(make_column())))
    assert marks.unusable == ("",)
    assert marks.valid is not None
