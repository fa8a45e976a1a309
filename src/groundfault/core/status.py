"""Status of an observation, which keeps "could not be scored" apart from "failed"."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Why an observation has, or has not, a loss.

    Only `SCORED` observations have one. The others are counted in every report and never enter a
    failure rate; the report says whether its verdicts would change had all of them failed, or all
    passed. ``error`` is a failure of the evaluation, such as a time-out of the service;
    ``artefact`` a score known to be the grader's mistake."""

    SCORED = "scored"
    ERROR = "error"
    REFUSED = "refused"
    UNPARSED = "unparsed"
    ARTEFACT = "artefact"
    MISSING = "missing"


COUNTABLE = (Status.UNPARSED, Status.REFUSED, Status.ERROR, Status.MISSING)
"""Statuses that a caller may count as failures. An artefact is known to be no failure."""

UNSCORED = tuple(status for status in Status if status is not Status.SCORED)
