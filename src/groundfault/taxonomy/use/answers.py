"""Answers of one new model, matched with the examples of a taxonomy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from groundfault.core.evidence import Evidence
from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.taxonomy.fitting.taxonomy import Taxonomy

Bools = NDArray[np.bool_]

_LEAST = 1e-9  # a score of 1 - 0.3 reaches 0.7


def match_answers(results: Evidence | None, taxonomy: Taxonomy) -> tuple[Bools, Bools, int]:
    """Which of the taxonomy's examples a model answered and failed; how many others.

    Repeats are reduced by the taxonomy's rule of what a pass is.

    Raises
    ------
    InputError
        As `diagnose` does.
    """
    matrix, n = taxonomy.matrix, len(taxonomy.matrix)
    passes, tries = np.zeros((2, n), dtype=np.int64)
    if results is None:
        return tries > 0, tries > 0, 0
    _check_one_model(results.models, taxonomy.matrix.models)
    if results.roles.id is None:
        raise InputError(
            "the answers have no ids, so it is not known which examples they are of: name the "
            "column (id=)"
        )
    at = {name: i for i, name in enumerate(matrix.examples)}
    names = results.frame[results.roles.id].cast(str).to_list()
    is_scored_row = (results.status == Status.SCORED).to_list()
    loss = results.loss.fill_null(1.0).to_list()
    for name, is_scored, value in zip(names, is_scored_row, loss, strict=True):
        if is_scored and name in at:
            tries[at[name]] += 1
            passes[at[name]] += 1 - value >= taxonomy.settings.score - _LEAST
    # examples that were set apart are the taxonomy's too, and no sign of other ids
    unknown = len({name for name in names if name not in at})
    if names and unknown == len(set(names)) and not set(names) & _apart(taxonomy):
        raise InputError(
            f"none of the {unknown:,} examples answered is one of the taxonomy's: the ids do not "
            f"match; they look like {names[0]!r}, the taxonomy's like {matrix.examples[0]!r}"
        )
    return tries > 0, passes < matrix.rate * tries - _LEAST, unknown


def _apart(taxonomy: Taxonomy) -> set[str]:
    apart = taxonomy.matrix.apart
    return {*apart.all_failed, *apart.all_passed, *apart.unanswered, *apart.easy}


def _check_one_model(models: Sequence[str], fit_models: Sequence[str]) -> None:
    if len(models) > 1:
        some = ", ".join(models[:6]) + (", ..." if len(models) > 6 else "")
        raise InputError(
            f"the answers are of {len(models)} models ({some}): choose one (select_model, or "
            "--name)"
        )
    overlap = [name for name in models if name in fit_models]
    if overlap:
        raise InputError(
            f"model {overlap[0]!r} is one that the taxonomy was fitted to, so its diagnosis would "
            "be circular; fit the taxonomy without it"
        )
