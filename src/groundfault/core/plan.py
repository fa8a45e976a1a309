"""Plan: everything decided before looking, with a hash that seals it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Protocol, get_args

import numpy as np

from groundfault.base.arrays import Bools
from groundfault.base.long_work import stream
from groundfault.core.evidence import Evidence
from groundfault.core.row_names import find_cluster_leaders
from groundfault.core.time_split import earlier_units
from groundfault.errors import InputError, PlanError, require_word
from groundfault.stats.contingency import EFFECTS
from groundfault.stats.decoys import Correction

Number = int | float | str | Decimal | Fraction
Scope = Literal["discovery", "full"]
Effect = Literal["risk_difference", "risk_ratio", "odds_ratio"]
HoldoutAxis = Literal["examples", "models", "time", "groups"]
BarKind = Literal["permutation", "bonferroni"]

ALWAYS_SEALED = frozenset(
    "judge q alpha min_lift effect min_ratio holdout seed min_on min_off min_on_total hold_min_on "
    "hold_min_off prevalence scope decoys correction permutations splits".split()
)
"""The settings of 0.1.0, which every seal covers; it covers any later one that is not at its
default, so that a new setting changes no older seal."""

AUTO = "auto"
"""Lets the audit choose the judge: the choice depends on whether finders look at outcomes."""


MAX_PERMUTATIONS = 10_000_000
"""A hundred times the number that any reported p-value needs."""

MAX_DEPTH = 3
"""Conditions that a rule of a failure mode may join."""


@dataclass(frozen=True)
class _Range:
    """Range of the numbers allowed for a setting; low and high are excluded if it is open."""

    low: int
    high: int | None = None
    is_open: bool = False

    def __contains__(self, value: int | Fraction) -> bool:
        if self.is_open:
            return self.low < value and (self.high is None or value < self.high)
        return self.low <= value and (self.high is None or value <= self.high)

    def describe(self, value: int | Fraction) -> str:
        """Return the words for the numbers allowed, to refuse this value."""
        if self.is_open:
            between = f"strictly between {self.low} and {self.high}"
            return f"above {self.low}" if self.high is None else between
        if isinstance(value, Fraction):
            return f"in [{self.low}, {self.high}]"
        return f"at least {self.low}" if value < self.low else f"at most {self.high:,}"


_MAX_DIGITS = 30
"""A setting such as 1e-400 is zero as a float, and 1e999999999 takes minutes to write out."""

# the words and the numbers that settings may be, by which they are checked
_WORDS = {
    "effect": EFFECTS,
    "scope": get_args(Scope),
    "correction": get_args(Correction),
    "holdout_axis": get_args(HoldoutAxis),
    "bars": get_args(BarKind),
}
_SHARE = {"range": _Range(0, 1, is_open=True)}
_LIFT = {"range": _Range(0, 1)}
_RATIO = {"range": _Range(1, is_open=True)}
_COUNT = {"range": _Range(1)}
_WHOLE = {"range": _Range(0)}
_DRAWS = {"range": _Range(1, MAX_PERMUTATIONS)}


class NamedJudge(Protocol):
    """The part of a judge that a plan uses; see `groundfault.core.judge.Judge` for the rest."""

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def screen(self) -> Any: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything decided before looking at the outcomes.

    The first sentence of each parameter is also the help of its option.

    Parameters
    ----------
    judge : str or Judge
        Judge that confirms findings; auto takes max-t on all examples, or split-holm where
        a finder looks at outcomes. A name, see `groundfault.judges.NAMES`, or a judge; ``auto``
        also takes ``split-holm`` where a setting asks for a holdout. The settings and the seal
        record a judge by its name and the dataclass fields that differ from their defaults.
    q : number
        False-discovery rate that screens, bh and by aim at, between 0 and 1.
    alpha : number
        Family-wise error level of exact confirmations, between 0 and 1.
    min_lift : number, optional
        Smallest |lift| worth confirming; default 0.10, none for judges without a holdout.
    effect : {"risk_difference", "risk_ratio", "odds_ratio"}
        Effect size that the gate asks of a finding, and that is shown with an interval.
    min_ratio : number
        Smallest ratio worth confirming, for risk_ratio and odds_ratio; above 1. A ratio below 1
        counts by its inverse.
    holdout : number
        Share of the units that is held out, between 0 and 1; a split column overrules it.
    seed : int
        Seed of every random draw.
    min_on : int
        Smallest number of units on a slice.
    min_off : int
        Smallest number of units off a slice.
    min_on_total : int
        Smallest number of units on a slice in both parts together.
    hold_min_on : int, optional
        Smallest number of holdout units on a slice; defaults to the discovery part's number.
    hold_min_off : int, optional
        Smallest number of holdout units off a slice; defaults to the discovery part's number.
    prevalence : pair of numbers, optional
        Smallest and largest share of units on a slice; the default depends on the judge. It is
        0.10 to 0.90 for judges that rank by lift, and 0 to 1 for judges that rank by p-value.
    scope : {"discovery", "full"}
        Units whose counts decide which candidates are eligible.
    decoys : int, optional
        Draw this many decoys at random instead of computing the floor exactly. For reproduction.
    correction : {"none", "paper", "inside"}
        Place where +1 is added for decoys drawn at random. See
        `groundfault.stats.decoys.scaled_counts`.
    permutations : int
        Number of permutations of max-t, and of p-values for graded losses.
    splits : int
        Number of random splits of multisplit-e.
    holdout_axis : {"examples", "models", "time", "groups"}
        Axis along which to hold out: examples at random, models, the latest examples, or groups.
        Only the results of held-out models are judged; groups need a group column.
    holdout_column : str, optional
        Column of times, for the axis time: the latest examples are held out.
    holdout_models : tuple of str
        Model to hold out, for the axis models; default drawn at random.
    judge_settings : mapping, optional
        Settings for a judge given by name.
    depth : {1, 2, 3}
        Largest number of conditions in the rule of a failure mode.
    bars : {"permutation", "bonferroni"}
        Correction for the number of rules that are tested for failure modes. Bonferroni finds
        fewer, and is exact even if columns depend on each other.
    within : tuple of str
        Hold this column fixed: compare only examples that have the same value. Finders propose no
        rules about these columns.

    Notes
    -----
    Numbers are compared as decimals: a lift of exactly 0.10 reaches 0.10.

    Raises
    ------
    PlanError
        If a setting is out of range.
    """

    judge: str | NamedJudge = AUTO
    q: Number = field(default=Fraction(1, 10), metadata=_SHARE)
    alpha: Number = field(default=Fraction(1, 10), metadata=_SHARE)
    min_lift: Number | None = field(default=None, metadata=_LIFT)
    effect: Effect = "risk_difference"
    min_ratio: Number = field(default=Fraction(3, 2), metadata=_RATIO)
    holdout: Number = field(default=Fraction(1, 2), metadata=_SHARE)
    seed: int = field(default=0, metadata=_WHOLE)
    min_on: int = field(default=8, metadata=_COUNT)
    min_off: int = field(default=8, metadata=_COUNT)
    min_on_total: int = field(default=0, metadata=_WHOLE)
    hold_min_on: int | None = field(default=None, metadata=_COUNT)
    hold_min_off: int | None = field(default=None, metadata=_COUNT)
    prevalence: tuple[Number, Number] | None = None
    scope: Scope = "discovery"
    decoys: int | None = field(default=None, metadata=_COUNT)
    correction: Correction = "none"
    permutations: int = field(default=9999, metadata=_DRAWS)
    splits: int = field(default=50, metadata=_COUNT)
    holdout_axis: HoldoutAxis = "examples"
    holdout_column: str | None = None
    holdout_models: tuple[str, ...] = ()
    judge_settings: Mapping[str, Any] | None = field(default=None, hash=False)
    depth: int = 3
    bars: BarKind = "permutation"
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for f in fields(self):
            if "range" in f.metadata:
                self._check_range(f.name, f.metadata["range"], is_whole=f.type.startswith("int"))
        if self.prevalence is not None:
            low, high = (to_fraction(x, "prevalence") for x in self.prevalence)
            if not 0 <= low <= high <= 1:
                raise PlanError(
                    f"prevalence must be two numbers 0 <= low <= high <= 1, not {low} and {high}"
                )
            object.__setattr__(self, "prevalence", (low, high))
        for name, words in _WORDS.items():
            require_word(name, getattr(self, name), words)
        if (self.holdout_axis == "time") != (self.holdout_column is not None):
            raise PlanError(
                "to hold out the latest examples, name both the axis and the column of times: "
                "holdout_axis='time' and holdout_column"
            )
        object.__setattr__(self, "holdout_models", tuple(self.holdout_models))
        if self.holdout_models and self.holdout_axis != "models":
            raise PlanError("holdout_models names models to hold out: set holdout_axis='models'")
        self._check_judge()
        if self.depth not in range(1, MAX_DEPTH + 1):
            raise PlanError(f"depth must be 1, 2 or {MAX_DEPTH}, not {self.depth!r}")
        if isinstance(self.within, str):
            raise PlanError(f"within is a list of columns, such as ({self.within!r},)")
        object.__setattr__(self, "within", tuple(self.within))

    def _check_range(self, name: str, allowed: _Range, *, is_whole: bool) -> None:
        value = getattr(self, name)
        if value is None:
            return
        if not is_whole:
            # levels become exact fractions: comparisons at the boundary must not depend on rounding
            value = to_fraction(value, name)
            object.__setattr__(self, name, value)
        if value not in allowed:
            shown = f"{value:,}" if is_whole else f"{float(value):g}"
            raise PlanError(f"{name} must be {allowed.describe(value)}, not {shown}")

    def _check_judge(self) -> None:
        if self.judge == AUTO and self.judge_settings:
            raise PlanError("judge_settings need a named judge; set judge, for example max-t")
        if isinstance(self.judge, str):
            return
        if not callable(getattr(self.judge, "screen", None)):
            raise PlanError(
                f"judge must be a name or a judge, which has a method screen, not {self.judge!r}"
            )
        if self.judge_settings:
            raise PlanError("judge_settings are for a judge that is named; this one has its own")

    @property
    def asks_for_holdout(self) -> bool:
        """Return whether a holdout axis or a holdout share other than the default is set."""
        return self.holdout_axis != "examples" or self.holdout != Fraction(1, 2)

    @property
    def judge_name(self) -> str:
        """Return the judge's name."""
        return self.judge if isinstance(self.judge, str) else self.judge.name

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that the seal covers as words and numbers, decimals as strings."""
        plain = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        plain["judge"] = self.judge_name
        if not isinstance(self.judge, str):
            plain["judge_settings"] = _list_settings(self.judge)
        defaults = {f.name: _plain(f.default) for f in fields(self)}
        return {
            name: value
            for name, value in plain.items()
            if name in ALWAYS_SEALED or value not in (defaults[name], {})
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Plan:
        """Return the plan that `settings` describes."""
        values = dict(settings)
        if values.get("prevalence") is not None:
            values["prevalence"] = tuple(values["prevalence"])
        try:
            return cls(**values)
        except TypeError as error:
            raise PlanError(f"not the settings of a plan: {error}") from None

    def seal(self) -> str:
        """Return the SHA-256 of everything decided: equal plans, equal seals."""
        # sorted keys make the text canonical: one plan, one text, one hash
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()

    def rng(self, purpose: str, counter: int = 0) -> np.random.Generator:
        """Return a generator for one purpose; earlier random draws do not change it."""
        return stream(self.seed, purpose, counter)

    def resolve(self, *, lift_ranked: bool, gated: bool) -> Plan:
        """Fill in the settings that depend on the judge, so that the seal covers them."""
        window: tuple[Number, Number] = (
            # a rule that ranks by lift favours rare slices, whose lifts scatter most: the paper's
            # window
            (Fraction(1, 10), Fraction(9, 10)) if lift_ranked else (Fraction(0), Fraction(1))
        )
        least = Fraction(1 if gated else 0, 10)
        return replace(
            self,
            min_lift=least if self.min_lift is None else self.min_lift,
            prevalence=self.prevalence or window,
            hold_min_on=self.hold_min_on or self.min_on,
            hold_min_off=self.hold_min_off or self.min_off,
        )

    def discovery_units(self, evidence: Evidence) -> Bools:
        """Return which units are for discovery: bool, shape (units,). The rest are the holdout.

        A split column decides if there is one. Otherwise the axis decides: the latest units are
        held out, or the seed draws units in the order of their names. So the split depends on
        names, times and seed, not on the order of rows. If models are held out, this method splits
        the examples that the held-out models are judged on.

        Raises
        ------
        InputError
            If the split column holds other words than ``discovery`` and ``holdout``, splits a unit,
            or lacks a part; if groups are held out and there is no group column; if the column of
            times is missing, holds no times, or gives a unit several times.
        """
        if evidence.clusters is not None and (evidence.roles.split or self.holdout_column):
            # copies are split as the example that they are named after
            return self.discovery_units(evidence.without_clusters())[find_cluster_leaders(evidence)]
        if self.holdout_axis == "groups" and evidence.roles.group is None:
            raise InputError(
                "groups cannot be held out without a group column; name the column with group= or "
                "--group"
            )
        if evidence.roles.split is None and self.holdout_column is not None:
            return earlier_units(evidence, self.holdout_column, float(self.holdout))
        if evidence.roles.split is None:
            # a drawn split: units by number in the order of their names, so that rows may come in
            # any order
            count = evidence.unit_count
            holdout_size = int(Fraction(str(self.holdout)) * count) if count > 1 else 0
            if holdout_size == 0 or holdout_size == count:
                raise InputError(
                    f"{count} units cannot be split with a holdout share of {float(self.holdout):g}"
                )
            order = self.rng("split").permutation(count)
            return np.asarray(np.isin(np.arange(count), order[holdout_size:], assume_unique=True))
        return _read_split(evidence, evidence.roles.split)

    def split_models(self, evidence: Evidence) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the models for discovery, and those held out; no model is in both.

        Raises
        ------
        InputError
            If a model to be held out has no results, or there are too few models to hold one out.
        """
        models = evidence.models if evidence.roles.model else ()
        unknown = [name for name in self.holdout_models if name not in models]
        if unknown:
            some = ", ".join(models[:12]) + (", ..." if len(models) > 12 else "")
            raise InputError(
                f"model {unknown[0]!r} cannot be held out: the evidence has no results of this "
                f"model; the models are {some or 'not named: there is no model column'}"
            )
        holdout = set(self.holdout_models)
        if not holdout:
            if len(models) < 2:
                raise InputError(
                    f"models are to be held out, and there are results of {len(models) or 1} only; "
                    "name the model column with model= or --model-column"
                )
            count = max(int(Fraction(str(self.holdout)) * len(models)), 1)
            # a stream of its own, so that drawing models does not move the split of examples
            order = self.rng("holdout models").permutation(len(models))
            holdout = {models[i] for i in order[:count]}
        discovery = tuple(name for name in models if name not in holdout)
        return discovery, tuple(name for name in models if name in holdout)


def _read_split(evidence: Evidence, column: str) -> Bools:
    words = evidence.frame[column].cast(str)
    unknown = sorted(set(words.unique()) - {"discovery", "holdout"})
    if unknown:
        raise InputError(
            f"split column {column!r} holds {unknown[0]!r}; its words must be 'discovery' and "
            "'holdout'"
        )
    index, count = evidence.unit_index, evidence.unit_count
    votes = np.bincount(index, weights=(words == "discovery").to_numpy(), minlength=count)
    size = np.bincount(index, minlength=count)
    divided = np.flatnonzero((votes > 0) & (votes < size))
    if len(divided):
        units = evidence.frame[evidence.roles.group or evidence.roles.id or ""]
        unit = units.filter(index == divided[0])[0]
        raise InputError(
            f"split column {column!r} puts {unit!r} into both parts; all rows of a unit must be in "
            "the same part"
        )
    if votes.sum() in (0, len(words)):
        raise InputError(
            f"split column {column!r} has only one part; both 'discovery' and 'holdout' are needed"
        )
    return votes > 0


def to_fraction(value: Number, name: str = "the number") -> Fraction:
    """Return a number as an exact fraction: 0.1 is 1/10.

    Raises
    ------
    PlanError
        If the value is not a number, or has more than `_MAX_DIGITS` digits before or after the
        point.
    """
    if isinstance(value, Fraction):
        return value
    try:
        # by way of text: Fraction(0.1) would be the binary number next to 1/10
        text = str(value)
        if "/" not in text and abs(Decimal(text).adjusted()) > _MAX_DIGITS:
            raise ValueError
        return Fraction(text)
    except (ArithmeticError, ValueError):
        raise PlanError(f"{name} must be a number of usual size, not {value!r}") from None


def _list_settings(judge: NamedJudge) -> dict[str, object]:
    """Return the dataclass fields of a judge that differ from their defaults, without its name."""
    if not is_dataclass(judge):
        return {}
    settings: dict[str, object] = {}
    for f in fields(judge):
        default = f.default if f.default_factory is MISSING else f.default_factory()
        value = getattr(judge, f.name)
        # defaults stay out, so that a judge may gain settings without changing seals
        if f.init and f.name != "name" and value != default:
            settings[f.name] = _plain(value)
    return settings


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        # "0.1" where that is exact, and "1/3" where no decimal is
        decimal = Decimal(value.numerator) / Decimal(value.denominator)
        return str(decimal.normalize()) if Fraction(decimal) == value else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value
