"""``gate``: a verdict on a report for continuous integration."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from groundfault.auditing.gating import FAIL_ON, LEVEL
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
    help="Condition on a finding, failure mode or overall change that fails the gate.",
)
@click.option(
    "--baseline",
    metavar="FILE",
    help="Earlier report; what is no worse than in it does not fail the gate.",
)
@click.option(
    "--level",
    type=float,
    default=LEVEL,
    show_default=True,
    help="Level of the test that something is worse than in the baseline.",
)
@click.option(
    "--must-detect",
    type=float,
    metavar="LIFT",
    help="Fail too if a real lift of this size could have been missed.",
)
@click.option("--junit", metavar="FILE", help="Write the verdict as JUnit XML.")
@click.option(
    "--markdown",
    "--summary",
    "markdown",
    metavar="FILE",
    help="Write a Markdown summary, for a pull request or a step summary.",
)
@json_option("the verdict")
def gate(
    report: str,
    fail_on: str,
    baseline: str | None,
    level: float,
    must_detect: float | None,
    junit: str | None,
    markdown: str | None,
    json_path: str | None,
) -> None:
    """Exit with status 1 if REPORT has a finding or failure mode that meets --fail-on and is new.

    New is what fails more often than in the baseline, beyond chance; without one, everything.
    REPORT and the baseline are files that audit --json wrote, or folders that audit --out wrote.
    The condition is SQL over the columns of a finding or failure mode: name, rule, meaning, source,
    outcome, model, verdict, confirmed, reason, representative, n_on, n_off, lift, p, p_adjusted,
    low, high, discovery_lift, frequency and kind. The kind is 'finding', 'mode' or, in a
    comparison, 'overall', and a mode counts as confirmed.

    \b
    groundfault gate report.json --baseline main/report.json --junit gate.xml
    """
    from groundfault.auditing.gating import gate as run
    from groundfault.render import gate as render
    from groundfault.render import words
    from groundfault.render.junit import junit as make_junit

    for path in (junit, markdown, json_path):
        require_writable(path)
    verdict = run(report, fail_on, baseline=baseline, must_detect=must_detect, level=level)
    text = json.dumps(verdict.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    for path, make in ((junit, make_junit), (markdown, render.markdown)):
        if path:
            write_text(Path(path), make(verdict))
    if not write_json(text, json_path):
        for finding in verdict.new:
            click.echo(
                f"{words.clean(words.name_candidate(finding.name, finding.outcome))}: "
                f"{words.clean(render.describe_match(finding))}"
            )
        for line in render.lines(verdict):
            click.echo(line)
        click.echo(render.headline(verdict))
    sys.exit(0 if verdict.passed else 1)
