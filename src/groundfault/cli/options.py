"""Options that describe an audit: evidence, candidates and plan, each declared once."""

from __future__ import annotations

from functools import partial

import click

from groundfault.cli.command import (
    CANDIDATES,
    COLUMNS,
    INPUT,
    RULE,
    Decorator,
    apply,
    option,
)
from groundfault.cli.orientation import orientation_option
from groundfault.cli.settings import derive_options
from groundfault.core.plan import Plan

SOURCES = click.argument("sources", type=click.Path(), nargs=-1, required=True, metavar="SOURCE...")
_SOURCES_OR_CASE = click.argument("sources", type=click.Path(), nargs=-1, metavar="SOURCE...")

_input = partial(option, group=INPUT)
_column = partial(option, group=COLUMNS)
_candidate = partial(option, group=CANDIDATES)
_rule = partial(option, group=RULE)

MODELS = _input(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    help="Use only the results of this model; repeatable.",
)
WHERE = _input(
    "--where",
    metavar="SQL",
    help="Use only the rows for which this is true, such as \"task = 'addition'\".",
)
_LOGS: list[Decorator] = [
    _input(
        "--reader",
        metavar="NAME",
        help="Reader of the logs, such as inspect; the default is recognised by their content.",
    ),
    _input(
        "--scorer",
        metavar="NAME",
        multiple=True,
        help="Scorer in the logs whose score becomes the outcome, instead of the tool's own; "
        "repeatable, one for each task.",
    ),
    _input(
        "--disagreement",
        metavar="A B",
        nargs=2,
        help="Audit where scorers A and B differ: that is then what counts as a failure.",
    ),
    _input(
        "--scale",
        type=float,
        nargs=2,
        metavar="WORST BEST",
        help="Range of that scorer's values, where it is not 0 to 1.",
    ),
    _input(
        "--count-as-failed",
        metavar="STATUS",
        multiple=True,
        help="Count answers of this status as failures, as some leaderboards do: unparsed, "
        "refused, error or missing; repeatable.",
    ),
    _input(
        "--map",
        "mapping",
        metavar="FILE",
        help="Mapping file (TOML) that names the columns of tables with another layout.",
    ),
    _input(
        "--conflicts",
        type=click.Choice(["error", "keep"]),
        default="error",
        show_default=True,
        help="Stop where logs give one id two texts, or one answer two results; or keep both.",
    ),
]

_SPLIT = _column(
    "--split", metavar="COL", help="Column that says discovery or holdout for each row."
)
# every column that has a role in Evidence.from_table; the others are attributes of the examples
_COLUMNS: list[Decorator] = [
    _column(
        "--outcome",
        metavar="COL",
        help="Column of a table with the outcome: 0/1 error, true/false, or a loss in [0, 1].",
    ),
    orientation_option(
        "in the outcome; by default a failure, but a column named like correct or score stops."
    ),
    _column(
        "--id",
        metavar="COL",
        help="Column of example ids; by default each row is an example of its own.",
    ),
    _column("--model-column", metavar="COL", help="Column that names the model of each row."),
    _column(
        "--repeat",
        metavar="COL",
        help="Column that numbers repeats (epochs) of the same example and model.",
    ),
    _column(
        "--group",
        metavar="COL",
        help="Column of groups of dependent examples; each group then counts as one unit.",
    ),
    _SPLIT,
    _column(
        "--status",
        metavar="COL",
        help="Column that says scored, error, refused, unparsed, artefact or missing.",
    ),
    _column(
        "--null-outcome",
        metavar="STATUS",
        old_name="--empty",
        help="Status of rows without an outcome: missing, error, refused, unparsed or artefact.",
    ),
    _column(
        "--ignore",
        metavar="COL",
        multiple=True,
        help="Column that no finder may use; repeatable.",
    ),
    _column(
        "--instrument",
        metavar="COL",
        multiple=True,
        help="Column that describes the measurement, not the example; repeatable.",
    ),
    _column(
        "--post-outcome",
        metavar="COL",
        multiple=True,
        help="Column that is a consequence of failing, so no candidate may use it; repeatable.",
    ),
    _column(
        "--allow-leakage",
        metavar="COL",
        multiple=True,
        old_name="--allow-leak",
        help="Skip the leakage check for this column, although it predicts the outcome almost "
        "perfectly; repeatable.",
    ),
]

_CANDIDATES: list[Decorator] = [
    _candidate(
        "--candidate",
        metavar="'NAME: SQL'",
        multiple=True,
        help="Judge this rule, such as 'long: n_words > 400'; repeatable.",
    ),
    _candidate(
        "--candidates",
        "candidate_file",
        metavar="FILE",
        help="Judge the rules in a text, TOML or library file.",
    ),
    _candidate(
        "--declare",
        metavar="GLOB",
        multiple=True,
        help="Judge the 0/1 columns whose names match, such as 'd__*'; repeatable.",
    ),
    _candidate(
        "--finders",
        metavar="NAMES",
        help="Finders that propose candidates, such as thresholds,categories,interactions:2.",
    ),
    _candidate(
        "--library",
        metavar="FILE",
        help="Judge the candidates frozen in this library, and no others.",
    ),
    _candidate(
        "--missing",
        type=click.Choice(["reject", "off", "drop"]),
        default="reject",
        show_default=True,
        help="Where a rule is NULL: reject the rule, count the row as off it, or drop the row.",
    ),
]

evidence_options = apply([SOURCES, MODELS, *_LOGS, *_COLUMNS])
"""How tables, or logs, become evidence."""

step_options = apply([_SOURCES_OR_CASE, MODELS, *_LOGS, *_COLUMNS])
"""The same for a command that may also be a step of a case, which has its evidence already."""

case_options = apply([MODELS, *_LOGS, *(column for column in _COLUMNS if column is not _SPLIT)])
"""How sources that another option names become the evidence of a case."""

log_options = apply([SOURCES, *_LOGS])
"""How logs become evidence."""

results_options = apply([*_LOGS, *_COLUMNS])
"""How a file that another option names becomes evidence of one model."""

table_options = apply([MODELS, *(column for column in _COLUMNS if column is not _SPLIT)])
"""How a table that another option names becomes evidence, none of it held out."""

candidate_options = apply(_CANDIDATES)
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
)
"""What is decided in advance."""
