"""``calibrate``: a judge's error rate, measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from groundfault.base.files import write_text
from groundfault.base.long_work import Progress, use_workers
from groundfault.base.reading import read_text
from groundfault.cli import shared
from groundfault.cli.command import Options, command, list_typed
from groundfault.cli.output import Result
from groundfault.cli.reading import read_candidates, read_evidence
from groundfault.cli.settings import Count, Flag, call, own_options
from groundfault.core.plan import AUTO, Plan
from groundfault.errors import InputError, PlanError

if TYPE_CHECKING:
    from groundfault.auditing.prepared_audit import PreparedAudit
    from groundfault_lab.testing import Card


@command(first="judge source outcome id candidate finders replicates out")
@own_options
@shared.table_options
@shared.candidate_options
@shared.plan_options
@shared.jobs_option()
@shared.workers_option
def calibrate(
    *,
    source: Annotated[str | None, Flag("--like")] = None,
    replicates: Count = 1000,
    out: str | None = None,
    progress: Progress,
    options: Options,
) -> Result:
    """Measure a judge's rate of false confirmations and power.

    By default on simulated worlds: independent, correlated, clustered, tiny and tied data. With
    --like, on your own examples and candidates, with the losses permuted. Exit status 1 if the
    judge exceeds its error level.

    \b
    groundfault lab calibrate --judge janus
    groundfault lab calibrate --judge max-t --like results.parquet --id item_id --outcome error

    Input
    -----
    source : FILE
        Simulate on this table, with its losses permuted; the columns below describe it.

    Rule
    ----
    replicates : N
        Number of simulations of each world.

    Output
    ------
    out : FILE
        Write the card as JSON to FILE and as .md beside it; an existing card is resumed.
    """
    from groundfault_lab.testing import calibrate as run

    case = _prepare(source, options) if source else None
    judge = options["judge"]
    if judge == AUTO:
        # simulated candidates are not chosen by outcomes
        judge = case.judge.name if case else "max-t"
    place = Path(out) if out else None
    earlier = _read_earlier(place) if place and place.is_file() else None

    # after every block of simulations, so that an interrupted calibration resumes from the file
    def keep(card: Card) -> None:
        if place:
            write_text(place, card.to_json())
        progress(f"{sum(row.replicates for row in card.rows):,} simulations")

    with use_workers(options["workers"]):
        card = run(
            judge,
            _run_worlds(options),
            like=case.units(case.losses()) if case else None,
            replicates=replicates,
            seed=options["seed"],
            jobs=options["jobs"],
            resume=earlier,
            progress=keep,
        )
    if place:
        write_text(place.with_suffix(".md"), card.to_markdown())
    return Result(card.to_markdown().splitlines(), status=int(not card.passed))


def _run_worlds(options: Options) -> Plan:
    """Return the plan, with fewer permutations and splits than an audit unless they are named."""
    from groundfault_lab.testing.calibration import SIMULATED

    # the command's defaults are those of an audit: only flags that the user wrote count here
    names = {"permutations", "splits"} - list_typed().keys()
    return replace(call(Plan, options), **{name: getattr(SIMULATED, name) for name in names})


def _read_earlier(place: Path) -> Card:
    from groundfault_lab.testing import Card

    try:
        return Card.from_json(read_text(place), where=str(place))
    except UnicodeDecodeError:
        raise InputError(f"{place} is no calibration card: it is not UTF-8 text") from None


def _prepare(source: str, options: Options) -> PreparedAudit:
    """Prepare the audit of the table, whose units and candidates the judge gets."""
    from groundfault.auditing.preparation import prepare

    if not options["outcome"]:
        raise PlanError("--like needs --outcome, the column that says which examples failed")
    evidence = read_evidence({**options, "sources": (source,), "split": None})
    candidates, finders = call(read_candidates, options)
    # all units: no verdict is computed for them, only for permutations of their losses
    return prepare(evidence, call(Plan, options), candidates, finders=finders)
