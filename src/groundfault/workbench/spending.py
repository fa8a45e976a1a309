"""Spending a holdout from the browser: the one way, through the function of the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.auditing.flow import audit
from groundfault.auditing.verification import read_evidence_again, select_audited
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.workbench.tried_rules import freeze_rules

if TYPE_CHECKING:
    from groundfault.auditing.report import Report
    from groundfault.workbench.bench import Bench

PREFIX = 8
"""Characters of the plan's seal that are typed."""


@dataclass(frozen=True)
class Spending:
    """A holdout that was opened here.

    Attributes
    ----------
    report : Report
    place : Path
        The folder that it was written to.
    """

    report: Report
    place: Path


def spend_holdout(bench: Bench, rules: Sequence[str], seal: str, reason: str) -> Spending:
    """Judge rules that were tried here on the holdout, and write the report.

    Parameters
    ----------
    bench : Bench
    rules : sequence of str
        In SQL, each tried before.
    seal : str
        What was typed: the beginning of the seal of the report's plan.
    reason : str
        Why the outcomes are looked at again; it stays in every report.

    Raises
    ------
    InputError, PlanError
        If nothing is held out or named, a rule was not tried, or the seal is another; the holdout
        stays closed then.
    LedgerError
        If there is no ledger, or no reason: the report was the first look.
    """
    report, state = bench.report, bench.state
    assert report is not None
    assert state is not None
    if not state.holds_out:
        raise PlanError("the judge of this report holds nothing out, so there is nothing to open")
    if bench.ledger is None:
        raise LedgerError("without a ledger no holdout is opened here: start without --no-ledger")
    if not reason.strip():
        raise LedgerError("these outcomes were looked at before: give the reason to look again")
    if seal.strip().lower() != state.seal[:PREFIX]:
        raise InputError(f"type the first {PREFIX} characters of the plan's seal to go on")
    library = freeze_rules(bench, rules)
    folder = bench.place if bench.place.is_dir() else bench.place.parent
    place = folder.with_name(f"{folder.name}-{library.hash[:PREFIX]}")
    if place.exists():
        raise InputError(f"{place} is there already: the same rules were tested before")
    evidence = read_evidence_again(report.data, folder, bench.evidence)
    result = audit(
        select_audited(evidence, report.manifest),
        report.plan.to_plan(),
        library,
        compare=report.manifest.compare,
        ledger=bench.ledger.through("web"),
        reopen=reason.strip(),
        modes=False,
    )
    result.write(place)
    return Spending(result, place)
