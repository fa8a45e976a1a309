"""Configs: prompts and settings of a run in one readable file, fixed before the first question."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from groundfault.errors import PlanError
from groundfault.models import Question
from groundfault.probes import policies
from groundfault.probes.bank import toml_tables
from groundfault.probes.policies import DEFAULT, PromptPolicy

_DECODING = ("temperature", "top_p", "max_tokens", "seed", "stop", "extra")
_HUGE = 1e300  # just below the largest float, 1.8e308
_REVIEW = ("reviewers", "unit", "controls")
_TABLES = {
    "decoding": _DECODING,
    "asking": ("concurrency", "timeout", "retries"),
    "review": _REVIEW,
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that is fixed before a run asks its first question, and how it asks.

    Parameters
    ----------
    bank, grammar : path
    policies : sequence of str
        Each as `groundfault.probes.policies.get` takes it: ``gp``, or with settings ``caps,
        repeats, prior=stressor``.
    seeds : sequence of int
    iterations : int, optional
        Iterations of each policy and seed; after each one the policy sees the signals.
    batch : int
        Queries of an iteration.
    budget : int, optional
        Queries of each policy and seed, where iterations are not given; the last iteration may be
        smaller.
    streams : {"independent", "shared"}
        Whether policies draw all but tasks from streams of their own. That of tasks is always
        shared.
    answers : {"shared", "fresh"}, optional
        Whether a prompt that is asked again takes the recorded answer or is asked anew; left out,
        shared where the temperature is 0.
    decoding : mapping
        Settings of `groundfault.models.Question`; temperature 0 and 192 tokens where they are left
        out.
    concurrency, timeout, retries
        As for `groundfault.models.ask`. The seal does not cover them.
    reviewers : {1, 2}
    unit : {"key", "row"}
        The runs of one review.
    controls : float
        Share of the matches that are reviewed unseen among the mismatches, in [0, 1].

    Raises
    ------
    PlanError
        If a setting is out of range, or contradicts another.
    InputError
        If decoding does not have the setting.
    """

    bank: Path
    grammar: Path
    policies: Sequence[str] = ("stratified", DEFAULT)
    seeds: Sequence[int] = (0, 1, 2)
    iterations: int | None = None
    batch: int = 3
    budget: int | None = None
    streams: str = "independent"
    answers: str | None = None
    decoding: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int = 8
    timeout: float = 60.0
    retries: int = 4
    reviewers: int = 1
    unit: str = "key"
    controls: float = 0.1

    def __post_init__(self) -> None:
        for name, (words, fits) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not fits(value):
                raise PlanError(f"{name} is {value!r}; it must be {words}")
        if (self.iterations is None) == (self.budget is None):
            raise PlanError(
                "set either iterations or budget: how often a policy is asked, or for how many "
                "queries"
            )
        toml_tables.require_known(self.decoding, _DECODING, "decoding")
        object.__setattr__(self, "decoding", {"temperature": 0, "max_tokens": 192, **self.decoding})
        # checked here, so that a wrong decoding setting stops the run before anything is paid for
        self.question("?")
        object.__setattr__(self, "policies", tuple(policy.name for policy in self.prompt_policies))
        object.__setattr__(self, "seeds", tuple(self.seeds))

    @cached_property
    def prompt_policies(self) -> tuple[PromptPolicy, ...]:
        """Return the policies, in their order."""
        listed = isinstance(self.policies, Sequence) and not isinstance(self.policies, str)
        if not listed or not self.policies:
            raise PlanError(
                'policies must be a list with at least one, such as ["stratified", "gp"]'
            )
        by_slug: dict[str, PromptPolicy] = {}
        for name in self.policies:
            if not isinstance(name, str):
                raise PlanError(
                    f'policies holds {name!r}; write the name of a policy, such as "gp"'
                )
            policy = policies.get(name)
            # names become folders: two that differ in punctuation only would share one
            if slug(policy.name) in by_slug:
                raise PlanError(f"policies holds {policy.name!r} twice; leave one out")
            by_slug[slug(policy.name)] = policy
        return tuple(by_slug.values())

    @property
    def queries(self) -> int:
        """Return the largest number of queries of a policy and seed."""
        return self.budget if self.budget is not None else (self.iterations or 0) * self.batch

    @property
    def rounds(self) -> int:
        """Return iterations of each policy and seed."""
        return -(-self.queries // self.batch)

    @property
    def shares(self) -> bool:
        """Tell whether a prompt that is asked again takes the recorded answer."""
        # at temperature 0 the same prompt has one answer: paying for it twice tells nothing new
        return self.answers == "shared" if self.answers else self.question("?").temperature == 0

    def question(self, prompt: str, repeat: int = 0) -> Question:
        """Make a question of a prompt, with the settings it is asked with."""
        try:
            return Question(prompt, repeat=repeat, **self.decoding)
        except PlanError as error:
            raise PlanError(f"decoding: {error}") from None

    def stream(self, policy: str) -> str:
        """Return the name of the stream that a policy draws all but tasks from."""
        # by default a stream for each policy: with a shared one, policies that ask alike would
        # agree by chance alone
        return "components" if self.streams == "shared" else f"components {policy}"

    def to_dict(self) -> dict[str, Any]:
        """Return the sealed settings: all but asking, with bank and grammar by their content."""
        return {
            "policies": list(self.policies),
            "seeds": list(self.seeds),
            "iterations": self.rounds,
            "batch": self.batch,
            "budget": self.queries,
            "streams": {"tasks": "matched", "components": self.streams},
            "answers": "shared" if self.shares else "fresh",
            "decoding": self.question("?").settings,
            "review": {name: getattr(self, name) for name in _REVIEW},
        }

    @classmethod
    def load(cls, path: str | Path) -> Config:
        """Read a config; bank and grammar are found from where it lies.

        Raises
        ------
        InputError
            If the file cannot be read, or holds something unknown.
        PlanError
            If a setting is out of range.
        """
        where, home = str(path), Path(path).parent
        data = toml_tables.read(Path(path), "config")
        inner = {name for names in _TABLES.values() for name in names}
        plain = [f.name for f in fields(cls) if f.name not in inner]
        toml_tables.require_known(data, tuple(dict.fromkeys([*plain, *_TABLES])), where)
        settings = {name: value for name, value in data.items() if name not in ("asking", "review")}
        for name, names in _TABLES.items():
            table = data.get(name, {})
            if not isinstance(table, dict):
                raise PlanError(f"{where}: {name} must be a table; write [{name}]")
            toml_tables.require_known(table, names, f"{where}, [{name}]")
            settings |= {name: table} if name == "decoding" else table
        places = {key: value for key, value in data.items() if key in _Places.__annotations__}
        files = toml_tables.convert(places, _Places, where)
        settings |= {"bank": home / files.bank, "grammar": home / files.grammar}
        try:
            return cls(**settings)
        except PlanError as error:
            raise PlanError(f"{where}: {error}") from None


@dataclass(frozen=True)
class _Places:
    """The names of the bank and the grammar in the file."""

    bank: str = "bank.toml"
    grammar: str = "grammar.toml"


def slug(name: str) -> str:
    """Turn a name into the name of a folder."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.casefold()).strip("-.")[:100] or "-"


def _is_whole(value: object, low: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _is_number(value: Any) -> bool:
    # by comparison: TOML has integers that no float holds, and nothing is asked for so long
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -_HUGE < value < _HUGE


def _are_seeds(value: Any) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    return is_list and all(map(_is_whole, value)) and len(set(value)) == len(value)


_COUNT = ("a whole number of at least 1", partial(_is_whole, low=1))
_RANGES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("iterations", "batch", "budget", "concurrency"), _COUNT),
    "seeds": ("a list of whole numbers of at least 0, none twice", _are_seeds),
    "streams": ("independent or shared", ("independent", "shared").__contains__),
    "answers": ("shared or fresh", ("shared", "fresh").__contains__),
    "timeout": ("above 0 seconds", lambda v: _is_number(v) and v > 0),
    "retries": ("a whole number of at least 0", _is_whole),
    "reviewers": ("1 or 2", lambda v: _is_whole(v) and v in (1, 2)),
    "unit": ("key or row", ("key", "row").__contains__),
    "controls": ("a share in [0, 1]", lambda v: _is_number(v) and 0 <= v <= 1),
}
