"""Release: write a package of runs, and check that a published package reproduces from itself."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from groundfault.auditing.stored_kinds import list_unlisted
from groundfault.auditing.verification_checks import Verification, judge_differences
from groundfault.base.files import replace_folder, write_text
from groundfault.base.ledger import Ledger
from groundfault.base.reading import (
    MAX_ROWS,
    decode_json,
    read_beside,
    read_bytes,
    read_json_object,
    read_text,
)
from groundfault.base.registry import load_object
from groundfault.errors import GroundfaultError, InputError, first_line
from groundfault.probes.bank.bank import Bank
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.bank.rendering import render
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.probes.review.statuses import Status, items, status_of
from groundfault.probes.running.runs import BANK, GRAMMAR, LEDGER, MANIFEST, ProbeRow
from groundfault.review import Decision, Resolution, resolve
from groundfault.review.decision import select_latest
from groundfault_lab.probes.summary import Summary

INDEX, CONFIG, README = "MANIFEST.json", "config.json", "README.md"
PROMPTS, ROWS, DECISIONS, TABLES, TEXT = (
    "prompts.jsonl",
    "rows.jsonl",
    "decisions.jsonl",
    "tables.json",
    "tables.md",
)
FILES = (README, BANK, GRAMMAR, CONFIG, PROMPTS, ROWS, DECISIONS, TABLES, TEXT)

CONFIG_FIELDS = (
    "policies seeds iterations batch budget streams answers bank grammar prompts valid review"
).split()
_DECODING = "temperature top_p max_tokens seed stop logprobs".split()
PROMPT_FIELDS = ("key", "task", "family", "prompt")
ROW_FIELDS = (
    "model policy seed iteration query key answer rule status how signal score chance"
).split()
ROW_LINE_FIELDS = {*ROW_FIELDS, "response_sha256", "audit", "item"}
DECISION_FIELDS = (
    "item reviewer prompt_valid extraction_valid artefact model_wrong role unblinded"
).split()
_SERVER = re.compile(r"@\w+://.*|\{.*", re.DOTALL)
_PATH = re.compile(
    r"(?:(?<=[/:])|^)(?:[/~\\]|\.{1,2}[/\\]|[A-Za-z]:[/\\]).*?([^/\\]*)[/\\]*$", re.DOTALL
)


TableRenderer = Callable[["Package"], str]
"""Renders the tables of a package as Markdown."""


@dataclass(frozen=True)
class Package:
    """The published part of runs: rows without responses, decisions without names and notes.

    Attributes
    ----------
    bank : Bank
    grammar : Grammar
    config : mapping
    rows : tuple of ProbeRow
        Their responses and what was read in them are empty.
    hashes : mapping of ProbeRow.id to str or None
        SHA-256 of each response.
    items : mapping of ProbeRow.id to str or None
        The number of the reviewed item that a row belongs to.
    decisions : tuple of Decision
        On items by their number, by reviewers r1, r2, ...
    """

    bank: Bank
    grammar: Grammar
    config: Mapping[str, Any]
    rows: tuple[ProbeRow, ...]
    hashes: Mapping[str, str | None]
    items: Mapping[str, str | None]
    decisions: tuple[Decision, ...]

    @cached_property
    def summary(self) -> Summary:
        """Return all numbers, from what is published alone."""
        statuses: dict[str, Status] = {
            row.id: status_of(self.resolutions.get(self.items[row.id] or "")) for row in self.rows
        }
        return Summary(self.rows, statuses, self.grammar, self.config)

    @cached_property
    def resolutions(self) -> dict[str, Resolution]:
        """Return the resolution of each item, by its number."""
        return resolve(self.decisions, int(self.config["review"]["reviewers"]))

    def texts(self, render_tables: TableRenderer) -> dict[str, str]:
        """Render the files but for bank and grammar."""
        prompts = {
            row.key: {name: getattr(row, name) for name in PROMPT_FIELDS} for row in self.rows
        }
        counts, rows = self.counts, self.summary.results.rows
        return {
            README: read_beside(__file__, "release_readme.md").format(
                bank=self.bank.name,
                grammar=self.grammar.name,
                rows=counts["rows"],
                confirmed=counts["confirmed_rows"],
                keys=counts["unique_audited_keys"],
                open=rows.waiting + rows.disputed,
                key="key" if self.bank.has_keys else "answer to the base wording",
            ),
            CONFIG: format_json(self.config),
            PROMPTS: _format_lines(prompts[key] for key in sorted(prompts)),
            ROWS: _format_lines(map(self._row_line, self.rows)),
            DECISIONS: _format_lines(
                {name: getattr(one, name) for name in DECISION_FIELDS} for one in self.decisions
            ),
            TABLES: format_json(self.summary.tables.to_dict()),
            TEXT: render_tables(self),
        }

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts in the index; rows and keys are never added."""
        results = self.summary.results
        return {
            "rows": results.rows.queries,
            "confirmed_rows": results.rows.confirmed,
            "unique_audited_keys": len(results.keys.confirmed),
            "decisions": len(self.decisions),
        }

    def _row_line(self, row: ProbeRow) -> dict[str, Any]:
        values = {name: getattr(row, name) for name in ROW_FIELDS}
        audited = {"audit": self.summary.statuses[row.id], "item": self.items[row.id]}
        values |= {} if row.base is None else {"base": row.base}
        return {**values, "response_sha256": self.hashes[row.id], **audited}


def make_package(audit: ReviewedRuns) -> Package:
    """Make the package that may be published of runs after audit.

    Raises
    ------
    InputError
        If the folder holds no runs.
    """
    runs = audit.runs
    manifest = runs.manifest
    # a model's name may hold a server or a home folder
    names = make_public_names(row.model for row in runs.rows)
    rows = {row.id: replace(row, model=names[row.model], errors=(), **BLANK) for row in runs.rows}
    review = {**manifest.get("review", {}), "reviewers": 1, "seed": 0}
    item_of_row: dict[str, str] = {}
    if audit.decisions:
        queue = audit.queue
        review |= {name: queue.settings[name] for name in ("reviewers", "unit", "controls", "seed")}
        all_items = items(runs.rows, unit=queue.about["unit"])
        item_of_row = {row: item.id for row, item in all_items.items() if item.id in queue.by_id}
    # numbers in place of ids: an id is a hash of the response, which is not published
    numbers: dict[str, str] = {}
    for item in filter(None, map(item_of_row.get, rows)):
        numbers.setdefault(item, f"{len(numbers) + 1:06d}")
    config = {name: manifest[name] for name in CONFIG_FIELDS if name in manifest}
    decoding = manifest["decoding"]
    config["decoding"] = {name: decoding[name] for name in _DECODING if name in decoding}
    return Package(
        runs.bank,
        runs.grammar,
        config | {"review": review},
        tuple(rows.values()),
        {rows[row.id].id: _hash_response(row.response) for row in runs.rows},
        {public_row.id: numbers.get(item_of_row.get(id, "")) for id, public_row in rows.items()},
        _anonymize(audit.decisions, numbers),
    )


def make_public_names(models: Iterable[str]) -> dict[str, str]:
    """Make public names of models, without servers and folders; different ones stay different."""
    names: dict[str, str] = {}
    for model in sorted(set(models)):
        name = _PATH.sub(r"\1", _SERVER.sub("", model)) or "model"
        copies = sum(
            re.fullmatch(rf"{re.escape(name)}( \(\d+\))?", other) is not None
            for other in names.values()
        )
        names[model] = f"{name} ({copies + 1})" if copies else name
    return names


BLANK: dict[str, Any] = {"response": None, "extracted": None, "reason": ""}


def _anonymize(decisions: Sequence[Decision], numbers: Mapping[str, str]) -> tuple[Decision, ...]:
    """Keep the last decision of each reviewer on each item, by numbers alone."""
    # r1, r2, ... in the order of their first decisions, which tells no name
    people: dict[str, str] = {}
    for each in decisions:
        people.setdefault(each.reviewer, f"r{len(people) + 1}")
    last = [
        Decision(
            **{name: getattr(each, name) for name in DECISION_FIELDS}
            | {"reviewer": people[each.reviewer], "item": numbers[each.item]}
        )
        for each in select_latest(decisions).values()
        if each.item in numbers
    ]
    return tuple(sorted(last, key=lambda d: (d.item, d.role, int(d.reviewer[1:]))))


def _format_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)


def format_json(data: Mapping[str, Any]) -> str:
    """Format the text of a JSON file of the package."""
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def hash_file(place: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(read_bytes(place, MAX_ROWS)).hexdigest()


def _hash_response(response: str | None) -> str | None:
    if response is None:
        return None
    return hashlib.sha256(response.encode("utf-8", "surrogatepass")).hexdigest()


RELEASED = "probe_released"

_INDEX = {"groundfault", "files", "counts", "source"}
_MAX_BYTES = 1 << 30  # of a file of a package, which is a stranger's: it is hashed in memory
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
    """The result of a check of a package.

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
        index = read_json_object(folder / INDEX)
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
        keys = package.summary.results.keys.confirmed
        return PackageCheck(tuple(problems), len(files), len(package.rows), len(keys))
    except _UNREADABLE as error:
        return PackageCheck((f"the package cannot be read: {first_line(error)}",), len(files), 0, 0)


def _find_damage(folder: Path, files: Mapping[str, str]) -> Iterable[str]:
    """Find files that are missing, changed or not listed."""
    for name in FILES:
        place = folder / name
        if place.is_symlink() or not place.is_file():
            yield f"{name} is missing"
        elif place.stat().st_size > _MAX_BYTES:
            yield f"{name} is larger than {_MAX_BYTES >> 30} GB"
        elif hash_file(place) != files.get(name):
            yield f"{name} was changed after the package was made"
    for name in list_unlisted(folder, (*FILES, INDEX)):
        yield f"{name} is no part of the package"


def verify_package(folder: Path) -> Verification:
    """Check a package; see `groundfault.verify`."""
    result = check(folder, load_object("groundfault_lab.pages.probe_page:set_tables"))
    what = f"{result.files} files and {result.rows:,} rows add up by themselves"
    return Verification((judge_differences(result.problems, what),))


def _read_package(folder: Path) -> Package:
    bank, grammar = Bank.load(folder / BANK), Grammar.load(folder / GRAMMAR)
    config = read_json_object(folder / CONFIG)
    prompts = {line["key"]: line for line in _read_lines(folder / PROMPTS, set(PROMPT_FIELDS))}
    rows, hashes, numbers = [], {}, {}
    for line in _read_lines(folder / ROWS, ROW_LINE_FIELDS):
        prompt = prompts[line["key"]]
        values = {name: line[name] for name in ROW_FIELDS}
        task, *assignment = line["key"].split("|")
        values |= {"task": task, "family": prompt["family"], "prompt": prompt["prompt"]}
        values |= {"errors": (), "base": line.get("base"), **BLANK}
        row = ProbeRow(**values, assignment=tuple(assignment))
        rows.append(row)
        hashes[row.id], numbers[row.id] = line["response_sha256"], line["item"]
    decisions = tuple(
        Decision(**line) for line in _read_lines(folder / DECISIONS, set(DECISION_FIELDS))
    )
    return Package(bank, grammar, config, tuple(rows), hashes, numbers, decisions)


def _find_contradictions(
    folder: Path, package: Package, counts: Mapping[str, int], render_tables: TableRenderer
) -> Iterable[str]:
    """Find statements of the package that do not follow from its rows and decisions."""
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
        parts = (probe.prompt, probe.task.answer, probe.task.family)
        if parts != (row.prompt, row.answer, row.family):
            yield f"the prompt of {row.key} is not what bank and grammar make"
            break
    if package.counts != counts:
        yield f"the counts of {INDEX} are not those of the rows"
    for name, text in package.texts(render_tables).items():
        stated = read_text(folder / name, MAX_ROWS)
        if name == README:  # of 0.1 and 0.2
            stated = stated.replace("groundfault probe", "groundfault lab probe")
        if stated != text:
            yield f"{name} does not follow from rows and decisions"


def _read_lines(place: Path, names: set[str]) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(read_text(place, MAX_ROWS).splitlines(), start=1):
        values = decode_json(line, f"{place.name}, line {number}")
        if set(values) - {"base"} != names:  # only rows of tasks without keys have one
            raise InputError(
                f"{place.name}, line {number} has the fields "
                f"{', '.join(sorted(set(values) ^ names))} amiss"
            )
        yield values
