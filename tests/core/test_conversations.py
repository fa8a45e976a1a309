"""Conversations are told by their content; see tests/transcripts for what becomes of them."""

from __future__ import annotations

import polars as pl

from groundfault.core.column_meaning import list_conversations, open_conversation


def test_lists_of_messages_turns_and_spans_are_found_in_any_wrapping() -> None:
    told = '[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]'
    frame = pl.DataFrame({"a": [told], "b": [f'{{"messages": {told}}}'], "c": ['["x"]'], "d": [1]})
    assert list_conversations(frame) == ["a", "b"]
    assert list_conversations(frame.clear()) == []
    assert open_conversation(frame["a"][0]) == open_conversation(frame["b"][0])
