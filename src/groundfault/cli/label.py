"""``label``: labels of one example at a time, until the evidence is enough."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from groundfault.base.long_work import Progress
from groundfault.cli import shared
from groundfault.cli.coding import code
from groundfault.cli.command import INPUT, RULE, Group, Options, apply, option
from groundfault.cli.labelling import (
    STOPPED,
    ask_model,
    choose_answer,
    confirm,
    run_until_stopped,
)
from groundfault.cli.open_ import serve_desk, server_options
from groundfault.cli.output import Result, claim_folder
from groundfault.cli.probe_review import review
from groundfault.cli.reading import BAD, GOOD, choose_ledger, read_program
from groundfault.cli.settings import Flag, OutFile, Separated, call, derive_options, own_options
from groundfault.core.candidate import Candidate
from groundfault.errors import PlanError
from groundfault.readers.safely import json_file
from groundfault.readers.table import read_table
from groundfault.render.page import Table
from groundfault.render.sequential_page import format_progress, outline_state, tabulate_prospects
from groundfault.render.words import plural
from groundfault.sequential import Certificate, Confirmation, SequentialAudit, policies
from groundfault.sequential.labelling import Answer
from groundfault.sequential.plan import SequentialPlan
from groundfault.sequential.pool import Pool
from groundfault.sequential.pool_parsing import get_column
from groundfault.sequential.stopping_time import StoppingForecast, advise_burn_in, forecast_stopping
from groundfault.slicing.embedding import embed

if TYPE_CHECKING:
    from groundfault.review.annotators import PanelSeat

NUMBERS = {"multiple": False, "type": Separated(float), "metavar": "P,P,..."}
"""Options whose numbers are one text with commas between them."""


def read_pool(
    options: Options,
    scores: str | None,
    *,
    rule: tuple[str, ...] = (),
    embed_with: str | None = None,
) -> Pool:
    """Return the pool of cases that the options describe.

    Input
    -----
    rule : 'NAME: SQL'
        Group defined by a rule, such as 'long: n_words > 400'; repeatable.
    embed_with : HOW
        Embedding of texts: tfidf (default), sentence or sentence:MODEL.
    """
    groups, embedding = options["groups"], options["embedding"]
    if embed_with is not None:
        if embedding is None:
            raise PlanError("--embed-with needs --embedding, the column of texts")
        frame, sources = read_table(options["source"])
        embedding = embed(get_column(frame, embedding, sources[0]).to_list(), embed_with)
    more = {"groups": [*groups, *map(Candidate.from_text, rule)], "embedding": embedding}
    return call(Pool.from_table, options, scores=scores, **more)


pool_options = apply(
    [
        click.argument("source", metavar="POOL", type=click.Path()),
        derive_options(
            Pool.from_table,
            "id groups embedding generated",
            group=INPUT,
            id={"metavar": "COL", "in_file": True},
            groups={"metavar": "COL", "multiple": True},
            embedding={"metavar": "COL|GLOB|FILE"},
        ),
        derive_options(read_pool),
    ]
)
"""Which cases there are."""

sequential_plan_options = apply(
    [
        derive_options(
            SequentialPlan,
            "model threshold burn_in alpha policy prior claim sampling epsilon warm_up seed",
            group=RULE,
            model={"metavar": "NAME"},
            prior={"metavar": "REPORT"},
            warm_up={"default": None, "show_default": False},
        ),
        derive_options(
            SequentialPlan,
            "bet alternative grid auditor_alternative auditor_grid eta shares",
            group="Bets",
            grid=NUMBERS,
            auditor_grid=NUMBERS,
        ),
    ]
)
"""What is decided before the first label."""


def read_cases_and_plan(options: Options, scores: str | None) -> tuple[Pool, SequentialPlan]:
    """Return the pool and the plan that the options describe, with the modes of a prior."""
    pool, prior = call(read_pool, options, options, scores=scores), None
    if options["prior"]:
        from groundfault.auditing.report import Report

        modes = Report.load(options["prior"]).modes
        pool, prior = pool.declare_modes(modes, options["threshold"])
        click.echo(
            f"{plural(len(prior), 'group')} from {plural(len(modes), 'failure mode')} of "
            f"{options['prior']}",
            err=True,
        )
    warm_up = options["warm_up"]
    if warm_up is None:
        warm_up = getattr(policies.get(options["policy"]), "warm_up", 0)
    return pool, call(SequentialPlan, options, warm_up=warm_up, prior=prior)


def _list_labellers(
    *,
    scores: str = "score",
    labeller: Annotated[str | None, Flag("--as")] = None,
    labellers: str | None = None,
    adjudicator: str | None = None,
    grader: str = "exact",
    judge: str | None = None,
    prompt: str = "prompt",
    answer: str = "answer",
    gate: bool = False,
    certificate: OutFile | None = None,
) -> None:
    """List the options on labellers and verdicts.

    Labelling
    ---------
    scores : COL
        Column of recorded scores, for --label file.
    labeller : NAME
        Your name, where several people label.
    labellers : A,B
        Names of all who label each case on their own.
    adjudicator : C
        Name of who settles their disagreements.
    grader : RULE
        Rule that scores the model's replies for --label model, which asks --model: exact, yes_no,
        integer, numeric, set, choice, regex, or judge for another model (groundfault-lab).
    judge : NAME
        Model that compares replies with the right answer, for --grader judge.
    prompt : COL
        Column to put to the model.
    answer : COL
        Column with the right answer, or the pattern for regex.

    Output
    ------
    gate
        Exit with status 1 if a failure mode is found.
    certificate : FILE
        Write the certificate to this file.
    """


@click.group(cls=Group)
def label() -> None:
    """Label examples, and stop when the evidence is enough.

    You see one example at a time, in the terminal or in the browser. Every label is stored at once:
    stop at any time, and run the same command again to continue.

    \b
    plan, run      does the model pass, or does some group fail?
    confirm        do these rules hold on examples without a label?
    review         which answers to a probe are mistakes of the model?
    code           which mistakes happen in runs, and how often?

    \b
    groundfault label plan pool.parquet --id id --groups domain --threshold 0.85
    groundfault label run pool.parquet --id id --groups domain --threshold 0.85 --label ask
    groundfault label confirm --case case/ --label ask
    groundfault label review runs/ --reviewer ana
    groundfault label code runs.parquet --id task --outcome error --coder ana
    groundfault label status
    groundfault label report groundfault-ledger.db --out report/
    """


@label.command(first="id groups threshold budget alpha label ledger certificate")
@pool_options
@sequential_plan_options
@shared.label_options(in_browser=True)
@derive_options(_list_labellers, "scores")
@option(
    f"{GOOD}/{BAD}",
    "positive_is_good",
    default=None,
    group="Labelling",
    help="Whether 1 is a pass or a failure in a recorded or printed score; by default a pass, but "
    "a column named like error stops.",
)
@derive_options(_list_labellers, "labeller labellers adjudicator")
@derive_options(_list_labellers, "grader judge prompt answer")
@derive_options(shared.list_call_settings, "record timeout temperature max_tokens")
@server_options
@shared.ledger_options
@derive_options(_list_labellers, "gate certificate")
@shared.json_option("the certificate")
def run(*, json_path: str | None, options: Options) -> Result:
    """Label cases from POOL until there is a verdict.

    A verdict is "failure mode found" or "audit passed"; the chance of a false one is at most
    --alpha whenever you stop. Interrupt at any time, and run the same command again to continue.
    """
    from groundfault.sequential.answers import replay

    _check_labelling(options)
    is_replayed = options["label"] == "file"
    pool, plan = read_cases_and_plan(options, options["scores"] if is_replayed else None)
    look_up = replay(pool) if is_replayed else ask_model(options)
    audit = SequentialAudit.of(
        pool, plan, ledger=call(choose_ledger, options), reopen=options["reopen"]
    )
    quiet = json_path == "-"
    if audit.decided:
        click.echo(
            "this audit had ended: nothing is asked again; where another model answers the same "
            "cases, name it by --model",
            err=True,
        )
    if options["label"] == "browser":
        status = _label_in_browser(audit, options, quiet)
    else:
        status = _label(audit, look_up, options, quiet)
    certificate = audit.certificate()
    if options["certificate"]:
        certificate.to_json(options["certificate"])
    is_gated = options["gate"] and audit.verdict == "failure mode found"
    outline = outline_state(audit, certificate, options["cost"])
    book = audit.record.ledger if audit.finished else None
    then = ("label", "report", str(book.place), "--out", "report/") if book else ()
    return Result(outline, certificate, status or int(is_gated), then=then)


@label.command()
@own_options
@shared.json_option("the certificate")
def status(
    ledger: str | None = None,
    *,
    seal: str = "",
    cost: float | None = None,
    certificate: OutFile | None = None,
) -> Result:
    """Show the state of the audit in LEDGER.

    It also shows the next case, and what would stop the audit. Without LEDGER, of the last one in
    $GROUNDFAULT_LEDGER, or in groundfault-ledger.db.

    Output
    ------
    ledger : [LEDGER]
        The ledger.
    seal : HEX
        Seal of the audit, where the ledger holds several; by default the last.
    cost
        Cost of one label; the state then shows the total.
    certificate : FILE
        Write the certificate to this file.
    """
    audit = SequentialAudit.from_ledger(ledger or True, seal)
    document = audit.certificate()
    if certificate:
        document.to_json(certificate)
    assert audit.record.ledger is not None
    n_audits = len(audit.record.ledger.events("audit_opened"))
    several = f"the ledger holds {n_audits} audits; this is {audit.seal[:12]}, --seal shows another"
    outline = outline_state(audit, document, cost)
    return Result([*outline, *([several] if n_audits > 1 else [])], document)


@label.command(first="id groups threshold budget alpha burn_ins replicates json_path")
@pool_options
@sequential_plan_options
@derive_options(shared.list_label_settings, "budget", group="Simulation")
@derive_options(
    forecast_stopping,
    "burn_ins base failing at replicates",
    group="Simulation",
    burn_ins={
        **NUMBERS,
        "default": "10,40,70",
        "type": Separated(int),
        "metavar": "M,M,...",
    },
    base={"flag": "--base-rate", "metavar": "P"},
    failing={"flag": "--failing-group", "metavar": "GROUP"},
    at={**NUMBERS, "flag": "--failing-rates"},
)
@shared.jobs_option()
@option("--cost", type=float, help="Cost of one label; the table then shows costs.")
@shared.json_option("the table")
def plan(*, progress: Progress, options: Options) -> Result:
    """Simulate the audit, and say which burn-in to use.

    Run this before the first label. The table says how often each verdict is reached, and after how
    many labels, in simulated worlds with and without a failing group.
    """
    pool, settings = read_cases_and_plan(options, None)
    prospects = call(forecast_stopping, options, pool, settings, policy=None, progress=progress)
    advice = advise_burn_in(prospects, settings.alpha)
    data = {
        "prospects": [forecast.to_dict() for forecast in prospects],
        "advised_burn_in": advice,
        "plan": settings.settings,
    }
    outline = _outline_prospects(prospects, advice, settings, options["cost"])
    return Result(outline, data)


def _outline_prospects(
    prospects: list[StoppingForecast], advice: int | None, plan: SequentialPlan, cost: float | None
) -> Iterator[str | Table]:
    yield tabulate_prospects(prospects, cost)
    sound = [each for each in prospects if each.world == prospects[0].world]
    if plan.budget is not None and not any(each.pass_rate for each in sound):
        yield (
            f"within a budget of {plan.budget} labels no audit passed, not even of a model "
            "without a failing group; a larger --budget lets it"
        )
    elif advice is None:
        yield "with each burn-in, false passes exceed alpha: try longer ones, or another --policy"
    else:
        yield (
            "shortest burn-in that passes a failing model with probability at most "
            f"{plan.alpha:g}: {advice}"
        )


def _check_labelling(options: Options) -> None:
    if options["label"] == "cmd":
        read_program(options)
    if options["label"] not in ("ask", "browser") and (
        options["labellers"] or options["labeller"] or options["adjudicator"]
    ):
        raise PlanError("--as, --labellers and --adjudicator go with --label ask or browser")
    if options["label"] == "browser" and options["no_ledger"]:
        raise PlanError(
            "--label browser needs the ledger: a page that is closed must not lose a label"
        )
    if options["labellers"] and not options["labeller"]:
        raise PlanError("several label: say who you are with --as")


def _label(audit: SequentialAudit, look_up: Answer | None, options: Options, quiet: bool) -> int:
    """Label in the shell while it is this person's turn; return the exit status."""

    # a person who labels reads standard output; otherwise it is left to the result
    def progress(_: object) -> None:
        if not quiet and audit.open is None:
            click.echo(format_progress(audit, options["cost"]), err=options["label"] != "ask")

    is_shown = options["label"] not in ("file", "model") or sys.stderr.isatty()
    seat = _take_seat(audit, options) if options["labellers"] else None
    one_is_pass = options["positive_is_good"] is not False
    answer = choose_answer(options, look_up, one_is_pass=one_is_pass)
    session, report = seat or audit, progress if is_shown else None
    status = run_until_stopped(lambda: session.run(answer, report))
    if seat is None or status:
        return status
    if (waiting := seat.panel.waiting()) and seat.labeller not in waiting:
        names, query = ", ".join(waiting), audit.ask()
        assert query is not None
        click.echo(f"case {query.id} waits for {names}; run again when they are done")
    alike, n_cases = seat.panel.agreement()
    if n_cases:
        click.echo(f"labellers agreed on {alike} of {n_cases} settled cases")
    return status


def _label_in_browser(audit: SequentialAudit, options: Options, quiet: bool) -> int:
    """Serve a page that shows the cases, until Ctrl-C; return the exit status."""
    from groundfault.workbench.serving import require_web

    require_web()
    from groundfault.workbench.desks import LiveDesk
    from groundfault.workbench.opened_report import OpenedReport

    seat = _take_seat(audit, options) if options["labellers"] else None
    desk = LiveDesk(audit, seat or audit, tuple(options["show"]), options["scores"])
    desk.look()  # what is wrong with the options is said here, and not in the page
    serve_desk(options, OpenedReport(Path(options["source"]), live=desk), quiet=quiet)
    if not audit.finished:
        click.echo(STOPPED, err=True)
    return 0


def _take_seat(audit: SequentialAudit, options: Options) -> PanelSeat:
    """Return this person's place on the panel."""
    from groundfault.review.annotators import AnnotatorPanel, PanelSeat

    names = [name.strip() for name in options["labellers"].split(",")]
    return PanelSeat(AnnotatorPanel(audit, names, options["adjudicator"]), options["labeller"])


label.add_command(code)
label.add_command(confirm)
label.add_command(review)


@label.command()
@own_options
def report(source: str, *, out: str | None = None, seal: str = "") -> Result:
    """Print and write the page of a sequential audit.

    SOURCE is a certificate, the JSON of a confirmation, or the ledger of an audit, whose present
    state is then shown. With --out the folder gets report.html, report.md, and certificate.json
    or confirmation.json.

    \b
    groundfault label report certificate.json --out report/
    groundfault label report groundfault-ledger.db --out report/

    Output
    ------
    out : DIR
        Write the pages and the JSON to this folder.
    seal : HEX
        Seal of the audit, where a ledger holds several; by default the last.
    """
    from groundfault.render import make_outline

    with claim_folder(out) as folder:
        result = _load(source, seal)
        if folder:
            result.to_json(folder / f"{type(result).__name__.lower()}.json")
            result.to_markdown(folder / "report.md")
            result.to_html(folder / "report.html")
    page = make_outline(result)
    footer = f"Report: {Path(out) / 'report.html'}" if out else page.footer
    return Result([replace(page, footer=footer)])


def _load(source: str, seal: str) -> Certificate | Confirmation:
    """Return the result that a file of JSON holds, or the state of the audit in a ledger."""

    path = Path(source)
    if path.suffix != ".json":
        return SequentialAudit.from_ledger(source, seal).certificate()
    if seal:
        raise PlanError("--seal chooses one audit of a ledger, and SOURCE is a JSON file")
    data = json_file(path, dict[str, Any])
    # confirmations of 0.1.0 have no version field, certificates always had one
    kind = Certificate if "groundfault_certificate" in data else Confirmation
    return kind.from_dict(data, source)
