"""The folder of shared data that studies of real results read."""

from __future__ import annotations

import os
from pathlib import Path

from groundfault.errors import InputError

HOW_TO_NAME = "name the folder of the data with --shared or $GROUNDFAULT_SHARED"


def find_shared(folder: str | Path | None, *parts: str) -> Path:
    """Where shared data are, or would be: ``../shared/data`` if nobody names another folder.

    Parameters
    ----------
    folder : path, optional
        Left out, ``$GROUNDFAULT_SHARED``.
    *parts : str
        Of a path inside of it.

    Raises
    ------
    InputError
        If a folder is named and is not there.
    """
    name = folder or os.environ.get("GROUNDFAULT_SHARED")
    place = Path(name or "../shared/data").resolve()
    if name and not place.is_dir():
        raise InputError(f"no folder {name}: {HOW_TO_NAME}")
    return place.joinpath(*parts)


def require_shared(folder: str | Path | None, *parts: str) -> Path:
    """`find_shared`, of data without which there is nothing to do.

    Raises
    ------
    InputError
        If they are not there.
    """
    place = find_shared(folder, *parts)
    if not place.exists():
        raise InputError(f"no {place}: {HOW_TO_NAME}")
    return place
