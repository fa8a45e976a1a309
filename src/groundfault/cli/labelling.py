"""Labels in the shell: one prompt, one program and one column for whatever asks for labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from groundfault.cli.reading import read_program
from groundfault.errors import InputError

if TYPE_CHECKING:
    from groundfault.sequential.labelling import Answer, LabelSession
    from groundfault.sequential.policies import Query

    T = TypeVar("T")

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 and the number of SIGINT, as shells have it."""

STOPPED = "\nstopped; what was recorded is safe: run the same command again to go on"


class Quit(click.Abort):
    """The person typed q: an end that was chosen, and no interruption."""


def choose_answer(options: dict[str, Any], look_up: Answer | None, *, one_is_pass: bool) -> Answer:
    """Return the function that scores a case, as --label chooses it.

    Parameters
    ----------
    options : dict
        Of a command with `label_options`.
    look_up : callable or None
        Answers a query for ``--label file``.
    one_is_pass : bool
        Whether a 1 that a program prints is a pass. A person types words.
    """
    from groundfault.sequential import answers

    if options["label"] == "cmd":
        return answers.command(read_program(options), positive_is_good=one_is_pass)
    if options["label"] == "file":
        assert look_up is not None
        return look_up
    return partial(
        ask,
        columns=options["show"],
        score_column=options.get("scores"),
        is_alone=not options.get("labellers"),
    )


def label(
    session: LabelSession[T], answer: Answer, progress: Callable[[LabelSession[T]], object] | None
) -> int:
    """Label until the end or until the person stops; return the exit status."""
    try:
        session.run(answer, progress)
    except (KeyboardInterrupt, click.Abort) as stop:
        click.echo(STOPPED, err=True)
        return 0 if isinstance(stop, Quit) else INTERRUPTED
    return 0


def ask(
    query: Query,
    columns: Sequence[str] = (),
    score_column: str | None = None,
    *,
    is_alone: bool = True,
) -> float | Literal["back"] | None:
    """Show a case, and take its score from a person in words; None is unscorable.

    Parameters
    ----------
    query : Query
    columns : sequence of str
        Columns of the case to show; by default all that do not name an outcome.
    score_column : str, optional
        A further column that is not shown, so as not to sway the person.
    is_alone : bool
        Whether the last label can be taken back: where several label, it counts with the others'.

    Raises
    ------
    InputError
        If there is no such column.
    Quit
        If the person quits.
    """
    from groundfault.sequential.answers import read_label, select_fields
    from groundfault.sequential.labelling import BACK

    click.echo(f"\ncase {clean(query.id)}   (query {query.step})")
    fields, hidden = select_fields(query, columns, score_column)
    for name, value in fields.items():
        click.echo(f"  {clean(name)}: {clean(value)}")
    if hidden and query.step == 1:
        names = ", ".join(map(clean, hidden))
        click.echo(f"  (not shown, as it may hold an outcome: {names}; --show shows it)")
    can_go_back = is_alone and query.step > 1
    choices = "[p]assed, [f]ailed, [u]nscorable" + ", [b]ack" * can_go_back
    while True:
        reply = click.prompt(f"score: {choices}, [q]uit", prompt_suffix=" > ").strip().lower()
        if reply in ("q", "quit"):
            raise Quit
        if reply in ("b", "back") and can_go_back:
            return BACK
        try:
            return read_label(reply)
        except InputError as error:
            click.echo(str(error))


def clean(value: object) -> str:
    """Return a value without control characters."""
    # an escape sequence in a case could hide or rewrite what the person is asked to score
    text = str(value)
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
