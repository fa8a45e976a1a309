"""``audit --case`` and ``sequential confirm --case``: steps of a case."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from groundfault.cli.audit import show_report
from groundfault.cli.confirm import label_holdout, require_program
from groundfault.cli.output import echo_warnings, require_writable, show_progress


def audit_case(folder: str, options: dict[str, Any]) -> None:
    """Audit the rows of a case."""
    from groundfault.case.case import AUDIT, Case

    require_writable(options["json_path"])
    quiet = options["json_path"] == "-"
    with echo_warnings(), show_progress(quiet) as progress:
        report = Case(folder).audit(texts=not options["no_text"], progress=progress)
    if options["json_path"] and not quiet:
        report.to_json(options["json_path"])
    show_report(report, quiet, str(Path(folder) / AUDIT))


def confirm_case(folder: str, options: dict[str, Any]) -> None:
    """Label fresh rows of a case for its modes."""
    from groundfault.case.case import Case

    require_writable(options["json_path"])
    if options["label"] == "cmd":
        require_program(options)
    case = Case(folder)
    if options["label"] == "file":
        case.require_answers()
    with echo_warnings():
        confirmation = case.confirm(options["modes"] or None, options["budget"])
    try:
        one_is_pass = case.fresh_evidence.roles.positive_is_good
        status = label_holdout(confirmation, options, case.look_up, one_is_pass=one_is_pass)
    finally:
        case.write_confirmation()
    if options["json_path"] != "-":
        click.echo(f"next: groundfault case report {shlex.quote(folder)}")
    sys.exit(status)
