"""groundfault: say where a model fails, and on what grounds.

Evidence goes in, finders propose candidate explanations, a sealed plan fixes the rules, a judge rules, a report says
what may be said::

    import groundfault

    evidence = groundfault.Evidence.from_table("results.parquet", id="item_id", outcome="error")
    report = groundfault.audit(evidence)
    report.to_html("report.html")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundfault.candidate import Candidate, Library
    from groundfault.checking import Check, check
    from groundfault.errors import (
        GroundfaultError,
        InputError,
        LedgerError,
        MissingExtraError,
        PlanError,
        RuleError,
    )
    from groundfault.evidence import Evidence
    from groundfault.finding import Cell, Finding, Verdict
    from groundfault.flow import audit
    from groundfault.gating import gate
    from groundfault.judge import Judge, Screening
    from groundfault.ledger import Ledger
    from groundfault.outcome import Status
    from groundfault.plan import Plan
    from groundfault.proposals import Proposals, propose
    from groundfault.report import Report
    from groundfault.sequential.pool import Pool
    from groundfault.sequential.session import Audit
    from groundfault.verification import Verification, verify

# where each public name lives; nothing is imported before it is asked for, so that the command line starts at once
_HOMES = {
    "Audit": "sequential.session",
    "Candidate": "candidate",
    "Cell": "finding",
    "Check": "checking",
    "Evidence": "evidence",
    "Finding": "finding",
    "GroundfaultError": "errors",
    "InputError": "errors",
    "Judge": "judge",
    "Ledger": "ledger",
    "LedgerError": "errors",
    "Library": "candidate",
    "MissingExtraError": "errors",
    "Plan": "plan",
    "Pool": "sequential.pool",
    "PlanError": "errors",
    "Proposals": "proposals",
    "Report": "report",
    "RuleError": "errors",
    "Screening": "judge",
    "Status": "outcome",
    "Verdict": "finding",
    "Verification": "verification",
    "audit": "flow",
    "check": "checking",
    "gate": "gating",
    "propose": "proposals",
    "verify": "verification",
}
_ROOMS = (
    "exports",
    "finders",
    "improve",
    "judges",
    "language",
    "models",
    "policies",
    "probes",
    "readers",
    "sequential",
    "stats",
    "studies",
    "taxonomy",
    "testing",
)

__all__ = [
    "Audit",
    "Candidate",
    "Cell",
    "Check",
    "Evidence",
    "Finding",
    "GroundfaultError",
    "InputError",
    "Judge",
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
    "Status",
    "Verdict",
    "Verification",
    "audit",
    "check",
    "gate",
    "propose",
    "verify",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        found = getattr(import_module(f"groundfault.{_HOMES[name]}"), name)
    elif name in _ROOMS:
        found = import_module(f"groundfault.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        found = version("groundfault")
    else:
        raise AttributeError(f"module 'groundfault' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])
