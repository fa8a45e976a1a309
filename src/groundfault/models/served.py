"""Which model answered: what a server calls it, held against what was asked for."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import replace

from groundfault.models.question import Response

# what servers add to a name: a date, the number of a version, "latest"; "-8b" and ".1" are others
_VERSION = re.compile(r"[-:@](latest|\d{3,4}|\d{6,8}|\d{4}-\d\d-\d\d|v\d+)")


def is_same_model(asked: str, answered: str) -> bool:
    """Whether a server's name of a model is that of the one that was asked, or of a version of it.

    Capitals do not count, nor do the folders or the provider in front.

    Examples
    --------
    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06")
    True
    >>> is_same_model("gpt-4o", "gpt-4o-mini")
    False
    """
    first, second = (name.casefold().rpartition("/")[2] for name in (asked, answered))
    rest = second.removeprefix(first)
    return first == second or (rest != second and _VERSION.fullmatch(rest) is not None)


def note_other(response: Response, asked: str) -> Response:
    """The response; it names the model that was asked if the server answered as another one."""
    if not response.model or is_same_model(asked, response.model):
        return response
    return replace(response, asked=asked)


def list_others(responses: Iterable[Response]) -> list[tuple[str, str]]:
    """Pairs of a model that was asked and the other one that answered, each once, in order."""
    return sorted({(one.asked, one.model) for one in responses if one.asked})


def describe_other(asked: str, answered: str) -> str:
    """What there is to say of such a pair."""
    return (
        f"{asked[:200]!r} was asked, and the server answered as {answered[:200]!r}: what follows "
        "is of that model, if the server is right"
    )


def warn_of_others(responses: Iterable[Response]) -> None:
    """Warn once of each model that answered in the place of another."""
    for asked, answered in list_others(responses):
        warnings.warn(describe_other(asked, answered), UserWarning, stacklevel=3)
