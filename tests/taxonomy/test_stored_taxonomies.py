"""Taxonomies, labels and diagnoses of version 0.1.0 are read, and written again as they were."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from rounding import approximate

from groundfault.auditing.verification import verify
from groundfault.cli.main import cli
from groundfault.errors import InputError
from groundfault_lab.taxonomy import Taxonomy
from groundfault_lab.taxonomy.use.diagnosis import Diagnosis
from groundfault_lab.taxonomy.words.labelling import Labelling

FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_1_0"


@pytest.fixture
def stored_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the stored taxonomy, in a copy: manifests name paths below it."""
    place = tmp_path / "v0_1_0"
    shutil.copytree(FIXTURES / "taxonomy", place / "taxonomy")
    monkeypatch.chdir(place)
    return place / "taxonomy" / "fit"


def test_a_stored_taxonomy_is_saved_as_it_was(stored_path: Path, tmp_path: Path) -> None:
    taxonomy = Taxonomy.load(stored_path)
    assert len(taxonomy.published) == 2
    taxonomy.save(tmp_path / "again")
    again = (tmp_path / "again" / "taxonomy.json").read_bytes()
    assert again == (stored_path / "taxonomy.json").read_bytes()
    assert Taxonomy.load(tmp_path / "again").to_json() == taxonomy.to_json()


def test_stored_labels_are_read_and_saved_as_they_were(stored_path: Path, tmp_path: Path) -> None:
    labelling = Labelling.load(stored_path, Taxonomy.load(stored_path))
    assert labelling is not None
    assert labelling.labels[0].label == "polly"
    labelling.save(tmp_path)
    assert (tmp_path / "labels.json").read_bytes() == (stored_path / "labels.json").read_bytes()


def test_a_stored_diagnosis_is_read_and_made_again(stored_path: Path, tmp_path: Path) -> None:
    before = stored_path.parent / "diagnosis.json"
    assert json.loads(Diagnosis.load(before).to_json()) == json.loads(before.read_text("utf-8"))
    words = "lab taxonomy diagnose taxonomy/fit --model taxonomy/few.csv --id id --outcome correct"
    words += " --positive-is-good --budget 20 --json"
    result = CliRunner().invoke(cli, [*words.split(), str(tmp_path / "new.json")])
    assert result.exit_code == 0, result.output
    again, stored = (json.loads(p.read_text("utf-8")) for p in (tmp_path / "new.json", before))
    assert again == approximate(stored)


@pytest.mark.parametrize("place", ["fit/claims", "by-vector"])
def test_stored_reports_about_taxonomies_reproduce(stored_path: Path, place: str) -> None:
    result = verify(Path("taxonomy") / place)
    assert result.differences == ()
    assert result.reproduces


def test_a_stored_report_of_excess_reproduces_but_for_last_bits(stored_path: Path) -> None:
    # its losses were not rounded: another processor makes all of the report but their hashes
    result = verify(Path("taxonomy") / "fit" / "excess")
    fields = {difference.partition(":")[0] for difference in result.differences}
    assert fields in (set(), {"hashes.evidence", "hashes.outcome"})


@pytest.mark.parametrize(
    ("file", "key", "message"),
    [
        ("taxonomy.json", "groundfault_taxonomy", "its version is 2"),
        ("taxonomy.json", "colour", "unknown field"),
        ("labels.json", "groundfault_labels", "another version"),
        ("labels.json", "colour", "unknown field"),
    ],
)
def test_files_of_another_version_are_refused(
    stored_path: Path, file: str, key: str, message: str
) -> None:
    taxonomy = Taxonomy.load(stored_path)
    content = json.loads((stored_path / file).read_text("utf-8"))
    (stored_path / file).write_text(json.dumps(content | {key: 2}), "utf-8")
    with pytest.raises(InputError, match=message):
        Labelling.load(stored_path, taxonomy) if file == "labels.json" else Taxonomy.load(
            stored_path
        )


def test_a_diagnosis_of_a_newer_version_is_refused(stored_path: Path, tmp_path: Path) -> None:
    content = json.loads((stored_path.parent / "diagnosis.json").read_text("utf-8"))
    (tmp_path / "d.json").write_text(json.dumps(content | {"groundfault_diagnosis": 2}), "utf-8")
    with pytest.raises(InputError, match="its version is 2"):
        Diagnosis.load(tmp_path / "d.json")
