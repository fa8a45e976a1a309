"""Choose the ledger: one place for every command and for Python, unless you name another."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from groundfault.base.ledger import Ledger
from groundfault.errors import GroundfaultError

DEFAULT = "groundfault-ledger.db"
VARIABLE = "GROUNDFAULT_LEDGER"
OFF = "off"
"""Value of the variable that turns recording off."""

EARLIER = ("groundfault.db", "audit.db")
"""Where ``label confirm`` and ``label run`` of groundfault 0.1 recorded by default."""

LedgerChoice: TypeAlias = Ledger | str | Path | bool | None


def find_ledger(choice: LedgerChoice, *, earlier: Sequence[str | Path] = EARLIER) -> Ledger | None:
    """Return the ledger to record in; None if recording is off.

    Parameters
    ----------
    choice : Ledger, path, URL or bool, optional
        True takes the place that `name_default` names; False and None turn recording off.
    earlier : sequence of path
        Other default places of earlier versions, read when the default is taken. Records that they
        hold for the same outcomes are continued there, or refused.

    Warns
    -----
    UserWarning
        If one of the earlier places holds a ledger with openings.
    """
    if choice is None or choice is False:
        return None
    if isinstance(choice, Ledger):
        return choice
    if choice is not True:
        return Ledger(choice)
    place = name_default()
    if place is None:
        return None
    if os.environ.get(VARIABLE):
        return Ledger(place)
    books = [path for path in map(Path, earlier) if path.is_file() and _holds_openings(path)]
    for book in books:
        warnings.warn(
            f"{book} holds looks that an earlier groundfault recorded; they are now recorded in "
            f"{place}. To go on with the old ones, name it: --ledger {book} (in Python ledger=)",
            stacklevel=2,
        )
    return Ledger(place, earlier=books)


def name_default() -> str | None:
    """Return path or URL of the default ledger; None if the variable is off."""
    place = os.environ.get(VARIABLE) or DEFAULT
    return None if place == OFF else place


def is_waived(choice: LedgerChoice) -> bool:
    """Return whether the caller turned the ledger off, by argument or by the variable."""
    return choice is None or choice is False or (choice is True and name_default() is None)


def find_witness(choice: LedgerChoice, stated: str, folder: Path | None = None) -> Ledger | None:
    """Return the ledger to check a result against; None if no ledger may be opened.

    A result may come from a stranger, and the place that it states may be a server that waits for
    passwords. So only the caller's own ledgers are opened: the ledger named by argument or
    variable, or the ledger in the default place if the result states this place. Otherwise, a file
    with the stated name in the folder of the result is taken.

    Parameters
    ----------
    choice : Ledger, path, URL or bool, optional
        As for `find_ledger`.
    stated : str
        The place that the result states.
    folder : Path, optional
        Folder of the result.
    """
    if choice is not True or os.environ.get(VARIABLE):
        return find_ledger(choice)
    book = Ledger(DEFAULT)
    if book.place == stated and Path(book.place).exists():
        return book
    beside = folder / Path(stated).name if folder and stated and "://" not in stated else None
    # a link may lead out of the folder
    if beside is None or beside.is_symlink() or not beside.is_file():
        return None
    return Ledger(beside)


def _holds_openings(path: Path) -> bool:
    try:
        # openings of a holdout or of a sequential audit; the record of a run has none
        return any(event.kind.endswith("_opened") for event in Ledger(path).events())
    except GroundfaultError:
        # some other program's file of the same name
        return False
