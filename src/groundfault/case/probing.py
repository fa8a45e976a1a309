"""The probe of a case: tasks inside its modes, and their twins outside, asked in other words."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from math import ceil, log2
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import polars as pl

from groundfault.auditing.report_schema import to_plain
from groundfault.base.arrays import Bools, Floats
from groundfault.base.files import replace_folder, write_text
from groundfault.base.long_work import stream
from groundfault.base.reading import read_beside
from groundfault.case.parts import UNIT, group_modes, list_units
from groundfault.case.settings import ProbeChoice
from groundfault.core.plan import to_fraction
from groundfault.errors import InputError, LedgerError, PlanError, require_name
from groundfault.modes.mode import EVERY_MODEL
from groundfault.probes.bank.bank import Bank
from groundfault.probes.bank.grammar import Grammar
from groundfault.sequential.confirmation import ASKED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from groundfault.auditing.report import Report
    from groundfault.case.folder import CaseFolder
    from groundfault.core.evidence import Evidence

Pair = tuple[str, str]
"""Names of two units: one inside the mode, one outside every mode."""


def draw_pairs(
    fresh: Evidence,
    on: Mapping[int, Bools],
    rule_columns: Mapping[int, Collection[str]],
    modes: Sequence[int],
    *,
    free: Bools,
    most: int,
    seed: int,
) -> dict[int, list[Pair]]:
    """Draw tasks inside each mode, and the most alike that is left outside all modes for each.

    Parameters
    ----------
    fresh : Evidence
        The fresh rows, copies joined.
    on : mapping of int to bool array, shape (units,)
        For every mode of the audit, by its number, which fresh units it holds for.
    rule_columns : mapping of int to collection of str
        The columns that each mode's rule reads: a pair may differ in them, and is to agree in the
        other attributes.
    modes : sequence of int
        The modes to draw pairs for; each unit serves one mode.
    free : bool array, shape (units,)
        Units without a label.
    most : int
        The largest number of pairs of a mode.
    seed : int

    Returns
    -------
    dict of int to list of pair
        Fewer pairs where units inside or outside run out.
    """
    names, frame = fresh.unit_names, list_units(fresh)
    free, outside = free.copy(), ~np.any(list(on.values()), axis=0)
    pairs: dict[int, list[Pair]] = {}
    for number in modes:
        columns = [c for c in fresh.attributes if c not in rule_columns[number]]
        codes = _code_attributes(frame, columns)
        rng = stream(seed, "probe pairs", number)
        pairs[number] = []
        for unit in rng.permutation(np.flatnonzero(on[number] & free))[:most]:
            others = rng.permutation(np.flatnonzero(outside & free))
            if not len(others):
                break
            twin = others[np.abs(codes[others] - codes[unit]).sum(axis=1).argmin()]
            free[[unit, twin]] = False
            pairs[number].append((names[int(unit)], names[int(twin)]))
    return pairs


def _code_attributes(frame: pl.DataFrame, names: Sequence[str]) -> Floats:
    """Return attributes as numbers whose differences add up: shape (units, codes), each in [0, 1].

    A number counts by its rank; two different words or truth values differ by one. Columns with a
    value of its own for nearly every unit, such as texts, do not measure likeness.
    """
    codes = [np.zeros((len(frame), 1))]
    for column in map(frame.get_column, names):
        if column.dtype.is_numeric():
            ranks = column.rank("average").fill_null(strategy="mean").fill_null(0.0)
            codes.append(ranks.to_numpy()[:, None] / max(1, len(frame)))
        elif column.n_unique() <= len(frame) / 2:
            dummies = column.cast(pl.String).fill_null("").to_dummies()
            codes.append(dummies.to_numpy().astype(np.float64) / 2)
    return np.hstack(codes)


Side = Literal["inside", "outside"]
SIDES: Final[tuple[Side, Side]] = ("inside", "outside")
"""Of the two tasks of a pair, in order."""
QUESTIONS: Final = 3
"""Tests of each mode, each of them adjusted for all that it compares: whether it holds in other
words, what wording does inside, and what it does outside."""
PROBE, RUNS = "probe", "runs"
PLANNED = "case_probe_planned"
"""Kind of the event that records what is asked, before the first question."""
PAIRS: Final = 20
"""Pairs of a mode unless another number is given: above the least that can show anything."""


def begin_probe(
    case: CaseFolder,
    modes: Sequence[int] | None = None,
    *,
    question: str,
    target: str,
    pairs: int = PAIRS,
    grammar: Grammar | None = None,
) -> ProbeChoice:
    """Write probe/: fresh tasks inside modes, and their twins outside, in other words.

    Parameters
    ----------
    case : CaseFolder
    modes : sequence of int, optional
        Numbers of the modes, from 1; those whose labels are bought where left out.
    question, target : str
        Columns with what was asked and what was expected.
    pairs : int
        The largest number of pairs of tasks for each mode.
    grammar : Grammar, optional
        The wordings; the shipped ones where left out.

    Raises
    ------
    PlanError
        If no modes were chosen to be confirmed, a probe was begun, or a mode has too few fresh
        tasks without a label.
    InputError
        If a column is not there, or a task has no question or key.
    """
    if ProbeChoice.find(case.folder) is not None:
        raise PlanError(
            f"a case has one probe, and this one is in {case.folder / PROBE}: go on with it "
            "(groundfault lab probe run --case DIR), or begin another case"
        )
    labels = case.choice
    if labels is None:
        # who saw fresh tasks fail could choose to confirm what they showed
        raise PlanError(
            "choose the modes to confirm first, before fresh tasks are asked: "
            "groundfault label confirm --case DIR --label ask"
        )
    numbers = case.check_modes(labels.modes if modes is None else modes)
    bank = make_bank(case, numbers, pairs, question, target)
    words = Grammar.shipped() if grammar is None else grammar
    words = words.fitting({slot for task in bank for slot in task.slots})
    hashes = {"bank": bank.hash, "grammar": words.hash}
    choice = ProbeChoice(modes=numbers, pairs=pairs, question=question, target=target, **hashes)
    _require_same(case, choice)
    prompts = len(bank) * len(words)
    with replace_folder(case.folder / PROBE) as place:
        bank.write(place / "bank.toml")
        words.write(place / "grammar.toml")
        template = read_beside(__file__, "probe_config.toml")
        text = template.format(seed=case.settings.seed, prompts=prompts)
        write_text(place / "config.toml", text)
    if not case.ledger.events(PLANNED):
        case.ledger.append(PLANNED, to_plain(choice))
    # last: without it no question is asked
    choice.write(case.folder)
    open_probe(case)
    return choice


def _require_same(case: CaseFolder, choice: ProbeChoice) -> None:
    """Raise unless a probe that was recorded, and then interrupted, stays the same."""
    for event in case.ledger.events(PLANNED):
        if event.body != to_plain(choice):
            settings = ("modes", "pairs", "question", "target")
            words = ", ".join(f"{name} {event.body.get(name)}" for name in settings)
            raise PlanError(
                f"the case recorded another probe, which was interrupted ({words}): begin that "
                "one, in its wordings, or another case"
            )


def make_bank(
    case: CaseFolder, modes: Sequence[int], pairs: int, question: str, target: str
) -> Bank:
    """Return the tasks in pairs: one inside a mode, then the one outside that is most like it.

    Parameters
    ----------
    case : CaseFolder
    modes : sequence of int
    pairs : int
        The largest number of pairs of tasks for each mode.
    question, target : str
        Columns with what was asked and what was expected.

    Raises
    ------
    PlanError
        If a mode has too few pairs for any p-value to be small enough, or they are of several
        models.
    """
    report = case.report
    assert report is not None
    outcome, numbers = _find_group(report, modes)
    fresh = case.select_fresh(outcome)
    labelled = _list_labelled(case)
    drawn = draw_pairs(
        fresh,
        dict(zip(numbers, case.mark_fresh_units(numbers), strict=True)),
        {number: report.modes[number - 1].columns for number in numbers},
        modes,
        free=np.array([name not in labelled for name in fresh.unit_names]),
        most=pairs,
        seed=case.settings.seed,
    )
    least = count_least_pairs(case)
    for number, each in drawn.items():
        if len(each) < least:
            raise PlanError(
                f"mode {number} has {len(each)} pairs of fresh tasks that nobody labelled, or "
                f"--pairs allows no more; from {least} on a probe can show anything"
            )
    return _write_tasks(fresh, drawn, question, target)


def _find_group(report: Report, modes: Sequence[int]) -> tuple[str, list[int]]:
    """Return the one model of some modes, and all modes of that model."""
    names = list(dict.fromkeys(report.modes[number - 1].outcome for number in modes))
    if len(names) > 1 or names[0] == EVERY_MODEL:
        raise PlanError(
            f"a probe asks one model, and these modes are of {', '.join(names)}: name modes of one "
            "model (--mode)"
        )
    return names[0], group_modes(report)[names[0]]


def count_least_pairs(case: CaseFolder) -> int:
    """Return the fewest pairs for which an exact p-value can be at most the level."""
    report = case.report
    tests = QUESTIONS * len(report.modes if report else ())
    # the smallest p-value of n pairs whose signs are flipped is 2 / 2^n
    return ceil(1 + log2(max(1, tests) / to_fraction(case.settings.share_alpha("review"))))


def _list_labelled(case: CaseFolder) -> set[str]:
    """Return units that somebody was asked to label before the tasks were drawn, or so far."""
    before = takewhile(lambda event: event.kind != PLANNED, case.ledger.events())
    return {str(event.body["id"]) for event in before if event.kind == ASKED}


def _write_tasks(fresh: Evidence, drawn: dict[int, list[Pair]], question: str, target: str) -> Bank:
    rows = [
        (unit, name_family(number, side), f"pair {place}")
        for number, pairs in drawn.items()
        for place, pair in enumerate(pairs, 1)
        for unit, side in zip(pair, SIDES, strict=True)
    ]
    # names that no column of anybody has
    family, pair = "\0family", "\0pair"
    frame = pl.DataFrame(rows, schema=[UNIT, family, pair], orient="row").join(
        list_units(fresh), on=UNIT, how="left", maintain_order="left"
    )
    for column in (question, target):
        require_name("column", column, frame.columns, InputError)
    bank = Bank.from_table(
        frame, id=UNIT, question=question, target=target, family=family, name="case"
    )
    tagged = zip(bank.tasks, frame[pair], strict=True)
    return Bank("case", tuple(replace(task, tags=(name,)) for task, name in tagged))


def open_probe(case: CaseFolder) -> tuple[Bank, Grammar]:
    """Return the tasks and the wordings of the probe that was begun.

    Raises
    ------
    PlanError
        If no probe was begun.
    InputError, LedgerError
        If they cannot be read, or are others than were recorded.
    """
    choice, place = ProbeChoice.find(case.folder), case.folder / PROBE
    if choice is None:
        raise PlanError("begin the probe first: groundfault lab probe init --case DIR")
    bank, grammar = Bank.load(place / "bank.toml"), Grammar.load(place / "grammar.toml")
    recorded = [event.body for event in case.ledger.events(PLANNED)]
    hashes = bank.hash, grammar.hash
    if hashes != (choice.bank, choice.grammar) or recorded != [to_plain(choice)]:
        raise LedgerError(
            f"{place} holds other tasks or wordings than the case recorded before the first "
            "question: put them back"
        )
    return bank, grammar


def name_family(number: int, side: Side) -> str:
    """Return the family of the tasks on one side of a mode."""
    return f"mode {number} {side}"
