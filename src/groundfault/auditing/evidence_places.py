"""Where the evidence of a report is now, if it has moved: one place, or one for each source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from groundfault.errors import InputError
from groundfault.readers.configurations import split_source

Places = str | Path | Sequence[str | Path]
"""A file, folder or pattern, or several."""


def name_places(places: Places, sources: Sequence[str]) -> tuple[str | Path, ...]:
    """Return the places, with the names that a report gives its sources.

    Parameters
    ----------
    places : path or sequence of path
    sources : sequence of str
        As the report states them, such as ``base=logs/a``.

    Raises
    ------
    InputError
        If the sources have names, the places have none, and there are not as many.
    """
    mine = (places,) if isinstance(places, str | Path) else tuple(places)
    names = [split_source(source)[0] for source in sources]
    if not any(names) or any(split_source(place)[0] for place in mine):
        return mine
    if len(mine) != len(sources):
        raise InputError(
            f"the report is of {len(sources)} sources, {', '.join(sources)}: name as many places "
            "of the evidence, in this order (--evidence A --evidence B), or with their names "
            f"(--evidence {next(filter(None, names))}=A)"
        )
    return tuple(
        f"{name}={place}" if name else place for name, place in zip(names, mine, strict=True)
    )
