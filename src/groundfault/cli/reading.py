"""Evidence, candidates, ledgers and words of the shell from the options of a command."""

from __future__ import annotations

import inspect
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from groundfault.base.ledger import Ledger
from groundfault.base.ledgers import EARLIER, find_ledger
from groundfault.base.long_work import Progress
from groundfault.cli.command import ARGUMENTS, Options
from groundfault.cli.output import echo_warnings
from groundfault.cli.settings import Flag, call
from groundfault.core.candidate import Candidate, Library
from groundfault.core.column_meaning import DirectionError, names_a_thing
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, PlanError
from groundfault.finders import Finder
from groundfault.readers.configurations import CONFIGURATION, split_source

GOOD, BAD = "--positive-is-good", "--positive-is-bad"
_FLAGS = {"model": "--model-column", "models": "--model", "positive_is_good": f"{GOOD}/{BAD}"}


def read_evidence(options: Options, progress: Progress | None = None) -> Evidence:
    """Read evidence: of the models that ``--model`` names, and rows of ``--where``.

    With ``--outcome`` the source is a table whose columns the options name; without it, the sources
    are logs.
    """
    return call(select_rows, options, read_sources(options, progress))


def read_sources(options: Options, progress: Progress | None = None) -> Evidence:
    """Read all evidence in the sources."""
    if options.get("repeats"):
        options = _take_for_repeats(options)
    if options["outcome"]:
        _refuse(
            options,
            Evidence.from_logs,
            Evidence.from_table,
            "is for logs and --outcome for tables: leave one of them out",
        )
        source = _choose_table(options)
        evidence: Evidence = call(Evidence.from_table, options, source)
        if isinstance(source, tuple) and not options["id"]:
            _refuse_unnamed_ids(evidence)
        return evidence
    _refuse(
        options,
        Evidence.from_table,
        Evidence.from_logs,
        "describes a table: name its outcome column too (--outcome)",
    )
    return call(Evidence.from_logs, options, *options["sources"], progress=progress)


def _take_for_repeats(options: Options) -> Options:
    """Return the options by which several sources are runs of one evaluation."""
    if not options["outcome"]:
        return options | {"conflicts": "keep"}
    if options["repeat"] or not options["id"]:
        raise InputError(
            "--repeats takes each table for a run of the same examples: name the column of their "
            "ids (--id), and leave --repeat out"
        )
    places = [split_source(source)[1] for source in options["sources"]]
    runs = tuple(f"run{number}={place}" for number, place in enumerate(places, 1))
    return options | {"sources": runs, "repeat": CONFIGURATION}


def select_rows(
    evidence: Evidence,
    *,
    models: Annotated[tuple[str, ...], Flag("--model")] = (),
    where: str | None = None,
) -> Evidence:
    """Select models and rows of evidence.

    Input
    -----
    models : NAME
        Use only the results of this model; repeatable.
    where : SQL
        Use only the rows for which this is true, such as "task = 'addition'".
    """
    if models:
        evidence = evidence.select_model(*models)
    return evidence.where(where) if where else evidence


def _refuse(
    options: Options, theirs: Callable[..., object], ours: Callable[..., object], why: str
) -> None:
    """Stop at an option that would be ignored: the audit would be of something else than meant."""
    taken = inspect.signature(ours).parameters
    for name, parameter in inspect.signature(theirs).parameters.items():
        is_theirs = parameter.kind is parameter.KEYWORD_ONLY and name not in taken
        if is_theirs and options.get(name) not in (None, (), parameter.default):
            raise InputError(f"{name_flag(name)} {why}")


def name_flag(name: str) -> str:
    """Return the flag of an option of evidence."""
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


def _choose_table(options: Options) -> str | tuple[str, ...]:
    """Return the one table, or the tables of several configurations, each with a name."""
    sources = tuple(options["sources"])
    names = [split_source(source)[0] for source in sources]
    if not any(names) and len(sources) == 1:
        return str(sources[0])
    if not all(names):
        raise InputError(
            "with --outcome name one table, or one directory of tables with the same columns; or "
            "give each of several a name, as configurations of one model: base=old.csv new=new.csv"
        )
    unpaired = bool(options.get("compare")) and not options["id"]
    named = options["model"] and options["repeat"] != CONFIGURATION
    if named or not (options["id"] or unpaired):
        raise InputError(
            "tables with names are compared example by example: name the column of their ids "
            "(--id), and leave --model-column out"
        )
    return sources


def _refuse_unnamed_ids(evidence: Evidence) -> None:
    """Say that rows are not paired; stop where a column is named like ids, which would pair them.

    Raises
    ------
    InputError
        If a column is named like ids.
    """
    for name in evidence.frame.columns:
        if names_a_thing(name) and name not in evidence.roles.ignore:
            flag = shlex.quote(name)
            raise InputError(
                f"{name!r} looks like a column of ids, which pair the rows of two tables: name it "
                f"(--id {flag}), or compare without pairs (--ignore {flag})"
            )
    click.echo("note: without --id no row is paired with a row of the other table", err=True)


def ask_orientation(error: DirectionError) -> None:
    """Stop, and print the whole command with each flag for the direction of outcomes.

    Raises
    ------
    InputError
        Always; the line begins with the reason.
    """
    context = click.get_current_context()
    arguments = context.meta.get(ARGUMENTS, ())
    command = shlex.join([*context.command_path.split(), *arguments])
    calls = [f"{command} {flag} {when}" for flag, (_, when) in error.choices.items()]
    raise InputError(f"{error.why}: {', or '.join(calls)}")


def read_candidates(
    *,
    candidate: tuple[str, ...] = (),
    candidates: str | None = None,
    declare: tuple[str, ...] = (),
    finders: str | None = None,
    library: str | None = None,
    missing: Literal["reject", "off", "drop"] = "reject",
) -> tuple[list[Candidate] | None, list[str | Finder] | None]:
    """Return named candidates and finders; both None where the default finders are to propose.

    Candidates
    ----------
    candidate : 'NAME: SQL'
        Test this rule of yours, such as 'long: n_words > 400'; repeatable.
    candidates : FILE
        Test the rules in a text, TOML or library file.
    declare : GLOB
        Judge the 0/1 columns whose names match, such as 'd__*'; repeatable.
    finders : NAMES
        Finders that propose candidates, such as thresholds,categories,text.
    library : FILE
        Judge the candidates frozen in this library, and no others.
    missing
        Where a rule is NULL: reject the rule, count the row as off it, or drop the row.
    """
    if library:
        names = {"declare": declare, "candidate": candidate, "candidates": candidates}
        for name, value in (names | {"finders": finders}).items():
            if value:
                raise PlanError(f"--library is judged as it is in the file: leave out --{name}")
        return list(Library.load(library)), []
    from groundfault.finders.columns import Declared, read_candidates as from_file

    named = [Candidate.from_text(text, missing=missing) for text in candidate]
    proposers: list[str | Finder] = [Declared(tuple(declare), missing=missing)] if declare else []
    named += from_file(candidates) if candidates else []
    proposers += split_names(finders)
    # None and not empty: an audit takes the default finders only where neither was chosen
    return (named, proposers) if named or proposers else (None, None)


def split_names(text: str | None) -> list[str]:
    """Return the names in a text that commas separate."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def name_ledger(ledger: str | None, no_ledger: bool) -> str | bool | None:
    """Return the ledger that options name, True for the usual one, or None without one."""
    if no_ledger and ledger:
        raise PlanError("--no-ledger does not go with --ledger")
    return None if no_ledger else ledger or True


def choose_ledger(
    *,
    ledger: str | None = None,
    no_ledger: bool = False,
    reopen: str | None = None,
    earlier: Sequence[str | Path] = EARLIER,
) -> Ledger | None:
    """Return the ledger to record in; None to keep no record.

    Output
    ------
    ledger : FILE|URL
        Record of looks at outcomes, and of labels, to resume from; default $GROUNDFAULT_LEDGER, or
        groundfault-ledger.db.
    no_ledger
        Record nothing; the result says so, and no label outlives an interruption.
    reopen : REASON
        Look at the same outcomes again in another way; the reason stays in every report.

    Other Parameters
    ----------------
    earlier : sequence of path
        As for `groundfault.base.ledgers.find_ledger`.

    Raises
    ------
    PlanError
        If a ledger or a reason is given together with --no-ledger.
    """
    if no_ledger:
        if ledger or reopen:
            raise PlanError("--no-ledger goes neither with --ledger nor with --reopen")
        return None
    with echo_warnings():
        return find_ledger(ledger or True, earlier=earlier)


def read_settings(pairs: Sequence[str]) -> dict[str, str]:
    """Return the names and values of ``--set NAME=VALUE``."""
    settings = {}
    for text in pairs:
        name, equals, value = text.partition("=")
        if not equals:
            raise PlanError(f"--set {text!r} is not of the form NAME=VALUE")
        settings[name] = value
    return settings


def read_value(text: str) -> str | int | float | bool | None:
    """Return a word as a number, true, false or none if it is one; else as text."""
    words: dict[str, bool | None] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_values(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the settings of ``--set NAME=VALUE``, each value as `read_value` takes it."""
    return {name: read_value(value) for name, value in read_settings(pairs).items()}


def read_program(options: Options) -> list[str]:
    """Return the program that scores cases (``--command``), and its arguments.

    Ask before anything is drawn or decided: a slip of the pen should not fix a plan.
    """
    text = options["program"]
    if not text:
        raise PlanError("--label cmd needs --command, the program that scores a case")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise PlanError(f"--command {text!r} cannot be read: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise PlanError(f"--command {text!r} names no program that can be run")
    return words
