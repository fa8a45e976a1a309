"""Options that several commands share: how a table becomes evidence, candidates and a plan."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from groundfault.candidate import Candidate, Library
from groundfault.errors import InputError, PlanError
from groundfault.evidence import Evidence
from groundfault.plan import Plan

Command = Callable[..., Any]
Option = Callable[[Command], Command]

_EVIDENCE: list[Option] = [
    click.argument("source", type=click.Path()),
    click.option("--outcome", required=True, metavar="COL", help="0/1 error, true/false, or a loss in [0, 1]."),
    click.option("--id", metavar="COL", help="Example id; left out, each row is an example of its own."),
    click.option("--positive-is-good", is_flag=True, help="The outcome says correct, not error."),
    click.option("--model-column", metavar="COL", help="Which model a row is about."),
    click.option("--model", "models", metavar="NAME", multiple=True, help="Only this model; repeatable."),
    click.option("--repeat", metavar="COL", help="Repeat or epoch of the same example and model."),
    click.option("--group", metavar="COL", help="Clusters of dependent examples; the group becomes the unit."),
    click.option("--split", metavar="COL", help="Column with the words discovery and holdout."),
    click.option("--status", metavar="COL", help="scored, refused, unparsed, artefact or missing."),
    click.option(
        "--empty", metavar="STATUS", help="What an empty outcome means: missing, refused, unparsed, artefact."
    ),
    click.option("--ignore", metavar="COL", multiple=True, help="No attribute, such as a consequence of failing."),
]

_CANDIDATES: list[Option] = [
    click.option("--declare", metavar="GLOB", multiple=True, help="0/1 columns that are candidates, such as 'd__*'."),
    click.option("--candidate", metavar="'NAME: SQL'", multiple=True, help="A rule such as 'long: n_words > 400'."),
    click.option("--candidates", "candidate_file", metavar="FILE", help="Rules from a text, TOML or library file."),
    click.option("--library", metavar="FILE", help="A library frozen before; nothing else is proposed."),
    click.option("--finders", metavar="NAMES", help="Proposers, such as thresholds,categories,text,interactions:2."),
    click.option(
        "--missing",
        type=click.Choice(["reject", "off", "drop"]),
        default="reject",
        show_default=True,
        help="What a rule that is NULL means, for named candidates.",
    ),
]

_PLAN: list[Option] = [
    click.option("--judge", default="janus", show_default=True, help="The rule that confirms."),
    click.option("--q", default="0.10", show_default=True, help="False-discovery target of screens, bh and by."),
    click.option("--alpha", default="0.10", show_default=True, help="Family-wise level of exact confirmations."),
    click.option("--min-lift", help="Least |lift| worth confirming (0.10, or none for full-sample judges)."),
    click.option("--effect", default="risk_difference", show_default=True, help="Or risk_ratio, odds_ratio."),
    click.option("--min-ratio", default="1.5", show_default=True, help="Least ratio worth confirming."),
    click.option("--holdout", default="0.5", show_default=True, help="Share of units held out."),
    click.option("--prevalence", nargs=2, metavar="LO HI", help="Window of the share on the slice, inclusive."),
    click.option("--min-on", type=int, default=8, show_default=True, help="Fewest units on the slice."),
    click.option("--min-off", type=int, default=8, show_default=True, help="Fewest units off the slice."),
    click.option("--min-on-total", type=int, default=0, show_default=True, help="Fewest on it in both parts."),
    click.option("--hold-min-on", type=int, help="Fewest on the slice held out [as --min-on]."),
    click.option("--hold-min-off", type=int, help="Fewest off it held out [as --min-off]."),
    click.option("--scope", default="discovery", show_default=True, help="Judge eligibility on discovery or full."),
    click.option("--decoys", type=int, metavar="K", help="Draw K decoys instead of the exact floor."),
    click.option("--correction", default="none", show_default=True, help="+1 of drawn decoys: none, paper, inside."),
    click.option("--permutations", type=int, default=9999, show_default=True, help="Permutations of max-t."),
    click.option("--splits", type=int, default=50, show_default=True, help="Splits of multisplit-e."),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of every random act."),
]


def evidence_options(command: Command) -> Command:
    """How a table becomes evidence."""
    return _apply(_EVIDENCE, command)


def candidate_options(command: Command) -> Command:
    """Where candidates come from."""
    return _apply(_CANDIDATES, command)


def plan_options(command: Command) -> Command:
    """What is decided in advance."""
    return _apply(_PLAN, command)


def read_evidence(given: dict[str, Any]) -> Evidence:
    """Evidence from the options, narrowed to the models asked for."""
    evidence = Evidence.from_table(
        given["source"],
        outcome=given["outcome"],
        id=given["id"],
        model=given["model_column"],
        repeat=given["repeat"],
        group=given["group"],
        split=given["split"],
        status=given["status"],
        positive_is_good=given["positive_is_good"],
        empty=given["empty"],
        ignore=given["ignore"],
    )
    return evidence.select_model(*given["models"]) if given["models"] else evidence


def read_plan(given: dict[str, Any]) -> Plan:
    """The plan from the options."""
    names = (
        "judge q alpha min_lift effect min_ratio holdout min_on min_off min_on_total hold_min_on hold_min_off scope "
        "decoys correction permutations splits seed".split()
    )
    return Plan(**{name: given[name] for name in names}, prevalence=given["prevalence"] or None)


def read_candidates(given: dict[str, Any]) -> tuple[list[Candidate] | None, list[Any] | None]:
    """Candidates named, and finders; two times None where the default finders are to propose."""
    if given["library"]:
        mixed = [o for o in ("declare", "candidate", "candidate_file", "finders") if given[o]]
        if mixed:
            raise PlanError(f"--library is judged as it was frozen: leave out --{mixed[0].replace('_file', 's')}")
        return list(Library.load(given["library"])), []
    from groundfault.finders.declared import Declared
    from groundfault.finders.declared import read_candidates as from_file

    named = [Candidate.from_text(text, missing=given["missing"]) for text in given["candidate"]]
    if given["candidate_file"]:
        named += from_file(given["candidate_file"])
    finders: list[Any] = [Declared(tuple(given["declare"]), missing=given["missing"])] if given["declare"] else []
    finders += [name.strip() for name in (given["finders"] or "").split(",") if name.strip()]
    if not named and not finders:
        return None, None
    return named, finders


def require_writable(path: str | None, *, directory: bool = False) -> None:
    """Fail before anything is computed or recorded, not after."""
    if not path or path == "-":
        return
    place = Path(path)
    if directory and place.exists() and not place.is_dir():
        raise InputError(f"cannot write {path}: it is a file; name a directory")
    if not directory and place.is_dir():
        raise InputError(f"cannot write {path}: it is a directory; name a file")
    home = place if directory and place.exists() else place.parent
    while not home.exists():
        home = home.parent
    try:
        tempfile.TemporaryFile(dir=home).close()  # permission bits tell less, above all to root
    except OSError as error:
        why = f"{error.strerror} ({home})"
        raise InputError(f"cannot write {path}: {why}; choose a place that can be written") from None


def shown_progress(quiet: bool) -> Any:
    """A spinner that tells what is going on, on standard error, where a person looks at it."""
    from contextlib import contextmanager

    from rich.console import Console

    @contextmanager
    def shown() -> Any:
        console = Console(stderr=True)
        if quiet or not console.is_terminal:
            yield bool
            return
        with console.status("reading") as status:
            yield status.update

    return shown()


def _apply(options: list[Option], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
