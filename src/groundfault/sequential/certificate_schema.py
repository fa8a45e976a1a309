"""What a certificate holds, field by field, as its JSON Schema publishes it.

Fields keep the names that version 0.1.0 stored; where a name reads badly in Python, the attribute
has another one (`name=`). A field may be added with a default; a change of meaning raises the
version in `groundfault.sequential.certificate`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from groundfault.base.deprecation import rename_members, warn_renamed
from groundfault.sequential.bets import Shares
from groundfault.sequential.plan import ClaimName, Sampling, SequentialPlan

LogNumber = float | Literal["inf", "-inf", "nan"]
"""A natural log; JSON has no infinity, so it is spelled."""

LogPair = tuple[LogNumber, LogNumber]
"""One number against the model's null, one against the auditor's."""


@rename_members(limit="budget")
class SequentialSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The settings of a `SequentialPlan`, every default filled in.

    In layout 1 ``burn_in`` was stored as ``budget``, and ``budget`` as ``limit``.
    """

    threshold: float
    burn_in: int
    alpha: float
    policy: str
    bet: tuple[str, ...]
    seed: int | None
    claim: ClaimName
    sampling: Sampling
    epsilon: float | None
    budget: int | None
    warm_up: int
    alternative: float | None
    grid: tuple[float, ...]
    auditor_alternative: float | None
    auditor_grid: tuple[float, ...]
    eta: float
    shares: Shares
    idle_mass: bool
    model: str = ""

    def to_plan(self) -> SequentialPlan:
        """The plan with these settings.

        Raises
        ------
        PlanError
            If a setting is out of range, or contradicts another.
        """
        return SequentialPlan(**msgspec.structs.asdict(self))


class PoolOutline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cases and groups of a pool: all that it takes to repeat the draws.

    Attributes
    ----------
    ids : tuple of str
    groups : dict of str to str
        The members of each group, eight cases to a byte, in hexadecimal digits.
    generated : bool
        Whether the cases are fresh draws from generators, one a category.
    embedding : str
        SHA-256 of the embedding; empty where there is none.
    sources : tuple of str
    hash : str
        SHA-256 of all but the sources.
    """

    ids: tuple[str, ...]
    groups: dict[str, str]
    generated: bool
    embedding: str
    sources: tuple[str, ...]
    hash: str


class GroupCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The labels of one declared group.

    Attributes
    ----------
    group : str
    size : int
        Cases in it.
    labelled, unscored : int
        Labels of its cases, and those among them that could not be scored.
    total : float
        Sum of the scores; 1 is a pass.
    """

    group: str
    size: int
    labelled: int
    unscored: int
    total: float

    @property
    def score_count(self) -> int:
        """Labels with a score."""
        return self.labelled - self.unscored

    @property
    def mean(self) -> float | None:
        """Mean score of the labels; None where there is none."""
        return self.total / self.score_count if self.score_count else None

    @property
    def errors(self) -> float:
        """Sum of the losses: the number of failures where scores are 0 or 1."""
        return self.score_count - self.total

    def __getitem__(self, key: str) -> Any:
        # audit.groups was a list of dicts in 0.1.0
        warn_renamed(f"audit.groups[...][{key!r}]", f"audit.groups[...].{key}")
        return getattr(self, key)


class CertificateRound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One round, as `groundfault.sequential.record.Round` has it.

    Attributes
    ----------
    items : str, optional
        The cases it was drawn from, where the policy named no group; hexadecimal digits.
    closed : bool
        Whether its score is there; stored as ``told``.
    log_e : pair
        Natural logs of both e-values after it.
    """

    step: int
    id: str
    group: str | None
    items: str | None
    claim: bool
    stake: bool
    forecast: float | None
    eligible: int
    thresholds: LogPair
    if_fail: LogPair
    if_pass: LogPair
    closed: bool = msgspec.field(name="told")
    score: float | None
    log_e: LogPair


class Judgement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one person of an annotator panel said of the case of a round."""

    step: int
    id: str
    labeller: str
    score: float | None


class LedgerPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the rounds were recorded, the hash of the last event, and what else is there.

    Attributes
    ----------
    path, head : str
    audits : int
        How many audits of these cases and groups it holds, this one included.
    level : float, optional
        The sum of their alphas; None where this is the only one.
    """

    path: str
    head: str
    audits: int = 1
    level: float | None = None
