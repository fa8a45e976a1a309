"""Answers: functions from a query to a score, where no person gives it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from groundfault.core.column_meaning import means_pass
from groundfault.errors import InputError, require_name
from groundfault.sequential.policies import Query
from groundfault.sequential.pool import Pool

if TYPE_CHECKING:
    from groundfault.models import Target
    from groundfault.models.asking import AskOptions

Scorer = Callable[[Query], float | None]

_WORDS = {
    **dict.fromkeys(("passed", "pass", "p", "true"), 1.0),
    **dict.fromkeys(("failed", "fail", "f", "false"), 0.0),
    **dict.fromkeys(("unscored", "unscorable", "u"), None),
}


def select_fields(
    query: Query, columns: Sequence[str] = (), score_column: str | None = None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the columns of a case that a person sees, and the hidden columns.

    Parameters
    ----------
    query : Query
    columns : sequence of str
        Columns of the case; by default all that do not name an outcome, so as not to sway the
        person.
    score_column : str, optional
        A further column that is hidden.

    Raises
    ------
    InputError
        If the column does not exist.
    """
    for name in columns if query.case else ():
        require_name("column", name, query.case, InputError)
    if columns:
        return {name: value for name, value in query.case.items() if name in columns}, ()
    hidden = tuple(
        name for name in query.case if name == score_column or means_pass(name) is not None
    )
    return {name: value for name, value in query.case.items() if name not in hidden}, hidden


def replay(pool: Pool) -> Scorer:
    """Give the recorded score of each case; None without one.

    Raises
    ------
    InputError
        If the pool has no recorded scores.
    """
    scores = pool.recorded
    if scores is None or np.isnan(scores).all():
        raise InputError("the pool has no recorded scores to replay; name their column (scores)")

    def answer(query: Query) -> float | None:
        score = float(scores[pool.position[query.id]])
        return None if np.isnan(score) else score

    return answer


def command(
    arguments: Sequence[str], timeout: float | None = None, *, positive_is_good: bool = True
) -> Scorer:
    """Run a program for each case, and read the score it prints.

    The program gets a JSON object with ``step``, ``id``, ``group`` and ``case`` on standard input,
    and prints a number in [0, 1], or pass, fail, true, false or unscored, on its last line. No
    shell is involved.

    Parameters
    ----------
    arguments : sequence of str
        The program and its arguments.
    timeout : float, optional
        Seconds.
    positive_is_good : bool
        Whether a 1 that it prints is a pass; words mean themselves.
    """

    def answer(query: Query) -> float | None:
        where = f"the command failed for case {query.id!r}"
        case = dict(query.case)
        request = {"step": query.step, "id": query.id, "group": query.group, "case": case}
        text = json.dumps(request, default=str)
        try:
            result = subprocess.run(
                list(arguments), input=text, capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"{where}: no answer in {timeout:g} s; run again to go on") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{where}: {error}; run again to go on") from None
        if result.returncode:
            message = (result.stderr.strip().splitlines() or ["no message"])[-1]
            raise InputError(
                f"{where} (exit status {result.returncode}): {message[:200]}; run again to go on"
            )
        where = f"the command's answer for case {query.id!r}"
        return read_score(result.stdout, where, positive_is_good=positive_is_good)

    return answer


def model(
    target: str | Target,
    score: Callable[[str, Mapping[str, object]], float | None],
    *,
    prompt: str = "prompt",
    fresh: bool = False,
    **options: Unpack[AskOptions],
) -> Scorer:
    """Ask a language model, and score its answer: for cases without an answer so far.

    Parameters
    ----------
    target : str or Target
        See `groundfault.models`.
    score : callable
        From the answer's text and the case to a score in [0, 1], 1 a pass; None where it cannot be
        scored.
    prompt : str
        The column of the case that is put to the model.
    fresh : bool
        A case drawn a second time is asked a second time, as ``claim="rates"`` needs; else its
        answer is the same.
    **options
        As for `groundfault.models.ask`: record, temperature, timeout, ...

    Raises
    ------
    InputError
        If a case lacks the prompt, or the service gives no answer: that is not the model's failure,
        and the audit goes on when it is run again. A refusal is None: not scored.
    """
    from groundfault.models import ask, get

    service = get(target)

    def answer(query: Query) -> float | None:
        if not isinstance(query.case.get(prompt), str):
            raise InputError(f"case {query.id!r} has no text in the column {prompt!r} to ask")
        (reply,) = ask(service, [query.case[prompt]], **options, repeat=query.step if fresh else 0)
        if reply.error:
            raise InputError(f"no answer for case {query.id!r}: {reply.error}; run again to go on")
        return None if reply.refused else score(reply.text or "", query.case)

    return answer


def read_label(text: str) -> float | None:
    """Return the score that a person typed, 1 for a pass.

    Words are read, and shares of passes between 0 and 1. A bare 1 or 0 is refused: in the
    tables of some it is a pass, in those of others a failure.

    Raises
    ------
    InputError
        If it is anything else; the message says what to type.
    """
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    score = _to_number(word)
    if score in (0.0, 1.0):
        raise InputError(f"{word!r} can mean a pass or a failure: type p for passed, f for failed")
    if score is None or not 0 < score < 1:
        raise InputError(
            f"your answer is {word[:80]!r}; type p (passed), f (failed), u (cannot be scored), or "
            "the share that passed, such as 0.4"
        )
    return score


def read_score(text: str, where: str, *, positive_is_good: bool = True) -> float | None:
    """Return the score on the last line that a program printed, 1 for a pass.

    Parameters
    ----------
    text : str
    where : str
        Names the text in a message.
    positive_is_good : bool
        Whether a number of 1 is a pass; words mean themselves.

    Raises
    ------
    InputError
        If it is not a number in [0, 1] or a word for one.
    """
    last = (text.strip().splitlines() or [""])[-1].strip()
    if last.lower() in _WORDS:
        return _WORDS[last.lower()]
    score = _to_number(last)
    if score is None or not 0 <= score <= 1:
        raise InputError(
            f"{where} is {last[:80]!r}; a number in [0, 1], pass, fail or unscored is read"
        )
    return score if positive_is_good else 1 - score


def _to_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
