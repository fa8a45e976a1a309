"""``anchor``: a signature that shows later whether a ledger was written anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from groundfault.base.ledgers import DEFAULT, VARIABLE, find_ledger
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.base.anchors import AnchorFiles


@click.command()
@click.argument("key", type=click.Path())
@click.option(
    "--ledger", metavar="FILE|URL", help=f"Ledger to sign; default ${VARIABLE}, or {DEFAULT}."
)
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    help="Where to write the anchor; default beside the ledger, with the number of its events.",
)
def anchor(key: str, ledger: str | None, out: str | None) -> None:
    """Sign the head of a ledger with the SSH key KEY, by ssh-keygen.

    Give the anchor, and the signature beside it, to those who shall be able to tell later whether
    the ledger still holds what it held: groundfault verify --anchor FILE --signer KEY.pub. Kept
    with the ledger alone they are erased along with it.

    \b
    groundfault anchor ~/.ssh/id_ed25519
    """
    from groundfault.base.anchors import sign_head

    book = find_ledger(ledger or True)
    if book is None:
        raise PlanError(f"${VARIABLE} is off; name the ledger to sign with --ledger")
    place = sign_head(book, key, out)
    click.echo(f"signed: {place} and {place.name}.sig")


def choose_anchor(
    anchor: str | None, signer: str | None, time_stamp: str | None, authority: str | None
) -> AnchorFiles | None:
    """The anchor of ``verify``; None where there is none.

    Parameters
    ----------
    anchor, signer, time_stamp, authority : str or None
        Files, as the options name them.

    Raises
    ------
    PlanError
        If some are named that say nothing without the others.
    """
    if anchor is None:
        if signer or time_stamp or authority:
            raise PlanError("--signer, --time-stamp and --authority belong to an --anchor")
        return None
    if signer is None:
        raise PlanError("--anchor needs --signer: the public key that it has to be signed with")
    from groundfault.base.anchors import AnchorFiles

    return AnchorFiles(anchor, signer, time_stamp, authority)
