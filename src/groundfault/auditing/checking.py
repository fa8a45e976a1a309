"""Checking before the holdout is spent: testable columns, and problems that could be found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct

from groundfault.auditing import detectable, messages
from groundfault.auditing.column_timing import ColumnStage
from groundfault.auditing.detectable import ChangeDesign
from groundfault.auditing.preparation import prepare
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report_schema import PlanSettings, Preview
from groundfault.core.candidate import Candidate, Library
from groundfault.core.evidence import Evidence
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan
from groundfault.finders import Finder
from groundfault.judges.rule import find_bar, find_obstacles
from groundfault.stats import power


class LibrarySummary(Preview, frozen=True, kw_only=True):
    """The candidates of a check: their number, their sources, and the hash of their rules."""

    size: int
    hash: str
    sources: dict[str, int]


class DetectableLifts(Preview, frozen=True, kw_only=True):
    """The least lift found with this power at each prevalence of a slice; None if no lift is."""

    power: float
    minimum_detectable_lift: dict[str, float | None]


class CheckSummary(Preview, frozen=True, kw_only=True):
    """The bounds of an audit: the problems that it could find, for any candidates.

    Attributes
    ----------
    n, n_discovery, n_holdout : int
        Units: of the evidence, and of each part.
    discovery_error_rate : float
        Mean loss over the discovery units.
    eligible : int
        Hypotheses that can be confirmed at all.
    minimum_detectable_lift : float or None
        Least lift found with 80 % power at prevalence 30 %; None if no lift is found.
    statuses : dict of str to int
        Rows of each status.
    columns : tuple of ColumnStage
        The part of each column, in the order of the table.
    unit : {"example", "group"}
        What is counted: groups of dependent examples, where a column names them.
    """

    schema_version: int = 1
    n: int
    n_discovery: int
    n_holdout: int
    discovery_error_rate: float
    judge: str
    plan: PlanSettings
    library: LibrarySummary
    eligible: int
    minimum_detectable_lift: float | None
    power: DetectableLifts
    statuses: dict[str, int]
    columns: tuple[ColumnStage, ...] = ()
    unit: Literal["example", "group"] = "example"


class Prospect(Struct, frozen=True):
    """The prospect of a candidate: if it can be confirmed, and the least lift for it.

    Attributes
    ----------
    name, rule, outcome : str
    on, off : int
        Discovery units on and off the slice.
    eligible : bool
    reason : str
        Reason that this audit can never confirm it; empty if it can.
    minimum_detectable_lift : float or None
        The least lift that this audit would confirm with 80% power at this support; None if it
        confirms no lift.
    """

    name: str
    rule: str
    outcome: str
    on: int
    off: int
    eligible: bool
    reason: str
    minimum_detectable_lift: float | None


class Check(Struct, frozen=True):
    """Preview of an audit, made without outcomes of the holdout and without a record.

    Attributes
    ----------
    prospects : tuple of Prospect
    summary : CheckSummary
        Sizes, discovery failure rate, minimum detectable lift by prevalence, settings.
    library : Library
        The candidates, to freeze.
    """

    prospects: tuple[Prospect, ...]
    summary: CheckSummary
    library: Library

    def to_dict(self) -> dict[str, Any]:
        """Return plain words and numbers."""
        summary: dict[str, Any] = msgspec.to_builtins(self.summary)
        return summary | {"candidates": msgspec.to_builtins([*self.prospects])}


def check(
    evidence: Evidence,
    plan: Plan | None = None,
    candidates: Iterable[Candidate] | None = None,
    *,
    finders: Sequence[str | Finder] | None = None,
    compare: tuple[str, str] | None = None,
) -> Check:
    """Return which candidates could be confirmed, and the least lift for each.

    No outcome of the holdout is read.

    Parameters
    ----------
    evidence, plan, candidates, finders, compare
        As in `groundfault.audit`.

    Returns
    -------
    Check
    """
    audit = prepare(evidence, plan, candidates, finders=finders, compare=compare)
    discovery = audit.discovery_units()
    reasons = find_obstacles(audit.plan, discovery, audit.marks)
    eligible = np.flatnonzero([not r for r in reasons]).astype(np.intp)
    n_holdout = audit.evidence.unit_count - len(discovery)
    margins = discovery.tables
    n_all, n_on = discovery.support
    # power depends on the support in all units, of which the discovery's is the best estimate
    share = audit.evidence.unit_count / max(1, len(discovery))
    min_lifts = np.full(len(reasons), np.nan)
    support = np.rint(n_on[eligible] * share).astype(np.int64)
    if isinstance(discovery, Pairs):
        design = ChangeDesign.of(audit.plan, discovery, n_holdout, len(eligible))
        least = [design.least_change(units) for units in support]
        min_lifts[eligible] = [np.nan if change is None else change for change in least]
        by_prevalence = design.by_prevalence(audit.evidence.unit_count)
    else:
        bar = find_bar(audit.judge, discovery, eligible, audit.plan, audit.plan.rng("detectable"))
        make = partial(detectable.make_designs, audit.judge, audit.plan, discovery, n_holdout, bar)
        # the units that a candidate matches are known, also in the holdout
        placed = make(drawn=False)
        if placed is not None:
            min_lifts[eligible] = power.minimum_detectable_lifts(
                support, placed, power=detectable.POWER
            )
        by_prevalence = detectable.minimum_detectable_lifts(make(), audit.evidence.unit_count)
    prospects = tuple(
        _make_prospect(
            audit,
            h,
            (int(n_on[h]), int(n_all[h] - n_on[h])),
            codes,
            float(min_lifts[h]) if by_prevalence else None,
        )
        for h, codes in enumerate(reasons)
    )
    summary = CheckSummary(
        n=audit.evidence.unit_count,
        n_discovery=len(discovery),
        n_holdout=n_holdout,
        discovery_error_rate=float(margins.total.sum() / margins.unit / max(1, margins.n.sum())),
        judge=audit.judge.name,
        plan=msgspec.convert(audit.plan.settings, PlanSettings),
        library=LibrarySummary(
            size=len(audit.library), hash=audit.library.hash, sources=audit.library.sources
        ),
        eligible=len(eligible),
        minimum_detectable_lift=by_prevalence.get(detectable.USUAL_PREVALENCE),
        power=DetectableLifts(
            power=detectable.POWER,
            minimum_detectable_lift={str(v): lift for v, lift in by_prevalence.items()},
        ),
        statuses={str(status): n for status, n in audit.evidence.status_counts.items()},
        columns=audit.stages,
        unit=audit.evidence.roles.unit,
    )
    return Check(prospects, summary, audit.library)


def _make_prospect(
    audit: PreparedAudit,
    hypothesis: int,
    support: tuple[int, int],
    codes: tuple[str, ...],
    lift: float | None,
) -> Prospect:
    """Make a prospect; a ``lift`` of NaN is one that no lift reaches, None one that is unknown."""
    # hypotheses are numbered candidate by candidate, and within each by outcome
    j, outcome = divmod(hypothesis, len(audit.outcomes))
    candidate = audit.library[j]
    return Prospect(
        candidate.name,
        candidate.rule,
        audit.outcomes[outcome],
        *support,
        not codes,
        _reason(codes, lift, audit.evidence.roles.unit),
        None if lift is None or np.isnan(lift) else lift,
    )


def _reason(codes: tuple[str, ...], min_lift: float | None, unit: str) -> str:
    if not codes and min_lift is not None and np.isnan(min_lift):
        never = "no difference, however large, would be confirmed four times in five"
        return f"{never}: too few {unit}s"
    return messages.explain_codes(codes, unit)
