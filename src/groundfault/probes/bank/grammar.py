"""Grammars: groups of prompt components in one readable file, frozen by hash.

A prompt takes one option of each group.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from groundfault.errors import InputError, PlanError
from groundfault.probes.bank import toml_tables
from groundfault.probes.bank.bank import SHIPPED

Assignment = tuple[str, ...]

PLACE = re.compile(r"\{(\w+)\}")
QUESTION = "question"
KEEPS = ("wording", "facts", "operations", "relations", "answer")
"""What a group can promise not to change: the question's wording, its facts, its operations, its
relations, and which answers are right. That ``wording`` is kept is checked on every prompt;
``answer`` makes a metamorphic relation: the options of the group must get equivalent answers. The
others are for reviewers."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,59}", re.IGNORECASE)
# ten times the prompts that a run takes: beyond it a layout is a slip, and counting alone is slow
_MAX_ASSIGNMENTS = 10_000_000


@dataclass(frozen=True)
class Option:
    """One wording of a group.

    Its text may hold ``{slot}``, which a task fills, and ``{question}``; an empty text adds nothing
    to the prompt.
    """

    name: str
    text: str = ""

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the slots that a task must fill for this option."""
        return tuple(dict.fromkeys(name for name in PLACE.findall(self.text) if name != QUESTION))


@dataclass(frozen=True)
class ComponentGroup:
    """A choice of options, the first of which is the plain one.

    Attributes
    ----------
    name : str
    options : tuple of Option
    keeps : tuple of str
        The things that no option may change, of `KEEPS`.

    Raises
    ------
    InputError
        If there is no option, two have one name, or ``keeps`` has an unknown entry.
    """

    name: str
    options: tuple[Option, ...]
    keeps: tuple[str, ...] = KEEPS

    def __post_init__(self) -> None:
        if not self.options:
            raise InputError(
                f"the group {self.name!r} is empty; give it an option, or leave the group out"
            )
        _check_names(f"the group {self.name!r}", "option", [option.name for option in self.options])
        unknown = [word for word in self.keeps if word not in KEEPS]
        if unknown:
            raise InputError(
                f"the group {self.name!r} keeps {unknown[0]!r}; it can keep {', '.join(KEEPS)}"
            )

    @property
    def rewords(self) -> bool:
        """Return whether its options reword the question, with the plain question as the first."""
        return self.options[0].text == f"{{{QUESTION}}}"


@dataclass(frozen=True, eq=False)
class Grammar:
    """Groups of components, and where in the prompt they stand.

    Attributes
    ----------
    name : str
    groups : tuple of Group
    layout : str
        The prompt, with ``{question}`` and the name of each group in braces, each once. Blank lines
        that an empty component leaves are closed up. If the plain option of a group is
        ``{question}``, the other options of that group reword it, and the layout leaves it out.
    longest : int
        Most characters of a prompt.
    about : str

    Raises
    ------
    InputError
        If a group comes twice, or the layout lacks one or names something else.

    Examples
    --------
    >>> grammar = Grammar.shipped()
    >>> len(grammar), grammar.assignment({"distractor": "shortcut"})
    (27, ('canonical', 'shortcut', 'direct'))
    """

    name: str
    groups: tuple[ComponentGroup, ...]
    layout: str
    longest: int = 8000
    about: str = ""

    def __post_init__(self) -> None:
        where = f"the grammar {self.name!r}"
        if not self.groups:
            raise InputError(f"{where} has no group; write one as [[group]]")
        names = [group.name for group in self.groups]
        _check_names(where, "group", names)
        places = PLACE.findall(self.layout)
        needed = [*[QUESTION] * self.is_verbatim, *names]
        # a group without a place would be an option that changes nothing, and be compared all the
        # same
        if sorted(places) != sorted(needed):
            braces = ", ".join(f"{{{name}}}" for name in needed)
            raise InputError(
                f"{where}: the layout must hold {braces}, each once, and no other braces"
            )
        if isinstance(self.longest, bool) or not isinstance(self.longest, int) or self.longest < 1:
            raise InputError(f"{where}: longest must be a whole number of characters, at least 1")
        if len(self) > _MAX_ASSIGNMENTS:
            raise InputError(
                f"{where} has {len(self):,} assignments; at most {_MAX_ASSIGNMENTS:,} are allowed"
            )

    @property
    def is_verbatim(self) -> bool:
        """Return whether every prompt holds the question unchanged."""
        return not any(group.rewords for group in self.groups)

    def __len__(self) -> int:
        """Return the number of assignments."""
        return math.prod(len(group.options) for group in self.groups)

    def __iter__(self) -> Iterator[Assignment]:
        """Yield all assignments: the name of an option for each group, in a fixed order."""
        return itertools.product(*([o.name for o in group.options] for group in self.groups))

    def assignment(self, options: Mapping[str, str] | None = None) -> Assignment:
        """Make the assignment with these options by group; plain where a group is not named.

        Raises
        ------
        PlanError
            If the group or option does not exist.
        """
        remaining = dict(options or {})
        names = tuple(remaining.pop(group.name, group.options[0].name) for group in self.groups)
        if remaining:
            names_of_groups = ", ".join(group.name for group in self.groups)
            raise PlanError(
                f"the grammar has no group {next(iter(remaining))!r}; it has {names_of_groups}"
            )
        self.options_of(names)
        return names

    def options_of(self, assignment: Assignment) -> tuple[Option, ...]:
        """Return the options that an assignment names.

        Raises
        ------
        PlanError
            If it names too many or too few, or one that is not there.
        """
        if len(assignment) != len(self.groups):
            raise PlanError(
                f"an assignment names {len(self.groups)} options, one a group, not "
                f"{len(assignment)}"
            )
        return tuple(
            _find_option(group, name) for group, name in zip(self.groups, assignment, strict=True)
        )

    @property
    def relations(self) -> list[str]:
        """Return the metamorphic relations: groups whose options must get equivalent answers."""
        return [group.name for group in self.groups if "answer" in group.keeps]

    def fitting(self, slots: Collection[str]) -> Grammar:
        """Drop options that need another slot; the first option of a group stays.

        Examples
        --------
        >>> len(Grammar.shipped().fitting([]))
        18
        """
        groups = []
        for group in self.groups:
            plain, *others = group.options
            fitting = tuple(option for option in others if {*option.slots} <= {*slots})
            groups.append(replace(group, options=(plain, *fitting)))
        if groups == list(self.groups):
            return self
        return replace(self, name=f"{self.name}-fitting", groups=tuple(groups))

    @cached_property
    def hash(self) -> str:
        """Return the SHA-256 of the grammar: its options, and the properties that groups keep."""
        return toml_tables.sha256(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return it as the file holds it, without its prose."""
        groups = [
            {"name": g.name, "keeps": list(g.keeps), "option": [vars(o) for o in g.options]}
            for g in self.groups
        ]
        # prose is left out of the hash: it changes no prompt
        return {"name": self.name, "layout": self.layout, "longest": self.longest, "group": groups}

    @classmethod
    def load(cls, path: str | Path) -> Grammar:
        """Read a grammar.

        Raises
        ------
        InputError
            If the file is no grammar, or has another hash than it was frozen with.
        """
        where = str(path)
        file = toml_tables.convert(toml_tables.read(Path(path), "grammar"), _GrammarFile, where)
        with toml_tables.locate_errors(where):
            groups = tuple(_read_group(row, where) for row in file.group)
            grammar = cls(file.name, groups, file.layout, file.longest, file.about)
        toml_tables.check_frozen(file.sha256, grammar.hash, where)
        return grammar

    @classmethod
    def shipped(cls) -> Grammar:
        """Load the paper's grammar: three reading cues, three distractors, three formats."""
        return cls.load(SHIPPED / "grammar.toml")

    def write(self, path: str | Path) -> None:
        """Write the grammar with its hash, so that a later change shows."""
        head = {"name": self.name, "about": self.about, "sha256": self.hash}
        lines = toml_tables.pairs({**head, "longest": self.longest, "layout": self.layout})
        for group in self.groups:
            names = toml_tables.pairs({"name": group.name, "keeps": group.keeps})
            lines += ["", "[[group]]", *names, *["keeps = []"] * (not group.keeps)]
            for option in group.options:
                lines += ["", "[[group.option]]", *toml_tables.pairs(vars(option))]
        toml_tables.write(Path(path), lines)


@dataclass(frozen=True, kw_only=True)
class _GrammarFile:
    """The tables of a file with a grammar."""

    name: str
    layout: str
    about: str = ""
    sha256: str = ""
    longest: int = 8000
    group: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _GroupTable:
    """The tables of a group."""

    name: str
    about: str = ""
    keeps: tuple[str, ...] = KEEPS
    option: list[dict[str, Any]] = field(default_factory=list)


def _read_group(row: Mapping[str, object], where: str) -> ComponentGroup:
    here = f"{where}, group {row['name']!r}" if "name" in row else f"{where}, a group"
    table = toml_tables.convert(row, _GroupTable, here)
    options = (toml_tables.convert(each, Option, f"{here}, an option") for each in table.option)
    return ComponentGroup(table.name, tuple(options), table.keeps)


def _find_option(group: ComponentGroup, name: str) -> Option:
    for option in group.options:
        if option.name == name:
            return option
    names = ", ".join(option.name for option in group.options)
    raise PlanError(f"the group {group.name!r} has no option {name!r}; it has {names}")


def _check_names(where: str, kind: str, names: list[str]) -> None:
    for number, name in enumerate(names):
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{where} has the {kind} {name!r}; a name is a letter, then letters, digits, - and "
                "_"
            )
        if name in names[:number]:
            raise InputError(f"{where} has the {kind} {name!r} twice; rename one")
