"""Old names that keep working for one release, with a `DeprecationWarning` that names the new one.

The policy stands in CONTRIBUTING.md: a public name is renamed in a minor release, works under its
old name until the next one, and is removed there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn that ``old`` is now called ``new``."""
    warnings.warn(
        f"{old} is now called {new}; the old name will be removed in the next minor release",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def rename_parameters(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function whose keyword parameters have new names; ``old="new"`` for each.

    Raises
    ------
    TypeError
        On a call that gives a parameter under both names.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        # as a caller writes it: Evidence.from_table, and Roles for Roles.__init__
        label = function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__init__")

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in new_names.keys() & kwargs.keys():
                new = new_names[old]
                if new in kwargs:
                    raise TypeError(f"{label} was given both {old} and {new}")
                warn_renamed(f"{label}({old}=)", f"{label}({new}=)")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


def rename_fields(**new_names: str) -> Callable[[type[T]], type[T]]:
    """Decorate a dataclass whose fields have new names; ``old="new"`` for each.

    The old names work as parameters of the class and as attributes of its instances.
    """

    def decorate(cls: type[T]) -> type[T]:
        setattr(cls, "__init__", rename_parameters(**new_names)(cls.__init__))  # noqa: B010
        for old, new in new_names.items():
            setattr(cls, old, _renamed_property(cls.__name__, old, new))
        # for code that reads settings by name, such as `--set` of a finder
        setattr(cls, "__renamed_fields__", dict(new_names))  # noqa: B010
        return cls

    return decorate


def rename_members(**new_names: str) -> Callable[[type[T]], type[T]]:
    """Decorate a class whose methods or properties have new names; ``old="new"`` for each.

    A new name may be a part of an attribute: ``old="tables.new"``.
    """

    def decorate(cls: type[T]) -> type[T]:
        for old, new in new_names.items():
            setattr(cls, old, _renamed_property(cls.__name__, old, new))
        return cls

    return decorate


def _renamed_property(owner: str, old: str, new: str) -> property:
    def read(self: object) -> Any:
        warn_renamed(f"{owner}.{old}", f"{owner}.{new}")
        return attrgetter(new)(self)

    return property(read, doc=f"The old name of `{new}`.")


def rename_attributes(
    module: str, new_places: Mapping[str, str], *, stacklevel: int = 3
) -> Callable[[str], Any]:
    """Make a module's ``__getattr__`` that finds names which moved, and warns.

    Parameters
    ----------
    module : str
        Its ``__name__``.
    new_places : mapping of str to str
        The old name and the new place, as ``package.module:attribute`` or ``package.module``.
    stacklevel : int
        Frames up from `warn_renamed` to the line that uses the old name.
    """

    def find(name: str) -> Any:
        if name not in new_places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, _, attribute = new_places[name].partition(":")
        new = f"{place}.{attribute}" if attribute else place
        warn_renamed(f"{module}.{name}", new, stacklevel=stacklevel)
        target = import_module(place)
        return getattr(target, attribute) if attribute else target

    return find
