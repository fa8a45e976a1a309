"""Finders: each proposes candidates from discovery evidence, one proposer a file.

A finder is an ordinary class with a ``name`` and a ``propose`` method; packages register theirs under the entry-point
group ``groundfault.finders``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Protocol, cast

from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.candidate import Candidate
    from groundfault.evidence import Evidence

GROUP = "groundfault.finders"

DEFAULT = ("declared", "thresholds", "categories", "text")
"""The finders of an audit that names none, and no candidates either."""

_BUILT_IN = {
    "declared": "groundfault.finders.declared:Declared",
    "thresholds": "groundfault.finders.thresholds:Thresholds",
    "categories": "groundfault.finders.categories:Categories",
    "text": "groundfault.finders.text:Text",
    "interactions": "groundfault.finders.interactions:Interactions",
    "sliceline": "groundfault.finders.sliceline:SliceLine",
}


class Finder(Protocol):
    """What proposes candidates. It is given discovery rows alone, and answers the same for the same rows."""

    @property
    def name(self) -> str:
        """The finder's name, which becomes the source of its candidates."""

    def propose(self, discovery: Evidence) -> Iterable[Candidate]:
        """Candidates, each with a name of its own."""


def known() -> tuple[str, ...]:
    """Names of the finders at hand: the built-in ones, then those of installed packages."""
    return (*_BUILT_IN, *sorted(_installed()))


def get(name: str) -> Callable[..., Finder]:
    """The finder class of a name; nothing is imported before it is asked for.

    Raises
    ------
    PlanError
        If no finder has the name, or the package that registered it cannot be imported.
    """
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return cast("Callable[..., Finder]", getattr(import_module(module), attribute))
    point = _installed().get(name)
    if point is None:
        raise PlanError(f"no finder is named {name!r}; there are {', '.join(known())}")
    try:
        return cast("Callable[..., Finder]", point.load())
    except (ImportError, AttributeError) as error:
        raise PlanError(f"the finder {name!r} of {point.value} cannot be loaded: {error}") from error


def _installed() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        kept = _BUILT_IN.get(point.name) or (found[point.name].value if point.name in found else None)
        if kept is None:
            found[point.name] = point
        elif kept != point.value:
            warnings.warn(f"two finders are named {point.name!r}: {kept} is used, not {point.value}", stacklevel=3)
    return found


def __getattr__(name: str) -> object:
    """Finder classes by their own names; nothing is imported before it is asked for."""
    for target in _BUILT_IN.values():
        module, _, attribute = target.partition(":")
        if attribute == name:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'groundfault.finders' has no attribute {name!r}")
