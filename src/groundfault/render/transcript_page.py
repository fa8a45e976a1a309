"""Runs of agents on a page: how they fail, and which behaviours announce a failure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
from msgspec.structs import replace

from groundfault.auditing.report import Report
from groundfault.core.columns import shorten_value
from groundfault.render import words
from groundfault.render.page import (
    Block,
    Content,
    Name,
    Number,
    Page,
    Section,
    Table,
    Words,
    make_table,
    tabulate,
)
from groundfault.review.notes import CodeCount
from groundfault.review.validation import JudgeValidation, Rate
from groundfault.stats.agreement import Agreement
from groundfault.transcripts.judging import Announcement, Behaviour, TranscriptSearch
from groundfault.transcripts.steps import SIGNS

if TYPE_CHECKING:
    from groundfault.coding import Coding
    from groundfault.review.codebook import CodeSuggestion

_ALIKE = 3
"""Names of behaviours in one row: more say no more."""
_WHOLE = (
    "What a scanner, a code or a description says of whole runs. Like runs have as many turns, and "
    "the error level holds for these lines by themselves."
)
_MAX_STEP = 20_000
"""Characters of a step that a screen shows."""
_ROWS = 12
"""Behaviours on a page: those compared come first, then the most frequent."""


def list_sections(report: Report, most: int = _ROWS) -> tuple[Section | None, ...]:
    """Return the sections about transcripts; an empty list if the evidence has no transcripts.

    Parameters
    ----------
    report : Report
    most : int
        Rows of each table.
    """
    search = report.transcripts
    if search is None:
        return ()
    has_steps = not all(one.whole for one in report.behaviours)
    return (
        Section(
            "How it fails",
            _explain(search, has_steps=has_steps) if report.behaviours else None,
            *_tabulate_behaviours(report, most),
            anchor="how-it-fails",
        ),
        Section("Runs that show it", _tabulate_excerpts(report), anchor="runs", for_files=True),
        Section(
            "What announces failure", _list_announced(report, search, most), anchor="announces"
        ),
    )


def make_run_page(example: str, runs: Mapping[str, pl.DataFrame]) -> Page:
    """Make a page of runs of one example, a line a step; the first that went wrong is marked.

    Parameters
    ----------
    example : str
    runs : mapping of str to polars.DataFrame
        Steps with their texts, by the kind of their run: failing or passing.
    """
    tables = [
        make_table(
            f"A {side} run",
            "ntcct",
            ("turn", "who", "name", "what", "status"),
            [
                (str(line.turn), line.who, line.name, shorten_value(line.text), line.status)
                for line in list_steps(steps)
            ],
        )
        for side, steps in runs.items()
    ]
    return Page("examples", "", words.clean(f"Runs of {example}"), lead=tables, good=True)


class StepLine(NamedTuple):
    """A step for the page: its place, its speaker, its text, and the behaviours it is a sign of.

    ``is_first`` says whether it is the first that went wrong.
    """

    step: int
    turn: int
    who: str
    name: str
    text: str
    status: str
    signs: str
    is_first: bool

    @property
    def parts(self) -> list[tuple[str, bool]]:
        """Return the text in parts: the words that the step's signs were read from are true."""
        text = self.text[:_MAX_STEP]
        found = "|".join(SIGNS[sign] for sign in self.signs.split(", ") if sign in SIGNS)
        spans = (match.span() for match in re.finditer(found, text, re.IGNORECASE)) if found else ()
        ends = [0, *chain.from_iterable(spans), len(text)]
        return [(text[a:b], n % 2 == 1) for n, (a, b) in enumerate(pairwise(ends))]


def list_steps(steps: pl.DataFrame) -> list[StepLine]:
    """Return the steps of a run as they are shown on a terminal and on pages."""
    wrong = (steps["status"] != "ok").arg_true()
    first = wrong[0] if len(wrong) else -1
    texts = steps.select(pl.coalesce(pl.col("text").replace("", None), "arguments", pl.lit("")))
    nth = pl.int_range(pl.len()).over("kind", "name", "arguments_digest")
    again = pl.when((pl.col("kind") == "call") & (nth > 0)).then(pl.lit("repeats a call"))
    signs = pl.concat_list("signs", again).list.drop_nulls().list.join(", ")
    told = steps.select("step", "turn", "actor", "kind", "name", "status", signs).iter_rows()
    return [
        StepLine(
            step,
            turn,
            f"{actor} {kind}",
            words.clean(name or ""),
            "\n".join(map(words.clean, text.split("\n"))),
            f"{status} (first)" if place == first else status,
            shown,
            place == first,
        )
        for place, ((step, turn, actor, kind, name, status, shown), text) in enumerate(
            zip(told, texts.to_series(), strict=True)
        )
    ]


def _tabulate_behaviours(report: Report, most: int) -> Iterator[Content]:
    """Yield the behaviours of steps, then the columns about whole runs."""

    def contrast(one: Behaviour) -> str | None:
        if one.p is None:
            return None
        seen, hoped = (words.rate(x / one.compared) for x in (one.failed, one.expected))
        return f"{seen} against {hoped}"

    for whole, caption in ((False, "How it fails"), (True, "Whole runs")):
        of_kind = (one for one in report.behaviours if one.whole == whole)
        # a behaviour of every run tells no runs apart
        if rows := [b for b in of_kind if b.failing < b.failing_runs or b.passing < b.passing_runs]:
            yield tabulate(
                caption,
                _join_alike(rows),
                Name[Behaviour]("behaviour", lambda b: b.name),
                Number[Behaviour]("failing runs", lambda b: _count(b.failing, b.failing_runs)),
                Number[Behaviour]("passing runs", lambda b: _count(b.passing, b.passing_runs)),
                Number[Behaviour]("first turn", lambda b: _write_turn(b.first_turn)),
                Number[Behaviour]("fail, against like runs", contrast),
                Words[Behaviour]("p", lambda b: None if b.p is None else words.p_value(b.p)),
                drop=True,
                most=most,
                note=_WHOLE if whole else "",
            )


def _tabulate_excerpts(report: Report) -> Table | None:
    """Return the turn at which behaviours begin, of a failing and a passing run, a row a step."""
    rows = [
        (words.clean(one.behaviour), side, str(one.turn), shorten_value(words.clean(step)))
        for one in report.excerpts
        for side in [f"{words.clean(one.example)}, {'fails' if one.failing else 'passes'}"]
        for step in one.steps
    ]
    heads = ("behaviour", "run", "turn", "step")
    return make_table("One failing and one passing run", "ctnc", heads, rows) if rows else None


def _join_alike(behaviours: Sequence[Behaviour]) -> list[Behaviour]:
    """Return behaviours; those with equal counts happen in the same runs and become one."""
    alike: dict[tuple[object, ...], list[Behaviour]] = {}
    for one in behaviours:
        key = (one.failing, one.passing, one.compared, one.failed, one.expected, one.p)
        alike.setdefault(key, []).append(one)
    names = [words.listing([one.name for one in some], _ALIKE) for some in alike.values()]
    rows = zip(alike.values(), names, strict=True)
    return [replace(some[0], name=name) for some, name in rows]


def _explain(search: TranscriptSearch, *, has_steps: bool) -> str:
    start = f"{words.plural(search.failing, 'run')} of {words.count(search.runs)} fail."
    if not has_steps:
        return start
    if search.within != "of the same task":
        why = "each task has one run, so no passing run of the same task to compare it with"
        return f"{start} Behaviours are described and not tested: {why}."
    return (
        f"{start} Like runs are runs of the same task that go on as long: runs that succeed stop "
        "early, so anything that takes time is more frequent in failing runs. A dash: no like runs "
        "differ in it. A behaviour is no cause."
    )


def _list_announced(report: Report, search: TranscriptSearch, most: int) -> Iterator[Content]:
    if report.announcements:
        yield tabulate(
            "Runs that still go on",
            report.announcements,
            Number[Announcement]("after turn", lambda a: str(a.landmark)),
            Name[Announcement]("behaviour", lambda a: a.behaviour),
            Number[Announcement]("fail with it", lambda a: _count(a.failed, a.runs)),
            Number[Announcement]("fail without", lambda a: _count(a.rest_failed, a.rest)),
            Number[Announcement]("like runs", lambda a: words.rate(a.expected / a.runs)),
            Words[Announcement]("p", lambda a: words.p_value(a.p)),
            most=most,
        )
        yield (
            f"Each line compares runs {search.within} that go on after the turn, by what happened "
            f"up to there. The chance that any line is a false alarm is at most {search.level:.0%}."
        )
    elif search.within:
        told = f"No behaviour in the first turns announces failure (level {search.level:.0%})."
        # a log of single answers has nothing that could
        yield None if all(one.whole for one in report.behaviours) else told
    else:
        yield "No behaviour is tested: examples are in groups, and each has one run."
    if search.detectable:
        least = [
            f"{100 * value:.0f} points after turn {turn}"
            for turn, value in search.detectable.items()
        ]
        yield (
            "A behaviour of 30% of the runs is found four times in five if failure rates differ by "
            f"at least {words.listing(least)}."
        )


def _write_turn(turn: float | None) -> str | None:
    return None if turn is None else f"{turn:g}"


def _count(failed: int, runs: int) -> str:
    return f"{failed:,} of {runs:,} ({words.rate(failed / runs)})" if runs else "-"


def list_code_tables(coding: Coding) -> Iterator[str | Block]:
    """Return the counts of codes, how much may be unseen, and how far coders agree."""
    counts, agreement = coding.counts(), coding.agreement()
    if not counts:
        yield "No run has a note yet."
        return
    yield tabulate(
        "Codes",
        counts,
        Name[CodeCount]("code", lambda c: words.clean(c.code)),
        Words[CodeCount]("among", lambda c: f"{c.side} runs"),
        Number[CodeCount]("coded", lambda c: _count(c.runs, c.coded)),
        Words[CodeCount]("of all, 95%", lambda c: words.span((c.low, c.high))),
        Words[CodeCount]("coders agree", lambda c: _write_agreement(agreement[c.code]["raw"])),
        note="The limits hold whenever you look and whenever you stop.",
        drop=True,
    )
    unseen = coding.saturation()
    if unseen.members:
        yield (
            f"After {words.plural(unseen.members, 'failing run')} the next one shows a code that "
            f"was not seen yet with a chance of about {words.rate(unseen.value)}, and at most "
            f"{words.rate(unseen.high)} (95%)."
        )


def tabulate_suggestions(found: Mapping[int, CodeSuggestion]) -> str | Block:
    """Return suggested codes, each with the command that accepts it."""
    if not found:
        return "No codes are suggested: no two notes are alike."
    return tabulate(
        "Suggested codes",
        found.items(),
        Number["tuple[int, CodeSuggestion]"]("number", lambda s: str(s[0])),
        Name["tuple[int, CodeSuggestion]"]("code", lambda s: words.clean(s[1].code)),
        Number["tuple[int, CodeSuggestion]"]("notes", lambda s: str(len(s[1].notes))),
        Words["tuple[int, CodeSuggestion]"]("such as", lambda s: shorten_value(s[1].notes[0])),
        note="A suggestion does not count until you accept it: --accept N, or --accept N=CODE.",
    )


def tabulate_validation(checked: Sequence[JudgeValidation]) -> list[str | Block]:
    """Return how often a judge is right, by rule, and the share that is corrected for it."""
    rates = [
        (words.clean(where), _bound(*counts[:2], tpr), _bound(*counts[2:], tnr))
        for one in checked
        for where, counts, (tpr, tnr) in (
            (
                f"{one.side} runs",
                (one.hits, one.positives, one.rejections, one.negatives),
                (one.tpr, one.tnr),
            ),
            *((rule, counts, one.rates[rule]) for rule, counts in one.parts.items()),
        )
    ]
    share = tabulate(
        "Corrected share",
        checked,
        Words[JudgeValidation]("among", lambda v: f"{v.side} runs"),
        Number[JudgeValidation]("flagged", lambda v: _count(v.flagged, v.graded)),
        Number[JudgeValidation]("corrected", lambda v: words.rate(v.share)),
        Words[JudgeValidation]("95%, at any look", lambda v: words.span((v.low, v.high))),
        Words[JudgeValidation]("Rogan and Gladen", lambda v: _write_share(v.rogan_gladen)),
    )
    judge = make_table(
        "The judge on labelled runs",
        "tnn",
        ("runs", "flagged with the code", "not flagged without it"),
        rates,
    )
    return [judge, share]


def _bound(right: int, runs: int, rate: Rate) -> str:
    """Write counts and limits, and the share where runs were drawn with unequal chances."""
    is_plain = not runs or rate[0] is None or math.isclose(rate[0], right / runs)
    share = "" if is_plain else f", weighted {words.rate(rate[0])}"
    return f"{right:,} of {runs:,}{share}{words.bracket(rate[1:])}"


def _write_agreement(agreement: Agreement) -> str | None:
    return None if agreement.value != agreement.value else words.rate(agreement.value)


def _write_share(share: tuple[float | None, float, float]) -> str | None:
    return None if share[0] is None else f"{words.rate(share[0])}{words.bracket(share[1:])}"
