"""``sequential confirm``: a holdout labelled one unit at a time."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import click

from groundfault.cli.command import GroupedCommand
from groundfault.cli.labelling import choose_answer, clean, label
from groundfault.cli.options import (
    candidate_options,
    json_option,
    label_options,
    ledger_options,
    plan_options,
    step_of_case,
    step_options,
)
from groundfault.cli.output import require_writable, write_json
from groundfault.cli.reading import (
    ask_orientation,
    choose_ledger,
    read_candidates,
    read_evidence,
    read_plan,
    read_program,
)
from groundfault.cli.settings import Count, Flag, call, list_options
from groundfault.errors import PlanError
from groundfault.render.words import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from groundfault.case.labelling import CaseConfirmation
    from groundfault.core.evidence import Evidence
    from groundfault.sequential import SequentialConfirmation
    from groundfault.sequential.policies import Query


def _list_confirm_settings(
    *,
    modes: Annotated[tuple[Count, ...], Flag("--mode")] = (),
    grader: str | None = None,
    gate: bool = False,
) -> None:
    """List what a confirmation takes beside evidence, candidates, plan and labels.

    Candidates
    ----------
    modes : N
        Number of a failure mode of the case (--case) to confirm; repeatable, default all.

    Labelling
    ---------
    grader : COL
        Column with a cheap grade of every case, as the outcome column would hold it: labels are
        bought for what it cannot tell, and a wrong one misleads nobody.

    Output
    ------
    gate
        Exit with status 1 if a candidate is confirmed.
    """


@click.command(
    cls=GroupedCommand,
    first="outcome id positive_is_good split null_outcome candidates label ledger",
)
@step_of_case(
    "groundfault.cli.case:confirm_case",
    *"modes label program show budget cost gate json_path".split(),
)
@step_options
@candidate_options
@list_options(_list_confirm_settings, "modes")
@plan_options
@label_options()
@list_options(_list_confirm_settings, "grader")
@ledger_options
@list_options(_list_confirm_settings, "gate")
@json_option("the result")
def confirm(**options: Any) -> None:
    """Label held-out units until candidates are confirmed.

    Candidates are screened on the discovery units. Held-out rows need no outcome yet
    (--null-outcome missing). Each label counts for every candidate that is left, and a candidate
    is confirmed as soon as its e-value is large enough: the family-wise error is at most alpha
    whenever you stop. A number that a program prints means what it means in the outcome
    column; you type words.

    \b
    groundfault sequential confirm results.parquet --outcome error --id id --split part \\
        --null-outcome missing --candidates slices.txt --label ask
    groundfault sequential confirm results.parquet --outcome error --id id --split part \\
        --null-outcome missing --candidates slices.txt --label cmd --command ./grade.py \\
        --positive-is-bad
    """
    from groundfault.sequential import SequentialConfirmation

    if options["modes"]:
        raise PlanError("--mode chooses failure modes of a case: name it with --case")
    require_writable(options["json_path"])
    if options["label"] == "cmd":
        require_program(options)
    candidates, finders = call(read_candidates, options)
    evidence = read_evidence(options)
    if options["label"] == "file":
        _require_labels(evidence)
    audit = SequentialConfirmation(
        evidence,
        read_plan(options),
        candidates,
        finders=finders,
        budget=options["budget"],
        grader=options["grader"],
        ledger=call(choose_ledger, options),
        reopen=options["reopen"],
    )
    if options["json_path"] != "-":
        survivors = ", ".join(map(clean, audit.names)) or "none"
        click.echo(
            f"{plural(len(audit.screen.library), 'candidate')} screened on the discovery rows; "
            f"survived: {survivors}"
        )
    one_is_pass = audit.screen.evidence.roles.positive_is_good
    sys.exit(label_holdout(audit, options, audit.replay_score, one_is_pass=one_is_pass))


def label_holdout(
    audit: SequentialConfirmation | CaseConfirmation,
    options: dict[str, Any],
    look_up: Callable[[Query], float | None],
    *,
    one_is_pass: bool,
) -> int:
    """Buy labels as the options have it, print the result, and return the exit status.

    Parameters
    ----------
    audit : SequentialConfirmation or CaseConfirmation
    options : dict
        Of a command with `label_options`, ``--gate`` and ``--json``.
    look_up : callable
        Answers a query for ``--label file``.
    one_is_pass : bool
        Whether a 1 that a program prints is a pass.
    """
    quiet, shown = options["json_path"] == "-", -1

    def show_label(_: object) -> None:
        nonlocal shown
        if not quiet and options["label"] != "file":
            _show(audit, options["cost"])
            shown = audit.labelled

    answer = choose_answer(options, look_up, one_is_pass=one_is_pass)
    status = label(audit, answer, show_label)
    text = json.dumps(audit.to_dict(), indent=1, ensure_ascii=False)
    if not write_json(text, options["json_path"]):
        if shown != audit.labelled or not audit.finished:
            _show(audit, options["cost"])
        _say(audit)
    return status or int(bool(options["gate"] and audit.confirmed))


def require_program(options: dict[str, Any]) -> None:
    """Require a program whose numbers point in a direction that was stated."""
    read_program(options)
    # logs say themselves that 1 is a pass
    if options["outcome"] and options["positive_is_good"] is None:
        ask_orientation(
            f"the program's numbers mean what they mean in {options['outcome']!r}, where 1 is a "
            "failure"
        )


def _require_labels(evidence: Evidence) -> None:
    """Require that some held-out row has an outcome: else the holdout is spent on nothing."""
    split = evidence.roles.split
    if split and not evidence.loss.filter(evidence.frame[split] == "holdout").count():
        raise PlanError(
            "no held-out row has an outcome to look up: label them yourself (--label ask) or by a "
            "program (--label cmd)"
        )


def _show(audit: SequentialConfirmation | CaseConfirmation, cost: float | None) -> None:
    from groundfault.core.plan import to_fraction

    cost_note = "" if cost is None else f", cost {cost * audit.labelled:.2f}"
    standing = "; ".join(
        f"{clean(s.name)} {s.e_value:.3g}" for s in audit.survivors if not s.confirmed
    )
    # Ville: under the null an e-process ever reaches 1 / alpha with probability alpha at most
    bar = 1 / float(to_fraction(audit.result.plan.alpha))
    confirmed = ", ".join(map(clean, audit.confirmed)) or "none"
    line = f"{audit.labelled} labelled{cost_note}; confirmed: {confirmed}"
    click.echo(
        f"{line}; e-values of the others ({bar:g} confirms): {standing}" if standing else line
    )


def _say(audit: SequentialConfirmation | CaseConfirmation) -> None:
    if not audit.survivors:
        click.echo("nothing survived the screen: no label is worth buying")
    for s in audit.survivors:
        lift = "" if s.lift is None else f", lift {s.lift:+.2f}"
        click.echo(
            f"{'confirmed' if s.confirmed else 'not confirmed'}: {clean(s.name)}{lift}; {s.reason}"
        )
    if audit.result.opening is not None:
        click.echo(audit.result.opening)
