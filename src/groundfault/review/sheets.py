"""Sheets: items to review elsewhere, as CSV, JSON lines or Label Studio tasks.

A sheet holds the texts for a reviewer and empty answers. A returned sheet is checked as a
whole, the texts that were shown among it, before any of it counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from groundfault.base.files import write_bytes, write_text
from groundfault.base.reading import decode_json, read_beside
from groundfault.base.sheets import escape_cell, format_csv, read_sheet_text, split_rows, write_rows
from groundfault.errors import InputError, first_line
from groundfault.review.decision import SAID, Decision, Role
from groundfault.review.queue import Item, normalize


def make_task(item: Item) -> dict[str, Any]:
    """Return an item as a task: its texts and its id."""
    return {"data": {"item": item.id, **item.visible_texts}}


def read_rows(tasks: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return rows of a sheet from a JSON export with annotations; skipped ones are passed over.

    Raises
    ------
    InputError
        If it is laid out otherwise, or a task has several annotations.
    """
    for number, each in enumerate(tasks, start=1):
        here = f"{where}, task {number}"
        try:
            annotations = [a for a in each.get("annotations") or [] if not a.get("was_cancelled")]
            row = dict(each["data"])
            if len(annotations) > 1:
                raise InputError(
                    f"{here} has {len(annotations)} annotations; a sheet is one reviewer's, so "
                    "export theirs alone"
                )
            for result in annotations[0]["result"] if annotations else []:
                value = result["value"]
                row[result["from_name"]] = "\n".join(
                    value.get("choices") or value.get("text") or []
                )
        except (AttributeError, KeyError, TypeError):
            raise InputError(f"{here} is not laid out as Label Studio's JSON export") from None
        yield here, row


Format = Literal["csv", "jsonl", "labelstudio"]


def write(items: Sequence[Item], path: str | Path, format: Format) -> list[Path]:
    """Write a sheet of items in this order; the files it is made of.

    ``csv`` for a spreadsheet, where a text that would be a formula begins with an apostrophe;
    ``jsonl``; or ``labelstudio``: tasks, and beside them the labelling configuration as XML.

    Raises
    ------
    InputError
        If there is no item, or the place cannot be written to.
    """
    place = Path(path)
    if not items:
        raise InputError("all items are decided, so no sheet was written")
    if format == "labelstudio":
        config = place.with_name(place.stem + "-config.xml")
        write_text(config, read_beside(__file__, "label_studio.xml"))
        tasks = [make_task(item) for item in items]
        write_text(place, json.dumps(tasks, indent=1, ensure_ascii=False))
        return [place, config]
    rows = [{"item": item.id, **item.visible_texts, **dict.fromkeys(SAID, "")} for item in items]
    if format == "jsonl":
        write_rows(rows, place)
    else:
        write_bytes(place, format_csv(pl.DataFrame(rows), for_excel=True))
    return [place]


def read(
    path: str | Path, items: Mapping[str, Item], reviewer: str, role: Role = "reviewer"
) -> list[Decision]:
    """Return the decisions on a sheet; rows without any answer are not decided yet.

    Parameters
    ----------
    path : path
        Told by its content: a JSON list is of Label Studio, a JSON object on the first line JSON
        lines, else it is CSV.
    items : mapping of str to Item
        Items that may be on the sheet, by their ids.
    reviewer : str
        Whose decisions they are.
    role : {"reviewer", "adjudicator"}

    Raises
    ------
    InputError
        If the file cannot be read; a row names an unknown item, one that came before, other text
        than was shown, or an answer that is not one; or nothing is decided. It names the row, and
        the sheet is refused as a whole.
    """
    decisions: dict[str, Decision] = {}
    places: dict[str, str] = {}
    for where, row in _read_rows(Path(path)):
        id = _get_text(row, "item", where)
        if id not in items:
            raise InputError(
                f"{where}: item {id[:12]!r} is not among those to decide here; is it another sheet?"
            )
        if id in places:
            raise InputError(
                f"{where}: item {id[:12]} comes twice, first in {places[id]}; leave one of them out"
            )
        places[id] = where
        _require_same_text(row, items[id], where)
        answers = {name: _get_text(row, name, where).strip() for name in SAID}
        answers |= {name: answers[name].lower() for name in SAID if name != "note"}
        if any(answers[name] for name in SAID if name != "note"):
            fields: dict[str, Any] = {name: text or None for name, text in answers.items()} | {
                "note": answers["note"]
            }
            try:
                decisions[id] = Decision(reviewer=reviewer, item=id, role=role, **fields)
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
        elif answers["note"]:
            raise InputError(f"{where}: item {id[:12]} has a note and no answer")
    if not decisions:
        raise InputError(
            f"{path} holds no decision: fill in prompt_valid, extraction_valid and model_wrong"
        )
    return list(decisions.values())


def _require_same_text(row: Mapping[str, object], item: Item, where: str) -> None:
    for name, text in item.visible_texts.items():
        text_read = normalize(_get_text(row, name, where))
        if text_read not in (text, escape_cell(text)):
            raise InputError(
                f"{where}: {name} of item {item.id[:12]} was changed; change only the answers"
            )


def _get_text(row: Mapping[str, object], name: str, where: str) -> str:
    value = row.get(name)
    if value is None and name in SAID:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{where}: {name} is missing, or no text")
    return value


def _read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    text = read_sheet_text(path)
    start = text.lstrip()[:1]
    try:
        if start == "[":
            yield from read_rows(decode_json(text, str(path)), str(path))
        elif start == "{":
            for number, line in enumerate(text.split("\n"), start=1):
                if line.strip():
                    where = f"{path}, line {number}"
                    yield where, _require_mapping(decode_json(line, where))
        else:
            for where, row in split_rows(text, path, ("item", *SAID)):
                if None in row or None in row.values():
                    raise InputError(f"{where} has another number of cells than the header")
                yield where, row
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as a sheet: {first_line(error)}") from None


def _require_mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise InputError("a line of the sheet is no JSON object")
    return value
