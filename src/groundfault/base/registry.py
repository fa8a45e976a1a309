"""Plug-ins by name: the built-in ones, and those that packages register under an entry-point
group.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from groundfault.errors import PlanError


@dataclass(frozen=True)
class Registry:
    """Makers of one kind of plug-in; nothing is imported before it is asked for.

    Attributes
    ----------
    kind : str
        In messages: "finder", "judge", "policy".
    group : str
        The entry-point group of packages.
    built_in : mapping of str to str
        Names and where their makers live, as ``module:attribute``. A package cannot replace one.
    """

    kind: str
    group: str
    built_in: Mapping[str, str]

    def names(self) -> tuple[str, ...]:
        """The built-in names, then those of installed packages."""
        return (*self.built_in, *sorted(self._installed()))

    def get(self, name: str) -> Callable[..., Any]:
        """The maker of that name.

        Raises
        ------
        PlanError
            If there is none, or the package that registered it cannot be imported.
        """
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            made: Callable[..., Any] = getattr(import_module(module), attribute)
            return made
        point = self._installed().get(name)
        if point is None:
            raise PlanError(
                f"no {self.kind} is named {name!r}; there are {', '.join(self.names())}"
            )
        try:
            loaded: Callable[..., Any] = point.load()
        except (ImportError, AttributeError) as error:
            raise PlanError(
                f"the {self.kind} {name!r} of {point.value} cannot be loaded: {error}"
            ) from error
        return loaded

    def _installed(self) -> dict[str, EntryPoint]:
        found: dict[str, EntryPoint] = {}
        for point in _points(self.group, tuple(sys.path)):
            kept = self.built_in.get(point.name) or (
                found[point.name].value if point.name in found else None
            )
            if kept is None:
                found[point.name] = point
            elif kept != point.value:
                said = f"two are named {point.name!r} in {self.group}: {kept} is used, not {point.value}"
                warnings.warn(said, stacklevel=3)
        return found


@lru_cache(maxsize=16)
def _points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:  # noqa: ARG001
    """The entry points of a group in the packages on a path, which are all listed each time that
    one asks.
    """
    return tuple(sorted(entry_points(group=group), key=lambda point: (point.name, point.value)))
