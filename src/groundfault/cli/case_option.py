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


def step_of_case(step: str, *settings: str) -> Decorator:
    """A command that ``--case DIR`` makes a step of a case, which knows its rows and its plan.

    Parameters
    ----------
    step : str
        ``module:function`` of the step; it takes the folder and the options.
    *settings : str
        Names of the parameters that the step has a use for. Any other that is given is refused.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(**options: Any) -> Any:
            folder = options.pop("case_folder")
            context = click.get_current_context()
            if folder is not None:
                _refuse_others(context, {"case_folder", *settings})
                return load_object(step)(folder, options)
            if not options["sources"]:
                raise click.UsageError("Missing argument 'SOURCE...'.", context)
            return command(**options)

        return option(
            "--case",
            "case_folder",
            type=click.Path(),
            metavar="DIR",
            group=INPUT,
            help="Make it a step of this case, instead of reading SOURCE; see groundfault case.",
        )(run)

    return decorate


def _refuse_others(context: click.Context, names: set[str]) -> None:
    for parameter in context.command.params:
        name = parameter.name or ""
        is_here = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_here and name not in names:
            flag = "SOURCE" if isinstance(parameter, click.Argument) else parameter.opts[0]
            raise PlanError(
                f"{flag} does not go with --case: rows and plan of a case were decided when it "
                "began (groundfault case new)"
            )
