"""Records: every call of a model, stored before its reply is used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundfault.base.database import Database, DatabaseTable
from groundfault.base.files import write_text
from groundfault.errors import LedgerError
from groundfault.models.question import Question, Response

# hashes in one query: SQLite's limit of parameters was 999 for long
_MAX_HASHES = 500
_TABLE = DatabaseTable(
    "groundfault_calls",
    ("time", "target", "question", "asked", "response"),
    index="question",
    numbers_itself=True,
)


@dataclass(frozen=True)
class Call:
    """One attempt to get an answer.

    Attributes
    ----------
    target : str
        The name of the target.
    question : Question
    response : Response
    time : str
        When the reply came: UTC, ISO 8601.
    """

    target: str
    question: Question
    response: Response
    time: str

    def to_dict(self) -> dict[str, Any]:
        """Return the call as plain JSON values."""
        head = {"time": self.time, "target": self.target, "hash": self.question.hash}
        return {**head, **self.question.to_dict(), "response": self.response.to_dict()}


class Record:
    """Calls in an SQLite file, or in PostgreSQL; they are added to it and never changed.

    Parameters
    ----------
    path_or_url : path or str
        A file, made when it is first needed; or a URL ``postgresql+psycopg://...``. A ledger may
        lie in the same place.

    Notes
    -----
    A call is looked up by the target and the hash of messages, settings and repeat. A process
    killed while it records leaves a call whole or absent. Keys and headers are not recorded.
    """

    def __init__(self, path_or_url: str | Path) -> None:
        self._database = Database(path_or_url, "record")

    @property
    def place(self) -> str:
        """Return the place: an absolute path, or a URL without its password."""
        return self._database.place

    def add(self, calls: Sequence[Call]) -> None:
        """Store calls, all of them or none.

        Raises
        ------
        InputError
            If the place cannot be written to.
        """
        rows = [
            {
                "time": call.time,
                "target": call.target,
                "question": call.question.hash,
                "asked": json.dumps(call.question.to_dict()),
                "response": json.dumps(call.response.to_dict()),
            }
            for call in calls
        ]
        with self._database.transaction(_TABLE) as connection:
            for row in rows:
                connection.insert(_TABLE, row)

    def answers(self, target: str, hashes: Sequence[str]) -> dict[str, Response]:
        """Return the first answer or refusal of a target to each question of these hashes.

        Errors are no answers: a question that has only errors is asked again.

        Raises
        ------
        InputError
            If the place cannot be written to, which is checked here, before anything is paid for.
        LedgerError
            If a call cannot be read.
        """
        responses: dict[str, Response] = {}
        with self._database.transaction(_TABLE) as connection:
            for start in range(0, len(hashes), _MAX_HASHES):
                some = hashes[start : start + _MAX_HASHES]
                asked = f"question IN ({', '.join('?' * len(some))}) AND target = ?"
                query = f"SELECT * FROM {_TABLE.name} WHERE {asked} ORDER BY seq"
                for row in connection.execute(query, [*some, target]):
                    response = self._call(row).response
                    if not response.error:
                        responses.setdefault(row.question, response)
        return responses

    def calls(self) -> Iterator[Call]:
        """Return every call, oldest first, those that failed among them.

        Raises
        ------
        InputError
            If there is no record at this place.
        LedgerError
            If a call cannot be read.
        """
        with self._database.reading(_TABLE) as connection:
            for row in connection.execute(f"SELECT * FROM {_TABLE.name} ORDER BY seq"):
                yield self._call(row)

    def to_jsonl(self, path: str | Path) -> None:
        """Write every call as a line of JSON: a source for ``replay:``."""
        write_text(Path(path), "".join(json.dumps(call.to_dict()) + "\n" for call in self.calls()))

    def _call(self, row: Any) -> Call:
        try:
            question = Question.from_dict(json.loads(row.asked))
            response = Response.from_dict(json.loads(row.response))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise LedgerError(
                f"the record {self.place} was altered: call {row.seq} cannot be read"
            ) from None
        # whoever edits a prompt in the database would replay an answer to another question
        if question.hash != row.question:
            raise LedgerError(
                f"the record {self.place} was altered: call {row.seq} is not about what it says"
            )
        return Call(row.target, question, response, row.time)
