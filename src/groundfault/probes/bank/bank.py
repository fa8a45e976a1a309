"""Task banks: questions with keys, rules and derivations, in one readable file, frozen by hash.

The file is TOML: a bank is written and reviewed by people, and TOML gives a question lines of its
own and room for comments, where a line of JSON would hide both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundfault.core.equivalence import RULES, form, natural_rule
from groundfault.errors import InputError
from groundfault.probes.bank import toml_tables

if TYPE_CHECKING:
    import polars as pl

    from groundfault.core.evidence import Evidence

# the parts of a prompt key are joined by bars, and ids are shown in terminals and paths
_ID = re.compile(r"[\w.:+-]+(?: ?[\w.:+-]+)*")
_MAX_ID = 200  # characters: ids are names in paths, of which file systems take 255 bytes a part
_MAX_COLUMNS = 12  # columns in a message
SHIPPED = Path(__file__).parent / "shipped"


@dataclass(frozen=True, kw_only=True)
class Task:
    """A question and its key, if it has one.

    Attributes
    ----------
    id : str
        Letters, digits and ``. : + - _``, with single spaces between words.
    family : str
        Kind of reasoning that the task needs.
    question : str
        The canonical wording; every probe of the task holds it unchanged.
    answer : str
        The key; empty in a bank without keys.
    rule : str
        How an answer is compared with it, or with that to another wording: exact, yes_no, integer,
        numeric or set.
    tolerance : Fraction
        Largest difference that the rule ``numeric`` accepts.
    derivation : str
        Why the key is right, for reviewers.
    tags : tuple of str
        Properties that a person checked, such as ``unambiguous``.
    anchors : tuple of str
        Parts of the question that a rendered prompt must hold; the whole question where none is
        named.
    slots : mapping of str to str
        Texts that components may insert, such as ``shortcut``, a tempting wrong answer.

    Raises
    ------
    InputError
        If a part is missing, the rule is unknown, or the key has another form than the rule reads.
    """

    id: str
    family: str = "all"
    question: str
    answer: str = ""
    rule: str = "exact"
    tolerance: Fraction = Fraction(0)
    derivation: str = ""
    tags: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    slots: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id) or len(self.id) > _MAX_ID:
            raise InputError(
                f"a task cannot have the id {self.id[:_MAX_ID]!r}: use letters, digits and . : + - "
                "_"
            )
        if not self.question.strip():
            raise InputError(f"task {self.id!r} has no question")
        if self.rule not in RULES:
            raise InputError(
                f"task {self.id!r} names the equivalence rule {self.rule!r}; there are "
                f"{', '.join(RULES)}"
            )
        problem = form(self.answer, self.rule) if self.answer else ""
        if problem:
            raise InputError(f"task {self.id!r}: the answer {self.answer!r} {problem}")
        if self.tolerance < 0 or (self.tolerance and self.rule != "numeric"):
            raise InputError(
                f"task {self.id!r}: a tolerance is at least 0, and only the rule numeric has one"
            )
        missing = [anchor for anchor in self.anchors if anchor not in self.question]
        if missing:
            raise InputError(f"task {self.id!r}: the anchor {missing[0]!r} is not in its question")
        try:
            # half a surrogate pair cannot be hashed, written or sent to a model
            json.dumps(self.to_dict(), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InputError(
                f"task {self.id!r} holds half of a surrogate pair, which is not valid text"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the task as the file holds it; empty fields are left out."""
        values = {**vars(self), "slots": dict(self.slots)}
        content = {name: value for name, value in values.items() if value}
        content |= {name: list(content[name]) for name in ("tags", "anchors") if name in content}
        if self.tolerance:
            content["tolerance"] = str(self.tolerance)
        return content

    @classmethod
    def from_dict(cls, table: Mapping[str, object], where: str, *, has_key: bool = True) -> Task:
        """Read a task from a table of the file.

        Parameters
        ----------
        table : mapping
        where : str
        has_key : bool
            Whether it must have an answer, or must not have one.

        Raises
        ------
        InputError
            Naming ``where``.
        """
        if "answer" in table and not has_key:
            raise InputError(
                f"{where} has an answer, but the bank says keys = false: take one of them out"
            )
        if "answer" not in table and has_key:
            raise InputError(f'{where}: answer is missing; write answer = "..."')
        # the place says which task it is
        task = toml_tables.convert(table, cls, where, of=f"task {table.get('id')!r}")
        if has_key and not task.answer:
            raise InputError(f"{where}: the answer '' {form('', task.rule)}")
        return task


@dataclass(frozen=True, eq=False)
class Bank:
    """A fixed set of tasks.

    Attributes
    ----------
    name : str
    tasks : tuple of Task
        In the order of the file, which numbers them.
    about : str

    Raises
    ------
    InputError
        If there is no task, an id comes twice, or only some tasks have a key.

    Examples
    --------
    >>> bank = Bank.shipped()
    >>> len(bank), sorted({task.family for task in bank})
    (18, ['arithmetic', 'counterfactual', 'relation'])
    """

    name: str
    tasks: tuple[Task, ...]
    about: str = ""

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InputError(f"the bank {self.name!r} has no task; write one as [[task]]")
        ids: set[str] = set()
        for task in self.tasks:
            if task.id in ids:
                raise InputError(
                    f"the bank {self.name!r} has two tasks with the id {task.id!r}; rename one"
                )
            ids.add(task.id)
            if bool(task.answer) != self.has_keys:
                raise InputError(
                    f"the bank {self.name!r} has answers to some tasks only ({task.id!r} differs): "
                    "give all answers, or leave all out"
                )

    @property
    def has_keys(self) -> bool:
        """Tell whether tasks have a key; if not, answers are compared across wordings."""
        return bool(self.tasks[0].answer)

    def without_keys(self) -> Bank:
        """Return the same tasks without their keys and derivations."""
        tasks = tuple(replace(task, answer="", derivation="") for task in self.tasks)
        return replace(self, tasks=tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, id: str) -> Task:
        try:
            return self._by_id[id]
        except KeyError:
            raise InputError(f"the bank {self.name!r} has no task {id!r}") from None

    @cached_property
    def _by_id(self) -> dict[str, Task]:
        return {task.id: task for task in self.tasks}

    @cached_property
    def hash(self) -> str:
        """Return the SHA-256 of name and tasks, in their order."""
        return toml_tables.sha256([self.name, [task.to_dict() for task in self.tasks]])

    @classmethod
    def load(cls, path: str | Path) -> Bank:
        """Read a bank.

        Raises
        ------
        InputError
            If the file is no bank, or has another hash than it was frozen with.
        """
        where = str(path)
        file = toml_tables.convert(toml_tables.read(Path(path), "bank"), _BankFile, where)
        tasks = tuple(
            Task.from_dict(row, f"{where}, task {row.get('id', number)!r}", has_key=file.keys)
            for number, row in enumerate(file.task, start=1)
        )
        with toml_tables.locate_errors(where):
            bank = cls(file.name, tasks, file.about)
        # the hash is of the content, so that comments and layout of the file may change
        toml_tables.check_frozen(file.sha256, bank.hash, where)
        return bank

    @classmethod
    def shipped(cls) -> Bank:
        """Load the 18 tasks of the package: arithmetic, relations, counterfactual rules."""
        return cls.load(SHIPPED / "bank.toml")

    @classmethod
    def from_evidence(
        cls,
        evidence: Evidence,
        *,
        question: str = "prompt",
        target: str = "target",
        family: str | None = None,
        rule: str | None = None,
        name: str = "from evidence",
    ) -> Bank:
        """Make a bank of the examples of any evidence.

        Parameters
        ----------
        evidence : Evidence
        question, target : str
            Columns with what was asked and what was expected.
        family : str, optional
            Column with the kind of task.
        rule : str, optional
            One equivalence rule for all; left out, the form of each key decides.

        Raises
        ------
        InputError
            If a column is missing, or one example has two questions or keys.
        """
        id = evidence.roles.id
        if id is None:
            raise InputError(
                "the evidence has no ids, which tasks need; name their column (id=...)"
            )
        columns = {"id": id, "family": family}
        return cls.from_table(
            evidence.frame, question=question, target=target, **columns, rule=rule, name=name
        )

    @classmethod
    def from_table(
        cls,
        source: object,
        *,
        question: str = "prompt",
        target: str | None = "target",
        id: str | None = None,
        family: str | None = None,
        rule: str | None = None,
        name: str = "from a table",
    ) -> Bank:
        """Make a bank of the rows of any table, which need no outcomes.

        Parameters
        ----------
        source : path, or a polars, pandas, Arrow or DuckDB table
        question, target, family, rule
            As for `from_evidence`; without a target the bank has no keys, and the rule is ``exact``
            where none is named.
        id : str, optional
            Column of ids; left out, different pairs of question and target are numbered from 1.

        Raises
        ------
        InputError
            If the table cannot be read, a column is missing, or one id has two questions or keys.
        """
        import polars as pl

        from groundfault.readers.table import read_table

        columns = list(dict.fromkeys(filter(None, (id, question, target, family))))
        frame, _ = read_table(source, text=columns)
        _require_columns(frame, columns)
        rows = frame.select(pl.col(columns).cast(pl.String)).unique(maintain_order=True)
        # a table of many models has each example once for each: equal rows are one task, and rows
        # that differ are an error of the data
        if id is not None and len(twice := rows.filter(pl.col(id).is_duplicated())):
            raise InputError(
                f"example {twice[id][0]!r} has more than one question or target; a task has one of "
                "each"
            )
        tasks = []
        for number, row in enumerate(rows.iter_rows(named=True), start=1):
            label = str(number) if id is None else row[id]
            empty = [column for column in columns if row[column] in (None, "")]
            if empty:
                raise InputError(
                    f"example {label!r} has no {empty[0]}; leave it out, or fill it in"
                )
            task = Task(
                id=re.sub(r"[^\w.:+-]+", "-", label)[:_MAX_ID].strip("-") or "-",
                family=row[family] if family else "all",
                question=row[question],
                answer=row[target] if target else "",
                rule=rule or (natural_rule(row[target]) if target else "exact"),
            )
            tasks.append(task)
        return cls(name, tuple(tasks))

    def write(self, path: str | Path) -> None:
        """Write the bank with its hash, so that a later change shows."""
        head = {"name": self.name, "about": self.about, "sha256": self.hash}
        lines = toml_tables.pairs(head) + ["keys = false"] * (not self.has_keys)
        for task in self.tasks:
            lines += ["", "[[task]]", *toml_tables.pairs(task.to_dict())]
        toml_tables.write(Path(path), lines)


@dataclass(frozen=True, kw_only=True)
class _BankFile:
    """The tables of a file with a bank."""

    name: str
    about: str = ""
    sha256: str = ""
    keys: bool = True
    task: list[dict[str, Any]] = field(default_factory=list)


def _require_columns(frame: pl.DataFrame, columns: list[str]) -> None:
    lacking = [column for column in columns if column not in frame.columns]
    if lacking:
        more = ", ..." if len(frame.columns) > _MAX_COLUMNS else ""
        raise InputError(
            f"there is no column {lacking[0]!r}; name those with question and target (there are "
            f"{', '.join(frame.columns[:_MAX_COLUMNS])}{more})"
        )
