"""Evidence, candidates and plans from the options of a command."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from typing import Any

from groundfault.base.progress import Progress
from groundfault.cli.orientation import require_orientation
from groundfault.cli.settings import call
from groundfault.core.candidate import Candidate, Library
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.roles import LISTS
from groundfault.errors import InputError, PlanError
from groundfault.readers.configurations import split_source

_OF_TABLES = (
    "id",
    "model_column",
    "repeat",
    "status",
    "null_outcome",
    "positive_is_good",
    "instrument",
)
_OF_LOGS = ("scorer", "disagreement", "every_scorer", "reader", "mapping", "scale")


def read_evidence(options: dict[str, Any], progress: Progress | None = None) -> Evidence:
    """Evidence from the options: of the models that ``--model`` names, and rows of ``--where``.

    With ``--outcome`` the source is a table whose columns the options name; without it, the sources
    are logs.
    """
    return select_rows(read_sources(options, progress), options)


def read_sources(options: dict[str, Any], progress: Progress | None = None) -> Evidence:
    """All evidence in the sources."""
    return _from_table(options) if options["outcome"] else _from_logs(options, progress)


def select_rows(evidence: Evidence, options: dict[str, Any]) -> Evidence:
    """Of some evidence the models that ``--model`` names, and the rows of ``--where``."""
    if options.get("models"):
        evidence = evidence.select_model(*options["models"])
    return evidence.where(options["where"]) if options.get("where") else evidence


def _from_table(options: dict[str, Any]) -> Evidence:
    # an option that would be ignored is an error: the audit would be of something else than meant
    misplaced = [name for name in _OF_LOGS if options.get(name)]
    if misplaced:
        raise InputError(
            f"{_flag(misplaced[0])} is for logs and --outcome for tables: leave one of them out"
        )
    source = _choose_table(options)
    if options["positive_is_good"] is None:
        require_orientation(options["outcome"], one_is_pass=False)
    return Evidence.from_table(
        source,
        outcome=options["outcome"],
        id=options["id"],
        model=options["model_column"],
        repeat=options["repeat"],
        group=options["group"],
        split=options["split"],
        status=options["status"],
        positive_is_good=options["positive_is_good"],
        null_outcome=options["null_outcome"],
        **{name: options.get(name, ()) for name in (*LISTS, "instrument", "count_as_failed")},
    )


def _choose_table(options: dict[str, Any]) -> str | tuple[str, ...]:
    """The one table, or the tables of several configurations, each with a name."""
    sources = tuple(options["sources"])
    names = [split_source(source)[0] for source in sources]
    if not any(names) and len(sources) == 1:
        return str(sources[0])
    if not all(names):
        raise InputError(
            "with --outcome name one table, or one directory of tables with the same columns; or "
            "give each of several a name, as configurations of one model: base=old.csv new=new.csv"
        )
    if options["model_column"] or not options["id"]:
        raise InputError(
            "tables with names are compared example by example: name the column of their ids "
            "(--id), and leave --model-column out"
        )
    return sources


def _from_logs(options: dict[str, Any], progress: Progress | None) -> Evidence:
    misplaced = [name for name in _OF_TABLES if options.get(name) not in (None, ())]
    if misplaced:
        raise InputError(
            f"{_flag(misplaced[0])} describes a table: name its outcome column too (--outcome)"
        )
    return Evidence.from_logs(
        *options["sources"],
        scorer=options["scorer"] or None,
        disagreement=options.get("disagreement") or None,
        reader=options["reader"],
        map=options["mapping"],
        scale=options["scale"],
        conflicts=options["conflicts"],
        group=options.get("group"),
        split=options.get("split"),
        **{name: options.get(name, ()) for name in (*LISTS, "count_as_failed")},
        progress=progress,
    )


def _flag(name: str) -> str:
    names = {"mapping": "--map", "positive_is_good": "--positive-is-good/--positive-is-bad"}
    return names.get(name, "--" + name.replace("_", "-"))


def read_plan(options: dict[str, Any]) -> Plan:
    """Return the plan of a command with `plan_options`."""
    return call(Plan, options)


def read_candidates(options: dict[str, Any]) -> tuple[list[Candidate] | None, list[Any] | None]:
    """Named candidates and finders; both None where the default finders are to propose."""
    if options["library"]:
        mixed = [o for o in ("declare", "candidate", "candidate_file", "finders") if options[o]]
        if mixed:
            raise PlanError(
                "--library is judged as it is in the file: leave out "
                f"--{mixed[0].replace('_file', 's')}"
            )
        return list(Library.load(options["library"])), []
    from groundfault.finders.declared import Declared
    from groundfault.finders.declared import read_candidates as from_file

    candidates = [
        Candidate.from_text(text, missing=options["missing"]) for text in options["candidate"]
    ]
    if options["candidate_file"]:
        candidates += from_file(options["candidate_file"])
    finders: list[Any] = (
        [Declared(tuple(options["declare"]), missing=options["missing"])]
        if options["declare"]
        else []
    )
    finders += [name.strip() for name in (options["finders"] or "").split(",") if name.strip()]
    # None and not empty: an audit takes the default finders only where neither was chosen
    if not candidates and not finders:
        return None, None
    return candidates, finders


def read_settings(pairs_text: Sequence[str]) -> list[tuple[str, str]]:
    """The names and values of ``--set NAME=VALUE``."""
    pairs = []
    for text in pairs_text:
        name, equals, value = text.partition("=")
        if not equals:
            raise PlanError(f"--set {text!r} is not of the form NAME=VALUE")
        pairs.append((name, value))
    return pairs


def read_value(text: str) -> str | int | float | bool | None:
    """A word of the shell as a number, true, false or none, where it is one; else as text."""
    words: dict[str, bool | None] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_program(options: dict[str, Any]) -> list[str]:
    """The program that scores cases (``--command``), and its arguments.

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
