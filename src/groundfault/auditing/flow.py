"""The one flow: evidence in, candidates frozen, a sealed plan, one opening of the holdout, a report
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundfault.auditing.assemble import assemble
from groundfault.auditing.prepared import Case, prepare
from groundfault.auditing.report import Report
from groundfault.core.candidate import Candidate
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.status import Status
from groundfault.judges.rule import Ruling

if TYPE_CHECKING:
    from groundfault.base.ledger import Ledger, Opening

Progress = Callable[[str], object]


def audit(
    evidence: Evidence,
    plan: Plan | None = None,
    candidates: Iterable[Candidate] | None = None,
    *,
    finders: Sequence[Any] | None = None,
    compare: tuple[str, str] | None = None,
    ledger: Ledger | str | Path | None = None,
    reopen: str | None = None,
    robustness: int = 0,
    jobs: int = 1,
    progress: Progress = bool,
) -> Report:
    """Say which proposed explanations of the failures hold up.

    Parameters
    ----------
    evidence : Evidence
    plan : Plan, optional
        Everything decided in advance; the default plan splits in half and judges by ``janus``.
    candidates : iterable of Candidate, optional
        What to judge. With neither candidates nor finders, the default finders propose.
    finders : sequence of finder or str, optional
        Proposers, by name or ready made.
    compare : pair of str, optional
        Judge what changed between two models instead of the failures of one.
    ledger : Ledger or path, optional
        Where the opening of the holdout is recorded. Without one the report says that it was not.
    reopen : str, optional
        Why a holdout that was opened with other candidates is opened again.
    robustness : int
        Repeat the whole rule over so many random splits and report how often each candidate is
        confirmed.
    jobs : int
        Processes for the repeats; the answer does not depend on it.
    progress : callable, optional
        Told in words what is going on.

    Returns
    -------
    Report

    Raises
    ------
    InputError, RuleError, PlanError
        If something given cannot be used; nothing is recorded then.
    LedgerError
        If the holdout was opened before with other candidates and no reason is given.

    Examples
    --------
    >>> import groundfault
    >>> evidence = groundfault.Evidence.from_table("results.parquet", id="item_id", outcome="error")  # doctest: +SKIP
    >>> groundfault.audit(evidence).findings  # doctest: +SKIP
    """
    progress("proposing candidates")
    case = prepare(evidence, plan, candidates, finders=finders, compare=compare)
    progress(f"applying {len(case.library)} candidates to {case.evidence.unit_count} units")
    case.marks  # rules that cannot be applied fail here, before anything is recorded  # noqa: B018
    opening = _open(case, ledger, reopen)
    progress(f"judging by {case.judge.name}")
    losses = case.losses()
    ruling, seen, held = case.ruling(losses)
    sensitivity = _sensitivity(case) if _unscored(case.evidence) else {}
    frequency = None
    if robustness:
        from groundfault.auditing.robustness import confirmation_frequency

        progress(f"repeating over {robustness} splits")
        frequency = confirmation_frequency(
            case.judge, case.plan, case.units(losses), robustness, jobs
        )
    progress("writing the report")
    return assemble(case, ruling, seen, held, losses, opening, sensitivity, frequency)


def _unscored(evidence: Evidence) -> int:
    return len(evidence) - evidence.status_counts[Status.SCORED]


def _sensitivity(case: Case) -> dict[str, Ruling]:
    return {
        name: case.ruling(case.losses(case.evidence.with_unscored_as(loss)))[0]
        for name, loss in (("all_failed", 1.0), ("all_passed", 0.0))
    }


def _open(case: Case, ledger: Ledger | str | Path | None, reopen: str | None) -> Opening | None:
    if ledger is None:
        return None
    from groundfault.base.ledger import Ledger

    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    return book.open_holdout(
        evidence_hash=case.evidence.hash,
        outcome_hash=case.evidence.outcome_hash,
        split_hash=case.split_hash,
        library_hash=case.library.hash,
        plan_hash=case.plan.seal(),
        reopen=reopen,
    )
