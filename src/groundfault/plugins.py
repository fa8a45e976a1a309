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

All kinds raise `InputError`, `PlanError`, `RuleError` and `MissingExtraError`. To test a plug-in,
use ``check_finder``, ``check_judge``, ``check_reader``, ``check_policy``, ``check_exporter`` and
``check_counter`` of `groundfault_lab.testing`. CONTRIBUTING.md has a complete example of each kind
except engines; `groundfault.engines.polars_files` is the shortest engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault.auditing.report import Report as Report
    from groundfault.base.files import write_bytes as write_bytes, write_text as write_text
    from groundfault.base.sheets import write_table as write_table
    from groundfault.core.candidate import (
        Candidate as Candidate,
        FittedColumn as FittedColumn,
        Library as Library,
    )
    from groundfault.core.columns import (
        Column as Column,
        Kind as Kind,
        list_examples as list_examples,
        profile as profile,
    )
    from groundfault.core.evidence import Evidence as Evidence
    from groundfault.core.finding import Cell as Cell, Finding as Finding, Verdict as Verdict
    from groundfault.core.judge import (
        Confirmation as Confirmation,
        ConfirmationBar as ConfirmationBar,
        Judge as Judge,
        Screening as Screening,
    )
    from groundfault.core.plan import Plan as Plan, to_fraction as to_fraction
    from groundfault.core.roles import Roles as Roles
    from groundfault.core.rules import literal as literal, quote as quote
    from groundfault.core.status import Status as Status
    from groundfault.core.units import Marks as Marks, Units as Units
    from groundfault.engines import CellCounts as CellCounts, Counter as Counter
    from groundfault.errors import (
        GroundfaultError as GroundfaultError,
        InputError as InputError,
        MissingExtraError as MissingExtraError,
        PlanError as PlanError,
        RuleError as RuleError,
    )
    from groundfault.exports import Exporter as Exporter
    from groundfault.exports.slices import ReportSlices as ReportSlices
    from groundfault.finders import Finder as Finder
    from groundfault.judges.rule import (
        compute_p_values as compute_p_values,
        is_big_enough as is_big_enough,
    )
    from groundfault.probes.policies.history import (
        PromptHistory as PromptHistory,
        PromptPolicy as PromptPolicy,
    )
    from groundfault.readers import Reader as Reader
    from groundfault.readers.log import Log as Log, Observation as Observation, TableLog as TableLog
    from groundfault.readers.safely import (
        Archive as Archive,
        head as head,
        json_file as json_file,
        json_lines as json_lines,
    )
    from groundfault.sequential.policies import History as History, Policy as Policy, Query as Query
    from groundfault.sequential.pool import Pool as Pool
    from groundfault.stats.contingency import ContingencyTables as ContingencyTables
    from groundfault.stats.decoys import Floor as Floor

__getattr__, __dir__, __all__ = open_front_door(__name__)
