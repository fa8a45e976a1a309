"""``sequential``: audits that ask for one score at a time and may stop at any of them."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.asking import ask, clean
from groundfault.cli.confirm import confirm
from groundfault.cli.options import write_json
from groundfault.errors import InputError, PlanError

if TYPE_CHECKING:
    from groundfault.sequential import SequentialAudit, SequentialPlan, Pool
    from groundfault.sequential.policies import Query

LEDGER = "audit.db"
_Option = Callable[[Callable[..., Any]], Callable[..., Any]]

_POOL: list[_Option] = [
    click.argument("source", metavar="POOL", type=click.Path()),
    click.option("--id", metavar="COL", help="Case id; left out, rows are numbered."),
    click.option(
        "--groups",
        metavar="COL",
        multiple=True,
        help="A group a level; A*B a combination; repeatable.",
    ),
    click.option(
        "--rule", metavar="'NAME: SQL'", multiple=True, help="A group given by a rule; repeatable."
    ),
    click.option(
        "--embedding",
        metavar="COL|GLOB|FILE",
        help="Texts or numbers to learn from, besides groups.",
    ),
    click.option(
        "--embed-with", metavar="HOW", help="Of texts: tfidf [default], sentence or sentence:MODEL."
    ),
    click.option(
        "--generated", is_flag=True, help="A bank of generated cases, a category each (--groups)."
    ),
]

_PLAN: list[_Option] = [
    click.option(
        "--threshold", type=float, required=True, help="Least mean score of a group; 1 is a pass."
    ),
    click.option(
        "--budget",
        type=int,
        default=40,
        show_default=True,
        help="Cases before the auditor's own test (m).",
    ),
    click.option(
        "--alpha", type=float, default=0.05, show_default=True, help="Chance of a wrong verdict."
    ),
    click.option(
        "--policy",
        default="logistic",
        show_default=True,
        help="Where to look; or stratified, gp, boosted, thompson, adaptive, prelearned, uniform, oracle:GROUP.",
    ),
    click.option(
        "--bet",
        multiple=True,
        default=["sr-lr-ui"],
        show_default=True,
        help="Several are averaged.",
    ),
    click.option(
        "--claim", default="declared-groups", show_default=True, help="Or literal, rates."
    ),
    click.option(
        "--sampling",
        default="guaranteed",
        show_default=True,
        help="Or paper, which keeps no error rate.",
    ),
    click.option("--epsilon", type=float, help="Least share of the cases in a group."),
    click.option("--limit", type=int, help="Most cases to label."),
    click.option("--warm-up", type=int, help="Cases drawn uniformly at first, and not bet on."),
    click.option(
        "--alternative", type=float, help="Alternative of lr bets against the model's null."
    ),
    click.option("--grid", metavar="P,P,...", help="Alternatives of -ui and -mix bets against it."),
    click.option("--auditor-alternative", type=float, help="The same against the auditor's null."),
    click.option("--auditor-grid", metavar="P,P,...", help="The same against the auditor's null."),
    click.option(
        "--eta", type=float, default=0.1, show_default=True, help="Learning rate of -ui bets."
    ),
    click.option("--shares", help="Starts of sr- bets: heavy-tailed, or uniform as in the paper."),
    click.option(
        "--seed", type=int, default=0, show_default=True, help="Seed of every random act."
    ),
]


def _with(options: list[_Option]) -> _Option:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group()
def sequential() -> None:
    """Audit one case at a time: choose freely, stop any time, and the error rate holds.

    \b
    groundfault sequential plan pool.parquet --id id --groups domain --threshold 0.85
    groundfault sequential run pool.parquet --id id --groups domain --threshold 0.85 --label ask
    groundfault sequential status audit.db
    """


@sequential.command()
@_with(_POOL)
@_with(_PLAN)
@click.option(
    "--label",
    type=click.Choice(["ask", "cmd", "file"]),
    required=True,
    help="Who gives the scores.",
)
@click.option(
    "--command", "program", metavar="CMD", help="The program: JSON of the case in, a score out."
)
@click.option(
    "--scores", metavar="COL", default="score", show_default=True, help="Recorded scores, 1 a pass."
)
@click.option(
    "--show", metavar="COL", multiple=True, help="Columns shown when asking [all]; repeatable."
)
@click.option("--as", "labeller", metavar="NAME", help="Who is asked, where several label.")
@click.option("--labellers", metavar="A,B", help="Several label each case, each for themselves.")
@click.option("--adjudicator", metavar="C", help="Settles what they disagree on.")
@click.option("--cost", type=float, help="Cost of a label; what has been spent is shown.")
@click.option(
    "--ledger",
    metavar="FILE",
    default=LEDGER,
    show_default=True,
    help="The record; run again to resume.",
)
@click.option(
    "--no-ledger", is_flag=True, help="Record nothing; an interruption then loses everything."
)
@click.option(
    "--reopen",
    metavar="REASON",
    help="Begin anew with other settings; the reason stays in the record.",
)
@click.option("--certificate", metavar="FILE", help="Write the certificate here.")
@click.option("--gate", is_flag=True, help="Exit status 1 if a failure mode is found.")
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="The certificate as JSON; - is standard output, alone.",
)
def run(**options: Any) -> None:
    """Audit POOL, a table of cases, until either null falls.

    What is recorded is on disk: interrupt at any moment, and run the same command again to go on.
    """
    from groundfault.sequential import SequentialAudit

    _check_labelling(options)
    pool, plan = _pool(options, options["scores"] if options["label"] == "file" else None), _plan(options)
    answer = _answer(pool, options)
    audit = SequentialAudit.of(
        pool, plan, ledger=None if options["no_ledger"] else options["ledger"], reopen=options["reopen"]
    )
    quiet = options["json_path"] == "-"
    try:
        _label(audit, answer, options, quiet)
    except (KeyboardInterrupt, click.Abort):
        click.echo(
            "\nstopped; what was recorded is safe: run the same command again to go on", err=True
        )
    if not quiet:
        _say(audit, options["cost"])
    certificate = audit.certificate()
    for path in (options["certificate"], options["json_path"]):
        if path and path != "-":
            certificate.to_json(path)
    if quiet:
        click.echo(certificate.to_json())
    sys.exit(1 if options["gate"] and audit.verdict == "failure mode found" else 0)


@sequential.command()
@click.argument("ledger", type=click.Path())
@click.option(
    "--seal",
    default="",
    metavar="HEX",
    help="Which audit, where the ledger holds several [the last].",
)
@click.option("--cost", type=float, help="Cost of a label.")
@click.option("--certificate", metavar="FILE", help="Write the certificate here.")
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="The certificate as JSON; - is standard output, alone.",
)
def status(
    ledger: str, seal: str, cost: float | None, certificate: str | None, json_path: str | None
) -> None:
    """Where the audit in LEDGER stands, what to label next, and what it would take to stop."""
    from groundfault.sequential import SequentialAudit

    audit = SequentialAudit.from_ledger(ledger, seal)
    document = audit.certificate()
    for path in (certificate, json_path):
        if path and path != "-":
            document.to_json(path)
    if json_path == "-":
        click.echo(document.to_json())
        return
    _say(audit, cost)
    assert audit.record.ledger is not None
    n_audits = len(audit.record.ledger.events("audit_opened"))
    if n_audits > 1:
        click.echo(
            f"the ledger holds {n_audits} audits; this is {audit.seal[:12]}, --seal shows another"
        )


@sequential.command()
@_with(_POOL)
@_with(_PLAN)
@click.option(
    "--budgets",
    default="10,40,70",
    show_default=True,
    metavar="M,M,...",
    help="Values of m to compare.",
)
@click.option("--base", type=float, help="Chance of a pass outside the failing group.")
@click.option(
    "--failing", metavar="GROUP", help="The group that fails [another at random each time]."
)
@click.option(
    "--at", metavar="P,P,...", help="Chances of a pass inside it [threshold - .10, - .25]."
)
@click.option(
    "--replicates", type=int, default=30, show_default=True, help="Simulated audits a world."
)
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes (-1: all cores).")
@click.option("--cost", type=float, help="Cost of a label.")
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="Write the table as JSON; - is standard output, alone.",
)
def plan(**options: Any) -> None:
    """Before a label is spent: simulated verdicts and stopping times, and which budget m to
    take.
    """
    from groundfault.sequential.stopping_time import advise_budget, forecast_stopping

    pool, settings = _pool(options, None), _plan(options)
    prospect_rows = forecast_stopping(
        pool,
        settings,
        budgets=[int(m) for m in _numbers(options["budgets"], "--budgets") or ()],
        base=options["base"],
        failing=options["failing"],
        at=_numbers(options["at"], "--at"),
        replicates=options["replicates"],
        jobs=options["jobs"],
    )
    advice = advise_budget(prospect_rows, settings.alpha)
    data = {
        "prospects": [vars(p) for p in prospect_rows],
        "advised_budget": advice,
        "plan": settings.settings,
    }
    text = json.dumps(data, indent=1, ensure_ascii=False)
    if write_json(text, options["json_path"]):
        return
    from rich.console import Console

    console = Console()
    console.print(_table(prospect_rows, options["cost"]))
    click.echo("10 %, median, 90 %: cases labelled until the audit ended; cost: of the median")
    if advice is None:
        click.echo("no budget keeps wrong passes at alpha; try larger ones, or another policy")
    else:
        click.echo(
            f"smallest budget that passes a failing model at most {settings.alpha:g} of the time: {advice}"
        )


# ---------------------------------------------------------------------- --- from options to objects


def _pool(options: dict[str, Any], scores: str | None) -> Pool:
    from groundfault.core.candidate import Candidate
    from groundfault.sequential import Pool

    groups: list[Any] = [*options["groups"], *(Candidate.from_text(text) for text in options["rule"])]
    return Pool.from_table(
        options["source"],
        id=options["id"],
        groups=groups,
        embedding=_embedding(options),
        scores=scores,
        generated=options["generated"],
    )


def _embedding(options: dict[str, Any]) -> Any:
    """What is named; or points, where a column of texts is to be embedded in another way than the
    default.
    """
    name, how = options["embedding"], options["embed_with"]
    if how is None:
        return name
    if name is None:
        raise PlanError("--embed-with needs --embedding, the column of texts")
    from groundfault.readers.table import read_table
    from groundfault.sequential.pool_parsing import column
    from groundfault.slicing.embedding import embed

    frame, sources = read_table(options["source"])
    return embed(column(frame, name, sources[0]).to_list(), how)


def _plan(options: dict[str, Any]) -> SequentialPlan:
    from groundfault.sequential import SequentialPlan, policies

    names = (
        "threshold budget alpha policy claim sampling epsilon limit alternative auditor_alternative eta shares seed"
    ).split()
    warm_up = options["warm_up"]
    return SequentialPlan(
        **{name: options[name] for name in names},
        bet=tuple(options["bet"]),
        grid=_numbers(options["grid"], "--grid"),
        auditor_grid=_numbers(options["auditor_grid"], "--auditor-grid"),
        warm_up=getattr(policies.get(options["policy"]), "warm_up", 0)
        if warm_up is None
        else warm_up,
    )


def _numbers(text: str | None, option: str) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise PlanError(f"{option} {text!r} must be numbers with commas between them") from None


def _check_labelling(options: dict[str, Any]) -> None:
    if options["label"] == "cmd" and not options["program"]:
        raise PlanError("--label cmd needs --command, the program that scores a case")
    if options["label"] != "ask" and (
        options["labellers"] or options["labeller"] or options["adjudicator"]
    ):
        raise PlanError("--as, --labellers and --adjudicator go with --label ask")
    if options["labellers"] and not options["labeller"]:
        raise PlanError("several label: say who you are with --as")


def _answer(pool: Pool, options: dict[str, Any]) -> Callable[[Query], float | None]:
    """Where scores come from."""
    from groundfault.sequential import answers

    if options["label"] == "ask":
        return lambda query: ask(query, options["show"], options["scores"])
    if options["label"] == "file":
        return answers.replay(pool)
    try:
        return answers.command(shlex.split(options["program"]))
    except ValueError as error:
        raise PlanError(f"--command {options['program']!r} cannot be read: {error}") from None


def _label(
    audit: SequentialAudit, answer: Callable[[Query], float | None], options: dict[str, Any], quiet: bool
) -> None:
    def progress(after: SequentialAudit) -> None:
        if not quiet:
            click.echo(_line(after, options["cost"]), err=options["label"] != "ask")

    if options["labellers"]:
        _label_as(audit, answer, options, progress)
    else:
        audit.run(answer, progress if options["label"] != "file" or sys.stderr.isatty() else bool)


def _label_as(
    audit: SequentialAudit,
    answer: Callable[[Query], float | None],
    options: dict[str, Any],
    progress: Callable[[SequentialAudit], None],
) -> None:
    """One of several labellers, for as long as it is their turn."""
    from groundfault.review.annotators import AnnotatorPanel

    names = [name.strip() for name in options["labellers"].split(",")]
    panel, me = AnnotatorPanel(audit, names, options["adjudicator"]), options["labeller"]
    if me not in (*names, options["adjudicator"]):
        raise InputError(f"{me} is neither a labeller nor the adjudicator")
    while (query := audit.ask()) is not None:
        waiting = panel.waiting()
        if me not in waiting:
            click.echo(
                f"case {query.id} waits for {', '.join(waiting)}; run again when they are done"
            )
            break
        if panel.judge(me, query, answer(query)):
            progress(audit)
    alike, n_cases = panel.agreement()
    if n_cases:
        click.echo(f"labellers agreed on {alike} of {n_cases} settled cases")


# -------------------------------------------------------------------------------- --- what is shown


def _line(audit: SequentialAudit, cost: float | None) -> str:
    from groundfault.sequential.stopping_time import count_to_stop

    wealth, bar = audit.wealth, 1 / audit.plan.alpha
    cost_note = "" if cost is None else f", cost {cost * _labels(audit):.2f}"
    line = (
        f"{audit.labelled} labelled{cost_note}; e-value against the model {wealth.model:.3g}, "
        f"against the auditor {wealth.auditor:.3g} (either falls at {bar:g})"
    )
    distance = count_to_stop(audit)
    ways = [
        f"{count} {what} in a row"
        for count, what in ((distance.failures, "failures"), (distance.passes, "passes"))
        if count
    ]
    return f"{line}; in {clean(distance.group)} {' or '.join(ways)} would stop it" if ways else line


def _labels(audit: SequentialAudit) -> int:
    """Labels given so far: one a case, or one for each person who judged it."""
    reviewed = {review["step"] for review in audit.reviews}
    return len(audit.reviews) + sum(r.closed and r.query.step not in reviewed for r in audit.rounds)


def _say(audit: SequentialAudit, cost: float | None) -> None:
    click.echo(f"{audit.verdict}: {clean(audit.reason)}")
    if audit.verdict == "failure mode found":
        click.echo(f"refuted: {clean(audit.null)}")
    elif audit.verdict == "inconclusive":
        click.echo(_line(audit, cost))
    if not audit.claim.guaranteed:
        click.echo("sampling as in the paper: on a finite pool this keeps no error rate")
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "group", "cases", "labelled", "unscored", "mean score", box=None, header_style="bold"
    )
    for row in audit.groups:
        n_scored = row["labelled"] - row["unscored"]  # type: ignore[operator]
        mean = f"{row['total'] / n_scored:.3f}" if n_scored else "-"
        table.add_row(
            _markup(row["group"]),
            *(str(row[key]) for key in ("size", "labelled", "unscored")),
            mean,
        )
    Console().print(table)
    if audit.open is not None:
        query = audit.open.query
        click.echo(
            f"next: case {clean(query.id)} (query {query.step}), drawn from {clean(query.group or 'a set')}"
        )
    elif not audit.finished:
        click.echo("next: not drawn yet; run the audit again to go on")


def _table(prospect_rows: list[Any], cost: float | None) -> Any:
    from rich.table import Table

    columns = ["pass rate", "m", "found", "passed", "neither", "10 %", "median", "90 %"]
    table = Table(*columns, *([] if cost is None else ["cost"]), box=None, header_style="bold")
    for p in prospect_rows:
        shares = (f"{share:.2f}" for share in (p.found, p.passed, p.inconclusive))
        cost_cell = [] if cost is None else [f"{cost * p.labels[1]:.2f}"]
        table.add_row(
            _markup(p.world), str(p.budget), *shares, *(str(count) for count in p.labels), *cost_cell
        )
    return table


def _markup(value: object) -> str:
    from rich.markup import escape

    return escape(clean(value))


sequential.add_command(confirm)
