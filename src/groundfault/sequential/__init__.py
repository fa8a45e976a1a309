"""Sequential audits: evidence that stays valid whenever one looks, whatever one looks at next.

The names here are the e-processes; `groundfault.sequential.bets` says what each one's guarantee needs.
"""

from groundfault.sequential.bets import BETS, Bet
from groundfault.sequential.eprocess import EProcess, e_process
from groundfault.stats.betting import conditional_threshold

__all__ = ["BETS", "Bet", "EProcess", "conditional_threshold", "e_process"]
