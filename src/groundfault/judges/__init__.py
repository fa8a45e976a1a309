"""Judges: one rule a file. `get` finds one by name, also those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundfault.base.registry import Registry
from groundfault.core.judge import Judge
from groundfault.errors import PlanError

_REGISTRY = Registry(
    "judge",
    "groundfault.judges",
    {
        "janus": "groundfault.judges.janus:Janus",
        "janus-a": "groundfault.judges.janus:JanusA",
        "janus-lite": "groundfault.judges.janus_lite:JanusLite",
        "split-holm": "groundfault.judges.split_holm:SplitHolm",
        "max-t": "groundfault.judges.max_t:MaxT",
        "holm": "groundfault.judges.full_sample:Holm",
        "bh": "groundfault.judges.full_sample:BenjaminiHochberg",
        "by": "groundfault.judges.full_sample:BenjaminiYekutieli",
        "multisplit-e": "groundfault.judges.multisplit:MultiSplit",
    },
)

NAMES = tuple(_REGISTRY.built_in)


def get(judge: str | Judge, settings: Mapping[str, Any] | None = None) -> Judge:
    """The judge of a name; a judge is returned as it is.

    Parameters
    ----------
    judge : str or Judge
        Names are of built-in judges, or registered under the entry-point group
        ``groundfault.judges``.
    settings : mapping, optional
        Of a judge that is named.

    Raises
    ------
    PlanError
        If there is none, it has no such setting, or its package cannot be imported.
    """
    if not isinstance(judge, str):
        return judge
    maker = _REGISTRY.get(judge)
    try:
        instance: Judge = maker(**settings or {})
    # wrong names of settings, from a plan or the command line
    except TypeError as error:
        raise PlanError(f"the judge {judge!r} cannot be made with its settings: {error}") from None
    return instance
