"""Whole audits of wide tables, long texts and several models, through the shell.

    python benchmarks/wide_tables.py [--only flags mixed texts rows models]

Each audit runs in a process of its own, with its files, and its largest resident memory is that of
the whole process. Failures depend on two flags, on nothing, or on the model.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl
from memory import measure


def draw_flags(rng: np.random.Generator, rows: int, columns: int) -> pl.DataFrame:
    """Return flags, two of which go together with failures."""
    flags = rng.random((rows, columns)) < rng.uniform(0.05, 0.5, columns)
    failed = rng.random(rows) < np.where(flags[:, 0] & flags[:, 1], 0.6, 0.2)
    return pl.DataFrame({f"f{i}": flags[:, i] for i in range(columns)}).with_columns(failed=failed)


def draw_mixed(rng: np.random.Generator, rows: int, columns: int) -> pl.DataFrame:
    """Return labels, numbers, flags and counts in turn."""
    kinds: tuple[Callable[[], np.ndarray], ...] = (
        lambda: rng.integers(0, int(rng.integers(2, 15)), rows).astype(str),
        lambda: rng.normal(size=rows),
        lambda: rng.random(rows) < rng.uniform(0.1, 0.5),
        lambda: rng.poisson(4, rows),
    )
    drawn = {f"c{i}": kinds[i % 4]() for i in range(columns)}
    return pl.DataFrame(drawn).with_columns(failed=pl.Series(rng.random(rows) < 0.2))


def draw_texts(rng: np.random.Generator, rows: int, words: int) -> pl.DataFrame:
    """Return texts of words that are as frequent as words are."""
    vocabulary = np.array([f"word{i}" for i in range(8000)])
    share = 1 / np.arange(1, len(vocabulary) + 1)
    prompts = [
        " ".join(vocabulary[rng.choice(len(vocabulary), words, p=share / share.sum())])
        for _ in range(rows)
    ]
    return pl.DataFrame({"prompt": prompts, "failed": rng.random(rows) < 0.2})


def draw_models(rng: np.random.Generator, models: int, rows: int) -> pl.DataFrame:
    """Return the same examples answered by several models."""
    examples = draw_mixed(rng, rows, 20).drop("failed").with_row_index("id")
    return pl.concat(
        examples.with_columns(
            model=pl.lit(f"m{j}"), failed=pl.Series(rng.random(rows) < 0.2 + 0.1 * (j % 3))
        )
        for j in range(models)
    )


WORK: Mapping[str, tuple[Callable[..., pl.DataFrame], tuple[tuple[int, int], ...]]] = {
    "flags": (draw_flags, ((1000, 4000),)),
    "mixed": (draw_mixed, ((2000, 23), (200, 300), (2000, 300), (20_000, 300))),
    "texts": (draw_texts, ((2000, 2000),)),
    "rows": (draw_mixed, ((200_000, 50), (1_000_000, 20))),
    "models": (draw_models, ((3, 5000), (30, 2000))),
}
"""What is drawn, and its two sizes: rows by columns, texts by words, or models by examples."""


def main() -> None:
    """Print seconds of the processor and the peak of each audit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=WORK, default=list(WORK))
    for name in parser.parse_args().only:
        draw, sizes = WORK[name]
        for first, second in sizes:
            with tempfile.TemporaryDirectory() as place:
                file = Path(place) / "results.parquet"
                draw(np.random.default_rng(0), first, second).write_parquet(file)
                roles = "--model-column model --id id " if name == "models" else ""
                words = f"audit {file} --outcome failed {roles}--out {place}/report"
                measure(f"{name}, {first:,} x {second:,}", words)


if __name__ == "__main__":
    main()
