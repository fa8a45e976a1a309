"""``probe``: targeted tests from a frozen task bank and a grammar of prompt components."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated, get_args

import click

from groundfault.base.files import write_text
from groundfault.base.long_work import Progress
from groundfault.cli import shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result, require_writable
from groundfault.cli.settings import Count, Flag, OutFile, OutFolder, Whole, call, own_options
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, PlanError
from groundfault.models import Target
from groundfault.probes import Bank, Grammar
from groundfault.probes.bank.bank import SHIPPED
from groundfault.probes.running.answers import Signal
from groundfault.probes.running.config import Config
from groundfault.probes.running.runs import ProbeRow, Runs
from groundfault.render import make_outline, to_markdown
from groundfault.render.page import Table, make_table
from groundfault_lab.commands.models import get_model, model_options
from groundfault_lab.probes.checking import check as check_bank
from groundfault_lab.probes.families import generate

_TABLES = (".csv", ".tsv", ".parquet", ".arrow", ".ipc", ".feather")


@command(first="generated source question target no_key grammar_file case_folder modes")
@shared.step_of_case(
    "groundfault_lab.commands.probe:begin_probe",
    *"modes pairs question target grammar_file".split(),
    source="folder",
)
@own_options
def init(
    folder: str | None = None,
    *,
    generated: int | None = None,
    seed: Whole = 0,
    source: Annotated[str | None, Flag("--from")] = None,
    question: str | None = None,
    target: str | None = None,
    no_key: bool = False,
    id: str | None = None,
    family: str | None = None,
    rule: str | None = None,
    grammar_file: Annotated[str | None, Flag("--grammar")] = None,
    modes: Annotated[tuple[Count, ...], Flag("--mode")] = (),
    pairs: Count = 20,  # noqa: ARG001  (of a case alone)
) -> Result:
    """Write a bank, a grammar and a config into FOLDER.

    They are examples, with comments. With --from the bank has the questions and expected answers of
    a table, whose columns you name, or of an evaluation log. The grammar then omits components that
    such tasks cannot fill, such as a tempting wrong answer. With --no-key no answers are expected:
    each task is asked in its base wording first, and an answer that differs from that one is a
    signal. With --case the bank has fresh tasks of a case: some inside a failure mode, each with
    the task outside that is most like it.

    \b
    groundfault lab probe init bank/
    groundfault lab probe init big/ --generated 900 --seed 1
    groundfault lab probe init mine/ --from results.parquet --question question --target answer
    groundfault lab probe init open/ --from own.csv --question question --no-key --rule integer
    groundfault lab probe init --case case/ --mode 1 --question question --target answer

    Tasks
    -----
    generated : N
        Write a bank of N tasks made from templates, not the 18 written by hand.
    seed : N
        Seed of a generated bank.
    source : FILE
        Table or log with questions of your own.
    question : COL
        Column of a table with the questions.
    target : COL
        Column of a table with the expected answers.
    no_key
        Compare answers across wordings, not with expected ones.
    id : COL
        Column of task ids; by default tasks are numbered.
    family : COL
        Column with the kind of task.
    rule : NAME
        Equivalence rule of all tasks; by default chosen by the form of each answer.

    Wordings
    --------
    grammar_file : FILE
        Grammar of the wordings, in place of the one that is shipped.

    Case
    ----
    modes : N
        Number of a failure mode of the case; repeatable, default those that are confirmed.
    pairs : N
        Largest number of pairs of tasks for each mode.
    """

    if modes:
        raise PlanError("--mode chooses failure modes of a case: name it with --case")
    assert folder is not None
    require_writable(folder, directory=True)
    places = [Path(folder) / name for name in ("bank.toml", "grammar.toml", "config.toml")]
    existing = [place for place in places if place.exists()]
    if existing:
        raise InputError(f"{existing[0]} exists already; choose another folder, or move it away")
    columns = {"question": question, "target": target, "id": id, "family": family, "rule": rule}
    bank = _read_bank(source, columns, no_key=no_key)
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
    wrote = [f"wrote {place}" for place in places]
    return Result(wrote, then=("lab", "probe", "check", str(folder)))


def begin_probe(folder: str, options: Options) -> Result:
    """Write the tasks of a case's modes, and how they are asked."""
    from groundfault.case.case import Case
    from groundfault.case.probing import open_probe

    lacking = [name for name in ("question", "target") if options[name] is None]
    if lacking:
        raise PlanError(f"say which column of the case holds the {lacking[0]}: --{lacking[0]} COL")
    case, file = Case(folder), options["grammar_file"]
    call(case.probe, options, grammar=None if file is None else Grammar.load(file))
    bank, grammar = open_probe(case)
    prompts = len(bank) * len(grammar)
    wrote = f"{len(bank)} tasks in pairs, {len(grammar)} wordings: {prompts:,} prompts"
    return Result([wrote], then=("lab", "probe", "run", "--case", folder, "--model", "NAME"))


def _read_bank(source: str | None, names: dict[str, str | None], *, no_key: bool) -> Bank | None:
    """Read the bank of a table, if its columns are named, or of logs."""

    columns = {name: value for name, value in names.items() if value is not None}
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


@command()
@own_options
@shared.json_option("the check")
def check(
    folder: str, *, samples: Whole = 3, seed: Whole = 0, card: OutFile | None = None
) -> Result:
    """Check every prompt of the bank and grammar in FOLDER.

    The exit status is 1 if one is invalid. The check covers what a program can see: length, the
    question's wording, filled slots, and no component that gives the answer away. Whether a prompt
    still means the same, people decide in the review.

    Output
    ------
    samples : N
        Number of prompts to show.
    seed : N
        Seed that draws the prompts to show.
    card : FILE
        Write the bank card as Markdown.
    """
    home = Path(folder)
    bank, grammar = Bank.load(home / "bank.toml"), Grammar.load(home / "grammar.toml")
    result = check_bank(bank, grammar, samples=samples, seed=seed)
    if card:
        write_text(Path(card), to_markdown(result))
    return Result([make_outline(result)], result.to_dict(), int(not result.passed))


@command()
@shared.step_of_case(
    "groundfault_lab.commands.probe:run_probe",
    *"model settings quiet json_path".split(),
    source="config",
)
@model_options
@own_options
@shared.json_option("the counts")
def run(
    config: str | None = None,
    *,
    model: str,
    settings: tuple[str, ...] = (),
    out: OutFolder | None = None,
    quiet: bool = False,
    progress: Progress,
) -> Result:
    """Ask a model the prompts of CONFIG within its budget.

    Every policy runs with every seed. Each answer is recorded before it counts. Interrupt at any
    moment, and run the same command again to go on: no prompt is asked twice, and all files are as
    without the interruption.

    \b
    groundfault lab probe run bank/config.toml --model openai/gpt-4o-mini
    groundfault lab probe run bank/config.toml --model replay:calls.jsonl --out runs/
    groundfault lab probe run --case case/ --model openai/gpt-4o-mini

    Output
    ------
    out : DIR
        Folder of the runs; by default runs, beside CONFIG.
    quiet
        Print errors only.
    """
    from groundfault.probes.running.run import run as ask

    assert config is not None
    # a config with a mistake is named before what the model lacks, such as a library or a key
    Config.load(config)
    options = {"model": model, "settings": settings, "quiet": quiet, "progress": progress}
    return _ask_prompts(
        lambda target: ask(config, target, out=out, progress=progress),
        options,
        lambda runs: ("label", "review", str(runs.folder)),
    )


def run_probe(folder: str, options: Options) -> Result:
    """Ask the model of a case its tasks in other words."""
    from groundfault.case.case import Case

    case = Case(folder)
    return _ask_prompts(
        lambda target: case.ask(target, progress=options["progress"]),
        options,
        lambda _: ("label", "review", "--case", folder, "--reviewer", "NAME"),
    )


def _ask_prompts(
    ask: Callable[[Target], Runs],
    options: Options,
    name_step: Callable[[Runs], tuple[str, ...]],
) -> Result:
    """Ask a model all prompts that are left, and count the answers.

    Parameters
    ----------
    ask : callable
        Asks a target.
    options : dict
        ``model``, ``settings`` and ``quiet`` of `run`.
    name_step : callable
        Returns the words of the next command.
    """
    target = call(get_model, options)
    try:
        runs = ask(target)
    except KeyboardInterrupt:
        click.echo(
            "stopped; what was answered is on record: run the same command again to go on", err=True
        )
        sys.exit(130)
    rows = [row for row in runs.rows if row.model == target.name]
    counts = [
        _counts(list(each)) for _, each in groupby(rows, key=lambda row: (row.policy, row.seed))
    ]
    others = [{"asked": asked, "answered": answered} for asked, answered in runs.other_models]
    content = {"runs": str(runs.folder), "model": target.name, "counts": counts}
    data = content | {"other_models": others}
    if options["quiet"]:
        return Result(data=data)
    return Result(_outline_runs(runs, counts), data, then=name_step(runs))


def _outline_runs(runs: Runs, counts: list[dict[str, object]]) -> Iterator[str | Table]:

    heads = [name.replace("mismatched_keys", "keys") for name in counts[0]] if counts else []
    cells = [tuple(map(str, each.values())) for each in counts]
    yield make_table("Runs", "tnnnnnnnn"[: len(heads)], heads, cells)
    yield (
        "keys: different prompts among the mismatches; "
        "a mismatch is an error only if a person confirms it"
    )
    prompts, valid = runs.manifest["prompts"], runs.manifest["valid"]
    if valid < prompts:
        yield (
            f"{prompts - valid:,} of {prompts:,} prompts are invalid and were not asked: "
            "groundfault lab probe check says why"
        )


def _counts(rows: list[ProbeRow]) -> dict[str, object]:

    signals = Counter(row.signal for row in rows)
    keys = {row.key for row in rows if row.signal == "mismatch"}
    return {
        "policy": rows[0].policy,
        "seed": rows[0].seed,
        "queries": len(rows),
        **{signal: signals[signal] for signal in get_args(Signal)},
        "mismatched_keys": len(keys),
    }
