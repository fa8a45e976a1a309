"""``--case``: commands that are a step of a case where one is named."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from groundfault.base.registry import load_object
from groundfault.cli.command import INPUT, Decorator, option
from groundfault.errors import PlanError


def step_of_case(step: str, *settings: str, source: str = "sources") -> Decorator:
    """Let ``--case DIR`` make a command a step of a case, which knows its rows and its plan.

    Parameters
    ----------
    step : str
        ``module:function`` of the step; it takes the folder and the options.
    *settings : str
        Names of the parameters that the step has a use for. Any other that is given is refused.
    source : str
        Name of the argument that the case stands in for; it may not be required by itself.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(**options: Any) -> Any:
            folder = options.pop("case_folder")
            context = click.get_current_context()
            if folder is not None:
                _refuse_others(context, {"case_folder", *settings})
                return load_object(step)(folder, options)
            if not options[source]:
                raise click.UsageError(f"Missing argument '{_name(context, source)}'.", context)
            return command(**options)

        return option(
            "--case",
            "case_folder",
            type=click.Path(),
            metavar="DIR",
            group=INPUT,
            help="Make it a step of this case, which knows the rest; see groundfault case.",
        )(run)

    return decorate


def _name(context: click.Context, name: str) -> str:
    parameter = next(p for p in context.command.params if p.name == name)
    return parameter.make_metavar(context).strip("[]")


def _refuse_others(context: click.Context, names: set[str]) -> None:
    for parameter in context.command.params:
        name = parameter.name or ""
        is_here = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_here and name not in names:
            is_argument = isinstance(parameter, click.Argument)
            flag = _name(context, name).rstrip(".") if is_argument else parameter.opts[0]
            raise PlanError(
                f"{flag} does not go with --case: rows and plan of a case were decided when it "
                "began (groundfault case new)"
            )
