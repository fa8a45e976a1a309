"""Break the code that decides, one small change at a time, and count how often a test notices.

    pip install -e '.[test]' cosmic-ray
    python scripts/mutate.py [ROOM ...] [--sample N] [--seed N] [--at-least SHARE] [--out FILE]
                             [--nearest]

Works in a copy of the repository. ROOM is judges, decoys, audit or sequential; all where none is
named. Each change is tried on the tests nearest to its module first, then on those of its room.
With --nearest the module's own test file has to notice alone, which is quicker and asks more;
modules without one are left alone.
Changes that survive are printed: each is a test that is missing, or a change of nothing."""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src") / "groundfault"
ROOMS = {
    "judges": (("judges/*.py",), ("tests/judges",)),
    "decoys": (
        ("stats/decoys.py",),
        (
            "tests/stats/test_decoys.py",
            "tests/judges/test_janus.py",
        ),
    ),
    "audit": (("auditing/flow.py", "auditing/prepared_audit.py"), ("tests/auditing",)),
    "modes": (("modes/*.py",), ("tests/modes",)),
    "sequential": (("sequential/*.py", "sequential/policies/*.py"), ("tests/sequential",)),
}
"""Modules of each room, inside the package, and their tests."""

PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")

Place = tuple[int, int]


@dataclass(frozen=True)
class RoomScore:
    """What became of the changes of a room.

    Attributes
    ----------
    room : str
    possible, tried, killed : int
        Changes that there are; those that were tried; those that a test noticed.
    survivors : tuple of str
        The others: file, and changed lines.
    """

    room: str
    possible: int
    tried: int
    killed: int
    survivors: tuple[str, ...]

    @property
    def share(self) -> float:
        """Changes that were noticed, of those that were tried."""
        return self.killed / max(1, self.tried)


def find_annotations(source: str) -> list[tuple[Place, Place]]:
    """Where annotations begin and end, as lines and columns: nothing evaluates them."""
    places = []
    for node in ast.walk(ast.parse(source)):
        for note in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if note is not None:
                places.append(
                    ((note.lineno, note.col_offset), (note.end_lineno, note.end_col_offset))
                )
    return places


def list_tests(module: Path, tests: tuple[str, ...], root: Path) -> list[str]:
    """The test file of a module, where it has one, then the tests of its room."""
    return [*list_own_tests(module, tests, root), *tests]


def list_own_tests(module: Path, tests: tuple[str, ...], root: Path) -> list[str]:
    """The test file of a module alone; empty where it has none."""
    places = [Path(place) for place in tests]
    own = [(p.parent if p.suffix else p) / f"test_{module.stem}.py" for p in places]
    return [str(name) for name in dict.fromkeys(own) if (root / name).is_file()]


def list_changes(modules: list[Path]) -> list[Any]:
    """Changes that cosmic-ray can make, without those that cannot matter."""
    from cosmic_ray.commands import init
    from cosmic_ray.work_db import WorkDB, use_db

    with (
        tempfile.TemporaryDirectory() as folder,
        use_db(str(Path(folder) / "session.sqlite"), WorkDB.Mode.create) as session,
    ):
        init(modules, session, {})
        changes = [item.mutations[0] for item in session.work_items]
    notes = {module: find_annotations(module.read_text(encoding="utf-8")) for module in modules}
    return [
        change
        for change in changes
        # most decorators only make things fast, or a class frozen
        if change.operator_name != "core/RemoveDecorator"
        and not any(
            begin <= tuple(change.start_pos) < end for begin, end in notes[change.module_path]
        )
    ]


def draw(changes: list[Any], sample: int | None, seed: int) -> list[Any]:
    """Some of the changes in their order, the same ones for a seed; all where there are fewer."""
    if sample is None or sample >= len(changes):
        return changes
    numbers = random.Random(seed).sample(range(len(changes)), sample)
    return [changes[number] for number in sorted(numbers)]


def mutate(
    room: str, root: Path, sample: int | None, seed: int, *, nearest: bool = False
) -> RoomScore:
    """Try changes of a room in a copy of the repository, which is the working directory."""
    from cosmic_ray.mutating import mutate_and_test
    from cosmic_ray.work_item import TestOutcome

    patterns, tests = ROOMS[room]
    modules = sorted(path for p in patterns for path in (root / PACKAGE).glob(p))
    if nearest:
        modules = [path for path in modules if list_own_tests(path, tests, root)]
    changes = list_changes(modules)
    chosen_changes = draw(changes, sample, seed)
    find_tests = list_own_tests if nearest else list_tests
    files = {
        name for change in chosen_changes for name in find_tests(change.module_path, tests, root)
    }
    limit = 60 + 5 * time_tests(tuple(sorted(files)) if nearest else tests)
    survivors: list[str] = []
    for number, change in enumerate(chosen_changes, start=1):
        command = shlex.join([*PYTEST, *find_tests(change.module_path, tests, root)])
        result = mutate_and_test([change], command, limit)
        if result.test_outcome == TestOutcome.SURVIVED:
            survivors.append(trim_diff(result.diff or "", root))
            print(survivors[-1], flush=True)
        state = f"{room}: {number} of {len(chosen_changes)}, {len(survivors)} survive"
        print(state, file=sys.stderr, flush=True)
    tried = len(chosen_changes)
    return RoomScore(room, len(changes), tried, tried - len(survivors), tuple(survivors))


def time_tests(tests: tuple[str, ...]) -> float:
    """Seconds that tests take, which have to pass before anything is changed."""
    begin = time.monotonic()
    run = subprocess.run([*PYTEST, *tests], capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{' '.join(tests)} fail without any change:\n{run.stdout[-2000:]}")
    return time.monotonic() - begin


def trim_diff(diff: str, root: Path) -> str:
    """The place of a change and its lines, from a unified diff."""
    lines = diff.splitlines()
    file = next((line.removeprefix("+++ b/") for line in lines if line.startswith("+++ b/")), "")
    place = next((line for line in lines if line.startswith("@@")), "")
    changed_lines = [one for one in lines if one[:1] in "+-" and one[:3] not in ("+++", "---")]
    return "\n".join([f"{file.removeprefix(str(root) + os.sep)} {place}", *changed_lines])


def copy_repository(to: Path) -> None:
    """Copy what the tests need, compiled files among it."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, to / name)
    shutil.copy2(ROOT / "pyproject.toml", to)


def main() -> None:
    """Print a score for each room."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--sample", type=int, metavar="N", help="changes of a room; default all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--nearest", action="store_true", help="a module's own test file alone")
    parser.add_argument("--at-least", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--out", type=Path, metavar="FILE", help="scores and survivors as JSON")
    options = parser.parse_args()
    unknown = [room for room in options.rooms if room not in ROOMS]
    if unknown:
        parser.error(f"no room {unknown[0]!r}; there are {', '.join(ROOMS)}")
    out = None if options.out is None else options.out.resolve()
    scores = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        copy_repository(root)
        os.chdir(root)
        # before an installed package, which may be the repository itself
        os.environ["PYTHONPATH"] = str(root / "src")
        for room in options.rooms or ROOMS:
            score = mutate(room, root, options.sample, options.seed, nearest=options.nearest)
            scores.append(score)
            if out is not None:
                out.write_text(json.dumps([asdict(score) for score in scores], indent=1) + "\n")
        os.chdir(ROOT)
    for score in scores:
        counts = f"{score.killed} of {score.tried} tried, {score.possible} possible"
        print(f"{score.room}: {score.share:.0%} noticed, {counts}")
    if any(score.share < options.at_least for score in scores):
        raise SystemExit(f"less than {options.at_least:.0%} of the changes were noticed")


if __name__ == "__main__":
    main()
