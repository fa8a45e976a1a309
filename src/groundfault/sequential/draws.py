"""Draws: the key from which every draw of an audit follows, and who may know it when.

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

import msgspec
import numpy as np

from groundfault.base.long_work import stream
from groundfault.errors import LedgerError


class SealedKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Public state of a random key.

    Attributes
    ----------
    hash : str
        SHA-256 of the key, written down before the first draw.
    key : str, optional
        None while it is sealed.
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


def read_draws(seed: int | None, recorded: object) -> Draws:
    """Return the draws of a record: of its public seed, or of the random key in it.

    Raises
    ------
    LedgerError
        If both are missing, or the key is not the hashed one.
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
    """Return the SHA-256 of a key, which is written down before the first draw."""
    return hashlib.sha256(f"groundfault:{key}".encode()).hexdigest()


def pick(seed: int | str, purpose: str, counter: int, count: int) -> int:
    """Pick one of 0, ..., ``count`` - 1, uniformly.

    It is the SHA-256 of ``"seed:purpose:counter"`` modulo ``count``, as in ballot audits, so that
    anyone can draw again by hand; the bias is below 2^-200. Whoever knows the seed can foresee the
    draws."""
    return _number_of(f"{seed}:{purpose}:{counter}") % count


def _number_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
