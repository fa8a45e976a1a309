"""The account of an import: which logs were read, what matched, and what did not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, TypeVar

from groundfault.base.deprecation import rename_members
from groundfault.readers.official import OfficialFigure

T = TypeVar("T")

_MAX_LINES = 5


@dataclass(frozen=True)
class LogRead:
    """One log, as it was read.

    Attributes
    ----------
    path, sha256 : str
        Where it was and what was in it.
    reader, harness : str
        Which reader read it, and which tool of which version wrote it, where the log says so.
    observations : int
        Rows read, scored or not, of all scorers.
    notes : tuple of str
        Remarks of the reader, such as a run that was cut short.
    official : OfficialFigure, optional
        What its tool makes of it, where the log says so.
    """

    path: str
    sha256: str
    reader: str
    harness: str = ""
    observations: int = 0
    notes: tuple[str, ...] = ()
    official: OfficialFigure | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LogRead:
        """The log that ``asdict`` gave."""
        official = data.get("official")
        changes = {
            "notes": tuple(data["notes"]),
            "official": None if official is None else OfficialFigure(**official),
        }
        return cls(**{**data, **changes})


@rename_members(lines="to_lines")
@dataclass(frozen=True)
class Account:
    """What became of everything that was read.

    Attributes
    ----------
    logs : tuple of LogRead
    unread : tuple of str
        Files of the given directories that no reader knows.
    scorers : dict of str to int
        Rows of each scorer read; one of them is the outcome.
    examples : int
        Different examples.
    matched : int
        Examples that every model answered.
    missing : dict of str to int
        For each model, examples of the others that it has no row for.
    duplicated : int
        Rows dropped because they are copies of another.
    conflicting : int
        Rows of examples that another run of the same model answered too, and of ids that have other
        texts, which were kept apart, by ``conflicts="keep"``.
    retried : int
        Rows dropped because the answer, missing or ended in an error, is in another log.
    beside : int
        Rows of scorers that are not the outcome; their scores stand in columns beside it.
    left_out : int
        Rows of answers that have no score by the scorer that is the outcome.
    notes : tuple of str
        What else a person should know.
    outcome : tuple of str
        Of several scorers those whose score is the outcome; empty where there is one alone.

    Rows read are those of the evidence and ``beside``, ``left_out``, ``retried`` and ``duplicated``
    together."""

    logs: tuple[LogRead, ...]
    unread: tuple[str, ...] = ()
    scorers: dict[str, int] = field(default_factory=dict)
    examples: int = 0
    matched: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    duplicated: int = 0
    conflicting: int = 0
    retried: int = 0
    beside: int = 0
    left_out: int = 0
    notes: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The account as plain words and numbers."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Account:
        """The account that ``to_dict`` gave."""
        logs = tuple(LogRead.from_dict(log) for log in data["logs"])
        lists: dict[str, Any] = {
            name: tuple(data[name]) for name in ("unread", "notes", "outcome") if name in data
        }
        return cls(**{**data, **lists, "logs": logs})

    def to_lines(self) -> list[str]:
        """The account in sentences, the most important first."""
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
        lines += [
            f"missing: {model} has no row for {_count(n, 'example')}"
            for model, n in _some(lacking.items())
        ]
        if len(lacking) > _MAX_LINES:
            lines.append(
                f"missing: {_count(len(lacking) - _MAX_LINES, 'more model')} lack examples"
            )
        lines += self.notes
        if self.beside:
            lines.append(
                f"beside: {_count(self.beside, 'row')} of scorers that are not the outcome"
            )
        if self.retried:
            lines.append(
                f"retried: {_count(self.retried, 'row')} without an answer, which another log has"
            )
        if self.duplicated:
            lines.append(f"duplicated: {_count(self.duplicated, 'row')} found twice, counted once")
        if self.conflicting:
            lines.append(
                f"kept apart: {_count(self.conflicting, 'row')} of examples that several runs "
                "answered, or of ids with several texts"
            )
        if self.unread:
            more = f" and {len(self.unread) - 3:,} more" if len(self.unread) > 3 else ""
            lines.append(f"not read, as no reader knows them: {', '.join(self.unread[:3])}{more}")
        return [*lines, *self.list_log_notes()]

    def _name_scorers(self) -> str:
        """Whose score is the outcome, and who else scored; nothing where one did alone."""
        if not self.outcome:
            return ""
        names = ", ".join(map(repr, self.outcome))
        others = [repr(name) for name in self.scorers if name and name not in self.outcome]
        more = f", and {len(others) - _MAX_LINES} more" if len(others) > _MAX_LINES else ""
        beside = f" (beside it: {', '.join(_some(others))}{more})" if others else ""
        return f"; scored by {names}{beside}"

    def list_log_notes(self) -> list[str]:
        """The notes on single logs, each note once with the log or the number of logs it is on."""
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
        return [
            *_some(lines),
            *([f"of other logs: {_count(more, 'more note')}"] if more > 0 else []),
        ]


def _some(items: Iterable[T]) -> list[T]:
    return list(islice(items, _MAX_LINES))


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
