"""Ledger: an append-only, hash-chained record, above all of every holdout opening.

Each event carries the hash of the one before it, so an event that was edited, removed or moved
breaks the chain. What a chain cannot show by itself is that its last events were cut off, or that
the whole file was written anew; a report therefore keeps the hash of the event it made, and
`Ledger.check` holds it against the ledger.

The record is an SQLite file, which several processes may write to at once, or a PostgreSQL database
given as a URL (with the ``psycopg`` driver), for machines that share no disk."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from groundfault.base.database import Database
from groundfault.errors import InputError, LedgerError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row, Table

OPENED = "holdout_opened"
REPLAYED = "holdout_replayed"

# what an event says that it looked at, where that is more than a holdout
_ALL = "all outcomes"

# stands for the predecessor of the first event
_START = "0" * 64


@dataclass(frozen=True)
class Event:
    """One entry.

    Attributes
    ----------
    seq : int
        1, 2, 3, ... without a gap.
    time : str
        UTC, ISO 8601.
    actor : str
        ``user@host``.
    kind : str
        What was done, such as ``holdout_opened``.
    body : dict
        Particulars, as JSON holds them.
    previous, hash : str
        SHA-256 of the event before, and of this one with ``previous`` in it.
    """

    seq: int
    time: str
    actor: str
    kind: str
    body: Mapping[str, Any]
    previous: str
    hash: str


@dataclass(frozen=True)
class Opening:
    """What the ledger says of the holdout that was just opened.

    Attributes
    ----------
    path : str
        The ledger, without a password.
    head : str
        Hash of the event that recorded this opening.
    replay : bool
        Whether the very same audit was recorded before; then it was not counted again.
    times : int
        How often the holdout of these outcomes has been opened, this time included.
    libraries, plans, splits, versions : int
        How many different candidate libraries, plans, splits and versions of the evidence it was
        opened with.
    reasons : tuple of str
        Reasons given for opening it again, oldest first.
    holdout : bool
        Whether this opening is of a part that was held out.
    all_outcomes : bool
        Whether all outcomes are looked at now, those held out too.
    all_before : bool
        Whether all of them had been looked at before, in another audit.
    """

    path: str
    head: str
    replay: bool
    times: int
    libraries: int
    plans: int
    splits: int
    versions: int
    reasons: tuple[str, ...]
    holdout: bool = True
    all_outcomes: bool = False
    all_before: bool = False

    @property
    def sentence(self) -> str:
        """What a report prints, such as "holdout opened 1 time"."""
        counts = [
            (self.libraries, "candidate libraries"),
            (self.plans, "plans"),
            (self.splits, "splits"),
            (self.versions, "versions of the evidence"),
        ]
        several = [f"{count} {what}" for count, what in counts if count > 1]
        what = "holdout opened" if self.holdout else "all outcomes were looked at"
        text = f"{what} {self.times} time{'s' if self.times > 1 else ''}"
        if several:
            text += f", with {_join_words(several)}"
        if self.holdout and self.all_before:
            text += "; all outcomes had been looked at before, so it was not fresh"
        elif self.holdout and self.all_outcomes:
            text += "; the search for failure modes looked at all outcomes"
        if self.reasons:
            text += (
                f"; reason{'s' if len(self.reasons) > 1 else ''} given: {'; '.join(self.reasons)}"
            )
        return text


class Ledger:
    """An append-only record in an SQLite file, or in PostgreSQL.

    Parameters
    ----------
    path_or_url : path or str
        A file, made when something is first recorded; or a URL ``postgresql+psycopg://...``.

    Notes
    -----
    SQLite's write-ahead log needs a local disk; on network file systems use PostgreSQL. A process
    killed while it records leaves the event whole or absent.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "ledger.db")
    >>> ledger.append("note", {"text": "first"}).seq
    1
    >>> ledger.check()
    """

    def __init__(self, path_or_url: str | Path) -> None:
        self._database = Database(path_or_url)

    def append(self, kind: str, body: Mapping[str, Any]) -> Event:
        """Record an event.

        Raises
        ------
        InputError
            If the body is not JSON, or the ledger cannot be written to.
        LedgerError
            If the ledger is damaged.
        """
        return self.extend(kind, [body])[0]

    def extend(self, kind: str, bodies: Sequence[Mapping[str, Any]]) -> list[Event]:
        """Record several events of one kind, all of them or none; errors as of `append`."""
        # before the transaction: a body that is no JSON must not hold the lock
        texts = [_canonical(body) for body in bodies]
        with self._database.transaction(_table()) as connection:
            return [_append(connection, kind, text) for text in texts]

    def events(self, kind: str | None = None) -> list[Event]:
        """All events, or those of one kind, oldest first; as recorded, unchecked.

        Raises
        ------
        InputError
            If there is no ledger at this place, or it cannot be read.
        """
        with self._database.reading(_table()) as connection:
            rows = _rows(connection)
        return [_event(row) for row in rows if kind in (None, row.kind)]

    @property
    def head(self) -> str:
        """Hash of the last event; 64 zeros where there is none yet."""
        with self._database.reading(_table()) as connection:
            last = _last(connection)
        return last.hash if last else _START

    def check(self, head: str | None = None) -> None:
        """Make sure that the chain is whole.

        Parameters
        ----------
        head : str, optional
            The hash of an event known from elsewhere, such as a report; it has to be in the chain.

        Raises
        ------
        LedgerError
            Naming the first event that does not add up, or because ``head`` is missing.
        InputError
            If there is no ledger at this place, or it cannot be read.
        """
        with self._database.reading(_table()) as connection:
            rows = _rows(connection)
        self._verify(rows)
        if head is not None and head not in {row.hash for row in rows}:
            raise LedgerError(
                f"the ledger {self.place} lacks event {head[:12]}, which a report says it made: "
                "the last events were "
                "cut off, the ledger was written anew, or it is another one"
            )

    def open_holdout(
        self,
        *,
        evidence_hash: str,
        outcome_hash: str,
        split_hash: str,
        library_hash: str,
        plan_hash: str,
        reopen: str | None = None,
        holdout: bool = True,
        all_outcomes: bool = False,
    ) -> Opening:
        """Record that a holdout, or all outcomes, are about to be looked at, or refuse.

        The holdout is known by its outcomes, so that a column more in the evidence does not make it
        a fresh one. Once opened with one library, it opens with another only for a reason, which
        stays in every later report. The same audit again is a replay, recorded and not counted; the
        same library with another plan, split or version of the evidence is counted.

        Parameters
        ----------
        evidence_hash, outcome_hash, split_hash, library_hash, plan_hash : str
        reopen : str, optional
            Why it is opened again with other candidates.
        holdout : bool
            Whether something is held out; without, all outcomes are looked at.
        all_outcomes : bool
            Whether outcomes that are held out are looked at by more than the judge.

        Raises
        ------
        LedgerError
            If it was opened before with another library and no reason is given, or the ledger does
            not add up.
        InputError
            If the ledger cannot be written to.

        Notes
        -----
        To leave out a single example makes other outcomes: the ledger guards against a second look
        by habit or oversight, and leaves a trace of it; it cannot prevent a determined one."""
        reason = None if reopen is None else " ".join(reopen.split())
        if reason == "":
            raise LedgerError(
                'the reason to open the holdout again is blank: say why, as in --reopen "a '
                'label was wrong"'
            )
        hashes = {
            "evidence": evidence_hash,
            "outcome": outcome_hash,
            "split": split_hash,
            "library": library_hash,
            "plan": plan_hash,
        }
        with self._database.transaction(_table()) as connection:
            # read inside the transaction: two audits at once must see each other's opening
            rows = _rows(connection)
            self._verify(rows)
            openings = (_event(row) for row in rows if row.kind == OPENED)
            # by outcomes: new attributes or another version of the evidence do not make labels
            # fresh
            before = [event for event in openings if event.body.get("outcome") == outcome_hash]
            replay = any(
                all(event.body.get(key) == value for key, value in hashes.items())
                for event in before
            )
            if reason is None:
                _refuse_other_library(before, library_hash)
            body: dict[str, Any] = {**hashes, "reason": reason}
            if all_outcomes or not holdout:
                body["looked_at"] = _ALL
            event = _append(connection, REPLAYED if replay else OPENED, _canonical(body))
        distinct = before if replay else [*before, event]
        several = {key: len({e.body.get(key) for e in distinct}) for key in hashes}
        return Opening(
            path=self.place,
            head=event.hash,
            replay=replay,
            times=len(distinct),
            libraries=several["library"],
            plans=several["plan"],
            splits=several["split"],
            versions=several["evidence"],
            reasons=tuple(e.body["reason"] for e in distinct if e.body.get("reason")),
            holdout=holdout,
            all_outcomes=all_outcomes or not holdout,
            all_before=any(_looked_at_all(e, hashes) for e in before),
        )

    @property
    def place(self) -> str:
        """Where the ledger is: an absolute path, or a URL without its password."""
        return self._database.place

    def _verify(self, rows: Sequence[Row[Any]]) -> None:
        previous = _START
        for number, row in enumerate(rows, start=1):
            trouble = ""
            if row.seq != number:
                trouble = f"event {number} is missing"
            elif row.previous != previous:
                trouble = (
                    f"event {number} does not follow event {number - 1}: one of them was "
                    "changed or replaced"
                )
            elif row.hash != _hash(row):
                trouble = f"event {number} ({row.kind}, {row.time}) was edited"
            if trouble:
                raise LedgerError(f"the ledger {self.place} was altered: {trouble}")
            previous = row.hash


def _refuse_other_library(before: Sequence[Event], library_hash: str) -> None:
    if not before or library_hash in {event.body.get("library") for event in before}:
        return
    last = before[-1]
    when = last.time[:16].replace("T", " ")
    if last.body.get("looked_at") == _ALL:
        what, again = "all these outcomes were looked at", "no holdout of them is fresh; to look"
    else:
        what, again = "the holdout of these outcomes was opened", "to open it"
    raise LedgerError(
        f"{what} on {when} UTC by {last.actor} with other candidates (library "
        f"{str(last.body.get('library'))[:12]}, now {library_hash[:12]}); {again} again say why: "
        '--reopen "reason" (in Python reopen=), which stays in every report'
    )


def _looked_at_all(event: Event, hashes: Mapping[str, str]) -> bool:
    """Whether an event is of another audit, which looked at all outcomes."""
    other = any(event.body.get(key) != value for key, value in hashes.items())
    return other and event.body.get("looked_at") == _ALL


# ------------------------------------------------------------------------------------------- events


@cache
def _table() -> Table:
    from sqlalchemy import Column, Integer, MetaData, Table, Text

    # that no two events have the same predecessor is what keeps the chain from forking
    texts = (Column(name, Text, nullable=False) for name in ("time", "actor", "kind", "body"))
    return Table(
        "groundfault_ledger",
        MetaData(),
        Column("seq", Integer, primary_key=True, autoincrement=False),
        *texts,
        Column("previous", Text, nullable=False, unique=True),
        Column("hash", Text, nullable=False),
    )


def _rows(connection: Connection) -> Sequence[Row[Any]]:
    table = _table()
    return connection.execute(table.select().order_by(table.c.seq)).all()


def _last(connection: Connection) -> Row[Any] | None:
    table = _table()
    return connection.execute(table.select().order_by(table.c.seq.desc()).limit(1)).first()


def _append(connection: Connection, kind: str, body: str) -> Event:
    last = _last(connection)
    if last is not None and last.hash != _hash(last):
        raise LedgerError(
            f"the ledger was altered: its last event, {last.seq} ({last.kind}, {last.time}), "
            "was edited"
        )
    entry = {
        "seq": last.seq + 1 if last else 1,
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        "actor": _actor(),
        "kind": kind,
        "body": body,
        "previous": last.hash if last else _START,
    }
    entry["hash"] = _hash(SimpleNamespace(**entry))
    connection.execute(_table().insert().values(entry))
    return Event(**{**entry, "body": json.loads(body)})


def _event(row: Row[Any]) -> Event:
    try:
        return Event(
            row.seq, row.time, row.actor, row.kind, json.loads(row.body), row.previous, row.hash
        )
    except (TypeError, ValueError):
        raise LedgerError(f"the ledger was altered: event {row.seq} cannot be read") from None


def _hash(entry: Any) -> str:
    # a list, not joined text: no two entries have the same JSON
    parts = [entry.previous, entry.seq, entry.time, entry.actor, entry.kind, entry.body]
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()


def _canonical(body: Mapping[str, Any]) -> str:
    try:
        # canonical, as it is hashed; NaN is no JSON, and other readers would refuse it
        return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"only JSON can be recorded in a ledger: {error}") from None


def _actor() -> str:
    try:
        user = getpass.getuser()
    except (
        KeyError,
        OSError,
        ImportError,
    ):  # a container may know the number of its user and no name
        user = f"user-{os.getuid()}" if hasattr(os, "getuid") else "unknown"
    return f"{user}@{platform.node() or 'unknown'}"


def _join_words(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
