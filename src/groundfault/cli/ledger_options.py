"""The options of the ledger, the same for every command that looks at outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundfault.base.ledgers import DEFAULT, EARLIER, VARIABLE, find_ledger
from groundfault.cli.command import OUTPUT, Decorator, apply, option
from groundfault.cli.output import echo_warnings
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.base.ledger import Ledger


def ledger_options(group: str = OUTPUT) -> Decorator:
    """Where looks at outcomes are recorded, and why a further one is taken."""
    return apply(
        [
            option(
                "--ledger",
                metavar="FILE|URL",
                group=group,
                help="Record of looks at outcomes, and of labels, to resume from; default "
                f"${VARIABLE}, or {DEFAULT}.",
            ),
            option(
                "--no-ledger",
                is_flag=True,
                group=group,
                help="Record nothing; the result says so, and no label outlives an interruption.",
            ),
            option(
                "--reopen",
                metavar="REASON",
                group=group,
                help="Look at the same outcomes again in another way; the reason stays in every "
                "report.",
            ),
        ]
    )


def choose_ledger(
    options: dict[str, Any], earlier: Sequence[str | Path] = EARLIER
) -> Ledger | None:
    """The ledger to record in; None where nothing is recorded.

    Parameters
    ----------
    options : dict
        Of a command with `ledger_options`.
    earlier : sequence of path
        As for `groundfault.base.ledgers.find_ledger`.

    Raises
    ------
    PlanError
        If one is named, or a reason given, where nothing is to be recorded.
    """
    if options["no_ledger"]:
        if options["ledger"] or options["reopen"]:
            raise PlanError("--no-ledger goes neither with --ledger nor with --reopen")
        return None
    with echo_warnings():
        return find_ledger(options["ledger"] or True, earlier=earlier)
