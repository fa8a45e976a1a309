"""Findings: one candidate and its verdict, with its numbers and the reason in a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from groundfault.base.registry import load_object


class Verdict(StrEnum):
    """Result of judging a candidate."""

    CONFIRMED = "confirmed"
    TOO_SMALL = "too_small"
    NOT_REPLICATED = "not_replicated"
    BELOW_FLOOR = "below_floor"
    UNTESTABLE = "untestable"


@dataclass(frozen=True)
class Cell:
    """The numbers of a candidate on one set of units.

    Attributes
    ----------
    on, off : int
        Units on and off the slice.
    on_errors, off_errors : float
        Errors, or losses summed, on and off the slice; whole numbers for 0/1 errors.
    lift : float or None
        Mean loss on minus off; None where a side is empty.
    p : float or None
        Permutation p-value: two-sided on discovery and on all units, one-sided in the discovery
        direction on the holdout.
    p_adjusted : float or None
        Adjusted for multiplicity, as the judge does.
    interval : pair of floats, or None
        For the lift, or for the ratio where the plan's effect is one; for this finding alone.
    """

    on: int
    off: int
    on_errors: float
    off_errors: float
    lift: float | None
    p: float | None = None
    p_adjusted: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def on_rate(self) -> float | None:
        """Return mean loss on the slice."""
        return self.on_errors / self.on if self.on else None

    @property
    def off_rate(self) -> float | None:
        """Return mean loss off the slice."""
        return self.off_errors / self.off if self.off else None

    def swap(self, effect: str = "risk_difference") -> Cell:
        """Return the numbers with on and off exchanged.

        Parameters
        ----------
        effect : {"risk_difference", "risk_ratio", "odds_ratio"}
            The effect that the interval is for.
        """
        interval = None if self.interval is None else _swap_interval(self.interval, effect)
        return replace(
            self,
            on=self.off,
            off=self.on,
            on_errors=self.off_errors,
            off_errors=self.on_errors,
            lift=None if self.lift is None else -self.lift,
            interval=interval,
        )


@dataclass(frozen=True)
class Estimate:
    """An effect corrected for the bar that it had to pass to be confirmed.

    Attributes
    ----------
    effect : float
        A lift, or a ratio where the plan's effect is one; between no effect and the observed one.
    interval : pair of floats
        On the same scale. See `groundfault.auditing.results`.
    """

    effect: float
    interval: tuple[float, float]

    def swap(self, effect: str = "risk_difference") -> Estimate:
        """Return the estimate with on and off exchanged.

        Parameters
        ----------
        effect : {"risk_difference", "risk_ratio", "odds_ratio"}
        """
        ratio = effect != "risk_difference"
        value = (1 / self.effect if self.effect else float("inf")) if ratio else -self.effect
        return Estimate(value, _swap_interval(self.interval, effect))


def _swap_interval(interval: tuple[float, float], effect: str) -> tuple[float, float]:
    low, high = interval
    if effect == "risk_difference":
        return -high, -low
    # 1 / 0 is no bound: the upper end of such an interval is open
    return 1 / high if high else float("inf"), 1 / low if low else float("inf")


@dataclass(frozen=True)
class Elsewhere:
    """How the change between two models on a slice differs from their change elsewhere.

    Attributes
    ----------
    n : int
        Units elsewhere.
    change : float
        Mean loss of the second model minus mean loss of the first, elsewhere.
    difference : float
        Change on the slice minus change elsewhere.
    interval : pair of float
        Interval for the difference, for this finding alone.
    p_adjusted : float
        Two-sided p-value for equal changes, adjusted for all tested candidates.
    differs : bool
        Whether ``p_adjusted`` is at most the level of the plan.
    """

    n: int
    change: float
    difference: float
    interval: tuple[float, float]
    p_adjusted: float
    differs: bool


@dataclass(frozen=True)
class Opposite:
    """The opposite rule: it matches the units on which a candidate is false.

    Attributes
    ----------
    name, rule, meaning : str
        For example ``n_words <= 12``, and "n_words is at most 12".
    """

    name: str
    rule: str
    meaning: str


@dataclass(frozen=True)
class Finding:
    """One candidate, or one candidate for one of several outcomes, with its verdict.

    Attributes
    ----------
    name, rule, meaning, source : str
        The candidate.
    outcome : str
        The model, or the kind of change between two; empty for a single outcome.
    verdict : Verdict
    reason : str
        Reason for the verdict in a few words; codes come first.
    sentence : str
        The result in a full sentence.
    discovery, full : Cell
        Numbers on the discovery units and on all units. The discovery numbers are too optimistic
        for findings selected on them (winner's curse).
    holdout : Cell or None
        Numbers on held-out units; None for judges without a holdout.
    aliases : tuple of str
        Candidates that match the same units; with the prefix "not ", exactly the other units.
    representative : str or None
        The stronger confirmed finding that this one is grouped under, because the data cannot
        separate the two; None for representatives and for unconfirmed findings. See
        `groundfault.auditing.results.find_representatives`.
    decoys : float or None
        Decoys expected at or above this discovery effect.
    sensitivity : dict of str to str
        Verdicts had all unscored observations failed, or all passed; empty if all were scored.
    frequency : float or None
        Share of repeated random splits that confirm the finding. Not the probability that it is
        true.
    estimate : Estimate or None
        The effect, corrected for the selection by the bar of a confirmation; None if the finding is
        not confirmed or the judge does not state its bar.
    opposite : Opposite or None
        Given for a confirmed finding of less frequent failures whose opposite rule is as natural:
        cuts of numbers, and flags that are true for most units. Reports then describe the opposite
        side, on which failures are more frequent.
    elsewhere : Elsewhere or None
        Given for a candidate tested in a comparison. The cells of a comparison count the second
        model on the slice as "on" and the first model on the slice as "off", so that the lift is
        the change.
    """

    name: str
    rule: str
    meaning: str
    source: str
    outcome: str
    verdict: Verdict
    reason: str
    sentence: str
    discovery: Cell
    holdout: Cell | None
    full: Cell
    aliases: tuple[str, ...] = ()
    representative: str | None = None
    decoys: float | None = None
    sensitivity: dict[str, str] = field(default_factory=dict)
    frequency: float | None = None
    opposite: Opposite | None = None
    estimate: Estimate | None = None
    elsewhere: Elsewhere | None = None

    def __repr__(self) -> str:
        cell = self.holdout or self.full
        rates = ("?" if rate is None else f"{rate:.0%}" for rate in (cell.on_rate, cell.off_rate))
        inside, outside = rates
        sizes = f"{inside} of {cell.on:,} against {outside} of {cell.off:,}"
        return f"<Finding: {self.key}, {self.verdict}, {sizes}>"

    def _repr_html_(self) -> str:
        html: str = load_object("groundfault.render.preview_pages:show_finding")(self)
        return html

    @property
    def key(self) -> str:
        """Return the name, with the outcome where there are several: unique in a report."""
        return f"{self.name} · {self.outcome}" if self.outcome else self.name

    @property
    def confirmed(self) -> bool:
        """Return whether the finding is confirmed."""
        return self.verdict is Verdict.CONFIRMED

    @property
    def is_less_frequent(self) -> bool:
        """Return whether failures are less frequent on the slice, among the units that decide."""
        return ((self.holdout or self.full).lift or 0.0) < 0

    @property
    def is_strength(self) -> bool:
        """Return whether the finding describes where a model does better, not where it fails.

        Failures are less frequent on the slice, and the other side has no rule of its own.
        """
        return self.is_less_frequent and self.opposite is None

    def face_failures(self, effect: str = "risk_difference") -> Finding:
        """Return the finding for the side with more frequent failures, if that side has a rule.

        A finding with an `opposite` and less frequent failures exchanges name, rule, meaning and
        numbers with it. Every other finding is returned unchanged.

        Parameters
        ----------
        effect : {"risk_difference", "risk_ratio", "odds_ratio"}
            The effect that the intervals are for.
        """
        if self.opposite is None or not self.is_less_frequent:
            return self
        return replace(
            self,
            **asdict(self.opposite),
            discovery=self.discovery.swap(effect),
            holdout=None if self.holdout is None else self.holdout.swap(effect),
            full=self.full.swap(effect),
            estimate=None if self.estimate is None else self.estimate.swap(effect),
            aliases=tuple(
                a.removeprefix("not ") if a.startswith("not ") else f"not {a}" for a in self.aliases
            ),
            opposite=Opposite(self.name, self.rule, self.meaning),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain words and numbers."""
        return asdict(self) | {"verdict": str(self.verdict), "aliases": list(self.aliases)}
