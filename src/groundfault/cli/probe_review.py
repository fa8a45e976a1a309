"""``label review``: people decide, blind, which responses are failures of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from groundfault.cli import shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result
from groundfault.cli.settings import Flag, OutFile, call, derive_options
from groundfault.errors import InputError, PlanError
from groundfault.render.words import clean, plural

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import ReviewedRuns, ReviewProgress
    from groundfault.review import Decision, Item, Session
    from groundfault.review.decision import ReviewQuestion, Role

_HELP = (
    "Unsure leaves the item to others. Every decision is kept at once; b goes back to change one."
)
# characters of a text that are shown at first: some responses repeat themselves for pages
_MAX_LENGTH = 8000
# columns: longer lines are hard to read
_WIDTH = 100


def show_items(
    session: Session, console: Console | None = None, key: Callable[[], str] | None = None
) -> None:
    """Show a reviewer their items until all are decided or they quit.

    Parameters
    ----------
    session : Session
    console : Console, optional
    key : callable, optional
        Returns the next key that is pressed; by default from the terminal.

    Raises
    ------
    InputError
        If there is no terminal, or the store cannot be written to.
    """
    console = console or Console(highlight=False)
    read_key = key or _key
    while session.item is not None:
        if not _decide(session, console, read_key):
            break
    console.print()
    ending = (
        "all are decided"
        if not session.remaining
        else f"{plural(session.remaining, 'item')} left: run the same command again"
    )
    console.print(Text(f"{plural(session.total, 'item')}; {ending}"))


def _decide(session: Session, console: Console, read_key: Callable[[], str]) -> bool:
    """Decide one item; return False to quit."""
    from groundfault.review.decision import QUESTIONS, find_open
    from groundfault.review.queue import GUIDANCE

    item = session.item
    assert item is not None
    if console.is_terminal:
        console.clear()
    _show(session, item, console)
    answers: dict[str, str] = {}
    note = session.previous.note if session.previous else ""
    while (question := find_open(answers)) is not None:
        words = QUESTIONS[question].words
        _prompt(QUESTIONS[question], item, console)
        pressed = read_key().lower()
        console.print(Text(words.get(pressed, ""), style="bold"))
        if pressed in words:
            answers[question] = words[pressed]
        elif pressed == "q":
            return False
        elif pressed == "s":
            session.skip()
            return True
        elif pressed == "b" and answers:
            answers.popitem()
        elif pressed == "b":
            if session.back():
                return True
            console.print("this is the first item")
        elif pressed == "t":
            note = click.prompt("note", default=note, show_default=bool(note))
        elif pressed == "a":
            _show_texts(item, console)
        else:
            for line in (*GUIDANCE, _HELP):
                console.print(Padding(Text(line), (0, 0, 0, 2)), width=_width(console))
    session.decide(**answers, note=note)
    return True


def _show(session: Session, item: Item, console: Console) -> None:
    who = "adjudication, " if session.role == "adjudicator" else ""
    title = Text(clean(f"{who}{session.total - session.remaining} of {session.total} decided"))
    console.print(Rule(title, align="left"), width=_width(console))
    _show_texts(item, console, _MAX_LENGTH)
    if session.previous is not None:
        console.print(Text(f"you said: {_describe(session.previous)}", style="italic"))
    console.print(Rule(), width=_width(console))


def _show_texts(item: Item, console: Console, max_length: int | None = None) -> None:
    """Print the texts of an item, cut or whole."""
    from groundfault.workbench.desks import shorten

    for head, text in item.headed_texts:
        # as Text, never as markup: a response may contain "[red]" or control characters
        console.print(Text(head, style="bold cyan"))
        body = shorten(text, max_length or len(text), "; a shows all")
        console.print(Padding(Text(body), (0, 0, 0, 2)), width=_width(console))


def _prompt(question: ReviewQuestion, item: Item, console: Console) -> None:
    keys = ", ".join(f"{key} {word}" for key, word in question.words.items())
    console.print(Text(question.word(item.extracted), style="bold"))
    console.print(Text(f"  {keys}   |   b back, s skip, t note, q quit, ? help > "), end="")


def _describe(decision: Decision) -> str:
    from groundfault.review.decision import SAID

    answers = {name: clean(getattr(decision, name) or "") for name in SAID}
    return "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in answers.items() if text)


def _width(console: Console) -> int:
    return min(console.width, _WIDTH)


def _key() -> str:
    try:
        return click.getchar() or "q"
    except (EOFError, KeyboardInterrupt):
        return "q"
    except OSError:
        raise InputError(
            "a review needs a terminal; without one, --export a sheet and --import it filled in"
        ) from None


SheetFormat = Literal["csv", "jsonl", "labelstudio"]
_FORMATS: dict[str, SheetFormat] = {".csv": "csv", ".jsonl": "jsonl", ".json": "labelstudio"}


@dataclass(frozen=True, kw_only=True)
class ReviewSettings:
    """Options of a review.

    Review
    ------
    reviewer : NAME
        Your name; not needed for --status and --agreement.
    adjudicate
        Decide items that reviewers dispute and that you have not reviewed.
    split : A,B
        Divide the items among these reviewers, each item to one.

    Sheets
    ------
    export : FILE
        Write your open items as a sheet, to fill in elsewhere.
    format
        Format of the sheet; by default from its name.
    sheet : FILE
        Read a sheet that was filled in; an invalid row rejects the whole sheet.

    Output
    ------
    status
        Show how far the review is.
    agreement
        Show how far reviewers agree, with 95% intervals.
    unblind
        Show the hidden fields; later decisions are marked. Needs --reason.
    reason : TEXT
        Reason for --unblind; it is recorded.
    """

    reviewer: str = ""
    adjudicate: bool = False
    split: str | None = None
    export: OutFile | None = None
    format: SheetFormat | None = None
    sheet: Annotated[str | None, Flag("--import")] = None
    status: bool = False
    agreement: bool = False
    unblind: bool = False
    reason: str | None = None
    json_path: str | None = None

    def __post_init__(self) -> None:
        others = {"--status": self.status, "--agreement": self.agreement, "--unblind": self.unblind}
        sheets = {"--export": self.export, "--import": self.sheet}
        acts = [flag for flag, act in {**sheets, **others}.items() if act]
        if len(acts) > 1:
            raise PlanError(f"{' and '.join(acts[:2])} do not go together: one at a time")
        # reading the state of a review needs no name: whoever looks decides nothing
        if not (self.status or self.agreement or self.reviewer):
            raise PlanError("say who you are: --reviewer NAME")
        if self.json_path and not any(others.values()):
            raise PlanError("--json goes with --status, --agreement or --unblind")
        if self.format and not self.export:
            raise PlanError("--format goes with --export")
        if self.reason and not self.unblind:
            raise PlanError("--reason goes with --unblind")
        if self.split and (acts and not self.export):
            raise PlanError("--split is fixed with the first session or export")


@command(first="reviewer adjudicate export sheet status agreement store json_path")
@click.argument("runs", type=click.Path(), required=False)
@shared.step_of_case(
    "groundfault.cli.probe_review:review_probe",
    *"reviewer adjudicate split export format sheet status agreement unblind reason".split(),
    "json_path",
    source="runs",
)
@derive_options(ReviewSettings)
@shared.store_option
@shared.json_option("what is shown")
def review(runs: str, *, json_path: str | None, options: Options) -> Result:
    """Decide blind which answers in RUNS are wrong.

    You review the responses that differ from their key, with hidden controls among them. You see
    the task, the prompt, the response, the expected answer and the extracted answer; not the model,
    the policy, the signal, or other reviewers' decisions. Press one key for each answer. Every
    decision is stored at once: quit at any time, and run the command again to continue. The list
    of items is sealed before the first decision.

    \b
    groundfault label review runs/ --reviewer ana
    groundfault label review runs/ --reviewer ben --export sheet.csv
    groundfault label review runs/ --reviewer cy --adjudicate
    groundfault label review --case case/ --reviewer ana
    """
    from groundfault.probes.review.reviewed_runs import ReviewedRuns

    options["json_path"] = json_path
    return review_runs(lambda: ReviewedRuns(runs, options["store"]), options)


def review_probe(folder: str, options: Options) -> Result:
    """Review the answers of the model of a case."""
    from groundfault.case.case import Case

    return review_runs(lambda: Case(folder).review, options)


def review_runs(open_review: Callable[[], ReviewedRuns], options: Options) -> Result:
    """Carry out the options of `review`."""
    from groundfault.probes.review.reviewed_runs import ReviewProgress
    from groundfault.render.agreement_table import tabulate_agreement
    from groundfault.review.decision import summarize_agreement

    settings = call(ReviewSettings, options)
    audit = open_review()
    if settings.status:
        progress = ReviewProgress.of(audit)
        return Result(_outline_status(progress), msgspec.to_builtins(progress))
    if settings.agreement:
        agreement = summarize_agreement(audit.decisions, seed=audit.queue.seed)
        table = tabulate_agreement(agreement)
        return Result([table] if table.rows else [table.note], agreement)
    if settings.unblind:
        rows = audit.unblind(settings.reviewer, settings.reason or "")
        return Result(_outline_hidden(rows), msgspec.to_builtins(rows))
    return Result(_work(audit, settings))


def _work(audit: ReviewedRuns, settings: ReviewSettings) -> Iterator[str]:
    """Hold a session, or read or write a sheet in its stead."""
    from groundfault.review import Session, open_items, sheets
    from groundfault.review.decision import check_name, select_changes

    me, split = check_name(settings.reviewer), settings.split
    queue = audit.seal([name.strip() for name in split.split(",")] if split else None)
    if settings.export:
        format = settings.format or _FORMATS.get(Path(settings.export).suffix)
        if format is None:
            raise PlanError("say --format csv, jsonl or labelstudio")
        items = open_items(queue, audit.decisions, me, adjudicate=settings.adjudicate)
        for place in sheets.write(items, settings.export, format):
            yield f"wrote {place}"
        yield f"{plural(len(items), 'item')}; fill in the answers and read them with --import"
    elif settings.sheet:
        role: Role = "adjudicator" if settings.adjudicate else "reviewer"
        mine = _may_decide(audit, me, settings.adjudicate)
        decisions = sheets.read(settings.sheet, {item.id: item for item in mine}, me, role)
        # somebody whose import was killed reads the sheet again: what stands is no revision
        news = select_changes(decisions, audit.decisions)
        if news:
            audit.store.add(news)
        n_old = len(decisions) - len(news)
        repeats = f"; {n_old:,} of the sheet stood already" if n_old else ""
        yield f"kept {plural(len(news), 'decision')}{repeats}"
    else:
        show_items(Session(queue, audit.store, me, adjudicate=settings.adjudicate))


def _may_decide(audit: ReviewedRuns, me: str, adjudicate: bool) -> list[Item]:
    """Return items open to this person, and those they decided in the same role and may revise."""
    from groundfault.review import open_items

    queue, decisions = audit.queue, audit.decisions
    role = "adjudicator" if adjudicate else "reviewer"
    before = {d.item for d in decisions if d.reviewer == me and d.role == role}
    open_ids = {item.id for item in open_items(queue, decisions, me, adjudicate=adjudicate)}
    return [item for item in queue.items if item.id in before | open_ids]


def _outline_status(progress: ReviewProgress) -> Iterator[str]:
    settings = progress.settings
    among = f", split among {', '.join(settings.split)}" if settings.split else ""
    each = plural(settings.reviewers, "reviewer")
    yield f"{plural(progress.items, 'item')} by {settings.unit}, {each} each{among}"
    for name, count in progress.reviewers.items():
        yield f"  {name}: {plural(count, 'item')}"
    for name, count in progress.adjudicators.items():
        yield f"  {name} (adjudicator): {plural(count, 'item')}"
    yield (
        f"{progress.settled} settled, {progress.adjudicated} adjudicated, "
        f"{progress.disputed} disputed, {progress.waiting} waiting"
    )
    yield f"{plural(progress.decisions, 'decision')}, {progress.revised} of them revised later"
    if progress.unblinded:
        yield f"{plural(progress.unblinded, 'decision')} made after unblinding, and marked"
    yield f"kept in {progress.store}"


def _outline_hidden(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        fields = [
            f"{name} {row[name]}" for name in ("model", "policy", "seed", "query", "key", "signal")
        ]
        yield f"{row['item'][:12]}  {', '.join(fields)}"
    yield "unblinded: this is on record, and decisions from here on are marked"
