"""Sequential audits: evidence that stays valid whenever you look, whatever you look at next.

`SequentialAudit` is the session: ask it for the next case, tell it the score.
`groundfault.sequential.claims` says what it tests and how it may draw,
`groundfault.sequential.bets` what the guarantee of each e-process needs."""

from groundfault.base.deprecation import rename_attributes
from groundfault.sequential.bets import BETS, Bet
from groundfault.sequential.certificate import Certificate
from groundfault.sequential.claims import Claim
from groundfault.sequential.confirmation import SequentialConfirmation
from groundfault.sequential.eprocess import EProcess, e_process
from groundfault.sequential.evaluation import StopEarly
from groundfault.sequential.plan import SequentialPlan
from groundfault.sequential.pool import ALL, Pool
from groundfault.sequential.session import SequentialAudit
from groundfault.sequential.stored_result import Confirmation
from groundfault.sequential.verification import CertificateCheck, verify_certificate
from groundfault.stats.betting import conditional_threshold

__all__ = [
    "ALL",
    "BETS",
    "Bet",
    "Certificate",
    "CertificateCheck",
    "Claim",
    "Confirmation",
    "EProcess",
    "Pool",
    "SequentialAudit",
    "SequentialConfirmation",
    "SequentialPlan",
    "StopEarly",
    "conditional_threshold",
    "e_process",
    "verify_certificate",
]

__getattr__ = rename_attributes(
    __name__,
    {
        "Audit": "groundfault.sequential.session:SequentialAudit",
        "AuditPlan": "groundfault.sequential.plan:SequentialPlan",
        "HoldoutAudit": "groundfault.sequential.confirmation:SequentialConfirmation",
    },
)
