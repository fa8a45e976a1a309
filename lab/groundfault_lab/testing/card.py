"""Calibration cards: a judge's errors and power in known worlds, beside its promise."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

import msgspec

from groundfault.base.reading import decode_json
from groundfault.core.judge import Judge
from groundfault.core.plan import Plan, to_fraction
from groundfault.errors import InputError
from groundfault.judges.rule import bounded_rate
from groundfault.stats.intervals import clopper_pearson

Rate = Literal["family-wise", "false discovery", "global null", "none"]

MILLION = 1_000_000  # shares are stored in parts per million, as whole numbers


class Promise(msgspec.Struct, frozen=True):
    """What a judge promises of false confirmations.

    Attributes
    ----------
    rate : {"family-wise", "false discovery", "global null", "none"}
        Which rate is kept at the level: P(any false confirmation), the expected share of
        confirmations that are false, P(any confirmation) where nothing at all is related to the
        losses, or none.
    level : float
    survivors : float, optional
        Most P(any survivor of the screen) where nothing is related to the losses.
    """

    rate: Rate
    level: float
    survivors: float | None = None

    @classmethod
    def of(cls, judge: Judge, plan: Plan, level: float | None = None) -> Promise:
        """Return the rate that a judge says it bounds, or the family-wise one, at ``level``.

        Where ``level`` is None, that is the plan's q for false discoveries, and else its alpha.

        ``janus-a`` promises nothing, but with the exact floor its screen was found to let anything
        pass in 6-12 % of null audits at q = 0.10, and is held to that."""
        q, alpha = float(to_fraction(plan.q)), float(to_fraction(plan.alpha))
        if level is not None:
            return cls("family-wise" if level < 1 else "none", level)
        if judge.name == "janus-a" and plan.decoys is None:
            # measured in the null worlds of the card, with room for Monte Carlo error
            return cls("global null", q, survivors=1.3 * q)
        bounds = bounded_rate(judge) or "family-wise"
        return cls(bounds, {"none": 1.0, "false discovery": q, "family-wise": alpha}[bounds])

    def __str__(self) -> str:
        words = {
            "family-wise": "P(any false confirmation) is at most {}",
            "false discovery": "the expected share of confirmations that are false is at most {}",
            "global null": "none in general; where nothing is related, P(any confirmation) is at "
            "most {}",
            "none": "none",
        }[self.rate]
        most = "" if self.survivors is None else f", and P(any survivor) at most {self.survivors:g}"
        return words.format(f"{self.level:g}") + most


class CardRow(msgspec.Struct, frozen=True):
    """What came of all replicates of one world.

    Attributes
    ----------
    world : str
    units, candidates : int
        Size of the data a judge gets.
    null : bool
        Whether nothing is related to the losses.
    least_power : float
        What is asked of ``power``.
    replicates : int
    survived : int
        Replicates in which anything survived the screen.
    erred : int
        Replicates in which an unrelated candidate was confirmed.
    false_share : int
        Sum over replicates of the share of confirmations that were false, in millionths: whole, so
        that sums do not depend on their order.
    found : int
        Planted candidates confirmed, over all replicates and outcomes.
    planted : int
        Planted candidates there were.
    """

    world: str
    units: int
    candidates: int
    null: bool
    least_power: float
    replicates: int = 0
    survived: int = 0
    erred: int = 0
    false_share: int = 0
    found: int = 0
    planted: int = 0

    def __add__(self, other: CardRow) -> CardRow:
        counts = ("replicates", "survived", "erred", "false_share", "found", "planted")
        sums = {name: getattr(self, name) + getattr(other, name) for name in counts}
        return msgspec.structs.replace(self, **sums)

    @property
    def key(self) -> tuple[str, int, int]:
        """Return world, units and candidates: unique in a card."""
        return self.world, self.units, self.candidates

    def error(self, rate: Rate) -> float:
        """Return the measured rate of false confirmations."""
        total = self.false_share / MILLION if rate == "false discovery" else self.erred
        return total / self.replicates

    @property
    def survival(self) -> float:
        """Return share of replicates in which anything survived the screen."""
        return self.survived / self.replicates

    @property
    def power(self) -> float | None:
        """Return share of planted candidates that were confirmed; None where there are none."""
        return self.found / self.planted if self.planted else None

    def bound(self, promise: Promise) -> float | None:
        """Return the largest allowed rate of false confirmations; None without a promise."""
        applies = self.null or promise.rate in ("family-wise", "false discovery")
        if promise.level >= 1 or not applies:
            return None
        return promise.level + margin(promise.level, self.replicates)

    def failures(self, promise: Promise) -> list[str]:
        """Say what is worse than promised by more than three Monte Carlo standard errors."""
        out = []
        error, power, bound = self.error(promise.rate), self.power, self.bound(promise)
        if bound is not None and error > bound:
            out.append(f"rate of false confirmations {error:.3f}, at most {bound:.3f} allowed")
        if self.null and promise.survivors is not None:
            most = promise.survivors + margin(promise.survivors, self.replicates)
            if self.survival > most:
                out.append(f"P(any survivor) {self.survival:.3f}, at most {most:.3f} allowed")
        least = self.least_power - margin(self.least_power, self.replicates)
        if power is not None and power < least:
            out.append(f"power {power:.3f}, at least {least:.3f} asked")
        return out


def margin(share: float, replicates: int) -> float:
    """Return three standard errors of a share of replicates."""
    # three, since a card has dozens of rows, and none should fail by chance
    return 3 * math.sqrt(share * (1 - share) / replicates)


def interval(share: float, replicates: int) -> tuple[float, float]:
    """Return the Clopper-Pearson interval at 95 % for a share (doi:10.1093/biomet/26.4.404)."""
    low, high = clopper_pearson(share * replicates, replicates)
    return float(low), float(high)


class Card(msgspec.Struct, frozen=True):
    """A judge's calibration card.

    Attributes
    ----------
    judge : str
    promise : Promise
    plan : dict
        Settings of the plan, resolved for the judge.
    seed : int
    rows : tuple of CardRow
        One a world.
    """

    judge: str
    promise: Promise
    plan: dict[str, Any]
    seed: int
    rows: tuple[CardRow, ...] = ()

    @property
    def failures(self) -> tuple[str, ...]:
        """Return every broken promise in words; empty where all are kept."""
        return tuple(
            f"{row.world} (n = {row.units}, L = {row.candidates}, {row.replicates} replicates): "
            f"{what}"
            for row in self.rows
            for what in row.failures(self.promise)
        )

    @property
    def passed(self) -> bool:
        """Return whether every promise was kept, to three Monte Carlo standard errors."""
        return not self.failures

    def to_json(self) -> str:
        """Return counts, shares, and whether each row passes, as JSON for `from_json`."""
        rows = []
        for row in self.rows:
            error = row.error(self.promise.rate)
            shares = {
                "p_any_survivor": round(row.survival, 6),
                "error": round(error, 6),
                "error_interval": [round(x, 6) for x in interval(error, row.replicates)],
                "power": None if row.power is None else round(row.power, 6),
            }
            passes = {"passes": not row.failures(self.promise)}
            rows.append(msgspec.to_builtins(row) | shares | passes)
        promise = msgspec.to_builtins(self.promise)
        card = {"groundfault_card": 1, "judge": self.judge, "promise": promise, "seed": self.seed}
        card |= {"passed": self.passed, "plan": self.plan, "rows": rows}
        return json.dumps(card, indent=1)

    @classmethod
    def from_json(cls, text: str, *, where: str = "card") -> Card:
        """Read a card, for example to resume it.

        Raises
        ------
        InputError
            If the text is no calibration card.
        """
        try:
            return msgspec.convert(decode_json(text, where), cls)
        except ValueError as error:
            raise InputError(f"{where}: not a groundfault calibration card ({error})") from None

    def to_markdown(self) -> str:
        """Return a heading, the promise, and one table row a world."""
        from groundfault.render.markdown import set_table
        from groundfault.render.page import make_table

        is_share = self.promise.rate == "false discovery"
        error = "false share" if is_share else "P(any false confirmation)"
        heads = (
            *("world", "n", "L", "replicates", "P(any survivor)", error, "95 % interval"),
            *("allowed", "power", "passes"),
        )
        table = make_table("Worlds", "tnnnnnnnnt", heads, map(self._line, self.rows))
        head = (f"# Calibration of `{self.judge}`", f"Promise: {self.promise}.", self._conditions())
        return "\n\n".join([*head, set_table(table, caption=False)]) + "\n"

    def _conditions(self) -> str:
        names = ("q", "alpha", "min_lift", "decoys", "permutations", "splits", "holdout")
        settings = (f"{name} {self.plan[name]}" for name in names if self.plan[name] is not None)
        return (
            f"Simulated with seed {self.seed} under the plan: {', '.join(settings)}. "
            '"Allowed" is the level and three Monte Carlo standard errors. Power is the share of '
            "planted candidates confirmed; where something is planted, their proxies count neither "
            "as found nor as false."
        )

    def _line(self, row: CardRow) -> tuple[str, ...]:
        error = row.error(self.promise.rate)
        low, high = interval(error, row.replicates)
        bound = row.bound(self.promise)
        return (
            row.world,
            str(row.units),
            str(row.candidates),
            str(row.replicates),
            f"{row.survival:.3f}",
            f"{error:.3f}",
            f"{low:.3f}-{high:.3f}",
            "no guarantee" if bound is None else f"{bound:.3f}",
            "" if row.power is None else f"{row.power:.2f}",
            "NO" if row.failures(self.promise) else "yes",
        )
