"""Tables for audits: examples that fail more often where ``hard`` holds, and results of it."""

from __future__ import annotations

import numpy as np
import polars as pl

from groundfault import Candidate, Evidence, Plan
from groundfault.auditing.flow import judge_audit
from groundfault.auditing.preparation import prepare
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.results import AuditResults


def make_planted_table(n: int = 400, seed: int = 0, lift: float = 0.4) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.4
    return pl.DataFrame(
        {
            "id": [f"q{i:04d}" for i in range(n)],
            "error": (rng.random(n) < 0.2 + lift * hard).astype(int),
            "hard": hard,
            "words": rng.integers(1, 100, n),
            "lang": rng.choice(["de", "en", "fr"], n),
        }
    )


def make_planted_evidence(n: int = 400, lift: float = 0.4) -> Evidence:
    return Evidence.from_table(make_planted_table(n, lift=lift), id="id", outcome="error")


def audit_planted_table(plan: Plan | None = None, n: int = 400, lift: float = 0.4) -> PreparedAudit:
    rules = {"hard": "hard", "long": "words > 50", "German": "lang = 'de'", "again": "hard = true"}
    candidates = [Candidate(name, rule) for name, rule in rules.items()]
    return prepare(make_planted_evidence(n, lift), plan or Plan(judge="janus"), candidates)


def make_planted_results(plan: Plan | None = None, n: int = 400, lift: float = 0.4) -> AuditResults:
    return judge_audit(audit_planted_table(plan, n, lift), ledger=None, modes=False)
