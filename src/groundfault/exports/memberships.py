"""Memberships: a table with one column for each slice, for whoever works with tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from groundfault.base.sheets import write_table
from groundfault.exports.slices import ReportSlices


@dataclass(frozen=True)
class Memberships:
    """Write which row of the evidence is on which slice, as CSV, Parquet or JSONL."""

    name: str = "memberships"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write the table in the format that the suffix of ``out`` names."""
        members = slices.members()
        write_table(members, out)
        return f"{members.height:,} rows"
