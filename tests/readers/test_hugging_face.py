"""Data sets of Hugging Face and tables of Python: the rows that their owner sees."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from groundfault import Evidence, InputError
from groundfault.readers.table import read_table

SAVED = Path(__file__).parents[1] / "fixtures/logs/datasets_5.2.0"


def test_a_saved_data_set_is_a_table() -> None:
    evidence = Evidence.from_table(SAVED / "sharded", id="id", outcome="error")
    assert len(evidence) == 60
    assert evidence.loss.sum() == 20
    # a class label has its name, but in the outcome
    assert evidence.frame["lang"].to_list()[:3] == ["de", "en", "en"]
    # what a report names is read again as it was, labels too
    assert evidence.provenance == (str(SAVED / "sharded"),)
    assert read_table(SAVED / "one_split")[1] == (str(SAVED / "one_split/test"),)
    # a shard by itself is an Arrow file in the stream format
    assert read_table(SAVED / "sharded/data-00001-of-00002.arrow")[0].height == 30


def test_of_several_splits_one_is_named() -> None:
    with pytest.raises(InputError, match=r"has several splits.*splits/train, .*splits/test"):
        read_table(SAVED / "splits")
    assert read_table(SAVED / "splits/test")[0].height == 59
    frame, _ = read_table(SAVED / "one_split")
    assert frame["id"][0] != "q01"
    assert set(frame["id"]) == {f"q{i:02}" for i in range(1, 60)}


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("state.json", "data-00000", "../data-00000", "names files that are not in"),
        ("state.json", "data-00000", "data-00009", "names files that are not in"),
        ("state.json", '"_data_files"', '"files"', "names files that are not in"),
        ("state.json", "{", "[", "JSON|expected"),
        ("dataset_info.json", "{", "[", "JSON|expected"),
    ],
)
def test_a_damaged_folder_is_one_line(
    tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    shutil.copytree(SAVED / "sharded", tmp_path / "d")
    place = tmp_path / "d" / name
    place.write_text(place.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "d")


def test_a_damaged_shard_is_one_line(tmp_path: Path) -> None:
    shutil.copytree(SAVED / "sharded", tmp_path / "d")
    shard = tmp_path / "d/data-00000-of-00002.arrow"
    shard.write_bytes(shard.read_bytes()[:200])
    with pytest.raises(InputError, match="cannot be read as Arrow"):
        read_table(tmp_path / "d")


def test_data_sets_in_memory_keep_their_order_and_selection() -> None:
    datasets = pytest.importorskip("datasets", reason="needs Hugging Face's datasets")
    whole = datasets.load_from_disk(str(SAVED / "sharded"))
    part = whole.filter(lambda row: row["words"] > 9).shuffle(seed=1)
    frame, provenance = read_table(part, numbers=("error",))
    assert frame["id"].to_list() == part["id"][:]
    assert frame["lang"].to_list() == [["de", "en"][i] for i in part["lang"]]
    assert provenance == ("a datasets table",)
    assert Evidence.from_table(part, id="id", outcome="error").loss.sum() == 16
    with pytest.raises(InputError, match="has the splits 'train', 'test': give one of them"):
        read_table(datasets.DatasetDict({"train": whole, "test": part}))
    with pytest.raises(InputError, match="is streamed"):
        read_table(whole.to_iterable_dataset())


def test_tables_of_python() -> None:
    columns = {"id": ["a", "b"], "error": [1, 0], "tags": [["x"], []]}
    listed = [{"id": "a", "error": 1, "more": 2}, {"id": "b", "error": 0}]
    assert Evidence.from_table(columns, id="id", outcome="error").loss.to_list() == [1, 0]
    evidence = Evidence.from_table(listed, id="id", outcome="error")
    assert evidence.frame["more"].to_list() == [2, None]
    assert evidence.provenance == ("a list of Python",)
    for source, message in (
        ([1, 2], "every item is a dict"),
        ({"a": [1, 2], "b": [1]}, "cannot read the dict as a table"),
        (3, "a dict of columns or a list of dicts"),
    ):
        with pytest.raises(InputError, match=message):
            read_table(source)


def test_letters_of_inspect_are_outcomes(tmp_path: Path) -> None:
    table = {"id": list("abcd"), "score_match": ["C", "I", "P", "N"], "n": [1, 2, 3, 4]}
    evidence = Evidence.from_table(table, id="id", outcome="score_match")
    assert evidence.loss.to_list() == [0, 1, 0.5, None]
    assert evidence.status.to_list() == ["scored", "scored", "scored", "refused"]
    assert evidence.roles.positive_is_good
    with pytest.raises(InputError, match="of which C is correct"):
        Evidence.from_table(table, id="id", outcome="score_match", positive_is_good=False)
    # a sample without a score is not refused: somebody has to say what it is
    table["score_match"][3] = None  # type: ignore[call-overload]
    with pytest.raises(InputError, match="is empty in 1 of 4 rows"):
        Evidence.from_table(table, id="id", outcome="score_match")
    # other letters are no grades
    table["score_match"] = ["C", "D", "C", "D"]
    pl.DataFrame(table).write_csv(tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"passes=\['C'\]"):
        Evidence.from_table(
            tmp_path / "t.csv", id="id", outcome="score_match", positive_is_good=True
        )


@pytest.mark.slow
def test_the_data_frame_of_inspect_is_a_table() -> None:
    analysis = pytest.importorskip("inspect_ai.analysis", reason="needs inspect_ai")
    log = SAVED.parent / "inspect_0.3.285_base.eval"
    frame = analysis.samples_df(str(log), quiet=True)
    evidence = Evidence.from_table(frame, id="id", repeat="epoch", outcome="score_match")
    assert evidence.loss.to_list() == Evidence.from_logs(log).loss.to_list()
