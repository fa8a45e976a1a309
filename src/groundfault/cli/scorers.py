"""``audit --every-scorer``: one audit for each scorer of the logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundfault.cli.output import write_json
from groundfault.cli.reading import read_sources, select_rows
from groundfault.core.candidate import Candidate
from groundfault.core.plan import Plan
from groundfault.errors import InputError

if TYPE_CHECKING:
    from groundfault.auditing.scorers import ScorerAudits


def audit_every_scorer(
    options: dict[str, Any],
    plan: Plan,
    candidates: Sequence[Candidate] | None,
    settings: dict[str, Any],
    place: Path | None,
) -> ScorerAudits:
    """Audit the logs by each scorer, and write a folder of reports for each."""
    from groundfault.auditing.scorers import audit_scorers

    for name in ("scorer", "disagreement", "outcome"):
        if options[name]:
            raise InputError(f"--every-scorer takes each scorer of the logs: leave --{name} out")
    audits = audit_scorers(
        read_sources(options, settings["progress"]),
        plan,
        candidates,
        scale=options["scale"],
        select=partial(select_rows, options=options),
        **settings,
    )
    if place:
        folders = name_folders(tuple(audits.reports))
        for folder, report in zip(folders, audits.reports.values(), strict=True):
            report.write(place / folder)
    return audits


def show_audits(audits: ScorerAudits, options: dict[str, Any]) -> None:
    """Write the audits as JSON where asked for, or print what they say and where they differ."""
    if write_json(audits.to_json(), options["json_path"]):
        return
    from rich.console import Console

    from groundfault.render.scorer_page import make_scorer_page
    from groundfault.render.terminal import show

    show(make_scorer_page(audits, options["out"]), Console())


def name_folders(scorers: Sequence[str]) -> list[str]:
    """A folder for each scorer: its name, without what no folder may be called."""
    folders: dict[str, None] = {}
    for scorer in scorers:
        name = re.sub(r"[^\w.,=+-]+", "-", scorer).strip("-.")[:80] or "scorer"
        free, count = name, 2
        while free in folders:
            free, count = f"{name}-{count}", count + 1
        folders[free] = None
    return list(folders)
