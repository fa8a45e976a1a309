"""``gate``: a verdict on a report for continuous integration."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from groundfault.auditing.gating import FAIL_ON
from groundfault.base.files import write_text
from groundfault.cli.extra_options import json_option
from groundfault.cli.output import require_writable, write_json


@click.command()
@click.argument("report", type=click.Path())
@click.option(
    "--fail-on",
    metavar="SQL",
    default=FAIL_ON,
    show_default=True,
    help="Condition on a finding or failure mode that fails the gate.",
)
@click.option(
    "--baseline",
    metavar="FILE",
    help="Earlier report; findings that it has too do not fail the gate.",
)
@click.option(
    "--must-detect",
    type=float,
    metavar="LIFT",
    help="Fail too if the audit could not have detected a lift of this size.",
)
@click.option("--summary", metavar="FILE", help="Write a Markdown summary, for a pull request.")
@json_option("the verdict")
def gate(
    report: str,
    fail_on: str,
    baseline: str | None,
    must_detect: float | None,
    summary: str | None,
    json_path: str | None,
) -> None:
    """Exit with status 1 if REPORT has a finding or failure mode that meets --fail-on and is new.

    New is what the baseline has not. REPORT and the baseline are files that audit --json wrote, or
    folders that audit --out wrote. The condition is SQL over the columns of a finding or failure
    mode: name, rule, meaning, source, outcome, model, verdict, confirmed, reason, representative,
    n_on, n_off, lift, p, p_adjusted, low, high, discovery_lift, frequency and kind. The kind is
    'finding' or 'mode', and a mode counts as confirmed.

    \b
    groundfault gate report.json --fail-on "confirmed and lift > 0" --baseline main/report.json
    """
    from groundfault.auditing.gating import gate as run
    from groundfault.render import gate as render
    from groundfault.render import words

    require_writable(summary)
    require_writable(json_path)
    verdict = run(report, fail_on, baseline=baseline, must_detect=must_detect)
    text = json.dumps(verdict.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if summary:
        write_text(Path(summary), render.markdown(verdict))
    if not write_json(text, json_path):
        for finding in verdict.new:
            click.echo(
                f"{words.clean(words.name_candidate(finding.name, finding.outcome))}: "
                f"{words.clean(finding.sentence)}"
            )
        for line in render.lines(verdict):
            click.echo(line)
        click.echo(render.headline(verdict))
    sys.exit(0 if verdict.passed else 1)
