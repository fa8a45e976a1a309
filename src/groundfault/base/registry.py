"""Plug-ins and public names, which are imported only when they are used."""

from __future__ import annotations

import ast
import linecache
import sys
import tomllib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from groundfault.errors import MissingExtraError, PlanError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def _read_built_in() -> dict[str, dict[str, str]]:
    place = Path(__file__).parents[1] / "plugins.toml"
    return tomllib.loads(place.read_text(encoding="utf-8"))


def open_registry(kind: str, group: str) -> Registry:
    """Return the registry of an entry-point group, with its entries in plugins.toml."""
    return Registry(kind, group, _read_built_in()[group])


@dataclass(frozen=True)
class Registry:
    """Makers of one kind of plug-in, which are imported only when they are used.

    Attributes
    ----------
    kind : str
        Word for messages: "finder", "judge", "policy".
    group : str
        The entry-point group of packages.
    built_in : mapping of str to str
        Names and places of built-in makers, as ``module:attribute``. A package cannot replace one.
    """

    kind: str
    group: str
    built_in: Mapping[str, str]

    def names(self) -> tuple[str, ...]:
        """Return the built-in names, then the names in installed packages."""
        return (*self.built_in, *sorted(self._installed()))

    def get(self, name: str) -> Callable[..., Any]:
        """Return the maker with a name.

        Raises
        ------
        PlanError
            If the name is unknown, or the package that registered it cannot be imported.
        """
        if name in self.built_in:
            maker: Callable[..., object] = load_object(self.built_in[name])
            return maker
        point = self._installed().get(name)
        if point is None:
            raise PlanError(
                f"no {self.kind} is named {name!r}; there are {', '.join(self.names())}"
            )
        try:
            maker_of_package: Callable[..., object] = point.load()
        except (ImportError, AttributeError) as error:
            raise PlanError(
                f"the {self.kind} {name!r} of {point.value} cannot be loaded: {error}"
            ) from error
        return maker_of_package

    def _installed(self) -> dict[str, EntryPoint]:
        points: dict[str, EntryPoint] = {}
        for point in _points(self.group, tuple(sys.path)):
            earlier = points.get(point.name)
            place = self.built_in.get(point.name) or (earlier.value if earlier else None)
            if place is None:
                points[point.name] = point
            # the built-in maker wins: a package must not silently change an audit
            elif place != point.value:
                message = f"two are named {point.name!r} in {self.group}: {place} is used"
                warnings.warn(f"{message}, not {point.value}", stacklevel=3)
        return points


def load_object(place: str) -> Any:
    """Import the object at ``module:attribute``.

    Tables of such places can name objects of higher packages, because they import them only on use.
    """
    module, _, attribute = place.partition(":")
    return getattr(import_optional(module), attribute)


def import_optional(module: str) -> ModuleType:
    """Import a module of groundfault, or of groundfault-lab, a package of its own.

    Raises
    ------
    MissingExtraError
        If groundfault-lab is needed and not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "groundfault_lab":
            raise
        raise MissingExtraError(
            "this is part of groundfault-lab, a package of its own: pip install groundfault-lab, "
            "or in a checkout of groundfault: pip install ./lab"
        ) from None


def open_front_door(
    module: str,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make a module's ``__getattr__``, ``__dir__`` and ``__all__`` from its imports for types.

    The imports under ``if TYPE_CHECKING:`` are the only list of its names: type checkers read it,
    and so does this function. A name, or a module of a package, is imported when it is first used.

    Parameters
    ----------
    module : str
        Its ``__name__``.
    """
    home = sys.modules[module]
    source = linecache.getlines(str(home.__file__), vars(home))  # a package may lie in a zip file
    guards = [node for node in ast.parse("".join(source)).body if isinstance(node, ast.If)]
    lines = [line for guard in guards for line in guard.body if isinstance(line, ast.ImportFrom)]
    places = {each.name: f"{line.module}:{each.name}" for line in lines for each in line.names}

    def list_modules() -> set[str]:
        return {each.name for each in iter_modules(vars(home).get("__path__", ()))}

    def find(name: str) -> Any:
        if name in places:
            value = load_object(places[name])
        elif name == "__version__":
            from importlib.metadata import version

            value = version(module)
        elif name in list_modules():
            value = import_module(f"{module}.{name}")
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        setattr(home, name, value)
        return value

    return find, lambda: sorted({*places, *list_modules(), "__version__"}), sorted(places)


# importlib reads the metadata of every installed package on each call, so answers are kept; the
# path is an argument because the answer depends on it
@lru_cache(maxsize=16)
def _points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:  # noqa: ARG001
    """Return the entry points of a group in the packages on a path."""
    # takes longer to import than all else here
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=group), key=lambda point: (point.name, point.value)))
