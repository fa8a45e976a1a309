"""Options that several commands share: how a table becomes evidence, candidates and a plan."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from groundfault.base.files import write_text
from groundfault.core.candidate import Candidate, Library
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.roles import LISTS
from groundfault.errors import InputError, PlanError

Command = Callable[..., Any]
Option = Callable[[Command], Command]

_SOURCES = click.argument(
    "sources", type=click.Path(), nargs=-1, required=True, metavar="SOURCE..."
)
_MODELS = click.option(
    "--model", "models", metavar="NAME", multiple=True, help="Only this model; repeatable."
)
_EVIDENCE: list[Option] = [
    _SOURCES,
    click.option(
        "--outcome", metavar="COL", help="Of a table: 0/1 error, true/false, or a loss in [0, 1]."
    ),
    click.option(
        "--id", metavar="COL", help="Example id; left out, each row is an example of its own."
    ),
    click.option("--positive-is-good", is_flag=True, help="The outcome says correct, not error."),
    click.option("--model-column", metavar="COL", help="Which model a row is about."),
    _MODELS,
    click.option("--repeat", metavar="COL", help="Repeat or epoch of the same example and model."),
    click.option(
        "--group", metavar="COL", help="Clusters of dependent examples; the group becomes the unit."
    ),
    click.option("--split", metavar="COL", help="Column with the words discovery and holdout."),
    click.option(
        "--status", metavar="COL", help="scored, error, refused, unparsed, artefact or missing."
    ),
    click.option(
        "--empty",
        metavar="STATUS",
        help="What an empty outcome means: missing, error, refused, unparsed, artefact.",
    ),
    click.option("--ignore", metavar="COL", multiple=True, help="Not to be used by any finder."),
    click.option(
        "--instrument",
        metavar="COL",
        multiple=True,
        help="Describes the measurement, not the example.",
    ),
    click.option(
        "--post-outcome",
        metavar="COL",
        multiple=True,
        help="Follows from failing; no candidate may read it.",
    ),
    click.option(
        "--allow-leak",
        metavar="COL",
        multiple=True,
        help="May tell failed from passed almost perfectly.",
    ),
]

_LOGS: list[Option] = [
    click.option(
        "--scorer", metavar="NAME", multiple=True, help="Of logs: whose score is the outcome."
    ),
    click.option(
        "--reader",
        metavar="NAME",
        help="Of logs: who reads them, such as inspect [told by what they hold].",
    ),
    click.option(
        "--map",
        "mapping",
        metavar="FILE",
        help="Of tables: a mapping file says what their columns are.",
    ),
    click.option(
        "--scale",
        type=float,
        nargs=2,
        metavar="WORST BEST",
        help="Of logs: the scorer's range, if not 0 1.",
    ),
    click.option(
        "--conflicts",
        type=click.Choice(["error", "keep"]),
        default="error",
        show_default=True,
        help="Of logs: same id with another text, or with another result.",
    ),
]

_CANDIDATES: list[Option] = [
    click.option(
        "--declare",
        metavar="GLOB",
        multiple=True,
        help="0/1 columns that are candidates, such as 'd__*'.",
    ),
    click.option(
        "--candidate",
        metavar="'NAME: SQL'",
        multiple=True,
        help="A rule such as 'long: n_words > 400'.",
    ),
    click.option(
        "--candidates",
        "candidate_file",
        metavar="FILE",
        help="Rules from a text, TOML or library file.",
    ),
    click.option(
        "--library", metavar="FILE", help="A library frozen before; nothing else is proposed."
    ),
    click.option(
        "--finders",
        metavar="NAMES",
        help="Proposers, such as thresholds,categories,text,interactions:2.",
    ),
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
    click.option(
        "--q",
        default="0.10",
        show_default=True,
        help="False-discovery target of screens, bh and by.",
    ),
    click.option(
        "--alpha",
        default="0.10",
        show_default=True,
        help="Family-wise level of exact confirmations.",
    ),
    click.option(
        "--min-lift", help="Least |lift| worth confirming (0.10, or none for full-sample judges)."
    ),
    click.option(
        "--effect", default="risk_difference", show_default=True, help="Or risk_ratio, odds_ratio."
    ),
    click.option(
        "--min-ratio", default="1.5", show_default=True, help="Least ratio worth confirming."
    ),
    click.option("--holdout", default="0.5", show_default=True, help="Share of units held out."),
    click.option(
        "--prevalence",
        nargs=2,
        metavar="LO HI",
        help="Window of the share on the slice, inclusive.",
    ),
    click.option(
        "--min-on", type=int, default=8, show_default=True, help="Fewest units on the slice."
    ),
    click.option(
        "--min-off", type=int, default=8, show_default=True, help="Fewest units off the slice."
    ),
    click.option(
        "--min-on-total", type=int, default=0, show_default=True, help="Fewest on it in both parts."
    ),
    click.option("--hold-min-on", type=int, help="Fewest on the slice held out [as --min-on]."),
    click.option("--hold-min-off", type=int, help="Fewest off it held out [as --min-off]."),
    click.option(
        "--scope",
        default="discovery",
        show_default=True,
        help="Judge eligibility on discovery or full.",
    ),
    click.option(
        "--decoys", type=int, metavar="K", help="Draw K decoys instead of the exact floor."
    ),
    click.option(
        "--correction",
        default="none",
        show_default=True,
        help="+1 of drawn decoys: none, paper, inside.",
    ),
    click.option(
        "--permutations", type=int, default=9999, show_default=True, help="Permutations of max-t."
    ),
    click.option(
        "--splits", type=int, default=50, show_default=True, help="Splits of multisplit-e."
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, help="Seed of every random act."
    ),
]


def evidence_options(command: Command) -> Command:
    """How a table, or logs, become evidence."""
    return _apply([*_EVIDENCE, *_LOGS], command)


def log_options(command: Command) -> Command:
    """How logs become evidence."""
    return _apply([_SOURCES, *_LOGS], command)


def results_options(command: Command) -> Command:
    """How a file that another option names becomes evidence of one model."""
    columns = [option for option in _EVIDENCE if option not in (_SOURCES, _MODELS)]
    return _apply([*columns, *_LOGS], command)


def candidate_options(command: Command) -> Command:
    """Where candidates come from."""
    return _apply(_CANDIDATES, command)


def plan_options(command: Command) -> Command:
    """What is decided in advance."""
    return _apply(_PLAN, command)


_OF_TABLES = ("id", "model_column", "repeat", "status", "empty", "positive_is_good", "instrument")
_OF_LOGS = ("scorer", "reader", "mapping", "scale")


def read_evidence(options: dict[str, Any], progress: Callable[[str], object] = bool) -> Evidence:
    """Evidence from the options, narrowed to the models asked for.

    With ``--outcome`` the source is a table and the options say what its columns are; without it,
    sources are logs."""
    evidence = _from_table(options) if options["outcome"] else _from_logs(options, progress)
    return evidence.select_model(*options["models"]) if options.get("models") else evidence


def _from_table(options: dict[str, Any]) -> Evidence:
    misplaced = [name for name in _OF_LOGS if options.get(name)]
    if misplaced:
        raise InputError(
            f"{_flag(misplaced[0])} is for logs, --outcome for tables: leave one of them out"
        )
    if len(options["sources"]) > 1:
        raise InputError("with --outcome name one table, or one directory of tables of a kind")
    return Evidence.from_table(
        options["sources"][0],
        outcome=options["outcome"],
        id=options["id"],
        model=options["model_column"],
        repeat=options["repeat"],
        group=options["group"],
        split=options["split"],
        status=options["status"],
        positive_is_good=options["positive_is_good"],
        empty=options["empty"],
        **{name: options.get(name, ()) for name in (*LISTS, "instrument")},
    )


def _from_logs(options: dict[str, Any], progress: Callable[[str], object]) -> Evidence:
    misplaced = [name for name in _OF_TABLES if options.get(name)]
    if misplaced:
        raise InputError(
            f"{_flag(misplaced[0])} says what a column of a table is; say its outcome too (--outcome)"
        )
    return Evidence.from_logs(
        *options["sources"],
        scorer=options["scorer"] or None,
        reader=options["reader"],
        map=options["mapping"],
        scale=options["scale"],
        conflicts=options["conflicts"],
        group=options.get("group"),
        split=options.get("split"),
        **{name: options.get(name, ()) for name in LISTS},
        progress=progress,
    )


def _flag(name: str) -> str:
    return {"mapping": "--map"}.get(name, "--" + name.replace("_", "-"))


def read_plan(options: dict[str, Any]) -> Plan:
    """The plan from the options."""
    names = (
        "judge q alpha min_lift effect min_ratio holdout min_on min_off min_on_total hold_min_on hold_min_off scope "
        "decoys correction permutations splits seed".split()
    )
    return Plan(**{name: options[name] for name in names}, prevalence=options["prevalence"] or None)


def read_candidates(options: dict[str, Any]) -> tuple[list[Candidate] | None, list[Any] | None]:
    """Candidates named, and finders; two times None where the default finders are to propose."""
    if options["library"]:
        mixed = [o for o in ("declare", "candidate", "candidate_file", "finders") if options[o]]
        if mixed:
            raise PlanError(
                f"--library is judged as it was frozen: leave out --{mixed[0].replace('_file', 's')}"
            )
        return list(Library.load(options["library"])), []
    from groundfault.finders.declared import Declared
    from groundfault.finders.declared import read_candidates as from_file

    candidates = [Candidate.from_text(text, missing=options["missing"]) for text in options["candidate"]]
    if options["candidate_file"]:
        candidates += from_file(options["candidate_file"])
    finders: list[Any] = (
        [Declared(tuple(options["declare"]), missing=options["missing"])] if options["declare"] else []
    )
    finders += [name.strip() for name in (options["finders"] or "").split(",") if name.strip()]
    if not candidates and not finders:
        return None, None
    return candidates, finders


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
        raise InputError(
            f"cannot write {path}: {why}; choose a place that can be written"
        ) from None


def write_json(text: str, path: str | None) -> bool:
    """Write JSON where it was asked for; whether that was standard output, where nothing else may
    then be said.
    """
    if path == "-":
        click.echo(text)
    elif path:
        write_text(Path(path), text)
    return path == "-"


def read_settings(pairs_text: Sequence[str]) -> list[tuple[str, str]]:
    """Names and values of ``--set NAME=VALUE``."""
    pairs = []
    for text in pairs_text:
        name, equals, value = text.partition("=")
        if not equals:
            raise PlanError(f"--set {text!r} is not of the form NAME=VALUE")
        pairs.append((name, value))
    return pairs


def read_value(text: str) -> str | int | float | bool | None:
    """A word of the shell as the number, true/false or none that it says."""
    words: dict[str, bool | None] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@contextmanager
def echo_warnings() -> Iterator[None]:
    """Warnings of what is done within become notes on standard error, once it is done."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        click.echo(f"note: {message}", err=True)


def show_progress(quiet: bool) -> Any:
    """A spinner that tells what is going on, on standard error, where a person looks at it."""
    from rich.console import Console
    from rich.text import Text

    from groundfault.render.words import clean

    @contextmanager
    def spinner() -> Any:
        console = Console(stderr=True)
        if quiet or not console.is_terminal:
            yield bool
            return
        with console.status("reading") as status:
            yield lambda message: status.update(Text(clean(message), overflow="ellipsis", no_wrap=True))

    return spinner()


def _apply(options: list[Option], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
