"""Counting: joint cells add up to the table, whatever the engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lazy_tables import CANDIDATES, make_table, write_parts

from groundfault import Evidence, Plan
from groundfault.auditing.counted_audit import CountedAudit
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.preparation import prepare
from groundfault.core.candidate import Library
from groundfault.core.units import Marks
from groundfault.stats import bits


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parts(tmp_path_factory.mktemp("lazy") / "table", make_table(400))


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_joint_cells_are_the_marks_row_by_row(folder: Path, engine: str) -> None:
    lazy = LazyEvidence.scan(
        folder, outcome="error", id="id", null_outcome="missing", split="part", engine=engine
    )
    audit = prepare(lazy, Plan(judge="split-holm"), CANDIDATES)
    assert isinstance(audit, CountedAudit)
    places = [0, 2, 4, 5]
    joint = audit.count_jointly(places, holdout=True)
    evidence = Evidence.from_frame(make_table(400), lazy.roles)
    marks = Marks.of(evidence, Library.of(CANDIDATES))
    on = bits.unpack(marks.on, 400)[places]
    assert marks.valid is not None
    defined = bits.unpack(marks.valid, 400)[places]
    is_holdout = (evidence.frame["part"] == "holdout").to_numpy()
    loss = evidence.loss.to_numpy()
    assert joint.rows.sum() == 400
    for cell in range(len(joint.rows)):
        same = (on == joint.on[:, cell, None]).all(axis=0)
        same &= (defined == joint.defined[:, cell, None]).all(axis=0)
        scored = same & is_holdout & ~np.isnan(loss)
        assert joint.rows[cell] == same.sum()
        assert joint.scored[cell] == scored.sum()
        assert joint.errors[cell] == (loss[scored] == 1).sum()


def test_cells_tell_parts_and_losses(folder: Path) -> None:
    lazy = LazyEvidence.scan(folder, outcome="error", id="id", null_outcome="missing", split="part")
    audit = prepare(lazy, Plan(judge="split-holm"), CANDIDATES)
    assert isinstance(audit, CountedAudit)
    scan = audit.scan_cells(["hard"], {})
    table = make_table(400)
    assert len(scan.cells) == 6
    assert scan.cells.rows[np.isnan(scan.loss)].sum() == table["error"].null_count()
    assert set(scan.status) == {"scored", "missing"}
    discovery = int((table["part"] == "discovery").sum())
    assert scan.cells.rows[scan.is_discovery].sum() == discovery
    assert scan.cells.on.sum() == table["hard"].sum()
