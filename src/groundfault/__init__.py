"""groundfault: say where a model fails, and on what grounds.

Evidence goes in, finders propose candidate explanations, a sealed plan fixes the rules, a judge
decides, and a report states what is confirmed::

    import groundfault

    evidence = groundfault.Evidence.from_table("results.parquet", id="item_id", outcome="error")
    report = groundfault.audit(evidence)
    report.to_html("report.html")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundfault.auditing.checking import Check, check
    from groundfault.auditing.describing import Descriptions, describe
    from groundfault.auditing.flow import audit
    from groundfault.auditing.gating import gate
    from groundfault.auditing.lazy_evidence import LazyEvidence
    from groundfault.auditing.proposals import Proposals, propose
    from groundfault.auditing.report import Report
    from groundfault.auditing.verification import verify
    from groundfault.auditing.verification_checks import Verification
    from groundfault.base.ledger import Ledger
    from groundfault.base.progress import show_steps
    from groundfault.case.case import Case
    from groundfault.core.candidate import Candidate, Library
    from groundfault.core.evidence import Evidence
    from groundfault.core.finding import Cell, Finding, Verdict
    from groundfault.core.judge import Judge, Screening
    from groundfault.core.plan import Plan
    from groundfault.core.status import Status
    from groundfault.errors import (
        GroundfaultError,
        InputError,
        InternalError,
        LedgerError,
        MissingExtraError,
        PlanError,
        RuleError,
    )
    from groundfault.sequential.pool import Pool
    from groundfault.sequential.session import SequentialAudit

# where each public name lives; nothing is imported before it is used, so that the command line
# starts at once
_HOMES = {
    "Candidate": "core.candidate",
    "Case": "case.case",
    "Cell": "core.finding",
    "Check": "auditing.checking",
    "Descriptions": "auditing.describing",
    "Evidence": "core.evidence",
    "Finding": "core.finding",
    "GroundfaultError": "errors",
    "InputError": "errors",
    "InternalError": "errors",
    "Judge": "core.judge",
    "LazyEvidence": "auditing.lazy_evidence",
    "Ledger": "base.ledger",
    "LedgerError": "errors",
    "Library": "core.candidate",
    "MissingExtraError": "errors",
    "Plan": "core.plan",
    "Pool": "sequential.pool",
    "PlanError": "errors",
    "Proposals": "auditing.proposals",
    "Report": "auditing.report",
    "RuleError": "errors",
    "Screening": "core.judge",
    "SequentialAudit": "sequential.session",
    "Status": "core.status",
    "Verdict": "core.finding",
    "Verification": "auditing.verification_checks",
    "audit": "auditing.flow",
    "check": "auditing.checking",
    "describe": "auditing.describing",
    "gate": "auditing.gating",
    "propose": "auditing.proposals",
    "show_steps": "base.progress",
    "verify": "auditing.verification",
}
_ROOMS = (
    "descriptions",
    "exports",
    "finders",
    "improve",
    "judges",
    "language",
    "models",
    "plugins",
    "probes",
    "readers",
    "sequential",
    "stats",
    "taxonomy",
    "testing",
)

# names of 0.1.0, removed in the release after the next; see groundfault.base.deprecation
_RENAMED = {
    "Audit": "groundfault.SequentialAudit",
    "policies": "groundfault.sequential.policies",
    "studies": "groundfault_studies",
}

__all__ = [
    "Candidate",
    "Case",
    "Cell",
    "Check",
    "Descriptions",
    "Evidence",
    "Finding",
    "GroundfaultError",
    "InputError",
    "InternalError",
    "Judge",
    "LazyEvidence",
    "Ledger",
    "LedgerError",
    "Library",
    "MissingExtraError",
    "Plan",
    "PlanError",
    "Pool",
    "Proposals",
    "Report",
    "RuleError",
    "Screening",
    "SequentialAudit",
    "Status",
    "Verdict",
    "Verification",
    "audit",
    "check",
    "describe",
    "gate",
    "propose",
    "show_steps",
    "verify",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(import_module(f"groundfault.{_HOMES[name]}"), name)
    elif name in _ROOMS:
        value = import_module(f"groundfault.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("groundfault")
    elif name in _RENAMED:
        from pkgutil import resolve_name

        from groundfault.base.deprecation import warn_renamed

        warn_renamed(f"groundfault.{name}", _RENAMED[name])
        return resolve_name(_RENAMED[name])  # not stored, so that every use warns
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])
