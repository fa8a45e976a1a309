"""A described property as a fitted column: what an annotator decided, looked up by the text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.arrays import Bools
from groundfault.core.candidate import FittedColumn
from groundfault.descriptions.annotating import MISSING, DescriptionAgreement, Marks
from groundfault.descriptions.proposing import ExampleDescription
from groundfault.errors import InputError

SOURCE = "described"

Keys = NDArray[np.uint64]

# the fields of the class above have defaults, so these need some too
_UNNAMED = ExampleDescription("it is an example", ("named",))


@dataclass(frozen=True, eq=False)
class DescriptionColumn(FittedColumn):
    """A column that tells where a description holds; ``function`` is ``description``.

    Attributes
    ----------
    description : ExampleDescription
    annotator : str
        Who decided.
    prompt : str
        SHA-256 of the wording that asked.
    keys : uint64 array, shape (texts,)
        Hashes of the texts that were decided on, ascending: the texts themselves are not kept.
    holds : bool array, shape (texts,)
    agreement : DescriptionAgreement, optional
        Of a second annotator. It is no part of the column's name: a check that comes later leaves
        the candidate the same.
    """

    description: ExampleDescription = _UNNAMED
    annotator: str = ""
    prompt: str = ""
    keys: Keys = field(default_factory=lambda: np.empty(0, np.uint64), repr=False)
    holds: Bools = field(default_factory=lambda: np.empty(0, np.bool_), repr=False)
    agreement: DescriptionAgreement | None = None

    def __post_init__(self) -> None:
        """Check nothing: a description checks itself."""

    @classmethod
    def of(
        cls,
        columns: Sequence[str],
        description: ExampleDescription,
        annotator: str,
        prompt: str,
        texts: Sequence[str],
        marks: Marks,
        agreement: DescriptionAgreement | None = None,
    ) -> DescriptionColumn:
        """Return the column of what an annotator decided on texts.

        Those without a mark are left out.

        Parameters
        ----------
        columns : sequence of str
            Which the texts show; see `show_texts`.
        description : ExampleDescription
        annotator, prompt : str
        texts : sequence of str
        marks : int array, shape (texts,)
        agreement : DescriptionAgreement, optional
        """
        decided = marks != MISSING
        keys = _hash_texts(list(compress(texts, decided)))
        order = np.argsort(keys)
        found = keys[order], (marks[decided] == 1)[order], agreement
        return cls(
            SOURCE, "description", tuple(columns), {}, description, annotator, prompt, *found
        )

    @cached_property
    def name(self) -> str:
        """Return the column's name, different for another description, annotator or decision."""
        parts = self.columns, self.description.text, self.annotator, self.prompt
        digest = hashlib.sha256(repr(parts).encode())
        digest.update(self.keys.astype("<u8").tobytes())
        digest.update(np.packbits(self.holds).tobytes())
        return f"{SOURCE}_{digest.hexdigest()[:16]}"

    def apply(self, frame: pl.DataFrame) -> pl.Series:
        """Return whether it holds for each row; NULL for a text that nobody decided on.

        Raises
        ------
        InputError
            If a column holds neither words nor numbers.
        """
        texts = show_texts(frame, self.columns)
        distinct = texts.drop_nulls().unique()
        keys = _hash_texts(distinct.to_list())
        places = np.searchsorted(self.keys, keys)
        safe = np.minimum(places, max(len(self.keys) - 1, 0))
        known = self.keys[safe] == keys if len(self.keys) else np.zeros(len(keys), np.bool_)
        values = self.holds[safe] if len(self.keys) else np.zeros(len(keys), np.bool_)
        table = pl.DataFrame({"text": distinct.filter(pl.Series(known, dtype=pl.Boolean))})
        table = table.with_columns(pl.Series(self.name, values[known], dtype=pl.Boolean))
        rows = pl.DataFrame({"text": texts})
        return rows.join(table, on="text", how="left", maintain_order="left")[self.name]

    def to_dict(self) -> dict[str, Any]:
        """Return the column as plain words and numbers; `from_dict` gives an equal one back."""
        return {
            **super().to_dict(),
            "description": self.description.text,
            "arms": list(self.description.arms),
            "annotator": self.annotator,
            "prompt": self.prompt,
            "texts": len(self.keys),
            "keys": _encode(self.keys.astype("<u8").tobytes()),
            "holds": _encode(np.packbits(self.holds).tobytes()),
            "agreement": msgspec.to_builtins(self.agreement),
        }

    @classmethod
    def read_more(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """Read the description and the decisions.

        Raises
        ------
        InputError, KeyError, TypeError, ValueError
            If it is something else.
        """
        count = int(data["texts"])
        keys = np.frombuffer(_decode(data["keys"]), dtype="<u8").astype(np.uint64)
        bits = np.frombuffer(_decode(data["holds"]), dtype=np.uint8)
        if len(keys) != count or len(bits) != -(-count // 8):
            raise InputError("an annotation has another number of texts than of decisions")
        return {
            "description": ExampleDescription(str(data["description"]), tuple(data["arms"])),
            "annotator": str(data["annotator"]),
            "prompt": str(data["prompt"]),
            "keys": keys,
            "holds": np.unpackbits(bits, count=count).astype(np.bool_),
            "agreement": msgspec.convert(data["agreement"], DescriptionAgreement | None),
        }


def show_texts(frame: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """Return the text shown of each row: one column, or several under their names; NULL for none.

    Raises
    ------
    InputError
        If a column is not there, or holds neither words nor numbers.
    """
    for name in columns:
        dtype = frame.schema.get(name)
        if dtype is None:
            raise InputError(f"there is no column {name!r} to show")
        words = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)
        if not (dtype.is_numeric() or dtype in words):
            raise InputError(f"column {name!r} holds {dtype}, not words or numbers")
    cells = [pl.col(name).cast(pl.String) for name in columns]
    if len(cells) == 1:
        return frame.select(cells[0].alias("text")).to_series()
    lines = [pl.lit(f"{name}: ") + cell for name, cell in zip(columns, cells, strict=True)]
    shown = pl.concat_str(lines, separator="\n", ignore_nulls=True)
    is_empty = pl.all_horizontal(cell.is_null() for cell in cells)
    return frame.select(pl.when(~is_empty).then(shown).alias("text")).to_series()


def _hash_texts(texts: Sequence[str]) -> Keys:
    """Hash texts to eight bytes: two of a million share them once in 37 million tables."""
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(text: Any) -> bytes:
    return base64.b64decode(str(text), validate=True)
