"""Texts of runs as people and models read them: steps, or question and answer, blind if need be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from groundfault.core.column_meaning import has_transcripts, holds_answer, means_pass
from groundfault.core.evidence import Evidence
from groundfault.modes.examples import find_text_columns
from groundfault.transcripts.steps import read_transcripts

_SHOWN, _LEAST, _STEPS = 3_800, 80, 40
"""Characters of a run that a model reads, of a step at least, and steps: the first and last."""
_BATCH = 500
"""Runs whose texts are open at once."""

Texts = tuple[tuple[str, str], ...]
"""Heads and texts: a pair for each step, or for each column that is shown."""


@dataclass(frozen=True)
class RunTexts:
    """The texts of the runs of some evidence.

    Attributes
    ----------
    evidence : Evidence
    columns : tuple of str
        Columns shown of a run; by default its steps or, without any, its question, answer and
        target.
    """

    evidence: Evidence
    columns: tuple[str, ...] = ()

    def open(self, rows: Sequence[int]) -> dict[int, pl.DataFrame]:
        """Return the steps of runs with their texts; empty if columns are shown instead."""
        of = self.evidence
        if self.columns or not has_transcripts(of.frame):
            return {}
        steps = read_transcripts(of.frame, of.roles, of.account, rows)
        return {int(part["run"][0]): part for part in steps.partition_by("run")}

    def tell(self, row: int, runs: Mapping[int, pl.DataFrame], *, is_blind: bool) -> Texts:
        """Return heads and texts of a run, without a grader's words where these would tell."""
        if (steps := runs.get(row)) is not None:
            shown = steps.filter(pl.col("actor") != "judge") if is_blind else steps
            return tuple(map(_head_step, shown.iter_rows(named=True)))
        names = [name for name in self._shown if not is_blind or name != "reason"]
        return tuple((name, str(self.evidence.frame[name][row])) for name in names)

    def list_blind(self) -> Iterator[str]:
        """Yield each run as one text, as models read it: cut, and without a grader's words."""
        rows = range(len(self.evidence))
        for start in range(0, len(rows), _BATCH):
            part = rows[start : start + _BATCH]
            runs = self.open(part)
            yield from (cut_run(self.tell(row, runs, is_blind=True)) for row in part)

    @cached_property
    def _shown(self) -> tuple[str, ...]:
        """Return the columns that are shown; columns of the outcome are never shown."""
        roles = self.evidence.roles
        found = self.columns or find_text_columns(self.evidence)
        told = [c for c in found if c in self.columns or means_pass(c) is None]
        # of measured columns only the answer, and the grader's reason, which coders read first
        hidden = [c for c in roles.instrument if not holds_answer(c) and c not in self.columns]
        reason = ["reason"] * ("reason" in roles.instrument)
        return (*(c for c in told if c not in hidden), *reason) or self.evidence.attributes


def _head_step(step: Mapping[str, Any]) -> tuple[str, str]:
    """Return the head of a step, and its text."""
    name = f" {step['name']}" if step["name"] else ""
    status = "" if step["status"] == "ok" else f" [{step['status']}]"
    head = f"{step['step']}. {step['actor']} {step['kind']}{name}{status}"
    return head, step["text"] or step["arguments"] or ""


def cut_run(texts: Sequence[tuple[str, str]]) -> str:
    """Return a run as a judge reads it: each step cut, and of a long run the middle left out."""
    half = _STEPS // 2
    if left := max(0, len(texts) - _STEPS):
        texts = [*texts[:half], (f"{left} steps are left out", ""), *texts[-half:]]
    most = max(_LEAST, _SHOWN // max(1, len(texts)))
    lines = [f"{head}: {text}".rstrip(": ") for head, text in texts]
    return "\n".join(line if len(line) <= most else f"{line[: most - 2]} …" for line in lines)
