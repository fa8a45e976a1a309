"""Depth profiles and gaps between a judge and execution, as pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from groundfault.render import words
from groundfault.render.page import Page, Section, Table, TableColumn

if TYPE_CHECKING:
    import polars as pl

    from groundfault.taxonomy.use.regimes import Gap

_ENDS = ("", "_low", "_high")


def depths(profile: pl.DataFrame, depth: str, title: str, level: float) -> Page:
    """The page of a depth profile: models in rows, depths in columns."""
    values = profile["depth"].unique().sort().to_list()
    models = profile["model"].unique().sort().to_list()
    cells = {(row["model"], row["depth"]): row for row in profile.iter_rows(named=True)}
    said = {
        key: f"{words.rate(row['rate'])} [{words.rate(row['low'])}, {words.rate(row['high'])}]"
        for key, row in cells.items()
    }
    rows = tuple(
        (model, *(said.get((model, value), words.NONE) for value in values)) for model in models
    )
    heads = (TableColumn("Model"), *(TableColumn(f"{depth} {value}", "number") for value in values))
    note = (
        f"Share failed, with Wilson's {words.level(level)} intervals, one cell at a time. The same "
        "examples at several depths make cells depend on each other: intervals that overlap are no "
        "test."
    )
    few, many = (words.count(int(end)) for end in profile["examples"].sort().to_numpy()[[0, -1]])
    facts = (("Examples of a model at a depth", few if few == many else f"{few} to {many}"),)
    verdict = f"Failure rates of {words.plural(len(models), 'model')} by {depth}"
    table = Table("Share failed", heads, rows, note)
    return Page("depth", title, verdict, facts, (Section("Share failed", (), (), (table,)),), False)


def gaps(found: Sequence[Gap], by: Sequence[str], title: str, level: float) -> Page:
    """What `groundfault.taxonomy.use.regimes.judge_gaps` gives."""
    faults = sum(gap.at_fault for gap in found)
    verdict = f"The judge and execution disagree in {faults} of {words.plural(len(found), 'cell')}"
    verdict += ": there the instrument is at fault, not the model" if faults else ""
    counts, rates = [], []
    for gap in found:
        cell = gap.cell or ("all traces",)
        counts.append((*cell, *map(words.count, _square(gap))))
        ends = f"{words.signed(gap.gap)} [{words.signed(gap.low)}, {words.signed(gap.high)}]"
        tests = (words.p_value(gap.p), words.p_value(gap.adjusted))
        rates.append((*cell, _share(gap.grader_rate), _share(gap.execution_rate), ends, *tests))
    note = (
        "Gap: judged minus executed; above 0 the judge sees successes that never ran, below 0 it "
        f"misses some; they disagree where its interval excludes 0. {words.level(level)} "
        "intervals, one cell at a time: Wilson's of rates, Newcombe's paired one of gaps. p: "
        "McNemar's exact test; Holm: adjusted over the cells. Traces are taken to be independent."
    )
    names = tuple(TableColumn(name) for name in by) or (TableColumn(""),)
    said = tuple(
        TableColumn(head, "number") for head in ("Both", "Judge only", "Execution only", "Neither")
    )
    heads = tuple(
        TableColumn(head, "number") for head in ("Judged", "Executed", "Gap", "p", "Holm")
    )
    tables = (
        Table("Who says that it succeeded", (*names, *said), tuple(counts)),
        Table("The gap", (*names, *heads), tuple(rates), note),
    )
    facts = (("Traces", words.count(sum(sum(_square(gap)) for gap in found))),)
    return Page(
        "gaps",
        title,
        verdict,
        facts,
        (Section("A judge beside execution", (), (), tables),),
        faults > 0,
    )


def _square(gap: Gap) -> tuple[int, int, int, int]:
    return gap.both, gap.grader_only, gap.execution_only, gap.neither


def _share(ends: tuple[float, float, float]) -> str:
    rate, low, high = map(words.rate, ends)
    return f"{rate} [{low}, {high}]"


def gap_table(found: Sequence[Gap], by: Sequence[str]) -> pl.DataFrame:
    """One row a cell: its names, and every number of the gap."""
    import polars as pl

    rows = []
    for gap in found:
        row = asdict(gap) | {"at_fault": gap.at_fault}
        ends = {"judged": row.pop("judged"), "executed": row.pop("executed")}
        ends["gap"] = (row.pop("gap"), row.pop("low"), row.pop("high"))
        spread = {
            f"{what}{end}": x for what, of in ends.items() for end, x in zip(_ENDS, of, strict=True)
        }
        rows.append(dict(zip(by, row.pop("cell"), strict=True)) | spread | row)
    return pl.DataFrame(rows)
