"""The account of an import: the logs that were read, and the rows that matched or did not."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any, TypeVar

import msgspec
import polars as pl

from groundfault.core.status import COUNTABLE, Status
from groundfault.errors import list_some

T = TypeVar("T")

# lines of one kind: a summary is read at a glance, and the rest is counted
_MAX_LINES = 5
# models whose pass rate is another than the tool's own
_MAX_FIGURES = 3


class OfficialFigure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The count of a benchmark's own tool in a log, and the count of the rows that were read.

    Attributes
    ----------
    tool, model : str
    passes, total : int
        Passed and all answers by the tool's count.
    score : float
        Sum of the scores that were read.
    rows : dict of str to int
        Rows that were read, by status.
    """

    tool: str
    model: str
    passes: int
    total: int
    score: float = 0.0
    rows: dict[str, int] = {}

    def add_rows(self, frame: pl.DataFrame) -> OfficialFigure:
        """Return the figure with further rows of the log."""
        score = float(frame.filter(status=str(Status.SCORED))["value"].sum() or 0.0)
        rows = {str(status): int(n) for status, n in frame["status"].value_counts().iter_rows()}
        return self.add(OfficialFigure(self.tool, self.model, 0, 0, score, rows))

    def add(self, other: OfficialFigure) -> OfficialFigure:
        """Return the sum of two figures of one tool and model."""
        both = {s: self.rows.get(s, 0) + other.rows.get(s, 0) for s in self.rows | other.rows}
        passes, total = self.passes + other.passes, self.total + other.total
        score = self.score + other.score
        return OfficialFigure(self.tool, self.model, passes, total, score, both)


class LogRead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One log that was read.

    Attributes
    ----------
    path, sha256 : str
        Place of the log and hash of its content.
    reader, harness : str
        The reader, and the tool and version that wrote the log, if the log says so.
    observations : int
        Rows read for all scorers, scored or not.
    notes : tuple of str
        Remarks of the reader, such as a run that was cut short.
    official : OfficialFigure, optional
        The tool's own count, if the log states it.
    """

    path: str
    sha256: str
    reader: str
    harness: str = ""
    observations: int = 0
    notes: tuple[str, ...] = ()
    official: OfficialFigure | None = None


class Account(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of all rows that were read: matched, dropped, missing and unread.

    The number of rows read is the number of rows of the evidence plus ``beside``, ``left_out``,
    ``retried`` and ``duplicated``.

    Attributes
    ----------
    logs : tuple of LogRead
    unread : tuple of str
        Files of the given directories that no reader knows.
    scorers : dict of str to int
        Rows read for each scorer; one scorer is the outcome.
    examples : int
        Distinct examples.
    matched : int
        Examples that every model answered.
    missing : dict of str to int
        For each model, the number of examples that only other models have rows for.
    duplicated : int
        Rows dropped because they are copies of another row.
    conflicting : int
        Rows kept apart by ``conflicts="keep"``: examples that another run of the same model also
        answered, and ids with several texts.
    retried : int
        Rows with a missing answer or an error, dropped because another log has the answer.
    beside : int
        Rows of scorers that are not the outcome; their scores become columns of their own.
    left_out : int
        Rows of answers that the outcome's scorer did not score.
    notes : tuple of str
        Further remarks for the user.
    outcome : tuple of str
        Scorers whose score is the outcome; empty if there is only one scorer.
    """

    logs: tuple[LogRead, ...]
    unread: tuple[str, ...] = ()
    scorers: dict[str, int] = {}
    examples: int = 0
    matched: int = 0
    missing: dict[str, int] = {}
    duplicated: int = 0
    conflicting: int = 0
    retried: int = 0
    beside: int = 0
    left_out: int = 0
    notes: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the account as plain words and numbers."""
        return dict(msgspec.to_builtins(self))

    def to_lines(self) -> list[str]:
        """Return the account in sentences, the most important first."""
        n_rows = sum(log.observations for log in self.logs)
        lines = [
            f"{_count(n_rows, 'row')} from {_count(len(self.logs), 'log')}; "
            f"{_count(self.examples, 'example')}{self._name_scorers()}"
        ]
        if self.missing:
            lines.append(
                f"matched: {_count(self.matched, 'example')} answered by each of "
                f"{len(self.missing)} models"
            )
        lacking = {model: n for model, n in self.missing.items() if n}
        each = (f"{model} has no row for {_count(n, 'example')}" for model, n in lacking.items())
        lines += [f"missing: {words}" for words in _some(each)]
        if (more := len(lacking) - _MAX_LINES) > 0:
            lines.append(f"missing: {_count(more, 'more model')} lack examples")
        lines += self.notes
        apart = "of examples that several runs answered, or of ids with several texts"
        put_aside = (
            ("beside", self.beside, "of scorers that are not the outcome"),
            ("retried", self.retried, "without an answer, which another log has"),
            ("duplicated", self.duplicated, "found twice, counted once"),
            ("kept apart", self.conflicting, apart),
        )
        lines += [f"{name}: {_count(n, 'row')} {words}" for name, n, words in put_aside if n]
        if self.unread:
            lines.append(f"not read, as no reader knows them: {list_some(self.unread, 3)}")
        return [*lines, *self.list_log_notes()]

    def _name_scorers(self) -> str:
        """Name the scorer of the outcome, and the others; empty if there is only one scorer."""
        if not self.outcome:
            return ""
        names = ", ".join(map(repr, self.outcome))
        others = [repr(name) for name in self.scorers if name and name not in self.outcome]
        more = f", and {len(others) - _MAX_LINES} more" if len(others) > _MAX_LINES else ""
        beside = f" (beside it: {', '.join(_some(others))}{more})" if others else ""
        return f"; scored by {names}{beside}"

    def list_log_notes(self) -> list[str]:
        """Return the notes on single logs, each with its log or the number of its logs."""
        about: dict[str, list[str]] = {}
        for log in self.logs:
            for note in log.notes:
                about.setdefault(note, []).append(log.path)
        often = sorted(about.items(), key=lambda item: -len(item[1]))
        lines = [
            f"in {paths[0] if len(paths) == 1 else _count(len(paths), 'log')}: {note}"
            for note, paths in often
        ]
        more = len(lines) - _MAX_LINES
        rest = [f"of other logs: {_count(more, 'more note')}"] if more > 0 else []
        return [*_some(lines), *rest]


def _some(items: Iterable[T]) -> list[T]:
    return list(islice(items, _MAX_LINES))


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def compare_official(
    figures: Iterable[OfficialFigure | None], count_as_failed: Collection[str] = ()
) -> list[str]:
    """Return a sentence for each model whose pass rate differs from its tool's own count.

    Parameters
    ----------
    figures : iterable of OfficialFigure, or None
        One a log; figures for the same tool and model are added up.
    count_as_failed : collection of str
        The statuses that count as failures in the evidence.
    """
    sums: dict[tuple[str, str], OfficialFigure] = {}
    for each in filter(None, figures):
        key = each.tool, each.model
        sums[key] = sums[key].add(each) if key in sums else each
    lines = [line for figure in sums.values() if (line := _compare(figure, count_as_failed))]
    more = len(lines) - _MAX_FIGURES
    rest = [f"the same holds for {more} more model{'s' if more > 1 else ''}"] if more > 0 else []
    return [*lines[:_MAX_FIGURES], *rest]


def _compare(figure: OfficialFigure, count_as_failed: Collection[str]) -> str:
    """Return both rates and the rows that explain the difference; empty for equal rates."""
    failed = sum(n for status, n in figure.rows.items() if status in count_as_failed)
    scored = figure.rows.get(str(Status.SCORED), 0) + failed
    if not figure.total or not scored or figure.score * figure.total == figure.passes * scored:
        return ""
    counted = (Status.SCORED, *count_as_failed)
    apart = {status: n for status, n in figure.rows.items() if n and status not in counted}
    unread = figure.total - sum(figure.rows.values())
    reasons = " and ".join(f"{n:,} {status}" for status, n in apart.items())
    switch = " ".join(f"--count-as-failed {status}" for status in apart if status in COUNTABLE)
    return (
        f"{figure.tool} itself counts {figure.passes:,} of {figure.total:,} passed "
        f"({figure.passes / figure.total:.1%}) for {figure.model}, and here "
        f"{figure.score:,g} of {scored:,} did ({figure.score / scored:.1%})"
        + (f"; to it {reasons} are failures" if reasons else "")
        + (f" ({switch} counts them here, too)" if switch else "")
        + (f"; {unread:,} of its answers are not in the log" if unread > 0 else "")
    )
