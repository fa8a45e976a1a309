"""The codebook: codes renamed, joined, moved and split on record, and codes that are suggested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from msgspec import Struct, convert

from groundfault.base.holdout_events import Event
from groundfault.descriptions.proposing import PROMPTS
from groundfault.errors import InputError
from groundfault.models.budget import CallBudget
from groundfault.models.question import Question
from groundfault.models.replies import ModelRequest, Unreadable, decode, fence
from groundfault.models.target import Target
from groundfault.review.notes import MAX_CODE, Note, check_code
from groundfault.review.session import Store
from groundfault.slicing.embedding import embed

CODEBOOK = "codebook"
"""The kind of the events that change the codebook."""
_LEAST = 2
"""Notes of a suggested code: one note tells of nothing that comes again."""
_ALIKE = 0.3
"""Cosine of notes on average from which they are one group: two of some six words agree."""
_LONGEST = 6
"""Words of a suggested name, which is a part of a note; a note that comes again is named whole."""
_TOKENS = 1_000
"""Tokens of a model's reply, about: some twenty names with their numbers."""


class CodeSuggestion(Struct, frozen=True, kw_only=True):
    """Suggest a code for some runs; it does not count until a person accepts it.

    Attributes
    ----------
    code : str
    runs : tuple of str
        Items whose notes it is about.
    notes : tuple of str
        Their notes.
    """

    code: str
    runs: tuple[str, ...]
    notes: tuple[str, ...]


class CodeStore(Store):
    """Notes and changes of the codebook in one ledger; see `groundfault.review.Store`."""

    kind = Note

    def write(self, act: str, **body: object) -> Event:
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

    def move(self, runs: Iterable[str], code: str, into: str, by: str, *, accepts: int = 0) -> None:
        """Record that notes of one coder, or of all, lose a code and get another."""
        items = sorted({*runs} & {note.item for note in self.decisions()})
        if not items or not (code or into):
            raise InputError("choose one note or more, and the code to move them to")
        names = {"code": code and check_code(code), "into": into and check_code(into)}
        self.write("move", **names, runs=items, by=by, accepts=accepts)

    def undo(self) -> str:
        """Take back the last definition, renaming or move, and return its description."""
        acts = ("define", "rename", "move")
        changes = [event for event in self.changes() if event.body["act"] in acts]
        if not changes:
            raise InputError("the codebook was not changed, so no change can be taken back")
        body = changes[-1].body
        self.write("undo", of=changes[-1].seq)
        return f"{body['act']} {body['code'] or body['into']}"

    def read_suggestions(self, by: str) -> dict[int, CodeSuggestion]:
        """Return the last suggestions to a person that were not accepted, by number from 1."""
        found: dict[int, CodeSuggestion] = {}
        for event in self.changes():
            body = event.body
            if body["act"] == "suggest" and body["by"] == by:
                found = {
                    n: convert(s, CodeSuggestion) for n, s in enumerate(body["suggestions"], 1)
                }
            elif body["act"] == "move" and body["by"] == by:
                found.pop(body["accepts"], None)
        return found

    def decisions(self) -> list[Note]:
        """Return every note in its order, with its codes as they are named and moved now."""
        names = self.read_names()
        moves = [event for event in self.changes() if event.body["act"] == "move"]
        return [replace(n, codes=_read_codes(n, names, moves)) for n in super().decisions()]


def _read_codes(note: Note, names: Mapping[str, str], moves: Sequence[Event]) -> tuple[str, ...]:
    codes = dict.fromkeys(names.get(code, code) for code in note.codes)
    for event in moves:
        body = event.body
        is_of_note = note.item in body["runs"] and body["by"] in ("", note.reviewer)
        # what is said of a run later stands
        if is_of_note and note.seq < event.seq:
            codes.pop(names.get(body["code"], body["code"]), None)
            codes[names.get(body["into"], body["into"])] = None
    return tuple(code for code in codes if code)


def group_notes(notes: Sequence[Note], how: str) -> list[CodeSuggestion]:
    """Suggest codes for notes whose words, or meanings, are alike, the largest group first.

    Parameters
    ----------
    notes : sequence of Note
    how : str
        ``tfidf`` for words; ``sentence`` or ``sentence:MODEL`` for meanings.
    """
    from sklearn.cluster import AgglomerativeClustering

    if len(notes) < _LEAST:
        return []
    points = embed([note.note for note in notes], how)
    points = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    tree = AgglomerativeClustering(
        n_clusters=None, metric="precomputed", linkage="average", distance_threshold=1 - _ALIKE
    )
    groups = tree.fit_predict(np.clip(1 - points @ points.T, 0, 2))
    members = [
        [notes[i] for i in np.flatnonzero(groups == group).tolist()] for group in np.unique(groups)
    ]
    named = [_suggest(_name(some), some) for some in members if len(some) >= _LEAST]
    return sorted(named, key=lambda one: (-len(one.runs), one.code))


def ask_for_codes(
    notes: Sequence[Note], target: Target, budget: CallBudget
) -> list[CodeSuggestion]:
    """Suggest codes by a language model, which reads the notes alone."""
    parts = fence([note.note for note in notes])
    question = Question(PROMPTS.fill("codes", count=len(notes), **parts))
    request = ModelRequest(question, partial(_read_groups, len(notes)))
    purpose = f"grouping {len(notes):,} notes"
    (reply,) = budget.ask_for(target, [request], purpose, _TOKENS)
    if reply.value is None:
        raise InputError(f"{target.name} suggests no codes: {reply.reason}")
    return [_suggest(code, [notes[i - 1] for i in places]) for code, places in reply.value.items()]


def _read_groups(count: int, text: str) -> dict[str, list[int]]:
    groups = decode(text, dict[str, list[int]])
    try:
        named = {check_code(code): sorted({*places}) for code, places in groups.items()}
    except InputError as error:
        raise Unreadable(str(error)) from None
    if any(not 1 <= place <= count for places in named.values() for place in places):
        raise Unreadable(f"a note has a number from 1 to {count}")
    return {code: places for code, places in named.items() if len(places) >= _LEAST}


def _suggest(code: str, notes: Sequence[Note]) -> CodeSuggestion:
    runs = tuple(dict.fromkeys(note.item for note in notes))
    return CodeSuggestion(code=code, runs=runs, notes=tuple(note.note for note in notes))


def _name(notes: Sequence[Note]) -> str:
    """Return the words in a row that say most of a group: many words that many notes have."""
    phrases: Counter[str] = Counter()
    for note in notes:
        words = note.note.replace(",", " ").split()
        sizes = {*range(1, _LONGEST + 1), len(words)}
        phrases.update(
            {" ".join(words[i : i + n]) for n in sizes for i in range(len(words) - n + 1)}
        )
    usable = [one for one in phrases if len(one) <= MAX_CODE and one.isprintable()]
    most = max(usable, key=lambda one: (phrases[one] ** 2 * len(one.split()), one), default="")
    return check_code(most or "unnamed")
