"""Options from signatures: names, types, defaults and help of parameters, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner

from groundfault.cli import shared
from groundfault.cli.settings import (
    Count,
    Flag,
    call,
    derive_options,
    own_options,
    read_parameter_texts,
)
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Paint:
    """A pot of paint.

    Parameters
    ----------
    colour : {"red", "blue"}
        Colour of it. Red is the default because it is.
    litres : number
        How much; ``default`` 1/4.
    coats : int, optional
        Number of coats.
    rooms : tuple of str
        Room to paint. Repeated for several.
    size : pair of float, optional
        Width and height.
    name : str
        Name on the lid.

    Raises
    ------
    ValueError
        Never.
    """

    colour: Literal["red", "blue"] = "red"
    litres: int | float | str | Fraction = Fraction(1, 4)
    coats: int | None = None
    rooms: tuple[str, ...] = ()
    size: tuple[float, float] | None = None
    name: str


def options_of(decorate: Callable[..., Any]) -> dict[str, click.Option]:
    """Options by name that a decorator adds to a command."""
    command = click.command("probe")(decorate(lambda **_: None))
    return {one.name: one for one in command.params if one.name and isinstance(one, click.Option)}


def test_a_settings_class_becomes_options() -> None:
    options = options_of(derive_options(Paint, group="Shape", size={"metavar": "W H"}))
    assert list(options) == ["colour", "litres", "coats", "rooms", "size", "name"]
    colour, litres, coats, rooms, size, name = options.values()
    assert (colour.metavar, colour.default, colour.help) == ("[red|blue]", "red", "Colour of it.")
    assert (litres.default, litres.help) == ("0.25", "How much; default 1/4.")
    assert (coats.type, coats.metavar, coats.required) == (click.INT, "N", False)
    assert (rooms.multiple, rooms.help) == (True, "Room to paint; repeatable.")
    assert (size.nargs, size.metavar, size.type) == (2, "W H", click.FLOAT)
    assert (name.required, name.opts) == (True, ["--name"])


def test_what_the_shell_has_otherwise_is_named_and_none_leaves_out() -> None:
    change = {"flag": "-c --colours", "name": "shade", "default": "blue", "help": "Shade."}
    options = options_of(derive_options(Paint, "colour coats", colour=change, coats=None))
    assert list(options) == ["shade"]
    assert (options["shade"].opts, options["shade"].default) == (["-c", "--colours"], "blue")


@click.command()
@own_options
def mix(
    pot: str,
    *,
    tint: Annotated[Count, Flag("-t --tint")] = 2,
    shades: Annotated[tuple[str, ...], Flag("--shade")] = (),
    base: Literal["oil", "water"] = "oil",
    dry: bool = False,
    hidden: str = "kept",
) -> None:
    """Mix a pot.

    \b
    mix pot -t 3

    Colours
    -------
    tint : N
        Amount of tint.
    shades : NAME
        Shade to add.
    base
        Base of the paint.
    dry
        Mix without water.

    Raises
    ------
    ValueError
        Never.
    """
    click.echo(f"{pot} {tint} {shades} {base} {dry} {hidden}")


def test_the_parameters_of_a_command_are_its_options() -> None:
    run = CliRunner().invoke
    assert run(mix, ["a"]).output == "a 2 () oil False kept\n"
    words = ["a", "-t", "3", "--shade", "x", "--shade", "y", "--base", "water", "--dry"]
    assert run(mix, words).output == "a 3 ('x', 'y') water True kept\n"
    assert run(mix, ["a", "--tint", "0"]).exit_code == run(mix, ["a", "--base", "x"]).exit_code == 2
    text = run(mix, ["--help"]).output
    assert "Shade to add; repeatable." in text
    assert "Colours" not in text
    assert "Raises" not in text
    assert "hidden" not in text
    assert {getattr(one, "group", "") for one in mix.params} == {"", "Colours"}


def test_options_go_back_into_the_function_that_lists_them() -> None:
    def paint(place: str, *, coats: int = 1, rooms: Sequence[str] | None = None) -> str:
        return f"{place} {coats} {rooms}"

    options = {"place": "x", "coats": 2, "rooms": (), "other": 3}
    assert call(paint, options) == "x 2 None"
    assert call(paint, {"rooms": ("a",)}, "y", coats=5) == "y 5 ('a',)"


def test_every_setting_of_a_plan_is_an_option() -> None:
    options = options_of(shared.plan_options)
    assert set(options) == {field.name for field in fields(Plan)} - {"judge_settings"}
    command = click.command("audit")(shared.plan_options(lambda **values: call(Plan, values)))
    plan = command.main([], standalone_mode=False)
    assert plan.seal() == Plan().seal()
    words = "--alpha 0.05 --prevalence 0.2 0.8 --within a --within b --language-depth 2".split()
    assert command.main(words, standalone_mode=False) == Plan(
        alpha="0.05", prevalence=("0.2", "0.8"), within=("a", "b"), depth=2
    )


def test_a_setting_that_is_added_to_a_plan_is_an_option_at_once() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Later(Plan):
        """A plan of a later version.

        Parameters
        ----------
        shade : str
            Shade of the plan.
        """

        shade: str = "dark"

    shade = options_of(derive_options(Later))["shade"]
    assert (shade.opts, shade.default, shade.help) == (["--shade"], "dark", "Shade of the plan.")


def test_entries_of_a_docstring_may_share_a_line_and_name_stars() -> None:
    texts = read_parameter_texts(Evidence.from_logs)
    assert texts["sources"].kind == "path"
    assert texts["group"].text == texts["ignore"].text
    assert "InputError" not in texts


@pytest.mark.parametrize("group", ["", "Elsewhere"])
def test_a_list_of_options_may_stand_under_another_heading(group: str) -> None:
    def choose(*, one: int = 1) -> None:
        """Choose.

        Here
        ----
        one
            Number.
        """

    option = options_of(derive_options(choose, group=group))["one"]
    assert getattr(option, "group", None) == (group or "Here")
