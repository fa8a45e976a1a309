"""Examples of a report's modes and findings, looked up in its evidence again."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from msgspec.structs import replace as change
from numpy.typing import NDArray

from groundfault.auditing.counted_audit import CountedAudit
from groundfault.auditing.evidence_again import Places, read_evidence_again, select_audited
from groundfault.auditing.preparation import start_audit
from groundfault.auditing.prepared_audit import PreparedAudit, tabulate_units
from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import ReportData
from groundfault.core.candidate import Candidate, Library
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Finding
from groundfault.core.judge import Judge
from groundfault.core.pairs import clip_changes
from groundfault.core.rules import Rule
from groundfault.core.units import Marks
from groundfault.errors import InputError
from groundfault.modes.examples import choose_examples, find_near, select_losses
from groundfault.modes.mode import Mode, ModeExample, Side
from groundfault.transcripts.steps import read_transcripts

MAX_EXAMPLES = 200
"""Examples of one side, at most."""


@dataclass(frozen=True)
class RuleExamples:
    """Examples of one rule of a report.

    Attributes
    ----------
    subject : Mode or Finding, optional
        The subject of the rule; None for examples of the whole log.
    examples : tuple of ModeExample
        The most typical first; without a column of texts, they show the values that the rule reads.
    pair : pair of str, optional
        The two models of a comparison: an example is then described by its change.
    """

    subject: Mode | Finding | None
    examples: tuple[ModeExample, ...]
    pair: tuple[str, str] | None = None


def look_up_examples(
    directory: str | Path,
    name: int | str | None,
    *,
    side: Side = "failing",
    count: int = 20,
    evidence: Places | None = None,
) -> RuleExamples:
    """Choose examples of a failure mode or finding in the evidence of a report.

    Parameters
    ----------
    directory : path
        Folder in which ``Report.write`` wrote report.json and library.json.
    name : int or str, optional
        The number of a failure mode, from 1, or the name of a finding; None for the whole log.
    side : {"failing", "passing", "near"}
        Wrong and inside the rule; right and inside; outside because of one condition.
    count : int
        Largest number, up to 200.
    evidence : path, or sequence of path, optional
        The evidence's new place if it has moved, as in `groundfault.verify`.

    Raises
    ------
    InputError
        If the mode or finding does not exist, or the evidence is missing or has changed.
    """
    report = Report.load(directory)
    subject = None if name is None else find_subject(report, name)
    case = read_matching(report, directory, evidence)
    if subject is None:
        inside = np.ones(case.evidence.unit_count, dtype=np.bool_)
        near, losses = ~inside, case.losses()[-1]
        outcome = case.outcomes[-1]
    else:
        inside, near = mark_rule(report, case, subject)
        losses, outcome = select_subject_losses(subject, case), subject.outcome
    # of a comparison the second model's answers are shown
    model = case.compare[1] if case.compare else outcome
    examples = choose_examples(
        case.evidence, model, inside, near, losses, count=min(count, MAX_EXAMPLES)
    )
    of_side = tuple(example for example in examples if example.side == side)
    columns = () if subject is None else _columns(subject)
    return RuleExamples(subject, _add_values(of_side, case.evidence, columns), case.compare)


def look_up_runs(
    directory: str | Path, example: str, *, evidence: Places | None = None
) -> dict[str, pl.DataFrame]:
    """Read the steps of a failing and a passing run of one example, with their texts.

    Parameters
    ----------
    directory, evidence
        As in `look_up_examples`.
    example : str
        Id of the example.

    Returns
    -------
    dict of str to polars.DataFrame
        Under ``failing`` and ``passing``, if these runs exist.

    Raises
    ------
    InputError
        If the evidence lacks the example or its steps.
    """
    report = Report.load(directory)
    return read_pair(read_matching(report, directory, evidence).evidence, example)


def read_pair(runs: Evidence, example: str = "") -> dict[str, pl.DataFrame]:
    """Read a failing and a passing run of an example; without a name, of the first with both."""
    table = runs.frame.select(pl.col(runs.roles.id or "").cast(pl.String).alias("id"), runs.loss)
    scored = table.with_row_index().filter(pl.col("loss").is_not_null())
    fails = pl.col("loss") > 0
    both = (fails.any() & ~fails.all()).over("id")
    if not example and len(scored):
        example = scored.sort(both, fails, descending=True, maintain_order=True)["id"][0]
    mine = scored.filter(pl.col("id") == example)
    sides = {"failing": mine.filter(fails)["index"], "passing": mine.filter(~fails)["index"]}
    rows = {side: int(some[0]) for side, some in sides.items() if len(some)}
    # both at once: the columns of a table are looked at each time
    steps = read_transcripts(runs.frame, runs.roles, runs.account, [*rows.values()])
    if not len(steps):
        raise InputError(f"the evidence has no steps of an example {example!r}")
    return {side: steps.filter(pl.col("run") == row) for side, row in rows.items()}


def select_subject_losses(subject: Mode | Finding, case: PreparedAudit) -> NDArray[np.float64]:
    """Return losses that give an example's side; of a comparison, changes in its direction.

    Parameters
    ----------
    subject : Mode or Finding
    case : PreparedAudit

    Returns
    -------
    float64 array, shape (units,)
        In [0, 1]; NaN where not scored.
    """
    losses = case.losses()
    if not case.compare:
        return select_losses(subject.outcome, losses, case.outcomes)
    return clip_changes(losses, less=subject.is_less_frequent)


def read_matching(report: Report, directory: str | Path, evidence: Places | None) -> PreparedAudit:
    """Read the evidence of a report in a folder, as its audit judged it; see `match_evidence`."""
    if report.manifest.derivation is not None:
        raise InputError(
            f"the evidence of this report was made from others ({report.manifest.derivation.kind}),"
            " so its examples cannot be shown"
        )
    return match_evidence(report, read_evidence_again(report.data, directory, evidence))


def match_evidence(
    report: ReportData, evidence: Evidence, *, judge: Judge | None = None
) -> PreparedAudit:
    """Return the evidence as a report's audit judged it.

    Parameters
    ----------
    report : ReportData
    evidence : Evidence
        The audited evidence; further models and rows are left out.
    judge : Judge, optional
        The report's judge, if no installed package has a judge with its name.

    Raises
    ------
    InputError
        If the report is about other evidence.
    """
    evidence = select_audited(evidence, report.manifest)
    plan = report.plan.to_plan()
    if judge is not None:
        plan = replace(plan, judge=judge, judge_settings=None)
    case = start_audit(evidence, plan, compare=report.manifest.compare)
    if case.evidence.hash != report.hashes.evidence:
        where = evidence.provenance[0] if evidence.provenance else "this evidence"
        raise InputError(
            f"the report is not of {where}: its content is another; name the evidence that "
            "was audited"
        )
    return case


def find_subject(report: Report, name: int | str) -> Mode | Finding:
    """Return the failure mode with a number, from 1, or the finding with a name.

    Raises
    ------
    InputError
        If the report does not have it.
    """
    if isinstance(name, int):
        if not 1 <= name <= len(report.modes):
            modes = f"{len(report.modes)} failure mode{'s' * (len(report.modes) != 1)}"
            raise InputError(f"the report has {modes}; there is no mode {name}")
        return report.modes[name - 1]
    for finding in report.findings:
        # a finding of fewer failures may be told by its other side
        for face in (finding, finding.face_failures(report.plan.effect)):
            if name in (face.key, face.name):
                return face
    names = [finding.key for finding in report.findings]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names[:3]
    raise InputError(
        f"the report has no finding {name!r} (nor is it the number of a failure mode); there are "
        f"{', '.join(map(repr, near))}, ..."
    )


def mark_rule(
    report: Report, case: PreparedAudit, subject: Mode | Finding
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mark units that a rule matches, and near misses: two arrays of shape (units,).

    Parameters
    ----------
    report : Report
    case : PreparedAudit
        The evidence as the report's audit judged it.
    subject : Mode or Finding
        The subject of the rule.
    """
    columns = [name for name in _columns(subject) if name in case.evidence.frame.columns]
    table, _ = tabulate_units(case.evidence, columns)
    known = set(_columns(subject)) <= set(table.columns)
    if isinstance(subject, Mode) and known:
        inside = subject.holds(table).to_numpy()
    else:
        # the candidate that a rule was judged as may read a fitted column
        same = (candidate for candidate in report.library if candidate.rule == subject.rule)
        one = next(same, Candidate("rule", subject.rule, missing="off"))
        inside = Marks.of(case.evidence, Library((one,))).unpack()[0][0]
    return inside, find_near(subject.rule, table) if known else np.zeros_like(inside)


def _columns(subject: Mode | Finding) -> tuple[str, ...]:
    return Rule.parse(subject.rule).columns


def _add_values(
    examples: tuple[ModeExample, ...], evidence: Evidence, columns: Sequence[str]
) -> tuple[ModeExample, ...]:
    """Add the values of the columns that the rule reads to the texts of examples."""
    columns = [name for name in columns if name in evidence.frame.columns]
    key = evidence.roles.id or ""
    names = [example.id for example in examples]
    frame = evidence.frame.filter(pl.col(key).cast(pl.String).is_in(names))
    rows = {str(row[key]): row for row in frame.iter_rows(named=True)}
    return tuple(
        change(
            example,
            texts={
                **example.texts,
                **{c: str(rows[example.id][c]) for c in columns if c not in example.texts},
            },
        )
        for example in examples
    )


def choose_failures(audit: PreparedAudit, losses: NDArray[np.float64]) -> tuple[ModeExample, ...]:
    """Choose typical failures of the model that fails most, if there is no rule to show.

    An engine shows no rows.
    """
    if isinstance(audit, CountedAudit) or not np.nansum(losses):
        return ()
    most = -1 if audit.compare else int(np.nansum(losses, axis=1).argmax())
    model = audit.compare[1] if audit.compare else audit.outcomes[most]
    every = np.ones(losses.shape[1], dtype=np.bool_)
    sides = every, ~every
    return choose_examples(audit.evidence, model, *sides, losses[most], failing_only=True)
