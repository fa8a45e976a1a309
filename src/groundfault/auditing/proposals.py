"""Proposing: the slices that a finder sees on the discovery units, before anything is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.auditing.prepared import PreparedAudit, start_audit
from groundfault.core.candidate import Library
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.errors import PlanError

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Proposal:
    """A slice, and what it comes to on the units it was proposed from.

    Attributes
    ----------
    name, rule, meaning : str
    on, off : int
        Discovery units on and off the slice.
    on_rate, off_rate, lift : float or None
        Mean losses of these units, over all models, and their difference. Where the finder looked
        at outcomes they were selected for being large, and are too large on average.
    score : float or None
        The finder's own, where it has one.
    group : int or None
        Slices of one group are parts of each other, where the finder says so.
    p : float or None
        How often the whole search, among errors dealt at random, finds a score as good; where the
        finder can tell.
    """

    name: str
    rule: str
    meaning: str
    on: int
    off: int
    on_rate: float | None
    off_rate: float | None
    lift: float | None
    score: float | None = None
    group: int | None = None
    p: float | None = None


@dataclass(frozen=True)
class Proposals:
    """What a finder proposes. Nothing of it is confirmed: no held-out outcome was read, and nothing
    recorded.

    Attributes
    ----------
    rows : tuple of Proposal
        In the finder's order.
    library : Library
        The same as candidates, to freeze and judge: ``groundfault audit --library``.
    summary : dict
        The finder and its settings, sizes, the discovery error rate, whether the numbers are
        selected, and columns that were left out because they tell the outcome.
    """

    rows: tuple[Proposal, ...]
    library: Library
    summary: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain words and numbers."""
        return {**self.summary, "slices": [asdict(row) for row in self.rows]}


def propose(
    evidence: Evidence, finder: Any = "sliceline", plan: Plan | None = None, most: int | None = None
) -> Proposals:
    """Let one finder propose slices of the discovery units, and say what each comes to there.

    Parameters
    ----------
    evidence : Evidence
    finder : finder or str
    plan : Plan, optional
        Of which the split counts: an audit of the same evidence has to split alike, and refuses
        otherwise.
    most : int, optional
        Keep the first so many.

    Raises
    ------
    InputError
        If there is nothing to explain, or the finder cannot use the columns.
    PlanError
        If the finder is unknown, or its settings cannot be.

    Examples
    --------
    >>> import groundfault, polars
    >>> table = polars.DataFrame({"lang": ["de", "en"] * 50, "error": [1, 0, 0, 0] * 25})
    >>> evidence = groundfault.Evidence.from_table(table, outcome="error")
    >>> [row.name for row in groundfault.propose(evidence).rows]
    ['lang = de']
    """
    case = start_audit(evidence, plan)
    made = _made(finder)
    library = Library.of(case.propose([made])[:most])
    told = _told(made, case)
    losses = _mean_losses(case)
    marks = replace(case, library=library).marks.take(np.flatnonzero(case.discovery_mask))
    margins = Units.of(marks, losses[None]).tables
    rates = zip(*map(_numbers, (margins.on_rate, margins.off_rate, margins.lift)), strict=True)
    rows = tuple(
        Proposal(
            c.name, c.rule, c.meaning, on, off, on_rate, off_rate, lift, **told.get(c.rule, {})
        )
        for c, on, off, (on_rate, off_rate, lift) in zip(
            library, margins.on.tolist(), margins.off.tolist(), rates, strict=True
        )
    )
    return Proposals(rows, library, _summary(made, case, library, float(np.nanmean(losses))))


def configured(name: str, settings: dict[str, Any]) -> Any:
    """The finder of a name with other settings than its defaults.

    Raises
    ------
    PlanError
        If there is no such finder or setting, or a setting cannot be.
    """
    from groundfault.finders import get

    maker: Callable[..., Any] = get(name)
    known = (
        [f.name for f in fields(maker) if f.init and f.name != "name"]
        if is_dataclass(maker)
        else list(settings)
    )
    for setting in settings:
        if setting not in known and setting not in getattr(maker, "__renamed_fields__", {}):
            raise PlanError(
                f"the finder {name!r} has no setting {setting!r}; it has {', '.join(known) or 'none'}"
            )
    try:
        return maker(**settings)
    except TypeError as error:
        raise PlanError(
            f"the finder {name!r} cannot be made with these settings: {error}"
        ) from None


def _made(finder: Any) -> Any:
    return configured(finder, {}) if isinstance(finder, str) else finder


def _told(finder: Any, case: PreparedAudit) -> dict[str, dict[str, Any]]:
    """Score, group and p by rule, of a finder that tells them."""
    if not hasattr(finder, "find"):
        return {}
    return {
        s.rule: {"score": s.score, "group": s.group, "p": s.p}
        for s in finder.find(case.visible_evidence)
    }


def _mean_losses(case: PreparedAudit) -> NDArray[np.float64]:
    """Mean loss of each discovery unit over all outcomes, NaN where none was scored; no held-out
    loss is read.
    """
    losses = case.losses(case.evidence.take(case.discovery_mask[case.evidence.unit_index]))
    scored = ~np.isnan(losses)
    count = scored.sum(axis=0)
    return np.asarray(np.where(scored, losses, 0.0).sum(axis=0) / np.where(count, count, np.nan))


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _summary(finder: Any, case: PreparedAudit, library: Library, rate: float) -> dict[str, Any]:
    seen = int(case.discovery_mask.sum())
    # stored under the names of the first release, so that files of all releases compare
    stored = {new: old for old, new in getattr(finder, "__renamed_fields__", {}).items()}
    settings = (
        {stored.get(f.name, f.name): getattr(finder, f.name) for f in fields(finder) if f.init}
        if is_dataclass(finder)
        else {}
    )
    return {
        "schema_version": SCHEMA_VERSION,
        "finder": finder.name,
        "settings": {name: value for name, value in settings.items() if _is_plain(value)},
        "selected": bool(getattr(finder, "uses_outcomes", False)),
        "n": case.evidence.unit_count,
        "n_discovery": seen,
        "n_holdout": case.evidence.unit_count - seen,
        "discovery_error_rate": rate,
        "left_out": sorted(case.leaks),
        "seed": case.plan.seed,
        "library": library.hash,
    }


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | tuple)
