"""Coding: notes on runs, codes for their faults, the frequency of each, and a judge of codes.

You read runs in random order, blind to the model, to the outcome and to the notes of others, and
write what goes wrong first. Codes name it; they can be renamed and joined at any time. Each note is
on disk before the next run is shown, and several people may code at once. Counts have limits that
hold whenever you look. A judge of a code is measured on your labels, and its share corrected."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
from msgspec import to_builtins
from numpy.typing import ArrayLike, NDArray

from groundfault.auditing.run_texts import RunTexts, Texts
from groundfault.base.ledgers import find_ledger
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.rules import Rule
from groundfault.descriptions.annotating import grade_texts
from groundfault.errors import InputError, PlanError, require_name
from groundfault.models.budget import BudgetSettings, CallBudget
from groundfault.models.target import Target, get as get_target
from groundfault.review.codebook import CodeStore, CodeSuggestion, ask_for_codes, group_notes
from groundfault.review.decision import select_latest, tabulate_opinions
from groundfault.review.notes import (
    CodeCount,
    Note,
    RunItem,
    Side,
    bound_shares,
    bound_unseen,
    check_code,
    draw_rows,
    find_cells,
    find_focus,
    find_inclusion,
    spell_rows,
)
from groundfault.review.queue import Queue
from groundfault.review.session import Session
from groundfault.review.validation import JudgeValidation, Labels, read_grades, validate_side
from groundfault.stats import agreement as raters
from groundfault.stats.agreement import Agreement
from groundfault.stats.intervals import Unseen
from groundfault.transcripts.behaviours import add_flags

Floats = NDArray[np.float64]

_SIDES: tuple[Side, ...] = ("failing", "passing")
_FAILED = 0.5
"""Graded losses above it count as failed, as everywhere that outcomes are two."""
_MAX_DEFINITION = 1000
"""Characters of a definition, which is a paragraph."""
_EXAMPLES = 2
"""Notes that show a judge a code: one may be odd, and each lengthens every call."""


class Coding:
    """The coding of the runs of some evidence.

    Parameters
    ----------
    evidence : Evidence
        The runs in question: of one failure mode, say, by ``evidence.where(rule)``.
    store : path, URL or Ledger, optional
        Where notes are kept; by default the ledger of audits.
    failing, passing : int
        Largest number of runs of each outcome to draw at random. Both may grow later.
    focus : str
        Of which kind half of the sample is: ``mode:RULE``, ``near:RULE``, ``outliers`` or
        ``unsure:COL`` (`groundfault.review.notes.find_focus`). It is recorded, and counts weigh
        each run by its chance to be drawn.
    columns : sequence of str
        Columns shown of a run; by default its steps or, without any, its question, answer and
        target.
    seed : int
        Of the draw and of each coder's order.

    Raises
    ------
    InputError
        If a column does not exist, or no run has a score.

    Examples
    --------
    >>> rows = {"question": ["1 + 1", "2 + 2"], "answer": ["2", "5"], "error": [0, 1]}
    >>> evidence = Evidence.from_table(pl.DataFrame(rows), outcome="error")
    >>> import tempfile
    >>> coding = Coding(evidence, Path(tempfile.mkdtemp()) / "codes.db")
    >>> session = coding.session("ana")
    >>> session.item.headed_texts
    (('question', '2 + 2'), ('answer', '5'))
    >>> note = session.decide(note="adds one", codes=["off by one"])
    >>> [(count.code, count.runs, count.coded) for count in coding.counts()]
    [('off by one', 1, 1)]
    """

    def __init__(
        self,
        evidence: Evidence,
        store: str | Path | None = None,
        *,
        failing: int = 100,
        passing: int = 0,
        focus: str = "",
        columns: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        for name in columns:
            require_name("column", name, evidence.frame.columns, InputError)
        ledger = find_ledger(True if store is None else store)
        if ledger is None:
            raise PlanError(
                "the ledger is off, and notes need a file: name it (store=, or --store FILE)"
            )
        self.evidence, self._texts = evidence, RunTexts(evidence, tuple(columns))
        self._plan = Plan(seed=seed)
        # by keys and outcomes: the grades of a judge may come later, as a column
        self.store = CodeStore(ledger, f"coding of {evidence.outcome_hash}")
        losses = evidence.loss.to_numpy()
        self._rows = {
            "failing": np.flatnonzero(losses > _FAILED),
            "passing": np.flatnonzero(losses <= _FAILED),
        }
        # a mix may hold passing runs, and a grader's words would say which those are
        self._is_mixed, self._focus = passing > 0, focus
        self._inside = find_focus(evidence, focus) if focus else None
        rng = self._plan.rng
        items = tuple(
            RunItem("", "", "", None, "", run=self._name(row), row=row, read=self._read_texts)
            for side, count in zip(_SIDES, (failing, passing), strict=True)
            for row in draw_rows(
                self._rows[side], self._inside, count, rng(f"coding: {side}")
            ).tolist()
        )
        self.queue = Queue(items, seed, about={"columns": list(columns)})

    def _name(self, row: int) -> str:
        return hashlib.sha256(f"{self._plan.seed} {row}".encode()).hexdigest()

    @cached_property
    def _steps(self) -> dict[int, pl.DataFrame]:
        return self._texts.open([one.row for one in self.queue.items if isinstance(one, RunItem)])

    def _read_texts(self, row: int) -> Texts:
        return self._texts.tell(row, self._steps, is_blind=self._is_mixed)

    def session(self, coder: str, *, adjudicate: bool = False) -> Session:
        """Begin or resume a person's way through the runs, or through those coded differently."""
        if not self.queue.items:
            raise InputError("there is no run to code: no scored run has this outcome")
        if self._inside is not None and self._focus not in [d["focus"] for d in self._designs]:
            self.store.write("design", focus=self._focus, inside=spell_rows(self._inside))
        self.store.seal(self.queue)
        return Session(self.queue, self.store, coder, adjudicate=adjudicate)

    @property
    def _designs(self) -> list[dict[str, Any]]:
        return [{**e.body} for e in self.store.changes() if e.body["act"] == "design"]

    def _find_cells(self) -> NDArray[np.int64]:
        """Return a number for each run; runs of one number were drawn with equal chances."""
        return find_cells([design["inside"] for design in self._designs], len(self.evidence))

    @property
    def codes(self) -> dict[str, str]:
        """Return the definition of each code, most frequent first; an empty text without one."""
        given = Counter(code for note in self.notes for code in note.codes)
        names = self.store.read_names()
        told = {
            names.get(event.body["code"], event.body["code"]): event.body["definition"]
            for event in self.store.changes()
            if event.body["act"] == "define"
        }
        return {code: told.get(code, "") for code in [*(c for c, _ in given.most_common()), *told]}

    def define(self, code: str, definition: str) -> None:
        """Define a code."""
        text = " ".join(definition.split())
        if not 0 < len(text) <= _MAX_DEFINITION:
            raise InputError(f"a definition has 1 to {_MAX_DEFINITION:,} characters")
        self.store.write("define", code=check_code(code), definition=text)

    def rename(self, code: str, into: str) -> None:
        """Rename a code in all notes; two are joined where the new name is another code's."""
        require_name("code", code, [*self.codes], InputError)
        self.store.write("rename", code=code, into=check_code(into))

    def move(self, runs: Iterable[str], code: str = "", into: str = "", *, coder: str = "") -> None:
        """Give the notes on some runs another code: so a code is split, or a note moved.

        Parameters
        ----------
        runs : iterable of str
            Items, as a `Note` names them.
        code, into : str
            The code that these notes lose, and the one that they get; either may be empty.
        coder : str
            Whose notes; by default all coders'.
        """
        self.store.move(runs, code, into, coder)

    def suggest(
        self, how: str | Target = "tfidf", *, coder: str = "", **calling: Unpack[BudgetSettings]
    ) -> list[CodeSuggestion]:
        """Suggest codes for notes, and record the suggestions; a suggestion counts once accepted.

        Parameters
        ----------
        how : str or Target
            ``tfidf`` for notes of like words, ``sentence`` or ``sentence:MODEL`` for like meanings;
            or a model that groups the notes, such as ``openai/gpt-4o-mini``.
        coder, **calling
            As of `move` and `judge`.
        """
        notes = [note for note in self.notes if note.note and coder in ("", note.reviewer)]
        if isinstance(how, str) and how.partition(":")[0] in ("tfidf", "sentence"):
            found = group_notes(notes, how)
        elif isinstance(how, str) and not {*"/:"} & {*how}:
            raise InputError(
                "codes are suggested by tfidf, sentence or a model such as openai/gpt-4o-mini, not "
                f"by {how!r}"
            )
        else:
            budget = CallBudget(**calling)
            found = ask_for_codes(notes, get_target(how), budget)
        self.store.write("suggest", suggestions=to_builtins(found), by=coder)
        return found

    def suggestions(self, coder: str = "") -> dict[int, CodeSuggestion]:
        """Return the last suggestions that were not accepted, by number from 1."""
        return self.store.read_suggestions(coder)

    def accept(self, number: int, into: str = "", *, coder: str = "") -> str:
        """Give the notes of a suggestion its code, or another one; return the code."""
        if (one := self.suggestions(coder).get(number)) is None:
            raise InputError(f"no suggestion {number} is open: ask for suggestions first")
        self.store.move(one.runs, "", into or one.code, coder, accepts=number)
        return into or one.code

    def undo(self) -> str:
        """Take back the last change of the codebook, and return the description."""
        return self.store.undo()

    def prompt(self, code: str) -> str:
        """Return a question for a judge, as `ask` makes it, and put it on record.

        Only runs that are coded afterwards validate a judge of this code.
        """
        question = self.ask(code)
        self.store.write("prompt", code=code, question=question)
        return question

    def ask(self, code: str) -> str:
        """Return a question for a judge, with the definition and two notes as examples."""
        require_name("code", code, [*self.codes], InputError)
        notes = [note.note for note in self.notes if code in note.codes and note.note]
        lines = [
            f"Does this happen in the run: {code}? {self.codes[code]}".strip(),
            *(f"Example: {' '.join(note.split())}" for note in notes[:_EXAMPLES]),
            "Answer yes or no.",
        ]
        return "\n".join(lines)

    def judge(
        self,
        code: str,
        target: str | Target,
        *,
        on: Evidence | None = None,
        **calling: Unpack[BudgetSettings],
    ) -> Floats:
        """Ask a language model about every run, blind to outcomes and labels.

        Returns
        -------
        float64 array, shape (len(evidence),)
            Grades for `validate`: 1 where it says yes, 0 for no, NaN where its reply is neither.

        Parameters
        ----------
        code : str
            Its last `prompt` is the question; without one it is made now, and labels to come count.
        target : str or Target
            Such as ``openai/gpt-4o-mini``.
        on : Evidence, optional
            Fresh runs to ask about instead; `mark` puts the grades beside them.
        **calling
            Of `groundfault.models.budget.CallBudget`: ``max_calls`` (5,000), ``record``,
            ``prices``.
        """
        asked = [e.body for e in self.store.changes() if e.body["act"] == "prompt"]
        said = [body["question"] for body in asked if body["code"] == code and "question" in body]
        question = said[-1] if said else self.prompt(code)
        texts = [*(self._texts if on is None else RunTexts(on)).list_blind()]
        budget = CallBudget(**calling)
        return grade_texts(texts, question, get_target(target), budget)

    @property
    def notes(self) -> list[Note]:
        """Return the last note of each person on each run, in the order of the first ones."""
        return list(select_latest(self.store.decisions()).values())

    def _label(self, side: Side) -> dict[int, list[Note]]:
        """Return the notes that count on each coded run of a side, by row, as they were coded."""
        # of all runs: a larger sample may have been drawn before
        rows = {self._name(row): row for row in self._rows[side].tolist()}
        by_row: dict[int, list[Note]] = {}
        for note in self.notes:
            if note.item in rows:
                by_row.setdefault(rows[note.item], []).append(note)
        for row, notes in by_row.items():
            last_words = [note for note in notes if note.role == "adjudicator"]
            by_row[row] = last_words or notes
        return by_row

    def counts(self) -> tuple[CodeCount, ...]:
        """Count the codes among failing and passing runs.

        Guarantee
        ---------
        The share of a code among all runs of a side is ever outside its limits with probability
        5 % at most, however often one looks and whenever one stops, since each coder reads in
        random order (`groundfault.stats.prediction_powered.find_interval`). Runs of a kind that was
        drawn more often count less. Of a run with several coders the share of them that give the
        code counts, or what an adjudicator says.
        """
        counts = []
        codes, cells = list(self.codes), self._find_cells()
        for side in _SIDES:
            rows, labels = self._rows[side], self._label(side)
            if not labels:
                continue
            table = [[_share(notes, code) for notes in labels.values()] for code in codes]
            shares = np.array(table).reshape(len(codes), len(labels))
            ends = bound_shares(shares, cells[[*labels]], cells[rows])
            counts += [
                CodeCount(
                    code=code,
                    side=side,
                    runs=int((given > _FAILED).sum()),
                    coded=len(labels),
                    population=len(rows),
                    share=float(share),
                    low=float(low),
                    high=float(high),
                )
                for code, given, share, low, high in zip(codes, shares, *ends, strict=True)
            ]
        return tuple(counts)

    def saturation(self) -> Unseen:
        """Estimate the chance that the next failing run shows a code that was not seen yet."""
        labels, cells = self._label("failing"), self._find_cells()
        shown = [{code for note in notes for code in note.codes} for notes in labels.values()]
        return bound_unseen(shown, cells[[*labels]], cells[self._rows["failing"]])

    def agreement(self) -> dict[str, dict[str, Agreement]]:
        """Measure how far coders agree on each code: raw agreement and Krippendorff's alpha."""
        blind = [note for note in self.notes if note.role == "reviewer"]
        measured: dict[str, dict[str, Agreement]] = {}
        for code in self.codes:
            table = tabulate_opinions(blind, partial(_has_code, code))
            rng = self._plan.rng(f"agreement on the code {code}")
            pair = {"raw": raters.raw, "alpha": raters.krippendorff}
            measured[code] = {name: each(table, 2, rng) for name, each in pair.items()}
        return measured

    def labels(self) -> pl.DataFrame:
        """Return the keys of the coded runs with 1 or 0 for each code, the note and the step.

        ``inclusion`` is the share of the runs that were as likely to be drawn which are coded.
        """
        labels = {**self._label("failing"), **self._label("passing")}
        roles = self.evidence.roles
        keys = [key for key in (roles.id, roles.model, roles.repeat) if key]
        chances = find_inclusion(self._find_cells(), self._rows["failing"], [*labels])
        return self.evidence.frame[keys][list(labels)].with_columns(
            pl.Series("note", ["\n".join(n.note for n in notes) for notes in labels.values()]),
            pl.Series("step", [notes[0].step for notes in labels.values()], dtype=pl.Int64),
            pl.Series("quote", [notes[0].quote for notes in labels.values()]),
            pl.Series("inclusion", chances),
            *(
                pl.Series(code, [int(_share(notes, code) > _FAILED) for notes in labels.values()])
                for code in self.codes
            ),
        )

    def read_coded(self, *sides: Side) -> Iterator[tuple[dict[str, Any], Texts]]:
        """Yield the coded runs of these sides, or of both: the row of `labels`, and the texts."""
        rows = [row for side in _SIDES for row in self._label(side)]
        runs, within = self._texts.open(rows), {r for s in sides or _SIDES for r in self._rows[s]}
        for row, labels in zip(rows, self.labels().iter_rows(named=True), strict=True):
            if row in within:
                yield labels, self._texts.tell(row, runs, is_blind=True)

    def mark(
        self, grades: Mapping[str, ArrayLike] | None = None, *, on: Evidence | None = None
    ) -> Evidence:
        """Return runs with codes as columns about whole runs, which an audit lists as behaviours.

        Parameters
        ----------
        grades : mapping of str to array, shape (runs,), optional
            1, 0 or NaN for each run, by code; by default the coders' own codes of coded runs.
        on : Evidence, optional
            Fresh runs, which the grades are of.
        """
        of = self.evidence if on is None else on
        if grades is None:
            labels, rows = self.labels(), [row for side in _SIDES for row in self._label(side)]
            table = np.full((len(self.codes), len(of)), np.nan)
            table[:, rows] = labels.select(list(self.codes)).to_numpy().T
            grades = dict(zip(self.codes, table, strict=True))
        return add_flags(of, {code: read_grades(of, given) for code, given in grades.items()})

    def validate(
        self, code: str, grades: str | ArrayLike, rules: Sequence[str] = ()
    ) -> tuple[JudgeValidation, ...]:
        """Measure a judge of a code on the labels, and correct the share that it flags.

        Parameters
        ----------
        code : str
        grades : str or array, shape (len(evidence),)
            A column of the evidence, or the grades: 1 where the judge says that the code holds, 0
            where not, NaN where it gave no answer.
        rules : sequence of str
            Conditions, such as rules of failure modes, under which it is counted separately.

        Raises
        ------
        InputError
            If a code or column does not exist, or a grade is not 0, 1 or NaN.
        """
        require_name("code", code, [*self.codes], InputError)
        values = read_grades(self.evidence, grades)
        masks = {r: Rule.parse(r).holds(self.evidence.frame).to_numpy() for r in rules}
        asked = {"act": "prompt", "code": code}.items()
        since = max((e.seq for e in self.store.changes() if asked <= e.body.items()), default=0)
        firsts: dict[str, int] = {}
        for note in self.store.decisions():
            firsts.setdefault(note.item, note.seq)
        cells = self._find_cells()
        checked = []
        for side in _SIDES:
            if not (labels := self._label(side)):
                continue
            rows, every = np.array([*labels]), self._rows[side]
            shares = np.array([_share(notes, code) for notes in labels.values()])
            fresh = np.array([firsts[notes[0].item] > since for notes in labels.values()])
            known = Labels(shares, values[rows], cells[rows], fresh)
            inside = {rule: mask[rows] for rule, mask in masks.items()}
            checked.append(validate_side(code, side, known, (values[every], cells[every]), inside))
        return tuple(checked)

    def errors(self, code: str, grades: str | ArrayLike) -> Evidence:
        """Return the coded runs as evidence that fails where a judge errs."""
        values = read_grades(self.evidence, grades)
        wrong = np.full(len(values), np.nan)
        for side in _SIDES:
            for row, notes in self._label(side).items():
                wrong[row] = abs(float(_share(notes, code) > _FAILED) - values[row])
        part, known = self.evidence.take(~np.isnan(wrong)), wrong[~np.isnan(wrong)]
        return replace(part, loss=pl.Series("loss", known), raw_loss=None)


def _has_code(code: str, note: Note) -> int:
    return int(code in note.codes)


def _share(notes: Sequence[Note], code: str) -> float:
    return sum(code in note.codes for note in notes) / len(notes)
