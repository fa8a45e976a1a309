"""Blocks of a page as plain values, for a script that sets them as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from groundfault.render import words
from groundfault.render.page import Bar, Block, Code, Entry, Figures, Fold, Highlight, Table


def list_blocks(blocks: Sequence[Block]) -> list[Any]:
    """Blocks as dicts and lists of text; without figures, which are no text.

    A dict has the kind of its block under ``block``, and beside it the block's fields; code and
    highlighted words are ``{"code": ...}`` and ``{"mark": ...}``.
    """
    return [_plain(block) for block in blocks if not isinstance(block, Figures)]


def find_entries(blocks: Sequence[Block]) -> Iterator[Entry]:
    """All entries among some blocks, those in folds and in other entries too."""
    for block in blocks:
        if isinstance(block, Entry):
            yield block
        if isinstance(block, Entry | Fold):
            yield from find_entries(block.blocks)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return words.clean(value)
    if isinstance(value, Code | Highlight):
        return {"code" if isinstance(value, Code) else "mark": words.clean(value.text)}
    if isinstance(value, Bar):
        return value.widths
    if isinstance(value, Table):
        value = value.drop_empty_columns()
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value if not isinstance(one, Figures)]
    if is_dataclass(value):
        # the orders of a table are a style sheet's, and the largest part of it
        names = [field.name for field in fields(value) if field.name != "orders"]
        content = {name: _plain(getattr(value, name)) for name in names}
        kind = getattr(value, "block", None)
        return content if kind is None else {"block": kind, **content}
    return value
