"""Labels in the shell: one prompt, one program and one column; and ``label confirm``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import click

from groundfault.base.registry import import_optional
from groundfault.cli import reading, shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result
from groundfault.cli.settings import Count, Flag, call, derive_options
from groundfault.core.column_meaning import DirectionError
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan, to_fraction
from groundfault.errors import InputError, PlanError
from groundfault.render.words import clean, plural

if TYPE_CHECKING:
    from groundfault.case.labelling import CaseConfirmation
    from groundfault.sequential import SequentialConfirmation
    from groundfault.sequential.labelling import Answer
    from groundfault.sequential.policies import Query

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 and the number of SIGINT, as shells have it."""

STOPPED = "\nstopped; your labels are saved: run the same command again to continue"


class Quit(click.Abort):
    """The person typed q: an end that was chosen, and no interruption."""


def choose_answer(options: Options, look_up: Answer | None, *, one_is_pass: bool) -> Answer:
    """Return the function that scores a case, as --label chooses it.

    Parameters
    ----------
    options : dict
        Of a command with `label_options`.
    look_up : callable or None
        Answers a query for ``--label file``.
    one_is_pass : bool
        Whether a 1 that a program prints is a pass. A person types words.
    """
    from groundfault.sequential import answers

    if options["label"] == "cmd":
        return answers.command(reading.read_program(options), positive_is_good=one_is_pass)
    if options["label"] in ("file", "model"):
        assert look_up is not None
        return look_up
    return partial(
        ask,
        columns=options["show"],
        score_column=options.get("scores"),
        is_alone=not options.get("labellers"),
    )


def ask_model(options: Options) -> Answer | None:
    """Return the function that asks the model and grades its replies; None for other labels."""
    if options["label"] != "model":
        return None
    from groundfault.probes.running.answers import make_grader
    from groundfault.sequential.answers import model

    if not options["model"]:
        raise PlanError("--label model asks a model: name it, as in --model openai/gpt-4o-mini")
    settings = {name: options[name] for name in ("record", "timeout", "temperature", "max_tokens")}
    given = {name: value for name, value in settings.items() if value is not None}
    columns = {"prompt": options["prompt"], "answer": options["answer"]}
    if (options["grader"] == "judge") != bool(options["judge"]):
        raise PlanError("--grader judge and --judge NAME go together: name both, or neither")
    if options["judge"]:
        judging = import_optional("groundfault_lab.probes.judging")
        score = judging.make_judge(options["judge"], **columns, record=options["record"])
    else:
        score = make_grader(options["grader"], options["answer"])
    fresh = options["claim"] == "rates"
    return model(options["model"], score, prompt=options["prompt"], fresh=fresh, **given)


def run_until_stopped(label: Callable[[], object]) -> int:
    """Let a person label until the end, Ctrl-C or q; return the exit status."""
    try:
        label()
    except (KeyboardInterrupt, click.Abort) as stop:
        click.echo(STOPPED, err=True)
        return 0 if isinstance(stop, Quit) else INTERRUPTED
    return 0


def ask(
    query: Query,
    columns: Sequence[str] = (),
    score_column: str | None = None,
    *,
    is_alone: bool = True,
) -> float | Literal["back"] | None:
    """Show a case, and take its score from a person in words; None is unscorable.

    Parameters
    ----------
    query : Query
    columns : sequence of str
        Columns of the case to show; by default all that do not name an outcome.
    score_column : str, optional
        A further column that is not shown, so as not to sway the person.
    is_alone : bool
        Whether the last label can be taken back: where several label, it counts with the others'.

    Raises
    ------
    InputError
        If the column does not exist.
    Quit
        If the person quits.
    """
    from groundfault.sequential.answers import read_label, select_fields
    from groundfault.sequential.labelling import BACK

    click.echo(f"\ncase {clean(query.id)}   (query {query.step})")
    fields, hidden = select_fields(query, columns, score_column)
    for name, value in fields.items():
        # an escape sequence in a case could hide or rewrite what the person is asked to score
        lines = "\n".join(map(clean, str(value).split("\n")))
        click.echo(f"  {clean(name)}: {lines}")
    if hidden and query.step == 1:
        names = ", ".join(map(clean, hidden))
        click.echo(f"  (not shown, as it may hold an outcome: {names}; --show shows it)")
    can_go_back = is_alone and query.step > 1
    choices = "[p]assed, [f]ailed, [u]nscorable" + ", [b]ack" * can_go_back
    while True:
        reply = click.prompt(f"score: {choices}, [q]uit", prompt_suffix=" > ").strip().lower()
        if reply in ("q", "quit"):
            raise Quit
        if reply in ("b", "back") and can_go_back:
            return BACK
        try:
            return read_label(reply)
        except InputError as error:
            click.echo(str(error))


def _list_confirm_settings(
    *,
    modes: Annotated[tuple[Count, ...], Flag("--mode")] = (),
    grader: str | None = None,
    gate: bool = False,
) -> None:
    """List the options of a confirmation beside evidence, candidates, plan and labels.

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
@derive_options(_list_confirm_settings, "modes")
@shared.plan_options
@shared.label_options()
@derive_options(_list_confirm_settings, "grader")
@shared.ledger_options
@derive_options(_list_confirm_settings, "gate")
@shared.json_option("the result")
def confirm(*, json_path: str | None, options: Options) -> Result:
    """Label held-out examples until rules are confirmed.

    The discovery rows choose among the rules. Held-out rows need no outcome yet
    (--null-outcome missing). Each label counts for all rules that are left, and a rule is confirmed
    once the evidence is enough: the chance that any is confirmed falsely is at most --alpha,
    whenever you stop. A program prints numbers as in the outcome column.

    \b
    groundfault label confirm results.parquet --outcome error --id id --split part \\
        --null-outcome missing --candidates slices.txt --label ask
    groundfault label confirm results.parquet --outcome error --id id --split part \\
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
    own: dict[str, object] = {"candidates": candidates, "finders": finders}
    own["ledger"] = call(reading.choose_ledger, options)
    audit = call(SequentialConfirmation, options, evidence, call(Plan, options), **own)
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
    options: Options,
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
    status = run_until_stopped(lambda: audit.run(answer, show_label))
    ended = shown == audit.labelled and audit.finished
    outline = [*([] if ended else [_describe_state(audit, options["cost"])]), *_list_results(audit)]
    gated = int(bool(options["gate"] and audit.confirmed))
    return Result(outline, audit.result, status or gated)


def require_program(options: Options) -> None:
    """Require a program whose numbers point in a direction that was stated."""
    reading.read_program(options)
    # logs say themselves that 1 is a pass
    if options["outcome"] and options["positive_is_good"] is None:
        why = f"the program's numbers are read like those of {options['outcome']!r}: say what 1 is"
        raise DirectionError(why, f"outcome={options['outcome']!r}")


def _require_labels(evidence: Evidence) -> None:
    """Require an outcome in at least one held-out row: else opening the holdout is wasted."""
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
        lift = "" if s.lift is None else f", {100 * s.lift:+.0f} points"
        yield f"{'confirmed' if s.confirmed else 'not confirmed'}: {s.name}{lift}; {s.reason}"
    if audit.result.opening is not None:
        yield audit.result.opening
