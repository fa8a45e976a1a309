"""Directional tests: a change to a prompt, and what it must do to the answer.

Templates with lexicons are filled in, a model answers the prompt and the changed prompt, and the
two answers are compared. No expected answer is needed. The kinds of tests are CheckList's (Ribeiro
et al. 2020): the answer must rise, must fall, must stay the same, or must change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from groundfault import models
from groundfault.base.long_work import stream
from groundfault.core import equivalence
from groundfault.errors import InputError
from groundfault.models import Target
from groundfault.models.asking import AskOptions
from groundfault.probes.bank import toml_tables
from groundfault.probes.bank.grammar import PLACE
from groundfault.probes.running.answers import extract
from groundfault_lab.probes.perturbations import WORDINGS

EXPECTATIONS = ("rises", "falls", "same", "changes")
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
_TRIES = 50  # draws of a filling before a template counts as exhausted


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """A template, how it is changed, and what the change must do to the answer.

    Attributes
    ----------
    name : str
    base, changed : str
        The prompts, with ``{entry}`` for a word of the lexicon.
    by : str
        In place of ``changed``: a family of `groundfault_lab.probes.perturbations.WORDINGS`.
    expect : {"rises", "falls", "same", "changes"}
    rule : str
        How answers are read and compared, of `groundfault.core.equivalence.RULES`.

    Raises
    ------
    InputError
        If a part is missing or unknown, or numbers are expected of a rule that reads none.
    """

    name: str
    base: str
    changed: str = ""
    by: str = ""
    expect: str
    rule: str = "exact"

    def __post_init__(self) -> None:
        where = f"the test {self.name!r}"
        for kind, value, known in (
            ("expect", self.expect, EXPECTATIONS),
            ("rule", self.rule, tuple(equivalence.RULES)),
            *[("by", self.by, tuple(WORDINGS))] * bool(self.by),
        ):
            if value not in known:
                raise InputError(f"{where}: {kind} is {value!r}; write one of {', '.join(known)}")
        if bool(self.changed) == bool(self.by):
            raise InputError(f"{where} needs either changed or by")
        if self.expect in ("rises", "falls") and self.rule not in ("integer", "numeric"):
            raise InputError(
                f'{where} expects that a number {self.expect}; write rule = "integer" or "numeric"'
            )

    def judge(self, before: str, after: str) -> bool | None:
        """Tell whether two responses meet the expectation; None where one cannot be read."""
        answers = [extract(text, self.rule).text for text in (before, after)]
        read = [None if text is None else equivalence.read(text, self.rule) for text in answers]
        if read[0] is None or read[1] is None:
            return None
        if self.expect in ("same", "changes"):
            same = equivalence.compare(read[1], read[0], self.rule).same
            return None if same is None else same == (self.expect == "same")
        first, second = (equivalence.numbers(text)[0] for text in (read[0], read[1]))
        return second > first if self.expect == "rises" else second < first


@dataclass(frozen=True, kw_only=True)
class _File:
    """The tables of a file of tests."""

    test: list[dict[str, Any]] = field(default_factory=list)


def read_expectations(path: str | Path) -> tuple[list[Expectation], dict[str, list[str]]]:
    """Read tests, and the lexicon: for each entry its words, or numbers from ``"2..20"``.

    Raises
    ------
    InputError
        If the file is none, or a template holds an entry that the lexicon lacks.
    """
    where = str(path)
    tables = toml_tables.read(Path(path), "tests")
    lexicon = {
        name: _list_words(words, f"{where}, lexicon entry {name!r}")
        for name, words in _require_table(tables.pop("lexicon", {}), where).items()
    }
    file = toml_tables.convert(tables, _File, where)
    tests = [
        toml_tables.convert(row, Expectation, f"{where}, test {row.get('name', number)!r}")
        for number, row in enumerate(file.test, start=1)
    ]
    if not tests:
        raise InputError(f"{where} holds no test; write one as [[test]]")
    for test in tests:
        lacking = [each for each in _list_entries(test) if each not in lexicon]
        if lacking:
            raise InputError(
                f"{where}, test {test.name!r}: {{{lacking[0]}}} is in no [lexicon]; add its words"
            )
    return tests, lexicon


def run_expectations(
    tests: Sequence[Expectation],
    lexicon: Mapping[str, Sequence[str]],
    target: str | Target,
    *,
    count: int = 50,
    seed: int = 0,
    **options: Unpack[AskOptions],
) -> pl.DataFrame:
    """Ask a model both prompts of each filling, and return a row for each.

    Parameters
    ----------
    tests, lexicon
        As `read_expectations` returns them.
    target : str or Target
    count : int
        Fillings of each test; fewer where the lexicon has no more.
    seed : int
    **options
        For `groundfault.models.ask`.

    Returns
    -------
    polars.DataFrame
        ``id``, ``test``, ``expect``, the prompts and responses, a column for each entry of the
        lexicon, and ``failed``: null where an answer could not be read.
    """
    rows: list[dict[str, Any]] = []
    for test in tests:
        filled = _fill(test, lexicon, count, seed)
        if not filled:
            raise InputError(
                f"the test {test.name!r}: {test.by or 'changed'} leaves every filling as it is; "
                "name another family, or write another template"
            )
        rows += filled
    prompts = [row[name] for row in rows for name in ("base_prompt", "prompt")]
    responses = models.ask(target, prompts, **options)
    by_name = {test.name: test for test in tests}
    for row, before, after in zip(rows, responses[::2], responses[1::2], strict=True):
        row["base_response"], row["response"] = before.text, after.text
        met = by_name[row["test"]].judge(before.text or "", after.text or "")
        row["failed"] = None if met is None else int(not met)
    # without the type, a column without any answer that could be read has none
    types = {"failed": pl.Int64}
    return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=types)


def _fill(
    test: Expectation, lexicon: Mapping[str, Sequence[str]], count: int, seed: int
) -> list[dict[str, Any]]:
    rng, entries = stream(seed, f"expectation {test.name}"), _list_entries(test)
    rows: list[dict[str, Any]] = []
    seen: set[tuple[str, ...]] = set()
    for _ in range(_TRIES * count):
        words = tuple(lexicon[name][int(rng.integers(len(lexicon[name])))] for name in entries)
        if len(rows) == count or words in seen:
            continue
        seen.add(words)
        filling = dict(zip(entries, words, strict=True))
        base, changed = (_fill_in(text, filling) for text in (test.base, test.changed))
        prompt = WORDINGS[test.by](base, rng) if test.by else changed
        # a family may have nothing to change in this filling
        if prompt != base:
            about = {"id": f"{test.name}-{len(rows) + 1}", "test": test.name}
            about |= {"expect": test.expect, "base_prompt": base, "prompt": prompt}
            rows.append({**about, **{name: _to_number(word) for name, word in filling.items()}})
    return rows


def _fill_in(text: str, filling: Mapping[str, str]) -> str:
    return PLACE.sub(lambda place: filling.get(place[1], place[0]), text)


def _list_entries(test: Expectation) -> list[str]:
    return list(dict.fromkeys(PLACE.findall(test.base + test.changed)))


def _to_number(word: str) -> int | str:
    return int(word) if re.fullmatch(r"-?\d{1,15}", word) else word


def _require_table(lexicon: Any, where: str) -> dict[str, Any]:
    if not isinstance(lexicon, dict):
        raise InputError(f"{where}: write the words of templates below [lexicon]")
    return lexicon


def _list_words(words: Any, where: str) -> list[str]:
    match = _RANGE.fullmatch(words) if isinstance(words, str) else None
    if match and int(match[1]) <= int(match[2]) <= int(match[1]) + 100_000:
        return [str(number) for number in range(int(match[1]), int(match[2]) + 1)]
    if isinstance(words, list) and words and all(isinstance(word, str | int) for word in words):
        return [str(word) for word in words]
    raise InputError(f'{where} must be a list of words, or numbers such as "2..20"')
