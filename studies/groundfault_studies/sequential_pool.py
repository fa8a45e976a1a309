"""Policies compared with the paper's own auditor, on the same pool and the same scores (Experiment
1 a).

The reference implementation of the paper was run on a pool of 448 questions, 20 audits for each of
its accuracy tables, and its verdicts and stopping times were recorded. Here the same scores are
audited by the policies of this package, in three ways: sampled as the paper samples, to compare the
networks; and under the two claims that keep their error rate, to compare what is shipped.

References
----------
Zhou et al. (2026), *Adaptive auditing of AI systems with anytime-valid guarantees*,
arXiv:2605.07002."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from groundfault.base.long_work import Progress, listener
from groundfault.core.candidate import Candidate
from groundfault.sequential import Pool, SequentialAudit, SequentialPlan, policies
from groundfault.sequential.answers import replay
from groundfault_studies.audit_runs import DEGRADATIONS, CachedPolicy
from groundfault_studies.resuming import Rows, resume_rounds
from groundfault_studies.shared_folder import require_shared
from groundfault_studies.tables import PaperRow, PaperStudy, PaperTable, Value

THRESHOLD, EPSILON, TESTED = 0.85, 0.05, 250
BETS, BURN_INS = ("lr", "sr-lr", "lr-ui", "sr-lr-ui"), (10, 40, 70)
SEEDS = (1, *range(3, 22))
"""Draws of the scores that the reference's adaptive auditor was run on."""

WAYS: dict[str, dict[str, Any]] = {
    "as the paper samples": {"sampling": "paper"},
    "any set of cases": {"claim": "literal"},
    "declared groups": {"claim": "declared-groups", "epsilon": EPSILON},
}
POLICIES = {
    "as the paper samples": ("adaptive:paper", "logistic", "gp"),
    "any set of cases": ("adaptive", "logistic", "gp"),
    "declared groups": ("adaptive", "logistic", "gp", "boosted", "thompson"),
}
_MEANINGS = {
    "as the paper samples": "Cases are drawn as by the paper's auditor, which keeps no error rate; "
    "found means that some set of cases fails.",
    "any set of cases": "The claim is about any set of cases that the auditor may name, and keeps "
    "its error rate.",
    "declared groups": "The claim is about groups of domain and level that hold at least 5 % of "
    "the cases, and keeps its error rate: the default. True nulls: draws of the scores in which "
    "every such group reaches the threshold, so that a failure found is an error.",
}
_SOURCE = (
    "Zhou et al. (2026), Adaptive auditing of AI systems with anytime-valid guarantees, "
    "arXiv:2605.07002"
)
QUICK_REPLICATES = 1
_GROUPS = ("domain", "level", "domain*level")


def study(
    shared: str | Path | None = None,
    *,
    replicates: int | None = None,
    policy_names: Sequence[str] = (),
    jobs: int = 1,
    quick: bool = False,
    keep: Path | None = None,
    progress: Progress | None = None,
    show: Callable[[PaperStudy], object] | None = None,
) -> PaperStudy:
    """Verdicts and labels of each policy, bet and burn-in, beside the reference's, on the
    same scores.

    Parameters
    ----------
    shared : path, optional
        Folder with ``savi_pool``; left out, ``$GROUNDFAULT_SHARED`` or ``../shared/data``.
    replicates : int, optional
        Draws of the scores, at most the 20 of the reference; left out, all of them, or quickly 1.
    policy_names : sequence of str
        Policies; all of `POLICIES` where left out.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        One draw: to see that it runs, not for conclusions.
    keep : path, optional
        Where audits that are done are kept; a study that was interrupted goes on from there.
    progress : callable, optional
    show : callable, optional
        Called with the study of the draws so far, after 1, 2, 4 and 8 of them, and 16.

    Raises
    ------
    InputError
        If the folder is not there.
    """
    progress = listener(progress)
    folder = require_shared(shared, "savi_pool")
    replicates = replicates or (QUICK_REPLICATES if quick else len(SEEDS))
    rounds = [
        {
            json.dumps(job): (folder, *job)
            for way in WAYS
            for policy in POLICIES[way]
            for setting in DEGRADATIONS
            if not policy_names or policy in policy_names
            for job in [(way, policy, setting, seed)]
        }
        for seed in SEEDS[:replicates]
    ]
    records = pl.read_parquet(folder / "results_rows.parquet").filter(
        (pl.col("scenario") == "a") & (pl.col("sampler") == "active")
    )

    def make(rows: Rows, count: int) -> PaperStudy:
        return _tabulate(pl.DataFrame(rows), records.filter(pl.col("seed").is_in(SEEDS[:count])))

    partial = None if show is None else lambda rows, count: show(make(rows, count))
    return make(resume_rounds(rounds, audits, keep, jobs, progress, partial), len(rounds))


def _tabulate(rows: pl.DataFrame, records: pl.DataFrame) -> PaperStudy:
    """The study of some audits, beside the reference's records of the same draws."""
    tables = tuple(_table(way, rows.filter(pl.col("way") == way), records) for way in WAYS)
    settings = {
        "replicates": rows["seed"].n_unique(),
        "bets": list(BETS),
        "burn-ins": list(BURN_INS),
        "most tested": TESTED,
    }
    return PaperStudy("sequential-pool", "Policies on the paper's pool", _SOURCE, settings, tables)


def audits(folder: Path, way: str, policy: str, setting: str, seed: int) -> list[dict[str, Any]]:
    """What the audits of one policy come to on one draw of the scores: a row for each bet and
    burn-in.

    They share one trajectory as far as each goes, for neither bet nor burn-in has a part in what a
    policy sees."""
    pool = _pool(folder, setting, seed, grouped=_declares_groups(way))
    remembered = CachedPolicy(policies.get(policy))
    warm_up = getattr(remembered.policy, "warm_up", 0)
    rows = []
    for bet in BETS:
        for burn_in in BURN_INS:
            plan = SequentialPlan(
                threshold=THRESHOLD,
                burn_in=burn_in,
                policy=policy,
                bet=bet,
                seed=seed,
                budget=TESTED + warm_up,
                warm_up=warm_up,
                **WAYS[way],
            )
            audit = SequentialAudit.of(pool, plan, policy=remembered)
            verdict = audit.run(replay(pool))
            rows.append(
                {
                    "way": way,
                    "policy": policy,
                    "setting": setting,
                    "seed": seed,
                    "bet": bet,
                    "m": burn_in,
                    "verdict": verdict,
                    "labelled": audit.labelled,
                    "true": bool(_reaches(pool)),
                }
            )
    return rows


def _pool(folder: Path, setting: str, seed: int, *, grouped: bool) -> Pool:
    """The questions with one draw of their scores, and as groups every stratum of at least 5 % of
    them.
    """
    name = f"{setting}_s{seed:03d}"
    table, everything = _read(folder)
    return Pool.from_table(
        table.with_columns(score=everything[name]),
        id="question_id",
        groups=_strata(folder) if grouped else (),
        embedding=_points(folder),
        scores="score",
    )


@cache
def _read(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Questions and scores, in the same order."""
    table = pl.read_parquet(folder / "pool_a.parquet").select("question_id", "domain", "level")
    return table, table.join(
        pl.read_parquet(folder / "labels_a.parquet"), on="question_id", maintain_order="left"
    )


@cache
def _points(folder: Path) -> Any:
    table, _ = _read(folder)
    rows = pl.read_parquet(folder / "pool_a_embeddings.parquet")
    table_of_points = table.select("question_id").join(
        rows, on="question_id", maintain_order="left"
    )
    return table_of_points.drop("question_id").to_numpy().astype(np.float64)


@cache
def _strata(folder: Path) -> tuple[Candidate, ...]:
    table, _ = _read(folder)
    every = Pool.from_table(table, id="question_id", groups=_GROUPS)
    min_cases = SequentialPlan(threshold=THRESHOLD, epsilon=EPSILON).min_cases(len(every))
    sizes = dict(zip(every.groups, every.sizes.tolist(), strict=True))
    names = [name for name in every.groups[1:] if sizes[name] >= min_cases]
    return tuple(
        Candidate(name, " AND ".join(f"{c} = '{v}'" for c, v in _parts(name))) for name in names
    )


def _parts(name: str) -> list[tuple[str, str]]:
    return [
        (column, level) for column, _, level in (part.partition("=") for part in name.split(", "))
    ]


def _reaches(pool: Pool) -> Any:
    """Whether every declared group of the pool reaches the threshold, as its cases are scored."""
    means = pool.members @ np.asarray(pool.recorded) / pool.sizes
    return (means >= THRESHOLD - 1e-12).all()


def _table(way: str, rows: pl.DataFrame, records: pl.DataFrame) -> PaperTable:
    lines = []
    # of a claim about any set of cases the scores do not say as plainly whether it is true
    has_nulls = _declares_groups(way)
    for setting in DEGRADATIONS:
        for bet in BETS:
            for burn_in in BURN_INS:
                here = (
                    (pl.col("setting") == setting)
                    & (pl.col("bet") == bet)
                    & (pl.col("m") == burn_in)
                )
                there = (
                    (pl.col("setting") == setting)
                    & (pl.col("method") == bet.upper())
                    & (pl.col("m") == burn_in)
                )
                paper = _reference_numbers(records.filter(there))
                for policy in dict.fromkeys(rows["policy"] if rows.height else ()):
                    mine = rows.filter(here & (pl.col("policy") == policy))
                    label = f"{setting}, {bet}, m = {burn_in}, {policy}"
                    lines.append(PaperRow(label, _numbers(mine, nulls=has_nulls), paper))
    note = (
        f"{_MEANINGS[way]} Each line audits the scores that the reference was run on. Lines marked "
        "paper are the reference's records, where at most a tenth of its audits was broken off. "
        "Labels are medians, the warm-up included."
    )
    columns: dict[str, Any] = {
        "found": ("found", "rate"),
        "passed": ("passed", "rate"),
        "labels": ("labels", "count"),
    }
    if has_nulls:
        columns |= {"true": ("true nulls", "count"), "wrong": ("found in them", "count")}
    return PaperTable(f"Experiment 1 (a), {way}", note, columns, tuple(lines))


def _numbers(rows: pl.DataFrame, *, nulls: bool) -> dict[str, Value]:
    failures = rows["verdict"] == "failure mode found"
    numbers: dict[str, Value] = {
        "found": float(failures.mean()),  # type: ignore[arg-type]
        "passed": float((rows["verdict"] == "audit passed").mean()),  # type: ignore[arg-type]
        "labels": float(rows["labelled"].median()),  # type: ignore[arg-type]
    }
    if nulls:
        numbers |= {"true": int(rows["true"].sum()), "wrong": int((rows["true"] & failures).sum())}
    return numbers


def _declares_groups(way: str) -> bool:
    return WAYS[way].get("claim") == "declared-groups"


def _reference_numbers(rows: pl.DataFrame) -> dict[str, str]:
    if not rows.height or (rows["outcome"] == "censored").sum() > rows.height / 10:
        return {}
    share = {
        name: f"{100 * (rows['outcome'] == name).sum() / rows.height:.0f}%"
        for name in ("model", "auditor")
    }
    return {
        "found": share["model"],
        "passed": share["auditor"],
        "labels": f"{np.median(rows['labelled']):g}",
    }
