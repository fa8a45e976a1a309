"""Hashes of pools: no order matters, and the records of version 0.1.0 stay readable."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import polars as pl
import pytest

import groundfault
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError
from groundfault.sequential import ALL, Pool, SequentialAudit, verify_certificate
from groundfault.sequential.answers import replay
from groundfault.sequential.pool import find_order, hash_content, sort_groups

COLUMNS = {
    "topic": ["sums", "dates", "names"] * 10,
    "lang": ["fr", "de"] * 15,
    "Zoo": ["x", "y", "z", "u", "v"] * 6,
}


def make_pool(names=tuple(COLUMNS)):
    scores = (np.random.default_rng(0).random(30) < 0.8).astype(float)
    return Pool.from_arrays(range(30), {name: COLUMNS[name] for name in names}, scores=scores)


def outline_of_0_1_0(names):
    """The outline that version 0.1.0 stored: groups, and their hash, in the order given."""
    outline = make_pool(names).outline()
    groups = outline["groups"]
    order = [ALL] + [g for name in names for g in sorted(groups) if g.startswith(f"{name}=")]
    content = {
        "ids": outline["ids"],
        "groups": {name: groups[name] for name in order},
        "generated": False,
        "embedding": "",
    }
    text = json.dumps(content, ensure_ascii=False)
    return {
        **content,
        "sources": ["arrays"],
        "hash": hashlib.sha256(text.encode()).hexdigest(),
    }


def test_the_hash_does_not_depend_on_the_order_of_groups():
    pools = [make_pool(names) for names in permutations(COLUMNS)]
    assert len({pool.hash for pool in pools}) == 1
    assert len({pool.groups for pool in pools}) == 1
    assert pools[0].groups == tuple(sort_groups(pools[0].groups, ALL))
    assert pools[0].groups[0] == ALL


@pytest.mark.parametrize("names", list(permutations(COLUMNS)))
def test_status_reads_what_it_recorded_whatever_the_order(names, tmp_path):
    pool, ledger = make_pool(names), tmp_path / "audit.db"
    audit = SequentialAudit(pool, threshold=0.8, policy="stratified", budget=5, ledger=ledger)
    audit.run(replay(pool))
    again = SequentialAudit.from_ledger(ledger)
    assert again.certificate().to_dict()["pool"] == audit.certificate().to_dict()["pool"]
    assert verify_certificate(again.certificate(), pool=make_pool(), policy=True).reproduces


@pytest.mark.parametrize("sort_keys", [False, True])
@pytest.mark.parametrize("names", list(permutations(COLUMNS)))
def test_outlines_of_0_1_0_are_read(names, sort_keys):
    outline = outline_of_0_1_0(names)
    # ledgers sort the keys of what they store, certificates keep their order
    stored = json.loads(json.dumps(outline, sort_keys=sort_keys))
    pool = Pool.from_outline(stored)
    assert pool.hash == outline["hash"]
    assert pool.groups == tuple(outline["groups"])
    assert pool.hash_by_name == make_pool().hash
    assert Pool.from_outline(pool.outline()).hash == pool.hash


def test_what_was_altered_is_still_refused():
    outline = outline_of_0_1_0(("topic", "lang"))
    name = next(iter(outline["groups"]))
    changed = {**outline, "groups": {**outline["groups"], name: "0" * 8}}
    with pytest.raises(InputError, match="was altered"):
        Pool.from_outline(changed)


def test_groups_can_be_left_out():
    pool = make_pool()
    few = pool.select_groups(pool.sizes >= 10)
    assert len(few.groups) == 6
    assert few.ids == pool.ids
    assert not any(name.startswith("Zoo") for name in few.groups)
    assert pool.select_groups(pool.sizes > 0) is pool
    assert replace(few, stored_hash="").hash == few.hash != pool.hash


def test_an_order_that_no_column_explains_is_not_found():
    content = {"ids": ["a"], "groups": {"all": "80", "x": "80"}, "generated": False}
    assert find_order(content, hash_content(content), "all") == ["all", "x"]
    assert find_order(content, "0" * 64, "all") is None


def test_modes_of_an_earlier_audit_become_groups():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"id": range(600), "lang": rng.choice(["de", "fr", "ja"], 600)})
    hard = (table["lang"] == "ja").to_numpy()
    table = table.with_columns(error=rng.random(600) < np.where(hard, 0.8, 0.1))
    evidence = Evidence.from_table(table[:300], outcome="error", id="id")
    modes = groundfault.audit(evidence).modes
    pool = Pool.from_table(table[300:].drop("error"), id="id", groups=["lang"])
    with_modes, prior = pool.declare_modes(modes, 0.85)
    (rule,) = prior
    assert "lang" in rule
    assert 0.1 < prior[rule] < 0.4
    assert set(with_modes.groups) == {*pool.groups, rule}
    inside = with_modes.members[with_modes.groups.index(rule)]
    assert (inside == (pool.cases["lang"] == "ja").to_numpy()).all()
    # a mode that no case is in, and one that passes often enough, are left out
    assert pool.declare_modes(modes, 0.05)[1] == {}
    no_case = Pool.from_table(table[300:].filter(pl.col("lang") != "ja"), id="id")
    assert no_case.declare_modes(modes, 0.85)[1] == {}
    # a forged report would take minutes
    with pytest.raises(InputError, match="5,000 failure modes, and at most 500"):
        pool.declare_modes([modes[0]] * 5000, 0.85)


def test_scores_may_be_verdicts_in_words() -> None:
    table = {"id": ["a", "b", "c", "d"], "verdict": ["Pass", "FAIL", "N/A", " pass "]}
    with pytest.warns(UserWarning, match="fail as 0, pass as 1"):
        pool = Pool.from_table(table, id="id", scores="verdict")
    assert pool.recorded is not None
    assert np.nan_to_num(pool.recorded, nan=-1.0).tolist() == [1.0, 0.0, -1.0, 1.0]
    with pytest.raises(InputError, match=r"the score 5; .* write 1 to 5 as 0, 0\.25"):
        Pool.from_table({"id": ["a", "b"], "mark": [1, 5]}, id="id", scores="mark")
