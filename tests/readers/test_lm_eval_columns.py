"""Samples of lm_eval by columns: the tables are those of the rows read one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundfault.readers import lm_eval
from groundfault.readers.log import Log
from groundfault.readers.stacking import stack

Row = dict[str, Any]


def write_choices(i: int) -> Row:
    """A question of two to four choices; every fifth has two that are the same."""
    words = [f" {'same' if i % 5 == 0 and j < 2 else j}" for j in range(2 + i % 3)]
    logs = [[str(-0.3 * ((i * 7 + 3 * j) % 11) - 700), "False"] for j in range(len(words))]
    return {
        "doc_id": i,
        "doc": {"id": f"q{i % 30}", "question": f"Is it {i}?", "choices": words, "x": i / 7},
        "target": i % 3,
        "arguments": {
            f"gen_args_{j}": {"arg_0": f"Q: Is it {i}?", "arg_1": word}
            for j, word in enumerate(words)
        },
        "resps": [[pair] for pair in logs],
        "filtered_resps": logs,
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "acc": float(i % 2),
        "acc_norm": None if i == 4 else 1,
    }


def write_answer(i: int) -> Row:
    """An answer in words, in every third of which a filter finds nothing."""
    arguments = {"arg_0": [f"Sum {i}"], "arg_1": {"until": ["."]}}
    return {
        "doc_id": i,
        "doc": {"problem": f"Sum {i}", "meta": {"level": i}, "tags": ["a", 1, None]},
        "target": [str(i)],
        "arguments": {"gen_args_0": arguments},
        "resps": [[f"it is {i}"]],
        "filtered_resps": ["[invalid]"] if i % 3 == 0 else [str(i)],
        "filter": "strict",
        "metrics": ["exact_match", "f1"],
        "exact_match": i % 2 == 0,
        "f1": [1, 0],
    }


CASES: dict[str, tuple[Callable[[int], Row], dict[str, Any], bool]] = {
    "choices": (write_choices, {}, True),
    "answers": (write_answer, {}, True),
    "choices behind a filter": (write_choices, {"filter": "best"}, True),
    "another key in a document": (write_choices, {"doc": {"new": True}}, True),
    "texts that JSON has to escape": (
        write_choices,
        {"doc": {"choices": [",", 'a",', '\n"', "", "\u2028\\"], "x": None}},
        True,
    ),
    "a list of no texts": (write_choices, {"doc": {"choices": ["a", 1, None]}}, True),
    "log-likelihoods without quotes": (
        write_choices,
        {"filtered_resps": [[-0.1, "True"], [-7, "False"], [-1e-3, "False"], [-2.5, "False"]]},
        True,
    ),
    "a score that is true": (write_choices, {"acc": True, "acc_norm": 10**400}, True),
    "one row without a filter's name": (write_choices, {"filter": None}, False),
    "one row of another metric": (write_answer, {"metrics": ["f1"]}, False),
    "one score that is no number": (write_answer, {"exact_match": [1]}, False),
    "a log-likelihood that is none": (
        write_choices,
        {"filtered_resps": [["nan", "True"], ["-1", "False"], ["-1", "False"], ["-1", "False"]]},
        False,
    ),
    "a log-likelihood of infinity": (
        write_choices,
        {"filtered_resps": [["-inf", "True"], ["-1", "False"], ["-1", "False"], ["-1", "False"]]},
        False,
    ),
    "choices out of order": (
        write_choices,
        {"arguments": {f"gen_args_{j}": {"arg_0": "Q", "arg_1": str(j)} for j in (1, 0, 2, 3)}},
        False,
    ),
    "choices without a context": (
        write_choices,
        {
            "filtered_resps": [["-1", "True"], ["-2", "False"], ["-3", "False"]],
            "arguments": {
                f"gen_args_{j}": {"arg_0": context, "arg_1": word}
                for j, (context, word) in enumerate([("Q", "a"), ("Q", "b"), ("", "a")])
            },
        },
        False,
    ),
    "a number as Python writes it": (write_answer, {"exact_match": float("nan")}, False),
}


@pytest.mark.parametrize("case", CASES)
def test_tables_are_those_of_rows_read_one_by_one(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, change, is_alike = CASES[case]
    rows = [write(i) for i in range(60)]
    # of one row, but a filter of all
    for row in rows if change.get("filter") == "best" else rows[41:42]:
        row.update(change)
    path = tmp_path / "samples_task.jsonl"
    path.write_text("\n\n".join(map(json.dumps, rows)))
    used = []
    read_columns = lm_eval.read_columns
    monkeypatch.setattr(lm_eval, "_CHUNK", 20)
    monkeypatch.setattr(
        lm_eval,
        "read_columns",
        lambda *args: used.append(table := read_columns(*args)) or table,  # type: ignore[func-returns-value]
    )
    log, by_rows = lm_eval.LmEval().read(path), lm_eval.LmEval().read(path)
    tables = list(log.tables())
    expected = list(Log.tables(by_rows))
    assert [table is None for table in used] == [False, False, not is_alike]
    # a column that only a later table has comes after those of the earlier ones
    table, whole = stack([t for t, _ in tables]), stack([t for t, _ in expected])
    assert sorted(table.columns) == sorted(whole.columns)
    assert table.select(whole.columns).equals(whole)
    assert tables[0][1] == expected[0][1]
    assert log.notes == by_rows.notes
    if case in ("choices", "answers"):
        assert table["status"].n_unique() == 2
