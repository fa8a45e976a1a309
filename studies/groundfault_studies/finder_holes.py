"""Holes that slice finders name: the leaderboard's column of known truth.

A finder is shown all outcomes of a sample of prompts, with an embedding of their words, and its
proposals are scored on all prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from groundfault.base.long_work import Progress
from groundfault_studies.cause_tables import WELL, SizeCell, count_named
from groundfault_studies.known_holes import HoleData, read_holes, score_descriptions
from groundfault_studies.matrices import with_embedding
from groundfault_studies.resuming import Rows, resume_parts
from groundfault_studies.rule_methods import propose

PROMPTS = 2000


def name_holes(
    finders: Mapping[str, tuple[str, dict[str, Any]]],
    folder: Path,
    draws: int,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, str]:
    """By finder, how many holes one of its first five proposals names, and one of all.

    Medians over draws, such as ``5 (7) of 13``.

    Parameters
    ----------
    finders : mapping of str to pair of str and dict
        Finders and their settings, by the name of a row.
    folder : path
        Of the known holes.
    draws : int
        Samples of 2,000 prompts.
    keep : path, optional
        File of what is done.
    progress : callable, optional

    Raises
    ------
    InputError
        If the data are not there.
    """
    data = read_holes(folder)
    models = [model for model, (_, hole) in data.holes.items() if hole is not None]
    parts = {
        f"{name} {settings} / {model} / draw {draw} / data {data.digest}": (
            name,
            finder,
            settings,
            folder,
            model,
            draw,
        )
        for draw, model, (name, (finder, settings)) in product(
            range(draws), models, finders.items()
        )
    }
    rows = resume_parts(parts, measure, keep, progress=progress)
    medians = {
        (name, where): np.median(
            SizeCell.of(rows, name, PROMPTS, models).each(count_named(where, WELL))
        )
        for name, where in product(finders, ("first", "all"))
    }
    return {
        name: f"{medians[name, 'first']:.0f} ({medians[name, 'all']:.0f}) of {len(models)}"
        for name in finders
    }


def measure(
    name: str, finder: str, settings: Mapping[str, Any], folder: Path, model: str, draw: int
) -> Rows:
    """One row: a finder's proposals after one sample, scored."""
    data = _embed(folder)
    sample = data.sample(PROMPTS, draw)
    proposals = propose(data.evidence(model, sample, True), finder, settings)
    row = {"method": name, "model": model, "n": PROMPTS, "draw": draw}
    return [row | score_descriptions(proposals, data, model, sample, data.examples)]


@cache
def _embed(folder: Path) -> HoleData:
    """The data with a column ``embedding``: components of the weighted words of all prompts."""
    data = read_holes(folder)
    everything = np.ones(data.examples.height, dtype=np.bool_)
    evidence = data.evidence(data.models[0], everything, True)
    column = with_embedding(evidence, "prompt").frame["embedding"]
    return replace(data, examples=data.examples.with_columns(embedding=column))
