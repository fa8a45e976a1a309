"""What groundfault open prints and refuses, and where it listens."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from commands import run_program

from groundfault.errors import InputError
from groundfault.workbench import serving
from groundfault.workbench.auth import SECRET


def test_a_missing_extra_is_one_line_with_its_remedy(
    bench_report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "find_spec", lambda name: None if name == "uvicorn" else name)
    ending = run_program("open", str(bench_report))
    assert ending.status == 2
    assert "pip install 'groundfault[web]'" in ending.errors
    assert len(ending.errors.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ledger", "x.db", "--no-ledger"], "--no-ledger does not go with --ledger"),
        (["--root-path", "audits"], "--root-path is a path such as /audits"),
    ],
)
def test_options_that_cannot_be_are_refused(
    bench_report: Path, words: list[str], message: str
) -> None:
    ending = run_program("open", str(bench_report), "--no-browser", *words)
    assert ending.status == 2
    assert message in ending.errors


def test_it_listens_at_another_port_only_where_none_was_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port}"):
            serving._listen("127.0.0.1", port)
    with serving._listen("127.0.0.1", None) as first, serving._listen("127.0.0.1", None) as second:
        assert first.getsockname()[0] == second.getsockname()[0] == "127.0.0.1"
        assert first.getsockname()[1] != second.getsockname()[1]


def test_a_user_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container: `docker run --user 10001` knows no such user."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 987_654)
    assert " user-987654@" in serving._name_tunnel(8000)


def test_a_unix_socket_is_for_its_owner_and_goes_in_the_end(tmp_path: Path) -> None:
    place = tmp_path / "bench.sock"
    with serving._listen_at_file(str(place)):
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        with pytest.raises(InputError, match=r"bench\.sock"), serving._listen_at_file(str(place)):
            pass
        assert place.exists()
    assert not place.exists()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_the_umask_of_the_process_stays_as_it_is(tmp_path: Path) -> None:
    """Other threads make files meanwhile. Before the file has its mode, nobody can connect."""
    place, seen = str(tmp_path / "bench.sock"), []

    def look(event: str, given: tuple[object, ...]) -> None:
        if event == "socket.bind" and given[1] == place:
            seen.extend(re.findall(r"Umask:\s+(\d+)", Path("/proc/self/status").read_text()))

    sys.addaudithook(look)
    before = os.umask(0)
    try:
        with serving._listen_at_file(place), socket.socket(socket.AF_UNIX) as other:
            assert stat.S_IMODE(Path(place).stat().st_mode) == 0o600
            with pytest.raises(ConnectionRefusedError):
                other.connect(place)
    finally:
        os.umask(before)
    assert seen == ["0000"]


@pytest.mark.slow
def test_the_printed_address_opens_the_workbench_behind_a_proxy(bench_report: Path) -> None:
    command = [sys.executable, "-m", "groundfault", "open", str(bench_report), "--no-browser"]
    command += ["--root-path", "/audits", "--ledger", str(bench_report.parent / "ledger.db")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        address = server.stdout.readline().strip()
        assert "ssh -L" in server.stderr.readline()
        home, token = address.split("/audits/#token=")
        with httpx.Client(timeout=60, headers={"origin": home}) as client:
            assert client.get(f"{home}/").status_code == 403
            # the proxy takes /audits away; every address has it
            shell = client.get(f"{home}/", headers={"accept": "text/html"})
            assert 'data-home="/audits"' in shell.text
            secret = client.post(f"{home}/enter", headers={SECRET: token}).text
            page = client.get(f"{home}/examples", headers={SECRET: secret})
            assert page.status_code == 200
            assert 'href="/audits/rule"' in page.text
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=20) in (0, 130)
