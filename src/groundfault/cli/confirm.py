"""``sequential confirm``: a holdout labelled one unit at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import click

from groundfault.cli import reading, shared
from groundfault.cli.command import command
from groundfault.cli.labelling import choose_answer, clean, label
from groundfault.cli.output import Result
from groundfault.cli.settings import Count, Flag, call, list_options
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan, to_fraction
from groundfault.errors import PlanError
from groundfault.render.words import plural

if TYPE_CHECKING:
    from groundfault.case.labelling import CaseConfirmation
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


@command(first="outcome id positive_is_good split null_outcome candidates label ledger")
@shared.step_of_case(
    "groundfault.cli.case:confirm_case",
    *"modes label program show budget cost gate json_path".split(),
)
@shared.step_options
@shared.candidate_options
@list_options(_list_confirm_settings, "modes")
@shared.plan_options
@shared.label_options()
@list_options(_list_confirm_settings, "grader")
@shared.ledger_options
@list_options(_list_confirm_settings, "gate")
@shared.json_option("the result")
def confirm(*, json_path: str | None, **options: Any) -> Result:
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
    if options["label"] == "cmd":
        require_program(options)
    candidates, finders = call(reading.read_candidates, options)
    evidence = reading.read_evidence(options)
    if options["label"] == "file":
        _require_labels(evidence)
    audit = SequentialConfirmation(
        evidence,
        call(Plan, options),
        candidates,
        finders=finders,
        budget=options["budget"],
        grader=options["grader"],
        ledger=call(reading.choose_ledger, options),
        reopen=options["reopen"],
    )
    if json_path != "-":
        survivors = ", ".join(map(clean, audit.names)) or "none"
        click.echo(
            f"{plural(len(audit.screen.library), 'candidate')} screened on the discovery rows; "
            f"survived: {survivors}"
        )
    one_is_pass = audit.screen.evidence.roles.positive_is_good
    options["json_path"] = json_path
    return label_holdout(audit, options, audit.replay_score, one_is_pass=one_is_pass)


def label_holdout(
    audit: SequentialConfirmation | CaseConfirmation,
    options: dict[str, Any],
    look_up: Callable[[Query], float | None],
    *,
    one_is_pass: bool,
) -> Result:
    """Buy labels as the options have it, and return the result to print.

    Parameters
    ----------
    audit : SequentialConfirmation or CaseConfirmation
    options : dict
        Of a command with `shared.label_options`, ``--gate`` and ``--json``.
    look_up : callable
        Answers a query for ``--label file``.
    one_is_pass : bool
        Whether a 1 that a program prints is a pass.
    """
    quiet, shown = options["json_path"] == "-", -1

    def show_label(_: object) -> None:
        nonlocal shown
        if not quiet and options["label"] != "file":
            click.echo(_describe_state(audit, options["cost"]))
            shown = audit.labelled

    answer = choose_answer(options, look_up, one_is_pass=one_is_pass)
    status = label(audit, answer, show_label)
    ended = shown == audit.labelled and audit.finished
    outline = [*([] if ended else [_describe_state(audit, options["cost"])]), *_list_results(audit)]
    gated = int(bool(options["gate"] and audit.confirmed))
    return Result(outline, audit.result, status or gated)


def require_program(options: dict[str, Any]) -> None:
    """Require a program whose numbers point in a direction that was stated."""
    reading.read_program(options)
    # logs say themselves that 1 is a pass
    if options["outcome"] and options["positive_is_good"] is None:
        reading.ask_orientation(
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


def _describe_state(audit: SequentialConfirmation | CaseConfirmation, cost: float | None) -> str:

    cost_note = "" if cost is None else f", cost {cost * audit.labelled:.2f}"
    standing = "; ".join(
        f"{clean(s.name)} {s.e_value:.3g}" for s in audit.survivors if not s.confirmed
    )
    # Ville: under the null an e-process ever reaches 1 / alpha with probability alpha at most
    bar = 1 / float(to_fraction(audit.result.plan.alpha))
    confirmed = ", ".join(map(clean, audit.confirmed)) or "none"
    line = f"{audit.labelled} labelled{cost_note}; confirmed: {confirmed}"
    return f"{line}; e-values of the others ({bar:g} confirms): {standing}" if standing else line


def _list_results(audit: SequentialConfirmation | CaseConfirmation) -> Iterator[str]:
    if not audit.survivors:
        yield "nothing survived the screen: no label is worth buying"
    for s in audit.survivors:
        lift = "" if s.lift is None else f", lift {s.lift:+.2f}"
        yield f"{'confirmed' if s.confirmed else 'not confirmed'}: {s.name}{lift}; {s.reason}"
    if audit.result.opening is not None:
        yield audit.result.opening
