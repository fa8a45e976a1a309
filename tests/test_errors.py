"""Errors: one tree, and messages that somebody can read to their end."""

from __future__ import annotations

import pickle

import pytest

from groundfault import errors
from groundfault.errors import MAX_MESSAGE, GroundfaultError, InputError, MissingExtraError

TREE = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, GroundfaultError)
]


@pytest.mark.parametrize("kind", TREE)
def test_a_message_that_quotes_data_is_cut_in_its_middle(kind: type[GroundfaultError]) -> None:
    error = kind("the column " + "x" * 3_000_000 + " is unknown; name another")
    message = str(error)
    assert len(message) <= MAX_MESSAGE
    assert message.startswith("the column xxx")
    assert message.endswith("xxx is unknown; name another")
    assert "3,000,036 characters" in message
    # processes of an audit hand their errors over
    assert str(pickle.loads(pickle.dumps(error))) == message


def test_a_short_message_is_as_it_was() -> None:
    assert str(InputError("x" * MAX_MESSAGE)) == "x" * MAX_MESSAGE
    assert str(MissingExtraError("pip install x")) == "pip install x"
    assert str(InputError()) == ""
