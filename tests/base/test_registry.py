"""Registries: built-in names, those of packages, and what is said where there is none."""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from groundfault.base.registry import Registry, load_object
from groundfault.cli.main import cli
from groundfault.errors import MissingExtraError, PlanError

BOXES = Registry("box", "groundfault.test_boxes", {"count": "collections:Counter"})


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of an installed package with entry points, first on the path."""
    info = tmp_path / "boxes-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: boxes\nVersion: 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return info / "entry_points.txt"


def test_an_object_is_loaded_from_its_place() -> None:
    assert load_object("collections:Counter") is Counter
    with pytest.raises(AttributeError):
        load_object("collections:Nonsense")


def test_built_in_names_and_those_of_packages(package: Path) -> None:
    package.write_text("[groundfault.test_boxes]\nordered = collections:OrderedDict\n")
    assert BOXES.names() == ("count", "ordered")
    assert BOXES.get("count") is Counter
    assert BOXES.get("ordered") is OrderedDict


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(PlanError, match="no box is named 'x'; there are count"):
        BOXES.get("x")


def test_a_package_that_cannot_be_imported_is_named(package: Path) -> None:
    package.write_text("[groundfault.test_boxes]\nbroken = no_such_module:Box\n")
    with pytest.raises(PlanError, match=r"box 'broken' of no_such_module:Box cannot be loaded"):
        BOXES.get("broken")


def test_a_built_in_name_cannot_be_taken_over(package: Path) -> None:
    package.write_text("[groundfault.test_boxes]\ncount = collections:OrderedDict\n")
    with pytest.warns(UserWarning, match="collections:Counter is used, not collections:Ordered"):
        assert BOXES.names() == ("count",)
    assert BOXES.get("count") is Counter


FRONT = '''"""A front door."""

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from fractions import Fraction as Fraction

    from front_door.rooms import Room as Room, build as build

__getattr__, __dir__, __all__ = open_front_door(__name__)
'''


def test_a_front_door_reads_its_names_from_its_imports_for_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "front_door"
    home.mkdir()
    (home / "__init__.py").write_text(FRONT)
    (home / "rooms.py").write_text("class Room: ...\n\ndef build(): return Room()\n")
    (home / "cellar.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    door = import_module("front_door")
    assert door.__all__ == ["Fraction", "Room", "build"]
    assert "front_door.rooms" not in sys.modules
    assert isinstance(door.build(), door.Room)
    assert "Room" in vars(door)  # kept, so that it is looked up once
    assert {"Room", "cellar", "rooms"} <= set(dir(door))
    assert door.cellar is sys.modules["front_door.cellar"]
    with pytest.raises(AttributeError, match="no attribute 'garden'"):
        door.garden  # noqa: B018


@pytest.mark.parametrize(
    "command",
    [
        "lab taxonomy fit x.csv",
        "lab explain x.csv",
        "verify {taxonomy}",
        "audit {csv} --id id --outcome error --no-ledger --finders edisa",
    ],
)
def test_without_the_lab_the_line_to_type_is_said(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Absent:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "groundfault_lab":
                raise ModuleNotFoundError(name, name=name)

    for name in [name for name in sys.modules if name.partition(".")[0] == "groundfault_lab"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    taxonomy = Path(__file__).parents[1] / "fixtures" / "v0_1_0" / "taxonomy" / "fit"
    table = tmp_path / "x.csv"
    table.write_text("id,error,x\n" + "".join(f"{i},{i % 2},{i % 3}\n" for i in range(90)))
    words = command.format(taxonomy=taxonomy, csv=table).split()
    run = CliRunner().invoke(cli, words)
    assert isinstance(run.exception, MissingExtraError)
    assert "pip install groundfault-lab" in str(run.exception)
