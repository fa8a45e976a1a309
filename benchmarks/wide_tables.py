"""Whole audits of wide tables, long texts and several models, through the shell, beside a loop of
fixed work: the table before and after, and how times grow with rows and columns.

    python benchmarks/wide_tables.py [--only flags mixed texts rows models] [--nightly] [--json]
    python benchmarks/wide_tables.py --grow docs/explanation/speed-growth.svg

Each audit runs in a process of its own, with its files, and its largest resident memory is that of
the whole process. Failures depend on two flags, on nothing, or on the model. Seconds are those of
the processor, divided by what the loop of ``calibration.py`` took just before and times what it
takes on the machine of the aims: a busy or slower machine slows both. `benchmarks/check.py
wide_tables` compares the ratios, and those of memory, with stored ones. ``--grow`` audits mixed
columns of 2,000 rows by 10 to 300 columns, flags of 1,000 rows by 10 to 4,000, and 1,000 to
1,000,000 rows by 20 columns; exponents are slopes over the last two decades.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import calibration
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


BEFORE = {
    "flags, 1,000 x 4,000": (133, 5.9, 8),
    "mixed, 2,000 x 23": (2.5, 0.32, 1.5),
    "mixed, 200 x 300": (66, 1.5, 5),
    "mixed, 2,000 x 300": (73, 1.8, 10),
    "mixed, 20,000 x 300": (72, 2.4, 15),
    "texts, 2,000 x 2,000": (26, 0.9, 5),
    "rows, 200,000 x 50": (33.5, 2.1, 8),
    "rows, 1,000,000 x 20": (44, 4.8, 6),
    "models, 3 x 5,000": (15, 0.41, 5),
    "models, 30 x 2,000": (None, None, 20),
}
"""By work: seconds and GB at 6db9c6f, or where that was not measured the earliest there is, and
the aim in seconds."""

NIGHTLY = ("mixed, 2,000 x 23", "mixed, 200 x 300", "mixed, 2,000 x 300", "models, 3 x 5,000")
"""Those that together take a minute."""

GROWTH = {
    "flags, 1,000 rows": (draw_flags, [(1000, n) for n in (10, 100, 1000, 4000)]),
    "mixed, 2,000 rows": (draw_mixed, [(2000, n) for n in (10, 30, 100, 300)]),
    "mixed, 20 columns": (draw_mixed, [(n, 20) for n in (1000, 10_000, 100_000, 1_000_000)]),
}


def audit(name: str, draw: Callable[..., pl.DataFrame], sizes: tuple[int, int]) -> dict[str, float]:
    """Return seconds, calibrated, and the peak of one audit."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "results.parquet"
        draw(np.random.default_rng(0), *sizes).write_parquet(file)
        roles = "--model-column model --id id " if name.startswith("models") else ""
        loop = calibration.run()
        words = f"audit {file} --outcome failed {roles}--out {place}/report"
        seconds, peak = measure(name, words)
    return {"ours": seconds * calibration.LOOP_SECONDS / loop, "peer": loop, "peak": peak}


def list_results(only: list[str], *, nightly: bool) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each audit's name with its seconds, the loop's ratio to them, and its peak."""
    for kind in only:
        draw, sizes = WORK[kind]
        for size in sizes:
            name = f"{kind}, {size[0]:,} x {size[1]:,}"
            if not nightly or name in NIGHTLY:
                yield name, audit(name, draw, size)


def print_table(results: Mapping[str, Mapping[str, float]]) -> None:
    """Print before, aim and now of each audit."""
    print(f"\n{'work':24}{'before':>14}{'aim':>7}{'now':>16}")
    for name, one in results.items():
        seconds, peak, aim = BEFORE[name]
        before = "–" if seconds is None else f"{seconds:g} s, {peak:g} GB"
        missed = "missed" if one["ours"] > aim else ""
        now = f"{one['ours']:.1f} s, {one['peak']:.2f} GB"
        print(f"{name:24}{before:>14}{aim:>5} s{now:>16} {missed}")


def draw_growth(path: Path) -> None:
    """Draw seconds by size, and print exponents and the peak at each size."""
    from groundfault_studies.charts import lines

    series: dict[str, list[tuple[float, float]]] = {}
    for name, (draw, sizes) in GROWTH.items():
        by_rows = sizes[0][1] == sizes[-1][1]
        series[name] = [
            (float(n if by_rows else m), audit(f"{name}, {n:,} x {m:,}", draw, (n, m))["ours"])
            for n, m in sizes
        ]
        (first, early), (last, late) = series[name][-2:]
        exponent = np.log(late / early) / np.log(last / first)
        print(f"{name}: exponent {exponent:.2f} from {first:,.0f} to {last:,.0f}", flush=True)
    path.write_text(
        lines(series, "columns, or rows of 20 columns", "seconds", percent=False, log=True)
    )


def main() -> None:
    """Print seconds of the processor and the peak of each audit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=WORK, default=list(WORK))
    parser.add_argument("--nightly", action="store_true", help="only what takes seconds")
    parser.add_argument("--json", action="store_true", help="end with the ratios as JSON")
    parser.add_argument("--grow", type=Path, metavar="SVG", help="draw how times grow, instead")
    options = parser.parse_args()
    if options.grow:
        draw_growth(options.grow)
        return
    results = dict(list_results(options.only, nightly=options.nightly))
    print_table(results)
    if options.json:
        ratios = {
            name: {**one, "ratio": 1 / one["ours"], "limit": 1 / BEFORE[name][2]}
            for name, one in results.items()
        }
        memory = {f"{name}, GB": {"ratio": 1 / one["peak"]} for name, one in results.items()}
        print(json.dumps(ratios | memory))


if __name__ == "__main__":
    main()
