"""Real results with what slice finders read: columns, an embedding and, where there are,
probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from groundfault.core.evidence import Evidence
from groundfault_studies import janus_audits
from groundfault_studies.real_models import Predictions, of_texts, shipped_classifiers

_WIDTH = 32
_SHOWN = 6
_MINT, _TURNS = "gpt-4-0613", 5


def matrices(folder: Path) -> Iterator[tuple[str, Evidence]]:
    """Language models on benchmarks, then classifiers trained here, each with a name.

    Parameters
    ----------
    folder : path
        With ``zeroeval`` and others. Where it is not there, classifiers of data that ship with
        scikit-learn alone.
    """
    if folder.is_dir():
        for audited in janus_audits.real_audits(folder):
            if " of " not in audited.label:  # samples of those that follow
                yield audited.label, with_embedding(audited.evidence, "question")
        yield from _others(folder)
    for predictions in [*shipped_classifiers(0), *(of_texts(folder, 0) if folder.is_dir() else ())]:
        yield predictions.name, of_predictions(predictions)


def with_embedding(evidence: Evidence, text: str) -> Evidence:
    """The evidence with a column ``embedding``: leading components of the weighted words of a
    text.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(
        evidence.frame[text].fill_null("").to_list()
    )
    components = TruncatedSVD(min(_WIDTH, words.shape[1] - 1), random_state=0).fit_transform(words)
    frame = evidence.frame.with_columns(embedding=pl.Series(list(components)))
    return Evidence.from_frame(frame, evidence.roles, evidence.provenance)


def of_predictions(predictions: Predictions) -> Evidence:
    """What a classifier says, as evidence: its probabilities, the embedding, and components of that
    as columns.
    """
    from sklearn.decomposition import PCA

    rows = len(predictions.label)
    components = PCA(min(_SHOWN, predictions.embedding.shape[1]), random_state=0).fit_transform(
        predictions.embedding
    )
    columns: dict[str, object] = {
        "id": [f"e{i:06d}" for i in range(rows)],
        "error": predictions.wrong,
        "label": predictions.label,
        "predicted": np.char.add("class ", predictions.probability.argmax(axis=1).astype(str)),
        "embedding": pl.Series(list(predictions.embedding)),
        **{f"probability_{i}": column for i, column in enumerate(predictions.probability.T)},
        **{f"component_{i}": column for i, column in enumerate(components.T)},
    }
    return Evidence.from_table(pl.DataFrame(columns), id="id", outcome="error", ignore=("label",))


def _others(folder: Path) -> Iterator[tuple[str, Evidence]]:
    def make_evidence(frame: pl.DataFrame, text: str) -> Evidence:
        ignored = [
            c
            for c in ("response", "response_chars", "target", "ground_truth", "reference")
            if c in frame.columns
        ]
        evidence = Evidence.from_table(
            frame, id="example_id", outcome="correct", positive_is_good=True, ignore=ignored
        )
        return with_embedding(evidence, text)

    outcomes = pl.read_parquet(folder / "bbh_codex" / "outcomes.parquet")
    models = outcomes["model"].unique().sort()
    yield (
        f"bbh: {models[0]}",
        make_evidence(outcomes.filter(pl.col("model") == models[0]), "question"),
    )
    grade_school = folder / "gsm8k_openai"
    outcomes, examples = (
        pl.read_parquet(grade_school / f"{name}.parquet") for name in ("outcomes", "examples")
    )
    models = outcomes["model"].unique().sort()
    table = outcomes.filter(pl.col("model") == models[0]).join(
        examples.drop("benchmark"), on="example_id"
    )
    yield f"gsm8k: {models[0]}", make_evidence(table, "question")
    episodes = pl.read_parquet(folder / "mint" / "episodes.parquet")
    examples = pl.read_parquet(
        folder / "mint" / "examples.parquet", columns=["example_id", "prompt", "reference"]
    )
    answers = episodes.filter(pl.col("model") == _MINT, pl.col("max_turns") == _TURNS)
    dialogues = answers.select("example_id", "benchmark", "task_type", "correct").join(
        examples, on="example_id"
    )
    yield f"mint, {_TURNS} turns: {_MINT}", make_evidence(dialogues, "prompt")
