"""Tables and the chart of the study of known holes, from its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groundfault_studies.rule_scores import FIRST
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value

Row = Mapping[str, Any]
Columns = dict[str, tuple[str, Kind]]

HALF, WELL = 0.5, 0.8
"""Jaccard indices from which a hole counts as hinted at, and as named."""
_DETAIL = 2000


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
    """How many holes have a rule of at least this Jaccard index.

    Parameters
    ----------
    where : {"top", "first", "all"}
        The first rule, among the first five, or among all.
    least : float
    """
    # rows that an earlier version stored know neither the first rule nor chance
    return lambda draw: sum((row.get(where) or 0.0) >= least for row in draw)


def _mean(key: str) -> Callable[[Sequence[Row]], float | None]:
    def mean(draw: Sequence[Row]) -> float | None:
        values = [row[key] for row in draw if row[key] is not None]
        return float(np.mean(values)) if values else None

    return mean


def _share(key: str) -> Callable[[Sequence[Row]], float | None]:
    def share(draw: Sequence[Row]) -> float | None:
        total = sum(row["modes"] for row in draw)
        return sum(row.get(key, 0) for row in draw) / total if total else None

    return share


_COLUMNS: dict[str, tuple[str, Callable[[Sequence[Row]], float | None], str]] = {
    "first": (f"named, first {FIRST}", count_named("first", WELL), "{:g}"),
    "top": ("named first", count_named("top", WELL), "{:g}"),
    "all": ("named, all", count_named("all", WELL), "{:g}"),
    "half": (f"half, first {FIRST}", count_named("first", HALF), "{:g}"),
    "all_half": ("half, all", count_named("all", HALF), "{:g}"),
    "modes": ("rules a model", _mean("modes"), "{:.1f}"),
    "marginal": ("false", _share("marginal"), "{:.1%}"),
    "conditional": ("redundant", _share("conditional"), "{:.1%}"),
    "chance": ("by chance", _share("chance"), "{:.1%}"),
    "covered": ("covers", _mean("covered"), "{:.0%}"),
    "inside": ("fails inside", _mean("inside"), "{:.0%}"),
    "seconds": ("CPU s", _mean("seconds"), "{:.2f}"),
}


def make_tables(
    rows: Sequence[Row],
    holes: Mapping[str, str],
    models: Sequence[str],
    methods: Mapping[str, str],
    sizes: Sequence[int],
) -> tuple[PaperTable, ...]:
    """One table a size, then one of each hole, and one of what was said of each model."""
    detail = _DETAIL if _DETAIL in sizes else max(sizes)
    return (
        *(
            make_size_table(rows, len(holes), models, methods, size, f"n = {size:,}")
            for size in sizes
        ),
        _hole_table(rows, holes, methods, detail),
        _word_table(rows, models, next(iter(methods.items())), detail),
    )


def make_size_table(
    rows: Sequence[Row],
    holes: int,
    models: Sequence[str],
    methods: Mapping[str, str],
    size: int,
    title: str,
) -> PaperTable:
    """A line a method: what it names of these models' causes, and what else it says."""
    columns: Columns = {key: (heading, "text") for key, (heading, _, _) in _COLUMNS.items()}
    lines = []
    for method, label in methods.items():
        cell = SizeCell.of(rows, method, size, models)
        here: dict[str, Value] = {
            key: _spread(cell.each(number), form) for key, (_, number, form) in _COLUMNS.items()
        }
        lines.append(PaperRow(label, here | {"draws": len(cell.draws)}))
    note = (
        f"{holes} models with a known cause, {len(models) - holes} without; {size:,} rows are "
        f"seen. Medians over draws, with the range. Named: causes for which one of the first "
        f"{FIRST} rules, the very first, or any, has a Jaccard index of at least {WELL:g} with it "
        f"on all rows; half: of at least {HALF:g}. False: share of the rules whose failure rate, "
        "on the rows that were not seen, is not above that of the others by more than .01; "
        "redundant: the same among rows for which the same earlier rule holds, or none; by chance: "
        "share that names a column drawn by chance, where that is known. Covers: share of the "
        "unseen failures where any rule holds; fails inside: the failure rate there. CPU s: of the "
        "method, a model."
    )
    columns["draws"] = ("draws", "count")
    return PaperTable(title, note, columns, tuple(lines))


def _spread(values: Sequence[float], form: str) -> str | None:
    """Median and range."""
    if not values:
        return None
    middle, low, high = (form.format(f(values)) for f in (np.median, np.min, np.max))
    return middle if low == high else f"{middle} ({low}–{high})"


def _hole_table(
    rows: Sequence[Row], holes: Mapping[str, str], methods: Mapping[str, str], size: int
) -> PaperTable:
    columns: Columns = {"rule": ("never saw", "text")}
    columns |= {method: (label, "text") for method, label in methods.items()}
    lines = []
    for model, rule in holes.items():
        here: dict[str, Value] = {"rule": rule}
        for method in methods:
            of_model = [
                r for r in rows if (r["method"], r["model"], r["n"]) == (method, model, size)
            ]
            named = sum(row["first"] >= WELL for row in of_model)
            here[method] = f"{named}/{len(of_model)}" if of_model else None
        lines.append(PaperRow(model, here))
    note = (
        f"In how many of the draws of {size:,} prompts the hole is named among the first {FIRST} "
        "rules."
    )
    return PaperTable(f"Hole by hole, n = {size:,}", note, columns, tuple(lines))


def _word_table(
    rows: Sequence[Row], models: Sequence[str], named: tuple[str, str], size: int
) -> PaperTable:
    method, label = named
    columns: Columns = {str(i): (f"rule {i}", "text") for i in range(1, FIRST + 1)}
    lines = []
    for model in models:
        first = next(
            (r for r in rows if (r["method"], r["model"], r["n"]) == (method, model, size)), None
        )
        rules = [] if first is None else first["rules"][:FIRST]
        lines.append(PaperRow(model, {str(i): rule for i, rule in enumerate(rules, 1)}))
    note = f"The first {FIRST} rules of {label} on the first draw of {size:,} prompts."
    return PaperTable(f"What {label} say, n = {size:,}", note, columns, tuple(lines))


def draw_figures(
    rows: Sequence[Row], models: Sequence[str], methods: Mapping[str, str], sizes: Sequence[int]
) -> dict[str, str]:
    """Holes named against the size of the sample; none before two sizes have a whole draw."""
    from groundfault_studies.charts import lines

    series, bars = {}, {}
    for method, label in methods.items():
        counts = {
            size: SizeCell.of(rows, method, size, models).each(count_named("first", WELL))
            for size in sizes
        }
        counts = {size: values for size, values in counts.items() if values}
        series[label] = [(size, float(np.median(values))) for size, values in counts.items()]
        bars[label] = [(size, min(values), max(values)) for size, values in counts.items()]
    if len({size for points in series.values() for size, _ in points}) < 2:
        return {}
    words = ("prompts seen", f"holes named among the first {FIRST} rules")
    return {"named": lines(series, *words, percent=False, bars=bars, log=True)}
