"""An attack: a world, what is promised in it, and how to see whether the promise was broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    """A promise and a world made to break it.

    Attributes
    ----------
    point : int
        Number of the promise in the list of attacks; several may share one.
    name : str
        What the world is called in tables, in a few words; with the point, it is unique.
    world : str
        What is true in the world, and what is done, in one sentence.
    promise : str
        What holds there, in one sentence.
    before : str
        The figure before anything was mended, as it was reported.
    statistic : str
        What is counted: "rate of builds that fail".
    trial : callable
        Of a seed, whether that happened. The seeds are 0, 1, 2, ...; a trial runs the public API or
        a command, and depends on nothing but its seed.
    at_most, at_least : float, optional
        What is promised of the rate, from 0 to 1; at least one of the two.
    replicates : int
        Trials where nobody asks for another number.

    Raises
    ------
    ValueError
        If a sentence is empty, nothing is promised, or a number is out of its range.
    """

    point: int
    name: str
    world: str
    promise: str
    before: str
    statistic: str
    trial: Callable[[int], bool]
    at_most: float | None = None
    at_least: float | None = None
    replicates: int = 200

    def __post_init__(self) -> None:
        sentences = (self.name, self.world, self.promise, self.before, self.statistic)
        if not all(text.strip() for text in sentences):
            raise ValueError("name, world, promise, before and statistic need words")
        if self.point < 1 or self.replicates < 1:
            raise ValueError("point and replicates must be at least 1")
        if self.at_most is None and self.at_least is None:
            raise ValueError(f"{self.name}: say at_most or at_least, or nothing is promised")
        least, most = self.at_least or 0.0, 1.0 if self.at_most is None else self.at_most
        if not 0 <= least <= most <= 1:
            raise ValueError(f"{self.name}: a rate is from 0 to 1, and at_least not above at_most")

    @property
    def label(self) -> str:
        """Point and name, as rows of tables begin."""
        return f"{self.point}. {self.name}"
