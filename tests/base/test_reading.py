"""Reading: files are read whole up to a bound, and what has no end is refused at once."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from groundfault.base.reading import decode_json, read_bytes, read_text
from groundfault.errors import InputError


def test_a_file_of_the_limit_is_read_and_a_longer_one_is_not(tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.write_bytes(b"x" * (2 << 20))
    assert len(read_bytes(place, 2 << 20)) == 2 << 20
    with pytest.raises(InputError, match=r"x is larger than 2,097,151 bytes, the most"):
        read_bytes(place, (2 << 20) - 1)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/urandom"])
def test_a_device_is_refused_also_behind_a_link(tmp_path: Path, device: str) -> None:
    link = tmp_path / "library.json"
    link.symlink_to(device)
    with pytest.raises(InputError, match=r"library\.json is a device, which may never end"):
        read_bytes(link)


def test_a_pipe_is_read_up_to_the_limit(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for text, fits in (("ä", True), ("x" * 11, False)):
        writer = threading.Thread(target=pipe.write_text, args=(text, "utf-8"))
        writer.start()
        if fits:
            assert read_text(pipe, 10) == text
        else:
            with pytest.raises(InputError, match="larger than 10 bytes"):
                read_text(pipe, 10)
        writer.join()


def test_text_is_utf8_without_its_mark(tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.write_bytes("\ufeffä".encode())
    assert read_text(place) == "ä"
    place.write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        read_text(place)
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 1}', 'here names the key "a" twice in one object'),
        ('[{"b": {"x": 1, "\\u0078": 2}}]', 'here names the key "x" twice in one object'),
        (f"[{'9' * 301}]", "here holds a number of 301 digits"),
        ('{"a": 1', "here is not JSON, or is cut short"),
    ],
)
def test_json_that_readers_take_in_two_ways_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decode_json(text, "here")
    assert decode_json('{"a": {"a": 1}}', "here") == {"a": {"a": 1}}
