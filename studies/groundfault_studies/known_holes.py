"""Known holes: prompts, and the answers of small language models that never saw some of them.

Thirteen models that lacked one region of their training world each, and controls that lacked none,
answered the same 10,000 prompts. A method sees a sample of them; what it says is scored on all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.long_work import stream
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, PlanError
from groundfault_studies.rule_methods import Description
from groundfault_studies.rule_scores import score_rules
from groundfault_studies.shared_folder import find_shared

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

FOLDER = Path("real") / "known_holes"

_FILES = ("examples.parquet", "outcomes.parquet", "inside.parquet", "holes.json")
_ID, _TEXT, _HIDDEN = "example_id", "prompt", ("target",)
# rules that a stored row holds, to be read
_KEPT = 10
_CHARACTERS = 300


@dataclass(frozen=True)
class HoleData:
    """The prompts, and what the models made of them.

    Attributes
    ----------
    folder : Path
    examples : polars.DataFrame
        Id, prompt and attributes, a row a prompt.
    errors : mapping of str to float64 array, shape (prompts,)
        By model, 1 where its answer is wrong.
    holes : mapping of str to (str, bool array of shape (prompts,), or None)
        By model, the rule of what it never saw and where that holds; None for controls.
    digest : str
        Of the files.
    """

    folder: Path
    examples: pl.DataFrame
    errors: Mapping[str, Floats]
    holes: Mapping[str, tuple[str, Bools | None]]
    digest: str

    @property
    def models(self) -> tuple[str, ...]:
        """Names of all models."""
        return tuple(self.holes)

    def sample(self, size: int, draw: int) -> Bools:
        """Which prompts a method sees, the same for every method and model."""
        rows = stream(draw, "known holes", size).choice(
            self.examples.height, size, replace=False, shuffle=False
        )
        drawn = np.zeros(self.examples.height, dtype=np.bool_)
        drawn[rows] = True
        return drawn

    def evidence(self, model: str, rows: Bools, columns: bool) -> Evidence:
        """A model's results on some prompts, with attributes or with the prompt's text alone."""
        table = self.examples if columns else self.examples.select(_ID, _TEXT)
        table = table.with_columns(error=self.errors[model]).filter(rows)
        return Evidence.from_table(table, id=_ID, outcome="error")


@cache
def read_holes(folder: Path) -> HoleData:
    """Read the data.

    Raises
    ------
    InputError
        If a file is not there or not what it should be.
    """
    lacking = [name for name in _FILES if not (folder / name).is_file()]
    if lacking:
        raise InputError(
            f"{folder} lacks {', '.join(lacking)}: name the folder with --shared (it holds "
            f"{FOLDER}, or these files themselves), or set $GROUNDFAULT_SHARED; the files are "
            "drawn, trained and answered anew by worlds.py and train.py beside them"
        )
    try:
        examples, outcomes, inside = (pl.read_parquet(folder / name) for name in _FILES[:3])
        rules = json.loads((folder / _FILES[3]).read_text(encoding="utf-8"))
        ids = examples.select(_ID)
        errors, holes = {}, {}
        for model, about in rules.items():
            answers = outcomes.filter(pl.col("model") == model)
            joined = ids.join(answers, on=_ID, how="left", maintain_order="left", validate="1:1")
            errors[model] = 1.0 - joined["correct"].cast(pl.Float64).to_numpy()
            name = model.partition("#")[0]
            where = ids.join(inside, on=_ID, how="left", maintain_order="left")
            hole = where[name].to_numpy() if name in where.columns else None
            holes[model] = (str(about["never_saw"]), hole)
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{folder} does not hold what this study reads ({error})") from None
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in _FILES)).hexdigest()
    shown = examples.drop(_HIDDEN, strict=False)
    return HoleData(folder, shown, errors, holes, digest[:12])


def find_folder(shared: str | Path | None) -> Path:
    """The folder of the data, by the folder that it is in or by itself."""
    folder = find_shared(shared)
    return folder if (folder / _FILES[-1]).is_file() else folder / FOLDER


def score_descriptions(
    descriptions: Sequence[Description],
    data: HoleData,
    model: str,
    sample: Bools,
    population: pl.DataFrame,
) -> dict[str, Any]:
    """Scores of what was said of a model after a sample, with the text of the first rules.

    Parameters
    ----------
    descriptions : sequence of Description
    data : HoleData
    model : str
    sample : bool array, shape (prompts,)
        What the method saw.
    population : polars.DataFrame
        A row a prompt, with the columns that the rules read.
    """
    holds = [description.apply(population) for description in descriptions]
    scores = score_rules(holds, data.errors[model], ~sample, data.holes[model][1])
    texts = [description.text[:_CHARACTERS] for description in descriptions[:_KEPT]]
    return scores | {"rules": texts}


def check_names(names: Sequence[str] | None, known: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """Return the names in the order of those that are known, all of them for None.

    Raises
    ------
    PlanError
        If one is not known.
    """
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise PlanError(f"no {kind} {unknown[0]!r}; there are {', '.join(known)}")
    return tuple(known if names is None else [name for name in known if name in names])
