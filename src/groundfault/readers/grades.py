"""Outcomes that a table writes in words, letters or on a scale, read as numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from shlex import quote

import polars as pl

from groundfault.core.column_meaning import DirectionError, read_direction, require_direction
from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.values import NO_VALUE

_INSPECT = {"C": 1.0, "P": 0.5, "I": 0.0}
_NO_ANSWER = "N"
_LETTERS = "C as 1, P as 0.5, I as 0, and 1 is a pass"
_VERDICTS = dict.fromkeys("pass passed correct right success successful solved".split(), 1.0)
_VERDICTS |= dict.fromkeys("fail failed incorrect wrong failure unsuccessful unsolved".split(), 0.0)
_FLAGS = {"yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "true": 1.0, "false": 0.0, "t": 1.0, "f": 0.0}
# with an F and no E they are marks, not the letters of a multiple choice
_MARKS = {"a": 1.0, "b": 0.75, "c": 0.5, "d": 0.25, "f": 0.0}
_STEP = 0.075
"""Value of a plus or a minus, as in grade points: 0.3 of 4."""
_MARKS |= {f"{m}+": min(1.0, w + _STEP) for m, w in _MARKS.items() if w} | {
    f"{m}-": w - _STEP for m, w in _MARKS.items() if w
}
_LARGEST_MARK, _ALL = 20.0, 100.0
"""Best value of the largest scale of marks; larger values, up to 100, are percentages."""


def read_grades(
    frame: pl.DataFrame,
    outcome: str,
    positive_is_good: bool | None,
    null_outcome: str | None,
    scale: tuple[float, float] | None = None,
    passes: Sequence[str] = (),
) -> tuple[pl.DataFrame, bool, str | None, str]:
    """Read a table's outcome as numbers, whether 1 is a pass, the status of empty ones, and how.

    Numbers in [0, 1] do not change. Inspect's letters, as in ``score_match`` of ``samples_df``, are
    C for 1, P for a half and I for 0; N is no answer, refused by default. Words such as passed and
    failed, marks from A to F, and yes and no if the column's name says which is good, are read with
    a warning that states their values.

    Parameters
    ----------
    frame : polars.DataFrame
    outcome : str
        Column of the outcome.
    positive_is_good : bool, optional
        The caller's choice; by default 1 is a pass in a column named like ``correct`` or
        ``passed``, else a failure, which the column's name must not contradict.
    null_outcome : str, optional
    scale : pair of float, optional
        Worst and best value.
    passes : sequence of str
        Values that are passes; all other values are then failures.

    Raises
    ------
    InputError
        If the column's name contradicts the direction, letters would be read in the wrong
        direction, or only the caller can know which values are passes.
    """
    frame = _drop_empty(frame, outcome, passes)
    values = frame[outcome].drop_nulls() if outcome in frame.columns else pl.Series([])
    if passes and len(values):
        return _read_passes(frame, outcome, passes), True, null_outcome, ""
    if values.dtype == pl.String and len(values):
        numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
        if not numbers.null_count():
            column = pl.col(outcome).str.strip_chars().cast(pl.Float64)
            frame, values = frame.with_columns(column), numbers
    if values.dtype.is_numeric():
        frame = _rescale(frame, outcome, values, scale)
    if scale is not None and values.dtype.is_numeric():
        return frame, positive_is_good is not False, null_outcome, ""
    if not len(values) or values.dtype not in (pl.String, pl.Categorical, pl.Enum):
        if positive_is_good is not None:
            return frame, positive_is_good, null_outcome, ""
        if read_direction(outcome):
            return frame, True, null_outcome, f"1 in {outcome} as a pass"
        require_direction(outcome, one_is_pass=False)
        return frame, False, null_outcome, ""
    words, column = values.cast(pl.String), pl.col(outcome).cast(pl.String)
    if words.is_in([*_INSPECT, _NO_ANSWER]).all() and words.is_in(list(_INSPECT)).any():
        if positive_is_good is False:
            raise InputError(
                f"outcome {outcome!r} holds Inspect's letters, of which C is correct: leave out "
                "positive_is_good=False (--positive-is-bad)"
            )
        worth = column.replace_strict(_INSPECT, default=None, return_dtype=pl.Float64)
        if null_outcome is None and (words == _NO_ANSWER).any() and len(words) == frame.height:
            null_outcome = str(Status.REFUSED)
        return frame.with_columns(worth), True, null_outcome, _LETTERS
    worths = _find_worths({word.strip().lower() for word in words.unique()})
    if not worths:
        _ask_passes(outcome, words)
        return frame, bool(positive_is_good), null_outcome, ""
    if positive_is_good is None:
        is_told = not worths.keys() <= _FLAGS.keys()
        positive_is_good = True if is_told else read_direction(outcome)
    pairs = ", ".join(f"{word} as {worth:g}" for word, worth in sorted(worths.items()))
    if positive_is_good is None:
        why = f"outcome {outcome!r} has {pairs}, and its name does not say if 1 is a pass"
        raise DirectionError(why, f"outcome={outcome!r}")
    is_what, other = ("pass", "bad") if positive_is_good else ("failure", "good")
    how = f"{pairs}, and 1 is a {is_what}"
    warnings.warn(
        f"outcome {outcome!r}: {how} (positive_is_good={not positive_is_good}, or "
        f"--positive-is-{other}, turns it round)",
        stacklevel=3,
    )
    spelled = column.str.strip_chars().str.to_lowercase()
    worth = spelled.replace_strict(worths, return_dtype=pl.Float64)
    return frame.with_columns(worth.alias(outcome)), positive_is_good, null_outcome, how


def _drop_empty(frame: pl.DataFrame, outcome: str, passes: Sequence[str]) -> pl.DataFrame:
    """Return a table whose outcome is missing where its words say so, such as N/A beside Pass."""
    if frame.schema.get(outcome) not in (pl.String, pl.Categorical, pl.Enum):
        return frame
    words = frame[outcome].cast(pl.String).str.strip_chars().str.to_lowercase()
    rest = {*words.drop_nulls().unique()} - {*NO_VALUE}
    numbers = pl.Series([*rest], dtype=pl.String).cast(float, strict=False)
    is_told = passes or _find_worths(rest) or not numbers.null_count()
    if not is_told or {*NO_VALUE} & {word.lower() for word in passes}:
        return frame
    return frame.with_columns(pl.when(~words.is_in(NO_VALUE)).then(outcome))


def holds_verdicts(column: pl.Series) -> bool:
    """Return whether a column's values are words such as passed and failed; some may be N/A."""
    words = {*column.drop_nulls().cast(pl.String).str.strip_chars().str.to_lowercase()}
    return bool(words - {*NO_VALUE}) and words <= {*_VERDICTS, *NO_VALUE}


def _read_passes(frame: pl.DataFrame, outcome: str, passes: Sequence[str]) -> pl.DataFrame:
    """Return a table whose outcome is 1 for the values that are passes and 0 for others."""
    words = frame[outcome].cast(pl.String).str.strip_chars()
    for name in passes:
        if not (words == name).any():
            seen = ", ".join(words.drop_nulls().unique().sort()[:_MAX_WORDS])
            raise InputError(
                f"passes (--passes) names {name!r}, which no row has in outcome {outcome!r}; "
                f"there are {seen}"
            )
    return frame.with_columns(words.is_in(list(passes)).cast(pl.Float64).alias(outcome))


def _rescale(
    frame: pl.DataFrame, outcome: str, values: pl.Series, scale: tuple[float, float] | None
) -> pl.DataFrame:
    """Return a table whose numbers are in [0, 1], by a scale where one is named."""
    values = values.cast(pl.Float64).filter(values.is_finite())
    worst, best = scale or (0.0, 1.0)
    if worst == best:
        raise InputError(f"scale (--scale) names {worst:g} as worst and as best; name two")
    outside = values.filter(~values.is_between(min(worst, best), max(worst, best)))
    if not len(outside):
        return frame.with_columns((pl.col(outcome) - worst) / (best - worst)) if scale else frame
    low, high = (float(end) for end in (values.min(), values.max()))  # type: ignore[arg-type]
    if len(outside) == 1 and outside[0] == high == float(values.sum()) - high > 2:
        raise InputError(
            f"outcome {outcome!r} has {high:g} in one row, the sum of all others: leave out that "
            "row of totals"
        )
    is_percent = low >= 0 and _LARGEST_MARK < high <= _ALL
    least, most = (0.0, _ALL) if is_percent else (low, high)
    ends = {(least, most): most, (most, least): least}
    choices = {
        f"--scale {a:g} {b:g}": (f"scale=({a:g}, {b:g})", f"if {good:g} is best")
        for (a, b), good in ends.items()
    }
    raise DirectionError(
        f"outcome {outcome!r} goes from {low:g} to {high:g}, and {len(outside):,} of its values "
        f"are not in [{min(worst, best):g}, {max(worst, best):g}]; name the worst and the best "
        "value of its scale",
        f"outcome={outcome!r}",
        choices,
    )


def _ask_passes(outcome: str, words: pl.Series) -> None:
    """Raise with the command to type, because a few words may be passes or failures."""
    seen = words.str.strip_chars().unique().sort().to_list()
    if not 1 < len(seen) <= _MAX_WORDS:
        return
    first = next((word for word in seen if _VERDICTS.get(word.lower())), seen[0])
    when = f"if {first} alone is a pass; repeat --passes for each value that is one"
    choices = {f"--passes {quote(first)}": (f"passes=[{first!r}]", when)}
    raise DirectionError(
        f"outcome {outcome!r} has {', '.join(seen)}, and only you know which values are passes",
        f"outcome={outcome!r}",
        choices,
    )


_MAX_WORDS = 12
"""Most distinct values of a column of words that may be an outcome: marks from A to F, twice."""


def _find_worths(words: set[str]) -> dict[str, float]:
    """Return the value of each word if all words are of one kind; else an empty mapping."""
    for kind in (_VERDICTS, _FLAGS, _MARKS):
        is_told = kind is not _MARKS or "f" in words or any(len(word) > 1 for word in words)
        if words <= kind.keys() and is_told:
            return {word: kind[word] for word in words}
    return {}
