"""Work in many parts, in several processes, that goes on where it was interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from groundfault.base.long_work import Progress, listener
from groundfault.errors import PlanError
from groundfault_studies.tables import PaperTable

Rows = list[dict[str, Any]]


def resume_parts(
    todo: Mapping[str, tuple[Any, ...]],
    work: Callable[..., Rows],
    keep: Path | None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Rows:
    """Rows of all parts, in their order: those in the file ``keep`` as they are, the others worked
    out and added to it.

    A line of the file is a part with its rows; one that was cut off by a kill is left out, and
    worked out again.

    Parameters
    ----------
    todo : mapping of str to tuple
        What ``work`` is called with, by a name that says everything the rows depend on.
    work : callable
    keep : path, optional
    jobs : int
        Processes; the answer does not depend on it.
    progress : callable
    """
    progress = listener(progress)
    from joblib import Parallel, delayed

    finished = read_parts(keep)
    missing = [name for name in todo if name not in finished]
    if keep:
        keep.parent.mkdir(parents=True, exist_ok=True)
        _end_line(keep)
    run = Parallel(jobs, return_as="generator")(delayed(work)(*todo[name]) for name in missing)
    for number, (name, rows) in enumerate(zip(missing, run, strict=True), start=1):
        finished[name] = rows
        progress(f"{number} of {len(missing)}: {name}")
        if keep:
            with keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"job": name, "rows": rows}) + "\n")
    return [row for name in todo for row in finished[name]]


def resume_rounds(
    rounds: Sequence[Mapping[str, tuple[Any, ...]]],
    work: Callable[..., Rows],
    keep: Path | None,
    jobs: int,
    progress: Progress,
    show: Callable[[Rows, int], object] | None,
) -> Rows:
    """`resume_parts`, round by round, so that the rows so far can be looked at on the way.

    Parameters
    ----------
    rounds : sequence of mapping
        Each a ``todo``, such as one replicate of everything.
    show : callable, optional
        Called with the rows so far and the number of rounds they are of, after 1, 2, 4, 8, ... of
        them; not for what was in the file already, and not for the last, which is the result.
    """
    rows: Rows = []
    for number, todo in enumerate(rounds, start=1):
        is_new = bool(todo.keys() - read_parts(keep).keys())
        listen = _prefix(f"round {number} of {len(rounds)}", progress)
        rows += resume_parts(todo, work, keep, jobs, listen)
        # more often, and who reads along could not tell what is new
        if show is not None and is_new and number < len(rounds) and number & (number - 1) == 0:
            show(rows, number)
    return rows


def resume_tables(
    todo: Mapping[str, Callable[[], PaperTable | tuple[PaperTable, ...]]],
    keep: Path | None,
    progress: Progress,
) -> tuple[PaperTable, ...]:
    """`resume_parts` of which each is a table, or several.

    Parameters
    ----------
    todo : mapping of str to callable
        What makes each part, by a name that says everything it depends on.
    keep : path, optional
    progress : callable
    """
    parts = {name: (make,) for name, make in todo.items()}
    rows = resume_parts(parts, _store_tables, keep, 1, progress)
    return tuple(msgspec.convert(row, PaperTable) for row in rows)


def _store_tables(make: Callable[[], PaperTable | tuple[PaperTable, ...]]) -> Rows:
    made = make()
    return [msgspec.to_builtins(one) for one in (made if isinstance(made, tuple) else (made,))]


def gather_rows(
    todo: Mapping[str, tuple[Any, ...]],
    work: Callable[..., Rows],
    keep: str | Path | None,
    jobs: int,
    progress: Progress,
    *,
    stored: bool,
) -> Rows:
    """`resume_parts`, or where only ``stored`` ones are asked for, `select_stored`."""
    place = None if keep is None else Path(keep)
    return select_stored(todo, place) if stored else resume_parts(todo, work, place, jobs, progress)


def select_stored(todo: Mapping[str, tuple[Any, ...]], keep: Path | None) -> Rows:
    """Rows of the parts that are done, in the order of the file; nothing is worked out.

    Raises
    ------
    PlanError
        If there is no file to read, or no part of this study in it.
    """
    if keep is None:
        raise PlanError("name the folder of the stored rows with --out")
    parts = {name: rows for name, rows in read_parts(keep).items() if name in todo}
    if not parts:
        raise PlanError(f"{keep} holds no part of this study: run it without --stored")
    return [row for rows in parts.values() for row in rows]


def read_parts(keep: Path | None) -> dict[str, Rows]:
    """Rows of the parts that a file holds, by name; nothing is written."""
    if keep is None or not keep.exists():
        return {}
    parts = {}
    for line in keep.read_text(encoding="utf-8").split("\n"):
        try:
            part = json.loads(line)
            parts[part["job"]] = part["rows"]
        except (ValueError, KeyError, TypeError):
            continue
    return parts


def _prefix(title: str, progress: Progress) -> Progress:
    return lambda message: progress(f"{title}, {message}")


def _end_line(keep: Path) -> None:
    """End a line that was cut off, so that the next one is not joined to it."""
    text = keep.read_bytes() if keep.exists() else b""
    if text and not text.endswith(b"\n"):
        with keep.open("a", encoding="utf-8") as file:
            file.write("\n")
