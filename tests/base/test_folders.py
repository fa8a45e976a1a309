"""Files of a folder are replaced together or not at all."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from groundfault.base import files
from groundfault.base.files import replace_folder, write_text
from groundfault.errors import InputError


def write_all(place: Path, word: str, *names: str) -> None:
    with replace_folder(place) as new:
        for name in names or ("a.txt", "b.txt", "c.txt"):
            write_text(new / name, word)


def read_all(place: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in place.iterdir()}


def test_all_files_are_replaced_and_others_stay(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "report"
    write_all(place, "old")
    (place / "notes.txt").write_text("mine")
    (place / "figures").mkdir()
    before = place.stat().st_ino
    (place / "figures" / "mine.svg").write_text("mine")
    with replace_folder(place, names=["c.txt", "never.txt"]) as new:
        write_text(new / "a.txt", "new")
        write_text(new / "b.txt", "new")
        write_text(new / "figures" / "curve.svg", "new")
        assert (place / "a.txt").read_text() == "old"
    assert read_all(place / "figures") == {"mine.svg": "mine", "curve.svg": "new"}
    shutil.rmtree(place / "figures")
    assert read_all(place) == {"a.txt": "new", "b.txt": "new", "notes.txt": "mine"}
    assert place.stat().st_ino == before


def test_a_block_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    write_all(tmp_path / "one", "old")
    for place in (tmp_path / "one", tmp_path / "two"):
        with pytest.raises(InputError, match=f"cannot write {place}/a.txt/b.txt: File exists"):
            # one file is in the way of the other
            write_all(place, "new", "a.txt", "a.txt/b.txt")
    assert read_all(tmp_path / "one") == dict.fromkeys(("a.txt", "b.txt", "c.txt"), "old")
    assert not (tmp_path / "two").exists()


# every rename in turn: three older files out, four new ones in
@pytest.mark.parametrize("last", range(7))
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_a_rename_that_fails_puts_everything_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int, kind: type[BaseException]
) -> None:
    write_all(tmp_path, "old")
    rename, count = Path.rename, 0

    def fail_once(self: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == last + 1:
            raise kind("no")
        return rename(self, target)

    monkeypatch.setattr(files.Path, "rename", fail_once)
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_all(tmp_path, "new", "a.txt", "b.txt", "c.txt", "d.txt")
    assert count > last
    assert read_all(tmp_path) == dict.fromkeys(("a.txt", "b.txt", "c.txt"), "old")


_KILL = """
import os, pathlib, sys
from groundfault.base.files import replace_folder
rename, count = pathlib.Path.rename, 0
def kill(self, target):
    global count
    if count == last:
        os._exit(9)
    count += 1
    return rename(self, target)
pathlib.Path.rename = kill
for last in range(6):
    if os.fork():
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 9
        continue
    with replace_folder(sys.argv[1 + last]) as new:
        for name in ("a.txt", "b.txt", "c.txt"):
            (new / name).write_text("new")
    os._exit(0)
"""


def test_a_process_killed_in_between_mixes_nothing_and_is_finished_later(tmp_path: Path) -> None:
    places = [tmp_path / str(last) for last in range(6)]
    for place in places:
        write_all(place, "old")
    # forks of a process of its own: this one has threads
    subprocess.run([sys.executable, "-c", _KILL, *map(str, places)], check=True)
    for place in places:
        assert len({each.read_text() for each in place.iterdir() if each.is_file()}) <= 1
        with pytest.raises(KeyError), replace_folder(place):
            raise KeyError
        assert read_all(place) == dict.fromkeys(("a.txt", "b.txt", "c.txt"), "new")


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom groundfault.base.files import replace_folder\n"
        "with replace_folder(sys.argv[1]) as new:\n    print(new)"
    )
    with replace_folder(tmp_path / "report") as new:
        # within one process, too
        with (
            pytest.raises(InputError, match="another command is writing into"),
            replace_folder(tmp_path / "report"),
        ):
            pass
        result = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "report")], capture_output=True, text=True
        )
        assert "another command is writing into" in result.stderr
        # below the folder itself nothing is in the way
        write_all(new, "new")
    assert len(read_all(tmp_path / "report")) == 3


def test_a_folder_a_link_and_a_file_in_the_way(tmp_path: Path) -> None:
    place = tmp_path / "report"
    (place / "b.txt").mkdir(parents=True)
    with pytest.raises(InputError, match=r"b\.txt: it is a folder"):
        write_all(place, "new")
    assert [each.name for each in place.iterdir()] == ["b.txt"]
    (place / "b.txt").rmdir()
    (tmp_path / "elsewhere.txt").write_text("old")
    (place / "b.txt").symlink_to(tmp_path / "elsewhere.txt")
    (tmp_path / "link").symlink_to(place)
    write_all(tmp_path / "link", "new")
    assert (place / "b.txt").is_symlink()
    assert (tmp_path / "elsewhere.txt").read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    with pytest.raises(InputError, match="it is a file; name a directory"):
        write_all(tmp_path / "elsewhere.txt", "new")


def test_what_stands_on_top_comes_last_and_leaves_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[str] = []
    rename = Path.rename

    def watch(self: Path, target: Path) -> Path:
        moved.append(self.name)
        return rename(self, target)

    for _ in range(2):
        with replace_folder(tmp_path / "case") as new:
            (new / "evidence").mkdir()
            (new / "evidence" / "rows").write_text("")
            (new / "case.json").write_text("")
            monkeypatch.setattr(Path, "rename", watch)
    assert moved == ["rows", "case.json", "case.json", "rows", "rows", "case.json"]
