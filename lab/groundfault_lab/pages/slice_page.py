"""The page of slices that a finder proposes."""

from __future__ import annotations

from collections.abc import Iterator

from groundfault.render import words
from groundfault.render.page import Content, Number, Page, Words, small, tabulate
from groundfault_lab.slicing.proposals import Proposals
from groundfault_lab.slicing.replays import LEVEL


def make_slice_page(proposals: Proposals, library: str | None = None) -> Page:
    """Make the page of slices that a finder proposes; ``library`` is the file that holds them."""
    summary, star = proposals.summary, "*" if proposals.summary.selected else ""
    verdict = f"{words.plural(len(proposals.rows), 'slice')} proposed by {summary.finder}"
    lead: list[Content] = [
        f"{words.count(summary.n_discovery)} of {words.count(summary.n)} units were searched, with "
        f"failure rate {words.rate(summary.discovery_error_rate)}; the others are held out."
    ]
    if proposals.rows:
        # beside the numbers, not below them: who stops reading early has read it
        lead.append(f"{words.capital(proposals.chance)}.")
        table = tabulate(
            verdict,
            proposals.rows,
            Words("Slice", lambda row: row.name),
            Number("units", lambda row: row.on),
            Number(f"on{star}", lambda row: words.rate(row.on_rate)),
            Number(f"off{star}", lambda row: words.rate(row.off_rate)),
            Number(f"points{star}", lambda row: words.points(row.lift)),
            Number(f"score{star}", lambda row: None if row.score is None else f"{row.score:.2f}"),
            Number("group", lambda row: None if row.group is None else str(row.group)),
            Number("p", lambda row: words.p_value(row.p) + " chance" * ((row.p or 0) > LEVEL)),
            drop=True,
        )
        lead.append(table)
    lead += map(small, _list_slice_notes(proposals, library))
    return Page("slices", "", verdict, lead=lead)


def _list_slice_notes(proposals: Proposals, library: str | None) -> Iterator[str]:
    """Yield sentences on the meaning of the numbers, and the next step."""
    if proposals.summary.left_out:
        yield (
            "Left out, because they predict the outcome almost perfectly: "
            f"{words.listing(proposals.summary.left_out, 6)} (--allow-leakage uses them)."
        )
    if not proposals.rows:
        yield "Nothing to propose: no slice of these units stands out to this finder."
        return
    if not proposals.summary.selected:
        yield "Nothing is confirmed: these are proposals."
    else:
        yield (
            "* selected: computed on the units that were searched, so too large on average. "
            "Nothing is confirmed."
        )
    if any(row.p is not None for row in proposals.rows):
        yield (
            "p: how often the same search finds as good a slice on permuted outcomes; "
            f"chance: p above {LEVEL:g}."
        )
    yield (
        "To judge them on the held-out units: groundfault audit --library, with "
        f"{library or 'a library (--library FILE)'} and the same seed."
    )
