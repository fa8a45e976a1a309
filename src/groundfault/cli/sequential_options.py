"""The options of sequential audits, and the pool and the plan that they describe."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.command import INPUT, RULE, apply, option
from groundfault.cli.reading import require_orientation
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.sequential import Pool, SequentialPlan

_input = partial(option, group=INPUT)
_rule = partial(option, group=RULE)
_bet = partial(option, group="Bets")

pool_options = apply(
    [
        click.argument("source", metavar="POOL", type=click.Path()),
        _input("--id", metavar="COL", help="Column of case ids; by default rows are numbered."),
        _input(
            "--groups",
            metavar="COL",
            multiple=True,
            help="Column whose levels are groups; A*B for the combinations of two; repeatable.",
        ),
        _input(
            "--rule",
            metavar="'NAME: SQL'",
            multiple=True,
            help="Group defined by a rule, such as 'long: n_words > 400'; repeatable.",
        ),
        _input(
            "--embedding",
            metavar="COL|GLOB|FILE",
            help="Texts or numbers that policies learn from, besides the groups.",
        ),
        _input(
            "--embed-with",
            metavar="HOW",
            help="Embedding of texts: tfidf (default), sentence or sentence:MODEL.",
        ),
        _input(
            "--generated",
            is_flag=True,
            help="Treat POOL as a bank of generated cases with one category each (--groups).",
        ),
    ]
)
"""Which cases there are."""

sequential_plan_options = apply(
    [
        _rule(
            "--model",
            default="",
            metavar="NAME",
            help="Name of who answers, where several are asked the same cases: an audit each.",
        ),
        _rule(
            "--threshold",
            type=float,
            required=True,
            help="Mean score, 1 for a pass, below which a group is a failure mode.",
        ),
        _rule(
            "--burn-in",
            type=int,
            default=40,
            show_default=True,
            help="Number of tested cases (m) before the auditor's own null hypothesis is tested.",
        ),
        _rule(
            "--alpha",
            type=float,
            default=0.05,
            show_default=True,
            help="Largest probability of a wrong verdict.",
        ),
        _rule(
            "--policy",
            default="logistic",
            show_default=True,
            help="Policy that draws cases: logistic, stratified, gp, boosted, thompson, adaptive, "
            "prelearned, uniform or oracle:GROUP.",
        ),
        _rule(
            "--claim",
            help="Claim that is tested: population, which the cases were drawn from (default), "
            "declared-groups, of these cases alone, literal or rates.",
        ),
        _rule(
            "--sampling",
            default="guaranteed",
            show_default=True,
            help="Sampling: guaranteed, or paper, which keeps no error rate on a finite pool.",
        ),
        _rule(
            "--epsilon",
            type=float,
            help="Smallest share of the cases that makes a group; smaller ones are left out.",
        ),
        _rule(
            "--warm-up",
            type=int,
            help="Number of first cases, drawn uniformly and not bet on; default by policy.",
        ),
        _rule(
            "--seed",
            type=int,
            help="Public seed of every draw, to repeat an audit; by default a random key, sealed "
            "until the audit has ended.",
        ),
        _bet(
            "--bet",
            multiple=True,
            help="Betting strategy; several are averaged; repeatable; default group-lr-ui and "
            "joint-lr-ui, and sr-lr-ui for any set of cases.",
        ),
        _bet(
            "--alternative",
            type=float,
            help="Alternative of lr bets against the model's null hypothesis.",
        ),
        _bet(
            "--grid",
            metavar="P,P,...",
            help="Alternatives of -ui and -mix bets against the model's null hypothesis.",
        ),
        _bet(
            "--auditor-alternative",
            type=float,
            help="Alternative of lr bets against the auditor's null hypothesis.",
        ),
        _bet(
            "--auditor-grid",
            metavar="P,P,...",
            help="Alternatives of -ui and -mix bets against the auditor's null hypothesis.",
        ),
        _bet("--eta", type=float, help="Learning rate of -ui bets; default 0.3."),
        _bet(
            "--shares",
            help="Initial shares of sr- bets: heavy-tailed, or uniform as in the paper.",
        ),
    ]
)
"""What is decided before the first label."""


def read_pool(options: dict[str, Any], scores: str | None) -> Pool:
    """The pool of cases that the options describe."""
    from groundfault.core.candidate import Candidate
    from groundfault.sequential import Pool

    if scores and options["positive_is_good"] is None:
        require_orientation(scores, one_is_pass=True)
    groups: list[Any] = [
        *options["groups"],
        *(Candidate.from_text(text) for text in options["rule"]),
    ]
    return Pool.from_table(
        options["source"],
        id=options["id"],
        groups=groups,
        embedding=_embedding(options),
        scores=scores,
        positive_is_good=options.get("positive_is_good"),
        generated=options["generated"],
    )


def _embedding(options: dict[str, Any]) -> Any:
    """The named columns; or vectors, where ``--embed-with`` says how to embed a text column."""
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
    """The plan that the options describe."""
    from groundfault.sequential import SequentialPlan, policies

    names = (
        "threshold budget burn_in alpha policy claim sampling epsilon alternative "
        "auditor_alternative eta shares seed model"
    ).split()
    warm_up = options["warm_up"]
    return SequentialPlan(
        **{name: options[name] for name in names},
        bet=tuple(options["bet"]) or None,
        grid=read_numbers(options["grid"], "--grid"),
        auditor_grid=read_numbers(options["auditor_grid"], "--auditor-grid"),
        warm_up=getattr(policies.get(options["policy"]), "warm_up", 0)
        if warm_up is None
        else warm_up,
    )


def read_numbers(text: str | None, option: str) -> list[float] | None:
    """Numbers from a text with commas between them; None where the option is left out."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise PlanError(f"{option} {text!r} must be numbers with commas between them") from None
