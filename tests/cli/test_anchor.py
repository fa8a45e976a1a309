"""``anchor`` and ``verify --anchor``: who erases a ledger and audits again is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from signatures import make_key, needs_ssh

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.base.ledgers import VARIABLE
from groundfault.cli.main import cli
from groundfault.errors import PlanError

pytestmark = needs_ssh


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_an_erased_ledger_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "book.db")
    rows = [f"q{i},{'de' if i % 2 else 'en'},{int(i % 4 == 1)}" for i in range(60)]
    Path("data.csv").write_text("\n".join(["id,lang,error", *rows, ""]))
    key = make_key(tmp_path)

    def audit(seed: int) -> groundfault.Report:
        evidence = Evidence.from_table("data.csv", id="id", outcome="error")
        plan, candidates = Plan(judge="holm", seed=seed), [Candidate("german", "lang = 'de'")]
        return groundfault.audit(evidence, plan, candidates, modes=False)

    audit(seed=1)
    signed = run("lab", "anchor", key, "--out", "first.anchor")
    assert signed.output == "signed: first.anchor and first.anchor.sig\n"
    # erased, and audited again: the new ledger is whole, and says "1 time"
    Path("book.db").unlink()
    report = audit(seed=2)
    assert report.ledger.sentence.endswith("1 time")
    report.write("again")
    assert run("verify", "again").exit_code == 0
    result = run("verify", "again", "--anchor", "first.anchor", "--signer", "key.pub")
    assert result.exit_code == 1
    assert "anchor failed: event 1 of the ledger was signed with SHA256:" in result.output
    assert "lacks it: events were erased" in result.output


def test_options_that_say_nothing_alone_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, message in (
        (("verify", ".", "--anchor", "a"), "--anchor needs --signer"),
        (("verify", ".", "--signer", "a"), "belong to an --anchor"),
        (("verify", ".", "--time-stamp", "a"), "belong to an --anchor"),
    ):
        with pytest.raises(PlanError, match=message):
            raise run(*words).exception
    monkeypatch.setenv(VARIABLE, "off")
    with pytest.raises(PlanError, match="name the ledger to sign"):
        raise run("lab", "anchor", "key").exception
