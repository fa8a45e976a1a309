"""Tables in memory and on disk: what a person made with pandas, and files that are not there."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from groundfault import Evidence, InputError

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def test_intervals_and_periods_of_pandas_are_their_names() -> None:
    """pd.cut and pd.qcut make the bins that people look at; no rule could name a pair of bounds."""
    numbers = pd.Series([-1, *range(1, 80)])
    table = pd.DataFrame(
        {
            "bin": pd.cut(numbers, [0, 40, 80]),
            "quarter": pd.PeriodIndex(["2026Q1", "2026Q2"] * 40, freq="Q"),
            "size": pd.cut(numbers, [-2, 40, 80], labels=["low", "high"]),
            5: pd.qcut(numbers, 2),
            "error": [0, 1] * 40,
        }
    )
    table.columns = table.columns.astype(object)
    frame = Evidence.from_table(table, outcome="error").where("\"bin\" = '(40, 80]'").frame
    assert len(frame) == 39
    assert frame["quarter"].unique().sort().to_list() == ["2026Q1", "2026Q2"]
    assert frame["size"].cast(str).unique().to_list() == ["high"]
    assert Evidence.from_table(table, outcome="error").frame["bin"].null_count() == 1
    assert isinstance(table["bin"].dtype, pd.CategoricalDtype)  # the person's own is as it was


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.eval"])
def test_a_pointer_of_git_lfs_is_called_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(POINTER)
    with pytest.raises(InputError, match=r"is a Git LFS pointer .*git lfs pull"):
        Evidence.from_logs(path)
    if not name.endswith("eval"):
        with pytest.raises(InputError, match=r"is a Git LFS pointer .*git lfs pull"):
            Evidence.from_table(path, outcome="error")
    with pytest.raises(InputError, match=rf"such as .*{name} \(a Git LFS pointer"):
        Evidence.from_logs(tmp_path)


def test_a_file_that_was_read_beside_a_log_is_not_listed_as_unread(tmp_path: Path) -> None:
    """BFCL: the result file alone has the passes; one of a category without scores is unread."""
    for category in ("simple", "java"):
        place = tmp_path / "result" / "model" / f"BFCL_v3_{category}_result.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join(json.dumps({"id": f"s{i}", "result": "f()"}) for i in range(4)))
    place = tmp_path / "score" / "model" / "BFCL_v3_simple_score.json"
    place.parent.mkdir(parents=True)
    header = {"accuracy": 0.75, "correct_count": 3, "total_count": 4}
    failure = {"id": "s1", "valid": False, "error_type": "value_error", "prompt": {"id": "s1"}}
    place.write_text(f"{json.dumps(header)}\n{json.dumps(failure)}\n")
    evidence = Evidence.from_logs(tmp_path)
    assert evidence.account is not None
    assert (len(evidence), evidence.loss.sum()) == (4, 1)
    assert [Path(name).name for name in evidence.account.unread] == ["BFCL_v3_java_result.json"]


def test_a_spreadsheet_with_semicolons_and_decimal_commas_is_read(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text("\ufeffFrage;Länge;Note, kurz;Fehler\nq1;1,5;a;0\nq2;2;3,5;1\n", "utf-8")
    frame = Evidence.from_table(path, id="Frage", outcome="Fehler").frame
    assert frame["Länge"].to_list() == [1.5, 2]
    assert frame["Note, kurz"].to_list() == ["a", "3,5"]  # one value is no number


def test_a_tsv_file_is_separated_by_tabs_whatever_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "export.tsv"
    path.write_text("asked, plain, short\terror\nx\t1\ny\t0\n", "utf-8")
    assert Evidence.from_table(path, outcome="error").frame["asked, plain, short"].to_list() == [
        "x",
        "y",
    ]


def test_a_table_whose_header_alone_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    """Polars replaces what it cannot read in a header, without a word."""
    path = tmp_path / "export.csv"
    path.write_text("Länge,error\n1,0\n2,1\n", "cp1252")
    with pytest.raises(InputError, match=r"is not UTF-8 text; save it as CSV UTF-8"):
        Evidence.from_table(path, outcome="error")


def test_numbers_that_a_spreadsheet_spells_out_are_numbers(tmp_path: Path) -> None:
    """As words they would be too many to form a rule, and the column would be left out."""
    path = tmp_path / "export.csv"
    rows = ['e1,"1,500",85%,$0.50,3,a,0,', "e2,20,n/a,$1.25,N/A,None,1,", "e3,,7.5%,,None,4,0,"]
    header = "id,tokens,share,cost,turns,kind,error,"
    path.write_text("\n".join([header, *rows, ",,,,,,,", ""]))
    frame = Evidence.from_table(path, id="id", outcome="error").frame
    assert frame["tokens"].to_list() == [1500, 20, None]
    assert frame["share"].to_list() == [85, None, 7.5]
    assert frame["cost"].to_list() == [0.5, 1.25, None]
    # of the others not half are numbers, or one is a word
    assert frame["turns"].to_list() == ["3", "N/A", "None"]
    assert frame["kind"].to_list() == ["a", "None", "4"]
    # the row and the column of commas alone are no example and no column
    assert frame.columns == header.rstrip(",").split(",")


def test_numbers_in_words_are_numbers_in_every_kind_of_table(tmp_path: Path) -> None:
    """Digits alone stay words there: whoever has types and writes "01234" means a name."""
    path, zips = tmp_path / "export.jsonl", ["01234", "98765", "12345"]
    rows = {"id": list("abc"), "share": ["85%", "N/A", "7.5%"], "zip": zips, "error": [0, 1, 0]}
    # "1." and "1" are two answers
    rows |= {"model_answer": ["1.", "$5", "1,500"], "target": ["1", "5%", "1,500"]}
    lines = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    path.write_text("\n".join(map(json.dumps, lines)))
    for source in (path, pd.DataFrame(rows)):
        frame = Evidence.from_table(source, id="id", outcome="error").frame
        assert frame["share"].to_list() == [85, None, 7.5]
        assert frame["zip"].to_list() == zips
        assert all(frame[name].to_list() == rows[name] for name in ("model_answer", "target"))


def test_a_number_after_ten_thousand_rows_may_be_a_word(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("\n".join(["x,error", *["5,0"] * 10_000, "N/A,1", ""]))
    assert Evidence.from_table(path, outcome="error").frame["x"].null_count() == 1


def test_columns_without_a_name_are_named_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "pandas.csv"
    path.write_text(",topic,,error\n0,a,x,0\n1,b,y,1\n")
    frame = Evidence.from_table(path, outcome="error").frame
    assert frame.columns == ["row", "column 1", "topic", "column 3", "error"]


def test_lines_above_the_header_are_told(tmp_path: Path) -> None:
    path = tmp_path / "titled.csv"
    path.write_text("Results of run 12\n\ntopic,error\na,0\nb,1\n")
    with pytest.raises(InputError, match="delete the lines above the header"):
        Evidence.from_table(path, outcome="error")


def test_tables_of_two_versions_have_the_columns_and_the_ids_of_each_other(tmp_path: Path) -> None:
    """An outcome that one table lacks is no outcome that is missing, and 1.0 is the example 1."""
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("id,error\n1,0\n2,1\n")
    new.write_text("id,error\n1.0,0\n2.0,0\n")
    both = Evidence.from_table((f"old={old}", f"new={new}"), id="id", outcome="error")
    assert both.frame["id"].to_list() == ["1", "1", "2", "2"]
    new.write_text("id,correct\n1,0\n2,1\n")
    with pytest.raises(InputError, match=r"new.csv has no column 'error'; its .* are id, correct"):
        Evidence.from_table((f"old={old}", f"new={new}"), id="id", outcome="error")


def test_an_index_of_pandas_is_a_column_and_words_among_numbers_are_words() -> None:
    table = pd.DataFrame({"id": ["a", "b"], "x": [1, "many"], "error": [0, 1]}).set_index("id")
    frame = Evidence.from_table(table, id="id", outcome="error").frame
    assert (frame["id"].to_list(), frame["x"].to_list()) == (["a", "b"], ["1", "many"])
    assert table.index.name == "id"  # the person's own is as it was


def test_a_json_list_of_objects_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([{"id": 1, "x": 2, "error": 0}, {"id": 2, "x": None, "error": 1}]))
    frame = Evidence.from_table(path, id="id", outcome="error").frame
    assert frame["x"].to_list() == [2, None]
    rows = [{"id": 1, "error": 0}, {"id": 2, "error": 1}]
    path.write_text(json.dumps({"run": "r1", "tags": ["x"], "results": rows}))
    assert len(Evidence.from_table(path, id="id", outcome="error")) == 2
    path.write_text(json.dumps({"results": rows, "more": rows}))
    with pytest.raises(InputError, match="has 2 lists of objects; a table is one list"):
        Evidence.from_table(path, outcome="error")
    path.write_text("[1]")
    with pytest.raises(InputError, match="every item is a dict"):
        Evidence.from_table(path, outcome="error")
