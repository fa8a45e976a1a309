"""Tables of features: a column for each feature of a column of texts, and a cache of them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from groundfault.base.files import write_bytes
from groundfault.base.reading import MAX_ROWS, read_bytes
from groundfault.errors import InputError, first_line
from groundfault.language.feature import Feature
from groundfault.language.pipeline import Pipeline, require_texts

_SENTENCE = re.compile(r"[^.!?\n]*\w[^.!?\n]*")


@dataclass(frozen=True)
class FeatureTable:
    """Features of a column of texts.

    Attributes
    ----------
    frame : polars.DataFrame
        One column a feature that is available, named after the column of texts; NULL where it has
        no value.
    lacking : dict of str to str
        Features that are not available, each with the reason.
    texts, sentences : int
        Different texts, and about how many sentences they have.
    """

    frame: pl.DataFrame
    lacking: dict[str, str]
    texts: int
    sentences: int


def feature_table(
    texts: pl.Series,
    features: Sequence[Feature],
    pipeline: Pipeline,
    *,
    norms: Mapping[str, Mapping[str, float]] | None = None,
    jobs: int = 1,
    progress: Callable[[int], object] | None = None,
) -> FeatureTable:
    """Measure features of a column of texts.

    Parameters
    ----------
    texts : polars.Series
        Strings; a missing one has no features.
    features : sequence of Feature
    pipeline : Pipeline
    norms : mapping, optional
        See `groundfault.language.read_norms`.
    jobs : int
        Processes that annotate.
    progress : callable, optional
        Called with how many more different texts are done.

    Raises
    ------
    InputError
        If the column holds no texts.
    """
    require_texts(texts)
    lacking = {f.name: reason for f in features if (reason := pipeline.lacking(f, norms))}
    there = [f for f in features if f.name not in lacking]
    values = pipeline.measure_column(texts, there, norms=norms, jobs=jobs, progress=progress)
    measured = (
        pl.Series(f"{texts.name}_{f.name}", values[:, j]).fill_nan(None)
        for j, f in enumerate(there)
    )
    # counts are written as integers, so that a CSV file has 2 and not 2.0
    columns = [c.cast(pl.Int64) if (c.drop_nulls() % 1 == 0).all() else c for c in measured]
    different = texts.drop_nulls().unique().to_list()
    sentences = sum(len(_SENTENCE.findall(text)) for text in different)
    return FeatureTable(pl.DataFrame(columns), lacking, len(different), sentences)


def load_memory(pipeline: Pipeline, path: str | Path) -> int:
    """Let a pipeline remember what `save_memory` wrote of it, and say how many texts those are.

    What another pipeline wrote, or another version of the features, is passed over; so is a file
    that is not there.

    Raises
    ------
    InputError
        If the file is something else.
    """
    if not Path(path).exists():
        return 0
    try:
        table = pl.read_parquet(io.BytesIO(read_bytes(path, MAX_ROWS)))
        rows = table.filter(pl.col("pipeline") == pipeline.key).drop("pipeline")
        texts = rows.drop_in_place("text").cast(pl.String).to_list()
        memory = [
            {name: float(value) for name, value in row.items() if value is not None}
            for row in rows.to_dicts()
        ]
    except (OSError, pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is no cache of features ({first_line(error)}); name another file"
        ) from None
    pipeline.memory.update(zip(texts, memory, strict=True))
    return len(texts)


def save_memory(pipeline: Pipeline, path: str | Path) -> None:
    """Write a pipeline's memory to a Parquet file: hashes of texts and features, never a text."""
    rows = [
        {"pipeline": pipeline.key, "text": text, **values}
        for text, values in pipeline.memory.items()
    ]
    # in memory first: the file is replaced at once or not at all
    data = io.BytesIO()
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(data)
    write_bytes(Path(path), data.getvalue())
