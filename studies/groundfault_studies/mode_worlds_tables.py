"""Tables of the study of simulated worlds, from its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from groundfault_studies.cause_tables import HALF, WELL
from groundfault_studies.rule_scores import AS_GOOD_AS_NONE, FIRST
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value
from groundfault_studies.validity import upper

Row = Mapping[str, Any]
Columns = dict[str, tuple[str, Kind]]


def make_tables(
    rows: Sequence[Row], cells: Mapping[str, str], methods: Mapping[str, str]
) -> tuple[PaperTable, ...]:
    """Nulls, single modes, planted modes, and power by descriptors.

    Parameters
    ----------
    rows : sequence of row
    cells : mapping of str to str
        Kind of each cell: null, one, planted or descriptor.
    methods : mapping of str to str
        Names, and what tables call them.
    """
    by_key: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_key.setdefault((row["cell"], row["method"]), []).append(row)

    makers = {
        "null": _null_table,
        "one": _single_table,
        "planted": _planted_table,
        "descriptor": _descriptor_table,
    }
    tables = []
    for kind, make in makers.items():
        names = [name for name, of in cells.items() if of == kind]
        present = {m: label for m, label in methods.items() if any((c, m) in by_key for c in names)}
        tables.append(make(by_key, names, present))
    return tuple(tables)


Rows = Mapping[tuple[str, str], Sequence[Row]]


def count_any(rows: Sequence[Row], key: str) -> str | None:
    """In which share of the worlds a count is above 0, with its upper 99 % bound."""
    if not rows:
        return None
    count = sum(row[key] > 0 for row in rows)
    return f"{count / len(rows):.1%} (≤ {upper(count, len(rows)):.1%})"


def _null_table(by_key: Rows, cells: Sequence[str], methods: Mapping[str, str]) -> PaperTable:
    columns: Columns = {method: (label, "text") for method, label in methods.items()}
    columns["worlds"] = ("worlds", "count")
    lines = []
    for cell in cells:
        here: dict[str, Value] = {
            method: count_any(by_key.get((cell, method), ()), "modes") for method in methods
        }
        here["worlds"] = max((len(by_key.get((cell, method), ())) for method in methods), default=0)
        lines.append(PaperRow(cell, here))
    note = (
        "Nothing has anything to do with failures: share of the worlds in which any rule is named, "
        "and the upper 99 % bound of its chance (Clopper and Pearson). The level is 10 %, for "
        "modes and for findings each. Worlds: of failure modes; other methods have a fifth."
    )
    return PaperTable("Nothing to name", note, columns, tuple(lines))


def _single_table(by_key: Rows, cells: Sequence[str], methods: Mapping[str, str]) -> PaperTable:
    columns: Columns = {
        "false": ("any false", "text"),
        "redundant": ("any redundant", "text"),
        "named": ("named", "rate"),
        "modes": ("rules", "size"),
        "worlds": ("worlds", "count"),
    }
    lines = []
    for cell in cells:
        for method, label in methods.items():
            rows = by_key.get((cell, method), ())
            here: dict[str, Value] = {"worlds": len(rows)}
            if rows:
                here |= {
                    "false": count_any(rows, "marginal"),
                    "redundant": count_any(rows, "conditional"),
                    "named": _share(rows, "first", WELL),
                    "modes": float(np.mean([row["modes"] for row in rows])),
                }
            lines.append(PaperRow(f"{cell}: {label}", here))
    note = (
        "One rule is planted, and nothing else has anything to do with failures; other columns "
        "follow those that it names. Any redundant: share of the worlds in which a rule is named "
        "that says nothing beyond those before it (by the true chances of failure, at most "
        f"{AS_GOOD_AS_NONE:g} more); any false: that says nothing by itself; with upper 99 % "
        f"bounds. Named: share in which one of the first {FIRST} rules has a Jaccard index of at "
        f"least {WELL:g} with what is planted. The level is 10 %, for a list; judges of single "
        "findings do not promise the second claim."
    )
    return PaperTable("One mode, and columns that follow it", note, columns, tuple(lines))


def _planted_table(by_key: Rows, cells: Sequence[str], methods: Mapping[str, str]) -> PaperTable:
    measures: dict[str, tuple[str, Kind, Callable[[Sequence[Row]], float | None]]] = {
        "first": (f"named, first {FIRST}", "rate", lambda rows: _share(rows, "first", WELL)),
        "all": ("named, all", "rate", lambda rows: _share(rows, "all", WELL)),
        "half": ("half, all", "rate", lambda rows: _share(rows, "all", HALF)),
        "modes": ("rules", "size", lambda rows: float(np.mean([r["modes"] for r in rows]))),
        "marginal": ("false", "rate", lambda rows: _part(rows, "marginal")),
        "conditional": ("redundant", "rate", lambda rows: _part(rows, "conditional")),
        "covered": ("covers", "rate", lambda rows: _mean(rows, "covered")),
        "inside": ("fails inside", "rate", lambda rows: _mean(rows, "inside")),
    }
    columns: Columns = {key: (heading, kind) for key, (heading, kind, _) in measures.items()}
    columns["worlds"] = ("worlds", "count")
    lines = []
    for cell in cells:
        for method, label in methods.items():
            rows = by_key.get((cell, method), ())
            here: dict[str, Value] = {"worlds": len(rows)}
            if rows:
                here |= {key: measure(rows) for key, (_, _, measure) in measures.items()}
            lines.append(PaperRow(f"{cell}: {label}", here))
    note = (
        "Tasks fail at rates of their own; planted rules of one to three conditions, of some "
        "values, or of some words hold for 3 to 12 % of the prompts and fail in 80 to 95 % of "
        f"cases. Named: share of them with a rule of Jaccard index {WELL:g} or more; half: "
        f"{HALF:g} or more. False, redundant: of the rules that are named. Rules are scored on "
        "4,000 prompts by their true chances of failure. The oracle knows the planted rules and "
        "tests them alone."
    )
    return PaperTable("Planted modes", note, columns, tuple(lines))


def _descriptor_table(by_key: Rows, cells: Sequence[str], methods: Mapping[str, str]) -> PaperTable:
    columns: Columns = {method: (label, "text") for method, label in methods.items()}
    columns["worlds"] = ("worlds", "count")
    lines = []
    for cell in cells:
        here: dict[str, Value] = {}
        for method in methods:
            rows = by_key.get((cell, method), ())
            if rows:
                wrong = sum(row["marginal"] > 0 for row in rows) / len(rows)
                itself, named = (_share(rows, key, WELL) for key in ("all", "beside"))
                alone = f" ({itself:.2f})" if itself < named else ""
                here[method] = f"{named:.2f}{alone} / {wrong:.2f}"
        here["worlds"] = max((len(by_key.get((cell, method), ())) for method in methods), default=0)
        lines.append(PaperRow(cell, here))
    note = (
        "34 descriptors: one is planted, five follow it (latent correlation .8), 28 are unrelated; "
        "36 % fail. Share of the worlds in which the planted one is named (a rule with a Jaccard "
        f"index of at least {WELL:g}; a failure mode, or what it lists as an alternative; in "
        "brackets the mode itself), then in which anything is named that says nothing by itself."
    )
    return PaperTable("Power by descriptors", note, columns, tuple(lines))


def _share(rows: Sequence[Row], key: str, least: float) -> float:
    """Share of the planted rules that are named."""
    overlaps = [overlap for row in rows for overlap in row[key]]
    return float(np.mean(np.array(overlaps) >= least)) if overlaps else 0.0


def _part(rows: Sequence[Row], key: str) -> float | None:
    total = sum(row["modes"] for row in rows)
    return sum(row[key] for row in rows) / total if total else None


def _mean(rows: Sequence[Row], key: str) -> float | None:
    values = [row[key] for row in rows if row[key] is not None]
    return float(np.mean(values)) if values else None
