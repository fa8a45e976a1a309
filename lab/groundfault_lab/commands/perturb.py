"""``probe perturb``, ``expect``, ``propose`` and ``keep``: more wordings, tests and tasks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from groundfault.base.files import write_text
from groundfault.base.long_work import Progress
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result
from groundfault.cli.settings import Count, Flag, OutFile, OutFolder, OutTable, Whole, own_options
from groundfault.errors import InputError
from groundfault.probes import Bank, Grammar
from groundfault.probes.bank.bank import SHIPPED
from groundfault.probes.running.runs import Runs
from groundfault.render.page import Number, Table, Words, tabulate
from groundfault.stats.intervals import wilson
from groundfault_lab.commands.models import get_model, model_options, writer_options

_CALLS = "calls.db"


def _write_bank(out: str, bank: Bank, grammar: Grammar) -> Result:
    """Write a bank, its grammar and a config into a folder that has none."""
    places = [Path(out) / name for name in ("bank.toml", "grammar.toml", "config.toml")]
    for place in places:
        if place.exists():
            raise InputError(f"{place} exists already; choose another folder, or move it away")
    bank.write(places[0])
    grammar.write(places[1])
    write_text(places[2], (SHIPPED / "config.toml").read_text(encoding="utf-8"))
    made = f"{len(bank)} tasks, {len(grammar)} wordings: {len(bank) * len(grammar):,} prompts"
    return Result(
        [made, *(f"wrote {place}" for place in places)], then=("lab", "probe", "check", out)
    )


@command()
@own_options
def perturb(
    folder: str,
    *,
    families: Annotated[tuple[str, ...], Flag("--family")] = (),
    seed: Whole = 0,
    out: OutFolder,
) -> Result:
    """Add typos, contractions, names and other changes to a bank.

    FOLDER has a bank, as groundfault lab probe init writes it. The new folder has the same tasks,
    a grammar of the changed wordings, and a config. A change that a question does not allow makes
    no prompt. Read some prompts with groundfault lab probe check before you ask them.

    Wordings: typos, misspellings, lower, upper, contractions, expansions, names, number_words,
    spaces, lines, options. Around the question: politeness, distractor, instruction, format.

    \b
    groundfault lab probe perturb bank/ --out perturbed/
    groundfault lab probe perturb bank/ --family typos --family instruction --out perturbed/

    Output
    ------
    families : NAME
        Family of changes; repeatable; by default all wordings, politeness and distractor.
    seed : N
        Seed that draws letters, names and orders.
    out : DIR
        Write the bank, the grammar and the config to this folder.
    """
    from groundfault_lab.probes.perturbations import WORDINGS, perturb as change

    bank, grammar = change(Bank.load(Path(folder) / "bank.toml"), families or None, seed=seed)
    made = _write_bank(out, bank, grammar)
    wanted = [name for name in families or WORDINGS if name in WORDINGS]
    counts = {name: sum(name in task.slots for task in bank) for name in wanted}
    said = ", ".join(f"{name} {count}" for name, count in counts.items())
    return replace(made, notes=[f"tasks reworded: {said}"] * bool(said))


@command()
@model_options
@own_options
def expect(
    tests: str,
    *,
    model: str,
    settings: tuple[str, ...] = (),
    count: Count = 50,
    seed: Whole = 0,
    record: OutFile | None = None,
    out: Annotated[OutTable, Flag("-o --out")],
    progress: Progress,
) -> Result:
    """Test if answers rise, fall, stay or change as they must.

    TESTS is a TOML file of templates with a lexicon: each test has a prompt, a changed prompt, and
    what the change must do to the answer. The model answers both. The table has a row for each
    filling, with the words in it as columns, so an audit says for which of them the tests fail.

    \b
    groundfault lab probe expect tests.toml --model openai/gpt-4o-mini -o results.parquet
    groundfault audit results.parquet --id id --outcome failed --null-outcome unparsed

    Output
    ------
    count : N
        Number of fillings of each test.
    seed : N
        Seed that draws the fillings.
    record : FILE
        Record all calls in this file, to go on after an interruption.
    out : FILE
        Write the table to this file: .parquet, .csv or .jsonl.
    """
    from groundfault.base.sheets import write_table
    from groundfault_lab.probes.expectations import read_expectations, run_expectations

    expectations, lexicon = read_expectations(tests)
    target = get_model(model=model, settings=settings)
    options: Options = {"temperature": 0, "record": record, "progress": progress}
    table = run_expectations(expectations, lexicon, target, count=count, seed=seed, **options)
    write_table(table, out)
    return Result(
        [
            _tabulate_tests(table),
            f"wrote {table.height:,} rows to {out}",
            _name_next_step(table, out, target.name),
        ]
    )


def _name_next_step(table: pl.DataFrame, out: str, model: str) -> str:
    """Name the audit of the tests or, if no pair of answers can be read, say why there is none."""
    unscored = table["failed"].null_count()
    if unscored < table.height:
        command = f"groundfault audit {out} --id id --outcome failed"
        return f"{command} --null-outcome unparsed" if unscored else command
    first = next(filter(None, table["response"]), None)
    if first is None:
        return f"{model} gave no answer, so there is nothing to audit"
    return f"no pair of answers can be read; one is {first[:80]!r}"


def _tabulate_tests(table: pl.DataFrame) -> Table:
    rows = (
        table.group_by("test", "expect", maintain_order=True)
        .agg(
            pl.len().alias("asked"),
            pl.col("failed").sum(),
            pl.col("failed").is_null().sum().alias("unscored"),
        )
        .to_dicts()
    )

    def rate(row: dict[str, Any]) -> str:
        scored = row["asked"] - row["unscored"]
        if not scored:
            return ""
        low, high = wilson(row["failed"], scored, 0.95)
        return f"{row['failed'] / scored:.0%} [{low:.0%}, {high:.0%}]"

    return tabulate(
        "Tests",
        rows,
        Words("test", lambda row: row["test"]),
        Words("the answer", lambda row: _SAID[row["expect"]]),
        Number("asked", lambda row: f"{row['asked']:,}"),
        Number("unscored", lambda row: f"{row['unscored']:,}"),
        Number("failed", lambda row: f"{row['failed']:,}"),
        Number("share with 95% interval", rate),
    )


_SAID = {
    "rises": "must rise",
    "falls": "must fall",
    "same": "must not change",
    "changes": "must change",
}


@command()
@writer_options("variants")
@own_options
def propose(
    runs: str,
    *,
    model: str,
    settings: tuple[str, ...] = (),
    count: Count = 3,
    tasks: Count = 20,
    out: OutFile,
    progress: Progress,
) -> Result:
    """Let a model write variants of the tasks that failed in RUNS.

    The file lists the variants with the key of their task. Read them, and set keep = true below
    those that ask the same; groundfault lab probe keep makes a bank of these. The model decides
    neither that a variant is valid nor that an answer is wrong.

    \b
    groundfault lab probe propose runs/ --model openai/gpt-4o --out variants.toml
    groundfault lab probe keep variants.toml --runs runs/ --reviewer ana --out near/

    Output
    ------
    count : N
        Number of variants of a task.
    tasks : N
        Largest number of tasks, those with most mismatches first.
    out : FILE
        Write the variants to this file.
    """
    from groundfault_lab.probes.variants import propose_variants, write_variants

    folder = Runs(Path(runs))
    target = get_model(model=model, settings=settings)
    options: Options = {"record": Path(f"{out}.{_CALLS}"), "progress": progress}
    options |= {"count": count, "tasks": tasks, "name": target.name}
    variants = propose_variants(folder.bank, folder.rows, target, **options)
    if not variants:
        raise InputError(f"{model} wrote no variant that can be read; try another model")
    write_variants(variants, out)
    of = len({variant.task for variant in variants})
    return Result([f"wrote {len(variants)} variants of {of} tasks to {out}; set keep = true in it"])


@command()
@own_options
def keep(variants: str, *, runs: str, reviewer: str, out: OutFolder) -> Result:
    """Make a bank of the variants in VARIANTS that a person kept.

    Each is a task of its own, with the key of the task it came from and the grammar of the runs. It
    is asked, reviewed and reported like every other task.

    \b
    groundfault lab probe keep variants.toml --runs runs/ --reviewer ana --out near/
    groundfault lab probe run near/config.toml --model openai/gpt-4o-mini

    Output
    ------
    runs : RUNS
        Runs that the variants came from.
    reviewer : NAME
        Name of the person who decided; it is written into the bank.
    out : DIR
        Write the bank, the grammar and a config to this folder.
    """
    from groundfault_lab.probes.variants import keep_variants, read_variants

    folder = Runs(Path(runs))
    bank = keep_variants(folder.bank, read_variants(variants), reviewer)
    grammar = folder.grammar.fitting({slot for task in bank for slot in task.slots})
    return _write_bank(out, bank, grammar)
