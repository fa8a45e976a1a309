"""Draws: the key from which every draw of an audit follows, and who may know it when; and the cells
that draws are made from.

Whoever foresees the draws can force a verdict: a policy that knows which case of a group comes
next claims the group only where that case fails. A plan without a seed therefore draws a key at
random when the audit begins. Its SHA-256 is written down before the first draw, the key itself is
in the certificate once the audit has ended, and verification holds one against the other.

The key is sealed against policies, whose generator follows from it one way, and against everybody
who sees no more than plan, queries, progress and certificates. It is not sealed against somebody
who reads the ledger or the memory of the process: an audit that was killed has to draw on in the
same order, and so its record holds the key."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.base.streams import stream
from groundfault.errors import LedgerError


class SealedKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a random key.

    Attributes
    ----------
    hash : str
        SHA-256 of the key, written down before the first draw.
    key : str, optional
        None as long as it is sealed.
    """

    hash: str
    key: str | None = None

    @property
    def fits(self) -> bool:
        """Return whether the key, once known, is the one that was written down."""
        return self.key is not None and hash_key(self.key) == self.hash


@dataclass(frozen=True)
class Draws:
    """The draws that follow from a key.

    Make them with `begin`.

    Attributes
    ----------
    key : str
        The digits of a public seed, or 32 random hexadecimal digits.
    sealed : bool
        Whether the key is random, and no policy may know it.
    """

    key: str
    sealed: bool

    @classmethod
    def begin(cls, seed: int | None) -> Draws:
        """Return the draws of a public seed; without one, of a key that is drawn at random now."""
        return cls(secrets.token_hex(16), True) if seed is None else cls(str(seed), False)

    @property
    def sealed_key(self) -> SealedKey | None:
        """Return a random key with its hash, as a ledger holds it; None where a seed is public."""
        return SealedKey(hash_key(self.key), self.key) if self.sealed else None

    @property
    def hash_alone(self) -> SealedKey | None:
        """Return the hash of a random key without the key; None where a seed is public."""
        return SealedKey(hash_key(self.key)) if self.sealed else None

    def pick(self, purpose: str, counter: int, count: int) -> int:
        """Pick one of 0, ..., ``count`` - 1, uniformly."""
        return pick(self.key, purpose, counter, count)

    def policy_rng(self, step: int) -> np.random.Generator:
        """Return the generator of a policy in a round."""
        # a generator shows what it was seeded with, so that a sealed key must not be it
        seed = _number_of(f"{self.key}:policy") if self.sealed else int(self.key)
        # a stream for each round: a policy that draws more does not shift the later ones
        return stream(seed, "policy", step)


@dataclass(frozen=True, eq=False)
class Cells:
    """The coarsest partition of N cases of which every group is a union.

    Where groups overlap, draws from one use up a part of another, and what is left of that one is
    no sample of it any more. Inside a cell nothing distinguishes the cases that are left from those
    that were drawn. A draw from a group is therefore made from its cells, each as likely as its
    share of the *whole* group.

    Attributes
    ----------
    numbers : intp array, shape (N,)
        The cell of each case: 0, 1, 2, ...
    members : bool array, shape (G, N)
    """

    numbers: Places
    members: Bools

    @classmethod
    def of(cls, members: Bools) -> Cells:
        """Return the cells of groups, bool, shape (G, N)."""
        packed = np.packbits(members, axis=0).T
        numbers = np.unique(packed, axis=0, return_inverse=True)[1].reshape(-1)
        return cls(numbers.astype(np.intp), members)

    def find_open(self, available: Bools) -> Bools:
        """Return the cases whose cell has a case left, labelled themselves or not: bool, shape
        (N,).
        """
        has_rest = np.zeros(int(self.numbers.max()) + 1, dtype=np.bool_)
        has_rest[self.numbers[available]] = True
        return np.asarray(has_rest[self.numbers])

    def find_rest(self, position: int, available: Bools) -> Bools:
        """Return the cases that are left of the cell of a case: bool, shape (N,)."""
        return np.asarray(available & (self.numbers == self.numbers[position]))

    def compute_thresholds(self, threshold: float, available: Bools) -> tuple[Floats, Floats]:
        """Compute the thresholds of a draw from each group: two float64 arrays, shape (G,).

        If a group's mean is at least ``threshold``, the mean of its cells that have a case left is
        at least the first; if it is at most ``threshold``, it is at most the second. Both are the
        threshold itself as long as no cell is used up; ``-inf`` and ``inf`` where all are.
        """
        sizes = self.members.sum(axis=1).astype(np.float64)
        open_sizes = (self.members & self.find_open(available)).sum(axis=1).astype(np.float64)
        # of a cell that is used up nothing is assumed but that its mean lies in [0, 1]
        lost = sizes - open_sizes
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(lost > 0, (threshold * sizes - lost) / open_sizes, threshold)
            high = np.where(lost > 0, threshold * sizes / open_sizes, threshold)
        return low, high


def read_draws(seed: int | None, recorded: Any) -> Draws:
    """Return the draws of a record: of its public seed, or of the random key in it.

    Raises
    ------
    LedgerError
        If there is neither, or the key is not the one that was hashed.
    """
    if seed is not None:
        return Draws.begin(seed)
    try:
        sealed_key = msgspec.convert(recorded, SealedKey)
    except msgspec.ValidationError:
        sealed_key = None
    if sealed_key is None or sealed_key.key is None or not sealed_key.fits:
        raise LedgerError("the key of the draws in the record was altered: it lacks its hash")
    return Draws(sealed_key.key, True)


def hash_key(key: str) -> str:
    """Return the SHA-256 of a key, as it is written down before the first draw."""
    return hashlib.sha256(f"groundfault:{key}".encode()).hexdigest()


def pick(seed: int | str, purpose: str, counter: int, count: int) -> int:
    """Pick one of 0, ..., ``count`` - 1, uniformly.

    It is the SHA-256 of ``"seed:purpose:counter"`` modulo ``count``, as in ballot audits, so that
    anyone can draw again by hand; the bias is below 2^-200. Whoever knows the seed can foresee the
    draws."""
    return _number_of(f"{seed}:{purpose}:{counter}") % count


def _number_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
