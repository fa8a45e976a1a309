"""Readers: each knows the logs of one tool, one format a module.

A reader is an ordinary class with ``sniff`` and ``read``; packages register theirs under the
entry-point group ``groundfault.readers``. None of the readers here imports the tool whose logs it
reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from groundfault.base.registry import open_registry
from groundfault.errors import InputError
from groundfault.readers.log import Log

GROUP = "groundfault.readers"


_REGISTRY = open_registry("reader", GROUP)


class Reader(Protocol):
    """What reads the logs of one tool.

    A reader may name files that its tool writes beside its logs, and that are no logs, by an
    attribute ``companions``: patterns such as ``("results_*.json",)``. The account does not list
    them as unread. By an attribute ``undated`` it vouches that what its logs say of examples was
    known before the answer, but for the columns that it names: no leak rule leaves the others out.
    By a method ``read_conversations(path)`` it yields numbers of conversations, to which
    `groundfault.readers.log.Observation.transcript` refers, with their messages, one by one:
    what `groundfault.transcripts.steps.list_steps` takes.
    """

    def sniff(self, path: Path) -> bool:
        """Return whether this is one log of the tool: a file, or a directory that is one run.

        It is asked of every file of a folder, so it reads little and never raises.
        """

    def read(self, path: Path) -> Log:
        """Read the log; raises `InputError` where it cannot be read."""


def known() -> tuple[str, ...]:
    """Return names of the readers at hand: the built-in ones, then those of installed packages."""
    return _REGISTRY.names()


def get(reader: str | Reader) -> Reader:
    """Return the reader of a name; a reader is returned as it is.

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

    A reader names itself by an attribute ``name``, and has its class's name otherwise. Only under
    a name of the registry can its logs be read again by ``verify``.
    """
    return reader if isinstance(reader, str) else getattr(reader, "name", type(reader).__name__)


def sniff(path: str | Path) -> str | None:
    """Return the name of the first reader that knows a file or directory; None where none does."""
    place = Path(path)
    return next((name for name in known() if get(name).sniff(place)), None)


def read(path: str | Path, reader: str | Reader | None = None) -> Log:
    """Read one log, by this reader or the first that knows it.

    Raises
    ------
    InputError
        If no reader knows the file, or it cannot be read.
    """
    name = reader or sniff(path)
    if name is None:
        raise InputError(f"{path}: no reader knows this file; there are {', '.join(known())}")
    return get(name).read(Path(path))
