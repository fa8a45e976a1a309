"""check_exporter: the built-in exporters pass it, and broken ones fail by name and world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from groundfault.base.files import write_text
from groundfault.errors import PlanError
from groundfault.exports import Exporter, ReportSlices, get, known
from groundfault_lab.testing import check_exporter


@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("eee", "a.jsonl"),
        ("html-explorer", "a.html"),
        ("label-studio", "a.json"),
        ("memberships", "a.csv"),
    ],
)
def test_built_in_exporters_pass(name: str, out: str) -> None:
    check_exporter(name, out)


@dataclass
class Careless:
    """Writes as its settings say."""

    fault: str
    name: str = "careless"
    count: int = 0

    def export(self, slices: ReportSlices, out: Path) -> str:
        self.count += 1
        if self.fault == "error":
            out.write_text("x")
        else:
            write_text(out, str(self.count) if self.fault == "memory" else "x")
        if self.fault == "litter":
            write_text(out.with_name("litter"), "x")
        return "" if self.fault == "silent" else "one file"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("error", "not InputError"),
        ("memory", "the second time"),
        ("litter", "not export.json alone"),
        ("silent", "in one line"),
    ],
)
def test_a_fault_is_named_with_its_world(fault: str, message: str) -> None:
    with pytest.raises(AssertionError, match=rf"exporter 'careless'.*{message}.*of the world '"):
        check_exporter(Careless(fault))
    check_exporter(Careless("none"))


def test_exporters_are_found_by_name_or_passed() -> None:
    mine = Careless("none")
    assert get(mine) is mine
    assert isinstance(mine, Exporter)
    assert [get(name).name for name in known()[:4]] == list(known()[:4])
    with pytest.raises(PlanError, match="no exporter is named 'fax'"):
        get("fax")
    with pytest.raises(PlanError, match="has no setting colour"):
        get("eee", colour="red")
