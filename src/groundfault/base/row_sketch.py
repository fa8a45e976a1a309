"""Overlap: estimate from small samples of keyed hashes how much two tables share.

The sample takes the rows that come first by the MD5 of their identity, so a row of two tables is in
both samples or in neither (Broder 1997, doi:10.1109/SEQUEN.1997.666900). Every engine has MD5, so
an engine that counts a table draws the same rows. The stored identity and outcome of a row are
hashed with a salt that belongs to one ledger: samples of two ledgers cannot be matched, and no
table of known hashes helps. A person who has the ledger can still test whether a given row with a
given outcome is in it.

Rows of logs have a second, smaller sample: the answers by log and key, regardless of their score.
It shows that another scorer judged the same answers.
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
from groundfault.stats.agreement import are_copies

if TYPE_CHECKING:
    from groundfault.base.holdout_events import Event

ROWS = 4_000
"""Rows that a sample holds of a larger table."""
MOST_ROWS = 20_000
"""Rows that a sample holds where one outcome is rare: 120 KB in the ledger."""
LEAST_RARE = 20
"""Rows without the commonest outcome, for which a sample is made larger, up to `MOST_ROWS`."""
LEAST_SHARE = 0.1
"""Smallest share of a table's rows that is reported as shared with another table."""
ANSWERS = 512
"""Answers that a sample holds: their share has a standard error of at most 2.2 points."""

DIGITS = 8
"""Hexadecimal digits of an MD5 that order the rows: 32 bits."""
EVERY_PLACE: int = 16**DIGITS - 1
"""The last place in that order: up to it are all rows."""

_STORED = np.dtype([("key", "<u4"), ("outcome", "<u2")])


@dataclass(frozen=True, eq=False)
class RowSample:
    """The rows of a table that come first by MD5 of their identities.

    Attributes
    ----------
    salt : str
        Key of the hashes; hexadecimal digits.
    bound : int
        The sample has all rows up to this place in their order.
    keys : uint32 array, shape (rows,)
        Hashes of the rows' identities, ascending.
    outcomes : uint16 array, shape (rows,)
        Hashes of identity and outcome together.
    places : uint32 array, shape (rows,), optional
        Places of the rows in their order. Not stored.
    kinds : int array, shape (rows,), optional
        Numbers of the distinct outcomes. Not stored.
    answers : uint32 array, shape (up to ANSWERS,), optional
        The smallest hashes of answers, ascending, if the rows are from logs.
    """

    salt: str
    bound: int
    keys: NDArray[np.uint32]
    outcomes: NDArray[np.uint16]
    places: NDArray[np.uint32] | None = None
    kinds: NDArray[np.intp] | None = None
    answers: NDArray[np.uint32] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the content for a ledger: six bytes a row."""
        rows = np.empty(len(self.keys), _STORED)
        rows["key"], rows["outcome"] = self.keys, self.outcomes
        text = b64encode(rows.tobytes()).decode()
        content = {"salt": self.salt, "bound": self.bound, "rows": text}
        if self.answers is not None:
            content["answers"] = b64encode(self.answers.astype("<u4").tobytes()).decode()
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RowSample:
        """Read a sample that `to_json` wrote.

        Raises
        ------
        LedgerError
            If the content is damaged.
        """
        try:
            rows = np.frombuffer(b64decode(content["rows"], validate=True), _STORED)
            stored = content.get("answers")
            answers = stored and np.frombuffer(b64decode(stored, validate=True), "<u4")
            salt, bound = str(content["salt"]), int(content["bound"])
            bytes.fromhex(salt)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise LedgerError(
                f"the sample of an opening in the ledger cannot be read ({error}): it was altered"
            ) from None
        return cls(salt, bound, rows["key"], rows["outcome"], answers=answers)


def sample_rows(
    names: Sequence[bytes],
    outcomes: NDArray[np.float64],
    salt: str,
    logs: Sequence[str] | None = None,
    bound: int = EVERY_PLACE,
) -> RowSample:
    """Take the sample of a table.

    Parameters
    ----------
    names : sequence of bytes, length n
        UTF-8 identity of each row; no two equal.
    outcomes : float array, shape (n,)
        No NaN.
    salt : str
        Hexadecimal digits, up to 128.
    logs : sequence of str, length n, optional
        The digest of each row's log.
    bound : int
        The last place of the rows in their order, if only part of a table is given.
    """
    secret = bytes.fromhex(salt)
    # the first `DIGITS` digits of MD5
    md5s = b"".join([hashlib.md5(name, usedforsecurity=False).digest() for name in names])
    places = np.frombuffer(md5s, ">u4")[::4].astype(np.uint32)
    order = np.argsort(places, kind="stable")
    kinds = np.unique(outcomes, return_inverse=True)[1].reshape(-1)
    count = _choose_size(kinds[order])
    if count < len(order):
        bound = int(places[order[count - 1]])
        # all of one place, so that no order of the table shows
        order = order[: np.searchsorted(places[order], bound, side="right")]
    keys = _hash((names[row] for row in order), secret, 4)
    by_key = np.argsort(keys, kind="stable")
    order, keys = order[by_key], keys[by_key]
    outcomes_of_rows = (outcomes[row].tobytes() + names[row] for row in order)
    outcome_hashes = _hash(outcomes_of_rows, secret, 2)
    answers = None
    if logs is not None:
        pairs = (b"%b %b" % (log.encode(), name) for log, name in zip(logs, names, strict=True))
        answers = np.unique(_hash(pairs, secret, 4))[:ANSWERS]
    return RowSample(salt, bound, keys, outcome_hashes, places[order], kinds[order], answers)


def _hash(parts: Iterable[bytes], secret: bytes, size: int) -> NDArray[Any]:
    # BLAKE2 is a keyed hash by itself, and fast on short inputs
    digests = (hashlib.blake2b(part, digest_size=size, key=secret).digest() for part in parts)
    return np.frombuffer(b"".join(digests), f"<u{size}")


def measure_overlap(now: RowSample, earlier: RowSample) -> float:
    """Return the share of a table's rows that an earlier table has with the same outcomes.

    Parameters
    ----------
    now : RowSample
        A new sample, with ``places`` and ``kinds``.
    earlier : RowSample

    Returns
    -------
    float
        At least `LEAST_SHARE`, or 0: also if too few rows are shared, or their outcomes agree too
        little, to be the same (`groundfault.stats.agreement.are_copies`). The estimate has a
        standard error of at most 0.8 percentage points for a sample of `ROWS` rows.
    """
    if now.salt != earlier.salt or now.places is None or now.kinds is None:
        return 0.0
    covered = np.flatnonzero(now.places <= earlier.bound)
    _, shared, theirs = np.intersect1d(now.keys[covered], earlier.keys, return_indices=True)
    if not len(shared):
        return 0.0
    mine = covered[shared]
    agreeing = int((now.outcomes[mine] == earlier.outcomes[theirs]).sum())
    commonest = int(np.bincount(now.kinds[mine]).max())
    share = agreeing / len(covered)
    return share if share >= LEAST_SHARE and are_copies(agreeing, len(mine), commonest) else 0.0


def measure_shared_answers(now: RowSample, earlier: RowSample) -> float:
    """Return the share of the answers that an earlier table has, regardless of their scores.

    Answers are the same if they have the same log and key, so answers of another model or another
    run differ.

    Returns
    -------
    float
        At least `LEAST_SHARE`, or 0.
    """
    mine, theirs = now.answers, earlier.answers
    if now.salt != earlier.salt or mine is None or theirs is None or not len(mine):
        return 0.0
    ends = [int(each[-1]) if len(each) >= ANSWERS else EVERY_PLACE for each in (mine, theirs)]
    covered = mine[mine <= min(ends)]
    share = float(np.isin(covered, theirs).mean()) if len(covered) else 0.0
    return share if share >= LEAST_SHARE else 0.0


def compare_samples(
    events: Iterable[Event], outcome: str, sample: Callable[[str], RowSample]
) -> dict[str, Any]:
    """Return an opening's sample and its overlap with earlier samples, for its record.

    Parameters
    ----------
    events : iterable of Event
        All events of the ledger.
    outcome : str
        Hash of the outcomes that are opened.
    sample : callable
        Takes a sample of the outcomes by a salt.

    Returns
    -------
    dict
        "overlaps": shares of these outcomes in earlier outcomes, by the hash of the earlier ones.
        "rescored": shares of these answers in earlier outcomes, by the hash of the earlier ones.
        "sample", unless the ledger already has a sample for these outcomes.

    Raises
    ------
    LedgerError
        If a sample in the ledger cannot be read.
    """
    earlier = {
        str(event.body.get("outcome")): RowSample.from_json(event.body["sample"])
        for event in events
        if "sample" in event.body and not _is_in_another_order(event.body["sample"])
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
    record: dict[str, object] = {"overlaps": overlaps}
    if rescored:
        record["rescored"] = rescored
    if outcome not in earlier:
        record["sample"] = samples[min(salts)].to_json()
    return record


def _is_in_another_order(content: object) -> bool:
    """Return whether a sample orders rows by a salted hash, as before decision 0048."""
    return isinstance(content, dict) and "limit" in content


def _choose_size(kinds: NDArray[np.intp]) -> int:
    """Return how many rows to take, in the order of their hashes."""
    if len(kinds) <= ROWS:
        return len(kinds)
    # without rare outcomes in it a sample cannot tell a copy from another table with these ids
    rare = np.cumsum(kinds[:MOST_ROWS] != np.bincount(kinds).argmax())
    return max(ROWS, min(int(np.searchsorted(rare, LEAST_RARE)) + 1, len(rare)))
