"""Release: write a package of runs, and check that a published package reproduces from itself."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from groundfault.base.files import write_text
from groundfault.base.folders import replace_folder
from groundfault.base.ledger import Ledger
from groundfault.base.reading import MAX_ROWS, read_bytes, read_text
from groundfault.errors import GroundfaultError, InputError, first_line
from groundfault.probes.bank.bank import Bank
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.bank.rendering import render
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.probes.running.runs import BANK, GRAMMAR, LEDGER, MANIFEST, ProbeRow
from groundfault.probes.use.package import (
    BLANK,
    CONFIG,
    CONFIG_FIELDS,
    DECISION_LINE_FIELDS,
    DECISIONS,
    FILES,
    INDEX,
    PROMPT_FIELDS,
    PROMPTS,
    ROW_FIELDS,
    ROW_LINE_FIELDS,
    ROWS,
    Package,
    TableRenderer,
    format_json,
    hash_file,
    make_package,
)
from groundfault.review import Decision

RELEASED = "probe_released"

_INDEX = {"groundfault", "files", "counts", "source"}
_MAX_BYTES = 1 << 30
_UNREADABLE = (
    GroundfaultError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class PackageCheck:
    """What a check of a package found.

    Attributes
    ----------
    problems : tuple of str
        What differs; empty where everything is reproduced.
    files, rows, keys : int
        Files that the package lists, its rows, and its unique audited prompt keys.
    """

    problems: tuple[str, ...]
    files: int
    rows: int
    keys: int


def release(audit: ReviewedRuns, out: Path, render_tables: TableRenderer) -> Path:
    """Write a package, and record in the runs' ledger that it was made; the place of its index.

    Raises
    ------
    InputError
        If the folder is there and holds anything, or cannot be written to.
    """
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out} is not empty; name a new folder for the package")
    package = make_package(audit)
    texts = package.texts(render_tables)
    ledger = Ledger(audit.runs.folder / LEDGER)
    with replace_folder(out) as new:
        package.bank.write(new / BANK)  # without the comments of the file, which may be private
        package.grammar.write(new / GRAMMAR)
        for name, text in texts.items():
            write_text(new / name, text)
        index = {
            "groundfault": version("groundfault"),
            "files": {name: hash_file(new / name) for name in FILES},
            "counts": package.counts,
            "source": {"manifest": hash_file(audit.runs.folder / MANIFEST), "ledger": ledger.head},
        }
        write_text(new / INDEX, format_json(index))
        ledger.append(RELEASED, {"package": hash_file(new / INDEX), "rows": len(package.rows)})
    return out / INDEX


def check(folder: Path, render_tables: TableRenderer) -> PackageCheck:
    """Recompute a package from itself alone: hashes, prompts, statuses, counts and tables.

    Raises
    ------
    InputError
        If there is no package at this place.
    """
    try:
        index = json.loads(read_text(folder / INDEX))
        files, counts = dict(index["files"]), dict(index["counts"])
    except (OSError, *_UNREADABLE):
        raise InputError(
            f"{folder} holds no package: {INDEX} is missing or cannot be read"
        ) from None
    problems = list(_find_damage(folder, files)) + [
        f"{INDEX} holds {name}" for name in sorted(set(index) - _INDEX)
    ]
    if problems:
        return PackageCheck(tuple(problems), len(files), 0, 0)
    try:
        package = _read_package(folder)
        problems += _find_contradictions(folder, package, counts, render_tables)
        stored_version, here = str(index.get("groundfault")), version("groundfault")
        if problems and stored_version != here:
            problems.append(
                f"it was made with groundfault {stored_version}, and this is {here}: check it with "
                "that one"
            )
        return PackageCheck(
            tuple(problems),
            len(files),
            len(package.rows),
            len(package.summary.results.keys.confirmed),
        )
    except _UNREADABLE as error:
        return PackageCheck((f"the package cannot be read: {first_line(error)}",), len(files), 0, 0)


def _find_damage(folder: Path, files: Mapping[str, str]) -> Iterable[str]:
    """Files that are missing, changed or not listed."""
    for name in FILES:
        place = folder / name
        if place.is_symlink() or not place.is_file():
            yield f"{name} is missing"
        elif place.stat().st_size > _MAX_BYTES:
            yield f"{name} is larger than {_MAX_BYTES >> 30} GB"
        elif hash_file(place) != files.get(name):
            yield f"{name} was changed after the package was made"
    for place in sorted(folder.rglob("*")):
        if str(place.relative_to(folder)) not in (*FILES, INDEX):
            yield f"{place.relative_to(folder)} is no part of the package"


def _read_package(folder: Path) -> Package:
    bank, grammar = Bank.load(folder / BANK), Grammar.load(folder / GRAMMAR)
    config = json.loads(read_text(folder / CONFIG))
    prompts = {line["key"]: line for line in _read_lines(folder / PROMPTS, set(PROMPT_FIELDS))}
    rows, hashes, numbers = [], {}, {}
    for line in _read_lines(folder / ROWS, ROW_LINE_FIELDS):
        prompt = prompts[line["key"]]
        values = {name: line[name] for name in ("model", *ROW_FIELDS)}
        task, *assignment = line["key"].split("|")
        values |= {
            "task": task,
            "family": prompt["family"],
            "prompt": prompt["prompt"],
            "errors": (),
            "base": line.get("base"),
        }
        row = ProbeRow(**values, assignment=tuple(assignment), **BLANK)
        rows.append(row)
        hashes[row.id], numbers[row.id] = line["response_sha256"], line["item"]
    decisions = tuple(
        Decision(**line) for line in _read_lines(folder / DECISIONS, DECISION_LINE_FIELDS)
    )
    return Package(bank, grammar, config, tuple(rows), hashes, numbers, decisions)


def _find_contradictions(
    folder: Path, package: Package, counts: Mapping[str, int], render_tables: TableRenderer
) -> Iterable[str]:
    """Statements of the package that do not follow from its rows and decisions."""
    strange = sorted(set(package.config) - {*CONFIG_FIELDS, "decoding"})
    if strange:
        yield f"{CONFIG} holds {strange[0]}"
    for name, source in (("bank", package.bank), ("grammar", package.grammar)):
        if package.config[name]["sha256"] != source.hash:
            yield f"{name}.toml is not the {name} of the run"
    with tempfile.TemporaryDirectory() as plain:
        for file, source in ((BANK, package.bank), (GRAMMAR, package.grammar)):
            source.write(Path(plain) / file)
            if read_bytes(Path(plain) / file) != read_bytes(folder / file):
                yield f"{file} holds more than its tables, such as comments"
    for row in package.rows:
        probe = render(package.bank, package.grammar, row.task, row.assignment)
        if (probe.prompt, probe.task.answer, probe.task.family) != (
            row.prompt,
            row.answer,
            row.family,
        ):
            yield f"the prompt of {row.key} is not what bank and grammar make"
            break
    if package.counts != counts:
        yield f"the counts of {INDEX} are not those of the rows"
    for name, text in package.texts(render_tables).items():
        if read_text(folder / name, MAX_ROWS) != text:
            yield f"{name} does not follow from rows and decisions"


def _read_lines(place: Path, names: set[str]) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(read_text(place, MAX_ROWS).splitlines(), start=1):
        values = json.loads(line)
        if set(values) - {"base"} != names:  # only rows of tasks without keys have one
            raise InputError(
                f"{place.name}, line {number} has the fields "
                f"{', '.join(sorted(set(values) ^ names))} amiss"
            )
        yield values
