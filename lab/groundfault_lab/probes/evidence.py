"""Components and task families as candidates: reviewed rows become evidence for an audit.

A prompt key is one example; asked again it has repeats. Its loss is the audited outcome: 1 for a
confirmed model error, 0 for an answer that reviewers found right, or that matched the key and was
not reviewed. Excluded, disputed and waiting rows have no loss and are counted separately.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from groundfault.base.sheets import write_table
from groundfault.core.candidate import Candidate, Library
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.roles import Roles
from groundfault.core.rules import literal, quote
from groundfault.errors import InputError, PlanError
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.review.statuses import score_row
from groundfault.probes.running.runs import ProbeRow
from groundfault_lab.probes.comparison import NON_ADAPTIVE, is_adaptive

if TYPE_CHECKING:
    from groundfault.auditing.report import Report
    from groundfault.base.ledgers import LedgerChoice
    from groundfault.probes.review.statuses import Status
    from groundfault_lab.probes.summary import Summary

Unit = Literal["prompt", "task"]

ASSUMPTION = (
    "Assumed: an answer that matched its key, and was not reviewed, is right; without keys, one "
    "that matched the answer to the base wording is as right as that. Prompts of a policy that "
    "does not look at what was found; rows of one that does are a biased sample."
)
# with fewer on average, comparisons within tasks would use less than half of the prompts
_PROMPTS_A_TASK = 2
_RESERVED = ("prompt_key", "model", "repeat", "error", "status", "task", "family")


def evidence(
    rows: Iterable[ProbeRow],
    statuses: Mapping[str, Status],
    grammar: Grammar,
    *,
    unit: Unit = "prompt",
) -> Evidence:
    """Make evidence of audited rows.

    Parameters
    ----------
    rows : iterable of ProbeRow
        Rows of policies that are not adaptive; those of others are a biased sample.
    statuses : mapping of ProbeRow.id to status
    grammar : Grammar
    unit : {"prompt", "task"}
        For candidates that differ within a task, such as components, the prompt. For those that do
        not, such as families, the task: its prompts share what makes it hard.

    Raises
    ------
    InputError
        If there is no row, or one task alone.

    Notes
    -----
    Nothing is held out: a grammar is fixed before any outcome. Prompts of a task are dependent. For
    components they may stand for themselves because each prompt's components were drawn without
    regard to its task, or all were asked: error levels hold, and conclusions are about these tasks.
    It would not hold for families. With two prompts a task or more, `choose_plan` compares them
    within tasks; with fewer most tasks have nothing to compare, and the column of tasks is ignored.
    """
    table = _make_table(rows, statuses, grammar)
    tasks = {each["task"] for each in table}
    if len(tasks) < 2:
        raise InputError(
            f"evidence needs the rows of two tasks at least, and there are {len(tasks)}"
        )
    frame = pl.DataFrame(table, schema_overrides={"error": pl.Float64, "repeat": pl.Int64})
    prompts = frame["prompt_key"].n_unique()
    # of the design alone, so that whoever looks at outcomes cannot choose between the two
    is_sparse = unit == "prompt" and prompts < _PROMPTS_A_TASK * len(tasks)
    roles = Roles(
        "error",
        "prompt_key",
        "model",
        "repeat",
        group="task" if unit == "task" else None,
        status="status",
        ignore=("task",) if is_sparse else (),
    )
    return Evidence.from_frame(frame, roles, ("audited probes",))


def choose_plan(evidence_: Evidence, seed: int = 0) -> Plan:
    """Make the plan that judges components or families: all at once, by max-T over all units.

    Components are compared within tasks, so that hard tasks neither hide nor feign an effect, where
    tasks have two prompts or more.
    """
    return Plan(seed=seed, within=("task",) if "task" in evidence_.attributes else ())


def _make_table(
    rows: Iterable[ProbeRow], statuses: Mapping[str, Status], grammar: Grammar
) -> list[dict[str, Any]]:
    """Make a line for each row; what a model was asked again is a repeat."""
    columns = column_names(grammar)
    times: Counter[tuple[str, str]] = Counter()
    table: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: (row.model, row.policy, row.seed, row.query)):
        loss, status = score_row(row, statuses)
        key = (row.key, row.model)
        values = (*key, times[key], loss, str(status), row.task, row.family)
        times[key] += 1
        parts = dict(zip(columns.values(), row.assignment, strict=True))
        table.append(dict(zip(_RESERVED, values, strict=False)) | parts)
    return table


def candidates(
    rows: Iterable[ProbeRow], grammar: Grammar, *, unit: Unit = "prompt"
) -> list[Candidate]:
    """List each option of a group against its others, or each family; from two on."""
    if unit == "task":
        families = sorted({row.family for row in rows})
        return _make_candidates("family", "family", families, "the task is of the family {}")
    components = []
    for group, column in column_names(grammar).items():
        options = next(each.options for each in grammar.groups if each.name == group)
        components += _make_candidates(
            group, column, [option.name for option in options], f"the prompt has the {group} {{}}"
        )
    return components


def column_names(grammar: Grammar) -> dict[str, str]:
    """Return the column of each component group."""
    groups = [group.name for group in grammar.groups]
    clash = {name.casefold() for name in groups} & set(_RESERVED)
    return {name: f"component_{name}" if clash else name for name in groups}


def _make_candidates(what: str, column: str, values: list[str], meaning: str) -> list[Candidate]:
    if len(values) < 2:
        return []
    return [
        Candidate(
            f"{what} = {value}",
            f"{quote(column)} = {literal(value)}",
            meaning.format(value),
            "probes",
        )
        for value in values
    ]


def select_rows(summary: Summary, policy: str) -> list[ProbeRow]:
    """Select the rows of a policy that may become evidence.

    Raises
    ------
    PlanError
        If it did not run, or looks at what was found: an error rate of its rows would be of where
        it looked.
    """
    if policy not in summary.results.policies:
        raise PlanError(f"no run of {policy!r}; there are {'; '.join(summary.results.policies)}")
    if is_adaptive(policy):
        raise PlanError(
            f"the policy {policy!r} looks at what was found, so its rows are a biased sample; take "
            f"those of one that does not ({', '.join(NON_ADAPTIVE)}), or run one beside it"
        )
    return [row for row in summary.rows if row.policy == policy]


def write(evidence_: Evidence, library: Sequence[Candidate], path: Path) -> str:
    """Write evidence as a table, and beside it the frozen candidates; the command that judges them.

    Raises
    ------
    PlanError
        If the name of the file ends neither in .parquet nor in .csv.
    """
    if path.suffix not in (".parquet", ".csv"):
        raise PlanError(f"evidence is written as .parquet or .csv, not as {path.name}")
    write_table(evidence_.frame, path)
    library_path = path.with_suffix(".library.json")
    Library.of(library).freeze(library_path)
    part = "--ignore task" if "task" in evidence_.roles.ignore else "--within task"
    if evidence_.roles.group:
        part = "--group task"
    return (
        f"groundfault audit {shlex.quote(str(path))} --id prompt_key --model-column model --repeat "
        f"repeat --outcome error --status status {part} --library {shlex.quote(str(library_path))}"
    )


def run_audits(
    rows: Sequence[ProbeRow],
    summary: Summary,
    *,
    seed: int = 0,
    ledger: LedgerChoice = True,
    reopen: str | None = None,
) -> dict[str, Report]:
    """Audit components and families, by those words; families only where there are two.

    Parameters
    ----------
    rows : sequence of ProbeRow
    summary : Summary
        The summary of their runs.
    seed : int
        Of the permutations.
    ledger : Ledger, path, URL or bool, optional
        Where it is recorded that outcomes were opened, as for `groundfault.audit`: twice, as
        families are another library.
    reopen : str, optional
        Why outcomes that were looked at before are looked at again.
    """
    from groundfault.auditing.flow import audit

    reports: dict[str, Report] = {}
    units: dict[str, Unit] = {"components": "prompt", "families": "task"}
    for name, unit in units.items():
        library = candidates(rows, summary.grammar, unit=unit)
        if library:
            table = evidence(rows, summary.statuses, summary.grammar, unit=unit)
            # both rulings are fixed here, before either opens the outcomes: the ledger counts two
            again = "families, planned together with components" if reports else reopen
            reports[name] = audit(
                table, choose_plan(table, seed), library, finders=[], ledger=ledger, reopen=again
            )
    return reports
