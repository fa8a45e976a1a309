"""The two parts of a case: rows that its audit looks at, and fresh ones, whose labels are bought.

An audit looks at every outcome it is given. Its findings can be confirmed only on other outcomes:
of rows that are not labelled yet, or of a part that was kept apart from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

from groundfault.auditing.preparation import join_copies
from groundfault.auditing.report import Report
from groundfault.base.arrays import Bools, Places
from groundfault.base.files import is_unfinished, replace_folder
from groundfault.base.long_work import stream
from groundfault.case.settings import CaseSettings, Freshness
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Number, Plan, to_fraction
from groundfault.core.roles import Roles, list_parts
from groundfault.core.status import Status
from groundfault.core.units import average_losses
from groundfault.errors import InputError, PlanError, require_name
from groundfault.modes.mode import EVERY_MODEL, Mode
from groundfault.sequential.policies import Query
from groundfault.sequential.slice_tests import read_grades

Answer = tuple[str, str]
"""Name of a unit, and of the model that answered it; empty where the table names none."""


def select_answers(evidence: Evidence, outcome: str, seed: int) -> Evidence:
    """Return one row an example: the answers that modes of an outcome are about.

    Parameters
    ----------
    evidence : Evidence
        One row for each example and model.
    outcome : str
        As modes have it: empty where there is one model, else a model, or ``every model``. Of the
        latter a unit has the answer of one model, drawn by the seed, if all models answered it. A
        rule that has nothing to do with failing, for the models together, has nothing to do with
        the failures among such answers, and their rate inside it is expected to be the mean rate.
    seed : int
    """
    if not outcome:
        return evidence
    if outcome != EVERY_MODEL:
        return evidence.select_model(outcome)
    whole, models = join_copies(evidence), evidence.models
    units, codes = whole.unit_index, _code_models(evidence)
    answered = np.zeros((whole.unit_count, len(models)), dtype=np.bool_)
    answered[units, codes] = True
    by_all: Bools = np.asarray(answered.all(axis=1))
    lot = stream(seed, "model of a unit").integers(len(models), size=whole.unit_count)
    chosen = (codes == lot[units]) & by_all[units]
    # the models are one here: the column that names them says whose answer a row is, and no more
    roles = evidence.roles
    roles = replace(roles, model=None, ignore=(*roles.ignore, roles.model or ""))
    return Evidence.from_frame(evidence.frame.filter(pl.Series(chosen)), roles)


def group_modes(report: Report | None) -> dict[str, list[int]]:
    """Return numbers of a report's modes, from 1, by the outcome they are about."""
    groups: dict[str, list[int]] = {}
    for number, mode in enumerate(report.modes if report else (), 1):
        groups.setdefault(mode.outcome, []).append(number)
    return groups


def count_answers(evidence: Evidence) -> int:
    """Count units times models, copies of an example once."""
    return len(set(name_answers(evidence)))


def name_answers(evidence: Evidence) -> list[Answer]:
    """Return the unit and the model of each row."""
    return list(zip(_list_unit_names(evidence), _name_models(evidence), strict=True))


def name_answer(query: Query, model: str | None) -> Answer:
    """Return the unit and the model that a query is about; ``model`` is the column of models."""
    rows = query.case.get("examples", [query.case])
    return query.id, "" if model is None else str(rows[0][model])


def _name_models(evidence: Evidence) -> list[str]:
    column = evidence.roles.model
    if column is None:
        return [""] * len(evidence)
    return evidence.frame[column].cast(pl.String).to_list()


def _code_models(evidence: Evidence) -> Places:
    codes = {name: code for code, name in enumerate(evidence.models)}
    return np.array([codes[name] for name in _name_models(evidence)], dtype=np.intp)


PART = "part of the case"
"""Column: discovery for rows of the audit, and holdout for fresh ones."""
UNIT = "\0unit"
"""Column: name of the unit; see `list_units`."""
KEEP = Fraction(1, 2)
"""Share of the units that is kept apart where every row has an outcome."""


@dataclass(frozen=True)
class CaseParts:
    """The rows of a case.

    Attributes
    ----------
    audit : Evidence
        The rows that the audit looks at.
    fresh : Evidence
        The rows that can be labelled, without their outcomes.
    answers : Evidence or None
        The fresh rows with their outcomes from the table; None if it had no outcomes of them.
    freshness : {"kept apart", "without an outcome"}
        Why the audit cannot have looked at the outcomes of the fresh rows.
    """

    audit: Evidence
    fresh: Evidence
    answers: Evidence | None
    freshness: Freshness


def divide(evidence: Evidence, keep: Number | None = None, seed: int = 0) -> CaseParts:
    """Set rows apart that the audit does not look at.

    Units without any outcome are fresh. Where there are none, a share of the units is drawn by the
    seed and kept apart. Copies of an example are in one part.

    Parameters
    ----------
    evidence : Evidence
        One row for each example and model.
    keep : number, optional
        Share to keep apart, in (0, 1); 0.5 where left out.
    seed : int

    Raises
    ------
    InputError
        If there are groups or repeats, one part would be empty, or the two are of other models.
    PlanError
        If a share is given although some rows have no outcome, or is not in (0, 1).
    """
    if evidence.roles.split:
        raise InputError("a case divides its rows itself: leave the split column out (--split)")
    roles = evidence.roles
    names = [name for name in (roles.group or roles.id, roles.model) if name]
    if evidence.frame.select(names).is_duplicated().any():
        raise InputError(
            "groups or repeats of several rows cannot be confirmed label by label: keep one row of "
            "each example and model (--where), or audit them without a case"
        )
    whole = join_copies(evidence)
    lacking = (evidence.status == str(Status.MISSING)).to_numpy()
    counts = np.bincount(whole.unit_index, minlength=whole.unit_count)
    unlabelled = np.bincount(whole.unit_index, lacking, whole.unit_count) == counts
    if unlabelled.any():
        if keep is not None:
            raise PlanError(
                f"{unlabelled.sum()} units have no outcome, so these are the fresh ones: leave "
                "--keep out, or leave these rows out (--where)"
            )
        if unlabelled.all():
            raise InputError("no row has an outcome: the audit of a case needs some to look at")
        audit, fresh = _part(evidence, unlabelled[whole.unit_index])
        return CaseParts(audit, fresh, None, "without an outcome")
    share = KEEP if keep is None else to_fraction(keep, "keep")
    if not 0 < share < 1:
        raise PlanError(f"keep must be strictly between 0 and 1, not {keep}")
    plan = Plan(holdout=share, seed=seed)
    audit, answers = _part(evidence, ~plan.discovery_units(whole)[whole.unit_index])
    return CaseParts(audit, hide_outcomes(answers), answers, "kept apart")


def _part(evidence: Evidence, is_fresh: Bools) -> list[Evidence]:
    """Return the rows of the audit, and the fresh ones, as they are once stored and read again."""
    parts = [
        Evidence.from_frame(evidence.frame.filter(pl.Series(rows)), evidence.roles)
        for rows in (~is_fresh, is_fresh)
    ]
    # modes are of the audit's models, and each is confirmed on fresh answers of the same ones
    lonely = set(parts[0].models) ^ set(parts[1].models)
    if lonely:
        raise InputError(
            f"{', '.join(sorted(lonely))} answered either units to audit or fresh ones: a case "
            "needs answers of each model to both; leave these models out (--where)"
        )
    return parts


def _forget_statuses(roles: Roles) -> Roles:
    """Return the roles of a table in which a row without an outcome was not scored yet."""
    return replace(roles, null_outcome=str(Status.MISSING), status=None, count_as_failed=())


def hide_outcomes(evidence: Evidence) -> Evidence:
    """Return the same rows without their scores."""
    roles = _forget_statuses(evidence.roles)
    frame = evidence.frame.with_columns(pl.lit(None, pl.Float64).alias(roles.outcome))
    hidden = [name for name in (evidence.roles.status,) if name]
    return Evidence.from_frame(frame.drop(hidden), roles)


def join_parts(audit: Evidence, fresh: Evidence) -> Evidence:
    """Return both parts as evidence whose split column tells them apart, for a confirmation.

    Parameters
    ----------
    audit, fresh : Evidence
        As `divide` makes them. No outcome of ``fresh`` is read.

    Notes
    -----
    The outcomes are made of losses again, so that both parts have a column of the same type; what
    was not scored in the audit stays without a loss.
    """
    roles = replace(_forget_statuses(audit.roles), split=PART)
    outcome = roles.outcome
    words = [name for name in (audit.roles.status,) if name]
    frames = [
        part.frame.drop(*words, *list_parts(part.frame), strict=False).with_columns(
            (1.0 - losses if roles.positive_is_good else losses).alias(outcome),
            pl.lit(word).alias(PART),
        )
        for part, losses, word in (
            (audit, audit.loss.cast(pl.Float64), "discovery"),
            (fresh, pl.repeat(None, len(fresh), dtype=pl.Float64, eager=True), "holdout"),
        )
    ]
    joined = Evidence.from_frame(pl.concat(frames, how="vertical_relaxed"), roles)
    # copies are looked for in each part: none reaches from one into the other
    leaders = _name_units(audit) | _name_units(fresh)
    ids = joined.frame[roles.id or ""].cast(pl.String)
    clusters = None if roles.group else ids.replace_strict(leaders, return_dtype=pl.String)
    return replace(joined, clusters=clusters)


def mark_units(evidence: Evidence, modes: Sequence[Mode]) -> Bools:
    """Return which units each mode holds for: shape (modes, units)."""
    on = np.zeros((len(modes), evidence.unit_count), dtype=np.bool_)
    for row, mode in zip(on, modes, strict=True):
        row[evidence.unit_index[mode.holds(evidence.frame).to_numpy()]] = True
    return on


def list_units(evidence: Evidence) -> pl.DataFrame:
    """Return the first row of each unit, in their order, with the unit's name in the column
    `UNIT`.
    """
    names = evidence.unit_names.gather(evidence.unit_index)
    return evidence.frame.with_columns(names.alias(UNIT)).unique(UNIT, keep="first").sort(UNIT)


def _name_units(evidence: Evidence) -> dict[str, str]:
    """Return the unit of each example."""
    ids = evidence.frame[evidence.roles.id or ""].cast(pl.String)
    return dict(zip(ids, _list_unit_names(evidence), strict=True))


def _list_unit_names(evidence: Evidence) -> pl.Series:
    """Return the unit of each row, copies joined."""
    whole = join_copies(evidence)
    return whole.unit_names.gather(whole.unit_index)


def find_losses(answers: Evidence) -> dict[Answer, float | None]:
    """Return the loss of each answer to fresh units that the table had an outcome of.

    Of copies of an example that one model answered it is that of the first that was scored: a label
    is 0 or 1 where the audit's are, which a mean of copies need not be.
    """
    losses: dict[Answer, float | None] = {}
    names = name_answers(hide_outcomes(answers))
    for answer, loss in zip(names, answers.loss, strict=True):
        if losses.get(answer) is None:
            losses[answer] = loss
    return losses


def write_case(
    folder: Path,
    evidence: Evidence,
    *,
    alpha: Number,
    keep: Number | None,
    seed: int,
    grader: str | None,
) -> None:
    """Write the folder, which appears whole or not at all; parameters as for `Case.create`."""
    home = folder.absolute()
    # a disk that was full leaves empty folders, and what the next command finishes
    taken = home.is_file() or any(not each.is_dir() for each in home.rglob("*"))
    if taken and not is_unfinished(home):
        raise InputError(f"cannot begin a case in {folder}: it is there and not empty")
    if grader is not None:
        require_name("column", grader, evidence.frame.columns, InputError, "grader")
        evidence = evidence.with_roles(evidence.roles.join(None, None, {"ignore": [grader]}))
    parts = divide(evidence, keep, seed)
    if grader is not None:
        _require_grades(parts, grader)
    level = Plan(alpha=alpha).settings["alpha"]
    settings = CaseSettings(
        sources=tuple(Path(source).name for source in evidence.provenance),
        alpha=level,
        seed=seed,
        freshness=parts.freshness,
        keep=None if parts.answers is None else Plan(holdout=keep or KEEP).settings["holdout"],
        grader=grader,
        audit=parts.audit.hash,
        fresh=parts.fresh.hash,
        answers=None if parts.answers is None else parts.answers.hash,
        audit_units=parts.audit.unit_count,
        fresh_units=parts.fresh.unit_count,
        fresh_answers=count_answers(parts.fresh),
        models=evidence.models if len(evidence.models) > 1 else (),
    )
    with replace_folder(home) as new:
        for name in ("audit", "fresh", "answers"):
            if (part := getattr(parts, name)) is not None:
                part.save(new / "evidence" / name)
        settings.write(new)


def _require_grades(parts: CaseParts, grader: str) -> None:
    """Raise, before there is a case, where grades would keep modes from being confirmed."""
    read_grades(parts.audit, grader)
    read_grades(parts.fresh, grader)
    losses = average_losses(join_copies(parts.audit))
    if ((losses > 0) & (losses < 1)).any():
        raise PlanError(
            "a grader helps where losses are 0 or 1, and here some lie between, as they also do "
            "where copies of an example fare differently: leave --grader out"
        )
