"""Runs: every query of every policy, model and seed, as it was recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from groundfault.base.ledger import Ledger
from groundfault.base.reading import MAX_ROWS, read_bytes, read_text
from groundfault.errors import InputError
from groundfault.probes.bank.bank import Bank
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.running.answers import ROUTED, Signal

MANIFEST, BANK, GRAMMAR = "manifest.json", "bank.toml", "grammar.toml"
CALLS, LEDGER, REVIEWS = "calls.db", "ledger.db", "reviews.db"
OTHER_MODEL = "probe_other_model"
"""Kind of the ledger's event that a server answered as another model than was asked."""
BASE = "base wording"
"""In place of a policy's name, where tasks have no key: each task in the first option of every
group, asked before all else. Other answers to the task are compared with that one."""
TRAJECTORY, STATUS, LOCK = "trajectory.jsonl", "status.json", ".lock"


@dataclass(frozen=True)
class ProbeRow:
    """One query: a prompt that was put to a model once, and what came of it.

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
        Structural errors of the prompt; a prompt that was asked has none.
    status : {"answered", "refused", "error"}
        Status of the response; an error is the service's and no mismatch.
    response : str or None
        As it came.
    extracted, how, reason
        The answer that was read, where it was found, and why the signal is what it is.
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
        """The id of the row that the answer was compared with; empty where it was a key."""
        return "" if self.base is None else f"{self.model}|{BASE}|0|{self.base}"

    def to_dict(self) -> dict[str, Any]:
        """As a line of a trajectory holds it."""
        values = asdict(self)
        # rows of tasks with keys keep the bytes that their ledgers know
        return values if self.base is not None else {k: v for k, v in values.items() if k != "base"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProbeRow:
        """What `to_dict` made."""
        # JSON has no tuples
        return cls(
            **{**data, "assignment": tuple(data["assignment"]), "errors": tuple(data["errors"])}
        )


@dataclass(frozen=True)
class Runs:
    """A folder that ``groundfault probe run`` wrote.

    It has one bank, grammar and config, and the runs of models, policies and seeds.
    """

    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What was fixed before anything was asked."""
        place = self.folder / MANIFEST
        try:
            return dict(json.loads(read_text(place)))
        except (OSError, TypeError, ValueError, RecursionError):
            raise InputError(
                f"{self.folder} holds no runs: {MANIFEST} is missing or cannot be read"
            ) from None

    @cached_property
    def bank(self) -> Bank:
        """The bank that was frozen."""
        return Bank.load(self.folder / BANK)

    @cached_property
    def grammar(self) -> Grammar:
        """The grammar that was frozen."""
        return Grammar.load(self.folder / GRAMMAR)

    @cached_property
    def rows(self) -> list[ProbeRow]:
        """Every query, in the order of the folders' names and, within a run, of the queries."""
        return list(self._rows())

    @cached_property
    def other_models(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a model that was asked and another one that answered in its place."""
        place = self.folder / LEDGER
        events = Ledger(place).events(OTHER_MODEL) if place.exists() else []
        return tuple(sorted({(str(e.body["asked"]), str(e.body["answered"])) for e in events}))

    def _rows(self) -> Iterator[ProbeRow]:
        for place in sorted(self.folder.glob(f"*/*/*/{TRAJECTORY}")):
            # what follows the last line's end was cut short when the run was killed; it is written
            # anew on resuming
            for number, line in enumerate(read_bytes(place, MAX_ROWS).split(b"\n")[:-1], start=1):
                try:
                    yield from map(ProbeRow.from_dict, json.loads(line)["batch"])
                except (KeyError, TypeError, ValueError, RecursionError):
                    raise InputError(f"{place}, line {number} is no iteration of a run") from None
