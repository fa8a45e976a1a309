"""``label code``: read runs, write notes and codes, and validate a judge of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from groundfault.cli import reading, shared
from groundfault.cli.command import Options, command
from groundfault.cli.labelling import Quit, run_until_stopped
from groundfault.cli.open_ import serve_desk, server_options
from groundfault.cli.output import Result
from groundfault.cli.settings import OutFile, Whole, call, derive_options
from groundfault.errors import InputError, PlanError
from groundfault.render.words import clean

if TYPE_CHECKING:
    from groundfault.coding import Coding
    from groundfault.review import Item, Session

_SHOWN = 300
"""Characters of a step or column that are shown at first: a screen has some ten of these."""


@dataclass(frozen=True, kw_only=True)
class CodingSettings:
    """Options of a coding beside the evidence.

    Labelling
    ---------
    coder : NAME
        Your name: read the next runs and write notes. Without it, see the counts.
    adjudicate
        Code the runs that others coded differently.
    browser
        Read in the browser, by keys. Needs --coder.
    failing : N
        Largest number of failing runs to draw at random.
    passing : N
        Largest number of passing runs to mix in.
    focus : KIND
        Draw half of the sample of one kind: mode:RULE, near:RULE, outliers, or unsure:COL by a
        judge's probability; counts are still those of all runs.
    show : COL
        Column to show in place of the steps; repeatable.
    store : FILE|URL
        Where notes are kept; by default the ledger of audits.

    Codes
    -----
    define : CODE=TEXT
        Define a code.
    rename : OLD=NEW
        Rename a code in all notes; an existing new name joins the two.
    suggest : HOW
        Suggest codes for the notes: tfidf by words, sentence by meanings, or by a model such as
        openai/gpt-4o-mini. A suggestion does not count until you accept it.
    accept : N[=CODE]
        Give the notes of suggestion N its code, or CODE.
    undo
        Take the last change of the codebook back.

    Judge
    -----
    prompt : CODE
        Print a question for a judge of this code; later labels validate the judge.
    validate_judge : CODE=COL|MODEL
        Compare the grades in this column, or of a model such as openai/gpt-4o-mini that is asked
        the question of --prompt, with the labels, and correct the share of the code.
    max_calls : N
        Largest number of calls of a model; answers are kept in calls.db.
    report : DIR
        Report whose failure modes the judge is compared in, one by one.

    Output
    ------
    export : FILE
        Write the codes and the coded runs to this file.
    to : TOOL
        Write them as a table (CSV, Parquet or JSON lines), as tasks for label-studio, as a module
        of scanners for Inspect Scout, or as tests for promptfoo that fail if a code comes back.
    """

    coder: str = ""
    adjudicate: bool = False
    browser: bool = False
    failing: Whole = 100
    passing: Whole = 0
    focus: str = ""
    show: tuple[str, ...] = ()
    store: str | None = None
    define: str | None = None
    rename: str | None = None
    suggest: str | None = None
    accept: str | None = None
    undo: bool = False
    prompt: str | None = None
    validate_judge: str | None = None
    max_calls: Whole = 5000
    report: str | None = None
    export: OutFile | None = None
    to: Literal["table", "label-studio", "scout", "promptfoo"] = "table"


@command(first="outcome id positive_is_good coder failing passing validate_judge json_path")
@shared.evidence_options
@shared.WHERE
@derive_options(CodingSettings)
@server_options
@shared.json_option("counts, saturation and validation")
def code(*, options: Options) -> Result:
    """Read runs blind, note what goes wrong, and count it.

    You see the steps of a run, or its question and answer; not its model, its outcome or the notes
    of others. Write a note, the step at which it first goes wrong, and codes that name the
    mistake. Each note is stored before the next run: quit at any moment, and run the same command
    again to go on. Counts have limits that hold whenever you stop.

    \b
    groundfault label code runs.parquet --id task --outcome error --coder ana
    groundfault label code runs.parquet --id task --outcome error \\
        --validate-judge 'repeats a call=judge'
    """
    from groundfault.auditing.report import Report
    from groundfault.coding import Coding
    from groundfault.exports.codes import export_codes
    from groundfault.render.transcript_page import (
        list_code_tables,
        tabulate_suggestions,
        tabulate_validation,
    )
    from groundfault.review.notes import read_place

    settings = call(CodingSettings, options)
    needs = {"browser": "coder", "adjudicate": "coder", "report": "validate_judge"}
    for one in needs:
        if getattr(settings, one) and not getattr(settings, needs[one]):
            raise PlanError(f"--{one} needs --{needs[one].replace('_', '-')}; name both or neither")
    coding = call(Coding, options, reading.read_evidence(options), columns=settings.show)
    if settings.define:
        coding.define(*_split_pair(settings.define, "define"))
    if settings.rename:
        coding.rename(*_split_pair(settings.rename, "rename"))
    if settings.accept:
        number, _, code = settings.accept.partition("=")
        accepted = coding.accept(read_place(number), code.strip())
        click.echo(f"accepted: {clean(accepted)}")
    if settings.undo:
        click.echo(f"taken back: {clean(coding.undo())}")
    if settings.prompt:
        return Result([clean(line) for line in coding.prompt(settings.prompt).split("\n")])
    if settings.suggest:
        coding.suggest(settings.suggest, **_list_calling(settings))
        return Result([tabulate_suggestions(coding.suggestions())])
    if settings.browser:
        _code_in_browser(coding, settings, options)
        return Result()
    status = 0
    if settings.coder:
        status = run_until_stopped(lambda: write_notes(coding, settings))
    outline = list(list_code_tables(coding))
    data: dict[str, object] = {"counts": coding.counts(), "unseen": coding.saturation()._asdict()}
    if settings.validate_judge:
        name, judge = _split_pair(settings.validate_judge, "validate-judge")
        modes = Report.load(settings.report).modes if settings.report else ()
        grades: Any = judge
        if judge not in coding.evidence.frame.columns and {*"/:"} & {*judge}:
            grades = coding.judge(name, judge, **_list_calling(settings))
        checked = coding.validate(name, grades, [mode.rule for mode in modes])
        outline, data = tabulate_validation(checked), {"validation": checked}
    if settings.export:
        click.echo(export_codes(coding, settings.to, settings.export), err=True)
    return Result(outline, msgspec.to_builtins(data), status)


def _list_calling(settings: CodingSettings) -> dict[str, Any]:
    announce = partial(click.echo, err=True)
    return {"record": "calls.db", "max_calls": settings.max_calls, "announce": announce}


def _code_in_browser(coding: Coding, settings: CodingSettings, options: Options) -> None:
    """Serve a page that shows run after run, until Ctrl-C."""
    from groundfault.workbench.serving import require_web

    require_web()
    from groundfault.workbench.desks import ReviewDesk
    from groundfault.workbench.opened_report import OpenedReport

    coder, adjudicate = settings.coder, settings.adjudicate
    desk = ReviewDesk(lambda: coding.session(coder, adjudicate=adjudicate), coding)
    serve_desk(options, OpenedReport(Path(options["sources"][0]), review=desk))


def write_notes(coding: Coding, settings: CodingSettings) -> None:
    """Show run after run and take notes, until the end; raise `Quit` at q."""
    session = coding.session(settings.coder, adjudicate=settings.adjudicate)
    while (item := session.item) is not None:
        click.echo(f"\nrun {session.total - session.remaining + 1} of {session.total}")
        _show_run(item, _SHOWN)
        while (note := _ask("note ([b]ack, [a]ll of the texts, [q]uit)", session)) == "a":
            _show_run(item, None)
        if note == "b":
            session.back()
            continue
        step = click.prompt("first wrong step", default="", show_default=False)
        known = [*coding.codes]
        listed = ", ".join(f"{i} {clean(name)}" for i, name in enumerate(known, 1))
        question = f"codes, by commas ({listed})" if known else "codes, by commas"
        words = click.prompt(question, default="", show_default=False)
        try:
            fields = coding.store.kind.read_answers({"step": step, "codes": words}, known)
            session.decide(note=note, **fields)
        except InputError as error:
            click.echo(str(error))


def _ask(text: str, session: Session) -> str:
    before = session.previous.note if session.previous else ""
    reply = str(click.prompt(text, default=before, show_default=bool(before))).strip()
    if reply == "q":
        raise Quit
    return reply


def _show_run(item: Item, most: int | None) -> None:
    for head, text in item.headed_texts:
        # an escape sequence in a run could hide or rewrite what the person is asked to read
        body = text if most is None or len(text) <= most else f"{text[:most]} ..."
        lines = "\n    ".join(map(clean, body.split("\n")))
        click.echo(f"  {clean(head)}: {lines}")


def _split_pair(text: str, flag: str) -> tuple[str, str]:
    left, _, right = text.partition("=")
    if not (left.strip() and right.strip()):
        raise PlanError(f"--{flag} {text!r} needs two parts with = between them")
    return left.strip(), right.strip()
