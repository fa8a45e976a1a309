"""The dual test: e-processes against the model's null and the auditor's, read every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from groundfault.sequential.eprocess import EProcess
from groundfault.sequential.model_wealth import ModelWealth
from groundfault.sequential.plan import SequentialPlan

Verdict = Literal["failure mode found", "audit passed", "inconclusive"]


class EProcessPair(NamedTuple):
    """A number for each null, such as natural logs of e-values."""

    model: float
    auditor: float


@dataclass(frozen=True, eq=False)
class Dual:
    """Algorithm 1 of the paper, between two scores; each update gives a new one.

    The model's test runs from the first tested case; the auditor's bets start at the end of the
    plan's burn-in m, and are placed on claimed rounds only. No correction for two tests is due:
    where the model's null is true, a claim that some group fails is false.

    Attributes
    ----------
    model : ModelWealth
    auditor : EProcess
    """

    model: ModelWealth
    auditor: EProcess

    @classmethod
    def begin(cls, plan: SequentialPlan, groups: int, warm_up: Sequence[float] = ()) -> Dual:
        """Both processes before the first tested case, their forecasts taught by the warm-up.

        Parameters
        ----------
        plan : SequentialPlan
        groups : int
            How many groups, or sets of cases, bets may be placed on.
        warm_up : sequence of float
        """
        model = ModelWealth.begin(plan.bets("model"), plan.group_bets, groups, plan.joint_bets)
        auditor = EProcess.begin(plan.bets("auditor"))
        if not len(warm_up):
            return cls(model, auditor)
        return cls(
            model.warm_start(warm_up, plan.threshold), auditor.warm_start(warm_up, plan.threshold)
        )

    @property
    def steps(self) -> int:
        """Tested cases so far."""
        return self.model.steps

    @property
    def log_e(self) -> EProcessPair:
        """Natural logs of both e-values."""
        return EProcessPair(self.model.log_e, float(self.auditor.log_e[0]))

    def update(
        self,
        score: float | None,
        thresholds: tuple[float, float],
        *,
        claim: bool,
        group: str | None = None,
        forecast: float | None = None,
    ) -> Dual:
        """After one more tested case.

        Parameters
        ----------
        score : float in [0, 1], or None
            None, a case that could not be scored, is a pass to the model's test and a failure to
            the auditor's.
        thresholds : pair of float
            What it is tested against under the model's null, and under the auditor's.
        claim : bool
            Whether the auditor claimed that the group fails.
        group : str, optional
            The group that the case was drawn from; None for a set of cases.
        forecast : float, optional
            Expected score, for ``-pred`` bets.
        """
        # an unscored case must help neither verdict: each test takes it as its null would have it
        high, low = (1.0, 0.0) if score is None else (score, score)
        return Dual(
            self.model.update(group, high, thresholds[0], forecast),
            # the auditor's null is about claimed groups only: on other rounds it must not bet
            self.auditor.update(low, thresholds[1], forecast=forecast, stake=claim),
        )
