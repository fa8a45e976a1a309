"""Commands that open reviews and live audits: what does not go together, and how they end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner
from killable_server import MODULES, KillableServer, enter
from nursery import Nursery
from probe_runs import make_wrong_rows, write_runs

from groundfault.cli.main import cli
from groundfault.errors import GroundfaultError
from groundfault.sequential import Certificate, SequentialAudit

RUN = ["label", "run", "pool.csv", "--id", "id", "--groups", "lang", "--threshold", "0.8"]
RUN += ["--seed", "3", "--policy", "stratified", "--label", "browser"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [f"case-{n},{('de', 'fr', 'ja')[n % 3]}" for n in range(60)]
    (tmp_path / "pool.csv").write_text("\n".join(["id,lang", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["open", "pool.csv", "--reviewer", "ana"], "holds no probe runs"),
        (["open", "runs", "--adjudicate"], "say who adjudicates"),
        (["open", "runs", "--reviewer", " "], "a reviewer has a name"),
        (["open", "none.db"], "there is no ledger"),
        ([*RUN, "--no-ledger"], "needs the ledger"),
        ([*RUN, "--show", "prompt"], "there is no column 'prompt'"),
        ([*RUN, "--labellers", "ana,ben", "--adjudicator", "cy"], "say who you are with --as"),
        ([*RUN, "--labellers", "ana", "--as", "dora"], "dora is neither a labeller nor"),
    ],
)
def test_what_cannot_be_opened_is_said(folder: Path, words: list[str], message: str) -> None:
    if "runs" in words:
        write_runs(folder / "runs", make_wrong_rows(1))
    result = CliRunner().invoke(cli, words)
    assert isinstance(result.exception, GroundfaultError), result.output
    assert message in str(result.exception)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs fork")
def test_ctrl_c_ends_the_page_and_writes_the_certificate(folder: Path) -> None:
    nursery = Nursery(MODULES)
    words = [*RUN, "--ledger", "ledger.db", "--certificate", "certificate.json"]
    server = KillableServer(nursery, words, folder)
    with enter(server.start()) as client:
        answer = client.post("/live/label", data={"step": "1", "score": "fail"})
        assert answer.status_code == 303
    assert server.end(signal.SIGINT) == 0
    nursery.stop()
    assert "stopped; your labels are saved" in (folder / "output-1").read_text()
    certificate = Certificate.load(folder / "certificate.json")
    assert certificate.labelled == 1
    assert certificate == SequentialAudit.from_ledger(folder / "ledger.db").certificate()
