"""Which way an outcome points: one option for every command, and what a command says without it."""

from __future__ import annotations

import shlex

import click

from groundfault.cli.command import ARGUMENTS, COLUMNS, Decorator, option
from groundfault.core.column_names import means_pass
from groundfault.errors import InputError

GOOD, BAD = "--positive-is-good", "--positive-is-bad"


def orientation_option(what: str, group: str = COLUMNS) -> Decorator:
    """The option that says whether a 1 is a pass or a failure; None where it is left out.

    Parameters
    ----------
    what : str
        Where the 1 stands, and what it is by default.
    group : str
        Heading that it is listed under.
    """
    return option(
        f"{GOOD}/{BAD}",
        "positive_is_good",
        default=None,
        group=group,
        help=f"Whether 1 is a pass or a failure {what}",
    )


def require_orientation(column: str, *, one_is_pass: bool) -> None:
    """Stop unless a column may be read in the direction that is the command's default.

    Parameters
    ----------
    column : str
    one_is_pass : bool
        The default direction.

    Raises
    ------
    InputError
        If the column's name says the other one; the message holds both commands.
    """
    if means_pass(column) is (not one_is_pass):
        name, default = ("failure", "pass") if one_is_pass else ("pass", "failure")
        ask_orientation(f"{column!r} is named as if 1 were a {name}, and 1 is read as a {default}")


def ask_orientation(why: str) -> None:
    """Stop, and give the command in both directions.

    Raises
    ------
    InputError
        Always; the line begins with the reason.
    """
    context = click.get_current_context()
    arguments = context.meta.get(ARGUMENTS, ())
    command = shlex.join([*context.command_path.split(), *arguments])
    raise InputError(
        f"{why} unless you say so: {command} {GOOD} if 1 is a pass, {command} {BAD} if 1 is a "
        "failure"
    )
