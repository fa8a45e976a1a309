"""Output of all commands: files, JSON, warnings and progress."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from groundfault.base.files import (
    is_special,
    make_encodable,
    replace_folder,
    resolve_links,
    write_text,
)
from groundfault.base.long_work import Progress, listener
from groundfault.base.sheets import require_table_name
from groundfault.errors import InputError, shorten

if TYPE_CHECKING:
    from groundfault.render.page import Block, Page


_PAUSE = 10
"""Seconds between two lines in a log: a command of a few seconds writes none."""

_SILENT = 5.0
"""Seconds after which a step is written again: a person begins to doubt."""

_MINUTES = 100
"""Seconds from which a time is told in minutes."""


class Writable(click.ParamType[str]):
    """A path that a command writes to; `require_writable` tries it before anything is computed."""

    name = "text"

    def __init__(self, *, directory: bool = False, table: bool = False) -> None:
        self.directory, self.table = directory, table

    def require(self, path: str | None) -> None:
        """Fail where it cannot be written, or its name does not say how to write a table."""
        require_writable(path, directory=self.directory)
        if path and self.table:
            require_table_name(path)


@dataclass(frozen=True)
class Result:
    """The end of a command: its printed page, its ``--json`` object, and its exit status.

    Attributes
    ----------
    outline : iterable of str, Block or Page
        In this order; a text is a line of its own.
    data : Any
        Text that is JSON already, a result with the method ``to_json``, or plain data.
    status : int
    notes : iterable of str
        Lines that follow the outline; where JSON is on standard output, on standard error.
    then : sequence of str
        Words of the command to type next, after ``groundfault``; not printed beside JSON.
    """

    outline: Iterable[str | Block | Page] = ()
    data: Any = None
    status: int = 0
    notes: Iterable[str] = ()
    then: Sequence[str] = ()

    def deliver(self, json_path: str | None) -> None:
        """Write the result to a path, if any, print it unless that is ``-``, and end."""
        quiet = json_path is not None and write_json(encode(self.data), json_path)
        if not quiet:
            show(self.outline)
        for line in self.notes:
            click.echo(line, err=quiet)
        if self.then and not quiet:
            click.echo(f"next: groundfault {shlex.join(self.then)}")
        if self.status:
            sys.exit(self.status)


def encode(data: object) -> str:
    """Return data as JSON."""
    if isinstance(data, str):
        return data
    if hasattr(data, "to_json"):
        return str(data.to_json())
    # ids may be dates
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False, default=str)


def show(outline: Iterable[str | Block | Page]) -> None:
    """Print an outline on standard output, without control characters."""
    from rich.console import Console

    from groundfault.render import terminal
    from groundfault.render.page import Page, Table
    from groundfault.render.words import clean

    console = Console(highlight=False)
    for item in outline:
        if isinstance(item, str):
            click.echo(clean(item))
        elif isinstance(item, Page):
            terminal.show(item, console)
        else:
            terminal.show_blocks([item], console, item.caption if isinstance(item, Table) else "")


def require_writable(path: str | None, *, directory: bool = False) -> None:
    """Fail where a path cannot be written, before anything is computed or recorded.

    What the command reads by its arguments is not written over.
    """
    if not path or path == "-":
        return
    place = Path(path)
    if place.is_file() and any(place.samefile(source) for source in _list_input_files()):
        raise InputError(f"cannot write {path}: this command reads it; name another file")
    if is_special(place):
        # it is written to, and nothing is made beside it
        if not os.access(place, os.W_OK):
            raise InputError(f"cannot write {path}: Permission denied; choose another place")
        return
    if directory and place.exists() and not place.is_dir():
        raise InputError(f"cannot write {path}: it is a file; name a directory")
    if not directory and place.is_dir():
        raise InputError(f"cannot write {path}: it is a directory; name a file")
    try:
        place = resolve_links(place)
        home = place if directory and place.exists() else place.parent
        while not home.exists():
            home = home.parent
        # by trying: root and mounted file systems ignore permission bits
        tempfile.TemporaryFile(dir=home).close()
    except OSError as error:
        why = f"{error.strerror} ({place.parent})"
        raise InputError(
            f"cannot write {path}: {why}; choose a place that can be written"
        ) from None


def _list_input_files() -> Iterator[Path]:
    """Yield files that are arguments of the command in progress."""
    context = click.get_current_context(silent=True)
    if context is None:
        return
    for argument in context.command.params:
        if isinstance(argument, click.Argument):
            value = context.params.get(argument.name or "")
            values = value if isinstance(value, tuple) else (value,)
            yield from (Path(one) for one in values if one and Path(one).is_file())


def claim_folder(path: str | None) -> AbstractContextManager[Path | None]:
    """Return the context of a folder's files: they get there together when the block ends.

    From the start of the block no other command may write there. See `replace_folder`.
    """
    return nullcontext() if path is None else replace_folder(path)


def write_json(text: str, path: str | None) -> bool:
    """Write JSON to a path, if any; True for standard output, which then holds JSON alone."""
    if path == "-":
        text = make_encodable(text)
        # JSON is UTF-8, whatever the terminal is; a notebook's output takes text alone
        click.echo(text.encode() if hasattr(sys.stdout, "buffer") else text)
    elif path:
        write_text(Path(path), text)
    return path == "-"


@contextmanager
def echo_warnings() -> Iterator[None]:
    """Print the warnings of a block as notes on standard error, each once, as they come."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: object) -> None:
        if str(message) not in told:
            told.add(str(message))
            click.echo(f"note: {shorten(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = tell  # type: ignore[assignment]
        yield


@contextmanager
def show_progress(quiet: bool = False, *, lines: bool = False) -> Iterator[Progress]:
    """Show a spinner with the current step on standard error, if that is a terminal.

    Elsewhere, such as in a log, there is a line every ten seconds; or a line a step if ``lines``.
    A step that counts, such as "12 of 90", gets an estimate of the time that is left, and one that
    lasts the time since it began.
    """
    from rich.console import Console
    from rich.text import Text

    from groundfault.render.words import clean

    console, estimate = Console(stderr=True), TimeLeft()
    if quiet:
        yield listener(None)
    elif console.is_terminal:
        with console.status("reading") as status:
            line = partial(Text, overflow="ellipsis", no_wrap=True)
            with _repeat_step(lambda text: status.update(line(clean(estimate(text))))) as tell:
                yield tell
    else:
        pause, last = 0 if lines else _PAUSE, monotonic()

        def write_line(message: str) -> None:
            nonlocal last
            text = estimate(message)
            if monotonic() - last >= pause:
                last = monotonic()
                console.print(clean(text), markup=False, highlight=False, soft_wrap=True)

        with _repeat_step(write_line) as tell:
            yield tell


@contextmanager
def _repeat_step(write: Progress) -> Iterator[Progress]:
    """Write a step again while it lasts, with the seconds since it began."""
    step, begun, over = "reading", monotonic(), Event()

    def tell(message: str) -> None:
        nonlocal step, begun
        step, begun = message, monotonic()
        write(message)

    def repeat() -> None:
        while not over.wait(_SILENT):
            write(f"{step}, {monotonic() - begun:.0f} s so far")

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        over.set()
        thread.join()


class TimeLeft:
    """Adds the time that is left to messages that count, such as "simulating: 12 of 90".

    Examples
    --------
    >>> from itertools import count
    >>> estimate = TimeLeft(count(0, 10).__next__)
    >>> [estimate(f"simulating: {n} of 5") for n in (1, 2)]
    ['simulating: 1 of 5', 'simulating: 2 of 5, about 30 s left']
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._begun: dict[str, tuple[float, int]] = {}

    def __call__(self, message: str) -> str:
        """Return the message, with the time left from its second count on."""
        counts = re.search(r"([\d,]+) of ([\d,]+)", message)
        if counts is None:
            return message
        done, total = (int(number.replace(",", "") or 0) for number in counts.groups())
        now = self._clock()
        start, first = self._begun.setdefault(
            re.sub(r"\d", "", message[: counts.start()]), (now, done)
        )
        if done <= first or done >= total:
            return message
        seconds = (now - start) / (done - first) * (total - done)
        left = f"{seconds:.0f} s" if seconds < _MINUTES else f"{seconds / 60:.0f} min"
        return f"{message}, about {left} left"
