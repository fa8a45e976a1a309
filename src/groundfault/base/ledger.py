"""Ledger: an append-only, hash-chained record, mainly of holdout openings.

Each event holds the hash of the event before it, so an edited, removed or moved event breaks the
chain. A chain alone cannot show that its last events were cut off, or that the whole file was
written anew. A report therefore keeps the hash of the event it made, and `Ledger.check` compares
that hash with the ledger.

The record is an SQLite file, which several processes may write to at once, or a PostgreSQL database
given as a URL (with the ``psycopg`` driver), for machines that share no disk."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from groundfault.base.database import Connection, Database, DatabaseTable
from groundfault.base.holdout_events import (
    ALL,
    CRASHED,
    OPENED,
    REPLAYED,
    Event,
    Opening,
    describe_opening,
    is_same_audit,
    select_looks,
)
from groundfault.errors import GroundfaultError, InputError, LedgerError

if TYPE_CHECKING:
    from groundfault.base.row_sketch import RowSample

CLOCK = "clock_went_back"
"""Kind of the event recorded before an event whose time is earlier than its predecessor's."""

_DRIFT = timedelta(minutes=1)  # machines that share a ledger differ by seconds
# stands for the predecessor of the first event
_START = "0" * 64


class Ledger:
    """An append-only record in an SQLite file, or in PostgreSQL.

    Parameters
    ----------
    path_or_url : path or str
        A file, made at the first record; or a URL ``postgresql+psycopg://...``.
    earlier : sequence of path
        Ledgers of earlier versions. Records that one of them already holds for the same outcomes
        must continue there.

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

    def __init__(self, path_or_url: str | Path, *, earlier: Sequence[str | Path] = ()) -> None:
        self._database, self._earlier = Database(path_or_url), tuple(earlier)
        self._via = ""

    def through(self, via: str) -> Ledger:
        """Return this ledger with a source, such as ``web``, to record in each opening."""
        other = copy(self)
        other._via = via
        return other

    def append(self, kind: str, body: Mapping[str, object]) -> Event:
        """Record an event.

        Raises
        ------
        InputError
            If the body is not JSON, or the ledger cannot be written to.
        LedgerError
            If the ledger is damaged.
        """
        return self.extend(kind, [body])[0]

    def extend(self, kind: str, bodies: Sequence[Mapping[str, object]]) -> list[Event]:
        """Record several events of one kind, all or not at all; raise errors as `append` does."""
        # before the transaction: a body that is no JSON must not hold the lock
        texts = [_canonical(body) for body in bodies]
        with self._database.transaction(_TABLE) as connection:
            return [_append(connection, kind, text) for text in texts]

    def events(self, kind: str | None = None) -> list[Event]:
        """Return all events, or all events of one kind, oldest first and unchecked.

        Raises
        ------
        InputError
            If there is no ledger at this place, or it cannot be read.
        """
        with self._database.reading(_TABLE) as connection:
            rows = _rows(connection)
        return [_event(row) for row in rows if kind in (None, row.kind)]

    @property
    def head(self) -> str:
        """Return the hash of the last event; 64 zeros for an empty ledger."""
        with self._database.reading(_TABLE) as connection:
            last = _last(connection)
        return last.hash if last else _START

    def check(self, head: str | None = None) -> None:
        """Check that the chain is whole.

        Parameters
        ----------
        head : str, optional
            The hash of an event known from elsewhere, such as a report; it has to be in the chain.

        Raises
        ------
        LedgerError
            If the chain is broken, with its first faulty event, or if ``head`` is missing.
        InputError
            If there is no ledger at this place, or it cannot be read.
        """
        with self._database.reading(_TABLE) as connection:
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
        compare: Sequence[str] | None = None,
        rule: str = "",
        level: float | None = None,
        sample: Callable[[str], RowSample] | None = None,
        scope: str | None = None,
    ) -> Opening:
        """Record that an audit is about to look at a holdout or at all outcomes, or refuse.

        The holdout is identified by its outcomes, so that a further column in the evidence does not
        make it a fresh one. After the first opening, another audit (with other candidates, another
        plan, split or version of the evidence) needs a reason, which stays in every later report.
        The same audit again is a replay, which is recorded but not counted.

        Parameters
        ----------
        evidence_hash, outcome_hash, split_hash, library_hash, plan_hash : str
        reopen : str, optional
            Reason for opening it again.
        holdout : bool
            Whether a part is held out; if not, the audit looks at all outcomes.
        all_outcomes : bool
            Whether more than the judge looks at held-out outcomes.
        compare : pair of str, optional
            Two models whose difference is judged.
        rule : str
            Name of the judge.
        level : float in (0, 1), optional
            The error level that this look spends; None if the judge has none.
        sample : callable, optional
            Takes a sample of the outcomes by a salt. Later openings of other evidence use the
            sample to measure the shared part; these openings are counted together, not refused.
        scope : str, optional
            The models and rows of the table that are looked at. Looks at other outcomes with
            another scope are other questions, and are not counted together.

        Raises
        ------
        LedgerError
            If it was opened before in another way and no reason is given, if an earlier ledger
            holds an opening for it, or the ledger's chain is broken.
        InputError
            If the ledger cannot be written to.

        Notes
        -----
        The ledger guards against a second look by habit or oversight, and records it. It cannot
        prevent a deliberate one."""
        reason = None if reopen is None else " ".join(reopen.split())
        if reason == "":
            raise LedgerError(
                'the reason to open the holdout again is blank: say why, as in --reopen "a '
                'label was wrong"'
            )
        self.refuse_earlier(OPENED, lambda e: e.get("outcome") == outcome_hash, "these outcomes")
        body: dict[str, object] = {
            "evidence": evidence_hash,
            "outcome": outcome_hash,
            "split": split_hash,
            "library": library_hash,
            "plan": plan_hash,
            "reason": reason,
            "holdout": holdout,
            "rule": rule,
            "level": level,
        }
        if scope is not None:
            body["scope"] = scope
        if self._via:
            body["via"] = self._via
        if compare is not None:
            body["compare"] = list(compare)
        if all_outcomes or not holdout:
            body["looked_at"] = ALL
        with self._database.transaction(_TABLE) as connection:
            # read inside the transaction: two audits at once must see each other's opening
            rows = _rows(connection)
            self._verify(rows)
            events = [_event(row) for row in rows]
            before = select_looks(events, {outcome_hash})
            replay = any(is_same_audit(event.body, body) for event in before)
            if not replay and reason is None:
                _refuse_another_look(before, body)
            if sample is not None:
                # only here: NumPy would double the time in which a command of reviews starts
                from groundfault.base.row_sketch import compare_samples

                body |= compare_samples(events, outcome_hash, sample)
            event = _append(connection, REPLAYED if replay else OPENED, _canonical(body))
        return describe_opening(self.place, [*events, event], event)

    @contextmanager
    def forgive_crash(self, opening: Opening) -> Iterator[None]:
        """Record, if an error or an interrupt ends this block, that the outcomes stayed unseen.

        The opening then does not count: another audit needs no reason, and no level is spent. A
        process that is killed cannot record this, so its opening counts.
        """
        try:
            yield
        except BaseException as error:
            # the user needs the present error, even if the ledger also fails
            with suppress(GroundfaultError):
                self.append(CRASHED, {"opening": opening.head, "error": type(error).__name__})
            raise

    def describe_opening(self, head: str, hashes: Mapping[str, str]) -> Opening:
        """Count an opening again from the events up to it, for a report.

        Parameters
        ----------
        head : str
            Hash of the event that recorded the opening.
        hashes : mapping of str to str
            Expected hashes of evidence, outcome, split, library and plan, by these names.

        Raises
        ------
        LedgerError
            If the chain is broken, or the event is missing or has other hashes.
        InputError
            If there is no ledger at this place, or it cannot be read.
        """
        self.check(head)
        events = self.events()
        event = next(event for event in events if event.hash == head)
        other = [key for key, value in hashes.items() if event.body.get(key) != value]
        if event.kind not in (OPENED, REPLAYED) or other:
            what = f"of another {other[0]}" if event.kind in (OPENED, REPLAYED) else "no opening"
            raise LedgerError(f"event {head[:12]} of the ledger {self.place} is {what}")
        if any(e.kind == CRASHED and e.body.get("opening") == head for e in events):
            raise LedgerError(f"event {head[:12]} of the ledger {self.place} is of a crashed audit")
        return describe_opening(self.place, events, event)

    def refuse_earlier(
        self, kind: str, concerns: Callable[[Mapping[str, object]], bool], what: str
    ) -> None:
        """Raise `LedgerError` if an earlier version's ledger holds an event about this.

        Parameters
        ----------
        kind : str
        concerns : callable
            Whether the body of an event of this kind is about the same thing.
        what : str
            Name of this thing for the message.
        """
        for place in self._earlier:
            if any(concerns(event.body) for event in Ledger(place).events(kind)):
                raise LedgerError(
                    f"{place}, a ledger of an earlier groundfault, has a record of {what}: go on "
                    f"with it by --ledger {place} (in Python ledger=)"
                )

    @property
    def place(self) -> str:
        """Return where the ledger is: an absolute path, or a URL without its password."""
        return self._database.place

    def _verify(self, rows: Sequence[Any]) -> None:
        previous = _START
        for number, row in enumerate(rows, start=1):
            trouble = ""
            if row.seq != number:
                trouble = f"event {number} is missing"
            elif row.previous != previous:
                trouble = (
                    f"event {number} does not follow event {number - 1}: one of the two was "
                    "changed or replaced"
                )
            elif row.hash != _hash(row):
                trouble = f"event {number} ({row.kind}, {row.time}) was edited"
            if trouble:
                raise LedgerError(f"the ledger {self.place} was altered: {trouble}")
            previous = row.hash


def _refuse_another_look(before: Sequence[Event], body: Mapping[str, object]) -> None:
    if not before:
        return
    last = before[-1]
    when = last.time[:16].replace("T", " ")
    if last.body.get("looked_at") == ALL:
        what = "these outcomes were audited before"
    else:
        what = "the holdout of these outcomes was used before"
    raise LedgerError(
        f"{what}, on {when} UTC by {last.actor} {_name_change(before, body)}, so the same error "
        'level does not hold twice. To look again, add --reopen "REASON" (in Python reopen=): the '
        "report keeps the reason. To explore, add --no-ledger (ledger=None): the report says so"
    )


def _name_change(before: Sequence[Event], body: Mapping[str, Any]) -> str:
    """Describe how a look differs from earlier looks, for a refusal."""
    last = before[-1].body
    if body["library"] not in {event.body.get("library") for event in before}:
        old, new = str(last.get("library"))[:12], body["library"][:12]
        return f"with other rules (library {old}, now {new})"
    for key, what in (("plan", "plan"), ("split", "split"), ("compare", "comparison")):
        if last.get(key) != body.get(key):
            return f"with another {what}"
    return "with another version of the evidence"


# ------------------------------------------------------------------------------------------- events


# the chain cannot fork, because no two events may have the same predecessor
_TABLE = DatabaseTable(
    "groundfault_ledger",
    ("time", "actor", "kind", "body", "previous", "hash"),
    unique="previous",
    layout=1,
)


def _rows(connection: Connection) -> Sequence[Any]:
    return list(connection.execute(f"SELECT * FROM {_TABLE.name} ORDER BY seq"))


def _last(connection: Connection) -> Any | None:
    return next(connection.execute(f"SELECT * FROM {_TABLE.name} ORDER BY seq DESC LIMIT 1"), None)


def _append(connection: Connection, kind: str, body: str) -> Event:
    last = _last(connection)
    if last is not None and last.hash != _hash(last):
        raise LedgerError(
            f"the ledger was altered: its last event, {last.seq} ({last.kind}, {last.time}), "
            "was edited"
        )
    now = datetime.now(UTC)
    if last is not None and kind != CLOCK:
        behind = datetime.fromisoformat(last.time) - now
        if behind > _DRIFT:
            # events keep their order; a note is recorded where their times do not
            seconds = round(behind.total_seconds())
            _append(connection, CLOCK, _canonical({"seconds": seconds, "last": last.time}))
            last = _last(connection)
    entry = {
        "seq": last.seq + 1 if last else 1,
        "time": now.isoformat(timespec="microseconds"),
        "actor": name_user(),
        "kind": kind,
        "body": body,
        "previous": last.hash if last else _START,
    }
    entry["hash"] = _hash(SimpleNamespace(**entry))
    connection.insert(_TABLE, entry)
    return Event(**{**entry, "body": json.loads(body)})


def _event(row: Any) -> Event:
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


def _canonical(body: Mapping[str, object]) -> str:
    try:
        # canonical, because it is hashed; NaN is not JSON, and other readers would refuse it
        return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"only JSON can be recorded in a ledger: {error}") from None


def name_user() -> str:
    """Return who runs this, and on which machine."""
    try:
        user = getpass.getuser()
    except (
        KeyError,
        OSError,
        ImportError,
    ):  # a container may know the number of its user and no name
        user = f"user-{os.getuid()}" if hasattr(os, "getuid") else "unknown"
    return f"{user}@{platform.node() or 'unknown'}"
