"""Failure modes of real results, as Markdown: the lists of a page of results.

    python scripts/make_language_table.py languages.parquet fresh.parquet
    python scripts/audit_real_tables.py ../shared/data/real languages.parquet fresh.parquet

The page is ``studies/results/real-tables.md``. Every audit has default settings;
where a table has several benchmarks, a second one holds them fixed. Columns that describe the
answer are left out, everything else describes the example. The last column of each list holds a
rule against what the audit did not see: other models' answers to the same examples, or messages
that were not drawn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from groundfault import Evidence, Plan, Report, audit
from groundfault.core.rules import Rule

ANSWERS = ("answer", "answer_parsed", "response", "response_chars")
EPISODES = (
    "terminate_reason n_turns n_tool n_propose n_invalid n_code_errors first_error repeated_action "
    "repeated_code n_observations assistant_chars prompt_tokens completion_tokens error"
).split()
MODELS = ("deepseek-v2-coder-0724", "gemini-1.5-flash", "Mixtral-8x7B-Instruct-v0.1")

Check = Callable[[str], str]


def read_tables(root: Path, languages: Path, fresh: Path) -> Iterator[tuple[str, Evidence, Check]]:
    """The real results: a title, the evidence, and what holds a rule against other data.

    Parameters
    ----------
    root : Path
        Folder with ``single_model_audit``, ``zeroeval`` and ``mint``.
    languages, fresh : Path
        What ``make_language_table.py`` wrote.
    """
    examples = pl.read_parquet(root / "zeroeval" / "examples.parquet")
    answers = pl.read_parquet(root / "zeroeval" / "outcomes.parquet").drop("benchmark")
    answers = answers.join(examples, on="example_id")
    for path in sorted((root / "single_model_audit").glob("*.parquet")):
        table = pl.read_parquet(path)
        check = _compare_models(answers, table["model"][0])
        yield path.stem, _evidence(table.drop("benchmark", "model")), check
    for model in MODELS:
        table = answers.filter(pl.col("model") == model).drop("model")
        yield f"zeroeval {model}", _evidence(table), _compare_models(answers, model)
    tasks = pl.read_parquet(root / "mint" / "examples.parquet").drop("benchmark", "task_type")
    episodes = pl.read_parquet(root / "mint" / "episodes.parquet").filter(max_turns=5)
    episodes = episodes.drop("feedback", "max_turns").join(tasks, on="example_id")
    model = "gpt-4-0613"
    table = episodes.filter(pl.col("model") == model).drop("model")
    yield f"mint {model}", _evidence(table), _compare_models(episodes, model)
    messages = pl.read_parquet(fresh)
    evidence = Evidence.from_table(languages, id="id", outcome="error", ignore=["answer"])
    yield "langid", evidence, lambda rule: _count_errors(messages, rule)


def _evidence(table: pl.DataFrame) -> Evidence:
    measured = [name for name in (*ANSWERS, *EPISODES) if name in table.columns]
    return Evidence.from_table(
        table, id="example_id", outcome="correct", positive_is_good=True, ignore=measured
    )


def _mark(table: pl.DataFrame, rule: str) -> pl.DataFrame:
    return table.with_columns(inside=Rule.parse(rule).to_polars().fill_null(False))


def _compare_models(answers: pl.DataFrame, model: str) -> Check:
    """Of other models: of how many the failures are more frequent inside, benchmark by benchmark.

    Differences are averaged over benchmarks by their numbers of examples inside the rule.
    """
    others = answers.filter(pl.col("model") != model)

    def check(rule: str) -> str:
        inside, wrong = pl.col("inside"), 1 - pl.col("correct")
        lifts = (
            _mark(others, rule)
            .group_by("model", "benchmark")
            .agg(
                n=inside.sum(),
                lift=wrong.filter(inside).mean() - wrong.filter(~inside).mean(),
            )
            .drop_nulls("lift")
            .group_by("model")
            .agg(lift=(pl.col("lift") * pl.col("n")).sum() / pl.col("n").sum())
        )
        return f"{(lifts['lift'] > 0).sum()} of {lifts.height} models"

    return check


def _count_errors(table: pl.DataFrame, rule: str) -> str:
    errors = _mark(table, rule).filter("inside")["error"]
    return f"{errors.mean():.0%} ({errors.sum()} of {errors.len()})" if errors.len() else "none"


def _rate_beside(evidence: Evidence, rule: str) -> float:
    """The failure rate outside a rule, each benchmark with the weight that it has inside."""
    rates = (
        _mark(evidence.frame, rule)
        .group_by("benchmark")
        .agg(
            n=pl.col("inside").sum(), rate=(1 - pl.col("correct")).filter(~pl.col("inside")).mean()
        )
        .filter(pl.col("n") > 0)
    )
    return float((rates["rate"] * rates["n"]).sum() / rates["n"].sum())


def write_list(title: str, evidence: Evidence, report: Report, check: Check) -> Iterator[str]:
    """The modes of one report, as lines of Markdown."""
    yield f"## {title}"
    yield f"{report.n:,} examples, {report.error_rate:.0%} wrong."
    yield "| failure mode | wrong inside | elsewhere | p | given those above | not seen |"
    yield "|---|--:|--:|--:|--:|--:|"
    for mode in report.modes:
        beside = _rate_beside(evidence, mode.rule) if report.plan.within else mode.rate_outside
        cells = (
            f"{mode.meaning} <!-- {mode.rule} -->",
            f"{mode.rate:.0%} ({mode.errors:g} of {mode.n})",
            f"{beside:.0%}",
            f"{mode.p_marginal:.1g}",
            f"{mode.p_conditional:.1g}",
            check(mode.rule),
        )
        yield f"| {' | '.join(cells)} |"
        for other in mode.alternatives:
            yield f"or {other.meaning} (overlap {other.overlap:.2f})"
    search = report.mode_search
    assert search is not None
    for cover in search.outcomes:
        yield (
            f"Together: {cover.covered_errors:g} of {cover.errors:g} failures in {cover.covered} "
            f"of {cover.n} examples, among {search.rules:,} rules."
        )
    yield from search.remarks


if __name__ == "__main__":
    for title, evidence, check in read_tables(*map(Path, sys.argv[1:4])):
        plans = {title: Plan()}
        if "benchmark" in evidence.attributes:
            plans[f"{title}, inside each benchmark"] = Plan(within=("benchmark",))
        for name, plan in plans.items():
            lines = write_list(name, evidence, audit(evidence, plan, ledger=None), check)
            print("\n".join(lines), end="\n\n", flush=True)
