"""Evidence that has moved: as many places as a report has sources, with the names that it gave."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import groundfault
from groundfault import Candidate, Evidence, InputError, Plan
from groundfault.auditing.evidence_again import name_places, read_evidence_again
from groundfault.cli.main import cli

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"


@pytest.mark.parametrize(
    ("places", "sources", "expected"),
    [
        ("new", ("old",), ("new",)),
        (["c", "d"], ("a", "b"), ("c", "d")),
        ("whole", ("a", "b"), ("whole",)),
        (["c", "d"], ("base=a", "new=b"), ("base=c", "new=d")),
        (["new=d", "base=c"], ("base=a", "new=b"), ("new=d", "base=c")),
    ],
)
def test_places_have_the_names_of_the_sources(
    places: str | list[str], sources: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert name_places(places, sources) == expected


def test_one_place_for_two_names_is_refused() -> None:
    with pytest.raises(InputError, match=r"of 2 sources, base=a, new=b: .* \(--evidence base=A\)"):
        name_places("whole", ("base=a", "new=b"))


@pytest.mark.slow
def test_a_report_of_two_configurations_is_verified_where_its_logs_are_now(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
    names = {"base": "inspect_0.3.285_base.eval", "new": "inspect_0.3.285_new.eval"}
    for name in names.values():
        shutil.copy(LOGS / name, before / name)
    sources = [f"{alias}={before / name}" for alias, name in names.items()]
    evidence, plan = Evidence.from_logs(*sources), Plan(judge="bh", permutations=19)
    candidates = [Candidate.from_text("early: position < 9")]
    settings = {"compare": ("base", "new"), "ledger": False, "modes": False, "texts": False}
    groundfault.audit(evidence, plan, candidates, **settings).write(tmp_path / "report")
    for name in names.values():
        shutil.move(before / name, after / name)
    places = [word for name in names.values() for word in ("--evidence", str(after / name))]
    arguments = ["verify", str(tmp_path / "report"), "--no-ledger", *places]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    # the other way round it is another comparison
    result = CliRunner().invoke(cli, [*arguments[:3], *places[2:], *places[:2]])
    assert result.exit_code == 1


def test_two_tables_that_have_moved_are_read_again(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": range(40), "error": [0, 1] * 20, "long": [0, 0, 1, 1] * 10})
    for name in ("a.csv", "b.csv"):
        table.write_csv(tmp_path / name)
    sources = tuple(f"{n}={tmp_path / n}.csv" for n in "ab")
    evidence = Evidence.from_table(sources, outcome="error", id="id")
    candidates = [Candidate.from_text("long: long = 1")]
    settings = {"compare": ("a", "b"), "ledger": False, "modes": False, "texts": False}
    report = groundfault.audit(evidence, Plan(judge="bh"), candidates, **settings)
    places = [shutil.move(tmp_path / f"{n}.csv", tmp_path / f"moved-{n}.csv") for n in "ab"]
    assert read_evidence_again(report.data, tmp_path, places).hash == evidence.hash
    with pytest.raises(InputError, match="of 2 sources"):
        read_evidence_again(report.data, tmp_path, places[0])
