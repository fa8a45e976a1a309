"""Which ledger: one place for every command and for Python, unless the caller names another."""

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
"""Value of the variable that records nothing."""

EARLIER = ("groundfault.db", "audit.db")
"""Where ``label confirm`` and ``label run`` of groundfault 0.1 recorded by default."""

LedgerChoice: TypeAlias = Ledger | str | Path | bool | None


def find_ledger(choice: LedgerChoice, *, earlier: Sequence[str | Path] = EARLIER) -> Ledger | None:
    """Return the ledger to record in; None where nothing is recorded.

    Parameters
    ----------
    choice : Ledger, path, URL or bool, optional
        True takes the place that `name_default` names; False and None record nothing.
    earlier : sequence of path
        Other places where earlier versions recorded by default. They are read where the default is
        taken: what they hold of the same outcomes is gone on with there, or refused.

    Warns
    -----
    UserWarning
        If there is a ledger with openings in one of the earlier places.
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
    """Return path or URL of the ledger where none is named; None where the variable is off."""
    place = os.environ.get(VARIABLE) or DEFAULT
    return None if place == OFF else place


def is_waived(choice: LedgerChoice) -> bool:
    """Return whether the caller does without a ledger, by argument or by the variable."""
    return choice is None or choice is False or (choice is True and name_default() is None)


def find_witness(choice: LedgerChoice, stated: str, folder: Path | None = None) -> Ledger | None:
    """Return the ledger that a result is checked against; None where there is none that may be
    asked.

    A result may come from anybody, and the place that it states may be a server that waits for
    passwords. So only a ledger of the caller's is opened: the one named, by argument or variable;
    or the one in the default place, if it is what the result states. Else a file of the stated name
    that lies in the folder of the result itself.

    Parameters
    ----------
    choice : Ledger, path, URL or bool, optional
        As for `find_ledger`.
    stated : str
        The place that the result states.
    folder : Path, optional
        Where the result is.
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
        # of a holdout, or of a sequential audit; the record of a run has none
        return any(event.kind.endswith("_opened") for event in Ledger(path).events())
    except GroundfaultError:
        # some other program's file of the same name
        return False
