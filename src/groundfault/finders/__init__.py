"""Finders: each proposes candidates from discovery evidence, one proposer a file.

A finder is an ordinary class with a ``name`` and a ``propose`` method; packages register theirs
under the entry-point group ``groundfault.finders``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from groundfault.base.registry import Registry

if TYPE_CHECKING:
    from groundfault.core.candidate import Candidate
    from groundfault.core.evidence import Evidence

GROUP = "groundfault.finders"

DEFAULT = ("instrument", "declared", "thresholds", "categories", "text")
"""The finders of an audit that names none, and no candidates either."""

_BUILT_IN = {
    "instrument": "groundfault.finders.instrument:Instrument",
    "declared": "groundfault.finders.declared:Declared",
    "thresholds": "groundfault.finders.thresholds:Thresholds",
    "categories": "groundfault.finders.categories:Categories",
    "text": "groundfault.finders.text:Text",
    "interactions": "groundfault.finders.interactions:Interactions",
    "sliceline": "groundfault.finders.sliceline:SliceLine",
    "edisa": "groundfault.finders.edisa:Edisa",
    "domino": "groundfault.finders.domino:Domino",
    "spotlight": "groundfault.finders.spotlight:Spotlight",
    "tree": "groundfault.finders.tree:Tree",
    "pysubgroup": "groundfault.finders.foreign:Pysubgroup",
    "confidence": "groundfault.finders.confidence:Confidence",
    "language": "groundfault.language.finder:Language",
    "taxonomy": "groundfault.taxonomy.finder:Clusters",
    "random": "groundfault.finders.random:Random",
}


_REGISTRY = Registry("finder", GROUP, _BUILT_IN)


class Finder(Protocol):
    """What proposes candidates from discovery rows: the same ones for the same rows."""

    @property
    def name(self) -> str:
        """The finder's name, which becomes the source of its candidates."""

    def propose(self, discovery: Evidence) -> Iterable[Candidate]:
        """Candidates, each with a name of its own."""


def known() -> tuple[str, ...]:
    """Names of the finders at hand: the built-in ones, then those of installed packages."""
    return _REGISTRY.names()


def get(name: str) -> Callable[..., Finder]:
    """The finder class of a name; nothing is imported before it is asked for.

    Raises
    ------
    PlanError
        If no finder has the name, or the package that registered it cannot be imported.
    """
    return _REGISTRY.get(name)


def __getattr__(name: str) -> object:
    """Finder classes by their own names; nothing is imported before it is asked for."""
    for target in _BUILT_IN.values():
        module, _, attribute = target.partition(":")
        if attribute == name:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'groundfault.finders' has no attribute {name!r}")
