"""The study of DEIM: pairs of data and model from a file, its tables, and going on where it was
stopped.
"""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from groundfault.errors import InputError, MissingExtraError
from groundfault_lab.commands.study import study as command
from groundfault_lab.language import DEFAULT, load_pipeline
from groundfault_lab.slicing import Spotlight
from groundfault_studies import deim, deim_explain, discover, pair_texts
from groundfault_studies.deim import study
from groundfault_studies.discover import FITTED
from groundfault_studies.pairs import Pair, read_pairs
from groundfault_studies.real_models import Predictions

SMALL = """
[[pair]]
name = "reviews"
made = "reviews"
train = 200
most = 500
"""


def write_pairs(place: Path, text: str) -> Path:
    path = place / "pairs.toml"
    path.write_text(text)
    return path


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less of everything."""
    monkeypatch.setattr(
        deim_explain,
        "ABLATIONS",
        {"defaults": {}, "embedding_weight = 1": {"embedding_weight": 1.0}},
    )
    monkeypatch.setattr(deim_explain, "_TABLE_9", deim_explain._TABLE_9[:2])
    easier = partial(deim_explain.make_mixes, min_targets=25)
    monkeypatch.setattr(deim_explain, "make_mixes", easier)
    monkeypatch.setattr(deim, "QUICK_ROUNDS", 1)
    for room in (deim, deim_explain, discover):
        monkeypatch.setattr(room, "Spotlight", partial(Spotlight, steps=10))
    monkeypatch.setattr(deim, "QUICK_PERMUTATIONS", 99)


# --------------------------------------------------------------------------------------- made texts


def test_a_bag_of_words_misreads_the_negations_of_made_reviews() -> None:
    texts, labels = pair_texts.reviews(400)
    assert (len(texts), texts.n_unique(), labels.n_unique()) == (400, 400, 2)
    again = pair_texts.reviews(300)
    assert again[0].to_list() == texts[:300].to_list()
    negated = texts.str.contains(r"\b(not|never)\b")
    praised = pl.Series([bool(set(re.findall(r"\w+", t)) & set(pair_texts._GOOD)) for t in texts])
    assert ((labels == "praise") == (praised != negated)).all()
    predictions = Pair("reviews", made="reviews").predictions(0)
    wrong = predictions.wrong
    negations = np.array([bool(re.search(r"\b(not|never)\b", text)) for text in predictions.texts])
    assert wrong[negations].mean() > 0.6 > 0.3 > wrong[~negations].mean()


def test_documentation_is_prose_of_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_texts, "_LIBRARIES", ("click", "jinja2", "no_such_library"))
    texts, labels = pair_texts.documentation.__wrapped__()
    assert set(labels.unique()) == {"click", "jinja2"}
    assert texts.n_unique() == len(texts) > 150
    assert all(len(text) > 30 and "\n" not in text and "--" not in text for text in texts)
    assert pair_texts.documentation.__wrapped__()[0].equals(texts)


# -------------------------------------------------------------------------------------- pairs files


def test_shipped_pairs_need_no_table() -> None:
    pairs = read_pairs()
    assert len(pairs) >= 4
    assert not any(pair.table for pair in pairs)
    digits = next(pair for pair in pairs if pair.made.startswith("digits")).predictions(1)
    assert digits.name == "digits, logistic"
    assert not digits.texts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "describes no pair"),
        ("[[pair", "not TOML"),
        ("[other]\n", "there is no 'other'"),
        ("[[pair]]\nmade = 'reviews'\ntraining = 3", "there is no 'training'"),
        ("[[pair]]\nname = 'x'", "either a table, or made"),
        ("[[pair]]\nmade = 'reviews'\ntable = 'x.csv'", "either a table, or made"),
        ("[[pair]]\nmade = 'poems'", "'poems' is none of 'reviews'"),
        ("[[pair]]\ntable = 'x.csv'\ntext = 't'\nlabel = 'l'", "name is missing"),
        ("[[pair]]\nname = 'x'\ntable = 'x.csv'\ntext = 't'", "label is missing"),
        ("[[pair]]\nname = 'x'\ntable = 'x.csv'\nlabel = 'l'", "give text"),
        ("[[pair]]\nname = 'x'\ntable = 'x.csv'\nlabel = 'l'\nembedding = 'e'", "give text"),
        (
            "[[pair]]\nname = 'x'\ntable = 'x.csv'\nlabel = 'l'\ntext = 't'\nembedding = 'e'",
            "give probability too",
        ),
        ("[[pair]]\nmade = 'reviews'\ntrain = 0", "train must be a whole number"),
        ("[[pair]]\nmade = 'reviews'\nname = 3", "name is not text"),
        ("[[pair]]\nmade = 'reviews'\n[[pair]]\nmade = 'reviews'", "two pairs are named 'reviews'"),
    ],
)
def test_pairs_that_cannot_be_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = write_pairs(tmp_path, text)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        read_pairs(path)
    assert str(path) in str(error.value)


def questions(count: int = 400) -> pl.DataFrame:
    texts, labels = pair_texts.reviews(count)
    return pl.DataFrame({"question": texts, "task": labels})


def test_a_table_is_found_from_its_file_and_each_text_is_used_once(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    frame = questions()
    blank = pl.DataFrame({"question": ["Nobody knows."], "task": [None]}, schema=frame.schema)
    pl.concat([frame, frame, blank]).write_parquet(tmp_path / "data" / "q.parquet")
    text = (
        "[[pair]]\nname = 'q'\ntable = 'data/q.parquet'\ntext = 'question'\n"
        "label = 'task'\ntrain = 200"
    )
    (pair,) = read_pairs(write_pairs(tmp_path, text))
    predictions = pair.predictions(0)
    assert len(predictions.texts) == len(predictions.label) == 200
    assert len(set(predictions.texts)) == 200
    label = dict(zip(frame["question"], frame["task"] == "praise", strict=True))
    assert [label[text] for text in predictions.texts] == predictions.label.astype(bool).tolist()
    assert pair.predictions(0).texts == predictions.texts != pair.predictions(1).texts


def export_predictions(place: Path, count: int = 300) -> Predictions:
    """What a model predicted, as a user would export it."""
    predictions = Pair("reviews", made="reviews", most=300 + count).predictions(0)
    names = np.array(["complaint", "praise"])
    pl.DataFrame(
        {
            "text": predictions.texts,
            "label": names[predictions.label],
            "embedding": list(predictions.embedding),
        }
        | {f"probability_{name}": predictions.probability[:, i] for i, name in enumerate(names)}
    ).write_parquet(place / "model.parquet")
    return predictions


EXPORTED = """
[[pair]]
name = "mine"
table = "model.parquet"
text = "text"
label = "label"
probability = "probability*"
embedding = "embedding"
"""


def test_what_another_model_predicted_is_read_row_by_row(tmp_path: Path) -> None:
    predictions = export_predictions(tmp_path)
    (pair,) = read_pairs(write_pairs(tmp_path, EXPORTED))
    rows = pair.predictions(0)
    order = [predictions.texts.index(text) for text in rows.texts]
    assert sorted(order) == list(range(300)) != order
    np.testing.assert_array_equal(rows.label, predictions.label[order])
    np.testing.assert_array_equal(rows.probability, predictions.probability[order])
    np.testing.assert_array_equal(rows.embedding, predictions.embedding[order])
    assert pair.predictions(1).texts != rows.texts
    (plain,) = read_pairs(write_pairs(tmp_path, EXPORTED.replace('embedding = "embedding"', "")))
    assert plain.predictions(0).embedding.shape == (300, 64)
    key = pair.key
    lists = pl.DataFrame(
        {
            "text": predictions.texts,
            "label": predictions.label,
            "said": list(predictions.probability),
        }
    )
    lists.write_parquet(tmp_path / "lists.parquet")
    changes = {
        "model.parquet": "lists.parquet",
        'embedding = "embedding"': "",
        '"probability*"': '"said"',
    }
    text = EXPORTED
    for old, new in changes.items():
        text = text.replace(old, new)
    (numbered,) = read_pairs(
        write_pairs(tmp_path, text)
    )  # of one column of lists classes are numbered from 0
    assert numbered.predictions(0).wrong.mean() == predictions.wrong.mean()
    frame = pl.read_parquet(tmp_path / "model.parquet")
    frame[1:].write_parquet(tmp_path / "model.parquet")
    assert pair.key != key


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.head(100), "it takes all, and 120"),
        (
            lambda t: t.with_columns(label=pl.lit("rave")),
            "'rave', which is none of the classes complaint, praise",
        ),
        (lambda t: t.drop("label"), "no column 'label'"),
        (lambda t: t.drop("embedding"), "no column is named, or matches, 'embedding'"),
        (lambda t: t.with_columns(text=pl.lit(3)), "not text"),
        (
            lambda t: t.with_columns(probability_praise=pl.lit(float("nan"))),
            "0 of 300 examples have all numbers",
        ),
        (lambda t: t.with_columns(probability_praise=pl.lit(0.9)), "sum"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_by_name(
    tmp_path: Path, change: Any, message: str
) -> None:
    export_predictions(tmp_path)
    change(pl.read_parquet(tmp_path / "model.parquet")).write_parquet(tmp_path / "model.parquet")
    (pair,) = read_pairs(write_pairs(tmp_path, EXPORTED))
    with pytest.raises(InputError, match=re.escape(message)) as error:
        pair.predictions(0)
    assert "pair 'mine'" in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.head(250), "it takes 320"),
        (lambda t: t.with_columns(task=pl.lit("same")), "nothing to learn"),
        (
            lambda t: t.with_columns(question=pl.format("{}", pl.int_range(pl.len()))),
            "no model can be trained",
        ),
    ],
)
def test_a_table_that_nothing_can_be_learnt_from_is_refused(
    tmp_path: Path, change: Any, message: str
) -> None:
    change(questions()).write_parquet(tmp_path / "q.parquet")
    text = (
        "[[pair]]\nname = 'q'\ntable = 'q.parquet'\ntext = 'question'\nlabel = 'task'\ntrain = 200"
    )
    (pair,) = read_pairs(write_pairs(tmp_path, text))
    with pytest.raises(InputError, match=message):
        pair.predictions(0)


# ------------------------------------------------------------------------------------------ explain


@pytest.mark.usefixtures("quickly")
def test_the_errors_of_made_reviews_are_explained_by_their_negations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("spacy", reason="needs the extra: pip install 'groundfault-lab[language]'")
    monkeypatch.setattr(deim_explain, "make_mixes", lambda *_: [])
    predictions = Pair("reviews", made="reviews").predictions(0)
    rows = {
        row["method"]: row for row in deim_explain.rows(predictions, load_pipeline("blank"), 0, 499)
    }
    often = {method: row["often"]["corrected"] for method, row in rows.items()}
    assert max(often["edisa"], key=often["edisa"].get) == "negation"
    assert "negation" in often["every error"]
    assert not often["random"]
    assert rows["edisa"]["paper"]["marks"] > rows["edisa"]["corrected"]["marks"] > 0
    assert rows["every error"]["corrected"]["completeness"] == 1.0


@pytest.mark.usefixtures("quickly")
def test_methods_without_slices_group_as_they_must() -> None:
    predictions = Pair("reviews", made="reviews", most=620).predictions(0)
    sliced = deim_explain._error_slices(predictions, deim_explain.Plan(), mixed=True)
    assert sliced["random"].sum() == sliced["edisa"].sum()
    assert sliced["confidence"].sum() == sliced["edisa"].any(axis=0).sum()
    np.testing.assert_array_equal(sliced["every error"][0], predictions.wrong)
    assert not predictions.wrong[~sliced["every error"][0]].any()
    for row in sliced["edisa"]:
        assert predictions.wrong[row].mean() > 0.5  # error slices, labels known


# ---------------------------------------------------------------------------------------- the study


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
def test_a_run_that_was_stopped_is_the_same_as_one_that_was_not(tmp_path: Path) -> None:
    path, keep = (
        write_pairs(tmp_path, "[[pair]]\nmade = 'breast cancer, naive Bayes'"),
        tmp_path / "kept" / "rows.jsonl",
    )
    settings: dict[str, Any] = {"pairs": path, "pipeline": "blank", "seeds": 2, "quick": True}
    whole = study(**settings, keep=keep)
    lines = keep.read_text().splitlines(keepends=True)
    assert len(lines) == 2
    keep.write_text(lines[0] + lines[1][:100])
    messages: list[str] = []
    assert study(**settings, keep=keep, progress=messages.append).to_json() == whole.to_json()
    assert any(line.startswith("1 of 1: breast cancer, naive Bayes, seed 1") for line in messages)
    assert whole.lacking == ("Tables 8 to 10 (Explain), which need a pair with texts",)


@pytest.mark.usefixtures("quickly")
def test_all_tables_are_there_beside_the_numbers_of_the_paper(tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="needs the extra: pip install 'groundfault-lab[language]'")
    whole = study(pairs=write_pairs(tmp_path, SMALL), pipeline="blank", quick=True)
    titles = [table.title for table in whole.tables]
    for number in (
        "Table 4",
        "Table 5",
        "Table 8",
        "Table 9",
        "Table 10",
        "Table 11",
        "Table 12",
        "Figure 6",
    ):
        assert any(title.startswith(number) for title in titles), number
    assert not whole.lacking
    assert list(whole.figures) == ["figure-6-reviews"]
    text = whole.to_markdown()
    for number_of_paper in ("63.32%", "29.22%", "33.72%", "21.74%", "85.48%", "91.77%"):
        assert number_of_paper in text
    assert "other models and data" in whole.title
    by_title = {
        table.title.split(":")[0]: {row.label: row.here for row in table.rows}
        for table in whole.tables
    }
    for method in ("edisa", "domino", "spotlight", "confidence", "random", "every error"):
        assert f"reviews: {method}" in by_title["Table 8"]
        assert f"reviews: {method}" in by_title["Table 10"]
    assert by_title["Table 8"]["reviews: every error"]["recall"] == 1.0
    for table in ("Table 11", "Table 12"):
        for method in ("edisa", "domino", "spotlight", "confidence", "random"):
            assert f"reviews: {method}" in by_title[table]
        same = by_title[table]["reviews: confidence"]
        assert same["c_improvement"] == pytest.approx(0)
        assert same["found"] == by_title["Table 11"]["reviews: edisa"]["found"]


@pytest.mark.usefixtures("quickly")
def test_without_spacy_tables_8_to_10_have_the_features_that_need_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_pipeline.cache_clear()
    monkeypatch.setitem(sys.modules, "spacy", None)
    path = write_pairs(tmp_path, SMALL)
    out = tmp_path / "out"
    ran = CliRunner().invoke(command, ["deim", "--quick", "--pairs", str(path), "--out", str(out)])
    assert isinstance(ran.exception, InputError)
    assert "pip install 'groundfault-lab[language]'" in str(ran.exception)
    result = json.loads((out / "deim.json").read_text())
    titles = [table["title"] for table in result["tables"]]
    for number in (8, 9, 10, 12):
        assert any(title.startswith(f"Table {number}") for title in titles)
    assert result["settings"]["quick"]
    load_pipeline.cache_clear()


def test_the_pipeline_falls_back_to_none_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_blank(name: str) -> Any:
        if name == DEFAULT:
            raise MissingExtraError(
                f"the spaCy pipeline {name} is not installed: python -m spacy download {name}"
            )
        return load_pipeline(name)

    monkeypatch.setattr(deim, "load_pipeline", only_blank)
    reader, lacking = deim._reader(None)
    assert reader.name == "blank"
    assert re.fullmatch(r"20 of 38 linguistic features: .* spacy download .*", lacking[0])
    with pytest.raises(MissingExtraError):
        deim._reader(DEFAULT)


def test_a_pair_without_errors_is_named(tmp_path: Path) -> None:
    predictions = export_predictions(tmp_path)
    frame = pl.read_parquet(tmp_path / "model.parquet")
    classes = np.array(["complaint", "praise"])[predictions.probability.argmax(axis=1)]
    frame.with_columns(label=pl.Series(classes)).write_parquet(tmp_path / "model.parquet")
    (pair,) = read_pairs(write_pairs(tmp_path, EXPORTED))
    with pytest.raises(InputError, match=r"^pair 'mine': "):
        deim.measure_pair(pair, 0, "", 9)


def test_hardly_any_example_of_a_class_leaves_figure_6_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    label = (np.arange(300) % 100 == 99).astype(np.int64)
    rare = Predictions("rare", rng.normal(size=(300, 3)), label, np.tile([0.9, 0.1], (300, 1)))
    monkeypatch.setattr(Pair, "predictions", lambda *_: rare)
    curves, lacking = deim._curves([Pair("rare", made="reviews")], 1, 1, True, None, print)
    assert not curves
    assert lacking[0].startswith("Figure 6 of rare: with seed 0")


@pytest.mark.usefixtures("quickly")
def test_random_and_confidence_suspect_as_many_as_edisa() -> None:
    predictions = Pair("reviews", made="reviews", most=700).predictions(0)
    improvements = deim._improve(predictions, 0)
    assert {
        by["rejected"].steps
        for name, by in improvements.items()
        if name in ("edisa", "confidence", "random")
    } == {improvements["edisa"]["rejected"].steps}
    _, rest = predictions.split(FITTED)
    assert improvements["random"]["rejected"].original == pytest.approx(1 - rest.wrong.mean())
    np.testing.assert_allclose(
        improvements["confidence"]["rejected"].accuracy,
        improvements["edisa"]["rejected"].confidence,
    )
    np.testing.assert_allclose(
        improvements["confidence"]["relabelled"].accuracy,
        improvements["edisa"]["relabelled"].confidence,
    )
