"""Annotating: a language model, or a person on a sheet, decides blindly where descriptions hold."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import compress, product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Places
from groundfault.base.files import write_bytes
from groundfault.base.long_work import stream
from groundfault.base.sheets import escape_cell, format_csv, read_sheet_text, split_rows
from groundfault.core.candidate import DESCRIBED, FittedColumn
from groundfault.descriptions.proposing import PROMPTS, ExampleDescription
from groundfault.errors import InputError
from groundfault.models.budget import CallBudget, CallEstimate
from groundfault.models.question import Question
from groundfault.models.replies import ModelRequest, Unreadable, decode, fence
from groundfault.models.target import Target
from groundfault.stats import agreement as rating

Marks = NDArray[np.int64]

MISSING = rating.MISSING
"""The mark for a missing decision."""

_MAX_STATEMENTS = 20  # in one question: more are several questions
_TOKENS = 7  # of one decision in a reply, about

PERSON = "a person"
"""Who decided on a sheet."""
_HEADS = ("text", "description", "holds")
_WORDS = {"yes": 1, "no": 0, "": MISSING}


class DescriptionAgreement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The share of texts on which a second annotator decides the same.

    Attributes
    ----------
    annotator : str
        The second annotator; the first one's name if it is the same model, asked again.
    checked, agreed : int
        Random examples that both decided, and the number of these with equal decisions.
    interval : pair of float, or None
        Wilson's interval of the share, at 95%; None without checked examples.
    kappa : float or None
        Cohen's kappa: agreement beyond chance; None if it is undefined.
    kappa_interval : pair of float, or None
        From resampled examples, at 95%; None if the examples are too few or all equal.
    """

    annotator: str
    checked: int
    agreed: int
    interval: tuple[float, float] | None = None
    kappa: float | None = None
    kappa_interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Annotation:
    """Decisions on texts and descriptions.

    Attributes
    ----------
    marks : int array, shape (texts, descriptions)
        1 if a description holds, 0 if not, `MISSING` without a decision.
    replies : dict of str to int
        Numbers of replies that were read, unparsed, refused or errors.
    """

    marks: Marks
    replies: dict[str, int]


def annotate(
    texts: Sequence[str],
    descriptions: Sequence[ExampleDescription],
    target: Target,
    budget: CallBudget,
    *,
    seed: int = 0,
    repeat: int = 0,
) -> Annotation:
    """Decide for each text whether each description holds.

    The annotator sees the text and a mix of real and control descriptions. It does not see
    outcomes, other texts or the origin of a description. A text whose reply cannot be read, even
    after asking once more, gets no marks from this reply.

    Parameters
    ----------
    texts : sequence of str
        The annotator sees the first 4,000 characters of each text.
    descriptions : sequence of ExampleDescription
        Descriptions proposed from outcomes are asked in separate questions, because decisions may
        depend on the other descriptions in a question, and so on their origin.
    target : Target
    budget : CallBudget
    seed : int
        Seed for the order of the descriptions; also sent to the model.
    repeat : int
        Another number asks the same model again.

    Raises
    ------
    PlanError, InputError
        As `CallBudget.ask_for`.
    """
    blocks = _deal(descriptions, seed)
    requests = list(_make_requests(texts, descriptions, blocks, seed, repeat))
    purpose = (
        f"annotating {len(texts):,} example{'s' * (len(texts) != 1)}{' once more' * bool(repeat)}"
    )
    replied = budget.ask_for(target, requests, purpose, _size_reply(blocks))
    marks = np.full((len(texts), len(descriptions)), MISSING, dtype=np.int64)
    for place, reply in enumerate(replied):
        row, block = divmod(place, len(blocks))
        if reply.value is not None:
            marks[row, blocks[block]] = reply.value
    return Annotation(marks, dict(Counter(reply.status for reply in replied)))


def estimate_annotation(
    texts: Sequence[str], descriptions: Sequence[ExampleDescription]
) -> CallEstimate:
    """Estimate the cost of `annotate` without recorded replies, if every reply can be read."""
    blocks = _deal(descriptions, 0)
    requests = _make_requests(texts, descriptions, blocks, 0, 0)
    return CallEstimate.of((request.question for request in requests), _size_reply(blocks))


def grade_texts(
    texts: Sequence[str], question: str, target: Target, budget: CallBudget
) -> NDArray[np.float64]:
    """Ask one question about each text; return 1 for yes, 0 for no, NaN for no readable reply."""
    parts = (fence([text], name=f"1. {question}") for text in texts)
    contents = (PROMPTS.fill("annotate", count=1, **part) for part in parts)
    requests = [ModelRequest(Question(content), partial(_read, 1)) for content in contents]
    replied = budget.ask_for(target, requests, f"judging {len(texts):,} runs", _TOKENS)
    return np.array([np.nan if reply.value is None else reply.value[0] for reply in replied])


def _deal(descriptions: Sequence[ExampleDescription], seed: int) -> list[Places]:
    """Return places of the descriptions to ask about together, in order."""
    owing = np.array([one.owes_outcomes for one in descriptions], dtype=np.bool_)
    order = stream(seed, "order of descriptions").permutation(len(descriptions))
    sides = [order[owing[order]], order[~owing[order]]]
    return [
        block
        for side in sides
        if len(side)
        for block in np.array_split(side, -(-len(side) // _MAX_STATEMENTS))
    ]


def measure_agreement(
    first: Marks, second: Marks, annotator: str, seed: int = 0
) -> Iterator[DescriptionAgreement]:
    """Return how often two annotations of the same texts agree, description by description.

    Parameters
    ----------
    first, second : int array, shape (texts, descriptions)
        Decisions on random texts, as the intervals assume.
    annotator : str
        Name of the second annotator.
    seed : int
        Seed of the resampled intervals.
    """
    for place, pair in enumerate(zip(first.T, second.T, strict=True)):
        rng = stream(seed, "agreement of annotators", place)
        checked, agreed, interval, kappa, ends = rating.compare_pairs(np.column_stack(pair), 2, rng)
        yield DescriptionAgreement(
            annotator=annotator,
            checked=checked,
            agreed=agreed,
            interval=interval,
            kappa=kappa,
            kappa_interval=ends,
        )


def _make_requests(
    texts: Sequence[str],
    descriptions: Sequence[ExampleDescription],
    blocks: Sequence[Places],
    seed: int,
    repeat: int,
) -> Iterator[ModelRequest[list[int]]]:
    statements = [[descriptions[i].text for i in block] for block in blocks]
    for text, lines in product(texts, statements):
        numbered = "\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1))
        parts = fence([text], name=numbered)
        content = PROMPTS.fill("annotate", count=len(lines), **parts)
        question = Question(content, seed=seed, repeat=repeat)
        yield ModelRequest(question, partial(_read, len(lines)))


def _size_reply(blocks: Sequence[Places]) -> int:
    """Return the tokens of a reply about the largest block."""
    return max(map(len, blocks), default=0) * _TOKENS


def _read(count: int, text: str) -> list[int]:
    decisions = decode(text, dict[str, str])
    numbers = [str(i) for i in range(1, count + 1)]
    if sorted(decisions) != sorted(numbers):
        raise Unreadable(
            f"it decides on {len(decisions)} statements, and must decide on each from 1 to {count}"
        )
    words = [decisions[number].strip().casefold() for number in numbers]
    if not {"yes", "no"}.issuperset(words):
        raise Unreadable('a decision must be "yes" or "no"')
    return [int(word == "yes") for word in words]


def write_sheet(path: str | Path, texts: Sequence[str], descriptions: Sequence[str]) -> None:
    """Write a CSV sheet with a row for each text and description, without decisions.

    Parameters
    ----------
    path : path
    texts, descriptions : sequence of str

    Raises
    ------
    InputError
        If the place cannot be written to.
    """
    rows = [(text, one, "") for text in texts for one in descriptions]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(_HEADS, pl.String), orient="row")
    write_bytes(Path(path), format_csv(frame, for_excel=True))


def read_sheet(path: str | Path, texts: Sequence[str], descriptions: Sequence[str]) -> Marks:
    """Read the decisions on a sheet, shape (texts, descriptions); `MISSING` for an empty cell.

    Parameters
    ----------
    path : path
    texts, descriptions : sequence of str
        The questions that were written.

    Raises
    ------
    InputError
        If the file cannot be read, a row has another text or description than the written sheet, or
        a decision is not yes or no. The whole sheet is then refused.
    """
    rows = {_fold(text): i for i, text in enumerate(texts)}
    columns = {_fold(text): j for j, text in enumerate(descriptions)}
    marks = np.full((len(texts), len(descriptions)), MISSING, dtype=np.int64)
    file = Path(path)
    for where, row in split_rows(read_sheet_text(file), file, _HEADS):
        text, description, decision = (row[name] or "" for name in _HEADS)
        place = rows.get(_fold(text)), columns.get(_fold(description))
        if None in place:
            what = "text" if place[0] is None else "description"
            raise InputError(
                f"{where}: the {what} differs from the written sheet; change only the column "
                "'holds', and describe as then (same source, seed and --check)"
            )
        word = decision.strip().casefold()
        if word not in _WORDS:
            raise InputError(f"{where}: holds is {decision[:40]!r}; write yes or no, or leave it")
        marks[place] = _WORDS[word]
    return marks


def _fold(text: str) -> str:
    """Return a text in the form that any spreadsheet keeps.

    An apostrophe before a formula, its line ends.
    """
    return escape_cell(text.replace("\r\n", "\n").replace("\r", "\n"))


Keys = NDArray[np.uint64]

# the fields of the class above have defaults, so these need some too
_UNNAMED = ExampleDescription("it is an example", ("named",))


@dataclass(frozen=True, eq=False)
class DescriptionColumn(FittedColumn):
    """A column of the examples on which a description holds; ``function`` is ``description``.

    Attributes
    ----------
    description : ExampleDescription
    annotator : str
        The annotator.
    prompt : str
        SHA-256 of the wording of the question.
    keys : uint64 array, shape (texts,)
        Hashes of the texts with a decision, ascending: the texts themselves are not kept.
    holds : bool array, shape (texts,)
    agreement : DescriptionAgreement, optional
        Agreement of a second annotator. It is not part of the column's name, so a later check does
        not change the candidate.
    """

    description: ExampleDescription = _UNNAMED
    annotator: str = ""
    prompt: str = ""
    keys: Keys = field(default_factory=lambda: np.empty(0, np.uint64), repr=False)
    holds: Bools = field(default_factory=lambda: np.empty(0, np.bool_), repr=False)
    agreement: DescriptionAgreement | None = None

    def __post_init__(self) -> None:
        """Do not check: a description checks itself."""

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
        """Return the column of an annotator's decisions on texts.

        Texts without a mark are left out.

        Parameters
        ----------
        columns : sequence of str
            Columns in the texts; see `show_texts`.
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
            DESCRIBED, "description", tuple(columns), {}, description, annotator, prompt, *found
        )

    @cached_property
    def name(self) -> str:
        """Return the column's name, different for another description, annotator or decision."""
        parts = self.columns, self.description.text, self.annotator, self.prompt
        digest = hashlib.sha256(repr(parts).encode())
        digest.update(self.keys.astype("<u8").tobytes())
        digest.update(np.packbits(self.holds).tobytes())
        return f"{DESCRIBED}_{digest.hexdigest()[:16]}"

    def apply(self, frame: pl.DataFrame) -> pl.Series:
        """Return whether the description holds for each row; NULL without a decision.

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
    """Return the text to show for each row: one column, or several under their names; or NULL.

    Raises
    ------
    InputError
        If a column is missing, or holds neither words nor numbers.
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


def _decode(text: object) -> bytes:
    return base64.b64decode(str(text), validate=True)
