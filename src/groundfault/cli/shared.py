"""Options that several commands share: evidence, candidates, plan, ledger, searches and models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Annotated, Any

import click

from groundfault.base.registry import load_object
from groundfault.cli.command import COLUMNS, INPUT, RULE, Decorator, apply, list_typed, option
from groundfault.cli.output import Writable
from groundfault.cli.reading import BAD, GOOD, choose_ledger, read_candidates, select_rows
from groundfault.cli.settings import Flag, OutFile, OutFolder, Whole, derive_options
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.roles import Roles
from groundfault.errors import PlanError

SOURCES = click.argument("sources", type=click.Path(), nargs=-1, required=True, metavar="SOURCE...")
_SOURCES_OR_CASE = click.argument("sources", type=click.Path(), nargs=-1, metavar="SOURCE...")

SEARCHES = 39
"""Searches on permuted errors that tell what chance gives: the smallest p is then 1/40."""

MODELS = derive_options(select_rows, "models")
WHERE = derive_options(select_rows, "where")

_FAILED = derive_options(Roles, "count_as_failed", group=INPUT, metavar="STATUS", in_file=True)
_LOGS = derive_options(
    Evidence.from_logs,
    "reader scorer disagreement scale map conflicts",
    group=INPUT,
    reader={"metavar": "NAME"},
    scorer={"metavar": "NAME"},
    disagreement={"metavar": "A B"},
    scale={"metavar": "WORST BEST"},
    map={"metavar": "FILE"},
    in_file=True,
)

_derive_columns = partial(
    derive_options,
    Roles,
    group=COLUMNS,
    metavar="COL",
    in_file=True,
    outcome={"required": False},
    positive_is_good={"flag": f"{GOOD}/{BAD}", "default": None},
    model={"flag": "--model-column"},
    null_outcome={"metavar": "STATUS"},
    passes={"metavar": "VALUE"},
    known=None,
    scale=None,
    numbered=None,
    count_as_failed=None,
)
_COLUMNS = _derive_columns()
_COLUMNS_UNSPLIT = _derive_columns(split=None)

evidence_options = apply([SOURCES, MODELS, _LOGS, _FAILED, _COLUMNS])
"""How tables, or logs, become evidence."""

step_options = apply([_SOURCES_OR_CASE, MODELS, _LOGS, _FAILED, _COLUMNS])
"""The same for a command that may also be a step of a case, which has its evidence already."""

case_options = apply([MODELS, _LOGS, _FAILED, _COLUMNS_UNSPLIT])
"""How sources that another option names become the evidence of a case."""

log_options = apply([SOURCES, _LOGS, _FAILED])
"""How logs become evidence."""

results_options = apply([_LOGS, _FAILED, _COLUMNS])
"""How a file that another option names becomes evidence of one model."""

table_options = apply([MODELS, _COLUMNS_UNSPLIT])
"""How a table that another option names becomes evidence, none of it held out."""

candidate_options = derive_options(read_candidates)
"""Where candidates come from."""

plan_options = derive_options(
    Plan,
    group=RULE,
    judge_settings=None,
    depth={"flag": "--language-depth"},
    within={"metavar": "COL"},
    holdout_column={"metavar": "COL"},
    holdout_models={"metavar": "MODEL"},
    prevalence={"metavar": "LO HI"},
    decoys={"metavar": "K"},
    in_file=True,
)
"""What is decided in advance."""

ledger_options = derive_options(choose_ledger, ledger={"in_file": True})
"""Where looks at outcomes are recorded, and why a further one is taken."""

holdout_option = derive_options(
    Plan,
    "holdout",
    group=RULE,
    in_file=True,
    holdout={"help": "Share of the units that is held out, and not looked at here."},
)
"""How many units a search leaves to a later audit."""

seed_option = derive_options(
    Plan,
    "seed",
    group=RULE,
    in_file=True,
    seed={"help": "Seed that draws the held-out units; audit with the same seed."},
)

holdout_options = apply([holdout_option, seed_option])
"""Which units a search leaves to a later audit."""


def _list_shared(
    *,
    evidence: tuple[str, ...] = (),
    settings: Annotated[tuple[str, ...], Flag("--set")] = (),
    jobs: int = -1,
    workers: str | None = None,
    store: str | None = None,
    repeats: bool = False,
    robustness: Whole = 0,
    out: OutFolder | None = None,
    no_text: bool = False,
    why: bool = False,
) -> None:
    """List options of several commands.

    Input
    -----
    repeats
        Take the sources for runs of one evaluation, and count their mean.
    evidence : SRC
        Place of the table or logs, if they have moved; repeatable, in the order of the report's
        sources.

    Search
    ------
    settings : NAME=VALUE
        Any other setting of the finder; repeatable.

    Rule
    ----
    robustness : N
        Number of random splits to repeat the audit on.

    Output
    ------
    out : DIR
        Write report.html, report.md, report.json, library.json and SHA256SUMS to this folder.
    no_text
        Leave the texts of examples out of the report; their ids stay.
    why
        Print all modes and findings, and how sure they are.
    jobs : N
        Number of processes (-1: one for each core); results do not depend on it.
    workers : URL
        Farm that works instead of this machine, such as dask://host:8786; results do not depend on
        it.
    store : FILE|URL
        Database of review decisions; by default reviews.db in RUNS.
    """


report_options = derive_options(_list_shared, "robustness out no_text why")
repeats_option = derive_options(_list_shared, "repeats")
moved_option = derive_options(_list_shared, "evidence")
settings_option = derive_options(_list_shared, "settings")
workers_option = derive_options(_list_shared, "workers")
store_option = derive_options(_list_shared, "store")


def jobs_option(default: int = -1) -> Decorator:
    """Make the option that says how many processes work."""
    return derive_options(_list_shared, "jobs", jobs={"default": default})


def json_option(what: str) -> Decorator:
    """Make the option that says where to write the result as JSON."""
    return option(
        "--json",
        "json_path",
        metavar="FILE|-",
        type=Writable(),
        help=f"Write {what} as JSON to FILE; - prints the JSON and nothing else.",
    )


audit_options = apply(
    [
        report_options,
        candidate_options,
        plan_options,
        jobs_option(),
        workers_option,
        json_option("the report"),
        ledger_options,
    ]
)
"""How evidence is audited, and where the report goes."""


def label_options(*, in_browser: bool = False) -> Decorator:
    """Make the options of who scores one case at a time; and whether in the browser."""
    browser = ", in the browser" if in_browser else ""
    more, asked = (["browser", "model"], ", a model") if in_browser else ([], "")
    source = option(
        "--label",
        type=click.Choice(["ask", *more, "cmd", "file"]),
        required=True,
        group="Labelling",
        help=f"Source of the scores: you at the prompt{browser}{asked}, a program, or a column of "
        "the file.",
    )
    return apply([source, derive_options(list_label_settings)])


def list_label_settings(
    *,
    program: Annotated[str | None, Flag("--command")] = None,
    show: tuple[str, ...] = (),
    budget: int | None = None,
    cost: float | None = None,
) -> None:
    """List the options of any source of scores.

    Labelling
    ---------
    program : CMD
        Program for --label cmd: reads a case as JSON and prints its score.
    show : COL
        Column to show of a case, all by default; repeatable.
    budget
        Largest number of cases to label; all of them by default.
    cost
        Cost of one label; progress then shows the total.
    """


def list_call_settings(
    *,
    record: OutFile | None = None,
    concurrency: int = 8,
    timeout: float = 120.0,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the settings that `groundfault.models.ask` takes.

    Model calls
    -----------
    record : FILE
        Database of model calls, to resume and replay; by default calls.db beside the output.
    concurrency
        Largest number of calls at a time.
    timeout
        Time limit of one attempt, in seconds.
    temperature
        Temperature; by default the server's.
    max_tokens
        Largest number of tokens of a reply; by default the server's.
    seed
        Seed of every random draw; it is sent to the model too.
    """
    settings = {"temperature": temperature, "max_tokens": max_tokens}
    given = {name: value for name, value in settings.items() if value is not None}
    return given | {"record": record, "concurrency": concurrency, "timeout": timeout, "seed": seed}


call_options = derive_options(list_call_settings)
"""How a language model is called."""


def step_of_case(step: str, *settings: str, source: str = "sources") -> Decorator:
    """Let ``--case DIR`` make a command a step of a case, which knows its rows and its plan.

    Parameters
    ----------
    step : str
        ``module:function`` of the step; it takes the folder and the options.
    *settings : str
        Names of the parameters that the step has a use for. Any other that is given is refused.
    source : str
        Name of the argument that the case stands in for; it may not be required by itself.
    """

    def decorate(command: Callable[..., object]) -> Callable[..., Any]:
        @wraps(command)
        def run(options: dict[str, Any] | None = None, **own: object) -> object:
            given = own | (options or {})
            folder = given["case_folder"]
            context = click.get_current_context()
            if folder is not None:
                for name, flag in list_typed().items():
                    if name not in ("case_folder", *settings):
                        raise PlanError(
                            f"{flag} does not go with --case: rows and plan of a case were "
                            "decided when it began (groundfault case new)"
                        )
                return load_object(step)(folder, given)
            if not given[source]:
                missing = next(p for p in context.command.params if p.name == source)
                name = missing.make_metavar(context).strip("[]")
                raise click.UsageError(f"Missing argument '{name}'.", context)
            own.pop("case_folder", None)
            return command(**own) if options is None else command(**own, options=options)

        return option(
            "--case",
            "case_folder",
            type=click.Path(),
            metavar="DIR",
            group=INPUT,
            help="Make it a step of this case, which knows the rest; see groundfault case.",
        )(run)

    return decorate
