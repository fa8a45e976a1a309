"""Candidates: proposed explanations as named true/false rules, frozen in a library."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from groundfault.base.deprecation import rename_fields
from groundfault.base.files import write_text
from groundfault.base.reading import decode_json, read_text
from groundfault.core.rules import Rule
from groundfault.errors import InputError, RuleError

if TYPE_CHECKING:
    from groundfault.core.fitted_column import FittedColumn

Missing = Literal["reject", "off", "drop"]


@rename_fields(derived="fitted_column")
@dataclass(frozen=True)
class Candidate:
    """A proposed explanation of failures: a true/false property of an example.

    Parameters
    ----------
    name : str
        Unique within a library.
    rule : str
        A SQL boolean expression over example columns, such as ``"n_words > 400"`` or ``"lang =
        'de'"``. A supplied boolean column is the rule that names it.
    meaning : str, optional
        The property in plain English; the rule where left out.
    source : str, optional
        Who proposed it: a finder's name, a file, a person.
    missing : {"reject", "off", "drop"}, optional
        What an example means for which the rule is neither true nor false (a NULL): the candidate
        cannot be tested (the default), the example counts as off, or the example is left out for
        this candidate.
    fitted_column : FittedColumn, optional
        A fitted function that computes a column the rule reads and the evidence need not have.
    mined : str, optional
        Which units a finder that looks at outcomes found it among: `Case.origin` then, and empty
        for candidates that were named without looking.

    Raises
    ------
    RuleError
        If the rule does not parse, is anything but an expression, or does not read the fitted
        column.

    Examples
    --------
    >>> Candidate("long", "n_words > 400").columns
    ('n_words',)
    """

    name: str
    rule: str
    meaning: str = ""
    source: str = "declared"
    missing: Missing = "reject"
    fitted_column: FittedColumn | None = None
    mined: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "rule", "meaning", "source", "mined"):
            if not isinstance(getattr(self, name), str):
                raise RuleError(
                    f"the {name} of a candidate is {getattr(self, name)!r:.60}, no text"
                )
        if not self.name.strip():
            raise RuleError("a candidate needs a name that is not blank")
        if self.missing not in get_args(Missing):
            raise RuleError(
                f"candidate {self.name!r}: missing={self.missing!r} is not one of reject, off, drop"
            )
        columns = self.parsed.columns  # a bad rule fails here, not in the middle of an audit
        if self.fitted_column is not None and self.fitted_column.name not in columns:
            raise RuleError(
                f"candidate {self.name!r}: {self.rule!r} does not read its fitted column "
                f"{self.fitted_column.name!r}"
            )
        if not self.meaning:
            # a frozen dataclass may be completed in __post_init__ only this way
            object.__setattr__(self, "meaning", self.rule)

    def is_mined_from(self, outcome_hash: str) -> bool:
        """Whether it was found by looking at the outcomes of this hash, of whatever units."""
        # an origin is the beginnings of two hashes, of the outcomes and of their split
        return self.mined.partition("/")[0] == outcome_hash[:16]

    @property
    def parsed(self) -> Rule:
        """The rule, parsed and validated."""
        try:
            return Rule.parse(self.rule)
        except RuleError as error:
            raise RuleError(f"candidate {self.name!r}: {error}") from None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the evidence that are read, sorted; for a fitted column, what it reads."""
        if self.fitted_column is None:
            return self.parsed.columns
        return tuple(
            sorted({*self.parsed.columns, *self.fitted_column.columns} - {self.fitted_column.name})
        )

    @classmethod
    def from_text(cls, text: str, *, missing: Missing = "reject") -> Candidate:
        """Read ``"NAME: SQL"``, the form used on the command line."""
        name, colon, rule = text.partition(":")
        if not colon or not name.strip() or not rule.strip():
            raise RuleError(f"candidate {text!r} is not of the form 'NAME: SQL expression'")
        return cls(name.strip(), rule.strip(), missing=missing)


@dataclass(frozen=True)
class Library(Sequence[Candidate]):
    """An ordered, frozen set of candidates with a hash, fixed before any of them is scored.

    Raises
    ------
    RuleError
        If two candidates share a name but not a rule. Exact repeats are merged.
    """

    candidates: tuple[Candidate, ...]

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> Library:
        """Freeze candidates; those that repeat name, rule and missing values are merged."""
        merged: dict[str, Candidate] = {}
        for candidate in candidates:
            first = merged.setdefault(candidate.name, candidate)
            # the same candidate from two finders is one candidate, tested once
            if (first.rule, first.missing) != (candidate.rule, candidate.missing):
                raise RuleError(
                    f"two candidates are named {candidate.name!r} "
                    f"({first.rule!r} and {candidate.rule!r}): rename one"
                )
        return cls(tuple(merged.values()))

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.candidates[index]

    @property
    def hash(self) -> str:
        """SHA-256 of the candidates, whatever their order."""
        # sorted, and without meaning or source: only what decides who is on the slice is sealed
        rows = sorted(
            json.dumps([c.name, c.rule, c.missing], ensure_ascii=False) for c in self.candidates
        )
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    @property
    def sources(self) -> dict[str, int]:
        """How many candidates each source proposed."""
        return dict(Counter(c.source for c in self.candidates))

    def to_json(self) -> str:
        """Serialise; ``Library.from_json`` gives an equal library back."""
        columns = {
            c.fitted_column.name: c.fitted_column for c in self.candidates if c.fitted_column
        }
        data: dict[str, Any] = {"groundfault_library": 1, "hash": self.hash}
        data["candidates"] = [_row(c) for c in self.candidates]
        if columns:
            data["derived"] = {name: column.to_dict() for name, column in columns.items()}
        return json.dumps(data, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, *, where: str = "library") -> Library:
        """Read a frozen library.

        Raises
        ------
        InputError
            If the text is not a library, or its candidates no longer match the hash they were
            frozen with.
        """
        try:
            data = decode_json(text, where)
            library = cls.of(_read_candidates(data))
            digest = data["hash"]
        except RuleError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise InputError(f"{where}: not a frozen groundfault library ({error})") from None
        # a library is frozen before outcomes are seen; an edit afterwards has to show
        if digest != library.hash:
            raise InputError(
                f"{where}: the candidates do not match the hash they were frozen with; "
                "freeze it again"
            )
        return library

    @classmethod
    def load(cls, path: str | Path) -> Library:
        """Read a frozen library from a file."""
        try:
            text = read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the library {path}: {error}") from None
        return cls.from_json(text, where=str(path))

    def freeze(self, path: str | Path) -> None:
        """Write the library to a file, whole or not at all."""
        write_text(Path(path), self.to_json())

    def require_columns(self, available: Iterable[str], *, where: str) -> None:
        """Raise `RuleError` naming every column that the rules read and ``available`` lacks."""
        have = set(available)
        lacking = {
            column: c.name for c in self.candidates for column in c.columns if column not in have
        }
        if lacking:
            column, name = next(iter(lacking.items()))
            more = f" (and {len(lacking) - 1} more columns)" if len(lacking) > 1 else ""
            raise RuleError(
                f"candidate {name!r} reads column {column!r}{more}, which {where} does not have; "
                f"its columns are {_some(sorted(have))}"
            )


def _row(candidate: Candidate) -> dict[str, Any]:
    """A candidate as JSON. The key "derived" is the file format's name of a fitted column."""
    row = {
        f.name: getattr(candidate, f.name)
        for f in fields(candidate)
        if f.name not in ("fitted_column", "mined")
    }
    row |= {"mined": candidate.mined} if candidate.mined else {}
    column = candidate.fitted_column
    return row if column is None else row | {"derived": column.name}


def _read_candidates(data: dict[str, Any]) -> Iterator[Candidate]:
    columns: dict[str, FittedColumn] = {}
    if "derived" in data:
        from groundfault.core.fitted_column import FittedColumn

        columns = {
            name: FittedColumn.from_dict(column) for name, column in dict(data["derived"]).items()
        }
    for row in data["candidates"]:
        settings = dict(row)
        name = settings.pop("derived", None)
        yield Candidate(**settings, fitted_column=None if name is None else columns[name])


def _some(names: Sequence[str], max_names: int = 12) -> str:
    listing = ", ".join(names[:max_names])
    return f"{listing}, ... ({len(names)} in all)" if len(names) > max_names else listing


def unique_names(candidates: Iterable[Candidate], reserved: Iterable[str] = ()) -> list[Candidate]:
    """Number the candidates whose name is in use, so that finders can be combined."""
    names_in_use = set(reserved)
    out = []
    for candidate in candidates:
        name, count = candidate.name, 2
        while name in names_in_use:
            name, count = f"{candidate.name} ({count})", count + 1
        names_in_use.add(name)
        out.append(candidate if name == candidate.name else replace(candidate, name=name))
    return out
