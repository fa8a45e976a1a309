"""Options that some commands share beside those of an audit: searches, labels, models, output."""

from __future__ import annotations

from functools import partial

import click

from groundfault.cli.command import RULE, Decorator, apply, option

_rule = partial(option, group=RULE)
_label = partial(option, group="Labelling")
_example = partial(option, group="Examples")
_call = partial(option, group="Model calls")

SEARCHES = 39
"""Searches on permuted errors that tell what chance gives: the smallest p is then 1/40."""

holdout_option = _rule(
    "--holdout",
    default="0.5",
    show_default=True,
    help="Share of the units that is held out, and not looked at here.",
)
"""How many units a search leaves to a later audit."""

holdout_options = apply(
    [
        holdout_option,
        _rule(
            "--seed",
            type=int,
            default=0,
            show_default=True,
            help="Seed that draws the held-out units; audit with the same seed.",
        ),
    ]
)
"""Which units a search leaves to a later audit."""

settings_option = option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    group="Search",
    help="Any other setting of the finder; repeatable.",
)


def label_options(*, in_browser: bool = False) -> Decorator:
    """Who scores one case at a time; and whether one may do so in the browser."""
    browser = ", in the browser" if in_browser else ""
    source = _label(
        "--label",
        type=click.Choice(["ask", *(["browser"] if in_browser else []), "cmd", "file"]),
        required=True,
        help=f"Source of the scores: you at the prompt{browser}, a program, or a column of the "
        "file.",
    )
    return lambda function: source(_label_options(function))


_label_options = apply(
    [
        _label(
            "--command",
            "program",
            metavar="CMD",
            help="Program for --label cmd: reads a case as JSON and prints its score.",
        ),
        _label(
            "--show",
            metavar="COL",
            multiple=True,
            help="Column to show of a case, all by default; repeatable.",
        ),
        _label(
            "--budget",
            type=int,
            old_name="--limit",
            help="Largest number of cases to label; all of them by default.",
        ),
        _label("--cost", type=float, help="Cost of one label; progress then shows the total."),
    ]
)


def json_option(what: str) -> Decorator:
    """Where to write the result as JSON."""
    return option(
        "--json",
        "json_path",
        metavar="FILE|-",
        help=f"Write {what} as JSON to FILE; - prints the JSON and nothing else.",
    )


def jobs_option(default: int = -1) -> Decorator:
    """How many processes work."""
    return option(
        "--jobs",
        type=int,
        default=default,
        show_default=True,
        help="Number of processes (-1: one for each core); results do not depend on it.",
    )


def workers_option() -> Decorator:
    """Where they work, if not here."""
    return option(
        "--workers",
        metavar="URL",
        help="Farm that works instead of this machine, such as dask://host:8786; results do not "
        "depend on it.",
    )


examples_options = apply(
    [
        _example(
            "--examples",
            metavar="FILE",
            help="Table that describes the examples, joined by --id.",
        ),
        _example(
            "--vectors",
            metavar="COL",
            help="Column of vectors of the examples, used instead of their texts.",
        ),
        _example("--benchmark", metavar="COL", help="Column of the benchmark of an example."),
    ]
)
"""What describes the examples whose failures are clustered."""

score_options = apply(
    [
        _rule(
            "--score",
            type=float,
            default=0.7,
            show_default=True,
            help="Score from which a try is a pass.",
        ),
        _rule(
            "--rate",
            type=float,
            default=0.5,
            show_default=True,
            help="Share of passed tries from which an example is passed.",
        ),
    ]
)
"""When an example with several graded tries is passed."""

call_options = apply(
    [
        _call(
            "--record",
            metavar="FILE",
            help="Database of model calls, to resume and replay; by default calls.db beside the "
            "output.",
        ),
        _call(
            "--concurrency",
            type=int,
            default=8,
            show_default=True,
            help="Largest number of calls at a time.",
        ),
        _call(
            "--timeout",
            type=float,
            default=120.0,
            show_default=True,
            help="Time limit of one attempt, in seconds.",
        ),
        _call("--temperature", type=float, help="Temperature; by default the server's."),
        _call(
            "--max-tokens",
            type=int,
            help="Largest number of tokens of a reply; by default the server's.",
        ),
        _call(
            "--seed",
            type=int,
            default=0,
            show_default=True,
            help="Seed of every random draw; it is sent to the model too.",
        ),
    ]
)
"""How a language model is called."""

store_option = option(
    "--store",
    metavar="FILE|URL",
    help="Database of review decisions; by default reviews.db in RUNS.",
)
