"""The options of sequential audits, and the pool and the plan that they describe."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from groundfault.cli.command import INPUT, RULE, apply, option
from groundfault.cli.reading import require_orientation
from groundfault.cli.settings import call, derive_options
from groundfault.errors import PlanError
from groundfault.sequential.plan import SequentialPlan
from groundfault.sequential.pool import Pool

_input = partial(option, group=INPUT)
NUMBERS = {"multiple": False, "type": str, "metavar": "P,P,..."}
"""Options whose numbers are one text with commas between them."""

pool_options = apply(
    [
        click.argument("source", metavar="POOL", type=click.Path()),
        derive_options(
            Pool.from_table,
            "id groups",
            group=INPUT,
            id={"metavar": "COL"},
            groups={"metavar": "COL", "multiple": True},
        ),
        _input(
            "--rule",
            metavar="'NAME: SQL'",
            multiple=True,
            help="Group defined by a rule, such as 'long: n_words > 400'; repeatable.",
        ),
        derive_options(
            Pool.from_table, "embedding", group=INPUT, embedding={"metavar": "COL|GLOB|FILE"}
        ),
        _input(
            "--embed-with",
            metavar="HOW",
            help="Embedding of texts: tfidf (default), sentence or sentence:MODEL.",
        ),
        derive_options(Pool.from_table, "generated", group=INPUT),
    ]
)
"""Which cases there are."""

sequential_plan_options = apply(
    [
        derive_options(
            SequentialPlan,
            "model threshold burn_in alpha policy claim sampling epsilon warm_up seed",
            group=RULE,
            model={"metavar": "NAME"},
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


def read_pool(options: dict[str, Any], scores: str | None) -> Pool:
    """Return the pool of cases that the options describe."""
    from groundfault.core.candidate import Candidate

    if scores and options["positive_is_good"] is None:
        require_orientation(scores, one_is_pass=True)
    rules = map(Candidate.from_text, options["rule"])
    return call(
        Pool.from_table,
        options,
        groups=[*options["groups"], *rules],
        embedding=_read_embedding(options),
        scores=scores,
    )


def _read_embedding(options: dict[str, Any]) -> Any:
    """Return the named columns; or vectors, where ``--embed-with`` says how to embed a column."""
    name, how = options["embedding"], options["embed_with"]
    if how is None:
        return name
    if name is None:
        raise PlanError("--embed-with needs --embedding, the column of texts")
    from groundfault.readers.table import read_table
    from groundfault.sequential.pool_parsing import get_column
    from groundfault.slicing.embedding import embed

    frame, sources = read_table(options["source"])
    return embed(get_column(frame, name, sources[0]).to_list(), how)


def read_sequential_plan(options: dict[str, Any]) -> SequentialPlan:
    """Return the plan that the options describe."""
    from groundfault.sequential import policies

    warm_up = options["warm_up"]
    if warm_up is None:
        warm_up = getattr(policies.get(options["policy"]), "warm_up", 0)
    return call(
        SequentialPlan,
        options,
        warm_up=warm_up,
        grid=read_numbers(options["grid"], "--grid"),
        auditor_grid=read_numbers(options["auditor_grid"], "--auditor-grid"),
    )


def read_numbers(text: str | None, option: str) -> list[float] | None:
    """Return the numbers of a text with commas between them; None where the option is left out."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise PlanError(f"{option} {text!r} must be numbers with commas between them") from None
