"""Failure modes of real results, as Markdown: the lists of the book's page about them.

    python scripts/make_language_table.py languages.parquet
    python scripts/audit_real_tables.py ../shared/data/real languages.parquet

The page is ``docs/explanation/failure-modes-on-real-data.md``. Every audit has default settings;
columns that describe the answer are named as such, everything else describes the example.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from groundfault import Evidence, Report, audit

ANSWERS = ("answer", "answer_parsed", "response", "response_chars")
EPISODES = (
    "terminate_reason n_turns n_tool n_propose n_invalid n_code_errors first_error repeated_action "
    "repeated_code n_observations assistant_chars prompt_tokens completion_tokens error"
).split()


def read_tables(root: Path, languages: Path) -> Iterator[tuple[str, Evidence]]:
    """The real results, by title.

    Parameters
    ----------
    root : Path
        Folder with ``single_model_audit``, ``zeroeval`` and ``mint``.
    languages : Path
        What ``make_language_table.py`` wrote.
    """
    for path in sorted((root / "single_model_audit").glob("*.parquet")):
        yield path.stem, _evidence(pl.read_parquet(path).drop("benchmark", "model"))
    examples = pl.read_parquet(root / "zeroeval" / "examples.parquet").drop("benchmark")
    outcomes = pl.read_parquet(root / "zeroeval" / "outcomes.parquet")
    for model in ("deepseek-v2-coder-0724", "gemini-1.5-flash", "Mixtral-8x7B-Instruct-v0.1"):
        rows = outcomes.filter(pl.col("model") == model).drop("model")
        yield f"zeroeval {model}", _evidence(rows.join(examples, on="example_id"))
    tasks = pl.read_parquet(root / "mint" / "examples.parquet").drop("benchmark", "task_type")
    episodes = pl.read_parquet(root / "mint" / "episodes.parquet")
    rows = episodes.filter(pl.col("model") == "gpt-4-0613").drop("model", "feedback", "max_turns")
    yield "mint gpt-4-0613", _evidence(rows.join(tasks, on="example_id"))
    yield (
        "langid",
        Evidence.from_table(languages, id="id", outcome="error", ignore=["answer"]),
    )


def _evidence(table: pl.DataFrame) -> Evidence:
    measured = [name for name in (*ANSWERS, *EPISODES) if name in table.columns]
    return Evidence.from_table(
        table, id="example_id", outcome="correct", positive_is_good=True, ignore=measured
    )


def write_list(title: str, report: Report) -> Iterator[str]:
    """The modes of one report, as lines of Markdown."""
    yield f"## {title}"
    yield f"{report.n:,} examples, {report.error_rate:.0%} wrong."
    yield "| failure mode | wrong inside | elsewhere | p | p given those above |"
    yield "|---|--:|--:|--:|--:|"
    for mode in report.modes:
        cells = (
            f"{mode.meaning}: `{mode.rule}`",
            f"{mode.rate:.0%} ({mode.errors:g} of {mode.n})",
            f"{mode.rate_outside:.0%}",
            f"{mode.p_marginal:.1g}",
            f"{mode.p_conditional:.1g}",
        )
        yield f"| {' | '.join(cells)} |"
        for other in mode.alternatives:
            yield f"| — or {other.meaning} | overlap {other.overlap:.2f} | | | |"
    search = report.mode_search
    assert search is not None
    for cover in search.outcomes:
        yield (
            f"Together: {cover.covered_errors:g} of {cover.errors:g} failures in {cover.covered} "
            f"of {cover.n} examples, among {search.rules:,} rules."
        )
    yield from search.remarks


if __name__ == "__main__":
    for title, evidence in read_tables(Path(sys.argv[1]), Path(sys.argv[2])):
        print("\n".join(write_list(title, audit(evidence))), end="\n\n", flush=True)
