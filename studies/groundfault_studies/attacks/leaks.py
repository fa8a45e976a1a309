"""Leaks, the roles of columns, the direction of outcomes, and graders, under attack."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

import groundfault
from groundfault import Candidate, Evidence, Plan, Report
from groundfault.auditing.preparation import prepare
from groundfault.errors import InputError, RuleError
from groundfault_studies.attacks.attack import Attack

Bools = NDArray[np.bool_]

_ROWS = 1000
_GOOD = "correct passed score success accuracy is_correct exact_match".split()


def _table(rng: np.random.Generator, wrong: Bools, **columns: object) -> pl.DataFrame:
    """A table of outcomes with two columns that say nothing of them, and others."""
    return pl.DataFrame(
        {
            "id": [f"q{i:04d}" for i in range(len(wrong))],
            "topic": rng.choice(["a", "b", "c"], len(wrong)),
            "words": rng.integers(5, 400, len(wrong)),
            **columns,
            "error": wrong.astype(int),
        }
    )


def _audit(
    table: pl.DataFrame, candidates: list[Candidate] | None = None, *, modes: bool = True
) -> Report:
    evidence = Evidence.from_table(table, id="id", outcome="error")
    return groundfault.audit(evidence, Plan(depth=1), candidates, ledger=None, modes=modes)


def _reads(report: Report, column: str) -> bool:
    """Whether a confirmed finding or a mode is about a column."""
    rules = [*(f.rule for f in report.confirmed), *(mode.rule for mode in report.modes)]
    return any(column in rule for rule in rules)


def confirm_comparison(seed: int) -> bool:
    """A named rule that compares the answer with the key."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(_ROWS) < 0.3
    key = rng.integers(0, 50, _ROWS)
    table = _table(rng, wrong, a=key + wrong, b=key)
    return bool(_audit(table, [Candidate("differ", "a <> b")], modes=False).confirmed)


def confirm_remark(seed: int) -> bool:
    """Named rules over a grader's remark: alone, and with a further condition."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(_ROWS) < 0.3
    table = _table(rng, wrong, notes=_write_remarks(wrong))
    rule = "notes LIKE '%incorrect%'"
    rules = [Candidate("remark", rule), Candidate("both", f"{rule} AND words > 100")]
    try:
        return bool(_audit(table, rules, modes=False).confirmed)
    except RuleError:
        return False


def name_remark(seed: int) -> bool:
    """The same remark, with nobody naming a rule."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(600) < 0.3
    return _reads(_audit(_table(rng, wrong, notes=_write_remarks(wrong))), "notes")


def _write_remarks(wrong: Bools) -> list[str]:
    return [f"item {i}: {'incorrect' if bad else 'fine'} here" for i, bad in enumerate(wrong)]


def use_prediction(seed: int) -> bool:
    """A column of predictions that failing goes with."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(_ROWS) < 0.3
    prediction = np.where(rng.random(_ROWS) < 0.3 + 0.5 * wrong, "no", "yes")
    report = _audit(_table(rng, wrong, prediction=prediction, n_turns=rng.poisson(2 + 2 * wrong)))
    own = [f for f in report.confirmed if f.source != "instrument"]
    named = any(
        column in mode.rule for mode in report.modes for column in ("prediction", "n_turns")
    )
    return named or any("prediction" in f.rule or "n_turns" in f.rule for f in own)


def miss_copy(rate: float, seed: int) -> bool:
    """A column that agrees with the outcome in 97 % of rows, and is used without a question."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(_ROWS) < rate
    report = _audit(_table(rng, wrong, flag=wrong ^ (rng.random(_ROWS) < 0.03)), modes=False)
    return _reads(report, "flag") and not any("'flag'" in hint for hint in report.hints)


def refuse_hole(elsewhere: float, seed: int) -> bool:
    """A hole in which nine of ten fail, known before the answer, and left out as a leak."""
    rng = np.random.default_rng(seed)
    hole = rng.random(_ROWS) < 0.15
    wrong = rng.random(_ROWS) < np.where(hole, 0.9, elsewhere)
    return not _audit(_table(rng, wrong, hole=hole), modes=False).confirmed


def take_silently(seed: int) -> bool:
    """Outcomes named like a pass, without a direction; whether they are read upside down."""
    rng = np.random.default_rng(seed)
    column = _GOOD[seed % len(_GOOD)]
    table = _table(rng, rng.random(60) < 0.3).rename({"error": column})
    try:
        loss = Evidence.from_table(table, id="id", outcome=column).loss
    except InputError as error:
        calls = (f"outcome={column!r}, positive_is_good={way}" for way in (True, False))
        return not all(call in str(error) for call in calls)
    return not (loss == 1 - table[column]).all()


def blame_grader(own_effect: float, known: str, seed: int) -> bool:
    """Hard questions have long answers; whether the report says that the grader may be at fault."""
    rng = np.random.default_rng(seed)
    level = rng.integers(1, 6, 2 * _ROWS)
    length = np.exp(rng.normal(5 + 0.2 * level, 0.5))
    wrong = rng.random(2 * _ROWS) < 0.15 * level - 0.1 + own_effect * (length > np.median(length))
    # a proxy tells the level in six rows of ten
    proxy = np.where(rng.random(2 * _ROWS) < 0.6, level, rng.permutation(level))
    columns = {"level": {"level": level}, "proxy": {"level": proxy}, "nothing": {}}[known]
    table = _table(rng, wrong, response_chars=length.round(), **columns)
    return bool(_audit(table, modes=False).grader)


def hides_column(seed: int) -> bool:
    """Whether check says what a column of each kind is taken for."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(300) < 0.3
    columns = {"prediction": rng.integers(0, 2, 300), "n_turns": rng.poisson(3, 300)}
    table = _table(rng, wrong, feedback=rng.choice(["x", "y"], 300), **columns)
    stages = {
        one.column: str(one.stage)
        for one in prepare(Evidence.from_table(table, id="id", outcome="error")).stages
    }
    return stages != {
        "topic": "known before the answer",
        "words": "known before the answer",
        "prediction": "measured with it",
        "n_turns": "measured with it",
        "feedback": "follows from it",
    }


_SAYS = "the report uses it without a question"

ATTACKS: tuple[Attack, ...] = (
    Attack(
        14,
        "answer compared with the key",
        "A named rule a <> b is true exactly where the model failed; error rate .3, n = 1000.",
        "A rule that tells the outcome is not confirmed.",
        "confirmed with lift +1.00 and no hint",
        "rate of audits that confirm it",
        confirm_comparison,
        at_most=0.02,
        replicates=200,
    ),
    Attack(
        14,
        "remark of a grader",
        "Named rules over a text that says incorrect exactly where the model failed, one of them "
        "with a further condition.",
        "A rule that tells the outcome, or one with such a condition, is refused or not tested.",
        "confirmed with lift +1.00 and no hint",
        "rate of audits that confirm one",
        confirm_remark,
        at_most=0.02,
        replicates=200,
    ),
    Attack(
        14,
        "remark of a grader, nobody names a rule",
        "The same text in a column called notes, n = 600, default finders and failure modes.",
        "No finding and no failure mode is about it.",
        "not measured",
        "rate of audits that report it",
        name_remark,
        at_most=0.05,
        replicates=80,
    ),
    Attack(
        14,
        "prediction and turns",
        "A column of predictions and one of turns go with failing, by their nature.",
        "No failure mode names them, and no finder but that of answers.",
        "confirmed like any column",
        "rate of audits that take them for examples",
        use_prediction,
        at_most=0.05,
        replicates=80,
    ),
    *(
        Attack(
            14,
            f"97 % agreement, error rate {rate}",
            f"A flag agrees with the outcome in 97 % of rows; error rate {rate}, n = 1000.",
            "It is left out, or the report asks whether it was known before the answer.",
            "confirmed",
            f"rate of audits where {_SAYS}",
            partial(miss_copy, rate),
            at_most=0.05,
            replicates=100,
        )
        for rate in (0.5, 0.3, 0.2)
    ),
    *(
        Attack(
            14,
            f"true hole, {elsewhere} elsewhere",
            f"A model fails 9 times of 10 in 15 % of the examples and {elsewhere} elsewhere.",
            "It is confirmed, and not taken for a leak.",
            "not measured",
            "rate of audits that do not confirm it",
            partial(refuse_hole, elsewhere),
            at_most=0.05,
            replicates=200,
        )
        for elsewhere in (0.0, 0.05, 0.2)
    ),
    Attack(
        14,
        "what columns are taken for",
        "Columns called prediction, n_turns and feedback beside two that describe examples.",
        "check says what each is taken for.",
        "said of none",
        "rate of checks that take one for something else",
        hides_column,
        at_most=0.05,
        replicates=80,
    ),
    Attack(
        15,
        "outcome named like a pass",
        "Outcome columns called correct, passed, score, ... without a direction.",
        "1 is read as a pass, or the call stops with one line that holds both calls.",
        "11 findings, all upside down",
        "rate of calls that read 1 as a failure, or stop and do not say how",
        take_silently,
        at_most=0.05,
        replicates=80,
    ),
    *(
        Attack(
            16,
            f"long answers to hard questions, {word}",
            f"Hard questions fail and have long answers, which fail no more of their own; {told}.",
            "The report does not say that the grader may be at fault.",
            "14 of 20 real reports open with it",
            "rate of reports that say it",
            partial(blame_grader, 0.0, known),
            at_most=0.10,
            replicates=100,
        )
        for word, known, told in (
            ("level known", "level", "a column holds the level"),
            ("level half known", "proxy", "a column tells it in six rows of ten"),
            ("level unknown", "nothing", "nothing tells it"),
        )
    ),
    Attack(
        16,
        "long answers fail of their own",
        "Hard questions have long answers, and a long answer fails .3 more of its own.",
        "The report says that the grader may be at fault.",
        "said wherever a length was confirmed",
        "rate of reports that say it",
        partial(blame_grader, 0.3, "level"),
        at_least=0.8,
        replicates=100,
    ),
)
