"""Tables of the study of modes, from its rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groundfault_studies.rule_scores import FIRST
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value

Row = Mapping[str, Any]
Columns = dict[str, tuple[str, Kind]]

HALF, WELL = 0.5, 0.8
"""Jaccard indices from which a cause counts as hinted at, and as named."""
OVER_DRAWS = "Means over draws, with their 95 % interval (Student's t) where draws differ"
_FEW = 20
"""Rows that a mode matches of those not seen, below which its rate there is not compared."""


@dataclass(frozen=True)
class Part:
    """The worlds of one collection of which samples of one size are drawn.

    Attributes
    ----------
    collection : str
    size : int
    causes : mapping of str to str, or None
        By world, its cause in words; None for a control.
    """

    collection: str
    size: int
    causes: Mapping[str, str | None]

    @property
    def count(self) -> int:
        """How many worlds have a cause."""
        return sum(cause is not None for cause in self.causes.values())


@dataclass(frozen=True)
class SizeCell:
    """A method's rows of one size.

    Attributes
    ----------
    draws : tuple of tuple of row
        By draw, a row a model; draws that lack a model are left out.
    """

    draws: tuple[tuple[Row, ...], ...]

    @classmethod
    def of(cls, rows: Sequence[Row], method: str, size: int, models: Sequence[str]) -> SizeCell:
        """The whole draws of a method and size."""
        by_draw: dict[int, list[Row]] = {}
        for row in rows:
            if (row["method"], row["n"]) == (method, size) and row["model"] in models:
                by_draw.setdefault(row["draw"], []).append(row)
        whole = [tuple(by_draw[d]) for d in sorted(by_draw) if len(by_draw[d]) == len(models)]
        return cls(tuple(whole))

    def each(self, number: Callable[[Sequence[Row]], float | None]) -> list[float]:
        """A number of each draw, those that have none left out."""
        numbers = [number(draw) for draw in self.draws]
        return [value for value in numbers if value is not None]


def count_named(where: str, least: float) -> Callable[[Sequence[Row]], float]:
    """How many causes have a rule of at least this Jaccard index.

    Parameters
    ----------
    where : {"top", "first", "all"}
        The first rule, among the first five, or among all.
    least : float
    """
    return lambda draw: sum((row[where] or 0.0) >= least for row in draw)


def show_mean(values: Sequence[float], form: str) -> str | None:
    """Mean over draws, and half the width of its 95 % interval where they differ."""
    if not values:
        return None
    middle = form.format(np.mean(values))
    if len(set(values)) == 1:
        return middle
    from scipy.stats import t

    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return f"{middle} ± {form.format(float(t.ppf(0.975, len(values) - 1)) * error)}"


def _mean(key: str) -> Callable[[Sequence[Row]], float | None]:
    def mean(draw: Sequence[Row]) -> float | None:
        values = [row[key] for row in draw if row[key] is not None]
        return float(np.mean(values)) if values else None

    return mean


def _share(key: str) -> Callable[[Sequence[Row]], float | None]:
    def share(draw: Sequence[Row]) -> float | None:
        total = sum(row["modes"] for row in draw)
        return sum(row[key] for row in draw) / total if total else None

    return share


_COLUMNS: dict[str, tuple[str, Callable[[Sequence[Row]], float | None], str]] = {
    "half": (f"half, first {FIRST}", count_named("first", HALF), "{:z.1f}"),
    "all": ("named, all", count_named("all", WELL), "{:z.1f}"),
    "modes": ("rules a model", _mean("modes"), "{:z.1f}"),
    "marginal": ("false", _share("marginal"), "{:.1%}"),
    "conditional": ("redundant", _share("conditional"), "{:.1%}"),
    "chance": ("by chance", _share("chance"), "{:.1%}"),
    "covered": ("covers", _mean("covered"), "{:.0%}"),
    "inside": ("fails inside", _mean("inside"), "{:.0%}"),
    "seconds": ("CPU s", _mean("seconds"), "{:.2f}"),
}


def make_tables(
    rows: Sequence[Row],
    parts: Sequence[Part],
    methods: Mapping[str, str],
    collections: Mapping[str, str],
) -> list[PaperTable]:
    """Causes named, why others are missed, rates on fresh rows, and all else that rules say.

    Parameters
    ----------
    rows : sequence of row
    parts : sequence of Part
    methods, collections : mapping of str to str
        Names, and what tables call them.
    """
    made = [_named_table(rows, parts, methods, collections)]
    made += [table(rows, parts, collections) for table in (_missed_table, _rate_table)]
    made += [_size_table(rows, part, methods, collections[part.collection]) for part in parts]
    return [table for table in made if table.rows]


def _named_table(
    rows: Sequence[Row],
    parts: Sequence[Part],
    methods: Mapping[str, str],
    collections: Mapping[str, str],
) -> PaperTable:
    """All sizes, collections and methods at a glance."""
    names = dict.fromkeys(part.collection for part in parts)
    columns: Columns = {name: (collections[name], "text") for name in names}
    columns["draws"] = ("draws", "count")
    lines = []
    for size in dict.fromkeys(part.size for part in parts):
        here = {part.collection: part for part in parts if part.size == size}
        counts: dict[str, Value] = {name: str(part.count) for name, part in here.items()}
        lines.append(PaperRow(f"n = {size:,}: causes", counts))
        for method, label in methods.items():
            cells = {
                name: SizeCell.of(rows, method, size, list(part.causes))
                for name, part in here.items()
            }
            line: dict[str, Value] = {name: _count_causes(cell) for name, cell in cells.items()}
            line["draws"] = min(len(cell.draws) for cell in cells.values())
            lines.append(PaperRow(label, line))
    note = (
        f"Causes for which one of the first {FIRST} rules / the very first has a Jaccard index of "
        f"at least {WELL:g} with the cause on all rows. {OVER_DRAWS}: other samples of these rows, "
        "not other causes."
    )
    return PaperTable("Causes named", note, columns, tuple(lines))


def _count_causes(cell: SizeCell) -> str | None:
    shown = [show_mean(cell.each(count_named(w, WELL)), "{:z.1f}") for w in ("first", "top")]
    return " / ".join(one for one in shown if one) or None


def _missed_table(
    rows: Sequence[Row], parts: Sequence[Part], collections: Mapping[str, str]
) -> PaperTable:
    """Cause by cause: how often failure modes name it, and why not."""
    sizes = dict.fromkeys(part.size for part in parts)
    columns: Columns = {"cause": ("cause", "text")}
    columns |= {str(size): (f"n = {size:,}", "text") for size in sizes}
    own = [row for row in rows if row["method"] == "modes" and row["first"] is not None]
    lines, always = [], 0
    for collection in dict.fromkeys(part.collection for part in parts):
        causes = {w: c for p in parts if p.collection == collection for w, c in p.causes.items()}
        here = [row for row in own if row["model"] in causes]
        if here:
            label = f"all {collections[collection]}"
            lines.append(PaperRow(label, {str(s): _show_missed(here, s) for s in sizes}))
        for world, cause in causes.items():
            of_world = [row for row in here if row["model"] == world]
            missed = any("why" in row for row in of_world)
            always += bool(of_world) and not missed
            if missed:
                line: dict[str, Value] = {str(s): _show_missed(of_world, s) for s in sizes}
                lines.append(PaperRow(world, {"cause": cause} | line))
    note = (
        f"In how many samples one of the first {FIRST} failure modes is the cause, and why not in "
        "others. Place: a later mode is the cause; language: no condition and no two conditions "
        "say the cause; choice: a mode is near the cause (a Jaccard index of .2 or more); bar: no "
        f"mode is near. {always} causes that every sample names are left out."
    )
    return PaperTable("Causes that failure modes miss", note, columns, tuple(lines))


def _show_missed(rows: Sequence[Row], size: int) -> str | None:
    own = [row for row in rows if row["n"] == size]
    named = f"{sum('why' not in row for row in own)} of {len(own)}"
    reasons = Counter(row["why"] for row in own if "why" in row).most_common()
    told = ", ".join(f"{why} {count}" for why, count in reasons)
    return (f"{named}: {told}" if told else named) if own else None


def _rate_table(
    rows: Sequence[Row], parts: Sequence[Part], collections: Mapping[str, str]
) -> PaperTable:
    """How often a failure mode's interval covers its rate on rows that the audit did not see."""
    columns: Columns = {
        "modes": ("modes", "count"),
        "covers": ("90 % interval covers", "text"),
        "expected": ("expected minus fresh, points", "text"),
        "inside": ("inside minus fresh, points", "text"),
        "draws": ("draws", "count"),
    }
    lines = []
    for size in dict.fromkeys(part.size for part in parts):
        here = [part for part in parts if part.size == size]
        each = {collections[part.collection]: _compare_rates(rows, [part]) for part in here}
        if len(here) > 1:
            each["all"] = _compare_rates(rows, here)
        for label, draws in each.items():
            if draws:
                means = np.array([np.mean(draw, axis=0) for draw in draws])
                line: dict[str, Value] = {
                    "modes": sum(map(len, draws)),
                    "covers": show_mean(means[:, 0].tolist(), "{:.1%}"),
                    "expected": show_mean((100 * means[:, 1]).tolist(), "{:z.1f}"),
                    "inside": show_mean((100 * means[:, 2]).tolist(), "{:z.1f}"),
                    "draws": len(draws),
                }
                lines.append(PaperRow(f"n = {size:,}: {label}", line))
    note = (
        "The rate that each failure mode expects of new examples, and the rate inside it, minus "
        "the failure rate on the rows that were not seen. Intervals are widened by the noise of "
        f"that rate. Modes that match fewer than {_FEW} of these rows are left out. {OVER_DRAWS}."
    )
    return PaperTable("Rates on rows that were not seen", note, columns, tuple(lines))


def _compare_rates(
    rows: Sequence[Row], parts: Sequence[Part]
) -> list[list[tuple[float, float, float]]]:
    """By draw, each failure mode of some worlds compared with rows that were not seen."""
    models = [world for part in parts for world in part.causes]
    cell = SizeCell.of(rows, "modes", parts[0].size, models)
    draws = [[one for row in draw for one in row.get("rates", ())] for draw in cell.draws]
    compared = [[_compare(*one) for one in draw if one[4] >= _FEW] for draw in draws]
    return [draw for draw in compared if draw]


def _compare(
    inside: float, expected: float, low: float, high: float, rows: int, failures: float
) -> tuple[float, float, float]:
    """Whether the interval covers the fresh rate, and both rates minus that."""
    fresh = failures / rows
    # 1.645 standard errors, as the interval has 90 %; a rate of 0 or 1 has an error, too
    noise = 1.645 * math.sqrt(max(fresh * (1 - fresh), 0.25 / rows) / rows)
    below, above = math.hypot(expected - low, noise), math.hypot(high - expected, noise)
    covers = expected - below <= fresh <= expected + above
    return float(covers), expected - fresh, inside - fresh


def _size_table(
    rows: Sequence[Row], part: Part, methods: Mapping[str, str], label: str
) -> PaperTable:
    """A line a method: what else it says of these worlds."""
    columns: Columns = {key: (heading, "text") for key, (heading, _, _) in _COLUMNS.items()}
    columns["draws"] = ("draws", "count")
    lines = []
    for method, name in methods.items():
        cell = SizeCell.of(rows, method, part.size, list(part.causes))
        here: dict[str, Value] = {
            key: show_mean(cell.each(number), form) for key, (_, number, form) in _COLUMNS.items()
        }
        lines.append(PaperRow(name, here | {"draws": len(cell.draws)}))
    note = (
        f"{part.count} models with a known cause, {len(part.causes) - part.count} without; "
        f"{part.size:,} rows are seen. {OVER_DRAWS}. Half: causes for which one of the first "
        f"{FIRST} rules has a Jaccard index of at least {HALF:g} with the cause; named, all: any "
        f"rule, of at least {WELL:g}. False: share of the rules whose failure rate, on the rows "
        "that were not seen, is not above that of the others by more than .01; redundant: the same "
        "among rows for which the same earlier rule holds, or none; by chance: share that names a "
        "column drawn by chance, where that is known. Covers: share of the unseen failures where "
        "any rule holds; fails inside: the failure rate there. CPU s: of the method, a model."
    )
    title = f"{label[:1].upper()}{label[1:]}, n = {part.size:,}"
    return PaperTable(title, note, columns, tuple(lines))
