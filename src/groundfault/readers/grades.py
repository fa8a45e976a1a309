"""Grades in letters, as Inspect's data frames have them: what they are worth."""

from __future__ import annotations

import polars as pl

from groundfault.core.column_names import require_direction
from groundfault.core.status import Status
from groundfault.errors import InputError

_WORTH = {"C": 1.0, "P": 0.5, "I": 0.0}
_NO_ANSWER = "N"


def read_grades(
    frame: pl.DataFrame,
    outcome: str,
    positive_is_good: bool | None,
    null_outcome: str | None,
) -> tuple[pl.DataFrame, bool, str | None]:
    """Read the table with an outcome in numbers, whether 1 is a pass, and what an empty one means.

    Of a column of Inspect's letters ``C``, ``P``, ``I`` and ``N``, such as ``score_match`` of
    ``samples_df``, C is 1, P a half and I 0; N is no answer, and refused unless said otherwise. Any
    other column stays as it is.

    Parameters
    ----------
    frame : polars.DataFrame
    outcome : str
        Column of the outcome.
    positive_is_good : bool, optional
        As the caller says; where nothing is said, the column's name must not contradict that 1 is
        a failure.
    null_outcome : str, optional

    Raises
    ------
    InputError
        If the name of the column says otherwise, or letters are to be read the wrong way round.
    """
    letters = frame[outcome].drop_nulls() if outcome in frame.columns else pl.Series([])
    known = letters.dtype == pl.String and letters.is_in([*_WORTH, _NO_ANSWER]).all()
    if not known or not letters.is_in(list(_WORTH)).any():
        if positive_is_good is None:
            require_direction(outcome, one_is_pass=False)
        return frame, bool(positive_is_good), null_outcome
    if positive_is_good is False:
        raise InputError(
            f"outcome {outcome!r} holds Inspect's letters, of which C is correct: leave out "
            "positive_is_good=False (--positive-is-bad)"
        )
    worth = pl.col(outcome).replace_strict(_WORTH, default=None, return_dtype=pl.Float64)
    if null_outcome is None and (letters == _NO_ANSWER).any() and len(letters) == frame.height:
        null_outcome = str(Status.REFUSED)
    return frame.with_columns(worth), True, null_outcome
