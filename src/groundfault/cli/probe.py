"""``probe``: targeted tests from a frozen task bank and a grammar of prompt components."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundfault.base.files import write_text
from groundfault.cli.case_option import step_of_case
from groundfault.cli.command import GroupedCommand, option
from groundfault.cli.options import json_option
from groundfault.cli.output import require_writable, write_json
from groundfault.cli.probe_arena import arena
from groundfault.cli.probe_report import release, report
from groundfault.cli.probe_review import review
from groundfault.cli.probe_run import run
from groundfault.errors import InputError, PlanError

if TYPE_CHECKING:
    from groundfault.probes import Bank

_task = partial(option, group="Tasks")
_wording = partial(option, group="Wordings")
_of_case = partial(option, group="Case")
_TABLES = (".csv", ".tsv", ".parquet", ".arrow", ".ipc", ".feather")


@click.group()
def probe() -> None:
    """Test a model on the same tasks under wordings that must not change the answer."""


@probe.command(
    cls=GroupedCommand,
    first="generated source question target no_key grammar_file case_folder modes",
)
@click.argument("folder", type=click.Path(), required=False)
@step_of_case(
    "groundfault.cli.probe_case:begin_probe",
    *"modes pairs question target grammar_file".split(),
    source="folder",
)
@_task(
    "--generated",
    type=int,
    metavar="N",
    help="Write a bank of N tasks made from templates, not the 18 written by hand.",
)
@_task(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of a generated bank.",
)
@_task("--from", "source", metavar="FILE", help="Table or log with questions of your own.")
@_task("--question", metavar="COL", help="Column of a table with the questions.")
@_task("--target", metavar="COL", help="Column of a table with the expected answers.")
@_task("--no-key", is_flag=True, help="Compare answers across wordings, not with expected ones.")
@_task("--id", metavar="COL", help="Column of task ids; by default tasks are numbered.")
@_task("--family", metavar="COL", help="Column with the kind of task.")
@_task(
    "--rule",
    metavar="NAME",
    help="Equivalence rule of all tasks; by default chosen by the form of each answer.",
)
@_wording(
    "--grammar",
    "grammar_file",
    type=click.Path(),
    metavar="FILE",
    help="Grammar of the wordings, in place of the one that is shipped.",
)
@_of_case(
    "--mode",
    "modes",
    type=click.IntRange(1),
    multiple=True,
    metavar="N",
    help="Number of a failure mode of the case; repeatable, default those that are confirmed.",
)
@_of_case(
    "--pairs",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Largest number of pairs of tasks for each mode.",
)
def init(
    folder: str,
    generated: int | None,
    seed: int,
    no_key: bool,
    grammar_file: str | None,
    modes: tuple[int, ...],
    **options: Any,
) -> None:
    """Write an example bank, grammar and config, with comments, into FOLDER.

    With --from the bank has the questions and expected answers of a table, whose columns you name,
    or of an evaluation log. The grammar then omits components that such tasks cannot fill, such as
    a tempting wrong answer. With --no-key no answers are expected: each task is asked in its base
    wording first, and an answer that differs from that one is a signal. With --case the bank has
    fresh tasks of a case: some inside a failure mode, each with the task outside that is most like
    it.

    \b
    groundfault probe init bank/
    groundfault probe init big/ --generated 900 --seed 1
    groundfault probe init mine/ --from results.parquet --question question --target answer
    groundfault probe init open/ --from questions.csv --question question --no-key --rule integer
    groundfault probe init --case case/ --mode 1 --question question --target answer
    """
    from groundfault.probes import Bank, Grammar, generate
    from groundfault.probes.bank.bank import SHIPPED

    if modes:
        raise PlanError("--mode chooses failure modes of a case: name it with --case")
    options.pop("pairs")
    require_writable(folder, directory=True)
    places = [Path(folder) / name for name in ("bank.toml", "grammar.toml", "config.toml")]
    existing = [place for place in places if place.exists()]
    if existing:
        raise InputError(f"{existing[0]} exists already; choose another folder, or move it away")
    bank = _bank_of(options, no_key)
    grammar = Grammar.shipped() if grammar_file is None else Grammar.load(grammar_file)
    if bank is not None:
        if generated is not None:
            raise PlanError("--generated and --from are two ways to a bank: leave one of them out")
        bank.write(places[0])
        grammar.fitting({slot for task in bank for slot in task.slots}).write(places[1])
    elif generated is not None or no_key:
        tasks = Bank.shipped() if generated is None else generate(generated, seed)
        (tasks.without_keys() if no_key else tasks).write(places[0])
    if grammar_file is not None and bank is None:
        grammar.write(places[1])
    for place in places:
        if not place.exists():
            write_text(place, (SHIPPED / place.name).read_text(encoding="utf-8"))
        click.echo(f"wrote {place}")
    click.echo(f"next: groundfault probe check {folder}")


def _bank_of(options: dict[str, str | None], no_key: bool) -> Bank | None:
    """The bank of a table, if its columns are named, or of logs."""
    from groundfault.core.evidence import Evidence
    from groundfault.probes import Bank

    source = options.pop("source")
    columns = {name: value for name, value in options.items() if value is not None}
    if source is None:
        if columns:
            raise PlanError(
                f"--{next(iter(columns))} is about --from: name the table there, or leave it out"
            )
        return None
    if no_key and "target" in columns:
        raise PlanError(
            "--target names the expected answers, and --no-key does without: choose one"
        )
    name = Path(source).stem
    if not {"question", "target", "id"} & columns.keys() and Path(source).suffix not in _TABLES:
        bank = Bank.from_evidence(Evidence.from_logs(source), **columns, name=name)
        return bank.without_keys() if no_key else bank
    needs = ("question",) if no_key else ("question", "target")
    lacking = [column for column in needs if column not in columns]
    if lacking:
        hint = " (or --no-key, if nobody knows the answers)" * (lacking[0] == "target")
        raise PlanError(
            f"say which column of {source} holds the {lacking[0]}: --{lacking[0]} COL{hint}"
        )
    if no_key:
        return Bank.from_table(source, target=None, **columns, name=name)
    return Bank.from_table(source, **columns, name=name)


@probe.command()
@click.argument("folder", type=click.Path())
@click.option(
    "--samples",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Number of prompts to show.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed that draws the prompts to show.",
)
@click.option("--card", metavar="FILE", help="Write the bank card as Markdown.")
@json_option("the check")
def check(folder: str, samples: int, seed: int, card: str | None, json_path: str | None) -> None:
    """Check every prompt of the bank and grammar in FOLDER; exit status 1 if one is invalid.

    The check covers what a program can see: length, the question's wording, filled slots, and no
    component that gives the answer away. Whether a prompt still means the same, people decide in
    the review.
    """
    from groundfault.probes import Bank, Grammar
    from groundfault.probes.bank.rendering import check as run
    from groundfault.render import bank_card

    require_writable(card)
    require_writable(json_path)
    home = Path(folder)
    result = run(
        Bank.load(home / "bank.toml"),
        Grammar.load(home / "grammar.toml"),
        samples=samples,
        seed=seed,
    )
    if card:
        write_text(Path(card), bank_card.card(result))
    text = json.dumps(result.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if not write_json(text, json_path):
        for line in bank_card.lines(result):
            click.echo(line)
    sys.exit(0 if result.passed else 1)


probe.add_command(run)
probe.add_command(review)
probe.add_command(report)
probe.add_command(release)
probe.add_command(arena)
