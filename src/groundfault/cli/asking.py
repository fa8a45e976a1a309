"""Asking a person in the terminal what a case scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from groundfault.errors import GroundfaultError

if TYPE_CHECKING:
    from groundfault.sequential.policies import Query


INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 and the number of SIGINT, as shells have it."""


class Quit(click.Abort):
    """The person typed q: an end that was chosen, and no interruption."""


def ask(
    query: Query,
    columns: Sequence[str] = (),
    score_column: str | None = None,
    *,
    positive_is_good: bool = True,
) -> float | None:
    """Show a case, and take its score from a person, 1 for a pass; None is unscorable.

    Parameters
    ----------
    query : Query
    columns : sequence of str
        Columns of the case to show; by default all but ``score_column``.
    score_column : str, optional
        A column with a score that exists already, and is not shown, so as not to sway the person.
    positive_is_good : bool
        Whether a 1 that is typed is a pass; the prompt says so.

    Raises
    ------
    InputError
        If there is no such column.
    Quit
        If the person quits.
    """
    from groundfault.sequential.answers import read_score, select_fields

    fields = select_fields(query, columns, score_column)
    click.echo(f"\ncase {clean(query.id)}   (query {query.step})")
    for name, value in fields.items():
        click.echo(f"  {clean(name)}: {clean(value)}")
    words = {"p": "pass", "f": "fail", "u": "unscored"}
    number = f"a number from 0 to 1 (1 is a {'pass' if positive_is_good else 'failure'})"
    while True:
        reply = click.prompt(
            f"score: [p]ass, [f]ail, {number}, [u]nscorable, [q]uit", prompt_suffix=" > "
        )
        if reply.strip().lower() in ("q", "quit"):
            raise Quit
        try:
            return read_score(
                words.get(reply.strip().lower(), reply),
                "your answer",
                positive_is_good=positive_is_good,
            )
        except GroundfaultError as error:
            click.echo(str(error))


def clean(value: object) -> str:
    """A value without control characters."""
    # an escape sequence in a case could hide or rewrite what the person is asked to score
    text = str(value)
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
