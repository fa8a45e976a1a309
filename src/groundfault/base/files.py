"""Write every output: files appear whole or not at all; only files are replaced.

One rule holds for all outputs. A link is followed and stays: the file that it names is replaced. A
device, a pipe or a socket is written to directly. `replace_folder` replaces the files of a folder
together, all or not at all, by one command at a time. Only the owner may read new files, unless
`SHARE` says otherwise: reports and ledgers hold examples, answers and grades.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from groundfault.errors import InputError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    # Windows, where two commands at once go unnoticed
    fcntl = None


ASIDE = ".groundfault-writing/new/"
"""Subfolder in which new files wait until all are written; see `replace_folder`."""
SHARE = "GROUNDFAULT_SHARE"
"""The variable that lets others on the machine read the outputs; ``--share`` sets it."""
_DESCRIPTOR = re.compile(r"(?:/dev|/proc/self)/fd/(\d+)")
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path``: a file whole or not at all, anything else directly.

    Raises
    ------
    InputError
        If the place cannot be written to.
    """
    with explain_failure(path):
        descriptor = _find_descriptor(path)
        if descriptor is not None:
            # opening it anew would cut off a file that the shell redirects to
            (sys.stdout if descriptor == 1 else sys.stderr).flush()
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(data)
        elif path.is_socket():
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                connection.sendall(data)
        elif is_special(path):
            with path.open("wb") as stream:
                stream.write(data)
        else:
            _replace(resolve_links(path), data)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, as `write_bytes` does; see `make_encodable`."""
    write_bytes(path, make_encodable(text).encode())


def save_text(text: str, path: str | Path | None) -> str:
    """Return the text in an encodable form, and write it to the path if one is given."""
    text = make_encodable(text)
    if path is not None:
        write_text(Path(path), text)
    return text


def make_encodable(text: str) -> str:
    r"""Return text that UTF-8 can hold: undecodable bytes of file names become like ``\udce9``.

    In JSON this is the same text.
    """
    return text.encode("utf-8", errors="backslashreplace").decode()


def spell_path(path: str | Path) -> str:
    r"""Return a path as text for a record; undecodable bytes become like ``\xe9``."""
    return os.fsencode(path).decode(errors="backslashreplace")


def file_mode() -> int:
    """Return the permissions of a new file: its owner reads it, or with `SHARE` everybody."""
    return 0o644 if os.environ.get(SHARE) else 0o600


def folder_mode() -> int:
    """Return the permissions of a new folder; see `file_mode`."""
    return 0o755 if os.environ.get(SHARE) else 0o700


def make_folder(place: Path) -> None:
    """Make a folder, and those above it that are missing, with the permissions of `folder_mode`."""
    if place.is_dir():
        return
    make_folder(place.parent)
    place.mkdir(mode=folder_mode(), exist_ok=True)
    # the umask may have taken some away
    place.chmod(folder_mode())
    sync_folder(place.parent)


def take_permissions(new: Path, place: Path) -> None:
    """Give a new file the permissions of the file it replaces, and at least `file_mode`."""
    older = stat.S_IMODE(place.stat().st_mode) if place.exists() else 0
    new.chmod(older | file_mode())


def make_file(place: Path) -> None:
    """Make an empty file with the permissions of `file_mode`, unless the file exists."""
    with suppress(FileExistsError):
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file_mode()))
        # as for a folder
        place.chmod(file_mode())


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, as `os.fsync` writes the content of a file."""
    # Windows opens no folder, and some network disks do not sync one
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_special(path: Path) -> bool:
    """Return whether a path is a device, pipe or socket; links are followed."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def resolve_links(path: Path) -> Path:
    """Return the place that a path names when every link in it is followed; it need not exist.

    Raises
    ------
    OSError
        If links name each other in a circle.
    """
    place = Path(os.path.realpath(path))
    if place.is_symlink():
        # it says which error it is
        place.stat()
    return place


@contextmanager
def explain_failure(path: str | Path) -> Iterator[None]:
    """Turn an error of the file system in this block into an `InputError` that names the path.

    The error of our own output having no reader left passes through.
    """
    try:
        yield
    except BrokenPipeError:
        if _find_descriptor(Path(path)) is not None:
            raise
        raise InputError(
            f"cannot write {path}: the program that reads it ended before it had everything"
        ) from None
    except OSError as error:
        place = str(path).replace(ASIDE, "")
        raise InputError(
            f"cannot write {place}: {error.strerror or error}; choose a place that can be written"
        ) from None


def _find_descriptor(path: Path) -> int | None:
    """Return the number of our own stream that a path stands for; None for other paths."""
    name = str(path)
    match = _DESCRIPTOR.fullmatch(name)
    return int(match[1]) if match else _STREAMS.get(name)


def _replace(place: Path, data: bytes) -> None:
    """Write a file beside its place, and rename it."""
    make_folder(place.parent)
    # beside the target, as a rename is one step only within one file system
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            # to the disk before the rename, or a power cut could leave an empty file
            os.fsync(stream.fileno())
        take_permissions(Path(temporary), place)
        Path(temporary).replace(place)
        sync_folder(place.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def replace_folder(place: str | Path, names: Iterable[str] = ()) -> Iterator[Path]:
    """Open a temporary folder whose files take their places in ``place`` when the block ends.

    Until then, and if the block fails, ``place`` does not change. It never holds files of two runs:
    all older files leave before the first new file comes. Other files stay. If a process is killed
    in between, the next such block first finishes its work.

    Parameters
    ----------
    place : path
        Made if it is missing.
    names : iterable of str
        Files of an earlier run: removed unless the block writes them again.

    Raises
    ------
    InputError
        If the place cannot be written to, a folder is in the way of a file, or another block for
        the same place has not ended.
    """
    if Path(place).exists() and not Path(place).is_dir():
        raise InputError(f"cannot write {place}: it is a file; name a directory")
    with explain_failure(place):
        home = resolve_links(Path(place))
        is_new = not home.exists()
        make_folder(home)
    try:
        with claim(home, place):
            # inside the folder: it is on the same disk, which the folder above it need not be
            aside = (home / ASIDE).parent
            try:
                with explain_failure(place):
                    if (aside / "old").exists():
                        _exchange(home, aside, set())
                    shutil.rmtree(aside, ignore_errors=True)
                    make_folder(aside / "new")
                yield aside / "new"
                with explain_failure(place):
                    _write_through(home, aside / "new")
                    _exchange(home, aside, set(names))
            finally:
                # older files that could not be put back are kept for the next block
                if not (aside / "old").exists():
                    shutil.rmtree(aside, ignore_errors=True)
    finally:
        if is_new:
            # it stays where the block wrote something
            with suppress(OSError):
                home.rmdir()


def is_unfinished(place: str | Path) -> bool:
    """Return whether a process was killed in a `replace_folder` of a place; the next call finishes
    it."""
    return (Path(place) / ASIDE).parent.is_dir()


@contextmanager
def claim(home: Path, place: str | Path) -> Iterator[None]:
    """Keep other processes from claiming a folder; the system frees it when this process ends.

    Parameters
    ----------
    home : path
        The folder.
    place : path
        The output's path, for messages.

    Raises
    ------
    InputError
        If another process has claimed it, or it cannot be opened.
    """
    if fcntl is None:
        yield
        return
    with explain_failure(place):
        descriptor = os.open(home, os.O_RDONLY)
    try:
        # some network disks have no locks
        with suppress(OSError):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"another command is writing into {place}; wait until it has ended, or name "
                    "another place"
                ) from None
        yield
    finally:
        os.close(descriptor)


def _write_through(home: Path, new: Path) -> None:
    """Write into links, pipes and devices, and give other files their permissions.

    A folder in the way of a file is refused.
    """
    for name in _list_files(new):
        target = home / name
        if target.is_dir():
            raise InputError(f"cannot write {target}: it is a folder; move it away")
        if target.is_symlink() or is_special(target):
            write_bytes(target, (new / name).read_bytes())
            (new / name).unlink()
        else:
            take_permissions(new / name, target)


def _list_files(folder: Path) -> list[str]:
    """Return paths of all files in a folder and below it, from the folder: the deepest first."""
    names = [str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()]
    return sorted(names, key=lambda name: (-len(Path(name).parts), name))


def _exchange(home: Path, aside: Path, names: set[str]) -> None:
    """Move older files out and new ones in; if that fails, put everything back."""
    new, old = aside / "new", aside / "old"
    # from here on the new files are complete
    make_folder(old)
    arrivals = _list_files(new)
    # files at the top refer to files below: they leave first and come last
    leaving = dict.fromkeys([*sorted(names), *reversed(arrivals)])
    moves = [
        *((home / name, old / name) for name in leaving if (home / name).exists()),
        *((new / name, home / name) for name in arrivals),
    ]
    try:
        for source, target in moves:
            make_folder(target.parent)
            source.rename(target)
    except BaseException:
        for source, target in reversed(moves):
            if not source.exists():
                target.rename(source)
        old.rmdir()
        raise
    for folder in {home, *((home / name).parent for name in arrivals)}:
        sync_folder(folder)
    shutil.rmtree(old, ignore_errors=True)
