"""Files of a folder replaced together: all of them or none, and by one command at a time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from groundfault.base.files import (
    ASIDE,
    explain_failure,
    is_special,
    make_folder,
    resolve_links,
    sync_folder,
    take_permissions,
    write_bytes,
)
from groundfault.errors import InputError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    # Windows, where two commands at once go unnoticed
    fcntl = None


@contextmanager
def replace_folder(place: str | Path, names: Iterable[str] = ()) -> Iterator[Path]:
    """Open a temporary folder whose files take their places in ``place`` when the block ends.

    Until then ``place`` stays as it is, and if the block fails, for good. At no moment does it hold
    files of two runs: all older ones leave before the first new one comes. Other files in it stay.
    Where a process is killed in between, the next such block begins by finishing its work.

    Parameters
    ----------
    place : path
        Made where it is missing.
    names : iterable of str
        Files that an earlier run may have left: they go, if the block does not write them again.

    Raises
    ------
    InputError
        If the place cannot be written to, a folder is in the way of a file, or another such block
        for the same place has not ended.
    """
    if Path(place).exists() and not Path(place).is_dir():
        raise InputError(f"cannot write {place}: it is a file; name a directory")
    with explain_failure(place):
        home = resolve_links(Path(place))
        is_new = not home.exists()
        make_folder(home)
    try:
        with _claim(home, place):
            # inside the folder: it is on the same disk, which the folder above it need not be
            aside = (home / ASIDE).parent
            try:
                with explain_failure(place):
                    if (aside / "old").exists():
                        _exchange(home, aside, set())
                    shutil.rmtree(aside, ignore_errors=True)
                    (aside / "new").mkdir(parents=True)
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
    """Return whether a process was killed in a `replace_folder` of a place; the next one finishes
    it."""
    return (Path(place) / ASIDE).parent.is_dir()


@contextmanager
def _claim(home: Path, place: str | Path) -> Iterator[None]:
    """Keep other processes from claiming a folder; the system frees it, however we end."""
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
                    "another folder"
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
    old.mkdir(exist_ok=True)
    arrivals = _list_files(new)
    # what stands on top says what lies below: it leaves first, and comes last
    leaving = dict.fromkeys([*sorted(names), *reversed(arrivals)])
    moves = [
        *((home / name, old / name) for name in leaving if (home / name).exists()),
        *((new / name, home / name) for name in arrivals),
    ]
    try:
        for source, target in moves:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
    except BaseException:
        for source, target in reversed(moves):
            if not source.exists():
                target.rename(source)
        old.rmdir()
        raise
    sync_folder(home)
    shutil.rmtree(old, ignore_errors=True)
