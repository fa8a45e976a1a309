"""Sequential audits: evidence that stays valid whenever one looks, whatever one looks at next.

`Audit` is the session that asks and is told; `groundfault.sequential.claims` says what it tests and
how it may draw, `groundfault.sequential.bets` what each e-process's guarantee needs."""

from groundfault.sequential.bets import BETS, Bet
from groundfault.sequential.certificate import Certificate, CertificateCheck, verify_certificate
from groundfault.sequential.claims import Claim
from groundfault.sequential.confirmation import HoldoutAudit
from groundfault.sequential.eprocess import EProcess, e_process
from groundfault.sequential.evaluation import StopEarly
from groundfault.sequential.plan import AuditPlan
from groundfault.sequential.pool import ALL, Pool
from groundfault.sequential.session import Audit
from groundfault.stats.betting import conditional_threshold

__all__ = [
    "ALL",
    "BETS",
    "Audit",
    "AuditPlan",
    "Bet",
    "Certificate",
    "CertificateCheck",
    "Claim",
    "EProcess",
    "HoldoutAudit",
    "Pool",
    "StopEarly",
    "conditional_threshold",
    "e_process",
    "verify_certificate",
]
