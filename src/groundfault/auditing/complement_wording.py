"""Opposites: a cut or a flag said of its other side, where that is as natural."""

from __future__ import annotations

import re

from groundfault.core.candidate import Candidate
from groundfault.core.finding import Opposite

_COLUMN = r'(?P<column>"(?:[^"]|"")+"|[A-Za-z_]\w*)'
_NUMBER = r"(?P<cut>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_CUT = re.compile(rf"\s*{_COLUMN}\s*(?P<sign>>=|<=|>|<)\s*{_NUMBER}\s*")
_FLAG = re.compile(rf"\s*(?P<no>NOT\s+)?{_COLUMN}(\s*=\s*1)?\s*", re.IGNORECASE)
_SIDES = {
    ">": ("<=", "is at most"),
    ">=": ("<", "is below"),
    "<": (">=", "is at least"),
    "<=": (">", "is above"),
}
_LENGTH = re.compile(
    r"(?P<text>.+) has over (?P<count>\d+) (?P<what>characters?|words?|commas? or .+)"
)
_MARK = re.compile(r"(?P<text>.+) has an? (?P<what>.+)")
_CONTENT = re.compile(r"(?P<text>.+) is not empty")


def describe_complement(candidate: Candidate, on: int, off: int) -> Opposite | None:
    """What holds for the units that a candidate leaves, where it is as natural to say.

    Parameters
    ----------
    candidate : Candidate
    on, off : int
        Units that it is true and false for.

    Returns
    -------
    Opposite or None
        Of cuts of numbers and of lengths: always, since "above 12" and "at most 12" are two sides
        of one scale. Of flags and marks of a text: where the other side has no more units; that
        "polite does not hold" for nine in ten is no slice. None for everything else, such as values
        of a category, and where examples without a value count as off.
    """
    if candidate.missing == "off":
        return None
    rule, meaning = f"NOT ({candidate.rule})", candidate.meaning
    if cut := _CUT.fullmatch(candidate.rule):
        column = _unquote(cut["column"])
        sign, words = _SIDES[cut["sign"]]
        sides = f"{column} {sign} {cut['cut']}", f"{column} {words} {cut['cut']}"
        return Opposite(sides[0], f"{cut['column']} {sign} {cut['cut']}", sides[1])
    is_text = candidate.source == "text"
    if is_text and (length := _LENGTH.fullmatch(meaning)):
        words = f"{length['text']} has at most {length['count']} {length['what']}"
        return Opposite(words, rule, words)
    if is_text and (content := _CONTENT.fullmatch(meaning)):
        words = f"{content['text']} is empty"
        return Opposite(words, rule, words)
    if off > on:
        return None
    if is_text and (mark := _MARK.fullmatch(meaning)):
        words = f"{mark['text']} has no {mark['what']}"
        return Opposite(words, rule, words)
    if candidate.fitted_column is None and (flag := _FLAG.fullmatch(candidate.rule)):
        return _turn_flag(candidate, flag, rule)
    return None


def _turn_flag(candidate: Candidate, flag: re.Match[str], rule: str) -> Opposite | None:
    subject, holds = re.fullmatch(
        r"(.*?)( holds| does not hold)?", candidate.meaning, re.DOTALL
    ).groups()  # type: ignore[union-attr]
    # "grade = 1" may be a value as well as a flag; only who calls it a flag means one
    if holds is None and "=" in flag[0]:
        return None
    negated = bool(flag["no"])
    name = candidate.name.removeprefix("NOT ") if negated else f"NOT {candidate.name}"
    if holds is None:
        subject = _unquote(flag["column"])
    positive = negated if holds is None else holds == " does not hold"
    return Opposite(name, rule, f"{subject} {'holds' if positive else 'does not hold'}")


def _unquote(column: str) -> str:
    return column[1:-1].replace('""', '"') if column.startswith('"') else column
