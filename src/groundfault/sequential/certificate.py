"""Certificates: the whole of an audit as JSON, from which anyone recomputes its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from groundfault.base.arrays import Bools, Places
from groundfault.errors import InputError
from groundfault.sequential.bets import Shares
from groundfault.sequential.draws import SealedKey
from groundfault.sequential.plan import (
    ClaimName,
    Sampling,
    SequentialPlan,
    from_stored_names,
    to_stored_names,
)
from groundfault.sequential.policies import Cells
from groundfault.sequential.pool import from_hex
from groundfault.sequential.record import LedgerPlace
from groundfault.sequential.stored_result import StoredResult
from groundfault.sequential.two_null_test import Verdict
from groundfault.stats.prediction_powered import find_interval

LogNumber = float | Literal["inf", "-inf", "nan"]
"""A natural log; JSON has no infinity, so it is spelled."""

LogPair = tuple[LogNumber, LogNumber]
"""One number against the model's null, one against the auditor's."""


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
    prior: dict[str, float] | None = None

    def to_plan(self) -> SequentialPlan:
        """Return the plan with these settings.

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
        SHA-256 of the embedding; empty without one.
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
        """Return labels with a score."""
        return self.labelled - self.unscored

    @property
    def mean(self) -> float | None:
        """Return the mean score of the labels; None without labels."""
        return self.total / self.score_count if self.score_count else None

    @property
    def errors(self) -> float:
        """Return the sum of the losses: the number of failures where scores are 0 or 1."""
        return self.score_count - self.total

    @property
    def lowest(self) -> float:
        """Return the mean of all its cases if every other one fails.

        It holds however cases were chosen and whenever one stops, unless answers differ from run to
        run (the claim "rates") or a model wrote the cases.
        """
        return self.total / self.size

    @property
    def highest(self) -> float:
        """Return the mean of all its cases if every other one passes; as `lowest`."""
        return 1 - self.errors / self.size


class CertificateRound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One round, as `groundfault.sequential.record.Round` has it.

    Attributes
    ----------
    items : str, optional
        The cases it was drawn from, where that was no whole group; hexadecimal digits.
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
    """The judgement of one person of a panel on the case of a round."""

    step: int
    id: str
    labeller: str
    score: float | None


_ENDLESS = 10**9
"""Size of a population of which any number of cases can be drawn."""
_STEPS = 200
"""Means that intervals are rounded outwards to: half a point is finer than any audit tells."""
_FOUND = "failure mode found"


# what has a default was added later: left out where it is the default, so that a certificate of an
# earlier version is written again to the byte
class Certificate(StoredResult, frozen=True, omit_defaults=True):
    """The claim of an audit, and the evidence for it.

    Attributes
    ----------
    version : int
        Of the layout; stored as ``groundfault_certificate``.
    groundfault_version : str
        Name and version of the program that made it.
    verdict : {"failure mode found", "audit passed", "inconclusive"}
    reason : str
        The grounds of the verdict, in a sentence.
    null : str
        The claim that "failure mode found" refutes, in a sentence.
    guaranteed : bool
        Whether the error rate is at most alpha; false where sampling is the paper's.
    log_wealth : pair
        Natural logs of the e-values against the model's null and the auditor's.
    labelled, tested : int
        Cases labelled, and those among them that were bet on.
    groups : tuple of GroupCount
    plan : SequentialSettings
    seal : str
        SHA-256 of plan and pool.
    pool : PoolOutline
    rounds : tuple of CertificateRound
        Group, draw, thresholds, bets, score, and both e-values of each round.
    reviews : tuple of Judgement
        Of an annotator panel, in their order.
    ledger : LedgerPlace, optional
        None where the audit was not recorded.
    draws : SealedKey, optional
        The hash of the random key from which the draws follow, and the key itself once the audit
        has ended. None where the plan's seed is public.
    corrections : int
        How many labels were taken back.
    """

    KEY = "groundfault_certificate"
    # version 0.1.0 of groundfault wrote 1, in which two settings of the plan have other names
    LAYOUT = 2
    NOUN = "a certificate"
    TITLE = "a certificate of a sequential audit"

    version: int = msgspec.field(name="groundfault_certificate")
    groundfault_version: str
    verdict: Verdict
    reason: str
    null: str
    guaranteed: bool
    log_wealth: LogPair
    labelled: int
    tested: int
    groups: tuple[GroupCount, ...]
    plan: SequentialSettings
    seal: str
    pool: PoolOutline
    rounds: tuple[CertificateRound, ...]
    reviews: tuple[Judgement, ...]
    ledger: LedgerPlace | None
    draws: SealedKey | None = None
    corrections: int = 0

    @classmethod
    def from_dict(cls, data: Mapping[str, object], source: str = "this") -> Certificate:
        """Make a certificate from its JSON; ``source`` names it in messages.

        Raises
        ------
        InputError
            If it is not one, or of a later version.
        """
        version = data.get(cls.KEY) if isinstance(data, Mapping) else None
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise InputError(f"{source} is not {cls.TITLE}")
        if version == 1 and isinstance(plan := data.get("plan"), Mapping):
            data = {**data, "plan": from_stored_names(plan)}
        return super().from_dict(data, source)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain words and numbers."""
        content = super().to_dict()
        if self.version == 1:
            content["plan"] = to_stored_names(content["plan"])
        return content

    # ------------------------------------------------------------------------- what a page shows

    @property
    def headline(self) -> str:
        """Return the verdict, and of which cases it speaks."""
        if self.verdict == _FOUND and self.is_about_pool:
            return f"{self.verdict} in this pool of {len(self.pool.ids)} cases"
        return self.verdict

    @property
    def sentence(self) -> str:
        """Return the headline and the grounds of the verdict."""
        return f"{self.headline}: {self.reason}"

    @property
    def caution(self) -> str:
        """Return the error rate over all audits of these cases, where the ledger holds several."""
        if self.ledger is None or self.ledger.audits < 2 or not self.guaranteed:
            return ""
        count, level = self.ledger.audits, self.ledger.level
        if level is None or level >= 1:
            return f"no error rate is guaranteed any more, after {count} audits of these cases"
        return (
            f"this is one of {count} audits of these cases: the chance that any of their verdicts "
            f"is wrong is at most {100 * level:g}%, if none was chosen by what an earlier one "
            "showed"
        )

    @property
    def is_about_pool(self) -> bool:
        """Return whether the verdict is about the cases of the pool alone."""
        return self.plan.claim == "declared-groups" and not self.pool.generated

    @property
    def lowest_group(self) -> GroupCount | None:
        """Return the group with the lowest mean of its labels, selected after looking; None without
        any.

        Of groups as low, the one with the most labels, and then the smallest.
        """
        groups = [count for count in self.groups if count.mean is not None]
        return min(groups, key=lambda g: (g.mean or 0.0, -g.labelled, g.size), default=None)

    @property
    def left_out(self) -> Mapping[str, int]:
        """Return groups smaller than the plan's epsilon asks, which were not tested, and their
        sizes.
        """
        tested, n_cases = {count.group for count in self.groups}, len(self.pool.ids)
        return {
            name: int(from_hex(members, n_cases).sum())
            for name, members in self.pool.groups.items()
            if name not in tested
        }

    @property
    def wealth_path(self) -> tuple[WealthPoint, ...]:
        """Return both e-values after each label, from the start, where both are 1."""
        path = [WealthPoint(r.step, *map(float, r.log_e)) for r in self.rounds if r.closed]
        return (WealthPoint(0, 0.0, 0.0), *path)

    def find_intervals(self) -> dict[str, tuple[float, float]]:
        """Return an interval of the mean of each group: of the population, or of these cases.

        Which of the two is the plan's claim. All intervals hold at once, and whenever the audit
        stops, with a chance of at least 1 - alpha under the assumptions of the claim. They are
        found by bets on the cases that were drawn from the group or from one that contains it.
        Cases without a score widen them. Without a guarantee there are no intervals.

        References
        ----------
        Waudby-Smith and Ramdas (2024), https://doi.org/10.1093/jrsssb/qkad009.
        """
        if not self.guaranteed:
            return {}
        n_cases = len(self.pool.ids)
        position = {name: i for i, name in enumerate(self.pool.ids)}
        inside = {name: from_hex(text, n_cases) for name, text in self.pool.groups.items()}
        closed = [point for point in self.rounds if point.closed]
        drawn = np.array([position[point.id] for point in closed], dtype=np.intp)
        scores = np.array([np.nan if p.score is None else p.score for p in closed], dtype=float)
        names = [count.group for count in self.groups]
        sound = self._find_sound_draws(drawn, np.stack([inside[name] for name in names]))
        intervals = {}
        for name, is_sound in zip(names, sound, strict=True):
            own = inside[name][drawn]
            covers = np.array(
                [
                    p.group is not None and p.items is None and inside[p.group][inside[name]].all()
                    for p in closed
                ],
                dtype=np.bool_,
            )
            size = int(inside[name].sum()) if self.is_about_pool else _ENDLESS
            low, high = (
                find_interval(
                    np.nan_to_num(scores[own], nan=missing), np.zeros(own.sum()), size, 0.0,
                    self.plan.alpha / len(names), fair=(is_sound & covers)[own], steps=_STEPS,
                )[end][0]
                for end, missing in enumerate((0.0, 1.0))
            )  # fmt: skip
            intervals[name] = (float(low), float(high))
        return intervals

    def _find_sound_draws(self, drawn: Places, members: Bools) -> Bools:
        """Return before which draws no cell of a group was used up: bool, shape (G, T)."""
        sound = np.ones((len(members), len(drawn)), dtype=np.bool_)
        if self.plan.claim != "population" or self.pool.generated:
            return sound
        cells, available = Cells.of(members), np.ones(members.shape[1], dtype=np.bool_)
        for step, position in enumerate(drawn):
            sound[:, step] = ~(members & ~cells.find_open(available)).any(axis=1)
            available[position] = False
        return sound

    @property
    def unlabelled(self) -> tuple[str, ...]:
        """Return the ids of the cases that were never labelled, in the pool's order."""
        labelled_ids = {point.id for point in self.rounds if point.closed}
        return tuple(name for name in self.pool.ids if name not in labelled_ids)

    @property
    def judgements(self) -> int:
        """Return labels that people gave: one a case, or one for each person of a panel who judged
        it.
        """
        reviewed = {review.step for review in self.reviews}
        alone = sum(point.closed and point.step not in reviewed for point in self.rounds)
        return len(self.reviews) + alone


@dataclass(frozen=True)
class WealthPoint:
    """Natural logs of both e-values after the label of a step."""

    step: int
    model: float
    auditor: float
