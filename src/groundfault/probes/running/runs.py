"""Runs: every recorded query of every policy, model and seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import msgspec

from groundfault.base.files import make_file, make_folder, write_bytes
from groundfault.base.holdout_events import Event
from groundfault.base.ledger import Ledger
from groundfault.base.reading import MAX_ROWS, decode_json, read_bytes, read_json_object
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.probes.bank.bank import Bank
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.bank.rendering import describe
from groundfault.probes.running.answers import ROUTED, Signal
from groundfault.probes.running.config import Config, slug

MANIFEST, BANK, GRAMMAR = "manifest.json", "bank.toml", "grammar.toml"
CALLS, LEDGER, REVIEWS = "calls.db", "ledger.db", "reviews.db"
RUN_SEALED, ITERATION = "probe_run_sealed", "probe_iteration"
OTHER_MODEL = "probe_other_model"
"""Kind of the ledger's event that a server answered as another model than was asked."""
BASE = "base wording"
"""In place of a policy's name, where tasks have no key: each task in the first option of every
group, asked before all else. Other answers to the task are compared with that one."""
TRAJECTORY, STATUS, LOCK = "trajectory.jsonl", "status.json", ".lock"


@dataclass(frozen=True)
class ProbeRow:
    """One query: a prompt that was put to a model once, and its response.

    Attributes
    ----------
    model, policy : str
    seed : int
    iteration, query : int
        From 1: the iteration of its run, and its place among the queries of the run.
    key, task, family : str
        The prompt key, which names no model; its task, and the task's family.
    assignment : tuple of str
        The option of each group of the grammar.
    prompt, answer, rule : str
        The rendered prompt; the canonical answer, empty where tasks have no key, and its
        equivalence rule.
    errors : tuple of str
        Structural errors of the prompt; empty if it was asked.
    status : {"answered", "refused", "error"}
        Status of the response; an error is the service's and no mismatch.
    response : str or None
        As it came.
    extracted, how, reason
        The answer that was read, its place in the response, and the reason for the signal.
    signal : {"match", "mismatch", "unreadable", "unanswered"}
        Where it was routed. It is no label of an error.
    score : float or None
        The failure score that policies see: 1 for a mismatch, 0 for a match, None for what cannot
        be told.
    chance : float or None
        The probability with which the policy drew this key at this place, where that is known.
    base : int or None
        Where tasks have no key: which query of `BASE` the answer was compared with.
    """

    model: str
    policy: str
    seed: int
    iteration: int
    query: int
    key: str
    task: str
    family: str
    assignment: tuple[str, ...]
    prompt: str
    answer: str
    rule: str
    errors: tuple[str, ...]
    status: Literal["answered", "refused", "error"]
    response: str | None
    extracted: str | None
    how: str
    reason: str
    signal: Signal
    score: float | None
    chance: float | None = None
    base: int | None = None

    @property
    def is_routed(self) -> bool:
        """Tell whether the machine sent the row to a person."""
        return self.signal in ROUTED

    @property
    def id(self) -> str:
        """Return the row's name: model, policy, seed and query."""
        return f"{self.model}|{self.policy}|{self.seed}|{self.query}"

    @property
    def base_id(self) -> str:
        """Return the id of the row that the answer was compared with; empty where it was a key."""
        return "" if self.base is None else f"{self.model}|{BASE}|0|{self.base}"

    def to_dict(self) -> dict[str, Any]:
        """Return the row as a line of a trajectory holds it."""
        values = msgspec.to_builtins(self)
        # rows of tasks with keys keep the bytes that their ledgers know
        return values if self.base is not None else {k: v for k, v in values.items() if k != "base"}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> ProbeRow:
        """Read a dict that `to_dict` made."""
        return msgspec.convert(data, cls)


@dataclass(frozen=True)
class Runs:
    """A folder that ``groundfault lab probe run`` wrote.

    It has one bank, grammar and config, and the runs of models, policies and seeds.
    """

    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Return the settings fixed before the first question."""
        place = self.folder / MANIFEST
        try:
            return read_json_object(place)
        except InputError:
            raise InputError(
                f"{self.folder} holds no runs: {MANIFEST} is missing or cannot be read"
            ) from None

    @cached_property
    def bank(self) -> Bank:
        """Return the bank that was frozen."""
        return Bank.load(self.folder / BANK)

    @cached_property
    def grammar(self) -> Grammar:
        """Return the grammar that was frozen."""
        return Grammar.load(self.folder / GRAMMAR)

    @cached_property
    def rows(self) -> list[ProbeRow]:
        """Return every query, by the folders' names and, within a run, in order."""
        rows: list[ProbeRow] = []
        for place, number, line in self.lines():
            try:
                rows += map(ProbeRow.from_dict, decode_json(line.decode(), str(place))["batch"])
            except (KeyError, TypeError, ValueError, RecursionError):
                raise InputError(f"{place}, line {number} is no iteration of a run") from None
        return rows

    @cached_property
    def other_models(self) -> tuple[tuple[str, str], ...]:
        """Return pairs of a model that was asked and another one that answered in its place."""
        bodies = [event.body for event in self.events(OTHER_MODEL)]
        return tuple(sorted({(str(body["asked"]), str(body["answered"])) for body in bodies}))

    def events(self, kind: str) -> list[Event]:
        """Return the events of a kind in the ledger; an empty list without a ledger."""
        place = self.folder / LEDGER
        return Ledger(place).events(kind) if place.exists() else []

    def lines(self) -> Iterator[tuple[Path, int, bytes]]:
        """Yield the iterations of all trajectories: file, number of the line, and the line."""
        for place in sorted(self.folder.glob(f"*/*/*/{TRAJECTORY}")):
            # what follows the last line's end was cut short when the run was killed; it is written
            # anew on resuming
            lines = read_bytes(place, MAX_ROWS).split(b"\n")[:-1]
            yield from ((place, number, line) for number, line in enumerate(lines, start=1))


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold a folder: a second process is refused, and a process that is killed holds it no longer.

    Raises
    ------
    InputError
        If another process holds it, or it cannot be written to.
    """
    import sqlite3

    try:
        make_folder(folder)
        make_file(folder / LOCK)
        lock = sqlite3.connect(folder / LOCK, timeout=0, isolation_level=None)
        # the operating system lets go of it, however the process ends
        lock.execute("BEGIN EXCLUSIVE")
    except OSError as error:
        raise InputError(
            f"cannot write to {folder}: {error.strerror or error}; choose another folder"
        ) from None
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise InputError(
                f"another process runs in {folder}; wait for its end, or choose another folder"
            ) from None
        raise InputError(f"cannot write to {folder}: {error}; choose another folder") from None
    with closing(lock):
        yield


def seal(
    folder: Path, config: Config, bank: Bank, grammar: Grammar, model: str, more: Mapping[str, int]
) -> list[Event]:
    """Fix the prompts to be asked, or check them against those fixed before.

    Parameters
    ----------
    folder : Path
        Held by this process.
    config : Config
    bank, grammar
        Its own, loaded.
    model : str
        The name of the target.
    more : mapping
        Further entries of the manifest.

    Returns
    -------
    list of Event
        All that the ledger holds.

    Raises
    ------
    InputError
        If the folder was begun with another bank, grammar or config.
    LedgerError
        If the fixed prompts were changed.
    """
    settings = {**describe(bank, grammar), **config.to_dict(), **more}
    # these bytes are sealed: another order or indent is another hash
    text = (json.dumps(settings, indent=1) + "\n").encode()
    ledger, place = Ledger(folder / LEDGER), folder / MANIFEST
    # the manifest's hash is in the ledger, so that neither can be exchanged alone
    exists, sealed = place.exists(), {"manifest": hashlib.sha256(text).hexdigest(), "model": model}
    if exists:
        _refuse_others(place, text, settings)
        _refuse_changed(folder, settings)
    events: list[Event] = []
    if (folder / LEDGER).exists():
        ledger.check()
        events = ledger.events()
    seals = [event.body for event in events if event.kind == RUN_SEALED]
    _refuse_seals(folder, seals, sealed)
    if not exists:
        for name, source in ((BANK, config.bank), (GRAMMAR, config.grammar)):
            write_bytes(folder / name, read_bytes(source))
        write_bytes(place, text)
    if not any(sealed.items() <= body.items() for body in seals):
        events.append(ledger.append(RUN_SEALED, {**sealed, "groundfault": version("groundfault")}))
    return events


def _refuse_changed(folder: Path, settings: Mapping[str, object]) -> None:
    frozen = describe(Bank.load(folder / BANK), Grammar.load(folder / GRAMMAR))
    for name, description in frozen.items():
        if description != settings[name]:
            raise LedgerError(
                f"{folder / name}.toml was changed after the run began; put back what it was"
            )


def _refuse_seals(
    folder: Path, seals: Sequence[Mapping[str, object]], sealed: Mapping[str, str]
) -> None:
    for body in seals:
        if body["manifest"] != sealed["manifest"]:
            raise LedgerError(
                f"{folder} was sealed with another {MANIFEST}; restore that, or choose another "
                "folder"
            )
        # folders are named by slug: two models with one slug would write into each other's files
        if body["model"] != sealed["model"] and slug(str(body["model"])) == slug(sealed["model"]):
            raise PlanError(
                f"{folder} holds runs of {body['model']}, a name too like this one; choose another "
                "folder"
            )


def _refuse_others(place: Path, text: bytes, now: Mapping[str, object]) -> None:
    content = read_bytes(place)
    if content == text:
        return
    try:
        before = decode_json(content.decode(), str(place))
        what, then, new = next(_find_differences(before, now))
        what = what.removesuffix(" sha256")
    except (StopIteration, TypeError, ValueError, AttributeError):
        raise LedgerError(
            f"{place} was changed after the run began; restore it from a copy"
        ) from None
    raise InputError(
        f"{place.parent} was begun with another {what}: {then} then, {new} now; put it back, or "
        "choose another folder"
    )


def _find_differences(before: object, now: object, where: str = "") -> Iterator[tuple[str, ...]]:
    """Yield differences: the path of each, and both values."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in (*now, *(name for name in before if name not in now)):
            yield from _find_differences(before.get(name), now.get(name), f"{where} {name}".strip())
    elif before != now:
        yield where, _shorten(before), _shorten(now)


def _shorten(value: object) -> str:
    text = value[:12] if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
