"""``demo``: the main jobs on data that need no download."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import numpy as np

from groundfault.base.files import make_folder, write_bytes, write_text
from groundfault.base.long_work import Progress
from groundfault.cli.command import command
from groundfault.cli.output import Result
from groundfault.cli.settings import OutFolder, own_options
from groundfault.render import words
from groundfault.render.page import Page, Section

if TYPE_CHECKING:
    import polars as pl

    from groundfault.auditing.report import Report
    from groundfault.models import Question, Response
    from groundfault.modes.mode import Mode

EXAMPLES = 3
"""Examples of each kind that fit one screen beside the modes."""

NEVER_SEEN = "number_style = 'words'"
"""What no prompt of the model's training was like, as a rule; the audit is not told."""

MEANING = "numbers written out as words"


@command()
@own_options
def demo(
    *,
    of: Literal["audit", "compare", "agents", "label", "probe", "describe"] = "audit",
    out: OutFolder = "groundfault-demo",
    progress: Progress,
) -> Result:
    """Try it: audit 2,000 real answers of a small model.

    The demo works offline and takes seconds. The model never saw prompts of one kind in training,
    and the audit is not told which. You see the failure modes, examples of the first, and at the
    end the truth. --of shows another command on made-up data, with the lines to type.

    \b
    groundfault demo
    groundfault demo --of compare
    groundfault demo --of agents
    groundfault demo --of label
    groundfault demo --of probe
    groundfault demo --of describe

    Output
    ------
    of : NAME
        Job to show: audit, compare (two versions), agents (their runs), label (one example at a
        time), probe (wordings) or describe (failures in words).
    out : DIR
        Folder for the data and the report.
    """
    if of != "audit":
        return _show_commands(of, Path(out))
    from groundfault.auditing.flow import audit
    from groundfault.base.ledgers import DEFAULT
    from groundfault.core.evidence import Evidence
    from groundfault.render.audit_page import make_summary

    progress("reading 2,000 answers")
    table = Path(out) / "answers.parquet"
    write_bytes(table, read_table())
    evidence = Evidence.from_table(
        table, id="id", outcome="correct", positive_is_good=True, ignore=["answer"]
    )
    # a record of its own: nobody's evaluation was looked at
    report = audit(evidence, ledger=Path(out) / DEFAULT, progress=progress)
    progress("drawing the report")
    report.write(out)
    return Result(
        [make_summary(report, Path(out) / "report.html"), "", _look_closer(report, table)]
    )


def _show_commands(name: str, place: Path) -> Result:
    """Write the data of a demo, and print and run the commands that one would type."""
    from groundfault.cli.main import cli
    from groundfault.cli.settings_file import NO_FILE

    make_folder(place)
    told = tomllib.loads((files("groundfault.cli") / "data" / "demos.toml").read_text("utf-8"))[
        name
    ]
    click.echo(told["story"])
    _WRITERS[name](place)
    *typed, then = (
        shlex.split(line.format(out=shlex.quote(str(place))))
        for line in (*told["commands"], told["next"])
    )
    for arguments in typed:
        click.echo(f"\n$ groundfault {shlex.join(arguments)}")
        cli.main(arguments, prog_name="groundfault", standalone_mode=False, obj=NO_FILE)
    return Result([""], then=then)


def _write_versions(place: Path) -> None:
    import polars as pl

    old = pl.read_parquet(read_table())
    luck = pl.Series(np.random.default_rng(_SEED).random(len(old)))
    unseen, lookup = pl.col("number_style") == "words", pl.col("task") == "lookup"
    better, worse = unseen & (luck < 0.7), lookup & (luck < 0.3)
    correct = pl.when(better).then(True).when(worse).then(False).otherwise("correct")
    for name, table in (("old", old), ("new", old.with_columns(correct.alias("correct")))):
        table.drop("answer").write_parquet(place / f"{name}.parquet")


def _write_runs(place: Path) -> None:
    import polars as pl

    rng = np.random.default_rng(_SEED)
    rows = []
    for i in range(240):
        hasty = rng.random() < 0.3
        failed = bool(rng.random() < (0.8 if hasty else 0.2))
        steps: list[dict[str, object]] = [{"role": "user", "content": f"Pay invoice {i // 4}."}]
        for tool in ["pay" if hasty else "check", *["search"] * (2 + 2 * failed)]:
            call = {"id": "a", "function": {"name": tool, "arguments": "{}"}}
            steps.append({"role": "assistant", "tool_calls": [call]})
            steps.append({"role": "tool", "tool_call_id": "a", "content": "done"})
        rows.append((f"t{i // 4}", i % 4, int(failed), json.dumps(steps)))
    names = ["task", "trial", "error", "messages"]
    pl.DataFrame(rows, names, orient="row").write_parquet(place / "runs.parquet")


def _write_pool(place: Path) -> None:
    import polars as pl

    from groundfault.base.sheets import write_table

    rng, domains = np.random.default_rng(_SEED), ["contracts", "invoices", "letters", "dates"]
    kinds = rng.choice(domains, 400)
    passed = rng.random(400) < np.where(kinds == "dates", 0.5, 0.95)
    pool = {"id": [f"q{i}" for i in range(400)], "domain": kinds, "score": passed.astype(int)}
    write_table(pl.DataFrame(pool), place / "pool.csv")


def _write_answers(place: Path) -> None:
    from groundfault.probes.bank.bank import Bank
    from groundfault.probes.bank.grammar import Grammar
    from groundfault.probes.bank.rendering import probes

    lines = []
    for probe in probes(Bank.shipped(), Grammar.shipped()):
        falls = "shortcut" in probe.assignment and len(probe.task.id) % 2
        answer = probe.task.slots["shortcut"] if falls else probe.task.answer
        lines.append(json.dumps({"prompt": probe.prompt, "response": f"Answer: {answer}"}))
    write_text(place / "answers.jsonl", "\n".join(lines) + "\n")


_TELLS = {
    "the text writes a number as a word": r"(?i)\b(two|three|four|five|six|seven|eight|nine|zwei"
    r"|drei|vier|sechs|sieben|acht|neun|dos|tres|cuatro|cinco|seis|siete|ocho|nueve)\b",
    "the text says please": r"(?i)\b(please|bitte|por favor)\b",
}
"""Descriptions of the script, and the words by which it tells where each is true."""


class _Script:
    """Replies in place of a model: two properties, and where each is true of a prompt."""

    name = "script"

    async def answer(self, question: Question) -> Response:
        """Reply to a question of ``describe``, read from its layout."""
        from groundfault.models import Response

        prompt = question.messages[0]["content"]
        (*_, item), lines = _ITEM.findall(prompt), _LINE.findall(prompt)
        if not lines:
            return Response(json.dumps({"descriptions": [*_TELLS]}))
        told = {n: "yes" if re.search(_TELLS[line], item) else "no" for n, line in lines}
        return Response(json.dumps(told))


_ITEM = re.compile(r"^<<<\w+ task \d+>>>\n(.*?)\n<<<", re.S | re.M)
_LINE = re.compile(r"^(\d+)\. (.*)$", re.M)


def _write_replies(place: Path) -> None:
    import polars as pl

    from groundfault.auditing.describing import describe
    from groundfault.core.evidence import Evidence

    table = pl.read_parquet(read_table())[:_DESCRIBED].select("id", "prompt", "correct")
    table.write_parquet(place / "answers.parquet")
    evidence = Evidence.from_table(
        place / "answers.parquet", id="id", outcome="correct", positive_is_good=True
    )
    describe(evidence, _Script(), record=place / "replies.db")


_DESCRIBED = 400
"""Prompts that are described: each is a question, and the demo takes seconds."""
_SEED = 2026
"""Seed of everything that the demos make up."""

_WRITERS = {
    "compare": _write_versions,
    "agents": _write_runs,
    "label": _write_pool,
    "probe": _write_answers,
    "describe": _write_replies,
}
"""Who writes the data of each demo in data/demos.toml."""


def _look_closer(report: Report, table: Path) -> Page:
    """Show examples of the first mode, an explanation that does not hold up, and the truth."""
    import polars as pl

    from groundfault.render.mode_page import list_excerpts

    first = report.modes[0]
    sample = first.examples("failing", EXAMPLES) + first.examples("passing", EXAMPLES)
    polite = next(f for f in report.findings if f.name == "polite")
    rates = f"{words.rate(polite.full.on_rate)} are wrong, of the others "
    rates += words.rate(polite.full.off_rate)
    return Page(
        "demo",
        f"{words.count(first.n)} prompts: {first.meaning}",
        "The first failure mode: some of its prompts, and what the model answered",
        lead=list_excerpts(sample, first.rule),
        sections=(
            Section(
                "An explanation that does not hold up",
                f"Of the prompts that say please, {rates}. The difference may be chance.",
            ),
            Section("The truth", compare_with_truth(first, pl.read_parquet(table))),
        ),
        good=True,
    )


def read_table() -> bytes:
    """Return the table of 2,000 prompts and answers, as a Parquet file; see the README by it."""
    return (files("groundfault.cli") / "data" / "number_words.parquet").read_bytes()


def compare_with_truth(mode: Mode, table: pl.DataFrame) -> str:
    """Compare a mode of the demo's table with the kind of prompt that the model never saw."""
    import polars as pl

    unseen = table.select(pl.sql_expr(NEVER_SEEN).alias("unseen")).to_series()
    inside = mode.holds(table)
    both = int((inside & unseen).sum())
    return (
        f"The audit was not told this: in training the model never saw {MEANING} "
        f"({NEVER_SEEN}). {both / int(inside.sum()):.0%} of the {inside.sum():,} prompts of the "
        f"first failure mode are of that kind, and the mode covers {both / int(unseen.sum()):.0%} "
        f"of all {unseen.sum():,} such prompts."
    )
