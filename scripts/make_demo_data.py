"""The answers that ``groundfault demo`` audits: 2,000 of one model's 10,000, drawn at random.

    python scripts/make_demo_data.py ../shared/data/real/known_holes

The same source gives the same rows. The table goes to ``src/groundfault/cli/data``; the README
there says what it is.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import polars as pl

MODEL = "number_words#1"
ROWS = 2_000
SEED = 1
TABLE = Path(__file__).parents[1] / "src" / "groundfault" / "cli" / "data" / "number_words.parquet"


def draw_answers(source: Path) -> pl.DataFrame:
    """Draw examples and join the model's answers to them.

    Parameters
    ----------
    source : Path
        The folder of the data set, with ``examples.parquet`` and ``outcomes.parquet``.

    Returns
    -------
    polars.DataFrame
        One row an example, in the order of their ids: ``id``, ``prompt``, ``target``, ``answer``,
        ``correct`` and the attributes.
    """
    examples = pl.read_parquet(source / "examples.parquet").sort("example_id")
    answers = pl.read_parquet(source / "outcomes.parquet").filter(pl.col("model") == MODEL)
    # Python's generator, not that of polars: its sample is the same in every version
    ids = random.Random(SEED).sample(examples["example_id"].to_list(), ROWS)
    rows = (
        examples.filter(pl.col("example_id").is_in(ids))
        .join(answers.drop("model"), on="example_id", validate="1:1", maintain_order="left")
        .rename({"example_id": "id"})
    )
    first = ["id", "prompt", "target", "answer", "correct"]
    return rows.select(*first, pl.exclude(first))


if __name__ == "__main__":
    draw_answers(Path(sys.argv[1])).write_parquet(TABLE, compression="zstd", compression_level=19)
