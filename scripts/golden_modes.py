"""Write the golden answers: the ordered failure modes that the default audit names in eight tables.

    python scripts/golden_modes.py ../shared/data        # writes tests/fixtures/golden_modes.json
    python scripts/golden_modes.py ../shared/data --check

`tests/modes/test_golden_modes.py` compares every run with the file. Rewrite the file only in a
change that says why each entry moved.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import groundfault

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "golden_modes.json"
ROWS = 2_000  # of each real table: enough for several modes, and an audit takes a second
ID, ERROR = "example_id", "error"


def main() -> int:
    """Write the file, or compare with it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder that holds real/")
    parser.add_argument("--check", action="store_true", help="compare, and exit with 1 on change")
    options = parser.parse_args()
    answers = {name: answer(make(options.data / "real")) for name, make in TABLES.items()}
    if options.check:
        changes = [n for n, a in answers.items() if a != json.loads(GOLDEN.read_text()).get(n)]
        print("\n".join(f"{name}: the list of modes changed" for name in changes) or "unchanged")
        return int(bool(changes))
    GOLDEN.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    return 0


def answer(table: pl.DataFrame) -> list[dict[str, Any]]:
    """List the modes of a table in order, by the default plan."""
    evidence = groundfault.Evidence.from_table(table, id=ID, outcome=ERROR)
    report = groundfault.audit(evidence, ledger=None)
    return [
        {
            "rule": mode.rule,
            "units": mode.n,
            "failures": mode.errors,
            "new_failures": mode.errors_new,
            "context": mode.context,
            "alternatives": [other.rule for other in mode.alternatives],
        }
        for mode in report.modes
    ]


def known_hole(real: Path, model: str, *, attributes: bool = True) -> pl.DataFrame:
    """Take answers of a network that never saw one region of its world."""
    examples = pl.read_parquet(real / "known_holes" / "examples.parquet").drop("target")
    if not attributes:
        examples = examples.select(ID, "prompt")
    return join(examples, real / "known_holes", model).sample(ROWS, seed=1)


def crux(real: Path) -> pl.DataFrame:
    """Take a chat model's answers to CRUXEval, with attributes of the code."""
    place = real / "zeroeval"
    examples = pl.read_parquet(place / "examples.parquet").filter(pl.col("benchmark") == "crux")
    examples = examples[[s.name for s in examples if s.null_count() < len(s)]]
    model = "gpt-4o-mini-2024-07-18"
    return join(examples.drop("target", "benchmark"), place, model)


def gsm(real: Path) -> pl.DataFrame:
    """Take a fine-tuned model's answers to GSM8K, with attributes of the question."""
    place = real / "gsm8k_openai"
    examples = pl.read_parquet(place / "examples.parquet").drop("ground_truth", "benchmark")
    return join(examples, place, "175b_verification")


def evaltree(real: Path) -> pl.DataFrame:
    """Take a chat model's answers to MATH, with an annotated capability."""
    place = real / "evaltree"
    examples = pl.read_parquet(place / "examples.parquet").select(ID, "capability")
    return join(examples, place, "gpt-4o-mini-2024-07-18").sample(ROWS, seed=1)


def join(examples: pl.DataFrame, place: Path, model: str) -> pl.DataFrame:
    """Join examples with the outcomes of one model, in the order of the ids."""
    outcomes = pl.read_parquet(place / "outcomes.parquet").filter(pl.col("model") == model)
    failures = outcomes.select(ID, (1 - pl.col("correct").cast(pl.Int64)).alias(ERROR))
    return examples.join(failures, on=ID, how="inner").sort(ID)


def wide(_: Path) -> pl.DataFrame:
    """Draw 75 columns of three kinds, two of which matter."""
    rng = np.random.default_rng(20)
    flags = {f"flag_{i}": rng.integers(0, 2, 800) for i in range(50)}
    numbers = {f"number_{i}": rng.normal(size=800).round(3) for i in range(15)}
    words = {f"word_{i}": rng.choice(list("abcdef"), 800) for i in range(10)}
    chance = 0.15 + 0.35 * (flags["flag_7"] == 1) + 0.4 * (numbers["number_3"] > 1.2)
    error = (rng.random(800) < chance).astype(int)
    return pl.DataFrame({ID: range(800), ERROR: error, **flags, **numbers, **words})


def null(_: Path) -> pl.DataFrame:
    """Draw failures that have nothing to do with any column."""
    table = wide(_).select(ID, "^flag_.$", "^number_.$", "^word_.$")
    return table.with_columns(pl.Series(ERROR, np.random.default_rng(21).integers(0, 2, 800)))


TABLES: dict[str, Callable[[Path], pl.DataFrame]] = {
    "known hole, Spanish dates": lambda real: known_hole(real, "spanish_dates#1"),
    "known hole, capitals": lambda real: known_hole(real, "capitals#1"),
    "text alone": lambda real: known_hole(real, "number_words#1", attributes=False),
    "crux": crux,
    "gsm": gsm,
    "evaltree": evaltree,
    "wide": wide,
    "null": null,
}


if __name__ == "__main__":
    sys.exit(main())
