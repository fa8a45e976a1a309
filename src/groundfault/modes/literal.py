"""A literal: one condition of a rule, and the units it holds for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]

MIN_SUPPORT = 8
"""Units that a rule has to hold for, at least."""

MOST = 0.8
"""Share of the units above which a condition is no mode by itself: it is what is usual."""


class Tier(IntEnum):
    """Where a literal comes from: what a reader understands best comes first.

    Those of ``PARTIAL`` name a value of a column whose gaps go with the outcome. They and those of
    one's own are never joined, since they are tested on some of the units only.
    """

    ATTRIBUTE = 0
    TEXT = 1
    WORD = 2
    PARTIAL = 3
    OWN = 4


@dataclass(frozen=True)
class Literal:
    """A condition on one column, and the units it holds for.

    Attributes
    ----------
    family : str
        What it is about. Two literals of one family are never joined.
    rule, meaning : str
        In SQL, and in English.
    cost : float
        What it costs a reader; plain equality costs nothing.
    on : bool array, shape (units,)
        Units without a value are off.
    tier : Tier
    value : str or None
        For one value of a column of categories: the value, so that values join to a set.
    bounds : pair of float, or None
        For a condition on a number: its ends, infinite where open, both inclusive as read.
    column : str
        The column that is read.
    aliases : tuple of Literal
        Others that hold for the same units; they cost more, or come later.
    tested : bool array, shape (units,), or None
        Units that it is tested on; None for all.
    source : str
        Who proposed it.
    """

    family: str
    rule: str
    meaning: str
    cost: float
    on: Bools
    tier: Tier = Tier.ATTRIBUTE
    value: str | None = None
    bounds: tuple[float, float] | None = None
    column: str = ""
    aliases: tuple[Literal, ...] = ()
    tested: Bools | None = None
    source: str = "modes"
