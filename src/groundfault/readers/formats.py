"""Formats of one JSON file: declarations to recognise each format, and one driver for all."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head


class JsonFormat(ABC):
    """Recognises a file by the declarations below, and reads it by `observe`.

    Attributes
    ----------
    tool : str
        The tool that writes the format.
    suffixes : tuple of str
        Endings of its files; empty for any ending.
    opening : pattern
        Matches the start of a file.
    keys : tuple of str
        Keys that all occur in the first 64 KB of a file.
    is_lines : bool
        Whether a file has an object a line: then the first line alone must match.
    undated : tuple of str, or None
        See `groundfault.readers.Reader`.
    """

    tool: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    opening: ClassVar[re.Pattern[bytes]]
    keys: ClassVar[tuple[str, ...]] = ()
    is_lines: ClassVar[bool] = False
    undated: ClassVar[tuple[str, ...] | None] = ()

    def sniff(self, path: Path) -> bool:
        """Return whether the file begins as the format does."""
        if self.suffixes and path.suffix not in self.suffixes:
            return False
        start = head(path).partition(b"\n")[0] if self.is_lines else head(path)
        return self.opening.match(start) is not None and all(
            b'"%b"' % key.encode() in start for key in self.keys
        )

    def read(self, path: Path) -> Log:
        """Read one file during iteration."""
        log = Log((), self.tool)
        log.observations = self.observe(path, log)
        return log

    @abstractmethod
    def observe(self, path: Path, log: Log) -> Iterator[Observation]:
        """Read the observations of a file; its log collects notes meanwhile."""
