"""Output of all commands: files, JSON, warnings and progress."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundfault.base.files import is_special, make_encodable, resolve_links, write_text
from groundfault.base.folders import replace_folder
from groundfault.base.progress import Progress, listener
from groundfault.errors import InputError, shorten

if TYPE_CHECKING:
    from rich.console import Console

    from groundfault.render.page import Page, Table


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


@contextmanager
def claim_folder(path: str | None) -> Iterator[Path | None]:
    """Yield where to write a folder's files: they get there together when the block ends.

    From the start of the block no other command may write there. See `replace_folder`.
    """
    if path is None:
        yield None
        return
    with replace_folder(path) as new:
        yield new


def write_json(text: str, path: str | None) -> bool:
    """Write JSON to a path, if any; True for standard output, where nothing else may follow."""
    if path == "-":
        text = make_encodable(text)
        # JSON is UTF-8, whatever the terminal is; a notebook's output takes text alone
        click.echo(text.encode() if hasattr(sys.stdout, "buffer") else text)
    elif path:
        write_text(Path(path), text)
    return path == "-"


def write_result(content: Any, path: str | None) -> bool:
    """Write a result as JSON where asked for, as `write_json` does."""
    if path is None:
        return False
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return write_json(text, path)


def show_page(page: Page, report_path: str | Path | None = None) -> None:
    """Print a page on standard output, and where the whole report is."""
    from rich.console import Console

    from groundfault.render.terminal import show

    show(page, Console(highlight=False), report_path)


def show_table(table: Table) -> None:
    """Print a table on standard output, as wide as that is."""
    from rich.console import Console

    from groundfault.render.terminal import fit_table

    console = Console()
    console.print(fit_table(table, console.width))


def print_lines(*lines: str, style: str = "") -> None:
    """Print lines that may quote data, without what would steer a terminal."""
    from rich.console import Console

    from groundfault.render.words import clean

    for line in lines:
        Console().print(clean(line), style=style, markup=False, highlight=False)


@contextmanager
def echo_warnings() -> Iterator[None]:
    """Print the warnings of a block as notes on standard error, each once, when it ends."""
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in messages):
        click.echo(f"note: {shorten(message)}", err=True)


@contextmanager
def show_progress(quiet: bool = False, *, lines: bool = False) -> Iterator[Progress]:
    """Show a spinner with the current step on standard error, if that is a terminal.

    Elsewhere, such as in a log of what takes hours, there is a line a step if ``lines``.
    """
    from rich.console import Console
    from rich.text import Text

    from groundfault.render.words import clean

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield partial(_print_step, console) if lines and not quiet else listener(None)
        return
    with console.status("reading") as status:
        yield lambda message: status.update(Text(clean(message), overflow="ellipsis", no_wrap=True))


def _print_step(console: Console, message: str) -> None:
    from groundfault.render.words import clean

    console.print(clean(message), markup=False, highlight=False, soft_wrap=True)
