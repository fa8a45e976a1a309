"""The folder of a new case: rows in two parts, and what was decided."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.auditing.copies import join_copies
from groundfault.base.files import explain_failure
from groundfault.case.model_answers import count_answers
from groundfault.case.parts import KEEP, divide
from groundfault.case.settings import CaseSettings
from groundfault.core.plan import Plan
from groundfault.core.units import average_losses
from groundfault.errors import InputError, PlanError
from groundfault.sequential.graded_slices import read_grades

if TYPE_CHECKING:
    from groundfault.case.parts import CaseParts
    from groundfault.core.evidence import Evidence
    from groundfault.core.plan import Number


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
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise InputError(f"cannot begin a case in {folder}: it is there and not empty")
    if grader is not None:
        if grader not in evidence.frame.columns:
            raise InputError(f"there is no column {grader!r} to take grades from")
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
    with explain_failure(home):
        home.parent.mkdir(parents=True, exist_ok=True)
        # beside it, so that it takes its place in one step
        new = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.parent))
    try:
        for name in ("audit", "fresh", "answers"):
            if (part := getattr(parts, name)) is not None:
                part.save(new / "evidence" / name)
        settings.write(new)
        with explain_failure(home):
            new.chmod(0o755)
            with suppress(FileNotFoundError):
                home.rmdir()
            new.rename(home)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _require_grades(parts: CaseParts, grader: str) -> None:
    """What would keep the modes from being confirmed is said before there is a case."""
    read_grades(parts.audit, grader)
    read_grades(parts.fresh, grader)
    losses = average_losses(join_copies(parts.audit))
    if ((losses > 0) & (losses < 1)).any():
        raise PlanError(
            "a grader helps where losses are 0 or 1, and here some lie between, as they also do "
            "where copies of an example fare differently: leave --grader out"
        )
