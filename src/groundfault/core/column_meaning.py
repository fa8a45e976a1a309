"""Guess what a column means: from its name, whether 1 is a pass, and whether it describes the
answer; from its values, whether they are conversations, which hold the messages of a run."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import polars as pl

from groundfault.base.reading import read_beside
from groundfault.errors import InputError

_TABLES: dict[str, dict[str, Any]] = tomllib.loads(read_beside(__file__, "column_names.toml"))
_WORDS = {name: frozenset(words.split()) for name, words in _TABLES["words"].items()}
ANSWERS, PROMPTS, OUTCOMES = (_WORDS[name] for name in ("answers", "prompts", "outcomes"))
_KEYS, _GRADES, _REMARKS, _GRADERS, _PASS, _FAIL, _NOT, _BESIDE, _CLEAR = (
    _WORDS[name] for name in "keys grades remarks graders pass fail not beside clear".split()
)
_MEASURED, _DURING = (
    re.compile("".join(_TABLES["patterns"][name])) for name in ("measured", "during")
)
_NAMES_A_THING = re.compile(
    r"(^|[_\W])(id|ids|idx|index|uuid|guid|hash|sha\d*|md5|seed)$", re.IGNORECASE
)
_DIRECTIONS = {
    "--positive-is-good": ("positive_is_good=True", "if 1 is a pass"),
    "--positive-is-bad": ("positive_is_good=False", "if 1 is a failure"),
}
TRANSCRIPT = "transcript_in_log"
"""Column: the number of the row's conversation among the conversations read from its log."""
_LISTS = ("messages", "traj", "trajectory", "history", "spans", "observations", "turns")
"""Keys that agents' logs put the list of a run under."""
_SPEAKERS = frozenset({"role", "source"})
_SPANS = frozenset({"span_kind", "spanId", "span_id", "traceId", "trace_id"})
_ASKERS = frozenset({"user", "system", "developer"})
"""Speakers in a prompt; a run also has an agent."""
_LOOKED_AT = 5
"""Values of a column to look at: if all are conversations, the column holds conversations."""


class DirectionError(InputError):
    """Only the caller can say whether 1 is a pass; the command line names its own flags for it.

    Parameters
    ----------
    why : str
        Message up to the colon.
    setting : str
        The argument in Python that names the outcome.
    choices : mapping of str to pair of str
        For each flag of the command line: the argument in Python, and when to give it.
    """

    def __init__(
        self, why: str, setting: str, choices: Mapping[str, tuple[str, str]] = _DIRECTIONS
    ) -> None:
        self.why, self.choices = why, choices
        calls = [f"{setting}, {argument} {when}" for argument, when in choices.values()]
        super().__init__(f"{why}: write {', or '.join(calls)}")


@lru_cache(1 << 16)
def split_words(column: str) -> tuple[str, ...]:
    """Return the words of a column's name, in lower case.

    Examples
    --------
    >>> split_words("isCorrect v2")
    ('is', 'correct', 'v2')
    """
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", column).lower()
    return tuple(word for word in re.split(r"[\W_]+", words) if word)


def means_pass(column: str) -> bool | None:
    """Return whether a 1 in a column of this name is a pass; None where the name does not say.

    Examples
    --------
    >>> [means_pass(name) for name in ("is_correct", "error", "value", "not_passed")]
    [True, False, None, None]
    """
    words = set(split_words(column))
    passes, fails = bool(words & _PASS), bool(words & _FAIL)
    return None if passes == fails or words & _NOT else passes


def read_direction(column: str) -> bool | None:
    """Return whether a 1 is a pass where the whole name says so; None where the caller has to.

    Examples
    --------
    >>> names = ("is_correct", "error", "attack_success", "correct_answer", "score")
    >>> [read_direction(name) for name in names]
    [True, False, None, None, None]
    """
    words = split_words(column)
    core = set(words) - _BESIDE
    # correct_answer is the key
    if core and core <= _CLEAR and words[-1] not in ANSWERS:
        return True
    return False if means_pass(column) is False else None


def require_direction(column: str, *, one_is_pass: bool) -> None:
    """Raise if a column's name contradicts the direction in which it is read by default.

    Parameters
    ----------
    column : str
        Name of a column of outcomes or scores.
    one_is_pass : bool
        Whether 1 is read as a pass by default.

    Raises
    ------
    DirectionError
        If the name says the opposite.
    """
    if means_pass(column) is not (not one_is_pass):
        return
    name, default = ("failure", "pass") if one_is_pass else ("pass", "failure")
    why = (
        f"{column!r} is named as if 1 were a {name}, and 1 is read as a {default} unless you say so"
    )
    raise DirectionError(why, f"{'scores' if one_is_pass else 'outcome'}={column!r}")


def names_outcome(column: str) -> bool:
    """Return whether a name says no more than how an answer was scored, such as ``judge_score``.

    Examples
    --------
    >>> [names_outcome(name) for name in ("passed", "judge_score", "feedback", "error_in_prompt")]
    [True, True, True, False]
    >>> [names_outcome(name) for name in ("judge_comment", "comment", "judge_name")]
    [True, False, False]
    """
    words = split_words(column)
    if words and words[-1] in _REMARKS and _GRADERS & set(words):
        return True
    core = [word for word in words if word not in _BESIDE]
    if not core:
        return False
    return core[-1] in _GRADES or all(word in _PASS | _FAIL for word in core)


def tell_rows_apart(frame: pl.DataFrame, key: Sequence[str]) -> str:
    """Say which column tells rows of one key apart, by its name and values; or how to name it."""
    for name in (column for column in frame.columns if column not in key):
        words = split_words(name) or [""]
        is_repeat = words[-1] in _WORDS["repeats"]
        is_named = is_repeat or words[0] in _WORDS["models"]
        if is_named and not frame.select(pl.struct(*key, name).is_duplicated().any()).item():
            flag = "--repeat" if is_repeat else "--model-column"
            return f"the column {name!r} tells them apart: add {flag} {name}"
    return (
        "name the column of the models or repeats (--model-column or --repeat, in Python model= or "
        "repeat=), or leave the id out, and each row is an example"
    )


def holds_question(column: str) -> bool:
    """Return whether a name says that a column holds the question.

    Examples
    --------
    >>> [holds_question(name) for name in ("prompt", "user_question", "prompt_chars")]
    [True, True, False]
    """
    words = split_words(column)
    return bool(words) and words[-1] in PROMPTS


def holds_answer(column: str) -> bool:
    """Return whether a name says that a column holds a model's answer, not the answer key.

    Examples
    --------
    >>> [holds_answer(name) for name in ("model_answer", "gold_answer", "prediction", "question")]
    [True, False, True, False]
    """
    words = split_words(column)
    return bool(words) and words[-1] in ANSWERS and not _KEYS & set(words[:-1])


def spells_answer(column: str) -> bool:
    """Return whether a name says that a column holds answers or the answer key, which are texts.

    Examples
    --------
    >>> [spells_answer(name) for name in ("model_answer", "target", "answer_length")]
    [True, True, False]
    """
    words = split_words(column)
    return bool(words) and words[-1] in (ANSWERS | _KEYS) - OUTCOMES - _PASS


def measures_answer(column: str) -> bool:
    """Return whether a name is of a measure of an answer: length, turns, finish reason, judge.

    Examples
    --------
    >>> [measures_answer(name) for name in ("response_chars", "n_turns", "prompt_chars")]
    [True, True, False]
    """
    return bool(_MEASURED.fullmatch("_".join(split_words(column))))


def happens_during(column: str) -> bool:
    """Return whether a name is of something that happened while an agent ran.

    Examples
    --------
    >>> [happens_during(name) for name in ("n_observations", "last_action", "n_steps")]
    [True, True, False]
    """
    return bool(_DURING.fullmatch("_".join(split_words(column))))


def names_other_score(column: str, outcome: str) -> bool:
    """Return whether a column is another scorer's score, by its name and the name of the outcome.

    Inspect and groundfault begin the names of scores, a scorer each, with ``score_``.

    Examples
    --------
    >>> names_other_score("score_includes", outcome="score_match")
    True
    >>> names_other_score("score_of_game", outcome="error")
    False
    """
    return all(name.startswith("score_") for name in (column, outcome))


def describes_answer(column: str) -> bool:
    """Return whether a name says that a column is about a model's answer, not about the example.

    Examples
    --------
    >>> [describes_answer(name) for name in ("model_answer", "gold_answer", "answer_parsed")]
    [True, False, True]
    """
    return measures_answer(column) or holds_answer(column)


def names_a_thing(column: str) -> bool:
    """Return whether a column's name says that it holds ids, hashes or seeds.

    Examples
    --------
    >>> [names_a_thing(name) for name in ("item_id", "row index", "width")]
    [True, True, False]
    """
    return _NAMES_A_THING.search(column) is not None


def open_conversation(value: Any) -> list[dict[str, Any]]:
    """Return the messages, turns or spans of one run from a log or a cell of a table.

    Parameters
    ----------
    value : str, list or dict
        JSON text is parsed; of a mapping, its list of messages is taken.

    Returns
    -------
    list of dict
        Empty if the value is no conversation.

    Examples
    --------
    >>> open_conversation('{"messages": [{"role": "user", "content": "hi"}]}')
    [{'role': 'user', 'content': 'hi'}]
    """
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            value = _parse_leniently(value)
    if isinstance(value, dict):
        value = next((value[k] for k in _LISTS if isinstance(value.get(k), list)), None)
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def tell_conversation(value: Any) -> str:
    """Return the messages of a run, a line each, with their speakers and the tools they call.

    Examples
    --------
    >>> call = {"function": {"name": "pay"}}
    >>> print(tell_conversation([{"role": "user", "content": "Pay."},
    ...                          {"role": "assistant", "tool_calls": [call]}]))
    user: Pay.
    assistant: calls pay
    """
    lines = []
    for item in open_conversation(value):
        speaker = next((item[k] for k in ("role", "source", "name") if item.get(k)), "step")
        said = next((item[k] for k in ("content", "text", "action", "output") if item.get(k)), "")
        calls = [c for c in item.get("tool_calls") or () if isinstance(c, dict)]
        names = [read_attributes(c.get("function")).get("name") or c.get("name") for c in calls]
        words = said if isinstance(said, str) else msgspec.json.encode(said, enc_hook=str).decode()
        lines.append(
            " ".join([f"{speaker}:", *filter(None, [words]), *(f"calls {n}" for n in names)])
        )
    return "\n".join(lines)


def read_attributes(value: Any) -> dict[str, Any]:
    """Return attributes as a mapping; OTLP writes them as a list of typed values."""
    if isinstance(value, list):
        pairs = [(one.get("key"), one.get("value")) for one in value if isinstance(one, dict)]
        return {str(key): _read_typed(typed) for key, typed in pairs}
    return value if isinstance(value, dict) else {}


def _read_typed(typed: Any) -> Any:
    """Return a value of OTLP, such as ``{"intValue": "3"}``: its whole numbers are in quotes."""
    kind, value = next(iter(typed.items()), ("", None)) if isinstance(typed, dict) else ("", typed)
    is_whole = kind == "intValue" and str(value).lstrip("-").isdecimal()
    return int(str(value)) if is_whole else value


def _parse_leniently(value: str) -> Any:
    """Return a value parsed from JSON that may hold NaN, as Python writes it; None if it fails."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def holds_conversations(values: pl.Series) -> bool:
    """Return whether a column holds conversations of runs, not prompts.

    A column named like a question holds a chat that the model was given.
    """
    if holds_question(values.name):
        return False
    if isinstance(values.dtype, pl.List) and isinstance(values.dtype.inner, pl.Struct):
        return _is_message({field.name for field in values.dtype.inner.fields})
    if values.dtype != pl.String:
        return False
    some = values.drop_nulls().head(_LOOKED_AT)
    return bool(len(some)) and all(
        text.lstrip()[:1] in ("[", "{")
        and (items := open_conversation(text))
        and _is_message({*items[0]})
        and any(item.get("role") not in _ASKERS for item in items)
        for text in some
    )


def list_conversations(frame: pl.DataFrame) -> list[str]:
    """Return the columns that hold conversations."""
    return [column.name for column in frame if holds_conversations(column)]


def has_transcripts(frame: pl.DataFrame) -> bool:
    """Return whether rows are runs whose steps can be read, from their logs or from a column."""
    return TRANSCRIPT in frame.columns or bool(list_conversations(frame))


def _is_message(keys: set[str]) -> bool:
    return bool(
        keys & _SPANS
        or (keys & _SPEAKERS and keys & {"content", "tool_calls", "parts", "text"})
        or {"action", "observation"} <= keys
    )
