"""Anchors: a signature of the ledger's head by OpenSSH, which nobody else can make or change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest
from signatures import make_key, needs_ssh

from groundfault.base.anchors import NAMESPACE, AnchorFiles, name_key, read_anchor, sign_head
from groundfault.base.ledger import Ledger
from groundfault.errors import InputError, LedgerError, MissingExtraError

pytestmark = needs_ssh


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger of two events, two keys, and an anchor by the first."""
    folder = tmp_path_factory.mktemp("anchors")
    book = Ledger(folder / "book.db")
    for number in range(2):
        book.append("note", {"number": number})
    make_key(folder, "other")
    sign_head(book, make_key(folder), folder / "a.anchor")
    return folder


def copy(desk: Path, folder: Path) -> AnchorFiles:
    """The anchor in a folder of its own, to be spoilt."""
    for name in ("a.anchor", "a.anchor.sig"):
        (folder / name).write_bytes((desk / name).read_bytes())
    return AnchorFiles(folder / "a.anchor", desk / "key.pub")


def test_an_anchor_says_which_event_was_the_last(desk: Path) -> None:
    anchor = read_anchor(AnchorFiles(desk / "a.anchor", desk / "key.pub"))
    assert (anchor.events, anchor.head) == (2, Ledger(desk / "book.db").head)
    # anybody can check it without groundfault
    (desk / "signers").write_text("me " + (desk / "key.pub").read_text())
    command = f"ssh-keygen -Y verify -f signers -I me -n {NAMESPACE} -s a.anchor.sig"
    with (desk / "a.anchor").open("rb") as content:
        subprocess.run(command.split(), stdin=content, cwd=desk, check=True, capture_output=True)
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", "key.pub"], cwd=desk, check=True, capture_output=True, text=True
    )
    assert name_key(desk / "key.pub") in fingerprint.stdout


def test_its_name_has_the_number_of_events_and_it_is_never_replaced(desk: Path) -> None:
    book = Ledger(desk / "book.db")
    assert sign_head(book, desk / "key") == desk / "book.2.anchor"
    with pytest.raises(InputError, match="an anchor is never replaced"):
        sign_head(book, desk / "key")


@pytest.mark.parametrize("name", ["a.anchor", "a.anchor.sig"])
def test_no_byte_of_it_can_be_changed(name: str, desk: Path, tmp_path: Path) -> None:
    files = copy(desk, tmp_path)
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LedgerError, match="was changed, or somebody else signed it"):
        read_anchor(files)


def test_another_key_or_another_purpose_is_no_signature(desk: Path, tmp_path: Path) -> None:
    files = copy(desk, tmp_path)
    with pytest.raises(LedgerError, match="is not one of the key SHA256:"):
        read_anchor(AnchorFiles(files.path, desk / "other.pub"))
    (tmp_path / "a.anchor.sig").unlink()
    sign = ["ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", desk / "key", files.path]
    subprocess.run(sign, check=True, capture_output=True)
    with pytest.raises(LedgerError, match="is not one of the key SHA256:"):
        read_anchor(files)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "is no anchor of a ledger"),
        (b'{"head": "", "events": 1, "time": "now"}', "is no anchor of a ledger"),
        (b'{"groundfault_anchor": 2}', "is no anchor of a ledger"),
        (
            b'{"head": "", "events": 1, "time": "2026-01-01T00:00:00Z", "groundfault_anchor": 2}',
            "of a newer groundfault",
        ),
    ],
)
def test_what_is_signed_has_to_be_an_anchor(
    content: bytes, message: str, desk: Path, tmp_path: Path
) -> None:
    place = tmp_path / "x.anchor"
    place.write_bytes(content)
    sign = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", desk / "key", place]
    subprocess.run(sign, check=True, capture_output=True)
    with pytest.raises(InputError, match=message):
        read_anchor(AnchorFiles(place, desk / "key.pub"))


def test_a_signer_is_one_public_key_and_nothing_of_it_is_repeated(
    desk: Path, tmp_path: Path
) -> None:
    public = (desk / "key.pub").read_text()
    stranger = (desk / "other.pub").read_text()
    for text in ((desk / "key").read_text(), public + stranger, "cert-authority " + public, ""):
        (tmp_path / "signer").write_text(text)
        with pytest.raises(InputError, match="is no public SSH key") as error:
            read_anchor(AnchorFiles(desk / "a.anchor", tmp_path / "signer"))
        assert "PRIVATE" not in str(error.value)


def test_what_is_not_there_is_said(
    desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = copy(desk, tmp_path)
    book = Ledger(desk / "book.db")
    with pytest.raises(InputError, match="did not sign with"):
        sign_head(book, tmp_path / "nowhere", tmp_path / "b.anchor")
    assert not list(tmp_path.glob("b.*"))
    (tmp_path / "a.anchor.sig").unlink()
    with pytest.raises(InputError, match="cannot read the signature"):
        read_anchor(files)
    Ledger(tmp_path / "empty.db").extend("note", [])
    with pytest.raises(InputError, match="is empty"):
        sign_head(Ledger(tmp_path / "empty.db"), desk / "key")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match="install OpenSSH"):
        sign_head(book, desk / "key", tmp_path / "b.anchor")


def test_an_anchor_holds_what_it_says(desk: Path) -> None:
    content = msgspec.json.decode((desk / "a.anchor").read_bytes())
    assert set(content) == {"groundfault_anchor", "head", "events", "time"}
