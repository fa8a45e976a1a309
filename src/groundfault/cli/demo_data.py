"""The demo's data: a small language model's real answers, and what it never saw in training."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from groundfault.modes.mode import Mode

NEVER_SEEN = "number_style = 'words'"
"""What no prompt of the model's training was like, as a rule; the audit is not told."""

MEANING = "numbers written out as words"


def read_table() -> bytes:
    """The table of 2,000 prompts and answers, as a Parquet file; see the README beside it."""
    return (files("groundfault.cli") / "data" / "number_words.parquet").read_bytes()


def compare_with_truth(mode: Mode, table: pl.DataFrame) -> str:
    """Hold a mode against what the model never saw.

    Parameters
    ----------
    mode : Mode
    table : polars.DataFrame
        What `read_table` holds.

    Returns
    -------
    str
        In sentences.
    """
    from groundfault.core.rules import Rule

    unseen = table.select(Rule.parse(NEVER_SEEN).to_polars().alias("unseen")).to_series()
    inside = mode.holds(table)
    both = int((inside & unseen).sum())
    return (
        f"What the audit was not told: in training the model never saw {MEANING} "
        f"({NEVER_SEEN}). Of the {inside.sum():,} prompts of the first failure mode "
        f"{both / int(inside.sum()):.0%} are of that kind, and of all {unseen.sum():,} prompts of "
        f"that kind it covers {both / int(unseen.sum()):.0%}."
    )
