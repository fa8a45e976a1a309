"""Texts of runs: steps or columns, cut for a model, and blind to graders and outcomes."""

from __future__ import annotations

import json

import polars as pl

from groundfault import Evidence
from groundfault.auditing.run_texts import RunTexts, cut_run


def test_a_blind_text_has_no_word_of_a_grader() -> None:
    chat = [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "<solution>5</solution>"},
        {"role": "user", "content": "Observation:\nYour answer is wrong."},
    ]
    table = pl.DataFrame({"error": [1, 0], "correct": [0, 1], "chat": [json.dumps(chat)] * 2})
    texts = RunTexts(Evidence.from_table(table, outcome="error"))
    runs = texts.open([0])
    assert "3. judge feedback" in dict(texts.tell(0, runs, is_blind=False))
    assert "3. judge feedback" not in dict(texts.tell(0, runs, is_blind=True))
    blind = list(texts.list_blind())
    assert len(blind) == 2
    assert "0. user message: 2 + 2?" in blind[0]
    assert not any(word in blind[0] for word in ("judge", "error", "correct", "wrong"))


def test_of_a_long_run_the_middle_is_left_out_and_steps_are_cut() -> None:
    steps = [(f"{i}. assistant message", f"{i} " + "x" * 500) for i in range(100)]
    text = cut_run(steps)
    assert len(text) < 5_000
    assert text.startswith("0. assistant message")
    assert "60 steps are left out" in text
    assert text.splitlines()[-1].startswith("99. assistant message")
