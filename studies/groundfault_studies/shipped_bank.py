"""The bank that `groundfault lab probe init` writes, put to a pretrained chat model.

Prompts in a random order were asked once with the shipped settings, greedily, and the answers are
recorded. They are sorted by the signals that lead to a review; nobody has reviewed them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from groundfault.probes import Bank, Grammar
from groundfault.probes.bank.rendering import render
from groundfault.probes.running.answers import route
from groundfault_studies.resuming import Rows
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value

RECORDED_BANK = Path(__file__).with_name("bank_answers.parquet")
SIGNALS = ("match", "mismatch", "unreadable")


def list_bank_replies() -> Rows:
    """Return a row for each recorded answer: the task and options of its prompt, and its signal."""
    bank, grammar, recorded = Bank.shipped(), Grammar.shipped(), pl.read_parquet(RECORDED_BANK)
    answers = {row["key"]: row for row in recorded.iter_rows(named=True)}
    names = [group.name for group in grammar.groups]
    rows: Rows = []
    for task in bank:
        tempted = replace(task, answer=task.slots["shortcut"])
        for assignment in grammar:
            options = dict(zip(names, assignment, strict=True))
            if answer := answers.get(render(bank, grammar, task.id, options).key):
                reply = answer["response"]
                row = {"task": task.id, "kind": task.family, **options, "cut": answer["cut"]}
                row["signal"] = route(task, reply).signal
                row["tempted"] = route(tempted, reply).signal == "match"
                rows.append(row)
    return rows


def tabulate_bank(rows: Rows) -> PaperTable:
    """Make the table of signals, by kind of task and by option of a prompt."""
    columns: dict[str, tuple[str, Kind]] = {
        "prompts": ("prompts", "count"),
        **{signal: (signal, "count") for signal in SIGNALS},
        "tempted": ("gives the tempting answer", "count"),
        "cut": ("ran to the limit", "count"),
    }
    lines = [PaperRow("all", _count_signals(rows))]
    for name in ("kind", *(group.name for group in Grammar.shipped().groups)):
        for value in dict.fromkeys(row[name] for row in rows):
            part = [row for row in rows if row[name] == value]
            lines.append(PaperRow(f"{name}: {value}", _count_signals(part)))
    note = (
        f"{len(rows)} of the 486 prompts that lab probe init writes, the first of a random order, "
        "asked greedily with at most 192 tokens. A mismatch is an answer that can be read and is "
        "not the key's; unreadable replies have no answer, or several. Both are for a person to "
        "review. The tempting answer is the wrong one that the option shortcut mentions; it is "
        "counted with and without that option."
    )
    return PaperTable("The shipped bank", note, columns, tuple(lines))


def _count_signals(rows: Rows) -> dict[str, Value]:
    signals = [row["signal"] for row in rows]
    here: dict[str, Value] = {"prompts": len(rows)}
    here |= {signal: signals.count(signal) for signal in SIGNALS}
    return here | {name: sum(row[name] for row in rows) for name in ("tempted", "cut")}
