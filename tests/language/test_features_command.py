"""``groundfault lab features``: texts become columns, what is lacking is said, and nothing is
annotated twice.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from groundfault.errors import GroundfaultError, InputError, MissingExtraError, PlanError

pytest.importorskip("spacy", reason="needs the extra: pip install 'groundfault-lab[language]'")

from groundfault.cli.main import cli, main
from groundfault_lab.commands.features import features
from groundfault_lab.language import load_memory, load_pipeline

TEXTS = ["Why was he not told?", None, "", "Sixty dollars, on 3 May 2020.", "Why was he not told?"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "texts.parquet"
    pl.DataFrame({"id": range(5), "question": TEXTS, "n": [1.0] * 5}).write_parquet(path)
    return path


def run(*args: object) -> Result:
    return CliRunner().invoke(features, [str(a) for a in args], catch_exceptions=False)


def test_a_column_a_feature(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    output = run(table, "--text", "question", "--pipeline", "blank", "-o", out).output
    table_out = pl.read_parquet(out)
    assert table_out.columns[:3] == ["id", "question", "n"]
    assert table_out["question_negation"].to_list() == [1, None, 0, 0, 1]
    assert table_out["question_why_question"].to_list() == [1, None, 0, 0, 1]
    assert table_out["question_length"].to_list() == [5, None, 0, 6, 5]
    assert table_out["question_money"].to_list() == [0, None, 0, 1, 0]
    assert table_out["question_word_frequency"][2] is None
    assert "question_voice" not in table_out.columns
    assert (
        "voice not available: needs a pipeline with a tagger and a dependency parser, which blank "
        "is not" in output
    )
    assert "features of 3 different texts, about 2 sentences in" in output


def test_the_cache_gives_the_same_numbers(table: Path, tmp_path: Path, shared: Path) -> None:
    outs = [tmp_path / f"{i}.csv" for i in range(2)]
    cache, model = tmp_path / "cache.parquet", shared / "spacy_ud_ewt"
    output = [
        run(table, "--text", "question", "--pipeline", model, "--cache", cache, "-o", out).output
        for out in outs
    ]
    assert outs[0].read_text() == outs[1].read_text()
    assert "cache: 0 texts known" in output[0]
    assert "cache: 0 texts known" not in output[1]
    pipeline = load_pipeline.__wrapped__(str(model))
    assert load_memory(pipeline, cache) >= 3
    assert "Why" not in str(pl.read_parquet(cache).select(pl.col(pl.String)).to_dicts())
    assert load_memory(load_pipeline("blank"), cache) == 0


def test_what_is_in_the_cache_is_not_annotated(
    table: Path, tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = (
        "--text",
        "question",
        "--pipeline",
        shared / "spacy_ud_ewt",
        "--cache",
        tmp_path / "cache.parquet",
    )
    load_pipeline.cache_clear()
    run(table, *args, "-o", tmp_path / "first.csv")
    load_pipeline.cache_clear()
    calls: list[str] = []
    monkeypatch.setattr(
        "spacy.language.Language.pipe", lambda self, texts, **_: iter(calls.extend(texts) or ())
    )
    output = run(table, *args, "-o", tmp_path / "second.csv").output
    assert calls == []
    assert "cache: 3 texts known, 3 kept" in output
    assert " a second)" in output
    assert (tmp_path / "first.csv").read_text() == (tmp_path / "second.csv").read_text()


def test_explain_says_so_before_it_reads_and_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    load_pipeline.cache_clear()
    words = ["lab", "explain", "no_such.csv", "--outcome", "error", "--text", "question"]
    assert isinstance(CliRunner().invoke(cli, words).exception, MissingExtraError)


def test_without_spacy_one_line_says_what_to_install(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    monkeypatch.setattr(
        sys,
        "argv",
        ["", "lab", "features", str(table), "--text", "question", "-o", str(tmp_path / "o.csv")],
    )
    load_pipeline.cache_clear()
    with pytest.raises(SystemExit, match="2"):
        main()
    assert (
        capsys.readouterr().err
        == "error: this pipeline needs spaCy: pip install 'groundfault-lab[language]', or name the "
        "pipeline blank for the features that need none\n"
    )


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        (
            ["--text", "answer"],
            InputError,
            "there is no column 'answer'; there are id, question, n",
        ),
        (["--text", "n"], InputError, "column 'n' holds Float64, not text"),
        (["--text", "question", "--set", "mood"], PlanError, "no linguistic feature or set 'mood'"),
        (["--text", "question", "--set", ","], PlanError, "names no feature"),
        (["--text", "question", "--norms", "none.csv"], InputError, "cannot read the word norms"),
        (
            ["--text", "question", "--text", "question"],
            InputError,
            "has a column 'question_length' already",
        ),
        (["--text", "question", "-o", "out.txt"], InputError, "cannot tell from 'out.txt'"),
    ],
)
def test_what_cannot_be_done_is_said(
    table: Path, tmp_path: Path, args: list[str], error: type[GroundfaultError], message: str
) -> None:
    out = tmp_path / "out.parquet"
    with pytest.raises(error, match=message):
        run(table, "--pipeline", "blank", "-o", out, *args)
    assert not out.exists()


def test_what_is_no_cache_is_refused(table: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.parquet"
    cache.write_text("nothing of the kind")
    with pytest.raises(InputError, match="is no cache of features"):
        run(
            table,
            "--text",
            "question",
            "--pipeline",
            "blank",
            "--cache",
            cache,
            "-o",
            tmp_path / "out.csv",
        )
    pl.DataFrame({"a": [1]}).write_parquet(cache)
    with pytest.raises(InputError, match="is no cache of features"):
        run(
            table,
            "--text",
            "question",
            "--pipeline",
            "blank",
            "--cache",
            cache,
            "-o",
            tmp_path / "out.csv",
        )


def test_text_attributes_need_no_pipeline(tmp_path: Path) -> None:
    texts = ["What is 3 plus 40?", "WHAT IS 3 PLUS 40?", "Spell the word lead.", None] * 10
    table, out = tmp_path / "texts.csv", tmp_path / "out.parquet"
    pl.DataFrame({"id": range(40), "question": texts}).write_csv(table)
    result = run(table, "--text", "question", "--text-attributes", "-o", out)
    read = pl.read_parquet(out)
    assert read["question_all_in_capitals"].to_list()[:4] == [0, 1, 0, None]
    assert read["question_numbers"].to_list()[:4] == [2, 2, 0, None]
    assert read["question_template"][0] != read["question_template"][2]
    assert "  question_all_in_capitals: question is all in capitals" in result.output
    assert "wrote 40 rows" in result.output


def test_text_attributes_go_without_options_of_the_pipeline(table: Path, tmp_path: Path) -> None:
    args = ("--text", "question", "--text-attributes", "--set", "negation")
    with pytest.raises(PlanError, match="--set is about linguistic features"):
        run(table, *args, "-o", tmp_path / "out.csv")


def test_columns_are_not_overwritten_by_text_attributes(tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    pl.DataFrame({"question": ["a", "b"], "question_words": [1, 1]}).write_csv(table)
    with pytest.raises(InputError, match="'question_words' already"):
        run(table, "--text", "question", "--text-attributes", "-o", tmp_path / "out.csv")
