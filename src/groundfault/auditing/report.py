"""Reports: all findings, what could not be checked, and the manifest that lets anyone recompute
them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from groundfault.base.files import write_text
from groundfault.core.candidate import Library
from groundfault.core.finding import Finding, Verdict

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Report:
    """What an audit may say.

    Attributes
    ----------
    findings : tuple of Finding
        One for each candidate and outcome: confirmed first, then by size of discovery effect. None
        is left out.
    summary : dict
        Everything else, as plain words and numbers; the keys of `to_json` beside ``findings``.
    library : Library
        The candidates as they were frozen.
    """

    findings: tuple[Finding, ...]
    summary: dict[str, Any]
    library: Library = field(repr=False)

    @property
    def confirmed(self) -> tuple[Finding, ...]:
        """The findings that may be reported."""
        return tuple(f for f in self.findings if f.confirmed)

    def counts(self) -> dict[str, int]:
        """How many findings have each verdict."""
        return {str(v): sum(f.verdict is v for f in self.findings) for v in Verdict}

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain words and numbers."""
        return {**self.summary, "findings": [f.to_dict() for f in self.findings]}

    def to_json(self, path: str | Path | None = None) -> str:
        """The whole report as JSON; also written to ``path``, whole or not at all, where one is
        given.
        """
        return _out(json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False), path)

    def to_frame(self) -> pl.DataFrame:
        """The findings as a table, one row each."""
        rows = []
        for f in self.findings:
            row: dict[str, Any] = {"name": f.name, "outcome": f.outcome, "verdict": str(f.verdict)}
            for part in ("discovery", "holdout", "full"):
                cell = getattr(f, part)
                for key in ("on", "off", "on_errors", "off_errors", "lift", "p", "p_adjusted"):
                    row[f"{part}_{key}"] = None if cell is None else getattr(cell, key)
            rows.append(
                {
                    **row,
                    "reason": f.reason,
                    "rule": f.rule,
                    "source": f.source,
                    "sentence": f.sentence,
                }
            )
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The report as Markdown."""
        from groundfault.render.markdown import markdown

        return _out(markdown(self), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The report as one self-contained HTML page, with figures and without a network."""
        from groundfault.render.html import html

        return _out(html(self), path)

    def write(self, directory: str | Path) -> None:
        """Write report.html, report.md, report.json and library.json into a directory, made where
        it is missing.
        """
        place = Path(directory)
        self.library.freeze(place / "library.json")
        self.to_html(place / "report.html")
        self.to_markdown(place / "report.md")
        self.to_json(place / "report.json")


def _out(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_text(Path(path), text)
    return text
