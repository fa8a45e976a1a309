"""RFC 3161 time stamps, by an authority that OpenSSL plays."""

from __future__ import annotations

import builtins
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from signatures import make_authority, needs_openssl, stamp

from groundfault.base.anchors import read_time_stamp
from groundfault.errors import InputError, LedgerError, MissingExtraError

pytestmark = needs_openssl


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority with a root, and a stamped text."""
    folder = tmp_path_factory.mktemp("authority")
    make_authority(folder)
    (folder / "text").write_text("what was there")
    stamp(folder, folder / "text")
    return folder


def test_it_says_when_the_bytes_were_there(desk: Path) -> None:
    pytest.importorskip("rfc3161_client")
    time = read_time_stamp(desk / "text.tsr", desk / "root.pem", b"what was there")
    assert abs(datetime.now(UTC) - time) < timedelta(minutes=5)


def test_other_bytes_or_another_authority_are_refused(desk: Path, tmp_path: Path) -> None:
    pytest.importorskip("rfc3161_client")
    with pytest.raises(LedgerError, match="does not hold"):
        read_time_stamp(desk / "text.tsr", desk / "root.pem", b"what was there later")
    with pytest.raises(LedgerError, match="does not hold"):
        read_time_stamp(desk / "text.tsr", make_authority(tmp_path), b"what was there")
    changed = bytearray((desk / "text.tsr").read_bytes())
    changed[-20] ^= 1
    (tmp_path / "changed.tsr").write_bytes(changed)
    with pytest.raises((LedgerError, InputError)):
        read_time_stamp(tmp_path / "changed.tsr", desk / "root.pem", b"what was there")


def test_other_files_are_named(desk: Path) -> None:
    pytest.importorskip("rfc3161_client")
    for one, other, message in (
        ("text", "root.pem", "is no RFC 3161 time stamp"),
        ("text.tsr", "text", "holds no certificates"),
        ("text.tsr", "stamper.pem", "holds no root certificate"),
        ("nowhere", "root.pem", "cannot read the time stamp"),
        ("text.tsr", "nowhere", "cannot read the certificates"),
    ):
        with pytest.raises(InputError, match=message):
            read_time_stamp(desk / one, desk / other, b"what was there")


def test_without_the_library_it_is_named(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: object, **options: object) -> object:
        if name.startswith("rfc3161_client"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'groundfault\[stamp\]'"):
        read_time_stamp(desk / "text.tsr", desk / "root.pem", b"what was there")
