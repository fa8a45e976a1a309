"""groundfault: find out where a model fails, with rules you can check.

Evidence goes in, finders propose candidate explanations, a sealed plan fixes the rules, a judge
decides, and a report states what is confirmed::

    import groundfault

    evidence = groundfault.Evidence.from_table("results.parquet", id="item_id", outcome="error")
    report = groundfault.audit(evidence)
    report.to_html("report.html")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault.auditing.checking import Check as Check, check as check
    from groundfault.auditing.describing import Descriptions as Descriptions, describe as describe
    from groundfault.auditing.flow import audit as audit
    from groundfault.auditing.gating import gate as gate
    from groundfault.auditing.lazy_evidence import LazyEvidence as LazyEvidence
    from groundfault.auditing.report import Report as Report
    from groundfault.auditing.verification import verify as verify
    from groundfault.auditing.verification_checks import Verification as Verification
    from groundfault.base.ledger import Ledger as Ledger
    from groundfault.base.long_work import show_steps as show_steps
    from groundfault.case.case import Case as Case
    from groundfault.core.candidate import Candidate as Candidate, Library as Library
    from groundfault.core.evidence import Evidence as Evidence
    from groundfault.core.finding import Cell as Cell, Finding as Finding, Verdict as Verdict
    from groundfault.core.judge import Judge as Judge, Screening as Screening
    from groundfault.core.plan import Plan as Plan
    from groundfault.core.status import Status as Status
    from groundfault.errors import (
        GroundfaultError as GroundfaultError,
        InputError as InputError,
        InternalError as InternalError,
        LedgerError as LedgerError,
        MissingExtraError as MissingExtraError,
        PlanError as PlanError,
        RuleError as RuleError,
    )
    from groundfault.sequential.pool import Pool as Pool
    from groundfault.sequential.session import SequentialAudit as SequentialAudit

__getattr__, __dir__, __all__ = open_front_door(__name__)
