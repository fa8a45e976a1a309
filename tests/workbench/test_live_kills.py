"""A live audit whose server is killed at its steps: its certificate is that of one left alone."""

from __future__ import annotations

import os
import random
import re
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from killable_server import MODULES, KillableServer, enter
from nursery import Nursery

from groundfault.sequential import Certificate, Pool, SequentialAudit, SequentialPlan

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="needs fork and kill -9"),
]

KILLS = 20
RUN = ["label", "run", "pool.csv", "--id", "id", "--groups", "lang", "--threshold", "0.8"]
RUN += ["--seed", "3", "--policy", "stratified", "--label", "browser", "--ledger", "ledger.db"]


def label_until_killed(address: str) -> bool:
    """Label each case by its language until the audit ends; whether it did."""
    with suppress(httpx.TransportError), enter(address) as client:
        html = client.get("/live").text
        while step := re.search(r'name="step" value="(\d+)"', html):
            score = "fail" if re.search(r">ja</dd>", html) else "pass"
            fields = {"step": step[1], "score": score}
            answer = client.post("/live/label", data=fields, headers={"x-groundfault-part": "1"})
            html = answer.raise_for_status().text
        assert "The audit has ended" in html
        return True
    return False


def test_twenty_kills_change_no_certificate(tmp_path: Path) -> None:
    rows = [f"case-{n},{('de', 'fr', 'ja')[n % 3]}" for n in range(240)]
    (tmp_path / "pool.csv").write_text("\n".join(["id,lang", *rows]) + "\n")
    nursery = Nursery(MODULES)
    server = KillableServer(nursery, RUN, tmp_path)
    rng = random.Random(0)
    try:
        for _ in range(KILLS):
            # early in a start, or within its first labels
            if address := server.start(rng.randrange(1, 40)):
                label_until_killed(address)
        assert label_until_killed(server.start())
    finally:
        server.kill()
        nursery.stop()
    there = SequentialAudit.from_ledger(tmp_path / "ledger.db").certificate()
    assert there.verdict == "failure mode found"
    assert content(there) == content(undisturbed(tmp_path))


def undisturbed(folder: Path) -> Certificate:
    pool = Pool.from_table(folder / "pool.csv", id="id", groups=["lang"])
    plan = SequentialPlan(threshold=0.8, policy="stratified", seed=3)
    audit = SequentialAudit.of(pool, plan)
    audit.run(lambda query: 0.0 if query.case["lang"] == "ja" else 1.0)
    return audit.certificate()


def content(certificate: Certificate) -> dict[str, object]:
    data = certificate.to_dict()
    data["ledger"] = data["pool"]["sources"] = None
    return data
