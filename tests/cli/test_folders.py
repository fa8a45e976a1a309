"""Whatever writes a folder replaces its files together or, where one cannot be written, none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from groundfault import Evidence
from groundfault.auditing.report import Report
from groundfault.cli.main import cli
from groundfault.errors import InputError
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy
from groundfault_lab.taxonomy.words.labelling import write_taxonomy
from groundfault_studies.tables import PaperStudy

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0"
Write = Callable[[Path], object]


def write_report(place: Path) -> None:
    Report.load(FIXTURES / "confirmed" / "report").write(place)


def save_evidence(place: Path) -> None:
    table = pl.DataFrame({"lang": ["de", "en"] * 5, "error": [1, 0] * 5})
    Evidence.from_table(table, outcome="error").save(place)


def save_taxonomy(place: Path) -> None:
    Taxonomy.load(FIXTURES / "taxonomy" / "fit").save(place)


def write_taxonomy_page(place: Path) -> None:
    write_taxonomy(Taxonomy.load(FIXTURES / "taxonomy" / "fit"), place)


def write_study(place: Path) -> None:
    PaperStudy("small", "A small study", "nobody", {}, (), figures={"a": "<svg/>"}).write(place)


def report_sequential(place: Path) -> None:
    certificate = FIXTURES / "sequential" / "certificate.json"
    words = ["label", "report", str(certificate), "--out", str(place)]
    result = CliRunner().invoke(cli, words)
    if result.exception is not None:
        raise result.exception


@pytest.mark.parametrize(
    "write",
    [
        write_report,
        save_evidence,
        save_taxonomy,
        # its figures take seconds
        pytest.param(write_taxonomy_page, marks=pytest.mark.slow),
        write_study,
        report_sequential,
    ],
)
def test_one_file_that_cannot_be_written_leaves_all_as_they_were(
    tmp_path: Path, write: Write
) -> None:
    place = tmp_path / "out"
    write(place)
    names = sorted(each.name for each in place.iterdir())
    assert len(names) > 1
    # a folder of somebody's is in the way of one file, and the others are of an earlier run
    name, *rest = reversed(names)
    for each in names:
        (place / each).unlink()
    for each in rest:
        (place / each).write_text("old")
    (place / name).mkdir()
    (place / name / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"it is a folder|other files in it"):
        write(place)
    assert {each: (place / each).read_text() for each in rest} == dict.fromkeys(rest, "old")
    assert sorted(each.name for each in place.iterdir()) == names
    assert (place / name / "notes.txt").read_text() == "mine"
