"""Audit every scorer: an audit of the same answers by each scorer, and where two scorers differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from groundfault.auditing.flow import audit
from groundfault.auditing.report import Report
from groundfault.base.files import save_text
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.roles import LISTS
from groundfault.errors import InputError
from groundfault.readers.scorers import is_same_scale

_DIGITS = 10_000  # a shared level is rounded down to four decimals, so that it prints exactly
_APART = 0.5  # half of the scale: one scorer says pass where the other says fail


@dataclass(frozen=True)
class ScorerAgreement:
    """How often two scorers differ.

    Attributes
    ----------
    first, second : str
    n : int
        Answers that both scored.
    apart : int
        Of these, where their scores differ by at least one half.
    """

    first: str
    second: str
    n: int
    apart: int


@dataclass(frozen=True)
class ScorerAudits:
    """One report for each scorer of the same answers.

    Attributes
    ----------
    reports : dict of str to Report
        By scorer, in the order in which the logs have them.
    refusals : dict of str to str
        Why a scorer was not audited, such as values of another range than 0 to 1.
    agreements : tuple of ScorerAgreement
        Of each pair of one scale that was audited and scored the same answers.
    level : float
        Error level of each audit, in (0, 1): the plan's, shared equally among them.
    """

    reports: dict[str, Report]
    refusals: dict[str, str]
    agreements: tuple[ScorerAgreement, ...]
    level: float

    @property
    def disputed(self) -> dict[str, dict[str, str]]:
        """List findings that only some scorers confirm: by name, the verdict of each scorer."""
        verdicts: dict[str, dict[str, str]] = {}
        for scorer, report in self.reports.items():
            for finding in report.findings:
                verdicts.setdefault(finding.key, {})[scorer] = str(finding.verdict)
        return {
            key: each
            for key, each in verdicts.items()
            if "confirmed" in each.values() and len({*each.values()}) > 1
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all reports, and where they differ, as plain words and numbers."""
        return {
            "level": self.level,
            "agreements": [vars(each) for each in self.agreements],
            "disputed": self.disputed,
            "refusals": self.refusals,
            "scorers": {name: report.to_dict() for name, report in self.reports.items()},
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the same as JSON; also written to ``path``, whole or not at all."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        return save_text(text, path)


def audit_scorers(
    evidence: Evidence,
    plan: Plan | None = None,
    *,
    scale: tuple[float, float] | None = None,
    select: Callable[[Evidence], Evidence] | None = None,
    run: Callable[[Evidence, Plan], Report] = audit,
) -> ScorerAudits:
    """Audit the same answers once by each scorer.

    Parameters
    ----------
    evidence : Evidence
        Of logs with several scorers, whole.
    plan : Plan, optional
        Its levels alpha and q are shared equally among the audits, so that they hold for all of
        them together: a finding picked from any of the reports is false with at most the chance
        that the plan states, for any dependence between scorers.
    scale : pair of float, optional
        Worst and best value of those scorers whose values are not all in [0, 1].
    select : callable, optional
        Picks the models or rows to be audited.
    run : callable
        Audits the evidence of one scorer, by default as `groundfault.audit` does.

    Raises
    ------
    InputError
        If fewer than two scorers can be audited, or no audit can be made.
    """
    chosen, refusals = _choose_each(evidence, scale, select or (lambda each: each))
    if not chosen:
        raise InputError(
            "; ".join(f"{name!r}: {why}" for name, why in refusals.items())
            or "there are no several scorers to audit: leave --every-scorer out"
        )
    plan = _share_levels(plan or Plan(), len(chosen))
    reports: dict[str, Report] = {}
    for name, each in chosen.items():
        try:
            reports[name] = run(each, plan)
        except InputError as error:
            refusals[name] = str(error)
    if not reports:
        raise InputError("; ".join(f"{name!r}: {why}" for name, why in refusals.items()))
    pairs = tuple(_compare({name: chosen[name] for name in reports}))
    return ScorerAudits(reports, refusals, pairs, float(to_fraction(plan.alpha)))


def _choose_each(
    evidence: Evidence, scale: tuple[float, float] | None, select: Callable[[Evidence], Evidence]
) -> tuple[dict[str, Evidence], dict[str, str]]:
    """Return the evidence by each scorer, and the reason for scorers without evidence."""
    chosen: dict[str, Evidence] = {}
    refusals: dict[str, str] = {}
    rows = evidence.log_rows
    if rows is None:
        return chosen, refusals
    for name in rows.scorers:
        own = None if rows.has_unit_range(name) else scale
        try:
            chosen[name] = select(choose_scorer(evidence, name, scale=own))
        except InputError as error:
            refusals[name] = str(error)
    return chosen, refusals


def _share_levels(plan: Plan, parts: int) -> Plan:
    # rounded down, to a level that can be read
    alpha, q = (
        Fraction(int(to_fraction(level) * _DIGITS / parts) or 1, _DIGITS)
        for level in (plan.alpha, plan.q)
    )
    return replace(plan, alpha=alpha, q=q)


def _compare(chosen: dict[str, Evidence]) -> Iterator[ScorerAgreement]:
    for (first, one), (second, two) in combinations(chosen.items(), 2):
        roles = one.roles
        key = [c for c in (roles.id, roles.model, roles.repeat) if c]
        left, right = (
            each.frame.select(key).with_columns(each.loss.alias(name))
            for name, each in (("\0one", one), ("\0two", two))
        )
        both = left.join(right, on=key).drop_nulls(["\0one", "\0two"])
        if not is_same_scale(both["\0one"], both["\0two"]):
            continue
        apart = both.select(((pl.col("\0one") - pl.col("\0two")).abs() >= _APART).sum()).item()
        if both.height:
            yield ScorerAgreement(first, second, both.height, int(apart))


def choose_scorer(
    evidence: Evidence,
    *names: str,
    disagreement: tuple[str, str] | None = None,
    scale: tuple[float, float] | None = None,
) -> Evidence:
    """Return the same logs with another scorer's score as the outcome.

    Parameters
    ----------
    evidence : Evidence
        Whole evidence from logs: a part, such as one model, has only the chosen scores.
    *names, disagreement, scale
        As in `groundfault.readers.log_rows.LogRows.choose`.

    Raises
    ------
    InputError
        If the evidence has no other scorers, or the named scorer cannot be the outcome.
    """
    if evidence.log_rows is None:
        raise InputError(
            "there are the scores of one scorer alone; where logs have several, choose before rows "
            "and models are selected"
        )
    frame, roles, account = evidence.log_rows.choose(names, disagreement=disagreement, scale=scale)
    before = evidence.roles
    lists = {role: [c for c in getattr(before, role) if c in frame.columns] for role in LISTS}
    lists["count_as_failed"] = list(before.count_as_failed)
    choice = {"scorer": list(names) or None, "disagreement": disagreement, "scale": scale}
    return Evidence.from_frame(
        frame,
        roles.join(before.group, before.split, lists),
        evidence.provenance,
        account=account,
        reading={**(evidence.reading or {}), **choice},
        log_rows=evidence.log_rows,
    )
