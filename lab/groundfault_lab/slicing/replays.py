"""Replays: a finder's whole search, repeated on errors dealt out at random."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np
import polars as pl

from groundfault.base.arrays import Floats, Ints
from groundfault.base.long_work import enough_threads
from groundfault.core.candidate import Candidate, Library
from groundfault.core.evidence import Evidence
from groundfault.core.units import Marks, Units, average_losses

PROBABILITY = "probability*"
"""Columns of class probabilities, unless a finder names others."""

LEVEL = 0.05
"""A slice whose p is above this is called what chance gives."""

# equal statistics computed for different slices may differ in the last digits; a tie counts against
_TIE = 1e-9

Search = Callable[[Evidence], Sequence[Candidate]]


def measure_chance(
    discovery: Evidence,
    slices: Sequence[Candidate],
    search: Search,
    finder: object,
    searches: int,
    rng: np.random.Generator,
) -> tuple[float, ...]:
    """Return the p-value of each slice of a search.

    The share of searches on permuted errors as good.

    Parameters
    ----------
    discovery : Evidence
        What the finder searched.
    slices : sequence of Candidate
        What was proposed.
    search : callable
        Proposes slices from evidence in the same way, as many of them as are kept.
    finder : finder
        Its predictions, where it reads some, are dealt out together with the errors.
    searches : int
        Number B of searches; p-values are (1 + searches as good) / (B + 1).
    rng : numpy.random.Generator

    Returns
    -------
    tuple of float
        One for each slice.

    Notes
    -----
    How good a slice is: its lift over the standard deviation that dealing the errors gives it. The
    p-value is exact for the best slice, whatever the search does, if units of like rows are
    exchangeable, and conservative for the others (Westfall and Young 1993, single step).
    """
    scores = _score(discovery, slices)
    columns = _prediction_columns(discovery, finder)
    best = np.empty(searches)
    for i in range(searches):
        shuffle = deal_outcomes(discovery, rng, columns)
        with warnings.catch_warnings():
            # that a search finds nothing is an answer here
            warnings.simplefilter("ignore")
            best[i] = _score(shuffle, search(shuffle)).max(initial=-np.inf)
    exceed = (best[:, None] >= scores - _TIE * np.abs(scores)).sum(axis=0)
    return tuple(((1 + exceed) / (1 + searches)).tolist())


def deal_outcomes(
    evidence: Evidence, rng: np.random.Generator, columns: Sequence[str] = ()
) -> Evidence:
    """Return the same evidence with outcomes dealt out anew among its units.

    The rows of a unit stay together, and units change places with units of the same models and as
    many rows.

    Parameters
    ----------
    evidence : Evidence
    rng : numpy.random.Generator
    columns : sequence of str
        Columns that go with the outcomes.
    """
    order = np.empty(len(evidence), dtype=np.int64)
    for deck in _stack_units(evidence):
        order[deck] = deck[rng.permutation(len(deck))]
    roles = evidence.roles
    names = [c for c in (roles.outcome, roles.status, *columns) if c in evidence.frame.columns]
    return replace(
        evidence,
        frame=evidence.frame.with_columns(evidence.frame.select(names)[order]),
        loss=evidence.loss[order],
        status=evidence.status[order],
        fixed_attributes=evidence.attributes,
        fixed_models=evidence.models,
    )


def describe_chance(best: float | None, searches: int, level: float = LEVEL) -> str:
    """Say in a sentence beside a list of slices how they compare with those of chance.

    Parameters
    ----------
    best : float, optional
        Smallest p of the slices; None where the search was not repeated.
    searches : int
        Searches on permuted errors.
    level : float
        In (0, 1).
    """
    always = "slices are always found, also in noise"
    if best is None:
        return f"{always}, and how good chance makes them was not computed"
    as_good = round(best * (1 + searches)) - 1
    share = f"{as_good:,} of {searches:,} searches on permuted errors"
    if best > level:
        return f"this is what chance gives: {share} find one as good; {always}"
    return f"{always}; chance gives one as good as the best of these in {share}"


def _score(evidence: Evidence, candidates: Sequence[Candidate]) -> Floats:
    """Return lifts over their standard deviations when errors are dealt out.

    Shape (candidates,).
    """
    if not candidates:
        return np.zeros(0)
    losses = average_losses(evidence)
    scored = ~np.isnan(losses)
    count = scored.sum(axis=0)
    mean = np.where(scored, losses, 0.0).sum(axis=0) / np.where(count, count, np.nan)
    with enough_threads(evidence.unit_count * len(candidates)):
        tables = Units.of(Marks.of(evidence, Library.of(candidates)), mean[None]).tables
    with np.errstate(divide="ignore", invalid="ignore"):
        z = tables.lift / np.sqrt(np.nanvar(mean) * (1 / tables.on + 1 / tables.off))
    return np.where(np.isfinite(z), z, -np.inf)


def _stack_units(evidence: Evidence) -> list[Ints]:
    """Return rows of the units of each composition, shape (units, rows of a unit)."""
    role = evidence.roles.model
    models = pl.repeat("", len(evidence), eager=True) if role is None else evidence.frame[role]
    rows = pl.DataFrame({"unit": evidence.unit_index, "model": models.cast(pl.String)})
    rows = rows.with_row_index("row")
    # by model, so that a loss never goes to a row of another model
    units = rows.sort("unit", "model", "row").group_by("unit", maintain_order=True)
    alike = units.agg("model", "row").group_by("model", maintain_order=True).agg("row")
    return [np.array(decks.to_list(), dtype=np.int64) for decks in alike["row"]]


def _prediction_columns(evidence: Evidence, finder: object) -> list[str]:
    """Return columns of predictions that a finder reads: apart from them an error would be none."""
    if not hasattr(finder, "label"):
        return []
    patterns = (str(finder.label), getattr(finder, "probability", None) or PROBABILITY)
    return [c for c in evidence.frame.columns if any(fnmatchcase(c, p) for p in patterns)]
