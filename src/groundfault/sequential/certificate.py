"""Certificates: the whole of an audit as JSON, from which anyone recomputes its verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from groundfault.base.deprecation import warn_renamed
from groundfault.base.files import save_text
from groundfault.base.reading import read_json_object
from groundfault.base.registry import load_object
from groundfault.errors import InputError
from groundfault.sequential.certificate_schema import (
    CertificateRound,
    GroupCount,
    Judgement,
    LedgerPlace,
    LogNumber,
    LogPair,
    PoolOutline,
    SequentialSettings,
)
from groundfault.sequential.draws import SealedKey
from groundfault.sequential.dual import Verdict
from groundfault.sequential.plan_names import from_stored_names, to_stored_names
from groundfault.sequential.pool import from_hex
from groundfault.sequential.record import Round, write_pair

if TYPE_CHECKING:
    from groundfault.sequential.state import AuditState

_FOUND = "failure mode found"

VERSION = 2
"""Version of the layout. Version 0.1.0 of groundfault wrote 1, in which two settings of the plan
have other names (`groundfault.sequential.plan_names`). The rule for reading older ones: a
change that a reader of the old layout would misread raises it, and `Certificate.from_dict` brings
what came before up to date; a certificate of a later version is refused."""


# what has a default was added later: left out where it is the default, so that a certificate of an
# earlier version is written again to the byte
class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an audit may say, and everything it rests on.

    Attributes
    ----------
    version : int
        Of the layout; stored as ``groundfault_certificate``.
    groundfault_version : str
        What made it.
    verdict : {"failure mode found", "audit passed", "inconclusive"}
    reason : str
        The grounds of the verdict, in a sentence.
    null : str
        What "failure mode found" refutes, in a sentence.
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
        Group, draw, thresholds, what was bet on it, score, and both e-values of each.
    reviews : tuple of Judgement
        Of an annotator panel, in their order.
    ledger : LedgerPlace, optional
        None where the audit was not recorded.
    draws : SealedKey, optional
        The hash of the random key from which the draws follow, and the key itself once the audit
        has ended. None where the plan's seed is public.
    """

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

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate that `to_json` wrote, in this version or an earlier one.

        Raises
        ------
        InputError
            If it cannot be read, or is no certificate of a sequential audit.
        """
        return cls.from_dict(read_json_object(path), str(path))

    @classmethod
    def from_dict(cls, data: object, source: str = "this") -> Certificate:
        """A certificate from what its JSON holds; ``source`` names it in messages.

        This is the one place that reads a certificate by its keys.

        Raises
        ------
        InputError
            If it is not one, or of a later version.
        """
        version = data.get("groundfault_certificate") if isinstance(data, Mapping) else None
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise InputError(f"{source} is not a certificate of a sequential audit")
        if version > VERSION:
            raise InputError(
                f"{source} is a certificate of layout {version}, and this version of groundfault "
                f"reads up to {VERSION}: install a newer one"
            )
        plan = data.get("plan") if isinstance(data, Mapping) else None
        if version == 1 and isinstance(data, Mapping) and isinstance(plan, Mapping):
            data = {**data, "plan": from_stored_names(plan)}
        try:
            # unknown fields are refused: a certificate that says more than is checked would be
            # trusted
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise InputError(
                f"{source} is not a certificate of a sequential audit ({error})"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain words and numbers."""
        # not to_builtins, which leaves tuples: what is compared with stored JSON has lists
        content: dict[str, Any] = json.loads(msgspec.json.encode(self))
        if self.version == 1:
            content["plan"] = to_stored_names(content["plan"])
        return content

    def to_json(self, path: str | Path | None = None) -> str:
        """The certificate as JSON; also written to ``path``, whole or not at all."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        return save_text(text, path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The audit as one self-contained HTML page; also written to ``path``."""
        return save_text(load_object("groundfault.render.sequential_page:html")(self), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The audit as Markdown; also written to ``path``."""
        return save_text(load_object("groundfault.render.sequential_page:markdown")(self), path)

    @property
    def data(self) -> dict[str, Any]:
        """The old name of `to_dict`."""
        warn_renamed("Certificate.data", "Certificate.to_dict()")
        return self.to_dict()

    # ------------------------------------------------------------------------- what a page shows

    @property
    def sentence(self) -> str:
        """The verdict, its grounds, and of which cases it speaks."""
        if self.verdict == _FOUND and self.is_about_pool:
            n_cases = len(self.pool.ids)
            return f"{self.verdict} in this pool of {n_cases} cases: {self.reason}"
        return f"{self.verdict}: {self.reason}"

    @property
    def caution(self) -> str:
        """The error rate over all audits of these cases, where the ledger holds several."""
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
        """Whether the verdict is about the cases of the pool alone, and not what they stand for."""
        return self.plan.claim == "declared-groups" and not self.pool.generated

    @property
    def lowest_group(self) -> GroupResult | None:
        """The group with the lowest mean of its labels, selected after looking; None without any.

        Of groups as low, the one with the most labels, and then the smallest.
        """
        groups = [result for result in self.group_results if result.mean is not None]
        return min(groups, key=lambda g: (g.mean or 0.0, -g.labelled, g.size), default=None)

    @property
    def left_out(self) -> Mapping[str, int]:
        """Groups smaller than the plan's epsilon asks, which were not tested, and their sizes."""
        tested, n_cases = {count.group for count in self.groups}, len(self.pool.ids)
        return {
            name: int(from_hex(members, n_cases).sum())
            for name, members in self.pool.groups.items()
            if name not in tested
        }

    @property
    def wealth_path(self) -> tuple[WealthPoint, ...]:
        """Both e-values after each label, from the start, where both are 1."""
        path = [
            WealthPoint(point.step, *(_to_float(x) for x in point.log_e))
            for point in self.rounds
            if point.closed
        ]
        return (WealthPoint(0, 0.0, 0.0), *path)

    @property
    def group_results(self) -> tuple[GroupResult, ...]:
        """Labels, errors and possible means of each declared group."""
        # a case that may be answered anew, or is one of endless draws, leaves the mean open
        is_finite = self.plan.claim != "rates" and not self.pool.generated
        return tuple(GroupResult.of(count, is_finite=is_finite) for count in self.groups)

    @property
    def unlabelled(self) -> tuple[str, ...]:
        """Ids of the cases that were never labelled, in the pool's order."""
        labelled_ids = {point.id for point in self.rounds if point.closed}
        return tuple(name for name in self.pool.ids if name not in labelled_ids)

    @property
    def judgements(self) -> int:
        """Labels that people gave: one a case, or one for each person of a panel who judged it."""
        reviewed = {review.step for review in self.reviews}
        alone = sum(point.closed and point.step not in reviewed for point in self.rounds)
        return len(self.reviews) + alone

    def compute_cost(self, per_label: float) -> float:
        """What the labels cost."""
        return per_label * self.judgements


@dataclass(frozen=True)
class WealthPoint:
    """Natural logs of both e-values after the label of a step."""

    step: int
    model: float
    auditor: float


@dataclass(frozen=True)
class GroupResult:
    """What is known of a declared group.

    Attributes
    ----------
    group : str
    size, labelled, unscored : int
    errors : float
        Sum of the losses of its labels.
    mean : float, optional
        Mean score of its labels; None where there is none.
    lowest, highest : float, optional
        What the mean of all its cases can still be, if every other case fails, or passes. This
        holds however the cases were chosen and whenever one stops, unlike a confidence interval for
        a fixed number of labels. None where cases are answered anew or generated.
    """

    group: str
    size: int
    labelled: int
    unscored: int
    errors: float
    mean: float | None
    lowest: float | None
    highest: float | None

    @classmethod
    def of(cls, count: GroupCount, *, is_finite: bool) -> GroupResult:
        """The result of a count."""
        lowest = count.total / count.size if is_finite else None
        highest = 1 - count.errors / count.size if is_finite else None
        return cls(
            count.group, count.size, count.labelled, count.unscored, count.errors, count.mean,
            lowest, highest,
        )  # fmt: skip


def certify(audit: AuditState, ledger: LedgerPlace | None, *, reveal: bool = False) -> Certificate:
    """The certificate of an audit as it stands; `SequentialAudit.certificate` calls it.

    Parameters
    ----------
    audit : AuditState
    ledger : LedgerPlace, optional
    reveal : bool
        Whether the audit has ended, so that the key of its draws may be known.
    """
    from groundfault import __version__

    return Certificate(
        version=VERSION,
        groundfault_version=str(__version__),
        verdict=audit.verdict,
        reason=audit.reason,
        null=audit.null,
        guaranteed=audit.claim.guaranteed,
        log_wealth=msgspec.convert(write_pair(audit.log_wealth), LogPair),
        labelled=audit.labelled,
        tested=audit.tested,
        groups=audit.groups,
        plan=msgspec.convert(audit.plan.settings, SequentialSettings),
        seal=audit.seal,
        pool=msgspec.convert(audit.pool.outline(), PoolOutline),
        rounds=tuple(_certify_round(round_) for round_ in audit.rounds),
        reviews=msgspec.convert(audit.reviews, tuple[Judgement, ...]),
        ledger=ledger,
        draws=audit.draws.sealed_key if reveal else audit.draws.hash_alone,
    )


def _certify_round(round_: Round) -> CertificateRound:
    return msgspec.convert(round_.to_dict(), CertificateRound)


def _to_float(value: LogNumber) -> float:
    return float(value)
