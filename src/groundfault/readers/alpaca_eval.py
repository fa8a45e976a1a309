"""AlpacaEval: annotations of which of two models answered better."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from groundfault.core.status import Status
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_file
from groundfault.readers.values import name_of, number


class _Annotation(msgspec.Struct):
    instruction: str
    generator_2: str
    generator_1: str = ""
    output_2: str | None = None
    preference: Any = None
    annotator: str | None = None
    dataset: str | None = None
    time_per_example: Any = None


class AlpacaEval:
    """Reads ``annotations.json``: 1 is a win of the model over the baseline, 0.5 a tie.

    The file's preference lies between 1 (the baseline is better) and 2 (the model is better);
    graders that give probabilities use the numbers between. There are no ids: an example is named
    by a hash of its instruction. No preference is ``missing``.
    """

    def sniff(self, path: Path) -> bool:
        """Whether it is a list of objects with an instruction, two outputs and two generators."""
        start = head(path)
        keys = (b'"instruction"', b'"output_1"', b'"generator_2"', b'"preference"')
        return (
            path.suffix == ".json"
            and start.lstrip().startswith(b"[")
            and all(key in start for key in keys)
        )

    def read(self, path: Path) -> Log:
        """One observation an annotation."""
        return Log(list(_observations(json_file(path, list[_Annotation]))), "alpaca_eval")


def _observations(annotations: list[_Annotation]) -> Iterator[Observation]:
    for position, one in enumerate(annotations, 1):
        preference = number(one.preference)
        # older graders write 0 where their own reply could not be read: neither a tie nor a loss
        value = None if preference is None or not 1 <= preference <= 2 else preference - 1
        status = (
            Status.SCORED
            if value is not None
            else Status.MISSING
            if preference is None
            else Status.UNPARSED
        )
        yield Observation(
            name_of(one.instruction),
            value,
            status,
            scorer=one.annotator or "preference",
            model=one.generator_2,
            task="AlpacaEval",
            prompt=one.instruction,
            response=one.output_2,
            attributes={"dataset": one.dataset, "baseline": one.generator_1},
            measured={
                "position": position,
                "judge": one.annotator,
                "seconds": number(one.time_per_example),
            },
        )
