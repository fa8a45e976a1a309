"""Overlap: a small sample of keyed hashes shows which part of two tables is the same.

Of every table the rows with the smallest hashes are taken, so that rows that two tables share are
in both samples or in neither (Broder 1997, doi:10.1109/SEQUEN.1997.666900). A row's identity and
its outcome are hashed with a salt that belongs to one ledger: samples of two ledgers have nothing
in common, and there are no tables to look hashes up in. Who has the ledger can still try whether a
row is in it, and with which outcome.

Rows of logs have a second, smaller sample: of the answers themselves, each by its log and key,
whatever its score. It shows that another scorer judged the same answers.
"""

from __future__ import annotations

import hashlib
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundfault.errors import LedgerError
from groundfault.stats.copying import are_copies

if TYPE_CHECKING:
    from groundfault.base.ledger import Event

ROWS = 4_000
"""Rows that a sample holds of a larger table."""
MOST_ROWS = 20_000
LEAST_RARE = 20
"""Rows without the commonest outcome, for which a sample is made larger, up to `MOST_ROWS`."""
LEAST_SHARE = 0.1
"""Share of a table's rows, from which on they are said to be those of another."""
ANSWERS = 512
"""Answers that a sample holds: their share has a standard error of at most 2.2 points."""

_ALL = 2**32 - 1
_STORED = np.dtype([("key", "<u4"), ("outcome", "<u2")])


@dataclass(frozen=True, eq=False)
class RowSample:
    """The rows of a table with the smallest hashes.

    Attributes
    ----------
    salt : str
        What the hashes are keyed with; hexadecimal digits.
    limit : int
        All rows with hashes up to this are in the sample.
    keys : uint32 array, shape (rows,)
        Hashes of the rows' identities, ascending, no two alike.
    outcomes : uint16 array, shape (rows,)
        Hashes of identity and outcome together.
    kinds : int array, shape (rows,), optional
        Numbers of the outcomes themselves. They are not stored.
    answers : uint32 array, shape (up to ANSWERS,), optional
        The smallest hashes of answers, ascending, where rows are known to be of a log.
    """

    salt: str
    limit: int
    keys: NDArray[np.uint32]
    outcomes: NDArray[np.uint16]
    kinds: NDArray[np.intp] | None = None
    answers: NDArray[np.uint32] | None = None

    def to_json(self) -> dict[str, Any]:
        """What a ledger stores: six bytes a row."""
        rows = np.empty(len(self.keys), _STORED)
        rows["key"], rows["outcome"] = self.keys, self.outcomes
        text = b64encode(rows.tobytes()).decode()
        content = {"salt": self.salt, "limit": self.limit, "rows": text}
        if self.answers is not None:
            content["answers"] = b64encode(self.answers.astype("<u4").tobytes()).decode()
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RowSample:
        """Read what `to_json` wrote.

        Raises
        ------
        LedgerError
            If it is something else.
        """
        try:
            rows = np.frombuffer(b64decode(content["rows"], validate=True), _STORED)
            stored = content.get("answers")
            answers = stored and np.frombuffer(b64decode(stored, validate=True), "<u4")
            salt, limit = str(content["salt"]), int(content["limit"])
            bytes.fromhex(salt)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise LedgerError(
                f"the sample of an opening in the ledger cannot be read ({error}): it was altered"
            ) from None
        return cls(salt, limit, rows["key"], rows["outcome"], answers=answers)


def sample_rows(
    names: Sequence[str],
    outcomes: NDArray[np.float64],
    salt: str,
    logs: Sequence[str] | None = None,
) -> RowSample:
    """Take the sample of a table.

    Parameters
    ----------
    names : sequence of str, length n
        What each row is known by; no two alike.
    outcomes : float array, shape (n,)
        No NaN.
    salt : str
        Hexadecimal digits, up to 128.
    logs : sequence of str, length n, optional
        The digest of the log that each row is from.
    """
    secret = bytes.fromhex(salt)
    keys, first = np.unique(_hash_names(names, secret), return_index=True)
    kinds = np.unique(outcomes, return_inverse=True)[1].reshape(-1)[first]
    count = _choose_size(kinds)
    limit = int(keys[count - 1]) if count < len(keys) else _ALL
    first = first[:count]
    marks = (
        hashlib.blake2b(
            outcomes[row].tobytes() + names[row].encode("utf-8", "surrogatepass"),
            digest_size=2,
            key=secret,
        ).digest()
        for row in first
    )
    outcome_hashes = np.frombuffer(b"".join(marks), "<u2")
    answers = None
    if logs is not None:
        pairs = (f"{log} {name}" for log, name in zip(logs, names, strict=True))
        answers = np.unique(_hash_names(pairs, secret))[:ANSWERS]
    return RowSample(salt, limit, keys[:count], outcome_hashes, kinds[:count], answers)


def _hash_names(names: Iterable[str], secret: bytes) -> NDArray[np.uint32]:
    # BLAKE2 is a keyed hash by itself, and fast on short inputs
    digests = (
        hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4, key=secret).digest()
        for name in names
    )
    return np.frombuffer(b"".join(digests), "<u4")


def measure_overlap(now: RowSample, earlier: RowSample) -> float:
    """Which share of a table's rows an earlier table has, with the same outcomes; 0 where none.

    Parameters
    ----------
    now : RowSample
        Just taken, so that it has ``kinds``.
    earlier : RowSample

    Returns
    -------
    float
        At least `LEAST_SHARE`, or 0: also where the rows shared are too few, or their outcomes
        agree too little, to be the same (`groundfault.stats.copying.are_copies`). An estimate with
        a standard error of at most 0.8 percentage points for as many rows as the sample has.
    """
    if now.salt != earlier.salt or now.kinds is None:
        return 0.0
    covered = int((now.keys <= min(now.limit, earlier.limit)).sum())
    _, mine, theirs = np.intersect1d(now.keys[:covered], earlier.keys, return_indices=True)
    if not len(mine):
        return 0.0
    agreeing = int((now.outcomes[mine] == earlier.outcomes[theirs]).sum())
    commonest = int(np.bincount(now.kinds[mine]).max())
    share = agreeing / covered
    return share if share >= LEAST_SHARE and are_copies(agreeing, len(mine), commonest) else 0.0


def measure_shared_answers(now: RowSample, earlier: RowSample) -> float:
    """Which share of the answers an earlier table has, whatever their scores; 0 where none.

    Answers are the same if they stand in the same log under the same key: those of another model,
    or of another run, do not.

    Returns
    -------
    float
        At least `LEAST_SHARE`, or 0.
    """
    mine, theirs = now.answers, earlier.answers
    if now.salt != earlier.salt or mine is None or theirs is None or not len(mine):
        return 0.0
    ends = [int(each[-1]) if len(each) >= ANSWERS else _ALL for each in (mine, theirs)]
    covered = mine[mine <= min(ends)]
    share = float(np.isin(covered, theirs).mean()) if len(covered) else 0.0
    return share if share >= LEAST_SHARE else 0.0


def compare_samples(
    events: Iterable[Event], outcome: str, sample: Callable[[str], RowSample]
) -> dict[str, Any]:
    """What an opening records of its sample, and of how it overlaps with those before it.

    Parameters
    ----------
    events : iterable of Event
        All of the ledger.
    outcome : str
        Hash of the outcomes that are opened.
    sample : callable
        Takes their sample by a salt.

    Returns
    -------
    dict
        "overlaps": shares of these outcomes, by the hash of earlier ones that have them, too.
        "rescored": shares of these answers, by the hash of earlier outcomes of them.
        "sample", unless these very outcomes have one in the ledger.

    Raises
    ------
    LedgerError
        If a sample in the ledger cannot be read.
    """
    earlier = {
        str(event.body.get("outcome")): RowSample.from_json(event.body["sample"])
        for event in events
        if "sample" in event.body
    }
    salts = {one.salt for one in earlier.values()} or {secrets.token_hex(16)}
    samples = {salt: sample(salt) for salt in salts}
    shares = {
        name: measure_overlap(samples[one.salt], one)
        for name, one in earlier.items()
        if name != outcome
    }
    overlaps = {name: round(share, 4) for name, share in shares.items() if share}
    rescored = {
        name: round(share, 4)
        for name, one in earlier.items()
        if name != outcome and name not in overlaps
        if (share := measure_shared_answers(samples[one.salt], one))
    }
    record: dict[str, Any] = {"overlaps": overlaps}
    if rescored:
        record["rescored"] = rescored
    if outcome not in earlier:
        record["sample"] = samples[min(salts)].to_json()
    return record


def _choose_size(kinds: NDArray[np.intp]) -> int:
    """How many rows to take of those in the order of their hashes."""
    if len(kinds) <= ROWS:
        return len(kinds)
    # without rare outcomes in it a sample cannot tell a copy from another table with these ids
    rare = np.cumsum(kinds[:MOST_ROWS] != np.bincount(kinds).argmax())
    return max(ROWS, min(int(np.searchsorted(rare, LEAST_RARE)) + 1, len(rare)))
