"""``describe``: what failing examples have in common, in the words of a language model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from groundfault.cli.command import GroupedCommand, option
from groundfault.cli.options import call_options, evidence_options, holdout_option
from groundfault.cli.output import echo_warnings, require_writable, show_progress
from groundfault.cli.reading import read_evidence
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.auditing.describing import Descriptions

_describe = partial(option, group="Descriptions")
_annotate = partial(option, group="Annotation")
_call = partial(option, group="Model calls")

_ARMS = "outcomes,blind,shuffled"
_MATERIAL = "descriptions sample check".split()
_PASSED = "annotator second sheet max_calls prices".split()


@click.command(
    cls=GroupedCommand,
    first="outcome id describer annotator second max_calls prices out",
)
@evidence_options
@_describe(
    "--describer",
    required=True,
    metavar="TARGET",
    help="Model that proposes descriptions, such as openai/gpt-4o.",
)
@_describe(
    "--description",
    "descriptions",
    metavar="TEXT",
    multiple=True,
    help="Description of your own, annotated beside the others; repeatable.",
)
@_describe(
    "--arms",
    default=_ARMS,
    show_default=True,
    help="Ways to propose: outcomes shows which examples failed, blind does not, shuffled lies "
    "about it (a control); none asks for no proposals.",
)
@_describe(
    "--rounds",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Number of questions in each arm, each with other examples.",
)
@_describe(
    "--examples",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Number of failing examples in a question, and of passing ones.",
)
@_describe(
    "--count",
    type=click.IntRange(1, 50),
    default=5,
    show_default=True,
    help="Largest number of descriptions in one reply.",
)
@_annotate(
    "--annotator",
    metavar="TARGET",
    help="Model that decides for each example which descriptions hold; by default --describer.",
)
@_annotate(
    "--second",
    metavar="TARGET",
    help="Model that decides again on a random part, so that agreement is reported.",
)
@_annotate(
    "--sheet",
    metavar="FILE",
    help="CSV sheet for a person who decides instead of --second: written where there is none, "
    "read where there is one.",
)
@_annotate(
    "--check",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Number of examples that are decided on again, drawn at random.",
)
@_annotate(
    "--sample",
    type=click.IntRange(1),
    help="Number of examples to annotate, drawn at random; by default all.",
)
@_annotate(
    "--text",
    metavar="COL",
    multiple=True,
    help="Column to show of an example, known before its answer; repeatable; by default all prose.",
)
@holdout_option
@_call(
    "--max-calls",
    type=click.IntRange(0),
    default=5000,
    show_default=True,
    help="Largest number of calls of this run; 0 says what it may cost, and asks nothing.",
)
@_call(
    "--price",
    "prices",
    nargs=2,
    type=float,
    metavar="IN OUT",
    help="Dollars for a million tokens of questions and of replies, for the estimates; the same "
    "for every model, so name those of the dearest.",
)
@call_options
@option(
    "--out",
    required=True,
    type=click.Path(),
    metavar="DIR",
    help="Write library.json, the descriptions as candidates, and the record to this folder.",
)
def describe(**options: Any) -> None:
    """Let a model describe failing examples of SOURCE, and annotate where that holds.

    The model sees failing and passing examples of the discovery half and writes down what they have
    in common. An annotator, which sees neither outcomes nor answers, then decides for every example
    whether each description holds. Nothing is confirmed by this: an audit with the same seed judges
    the descriptions like any candidate, those from shuffled outcomes among them as controls. Before
    each batch its cost is estimated and printed. After an interruption, run it again: no question
    is paid for twice.

    \b
    groundfault describe results.parquet --id id --outcome error --describer openai/gpt-4o \\
        --annotator openai/gpt-4o-mini --second openai/gpt-4o --price 2.5 10 --out described/
    groundfault audit results.parquet --id id --outcome error \\
        --candidates described/library.json
    """
    from groundfault.auditing.describing import bound_describing_cost
    from groundfault.auditing.describing import describe as run
    from groundfault.core.plan import Plan
    from groundfault.descriptions.proposing import ProposingSettings

    out, record = options["out"], options["record"] or Path(options["out"]) / "calls.db"
    require_writable(out, directory=True)
    require_writable(str(record))
    require_writable(options["sheet"])
    names = [name.strip() for name in options["arms"].split(",") if name.strip()]
    arms: tuple[Any, ...] = () if names == ["none"] else tuple(names)
    if not arms and not options["descriptions"]:
        raise PlanError("--arms none asks for no proposals: name descriptions (--description)")
    sizes = {name: options[name] for name in ("rounds", "examples", "count")}
    settings = ProposingSettings(arms, **sizes)
    calling = ("concurrency", "timeout", "temperature", "max_tokens")
    limits = {name: options[name] for name in calling if options[name] is not None}
    plan = Plan(holdout=options["holdout"], seed=options["seed"])
    material = {name: options[name] for name in _MATERIAL}
    material |= {"settings": settings, "columns": options["text"] or None}
    with echo_warnings(), show_progress(False) as progress:
        evidence = read_evidence(options)
        if not options["max_calls"]:
            second = options["second"] is not None
            cost = bound_describing_cost(evidence, plan, second=second, **material)
            click.echo(cost.describe(options["prices"]))
            return
        descriptions = run(
            evidence,
            options["describer"],
            plan,
            record=record,
            announce=partial(_announce, progress),
            progress=progress,
            **material,
            **{name: options[name] for name in _PASSED},
            **limits,
        )
    library = Path(out) / "library.json"
    descriptions.library.freeze(library)
    _show(descriptions, Console(), library)
    if options["sheet"] and not any(column.agreement for column in descriptions.rows):
        sheet = options["sheet"]
        click.echo(f"To check them: fill in yes or no in {sheet}, and run the same command again.")


def _announce(progress: Any, sentence: str) -> None:
    from groundfault.render import words

    progress(sentence)
    click.echo(words.clean(sentence), err=True)


def _show(descriptions: Descriptions, console: Console, library: Path) -> None:
    """What was proposed, how often it holds, who agrees; and the next step."""
    from groundfault.render import words
    from groundfault.render.description_tables import list_descriptions
    from groundfault.render.terminal import fit_table

    console.print(
        f"{words.plural(len(descriptions.rows), 'description')} of "
        f"{words.plural(descriptions.examples, 'example')}, shown by "
        f"{words.listing([words.clean(name) for name in descriptions.columns], 6)}",
        style="bold",
        markup=False,
        highlight=False,
    )
    console.print(fit_table(list_descriptions(descriptions.rows), console.width))
    for sentence in _list_troubles(descriptions):
        console.print(words.clean(sentence), markup=False, highlight=False)
    console.print(
        f"Nothing is confirmed. To judge them: groundfault audit --candidates {library}, with the "
        "same source and seed.",
        style="dim",
        markup=False,
        highlight=False,
    )


def _list_troubles(descriptions: Descriptions) -> list[str]:
    """Replies that could not be used."""
    kinds = {
        **{f"proposals ({arm})": counts for arm, counts in descriptions.proposals.items()},
        "annotations": descriptions.annotations,
        "annotations by the second model": descriptions.checks,
    }
    return [
        f"note: {kind}: {', '.join(f'{n:,} {status}' for status, n in troubles.items())} of "
        f"{sum(counts.values()):,} replies; what they were about is left out"
        for kind, counts in kinds.items()
        if (troubles := {status: n for status, n in counts.items() if status != "read"})
    ]
