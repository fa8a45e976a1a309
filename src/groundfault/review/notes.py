"""Notes on runs, and the codes that name what goes wrong in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from groundfault.base.holdout_events import Event
from groundfault.errors import InputError
from groundfault.review.decision import Opinion
from groundfault.review.queue import Item, normalize
from groundfault.review.session import Store

_MAX_CODE = 80
"""Characters of a code, which heads a column."""
CODING_GUIDANCE = (
    "Note what goes wrong first, and its consequences only if they matter.",
    "A code names one mistake in a few words. Give several where several mistakes are made, and "
    "none where nothing goes wrong.",
)
"""What makes a good note, a sentence or two each."""
_DIGITS = 9
"""Digits of a number that somebody types: no run has more steps."""
Side = Literal["failing", "passing"]
CODEBOOK = "codebook"
"""The kind of the events that change the codebook."""


class CodeCount(Struct, frozen=True, kw_only=True):
    """Say how frequent a code is among the failing or the passing runs.

    Attributes
    ----------
    code, side : str
    runs, coded, population : int
        Coded runs that most of their coders give the code, coded runs, and all of this side.
    share, low, high : float
        The share among the coded runs, and limits for all runs, 95 %, which hold at every look.
    """

    code: str
    side: Side
    runs: int
    coded: int
    population: int
    share: float
    low: float
    high: float


class JudgeValidation(Struct, frozen=True, kw_only=True):
    """Say how often a judge of a code is right, and the code's share corrected for its errors.

    Attributes
    ----------
    code, side : str
    hits, positives : int
        Labelled runs with the code that the judge flags, and all labelled runs with it.
    tpr : tuple of float
        The true positive rate: hits among positives, and its exact 95 % limits; None without any.
    rejections, negatives : int
        Labelled runs without the code that the judge does not flag, and all of them.
    tnr : tuple of float
        The true negative rate and its limits.
    flagged, graded : int
        Runs that the judge flags among all that it graded.
    share, low, high : float
        Share of the code among all runs of this side, by the labels with the grades beside them;
        the limits hold at every look, whatever the judge.
    rogan_gladen : tuple of float
        The corrected share and its approximate 95 % limits by Rogan and Gladen, to compare; None
        where the judge is no better than a coin.
    parts : dict of str to tuple of int
        For each rule hits, positives, rejections and negatives where it holds.
    """

    code: str
    side: Side
    hits: int
    positives: int
    tpr: tuple[float | None, float, float]
    rejections: int
    negatives: int
    tnr: tuple[float | None, float, float]
    flagged: int
    graded: int
    share: float
    low: float
    high: float
    rogan_gladen: tuple[float | None, float, float]
    parts: dict[str, tuple[int, int, int, int]] = {}


@dataclass(frozen=True, kw_only=True)
class Note(Opinion):
    """A person's note on a run, and its codes.

    Attributes
    ----------
    codes : tuple of str
        Names of what goes wrong in the run; none where nothing does.
    step : int, optional
        The step at which it first goes wrong, from 0.
    """

    stored = ("reviewer", "item", "note", "role", "codes", "step")

    codes: tuple[str, ...] = ()
    step: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.codes, str):
            raise InputError("codes are a list of names, such as ['pays early']")
        object.__setattr__(self, "codes", tuple(dict.fromkeys(map(check_code, self.codes))))
        is_step = isinstance(self.step, int) and not isinstance(self.step, bool) and self.step >= 0
        if self.step is not None and not is_step:
            raise InputError(f"step is {self.step!r}; it is a whole number from 0")

    @classmethod
    def read_answers(cls, answers: Mapping[str, str], known: Sequence[str]) -> dict[str, Any]:
        """Return codes, given by name or by their numbers among the known ones, and the step."""
        step, codes = answers.get("step", "").strip(), []
        if step and not step.isdecimal():
            raise InputError(f"step is {step[:40]!r}; type the number of a step, or nothing")
        for word in filter(None, map(str.strip, answers.get("codes", "").split(","))):
            place = int(word) if word.isdecimal() and len(word) < _DIGITS else 0
            codes.append(known[place - 1] if 0 < place <= len(known) else word)
        return {"codes": codes, "step": int(step[:_DIGITS]) if step else None}

    @property
    def verdict(self) -> str:
        """Return the codes, sorted: coders who give other codes disagree."""
        return ", ".join(sorted(self.codes)) or "no code"


def check_code(name: Any) -> str:
    """Return the name of a code without needless spaces, or raise `InputError`.

    Examples
    --------
    >>> check_code("  pays   early ")
    'pays early'
    """
    code = " ".join(name.split()) if isinstance(name, str) else ""
    if not code or len(code) > _MAX_CODE or not code.isprintable() or "," in code:
        raise InputError(
            f"the code {str(name)[:100]!r} cannot be used: a code is a name of at most "
            f"{_MAX_CODE} characters without commas"
        )
    return code


@dataclass(frozen=True)
class RunItem(Item):
    """A run to code.

    Attributes
    ----------
    run : str
        A hash that names it, and tells nothing.
    row : int
        In the evidence.
    read : callable
        Reads heads and texts, when they are shown.
    """

    run: str = ""
    row: int = 0
    read: Callable[[int], tuple[tuple[str, str], ...]] = lambda _: ()

    @cached_property
    def id(self) -> str:
        """Return the hash that names the run."""
        return self.run

    @cached_property
    def headed_texts(self) -> tuple[tuple[str, str], ...]:
        """Return heads and texts: a pair for each step, or for each column that is shown."""
        return tuple((head, normalize(text)) for head, text in self.read(self.row))


class CodeStore(Store):
    """Notes and changes of the codebook in one ledger; see `groundfault.review.Store`."""

    kind = Note

    def write(self, act: str, **body: Any) -> Event:
        """Record a change of the codebook."""
        return self._ledger.append(CODEBOOK, {"audit": self.audit, "act": act, **body})

    def changes(self) -> list[Event]:
        """Return the changes of the codebook that were not taken back."""
        changes: list[Event] = []
        for event in self._events():
            if event.kind == CODEBOOK and event.body["act"] == "undo":
                changes = [one for one in changes if one.seq != event.body["of"]]
            elif event.kind == CODEBOOK:
                changes.append(event)
        return changes

    def read_names(self) -> dict[str, str]:
        """Return the present names of codes that were renamed."""
        names: dict[str, str] = {}
        for event in self.changes():
            if event.body["act"] == "rename":
                old, new = event.body["code"], event.body["into"]
                names = {**{k: new if v == old else v for k, v in names.items()}, old: new}
                names.pop(new, None)
        return names

    def decisions(self) -> list[Note]:
        """Return every note in its order, under the present names of its codes."""
        names = self.read_names()
        return [
            replace(note, codes=tuple(names.get(code, code) for code in note.codes))
            for note in super().decisions()
        ]
