"""Findings: one candidate and its verdict, with its numbers and the reason in a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from groundfault.base.deprecation import rename_fields
from groundfault.base.registry import load_object


class Verdict(StrEnum):
    """What may be said of a candidate."""

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
        """Return the numbers of the other side: on and off have changed places.

        Parameters
        ----------
        effect : {"risk_difference", "risk_ratio", "odds_ratio"}
            What the interval is of.
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
    """An effect that had to pass a bar to be confirmed, with that accounted for.

    Attributes
    ----------
    effect : float
        A lift, or a ratio where the plan's effect is one; between no effect and the observed one.
    interval : pair of floats
        On the same scale. See `groundfault.auditing.findings`.
    """

    effect: float
    interval: tuple[float, float]

    def swap(self, effect: str = "risk_difference") -> Estimate:
        """Return the estimate of the other side: on and off have changed places.

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
        Mean loss of the second model minus that of the first, there.
    difference : float
        Change on the slice minus change elsewhere.
    interval : pair of float
        Of the difference, for this finding alone.
    p_adjusted : float
        Two-sided, that the two changes are the same, adjusted for all tested candidates.
    differs : bool
        Whether that is at most the level of the plan.
    """

    n: int
    change: float
    difference: float
    interval: tuple[float, float]
    p_adjusted: float
    differs: bool


@dataclass(frozen=True)
class Opposite:
    """What holds for exactly the units that a candidate is defined for and leaves out.

    Attributes
    ----------
    name, rule, meaning : str
        Such as ``n_words <= 12``, and "n_words is at most 12".
    """

    name: str
    rule: str
    meaning: str


@rename_fields(lead="representative")
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
        Why, in a few words; starts with the codes where there are some.
    sentence : str
        What may be said, in full.
    discovery, full : Cell
        Numbers on the discovery units (selected: read with the winner's curse in mind) and on all
        units.
    holdout : Cell or None
        Numbers on held-out units; None for judges that hold nothing out.
    aliases : tuple of str
        Candidates true for the same units; those prefixed "not " for exactly the others.
    representative : str or None
        The stronger confirmed finding that this one is grouped under, because the data cannot
        separate the two; None for representatives themselves and for the unconfirmed. See
        `groundfault.auditing.results.find_representatives`.
    decoys : float or None
        Decoys expected at or above this discovery effect.
    sensitivity : dict of str to str
        Verdicts had all unscored observations failed, or all passed; empty where none was unscored.
    frequency : float or None
        Share of repeated random splits in which it was confirmed. Not a probability of being true.
    estimate : Estimate or None
        The effect with what a confirmation asks for accounted for; None where it is not confirmed,
        and where the judge does not say what it asks for.
    opposite : Opposite or None
        The other side in words, of a confirmed finding of less frequent failures, where that is as
        natural: of cuts of numbers, and of flags that hold for most units. Failures are more
        frequent on that side, and the finding is told so.
    elsewhere : Elsewhere or None
        Of a candidate that was tested in a comparison, else None. The cells of a comparison have
        the second model on the slice as "on" and the first model there as "off", so that a lift is
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
        """Return whether it may be reported."""
        return self.verdict is Verdict.CONFIRMED

    @property
    def is_less_frequent(self) -> bool:
        """Return whether failures are less frequent when it holds, on the units that decide."""
        return ((self.holdout or self.full).lift or 0.0) < 0

    @property
    def is_strength(self) -> bool:
        """Return whether it says where a model does better, and not where it does worse.

        Failures are less frequent when it holds, and its other side has no words of its own.
        """
        return self.is_less_frequent and self.opposite is None

    def face_failures(self, effect: str = "risk_difference") -> Finding:
        """Return the finding of the side on which failures are more frequent, where that has words.

        Name, rule, meaning and numbers are then those of the other side, and `opposite` is the
        candidate; every other finding is returned as it is.

        Parameters
        ----------
        effect : {"risk_difference", "risk_ratio", "odds_ratio"}
            What intervals are of.
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
