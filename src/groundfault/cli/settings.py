"""Options from signatures: a parameter, its type and its docstring are an option of a command.

The function or settings class that takes a setting is the only place that lists it. Its options
come from there (`derive_options`, and `own_options` for what a command itself takes), and go back
there (`call`).
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import click

from groundfault.cli.command import OUTPUT, Decorator, Options, apply, option
from groundfault.cli.output import Writable
from groundfault.errors import PlanError

R = TypeVar("R")

_LIBRARY = frozenset(["Parameters", "Attributes"])
_OTHER_SECTIONS = frozenset(
    ["Other Parameters", "Returns", "Yields", "Raises", "Warns", "Notes", "References"]
)

Count = Annotated[int, click.IntRange(1)]
"""A whole number from 1."""

Whole = Annotated[int, click.IntRange(0)]
"""A whole number from 0."""


class Separated(click.ParamType[Any]):
    """Names, or numbers, that commas separate."""

    name = "text"

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def convert(
        self,
        value: str,
        param: click.Parameter | None,
        ctx: click.Context | None,  # noqa: ARG002  (as click calls it)
    ) -> list[Any]:
        """Return the parts of a text."""
        try:
            return [self.kind(part.strip()) for part in value.split(",")]
        except ValueError:
            flag = param.opts[0] if param else ""
            numbers = "whole numbers" if self.kind is int else "numbers"
            raise PlanError(
                f"{flag} {value!r} must be {numbers} with commas between them"
            ) from None


OutFile = Annotated[str, Writable()]
"""A file that the command writes."""

OutTable = Annotated[str, Writable(table=True)]
"""A table that the command writes, as its name says."""

OutFolder = Annotated[str, Writable(directory=True)]
"""A folder that the command writes to."""


@dataclass(frozen=True)
class Flag:
    """The spelling of an option that is not called like its parameter.

    Parameters
    ----------
    name : str
        Flags, with spaces between them; left out, ``--`` and the parameter's name. Of an argument
        its name in the help; left out, the parameter's in capitals.
    in_file : bool or str
        Whether it may stand in the settings file, or its name there.
    """

    name: str = ""
    in_file: bool | str = False


@dataclass(frozen=True)
class ParameterText:
    """A docstring's entry on a parameter: the heading it stands under, its kind, and its text."""

    section: str
    kind: str
    text: str


def derive_options(
    target: Callable[..., Any],
    names: str = "",
    *,
    group: str = "",
    metavar: str = "",
    in_file: bool = False,
    **changes: Mapping[str, Any] | None,
) -> Decorator:
    """Make options of the parameters of a function or settings class.

    Parameters
    ----------
    target : function or class
        The first sentence on a parameter in its docstring is the help of the option. A function of
        the shell has headings of its own in place of Parameters: they are groups of options, the
        words after a colon describe the value to type, and the whole text is the help.
    names : str
        The parameters, with spaces between them; left out, all that the docstring describes, of a
        function of the shell those given by keyword.
    group : str
        Heading that the options are listed under.
    in_file : bool
        Whether they may stand in the settings file.
    **changes : mapping of str to Any, or None
        For a parameter what the shell has otherwise, as arguments of `option`: ``flag``, ``name``
        where a command knows it by another, ``metavar``, ``default``, ``help``. None leaves the
        parameter to Python.
    """
    parameters, texts = inspect.signature(target).parameters, read_parameter_texts(target)
    chosen = names.split() or [
        name
        for name, one in parameters.items()
        if name in texts and (texts[name].section in _LIBRARY or one.kind is one.KEYWORD_ONLY)
    ]
    return apply(
        [
            _make_option(target, parameters[name], group, texts.get(name), change, metavar, in_file)
            for name in chosen
            if (change := changes.get(name, {})) is not None
        ]
    )


def own_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command's function, whose signature and docstring list the options of its own.

    Positional parameters become arguments, and keyword parameters options as in `derive_options`.
    The help of the command is the docstring before the first heading.
    """
    decorators = [
        _make_argument(function, parameter)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    decorators.append(derive_options(function))
    function.__doc__ = _split_sections(function)[0]
    return apply(decorators)(function)


def call(function: Callable[..., R], options: Options, *more: object, **others: object) -> R:
    """Call a function with those options that it takes, and with more arguments."""
    parameters = inspect.signature(function).parameters
    values = {
        name: parameter.default
        if options[name] == () and parameter.default is not parameter.empty
        else options[name]
        for name, parameter in parameters.items()
        if name in options
        and name not in others
        and parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }
    return function(*more, **values, **others)


def read_parameter_texts(target: Callable[..., Any]) -> dict[str, ParameterText]:
    """Return the entries on parameters in a numpydoc docstring, by name."""
    entries: dict[str, ParameterText] = {}
    for section, lines in _split_sections(target)[1]:
        if section in _OTHER_SECTIONS:
            continue
        names: list[str] = []
        for line in lines:
            if line[:1].strip():
                head, _, kind = line.partition(" : ")
                names = [name.strip("* ") for name in head.split(",")]
                entries |= {name: ParameterText(section, kind.strip(), "") for name in names}
            elif line.strip():
                for name in names:
                    old = entries[name]
                    text = f"{old.text} {line.strip()}".strip()
                    entries[name] = ParameterText(section, old.kind, text)
    return entries


def _split_sections(target: Callable[..., Any]) -> tuple[str, list[tuple[str, list[str]]]]:
    """Return a docstring's prose, and the lines of each section by its heading."""
    lines = (inspect.getdoc(target) or "").splitlines()
    starts = [i for i in range(1, len(lines)) if re.fullmatch("-{3,}", lines[i])]
    ends = [start - 1 for start in starts[1:]] + [len(lines)] * bool(starts)
    sections = [
        (lines[start - 1], lines[start + 1 : end]) for start, end in zip(starts, ends, strict=True)
    ]
    prose = lines[: starts[0] - 1] if starts else lines
    return "\n".join(prose).rstrip(), sections


def _make_option(
    target: Callable[..., Any],
    parameter: inspect.Parameter,
    group: str,
    text: ParameterText | None,
    changes: Mapping[str, Any],
    metavar: str = "",
    in_file: bool = False,
) -> Decorator:
    hint, flag = _read_hint(target, parameter)
    settings: dict[str, Any] = {"help": ""}
    if text is not None and text.section in _LIBRARY:
        # what stands before the first full stop that ends a sentence, and the stop
        settings["help"] = re.split(r"(?<=[^.]\.)\s+(?=[A-Z0-9`*])", text.text, maxsplit=1)[0]
    elif text is not None:
        settings["help"], group = text.text, group or text.section
        changes = ({"metavar": text.kind} if text.kind else {}) | dict(changes)
    settings |= _describe_type(hint) | _describe_default(parameter.default)
    if "is_flag" in settings:
        # None is told from False where a flag has an opposite
        settings["default"] = parameter.default
    is_library = inspect.isclass(target) and text is not None and text.section in _LIBRARY
    if is_library and isinstance(settings.get("type"), click.Choice):
        # the class refuses other words itself, in its own sentence
        words = "|".join(settings["type"].choices)
        settings |= {"type": str, "metavar": f"[{words}]"}
    elif metavar and settings.get("type") is str:
        settings["metavar"] = metavar
    settings |= {key: value for key, value in changes.items() if key not in ("flag", "name")}
    settings["help"] = settings["help"].replace("`", "")
    if settings.get("multiple") and "repeatable" not in settings["help"]:
        settings["help"] = settings["help"].removesuffix(".") + "; repeatable."
    spelling = changes.get("flag") or flag.name or "--" + parameter.name.replace("_", "-")
    settings = {"group": group or OUTPUT} | settings
    settings.setdefault("in_file", in_file or flag.in_file)
    return option(*spelling.split(), changes.get("name", parameter.name), **settings)


def _make_argument(function: Callable[..., Any], parameter: inspect.Parameter) -> Decorator:
    hint, flag = _read_hint(function, parameter)
    several = "multiple" in _describe_type(hint)
    return click.argument(
        parameter.name,
        nargs=-1 if several else 1,
        required=parameter.default is parameter.empty,
        metavar=flag.name or None,
    )


def _read_hint(target: Callable[..., Any], parameter: inspect.Parameter) -> tuple[Any, Flag]:
    """Return the type of a parameter without None, and how its option is spelled."""
    module = sys.modules[inspect.unwrap(target).__module__]
    place = SimpleNamespace(__annotations__={"hint": parameter.annotation})
    try:
        hint = get_type_hints(place, vars(module), include_extras=True)["hint"]
    except NameError:
        # a type that is imported for annotations alone is given by its name
        return str, Flag()
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return hint, next((extra for extra in extras if isinstance(extra, Flag)), Flag())


def _describe_type(hint: Any) -> dict[str, Any]:
    """Return the arguments of `option` for a type."""
    origin, members = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kinds = [extra for extra in members if isinstance(extra, click.ParamType)]
        return {"type": kinds[0]} if kinds else _describe_type(members[0])
    if origin in (Union, UnionType):
        choices = [_describe_type(member) for member in members if member is not NoneType]
        # of a setting that may also be a list, or text, the shell takes the list, or the text
        several = [choice for choice in choices if "multiple" in choice]
        return next(iter([*several, *(one for one in choices if one == {"type": str}), *choices]))
    if origin is Literal:
        return {"type": click.Choice([str(word) for word in members])}
    if origin is tuple and Ellipsis not in members:
        one = _describe_type(members[0])
        return ({"type": _read_name} if one["type"] is str else one) | {"nargs": len(members)}
    if origin in (tuple, list, Sequence, Iterable):
        return _describe_type(members[0]) | {"multiple": True}
    if hint is bool:
        return {"is_flag": True}
    return {"type": hint if hint in (int, float) else str}


def _read_name(text: str) -> str:
    """Return one of the names that an option takes, which is not the next option."""
    if text.startswith("--"):
        raise click.BadParameter(f"{text} is the next option: put a space between names, as in A B")
    return text


def _describe_default(default: Any) -> dict[str, Any]:
    """Return the arguments of `option` for a default, which is shown where it says something."""
    if default is inspect.Parameter.empty:
        return {"required": True}
    if isinstance(default, Fraction):
        return {"default": f"{float(default):g}", "show_default": True}
    if default is None or default is False or default == ():
        return {}
    return {"default": default, "show_default": default != ""}
