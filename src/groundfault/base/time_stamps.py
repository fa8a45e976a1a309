"""Time stamps (RFC 3161): an authority's word that some bytes were there at a time."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from groundfault.base.reading import read_bytes
from groundfault.errors import InputError, LedgerError, MissingExtraError

_MAX_BYTES = 1 << 20


def read_time_stamp(stamp: str | Path, authority: str | Path, content: bytes) -> datetime:
    """When an authority saw some bytes.

    Parameters
    ----------
    stamp : path
        The authority's response, as ``openssl ts`` and others store it (``.tsr``).
    authority : path
        PEM certificates: the authority's root, and those between it and the signer that the
        response lacks.
    content : bytes
        What was stamped.

    Returns
    -------
    datetime
        UTC.

    Raises
    ------
    InputError
        If a file cannot be read, or is something else.
    LedgerError
        If the stamp is of other bytes, or no certificate of the authority vouches for it.
    MissingExtraError
        If rfc3161-client is not installed.
    """
    try:
        from cryptography.x509 import load_pem_x509_certificates
        from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response
    except ImportError:
        raise MissingExtraError(
            "time stamps are checked by rfc3161-client: pip install 'groundfault[stamp]'"
        ) from None
    pem, token = _read(authority, "certificates"), _read(stamp, "time stamp")
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
        raise InputError(f"{authority} holds no root certificate: none that signed itself")
    try:
        VerifierBuilder(roots=roots, intermediates=others).build().verify_message(response, content)
    except (VerificationError, ValueError) as error:
        raise LedgerError(f"the time stamp {stamp} does not hold: {error}") from None
    return time


def _read(path: str | Path, what: str) -> bytes:
    try:
        return read_bytes(path, _MAX_BYTES)
    except OSError as error:
        raise InputError(f"cannot read the {what} {path}: {error.strerror}") from None
