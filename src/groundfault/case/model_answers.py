"""The answers that a list of modes is about: one model's, or of each example one model's by lot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from groundfault.auditing.copies import join_copies
from groundfault.base.streams import stream
from groundfault.core.evidence import Evidence
from groundfault.modes.mode import EVERY_MODEL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groundfault.auditing.report import Report
    from groundfault.sequential.policies import Query

Answer = tuple[str, str]
"""Name of a unit, and of the model that answered it; empty where the table names none."""


def select_answers(evidence: Evidence, outcome: str, seed: int) -> Evidence:
    """One row an example: the answers that modes of an outcome are about.

    Parameters
    ----------
    evidence : Evidence
        One row for each example and model.
    outcome : str
        As modes have it: empty where there is one model, else a model, or ``every model``. Of the
        latter a unit has the answer of one model, drawn by the seed, if all models answered it. A
        rule that has nothing to do with failing, for the models together, has nothing to do with
        the failures among such answers, and their rate inside it is expected to be the mean rate.
    seed : int
    """
    if not outcome:
        return evidence
    if outcome != EVERY_MODEL:
        return evidence.select_model(outcome)
    whole, models = join_copies(evidence), evidence.models
    units, codes = whole.unit_index, _code_models(evidence)
    answered = np.zeros((whole.unit_count, len(models)), dtype=np.bool_)
    answered[units, codes] = True
    by_all: NDArray[np.bool_] = np.asarray(answered.all(axis=1))
    lot = stream(seed, "model of a unit").integers(len(models), size=whole.unit_count)
    chosen = (codes == lot[units]) & by_all[units]
    # the models are one here: the column that names them says whose answer a row is, and no more
    roles = evidence.roles
    roles = replace(roles, model=None, ignore=(*roles.ignore, roles.model or ""))
    return Evidence.from_frame(evidence.frame.filter(pl.Series(chosen)), roles)


def group_modes(report: Report | None) -> dict[str, list[int]]:
    """Numbers of a report's modes, from 1, by what they are about."""
    groups: dict[str, list[int]] = {}
    for number, mode in enumerate(report.modes if report else (), 1):
        groups.setdefault(mode.outcome, []).append(number)
    return groups


def count_answers(evidence: Evidence) -> int:
    """How many units of how many models there are, copies of an example counted once."""
    return len(set(name_answers(evidence)))


def name_answers(evidence: Evidence) -> list[Answer]:
    """The unit and the model of each row."""
    whole = join_copies(evidence)
    names = whole.unit_names.gather(whole.unit_index)
    return list(zip(names, _name_models(evidence), strict=True))


def name_answer(query: Query, model: str | None) -> Answer:
    """The unit and the model that a query is about; ``model`` is the column of models."""
    rows = query.case.get("examples", [query.case])
    return query.id, "" if model is None else str(rows[0][model])


def _name_models(evidence: Evidence) -> list[str]:
    column = evidence.roles.model
    if column is None:
        return [""] * len(evidence)
    return evidence.frame[column].cast(pl.String).to_list()


def _code_models(evidence: Evidence) -> NDArray[np.intp]:
    codes = {name: code for code, name in enumerate(evidence.models)}
    return np.array([codes[name] for name in _name_models(evidence)], dtype=np.intp)
