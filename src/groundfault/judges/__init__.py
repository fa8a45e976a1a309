"""Judges: one rule a file. `get` finds one by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

from groundfault.errors import PlanError
from groundfault.judge import Judge

NAMES = ("janus", "janus-a", "janus-lite", "split-holm", "max-t", "holm", "bh", "by", "multisplit-e")


def get(name: str) -> Judge:
    """The judge of that name, built in or registered under the entry-point group ``groundfault.judges``.

    Raises
    ------
    PlanError
        If there is none.
    """
    made = _built_in().get(name) or _plugins().get(name)
    if made is None:
        raise PlanError(f"there is no judge {name!r}; the judges are {', '.join([*NAMES, *sorted(_plugins())])}")
    return made()


@cache
def _built_in() -> dict[str, Callable[[], Judge]]:
    from groundfault.judges.full_sample import FullSample
    from groundfault.judges.janus import Janus, JanusA
    from groundfault.judges.janus_lite import JanusLite
    from groundfault.judges.max_t import MaxT
    from groundfault.judges.multisplit import MultiSplit
    from groundfault.judges.split_holm import SplitHolm

    return {
        "janus": Janus,
        "janus-a": JanusA,
        "janus-lite": JanusLite,
        "split-holm": SplitHolm,
        "max-t": MaxT,
        "holm": lambda: FullSample("holm"),
        "bh": lambda: FullSample("bh"),
        "by": lambda: FullSample("by"),
        "multisplit-e": MultiSplit,
    }


@cache
def _plugins() -> dict[str, Callable[[], Judge]]:
    from importlib.metadata import entry_points

    found: dict[str, Callable[[], Judge]] = {}
    for point in entry_points(group="groundfault.judges"):
        if point.name in NAMES or point.name in found:
            warnings.warn(f"a second judge named {point.name!r} ({point.value}) is passed over", stacklevel=2)
        else:
            found[point.name] = point.load()
    return found
