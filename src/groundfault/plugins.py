"""Every name that the author of a plug-in imports.

A plug-in is an ordinary class that satisfies one of the protocols; there is nothing to inherit
from. It is passed as an object, or registered by a package under an entry-point group and named.

Finder: `Finder`, group ``groundfault.finders``
    One method, ``propose(discovery)``. Beside it `Evidence`, `Candidate`, `FittedColumn`, `quote`,
    `literal`, `Column`, `Kind`, `profile` and `list_examples`.

Judge: `Judge`, group ``groundfault.judges``
    One method, ``screen(units, hypotheses, plan, rng)``. Beside it `Units`, `Marks`, `Plan`,
    `Screening`, `Floor`, `Confirmation`, `ConfirmationBar`, `ContingencyTables`, `Verdict`,
    `compute_p_values`, `is_big_enough` and `to_fraction`.

Reader: `Reader`, group ``groundfault.readers``
    Two methods, ``sniff(path)`` and ``read(path)``. Beside it `Log`, `TableLog`, `Observation`,
    `Status`, `head`, `json_file`, `json_lines` and `Archive`.

Policy: `Policy`, group ``groundfault.policies``
    One method, ``ask(history, rng)``. Beside it `History`, `Query` and `Pool`; for prompts,
    `PromptPolicy` and `PromptHistory`.

Exporter: `Exporter`, group ``groundfault.exporters``
    One method, ``export(slices, out)``. Beside it `ReportSlices`, `Report`, `Finding`, `Cell`,
    `write_text`, `write_bytes` and `write_table`.

Engine: `Counter`, group ``groundfault.engines``
    Made of a tuple of Parquet files, with two methods, ``counts(rules, by)`` and
    ``evaluate(expressions, where)``, and ``find_schema()``. Beside it `CellCounts`.

All kinds raise `InputError`, `PlanError`, `RuleError` and `MissingExtraError`. What each plug-in
has to satisfy is tested by ``check_finder``, ``check_judge``, ``check_reader``, ``check_policy``,
``check_exporter`` and ``check_counter`` of `groundfault.testing`. CONTRIBUTING.md has a complete
example of each kind but engines, of which `groundfault.engines.polars_files` is the shortest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from groundfault.base.deprecation import warn_renamed
from groundfault.base.registry import load_object

if TYPE_CHECKING:
    from groundfault.auditing.report import Report
    from groundfault.base.files import write_bytes, write_text
    from groundfault.base.sheets import write_table
    from groundfault.core.candidate import Candidate, FittedColumn, Library
    from groundfault.core.columns import Column, Kind, list_examples, profile
    from groundfault.core.evidence import Evidence
    from groundfault.core.finding import Cell, Finding, Verdict
    from groundfault.core.judge import Confirmation, ConfirmationBar, Judge, Screening
    from groundfault.core.plan import Plan, to_fraction
    from groundfault.core.roles import Roles
    from groundfault.core.rules import literal, quote
    from groundfault.core.status import Status
    from groundfault.core.units import Marks, Units
    from groundfault.engines import CellCounts, Counter
    from groundfault.errors import (
        GroundfaultError,
        InputError,
        MissingExtraError,
        PlanError,
        RuleError,
    )
    from groundfault.exports import Exporter
    from groundfault.exports.slices import ReportSlices
    from groundfault.finders import Finder
    from groundfault.judges.confirm import compute_p_values, is_big_enough
    from groundfault.probes.policies.history import PromptHistory, PromptPolicy
    from groundfault.readers import Reader
    from groundfault.readers.log import Log, Observation, TableLog
    from groundfault.readers.safely import Archive, head, json_file, json_lines
    from groundfault.sequential.policies import History, Policy, Query
    from groundfault.sequential.pool import Pool
    from groundfault.stats.contingency import ContingencyTables
    from groundfault.stats.decoys import Floor

# where each name lives; nothing is imported before it is used
_PLACES = {
    "auditing.report": ("Report",),
    "base.files": ("write_bytes", "write_text"),
    "base.sheets": ("write_table",),
    "core.candidate": ("Candidate", "Library"),
    "core.columns": ("Column", "Kind", "list_examples", "profile"),
    "core.evidence": ("Evidence",),
    "core.finding": ("Cell", "Finding", "Verdict"),
    "core.fitted_column": ("FittedColumn",),
    "core.judge": ("Confirmation", "ConfirmationBar", "Judge", "Screening"),
    "core.plan": ("Plan", "to_fraction"),
    "core.roles": ("Roles",),
    "core.rules": ("literal", "quote"),
    "core.status": ("Status",),
    "core.units": ("Marks", "Units"),
    "engines": ("CellCounts", "Counter"),
    "errors": ("GroundfaultError", "InputError", "MissingExtraError", "PlanError", "RuleError"),
    "exports": ("Exporter",),
    "exports.slices": ("ReportSlices",),
    "finders": ("Finder",),
    "judges.confirm": ("compute_p_values", "is_big_enough"),
    "probes.policies.history": ("PromptHistory", "PromptPolicy"),
    "readers": ("Reader",),
    "readers.log": ("Log", "Observation", "TableLog"),
    "readers.safely": ("Archive", "head", "json_file", "json_lines"),
    "sequential.policies": ("History", "Policy", "Query"),
    "sequential.pool": ("Pool",),
    "stats.contingency": ("ContingencyTables",),
    "stats.decoys": ("Floor",),
}
_HOMES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "Archive",
    "Candidate",
    "Cell",
    "CellCounts",
    "Column",
    "Confirmation",
    "ConfirmationBar",
    "ContingencyTables",
    "Counter",
    "Evidence",
    "Exporter",
    "Finder",
    "Finding",
    "FittedColumn",
    "Floor",
    "GroundfaultError",
    "History",
    "InputError",
    "Judge",
    "Kind",
    "Library",
    "Log",
    "Marks",
    "MissingExtraError",
    "Observation",
    "Plan",
    "PlanError",
    "Policy",
    "Pool",
    "PromptHistory",
    "PromptPolicy",
    "Query",
    "Reader",
    "Report",
    "ReportSlices",
    "Roles",
    "RuleError",
    "Screening",
    "Status",
    "TableLog",
    "Units",
    "Verdict",
    "compute_p_values",
    "head",
    "is_big_enough",
    "json_file",
    "json_lines",
    "list_examples",
    "literal",
    "profile",
    "quote",
    "to_fraction",
    "write_bytes",
    "write_table",
    "write_text",
]


def __getattr__(name: str) -> Any:
    if name == "exact":
        warn_renamed("groundfault.plugins.exact", "groundfault.plugins.to_fraction")
        name = "to_fraction"
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = load_object(f"groundfault.{_HOMES[name]}:{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
