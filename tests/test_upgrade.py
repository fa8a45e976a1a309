"""The list of removed names: each old name is gone, and each new one is there."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from groundfault.cli.main import cli

PAGE = (Path(__file__).parents[1] / "docs" / "upgrade.md").read_text(encoding="utf-8")
TABLES = [
    re.findall(r"^\| (`.+?) \| (`.+) \|$", table, re.MULTILINE)
    for table in PAGE.partition("## Removed names")[2].split("|---|---|")[1:]
]


def look_up(place: str) -> Any:
    """Return the module or the object of a dotted name."""
    parts = place.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise AttributeError(place)


def find_command(words: str) -> click.Command | None:
    """Return the command of these words."""
    command: click.Command | None = cli
    for word in words.split():
        command = command.get_command(click.Context(command), word)  # type: ignore[union-attr]
    return command


def list_members(owner: Any) -> set[str]:
    """Return the parameters, fields and members of a class or a function."""
    classes = inspect.getmro(owner) if inspect.isclass(owner) else ()
    ours = [inspect.getsource(each) for each in classes if each.__module__[:11] == "groundfault"]
    fields = re.findall(r"\bself\.(\w+)", "".join(ours))
    return {*inspect.signature(owner).parameters, *fields, *(dir(owner) if classes else ())}


def test_commands_and_options() -> None:
    for old, new in TABLES[0]:
        (flag, *places), target = re.findall(r"`(.+?)`", old), new.strip("`")
        if flag.startswith("--"):
            for place in places:
                command = find_command(place)
                assert command is not None, place
                flags = {each for parameter in command.params for each in parameter.opts}
                assert target in flags, (place, target)
                assert flag not in flags, (place, flag)
        elif flag != "lead":
            assert find_command(target.removeprefix("groundfault ")) is not None, new
            assert flag.removeprefix("groundfault ").split()[-1] not in cli.lines, old


@pytest.mark.lab
def test_names_and_modules() -> None:
    assert len(TABLES[1]) > 40
    for old, new in TABLES[1]:
        assert look_up(new.strip("`")) is not None
        with pytest.raises(AttributeError):
            look_up(old.strip("`"))


@pytest.mark.lab
def test_parameters_and_members() -> None:
    assert len(TABLES[2]) > 40
    for owner, changes in TABLES[2]:
        members = list_members(look_up(owner.strip("`")))
        for old, new in re.findall(r"`(\w+)`: `([\w.]+)`", changes):
            assert old not in members, (owner, old)
            assert new.partition(".")[0] in members, (owner, new)
