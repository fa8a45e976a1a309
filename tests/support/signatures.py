"""Real keys and time stamps for tests: OpenSSH's and OpenSSL's own programs make them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_ssh = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="there is no ssh-keygen")
needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl")

_SETTINGS = """
[req]
distinguished_name = name
prompt = no
[name]
CN = {name}
[root]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[stamper]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[tsa]
default_tsa = here
[here]
serial = {folder}/serial
signer_cert = {folder}/stamper.pem
signer_key = {folder}/stamper.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256, sha512
ess_cert_id_alg = sha256
"""


def make_key(folder: Path, name: str = "key") -> Path:
    """A new SSH key without a passphrase; its public half lies beside it."""
    place = folder / name
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(place)]
    subprocess.run(command, check=True)
    return place


def make_authority(folder: Path) -> Path:
    """A time stamp authority of our own: its root certificate."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30")
    for name in ("root", "stamper"):
        (folder / f"{name}.cnf").write_text(_SETTINGS.format(name=name, folder=folder))
    openssl(
        *("req", "-x509", "-config", "root.cnf", "-extensions", "root", *curve),
        *("-keyout", "root.key", "-out", "root.pem"),
    )
    openssl(
        "req",
        "-config",
        "stamper.cnf",
        *curve[:-2],
        "-keyout",
        "stamper.key",
        "-out",
        "stamper.csr",
    )
    openssl(
        *("x509", "-req", "-in", "stamper.csr", "-CA", "root.pem", "-CAkey", "root.key"),
        *("-CAcreateserial", "-days", "30", "-extfile", "stamper.cnf", "-extensions", "stamper"),
        *("-out", "stamper.pem"),
    )
    (folder / "serial").write_text("01\n")
    return folder / "root.pem"


def stamp(folder: Path, content: Path) -> Path:
    """The time stamp of a file, by the authority in a folder."""
    request, response = folder / "request.tsq", content.with_name(content.name + ".tsr")
    for command in (
        f"openssl ts -query -data {content} -sha256 -cert -out {request}",
        f"openssl ts -reply -config stamper.cnf -section here -queryfile {request} -out {response}",
    ):
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return response
