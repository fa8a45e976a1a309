"""The script that breaks code to see whether tests notice: what it changes, and what it reports."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutate", ROOT / "scripts" / "mutate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module  # where dataclasses look their names up
    spec.loader.exec_module(module)
    return module


mutate = load_script()


def test_every_room_has_modules_and_tests() -> None:
    for patterns, tests in mutate.ROOMS.values():
        assert all(list((ROOT / mutate.PACKAGE).glob(pattern)) for pattern in patterns)
        assert all((ROOT / place).exists() for place in tests)


def test_annotations_are_found_and_nothing_else() -> None:
    source = "def f(a: int | None) -> str | None:\n    b: int | str = 1\n    return a | b\n"
    lines = source.splitlines()
    places = mutate.find_annotations(source)
    notes = {lines[line - 1][begin:end] for (line, begin), (_, end) in places}
    assert notes == {"int | None", "str | None", "int | str"}


def test_a_modules_own_tests_come_first() -> None:
    tests = mutate.list_tests(Path("src/judges/rule.py"), ("tests/judges",), ROOT)
    assert tests == ["tests/judges/test_rule.py", "tests/judges"]
    assert mutate.list_tests(Path("none.py"), ("tests/judges",), ROOT) == ["tests/judges"]
    own = mutate.list_own_tests(Path("src/stats/decoys.py"), mutate.ROOMS["decoys"][1], ROOT)
    assert own == ["tests/stats/test_decoys.py"]
    assert mutate.list_own_tests(Path("none.py"), ("tests/judges",), ROOT) == []


def test_a_sample_is_the_same_for_a_seed() -> None:
    changes = list(range(50))
    sample = mutate.draw(changes, 10, 3)
    assert sample == mutate.draw(changes, 10, 3) == sorted(sample)
    assert len(set(sample)) == 10
    assert mutate.draw(changes, 10, 4) != sample
    assert mutate.draw(changes, None, 3) == mutate.draw(changes, 50, 3) == changes


def test_a_survivor_is_its_place_and_its_lines() -> None:
    diff = "--- mutation diff ---\n--- a//r/src/m.py\n+++ b//r/src/m.py\n@@ -1 +1 @@\n x\n-a\n+b"
    assert mutate.trim_diff(diff, Path("/r")) == "src/m.py @@ -1 +1 @@\n-a\n+b"


def test_changes_of_annotations_and_decorators_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("cosmic_ray")
    module = tmp_path / "m.py"
    module.write_text("@final\ndef f(a: int | None) -> bool:\n    return a < 2\n")
    changes = mutate.list_changes([module])
    assert {line for line, _ in (change.start_pos for change in changes)} == {3}


def test_tests_have_to_pass_before_anything_is_changed(tmp_path: Path) -> None:
    failure = tmp_path / "test_failure.py"
    failure.write_text("def test_failure():\n    assert False\n")
    with pytest.raises(SystemExit, match="fail without any change"):
        mutate.time_tests((str(failure),))


def test_a_score_is_the_share_of_what_was_tried() -> None:
    assert mutate.RoomScore("judges", 100, 20, 15, ()).share == 0.75
    assert mutate.RoomScore("judges", 0, 0, 0, ()).share == 0
