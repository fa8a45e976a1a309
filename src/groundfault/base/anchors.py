"""Anchors: the head of a ledger, signed with an SSH key, to be kept elsewhere.

A ledger's chain shows that an event was changed, but not that the whole ledger was written anew. An
anchor from an earlier day shows this, because the signed event is not in the new chain.

OpenSSH signs and verifies (``ssh-keygen -Y``). groundfault reads no private key, keys in an agent
or on a token work, and verifying needs only the public key.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from groundfault.base.files import write_bytes
from groundfault.base.ledger import Ledger
from groundfault.base.reading import decode_json, read_bytes
from groundfault.errors import InputError, LedgerError, MissingExtraError, require_extra

NAMESPACE = "groundfault-ledger"
"""Purpose of an anchor's signature: signatures for other purposes are refused."""

_MAX_BYTES = 1 << 16  # an anchor has some 150 bytes, an RSA key of 16,384 bits 3 KB
_MAX_STAMP_BYTES = 1 << 20  # a stamp with its chain has some 10 KB, a bundle of roots 300 KB
_PUBLIC_KEY = re.compile(
    r"(?:ssh-(?:ed25519|rsa)|ecdsa-sha2-nistp\d+|sk-[a-z0-9-]+@openssh\.com) [A-Za-z0-9+/]+=*"
)


class Anchor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The signed statement.

    Attributes
    ----------
    head : str
        Hash of the last event.
    events : int
        Number of events.
    time : datetime
        Time of signing, by the signer's clock.
    """

    head: str
    events: int
    time: datetime
    groundfault_anchor: int = 1


@dataclass(frozen=True)
class AnchorFiles:
    """An anchor, and the files to check it with.

    Attributes
    ----------
    path : path
        The anchor; its signature lies beside it, with ``.sig`` added to the name.
    signer : path
        The signer's public SSH key, from a place that the reader trusts.
    time_stamp : path, optional
        An RFC 3161 time stamp of the anchor.
    authority : path, optional
        PEM certificates of the time stamp's authority, from a place that the reader trusts.
    """

    path: str | Path
    signer: str | Path
    time_stamp: str | Path | None = None
    authority: str | Path | None = None

    def read(self) -> bytes:
        """Return the anchor's bytes, which the signature and the time stamp cover."""
        return _read(self.path, "anchor")


def sign_head(book: Ledger, key: str | Path, out: str | Path | None = None) -> Path:
    """Sign the head of a ledger.

    Parameters
    ----------
    book : Ledger
    key : path
        A private SSH key; or a public one, if an agent has the private one.
    out : path, optional
        Path of the anchor, by default beside the ledger; the signature is written beside it.

    Returns
    -------
    Path
        The anchor.

    Raises
    ------
    InputError
        If the ledger is empty, the key does not sign, or the anchor exists already.
    LedgerError
        If the ledger's chain is broken.
    MissingExtraError
        If there is no ``ssh-keygen``.
    """
    events = book.events()
    if not events:
        raise InputError(f"the ledger {book.place} is empty; sign it when something is recorded")
    book.check(events[-1].hash)
    place = Path(out) if out else _name_anchor(book, len(events))
    if place.exists():
        raise InputError(
            f"{place} is there already, and an anchor is never replaced; name another (--out)"
        )
    time = datetime.now(UTC).replace(microsecond=0)
    statement = msgspec.json.encode(Anchor(events[-1].hash, len(events), time)) + b"\n"
    # messages are not caught: a token asks there to be touched
    run = subprocess.run(
        [_find_program(), "-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key)],
        input=statement,
        stdout=subprocess.PIPE,
        check=False,
    )
    if run.returncode or not run.stdout:
        raise InputError(
            f"ssh-keygen did not sign with {key} (its exit status is {run.returncode}); name a "
            "private SSH key, or the public key of one that your agent has"
        )
    # the anchor last, so that it never exists without its signature
    write_bytes(_name_signature(place), run.stdout)
    write_bytes(place, statement)
    return place


def read_anchor(files: AnchorFiles) -> Anchor:
    """Read an anchor and check its signature.

    Raises
    ------
    InputError
        If a file cannot be read, or is something else.
    LedgerError
        If the signature is by another key, or signs another file.
    MissingExtraError
        If there is no ``ssh-keygen``.
    """
    statement = files.read()
    signature = _read(_name_signature(Path(files.path)), "signature")
    public_key = _read_public_key(files.signer)
    with TemporaryDirectory(prefix="groundfault-") as folder:
        # copies: check exactly the bytes that were read, and only the key from the key's file
        signers, copy = Path(folder, "signers"), Path(folder, "signature")
        signers.write_text(f'signer namespaces="{NAMESPACE}" {public_key}\n')
        copy.write_bytes(signature)
        command = [_find_program(), "-Y", "verify", "-I", "signer", "-n", NAMESPACE]
        run = subprocess.run(
            [*command, "-f", str(signers), "-s", str(copy)],
            input=statement,
            capture_output=True,
            check=False,
        )
    if run.returncode:
        raise LedgerError(
            f"the signature of {files.path} is not one of the key {name_key(files.signer)}: the "
            "anchor was changed, or somebody else signed it"
        )
    try:
        anchor = msgspec.convert(decode_json(statement.decode(), str(files.path)), Anchor)
    except ValueError as error:
        raise InputError(f"{files.path} is no anchor of a ledger: {error}") from None
    if anchor.groundfault_anchor != 1:
        raise InputError(f"{files.path} is an anchor of a newer groundfault; verify it with that")
    return anchor


def name_key(public_key: str | Path) -> str:
    """Return the fingerprint of a public key, as ``ssh-keygen -l`` prints it.

    Raises
    ------
    InputError
        If the file is no public SSH key.
    """
    blob = b64decode(_read_public_key(public_key).split()[1] + "==")
    return "SHA256:" + b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _read_public_key(path: str | Path) -> str:
    text = _read(path, "public key").decode("utf-8", "replace").strip()
    match = _PUBLIC_KEY.match(text)
    # the message quotes no content: the file may be the private key
    if match is None or "\n" in text:
        raise InputError(f"{path} is no public SSH key; name a file of one, such as id_ed25519.pub")
    return match.group()


def _read(path: str | Path, what: str, limit: int = _MAX_BYTES) -> bytes:
    try:
        return read_bytes(path, limit)
    except OSError as error:
        raise InputError(f"cannot read the {what} {path}: {error.strerror}") from None


def _name_signature(place: Path) -> Path:
    return place.with_name(place.name + ".sig")


def _name_anchor(book: Ledger, count: int) -> Path:
    # by the number of events: who signs after each audit has them all
    ledger = Path("groundfault-ledger" if "://" in book.place else book.place)
    return ledger.with_name(f"{ledger.stem}.{count}.anchor")


def _find_program() -> str:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise MissingExtraError(
            "signatures are made and checked by ssh-keygen, which is not there; install OpenSSH "
            "8.2 or newer (apt install openssh-client)"
        )
    return program


def read_time_stamp(stamp: str | Path, authority: str | Path, content: bytes) -> datetime:
    """Return the time at which an authority saw some bytes.

    Parameters
    ----------
    stamp : path
        The authority's response, as ``openssl ts`` and others store it (``.tsr``).
    authority : path
        PEM certificates: the authority's root, and the certificates between the root and the signer
        that the response lacks.
    content : bytes
        The stamped bytes.

    Returns
    -------
    datetime
        UTC.

    Raises
    ------
    InputError
        If a file cannot be read, or has another format.
    LedgerError
        If the stamp is for other bytes, or no certificate of the authority vouches for it.
    MissingExtraError
        If rfc3161-client is not installed.
    """
    with require_extra(
        "time stamps are checked by rfc3161-client: pip install 'groundfault[stamp]'"
    ):
        from cryptography.x509 import load_pem_x509_certificates
        from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response
    pem = _read(authority, "certificates", _MAX_STAMP_BYTES)
    token = _read(stamp, "time stamp", _MAX_STAMP_BYTES)
    try:
        certificates = load_pem_x509_certificates(pem)
    except ValueError:
        raise InputError(f"{authority} holds no certificates in PEM form") from None
    try:
        response = decode_timestamp_response(token)
        time = response.tst_info.gen_time
    except ValueError:
        raise InputError(f"{stamp} is no RFC 3161 time stamp, or one that was refused") from None
    roots = [one for one in certificates if one.issuer == one.subject]
    others = [one for one in certificates if one.issuer != one.subject]
    if not roots:
        raise InputError(f"{authority} holds no root certificate (signed by itself); add the root")
    try:
        VerifierBuilder(roots=roots, intermediates=others).build().verify_message(response, content)
    except (VerificationError, ValueError) as error:
        raise LedgerError(f"the time stamp {stamp} does not hold: {error}") from None
    return time
