"""The folder of a new case: rows in two parts, and what was decided."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.base.files import explain_failure
from groundfault.case.model_answers import count_answers
from groundfault.case.parts import divide
from groundfault.case.settings import CaseSettings
from groundfault.core.plan import Plan
from groundfault.errors import InputError

if TYPE_CHECKING:
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
    level = Plan(alpha=alpha).settings["alpha"]
    settings = CaseSettings(
        sources=tuple(Path(source).name for source in evidence.provenance),
        alpha=level,
        seed=seed,
        freshness=parts.freshness,
        keep=None if parts.answers is None else Plan(holdout=keep or "0.5").settings["holdout"],
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
