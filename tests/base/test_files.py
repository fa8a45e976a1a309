"""Files appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundfault.base import files
from groundfault.base.files import write_bytes, write_text
from groundfault.errors import InputError


def test_folders_are_made_and_an_older_file_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b.txt"
    write_text(place, "one")
    write_text(place, "zwei ä")
    assert place.read_bytes() == "zwei ä".encode()
    assert [p.name for p in place.parent.iterdir()] == ["b.txt"]


def test_the_mode_is_that_of_an_ordinary_new_file(tmp_path: Path) -> None:
    write_bytes(tmp_path / "ours", b"")
    (tmp_path / "theirs").write_bytes(b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


def test_an_interrupted_write_leaves_the_older_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a.txt"
    write_text(place, "old")

    def interrupt(number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(place, "new")
    assert place.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="choose a place that can be written"):
        write_text(tmp_path / "file" / "below", "x")
