"""Files appear whole or not at all."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from commands import run_program

from groundfault.base import files
from groundfault.base.files import SHARE, replace_folder, write_text
from groundfault.base.ledger import Ledger
from groundfault.errors import InputError


def test_folders_are_made_and_an_older_file_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b.txt"
    write_text(place, "one")
    write_text(place, "zwei ä")
    assert place.read_bytes() == "zwei ä".encode()
    assert [p.name for p in place.parent.iterdir()] == ["b.txt"]


def list_modes(folder: Path) -> dict[str, int]:
    return {p.name: stat.S_IMODE(p.stat().st_mode) for p in [folder, *folder.rglob("*")]}


def write_all(place: Path) -> None:
    with replace_folder(place / "report") as new:
        write_text(new / "report.json", "{}")
        (new / "plain.parquet").write_bytes(b"")
    Ledger(place / "ledger.db").append("note", {})


def test_what_is_written_is_for_its_owner_alone(tmp_path: Path) -> None:
    write_all(tmp_path)
    modes = list_modes(tmp_path)
    assert modes.pop("report") == modes.pop(tmp_path.name) == 0o700
    assert set(modes) == {"report.json", "plain.parquet", "ledger.db"}
    assert set(modes.values()) == {0o600}


def test_what_is_shared_is_for_all_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARE, "1")
    write_all(tmp_path)
    modes = list_modes(tmp_path / "report") | {"ledger.db": 0o644}
    assert modes == {"report": 0o755} | dict.fromkeys(
        ("report.json", "plain.parquet", "ledger.db"), 0o644
    )


def test_a_file_that_is_replaced_keeps_what_its_owner_allowed(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    write_text(place, "one")
    place.chmod(0o640)
    write_text(place, "two")
    assert stat.S_IMODE(place.stat().st_mode) == 0o640


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


def test_links_are_followed_and_stay(tmp_path: Path) -> None:
    target = tmp_path / "real" / "a.txt"
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "link-to-link").symlink_to(tmp_path / "link")
    for name, text in (("link", "one"), ("link-to-link", "two")):
        write_text(tmp_path / name, text)
        assert (tmp_path / name).is_symlink()
        assert target.read_text() == text
    assert not target.is_symlink()
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(InputError, match="Too many levels of symbolic links"):
        write_text(tmp_path / "circle", "x")
    assert (tmp_path / "circle").is_symlink()


def test_a_pipe_a_socket_and_a_device_are_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for place in (pipe, link):
        texts: list[str] = []
        reader = Thread(target=lambda into=texts: into.append(pipe.read_text()))
        reader.start()
        write_text(place, "through")
        reader.join(10)
        assert texts == ["through"]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)

    # names of sockets are short
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/socket")
        server.listen()
        write_text(Path(folder, "socket"), "to whom it may concern")
        assert server.accept()[0].recv(99) == b"to whom it may concern"

    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(InputError, match="No space left on device"):
        write_text(tmp_path / "full", "x")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["full", "link", "pipe"]


def test_standard_output_by_its_name_is_not_cut_off(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    print("first")
    write_text(Path("/dev/stdout"), "second\n")
    write_text(Path("/dev/fd/1"), "third\n")
    assert capfd.readouterr().out == "first\nsecond\nthird\n"


def test_what_is_no_text_is_escaped_as_json_does(tmp_path: Path) -> None:
    write_text(tmp_path / "a.json", f'"{os.fsdecode(bytes([233]))}"')
    assert (tmp_path / "a.json").read_bytes() == rb'"\udce9"'


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("shared", [False, True])
def test_all_that_a_command_writes_is_private_or_shared_whatever_the_umask(
    shared: bool, umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GROUNDFAULT_SHARE", raising=False)
    rows = "".join(f"q{i},{i % 3},{i % 2}\n" for i in range(60))
    (tmp_path / "t.csv").write_text("id,x,error\n" + rows)
    (tmp_path / "t.csv").chmod(0o640)
    words = ["--share"] * shared
    before = os.umask(umask)
    try:
        for command in (
            "audit t.csv --id id --outcome error --ledger l.db --out report --json r.json",
            "export report --to memberships --all-candidates -o m.csv",
            "case new case --from t.csv --id id --outcome error",
        ):
            ending = run_program(*words, *command.split(), folder=tmp_path)
            assert ending.status == 0, ending.errors
        assert os.umask(umask) == umask, "no command changes the umask"
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777
        for path in tmp_path.rglob("*")
        if path.name != "t.csv"
    }
    folders = {name for name in modes if (tmp_path / name).is_dir()}
    assert {"report", "case"} <= folders
    folder_mode, file_mode = (0o755, 0o644) if shared else (0o700, 0o600)
    assert modes == {name: folder_mode if name in folders else file_mode for name in modes}


@pytest.mark.skipif(os.name == "nt", reason="Windows syncs no folder")
def test_a_folder_is_synced_after_a_rename_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the system is asked to do, in its order: a power cut may come after any of it."""
    done: list[str] = []
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def note_sync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def note_move(move: Callable[..., None]) -> Callable[..., None]:
        def note(*places: object) -> None:
            done.append("move")
            move(*places)

        return note

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "rename", note_move(rename))
    monkeypatch.setattr(os, "replace", note_move(replace))
    files.write_text(tmp_path / "a.txt", "a")
    assert done == ["file", "move", "folder"]
    done.clear()
    with files.replace_folder(tmp_path / "r") as place:
        files.write_text(place / "a.txt", "a")
        files.write_text(place / "b.txt", "b")
    last = len(done) - 1 - done[::-1].index("move")
    assert "folder" in done[last:], done
