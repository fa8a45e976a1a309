"""Sequential audits: evidence that stays valid whenever you look, for any choice of cases.

`SequentialAudit` is the session: ask it for the next case, tell it the score.
`groundfault.sequential.claims` says what it tests and how it may draw,
`groundfault.sequential.bets` what the guarantee of each e-process needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault.sequential.bets import BETS as BETS, Bet as Bet
    from groundfault.sequential.certificate import Certificate as Certificate
    from groundfault.sequential.claims import Claim as Claim
    from groundfault.sequential.confirmation import SequentialConfirmation as SequentialConfirmation
    from groundfault.sequential.eprocess import EProcess as EProcess, e_process as e_process
    from groundfault.sequential.evaluation import StopEarly as StopEarly
    from groundfault.sequential.plan import SequentialPlan as SequentialPlan
    from groundfault.sequential.pool import ALL as ALL, Pool as Pool
    from groundfault.sequential.session import SequentialAudit as SequentialAudit
    from groundfault.sequential.stored_result import Confirmation as Confirmation
    from groundfault.sequential.verification import (
        CertificateCheck as CertificateCheck,
        verify_certificate as verify_certificate,
    )
    from groundfault.stats.betting import conditional_threshold as conditional_threshold

__getattr__, __dir__, __all__ = open_front_door(__name__)
