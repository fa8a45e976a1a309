"""Readers: each knows the logs of one tool, one format a module.

A reader is an ordinary class with ``sniff`` and ``read``; packages register theirs under the
entry-point group ``groundfault.readers``. No reader here imports the tool whose logs it reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from groundfault.base.registry import open_registry
from groundfault.errors import InputError
from groundfault.readers.log import Log

GROUP = "groundfault.readers"


_REGISTRY = open_registry("reader", GROUP)


class Reader(Protocol):
    """A reader of the logs of one tool.

    An attribute ``companions`` names other files that the tool writes beside its logs, by patterns
    such as ``("results_*.json",)``. The account does not list them as unread. An attribute
    ``undated`` names columns of examples that may be known only after the answer. The reader
    vouches for all other columns, and no leak rule leaves these out. A method
    ``read_conversations(path)`` yields the messages of each conversation one by one, for
    `groundfault.transcripts.steps.list_steps`, with the conversation's number, to which
    `groundfault.readers.log.Observation.transcript` refers.
    """

    def sniff(self, path: Path) -> bool:
        """Return whether a path is one log of the tool: a file, or the directory of one run.

        It is called for every file of a folder, so it reads little and never raises.
        """

    def read(self, path: Path) -> Log:
        """Read the log; raise `InputError` if it cannot be read."""


@runtime_checkable
class Explains(Protocol):
    """A reader that knows other files of its tool, and says where the answers are."""

    def explain(self, path: Path) -> str:
        """Return where the answers are of which a file is a summary; empty for another file."""


def known() -> tuple[str, ...]:
    """Return names of the available readers: built-in ones, then those from installed packages."""
    return _REGISTRY.names()


def get(reader: str | Reader) -> Reader:
    """Return the reader with a name; a reader object is returned unchanged.

    Raises
    ------
    PlanError
        If no reader has the name.
    """
    if not isinstance(reader, str):
        return reader
    instance: Reader = _REGISTRY.get(reader)()
    return instance


def name_of(reader: str | Reader) -> str:
    """Return the name of a reader, which an account and a report record.

    A reader names itself by an attribute ``name``, else by its class's name. ``verify`` can read
    its logs again only under a name in the registry.
    """
    return reader if isinstance(reader, str) else getattr(reader, "name", type(reader).__name__)


def sniff(path: str | Path) -> str | None:
    """Return the name of the first reader that knows a file or directory, or None."""
    place = Path(path)
    return next((name for name in known() if get(name).sniff(place)), None)


def read(path: str | Path, reader: str | Reader | None = None) -> Log:
    """Read one log by this reader, or by the first that knows the log.

    Raises
    ------
    InputError
        If no reader knows the file, or it cannot be read.
    """
    name = reader or sniff(path)
    if name is None:
        raise InputError(f"{path}: no reader knows this file; there are {', '.join(known())}")
    return get(name).read(Path(path))
