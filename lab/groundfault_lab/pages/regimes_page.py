"""Depth profiles, and gaps between a grader and execution, as pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from groundfault.render import words
from groundfault.render.page import Number, Page, Section, Words, make_table, tabulate

if TYPE_CHECKING:
    import polars as pl

    from groundfault_lab.taxonomy.use.regimes import Gap

_ENDS = ("", "_low", "_high")
_GAP = (
    "Gap: the grader's rate minus execution's; above 0 the grader sees successes that never ran, "
    "below 0 it misses some; they disagree where its interval excludes 0. {level} intervals, one "
    "cell at a time: Wilson's of rates, Newcombe's paired one of gaps. p: McNemar's exact test; "
    "Holm: adjusted over the cells. Traces are taken to be independent."
)


def make_depth_page(profile: pl.DataFrame, depth: str, title: str, level: float) -> Page:
    """Make the page of a depth profile: models in rows, depths in columns.

    Parameters
    ----------
    profile : polars.DataFrame
        From `groundfault_lab.taxonomy.use.regimes.depth_profile`.
    depth : str
        What the depth is, such as turns.
    title : str
    level : float
        Coverage of the intervals in the profile.
    """
    values = profile["depth"].unique().sort().to_list()
    models = profile["model"].unique().sort().to_list()
    cells = {
        (row["model"], row["depth"]): f"{words.rate(row['rate'])} "
        f"[{words.rate(row['low'])}, {words.rate(row['high'])}]"
        for row in profile.iter_rows(named=True)
    }
    rows = [(model, *(cells.get((model, v), words.NONE) for v in values)) for model in models]
    heads = ("Model", *(f"{depth} {value}" for value in values))
    # most readers would take intervals that do not overlap for a test between depths
    note = (
        f"Share failed, with Wilson's {words.level(level)} intervals, one cell at a time. The same "
        "examples at several depths make cells depend on each other: intervals that overlap are "
        "no test."
    )
    few, many = (words.count(int(end)) for end in profile["examples"].sort().to_numpy()[[0, -1]])
    facts = (("Examples of a model at a depth", few if few == many else f"{few} to {many}"),)
    verdict = f"Failure rates of {words.plural(len(models), 'model')} by {depth}"
    table = make_table("Share failed", "t" + "n" * len(values), heads, rows, note)
    return Page("depth", title, verdict, facts=facts, sections=(Section.of(table),))


def make_gap_page(gaps: Sequence[Gap], by: Sequence[str], title: str, level: float) -> Page:
    """Make the page of `groundfault_lab.taxonomy.use.regimes.grader_gaps`.

    Parameters
    ----------
    gaps : sequence of Gap
    by : sequence of str
        The columns that make the cells.
    title : str
    level : float
        Coverage of the intervals.
    """
    faults = sum(gap.at_fault for gap in gaps)
    verdict = f"The grader and execution disagree in {faults} of {words.plural(len(gaps), 'cell')}"
    verdict += ": there the grader is at fault, not the model" if faults else ""
    counts = tabulate(
        "Which of them says that it succeeded",
        gaps,
        *_name_cells(by),
        Number("Both", lambda gap: gap.both),
        Number("Grader only", lambda gap: gap.grader_only),
        Number("Execution only", lambda gap: gap.execution_only),
        Number("Neither", lambda gap: gap.neither),
    )
    rates = tabulate(
        "The gap",
        gaps,
        *_name_cells(by),
        Number("Grader", lambda gap: _format_rate(gap.grader_rate)),
        Number("Execution", lambda gap: _format_rate(gap.execution_rate)),
        Number(
            "Gap",
            lambda gap: (
                f"{words.signed(gap.gap)} [{words.signed(gap.low)}, {words.signed(gap.high)}]"
            ),
        ),
        Number("p", lambda gap: words.p_value(gap.p)),
        Number("Holm", lambda gap: words.p_value(gap.adjusted)),
        note=_GAP.format(level=words.level(level)),
    )
    traces = sum(g.both + g.grader_only + g.execution_only + g.neither for g in gaps)
    return Page(
        "gaps",
        title,
        verdict,
        facts=(("Traces", words.count(traces)),),
        sections=(Section("A grader beside execution", counts, rates),),
        good=faults > 0,
    )


def _name_cells(by: Sequence[str]) -> list[Words[Gap]]:
    """Return the columns that name a cell; without any there is one cell of all traces."""

    def name_cell(head: str, place: int) -> Words[Gap]:
        return Words(head, lambda gap: gap.cell[place])

    if not by:
        return [Words("", lambda _: "all traces")]
    return [name_cell(head, place) for place, head in enumerate(by)]


def _format_rate(ends: tuple[float, float, float]) -> str:
    rate, low, high = map(words.rate, ends)
    return f"{rate} [{low}, {high}]"


def make_gap_table(gaps: Sequence[Gap], by: Sequence[str]) -> pl.DataFrame:
    """Make a data frame with a row for each cell: its names, and every number of the gap."""
    import polars as pl

    rows = []
    for gap in gaps:
        row = asdict(gap) | {"at_fault": gap.at_fault}
        # the columns are called as in 0.1.0, so that files of both releases can be joined
        row["judge_only"] = row.pop("grader_only")
        ends = {"judged": row.pop("grader_rate"), "executed": row.pop("execution_rate")}
        ends["gap"] = (row.pop("gap"), row.pop("low"), row.pop("high"))
        numbers = {
            f"{what}{end}": x for what, of in ends.items() for end, x in zip(_ENDS, of, strict=True)
        }
        rows.append(dict(zip(by, row.pop("cell"), strict=True)) | numbers | row)
    return pl.DataFrame(rows)
