"""Commands with many options: ``--help`` describes the first few, ``--help-all`` all by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from textwrap import wrap
from typing import Any

import click
from click.core import ParameterSource

from groundfault.base.registry import load_object
from groundfault.cli import output
from groundfault.core.column_meaning import DirectionError

INPUT = "Input"
COLUMNS = "Columns"
RULE = "Rule"
OUTPUT = "Output"

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Options = dict[str, Any]
"""Values of a command's options by parameter.

`groundfault.cli.settings.call` makes an object with types of them, of the class that lists them.
"""

_HELP_ALL = "groundfault.help_all"
ARGUMENTS = "groundfault.arguments"
"""Where a context keeps the arguments as they were typed, to repeat them in a message."""


class GroupedOption(click.Option):
    """An option with the heading it is listed under.

    Parameters
    ----------
    group : str
    in_file : bool or str
        Whether it may stand in the settings file, see `groundfault.cli.settings_file`; and by which
        name, if not by that of its flag.
    """

    def __init__(
        self,
        *args: Any,
        group: str,
        in_file: bool | str = False,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.group = group
        flag = self.opts[0].lstrip("-").replace("-", "_")
        self.key = in_file if isinstance(in_file, str) else flag if in_file else ""


def _key_of(option: click.Parameter) -> str:
    return option.key if isinstance(option, GroupedOption) else ""


class GroupedCommand(click.Command):
    """A command whose options are listed by group.

    Parameters
    ----------
    first : str
        The names of the parameters that ``--help`` describes, with spaces between them; it lists
        the flags of the others, and ``--help-all`` describes all. Without it, ``--help`` describes
        all.
    """

    def __init__(self, *args: Any, first: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.first = first.split()

    def groups(self) -> dict[str, list[click.Option]]:
        """Return the options by group: groups in the order of their declaration, output last."""
        by_group: dict[str, list[click.Option]] = {}
        for option in self.params:
            if isinstance(option, click.Option):
                by_group.setdefault(getattr(option, "group", OUTPUT), []).append(option)
        if OUTPUT in by_group:
            by_group[OUTPUT] = by_group.pop(OUTPUT)
        return by_group

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and those of the settings file."""
        ctx.meta[ARGUMENTS] = tuple(args)
        if not ctx.resilient_parsing and any(map(_key_of, self.params)):
            load_object("groundfault.cli.settings_file:apply_settings")(ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command, and print the `Result` that it returns, or write it as JSON."""
        result, json_path = self.run(ctx), ctx.params.get("json_path") or None
        if isinstance(result, output.Result):
            result.deliver("-" if json_path is True else json_path)

    def run(self, ctx: click.Context) -> Any:
        """Run the command, and return its `Result`, of which nothing is printed.

        Paths that it writes are tried first. A function with a parameter ``progress`` gets one; its
        warnings are printed as notes when it ends. A parameter ``options`` gets the options
        that the function does not name.
        """
        assert self.callback is not None
        takes, values = signature(self.callback).parameters, dict(ctx.params)
        for parameter in self.params:
            if isinstance(parameter.type, output.Writable) and parameter.name is not None:
                parameter.type.require(values.get(parameter.name))
        json_path = values.get("json_path")
        if "json_path" not in takes:
            values.pop("json_path", None)
        quiet = json_path in ("-", True) or values.get("quiet", False)
        if "options" in takes:
            values["options"] = {name: values.pop(name) for name in [*values] if name not in takes}
        try:
            with output.echo_warnings():
                if "progress" not in takes:
                    return ctx.invoke(self.callback, **values)
                with output.show_progress(quiet) as progress:
                    return ctx.invoke(self.callback, **values, progress=progress)
        except DirectionError as error:
            load_object("groundfault.cli.reading:ask_orientation")(error)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, ``--help``, and where it says more than that, ``--help-all``."""
        return [*super().get_params(ctx), *([self._help_all()] if self.first else [])]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Describe the first options or, for ``--help-all``, all of them by group."""
        if not self.first:
            super().format_options(ctx, formatter)
            return
        helps = [p for p in self.get_params(ctx) if p not in self.params]
        groups = self.groups()
        if ctx.meta.get(_HELP_ALL):
            for group, options in groups.items():
                _write(ctx, formatter, group, options)
            _write(ctx, formatter, "Help", helps)
            return
        by_name = {option.name: option for options in groups.values() for option in options}
        _write(ctx, formatter, "Options", [*(by_name[name] for name in self.first), *helps])
        # those that may stand in the settings file are for few: they do not fill the first screen
        other_groups = {
            group: ", ".join(o.opts[0] for o in options if not (o.name in self.first or _key_of(o)))
            for group, options in groups.items()
        }
        with formatter.section("More options, which --help-all describes"):
            width = formatter.width - formatter.current_indent - max(map(len, other_groups)) - 4
            if rows := [(key, _wrap(flags, width)) for key, flags in other_groups.items() if flags]:
                formatter.write_dl(rows)
            if any(map(_key_of, self.params)):
                formatter.write_text("And those that groundfault.toml may set (groundfault init).")

    def _help_all(self) -> click.Option:
        def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
            if value and not ctx.resilient_parsing:
                ctx.meta[_HELP_ALL] = True
                click.echo(ctx.get_help())
                ctx.exit()

        return click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=show,
            help="Describe every option, and exit.",
        )


class Group(click.Group):
    """A group of commands whose options are listed by group."""

    command_class = GroupedCommand


command = partial(click.command, cls=GroupedCommand)
"""Make a command of a function, as `click.command`; `Group.command` adds it to a group."""


def option(*names: str, group: str = OUTPUT, **settings: object) -> Decorator:
    """Make a `click.option` that is a `GroupedOption`."""
    # click would show "INTEGER RANGE"
    if isinstance(settings.get("type"), click.IntRange) or settings.get("type") is int:
        settings.setdefault("metavar", "N")
    return click.option(*names, cls=GroupedOption, group=group, **settings)


def list_typed() -> dict[str, str]:
    """Return the parameters of the present command that somebody typed, and how each is called."""
    context = click.get_current_context()
    return {
        name: parameter.make_metavar(context).strip("[]").rstrip(".")
        if isinstance(parameter, click.Argument)
        else parameter.opts[0]
        for parameter in context.command.params
        if (name := parameter.name or "")
        and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }


def apply(options: Sequence[Decorator]) -> Decorator:
    """Make one decorator of several options, which are listed in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for add in reversed(options):
            command = add(command)
        return command

    return decorate


def _wrap(flags: str, width: int) -> str:
    """Wrap flags to lines of this width; click itself would break --min-on after a hyphen."""
    # \b marks a paragraph that click must not wrap again
    lines = wrap(flags, max(width, 20), break_on_hyphens=False, break_long_words=False)
    return "\b\n" + "\n".join(lines)


def _write(
    ctx: click.Context,
    formatter: click.HelpFormatter,
    title: str,
    options: Sequence[click.Parameter],
) -> None:
    records = [record for o in options if (record := o.get_help_record(ctx)) is not None]
    if records:
        with formatter.section(title):
            formatter.write_dl(records)
