"""The pipeline ``blank``: no spaCy, and nearly the same words."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from groundfault.cli.main import cli
from groundfault_lab.language import FEATURES, load_pipeline
from groundfault_lab.language.plain import PlainLanguage

TEXTS = (
    "I don't owe Dr. Smith $3.50, do I?",
    "She cannot say 'it is 5% of 1,000'; he'd rather wait...",
    "Mary's friends haven't come.  Why? See https://example.org/a?b=1, or write to me@example.org!",
    "The U.S. team's well-known plan (2019) wasn't bad, e.g. for 10km or 12:30.\n\nNext one.",
    "",
    "   ",
    "We'll go; they've gone -- I'm not sure it’s right, isn’t it?",
)


def test_words_and_marks_are_split_as_spacy_splits_them() -> None:
    spacy = pytest.importorskip("spacy", reason="needs the extra language of groundfault-lab")
    theirs, ours = spacy.blank("en"), PlainLanguage()
    there = [f for f in FEATURES.values() if not load_pipeline("blank").lacking(f)]
    for text in TEXTS:
        docs = theirs.make_doc(text), ours.make_doc(text)
        words = [[t.text for t in doc if any(map(str.isalnum, t.text))] for doc in docs]
        assert words[0] == words[1]
        for feature in there:
            if feature.name != "word_frequency":
                assert feature.measure(docs[0]) == feature.measure(docs[1]), feature.name
    # no letter is lost
    assert all(
        "".join(text.split())
        in "".join(t.text for t in ours.make_doc(text)).replace(" ", "").replace("\n", "")
        for text in TEXTS
    )


def test_features_and_explain_run_without_spacy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_pipeline.cache_clear()
    monkeypatch.setitem(sys.modules, "spacy", None)
    table, out = tmp_path / "t.parquet", tmp_path / "out.parquet"
    pl.DataFrame({"text": ["He was not there.", "She was."]}).write_parquet(table)
    call = ["lab", "features", str(table), "--text", "text", "-o", str(out)]
    result = CliRunner().invoke(cli, [*call, "--pipeline", "blank"])
    assert result.exit_code == 0, result.output
    assert pl.read_parquet(out)["text_negation"].to_list() == [1, 0]
    refused = CliRunner().invoke(cli, call)
    assert "name the pipeline blank for the features that need none" in str(refused.exception)
    load_pipeline.cache_clear()
