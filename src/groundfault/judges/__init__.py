"""Judges: one rule a file. `get` finds one by name; packages register theirs under
``groundfault.judges``.
"""

from __future__ import annotations

from groundfault.base.registry import Registry
from groundfault.core.judge import Judge

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


def get(name: str) -> Judge:
    """The judge of that name, built in or registered under the entry-point group
    ``groundfault.judges``.

    Raises
    ------
    PlanError
        If there is none, or the package that registered it cannot be imported.
    """
    judge: Judge = _REGISTRY.get(name)()
    return judge
