"""The settings file: ``groundfault.toml``, or the table tool.groundfault of pyproject.toml."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundfault.base.files import write_text
from groundfault.base.long_work import Progress
from groundfault.base.reading import read_text
from groundfault.base.registry import load_object
from groundfault.cli import shared
from groundfault.cli.command import GroupedOption, Options, command, list_typed
from groundfault.cli.output import Result
from groundfault.cli.reading import read_sources
from groundfault.cli.settings import call
from groundfault.core.column_meaning import means_pass, names_a_thing, names_outcome
from groundfault.core.evidence import Evidence
from groundfault.errors import GroundfaultError, InputError, shorten
from groundfault.render.words import clean, plural

if TYPE_CHECKING:
    import polars as pl

NAME = "groundfault.toml"
_PROJECT = "pyproject.toml"
NO_FILE = "no settings file"
"""Object of a context whose command takes nothing from a settings file, such as the demo's."""
_USED = "groundfault.settings_file"
"""Where a context keeps the settings that a command takes from the file, as a text."""


def apply_settings(ctx: click.Context, args: Sequence[str]) -> None:
    """Make the settings of the file the defaults of a command's options; flags win.

    A settings file has no say over a step of a case, nor over a flag that excludes the setting.
    """
    flags = {arg.partition("=")[0] for arg in args}
    if ctx.obj == NO_FILE or flags & {"--help", "--help-all", "--case"}:
        return
    place = find_settings_file()
    if place is None:
        return
    settings = read_settings_file(place)
    excluded = {name for flag in flags for name in _list_excluded(flag)}
    used = {
        option.key: option
        for option in ctx.command.params
        if isinstance(option, GroupedOption)
        and option.key in settings
        and option.name not in excluded
        and not flags & {*option.opts, *option.secondary_opts}
    }
    if used:
        ctx.default_map = {o.name or "": settings[key] for key, o in used.items()}
        values = (f"{key} = {_encode(settings[key])}" for key in used)
        ctx.meta[_USED] = f"{place.name}: {', '.join(values)}"
        click.echo(f"note: {place.name} sets {', '.join(used)}", err=True)


def describe_settings() -> str:
    """Return the settings that the present command has from a file; empty without any."""
    text: str = click.get_current_context().meta.get(_USED, "")
    return text


def find_settings_file() -> Path | None:
    """Return the nearest settings file of the current folder or of those above it.

    The search ends at the root of a repository, or at the home folder. Outside of both only the
    current folder counts, and above it only a file of this user: a file that came with data is not
    read.
    """
    here, folders = Path.cwd(), []
    for folder in (here, *here.parents):
        folders.append(folder)
        if folder == Path.home() or (folder / ".git").exists():
            break
    else:
        folders = [here]
    for folder in folders:
        for place in (folder / NAME, folder / _PROJECT):
            if not place.is_file():
                continue
            is_mine = folder == here or not hasattr(os, "getuid")
            is_mine = is_mine or place.stat().st_uid == os.getuid()
            if is_mine and (place.name == NAME or _load(place)):
                return place
    return None


def read_settings_file(place: Path) -> dict[str, Any]:
    """Return the settings of a file by key, as options take them; its paths begin at its folder.

    Raises
    ------
    InputError
        If a key is unknown, or its value does not fit.
    """
    keys, settings = list_keys(), {}
    for name, value in _load(place).items():
        key = name.replace("-", "_")
        if key not in keys:
            near = get_close_matches(key, keys, n=1)
            guess = f"; did you mean {near[0]!r}?" if near else "."
            about = "A key is a flag of groundfault audit --help-all without its dashes"
            raise InputError(f"{place}: there is no setting {name!r}{guess} {about}")
        settings[key] = _convert(place, keys[key], value)
    return settings


def list_keys() -> dict[str, GroupedOption]:
    """Return the options that may stand in a settings file, by their keys."""
    commands = map(load_object, ("groundfault.cli.audit:audit", "groundfault.cli.reports:gate"))
    options = [option for each in commands for option in each.params]
    return {o.key: o for o in options if isinstance(o, GroupedOption) and o.key}


def _load(place: Path) -> dict[str, object]:
    """Return the table of settings in a file; empty if it has no such table."""
    try:
        content = tomllib.loads(read_text(place))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{place} is not valid TOML: {error}") from None
    table: dict[str, Any] = content
    for name in () if place.name == NAME else ("tool", "groundfault"):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise InputError(f"{place}: {name} is not a table: write [tool.groundfault]")
    return table


def _convert(place: Path, option: GroupedOption, value: Any) -> object:
    """Return a value as its option takes it."""
    values = value if isinstance(value, list) else [value]
    several = option.multiple or option.nargs > 1
    try:
        if isinstance(value, dict) or (isinstance(value, list) and not several):
            raise click.BadParameter("one value is expected")
        if any(isinstance(one, bool) is not option.is_flag for one in values):
            raise click.BadParameter("true and false are for flags without a value, and no others")
        # as they would be typed: 1.5 is no whole number
        typed = [one if option.is_flag else str(one) for one in values]
        value = option.type_cast_value(
            click.Context(click.Command("settings")), typed if several else typed[0]
        )
    except click.BadParameter as error:
        raise InputError(f"{place}: {option.key} = {value!r}: {error.message}") from None
    if "URL" in (option.metavar or "") and "://" in str(value):
        raise InputError(
            f"{place}: {option.key} names a server, and no server is connected to because a file "
            f"says so: name it with {option.opts[0]}, or for a ledger in $GROUNDFAULT_LEDGER"
        )
    if (option.metavar or "").startswith("FILE") and place.parent != Path.cwd():
        return str(place.parent / value)
    return value


def _list_excluded(flag: str) -> Iterator[str]:
    """Yield the parameters that a flag excludes: no ledger, logs or a table."""
    tables, logs = (signature(f).parameters for f in (Evidence.from_table, Evidence.from_logs))
    name = flag.lstrip("-").replace("-", "_")
    if name == "no_ledger":
        yield "ledger"
    elif name == "outcome":
        yield from logs.keys() - tables.keys()
    elif name in logs.keys() - tables.keys():
        yield from tables.keys() - logs.keys()


@command(first="outcome id positive_is_good model group scorer reader")
@shared.evidence_options
def init(*, progress: Progress, options: Options) -> Result:
    """Guess your columns and write groundfault.toml.

    groundfault.toml is written to this folder. Commands that you run here, or in a folder below,
    read it; flags that you type win. If a guess is wrong, name the column by its flag. You can also
    move the settings to pyproject.toml, under [tool.groundfault].

    \b
    groundfault init results.csv
    groundfault init results.csv --outcome solved --id task
    groundfault init logs/
    """
    if Path(NAME).exists():
        raise InputError(f"{NAME} exists here: edit it, or remove it to begin anew")
    keys = list_keys()
    typed = {o.key: options[o.name or ""] for o in keys.values() if o.name in list_typed()}
    settings, line = _look(options, typed, progress)
    lines = [f"# {line}", *(f"{key} = {_encode(value)}" for key, value in settings.items())]
    lines += ['# ledger = "groundfault-ledger.db"', "# alpha = 0.1", "# gate_level = 0.1"]
    lines.append("# other keys: the flags of groundfault audit --help-all, without dashes")
    write_text(Path(NAME), "\n".join(lines) + "\n")
    then = ("audit", *options["sources"], "--out", "report/")
    return Result([f"wrote {NAME}:", *lines], then=then)


def _encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _look(
    options: Options, typed: dict[str, object], progress: Progress
) -> tuple[dict[str, object], str]:
    """Return the settings of logs or of a table, and a line on the rows read with them."""
    from groundfault.readers.table import read_table

    sources = options["sources"]
    if not options["outcome"]:
        try:
            evidence = call(Evidence.from_logs, options, *sources, progress=progress)
        except GroundfaultError as error:
            try:
                table = read_table(sources[0])[0]
            except GroundfaultError:
                raise error from None
            typed = _guess_columns(table) | typed
        else:
            scorer: Sequence[str] = (evidence.reading or {}).get("scorer") or ()
            settings = typed | ({"scorer": scorer[0]} if len(scorer) == 1 else {})
            return settings, _describe(sources, evidence)
    names = {option.key: option.name or "" for option in list_keys().values()}
    evidence = read_sources({**options, **{names[key]: value for key, value in typed.items()}})
    return typed, _describe(sources, evidence)


def _describe(sources: Sequence[str], evidence: Evidence) -> str:
    rate = evidence.loss.mean()
    failures = f"{rate:.0%} fail" if isinstance(rate, float) else "none is scored"
    text = f"{shlex.join(sources)}: {plural(evidence.unit_count, 'example')}, {failures}"
    return shorten(clean(text))


def _guess_columns(table: pl.DataFrame) -> dict[str, object]:
    """Return the columns of a table, by their names or else their values, as settings."""
    import polars as pl

    from groundfault.readers.grades import holds_verdicts

    columns = table.columns
    outcomes = [c for c in columns if names_outcome(c)]
    outcomes = outcomes or [c for c in columns if holds_verdicts(table[c])]
    if not outcomes:
        raise InputError(
            "no column is named like an outcome, such as correct or error, or has words such as "
            "passed or failed: name it by --outcome; "
            f"there are {', '.join(columns)}"
        )
    outcome = next((c for c in outcomes if means_pass(c) is not None), outcomes[0])
    settings: dict[str, object] = {"outcome": outcome}
    if means_pass(outcome):
        settings["positive_is_good"] = True
    keys = {"model": "model_column", "epoch": "repeat", "repeat": "repeat"}
    settings |= {keys[c.lower()]: c for c in columns if c.lower() in keys}
    ids = [c for c in columns if names_a_thing(c) and c != outcome]
    if not ids and table.schema[columns[0]] == pl.String:
        # by its values: a word without spaces, another one in each row of a model
        named = [columns[0], *(c for c in columns if c.lower() in keys)]
        is_word = table[columns[0]].str.contains(r"^\S+$").all(ignore_nulls=False)
        ids = [columns[0]] if is_word and table.select(named).is_unique().all() else []
    return settings | ({"id": ids[0]} if ids else {})
