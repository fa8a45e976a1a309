"""What a file names is not opened because the file names it: no URL, and nothing outside."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.auditing.report_examples import look_up_examples
from groundfault.base.ledger import Ledger
from groundfault.base.ledgers import VARIABLE
from groundfault.base.reading import is_inside
from groundfault.core.candidate import Library
from groundfault.errors import InputError
from groundfault.exports.inspect import annotate
from groundfault.exports.slices import ReportSlices
from groundfault.sequential import verify_certificate
from groundfault.slicing.embedding import Embedding

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0"
TABLE = pl.DataFrame(
    {
        "id": [f"q{i}" for i in range(60)],
        "lang": ["de", "en"] * 30,
        "error": [i % 4 == 0 for i in range(60)],
    }
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a stranger's: a report, its evidence, and a link that leads out of it."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "secret").mkdir()
    TABLE.write_csv(folder / "secret" / "results.csv")
    place = folder / "from a stranger"
    (place / "report").mkdir(parents=True)
    TABLE.write_csv(place / "results.csv")
    evidence = Evidence.from_table(place / "results.csv", id="id", outcome="error")
    report = groundfault.audit(
        evidence, Plan(judge="holm"), [Candidate("german", "lang = 'de'")], modes=False
    )
    report.to_json(place / "report" / "report.json")
    report.library.freeze(place / "report" / "library.json")
    (place / "link").symlink_to(folder / "secret")
    return folder


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that waits to be asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def name_source(desk: Path, source: str, folder: Path, **manifest: Any) -> Path:
    """The report with another source, in a folder beside it."""
    content = json.loads((desk / "from a stranger/report/report.json").read_text())
    content["manifest"] |= {"sources": [source], **manifest}
    folder.mkdir(exist_ok=True)
    (folder / "report.json").write_text(json.dumps(content))
    library = (desk / "from a stranger/report/library.json").read_bytes()
    (folder / "library.json").write_bytes(library)
    return folder


READERS: dict[str, Callable[[Path], Any]] = {
    "verify": lambda place: groundfault.verify(place, ledger=None),
    "show": lambda place: look_up_examples(place, "german"),
    "export": ReportSlices.load,
}
PLACES = [
    "{desk}/secret/results.csv",
    "{desk}/secret",
    "{desk}/from a stranger/link/results.csv",
    "{desk}/from a stranger/../secret/results.csv",
    "../../../../../../../..{desk}/secret/results.csv",
    "/dev/zero",
    "http://127.0.0.1:{port}/results.csv",
    "https://127.0.0.1:{port}/results.parquet",
    "s3://bucket/results.csv",
    "postgresql://127.0.0.1:{port}/results",
    "//127.0.0.1/share/results.csv",
    "\\\\127.0.0.1\\share\\results.csv",
]
LOGS = ["/**", "/*/*.json", "{desk}/from a stranger/*/../../secret/*"]


@pytest.mark.parametrize("way", READERS)
@pytest.mark.parametrize("source", [*PLACES, *LOGS])
def test_evidence_that_only_a_report_names_is_not_opened_elsewhere(
    source: str, way: str, desk: Path, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    place = source.format(desk=desk, port=port)
    for reading in (None, {"reader": "table"}) if source not in LOGS else ({"reader": "table"},):
        folder = name_source(desk, place, desk / "from a stranger" / "edited", reading=reading)
        with pytest.raises(InputError, match="which is outside of this folder"):
            READERS[way](folder)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_it_is_opened_beside_the_report_and_where_the_reader_names_it(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = ReportSlices.load(desk / "from a stranger" / "report")
    assert beside.evidence.unit_count == 60
    secret = desk / "secret" / "results.csv"
    named = name_source(desk, str(secret), desk / "from a stranger" / "named")
    assert ReportSlices.load(named, evidence=secret).evidence.unit_count == 60
    # the reader stands where it is
    monkeypatch.chdir(desk / "secret")
    assert ReportSlices.load(named).evidence.unit_count == 60


@pytest.mark.parametrize(
    "place", ["postgresql+psycopg://127.0.0.1:{port}/a", "{desk}/secret/other.db"]
)
def test_a_ledger_that_only_a_certificate_names_is_not_asked(
    place: str, desk: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    content = json.loads((STORED / "sequential" / "certificate.json").read_text())
    content["ledger"] = {
        "path": place.format(desk=desk, port=listener.getsockname()[1]),
        "head": "0" * 64,
    }
    (desk / "certificate.json").write_text(json.dumps(content))
    Ledger(desk / "secret" / "other.db").append("note", {})
    check = verify_certificate(desk / "certificate.json", ledger=True)
    assert "no ledger is opened because a certificate names it" in check.ledger
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("place", ["{desk}/secret/a.eval", "../a.eval", "s3://bucket/a.eval"])
def test_a_log_that_only_a_folder_of_evidence_names_is_not_copied(
    place: str, desk: Path, tmp_path: Path
) -> None:
    shutil.copytree(STORED / "imported" / "evidence", tmp_path / "evidence")
    (desk / "secret" / "a.eval").write_text("{}")
    card = tmp_path / "evidence" / "evidence.json"
    content = json.loads(card.read_text())
    content["account"]["logs"][0] |= {"path": place.format(desk=desk), "reader": "inspect"}
    card.write_text(json.dumps(content))
    evidence = Evidence.from_logs(tmp_path / "evidence")
    model = evidence.select_model(evidence.models[0])
    report = groundfault.audit(
        model, Plan(judge="holm"), [Candidate("any", f"{model.roles.id} < 'x'")], modes=False
    )
    with pytest.raises(InputError, match=r"the evidence names .* as its log"):
        annotate(ReportSlices.of(report, model, every=True), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("place", "inside"),
    [
        ("a.csv", True),
        ("./deep/a.csv", True),
        ("*.csv", True),
        ("deep/../a.csv", True),
        ("../a.csv", False),
        ("*/../../a.csv", False),
        ("/", False),
        ("", True),
        ("a\0b", False),
        ("file:///etc/passwd", False),
    ],
)
def test_inside_is_inside(
    place: str, inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_inside(place, [tmp_path]) is inside
    assert not is_inside(place, [])


def test_a_library_names_no_folder_whose_code_would_run(tmp_path: Path) -> None:
    (tmp_path / "config.cfg").write_text("[nlp]\nlang = en\n")
    for pipeline in (str(tmp_path), ".", "..", "https://host/en_core_web_sm", "os"):
        column = {
            "source": "language",
            "function": "language",
            "columns": ["text"],
            "arrays": {},
            "feature": "n_words",
            "pipeline": pipeline,
        }
        text = json.dumps({"schema_version": 1, "derived": {"d": column}, "candidates": []})
        with pytest.raises(InputError, match="because a file names it"):
            Library.from_json(text)


def test_a_fitted_embedding_names_no_folder_and_downloads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("model")  # noqa: PTH102 - a name that is a folder here, too
    array = {"shape": [0], "float64": ""}
    content = {"words": [], "weights": array, "axes": {"shape": [0, 0], "float64": ""}}
    for model in (str(tmp_path), "model", "..", "https://host/model", "a/b/c", ""):
        with pytest.raises(InputError, match="which is not loaded"):
            Embedding.from_dict({**content, "how": f"sentence:{model}"})
    assert Embedding.from_dict({**content, "how": "sentence:org/model"}).how
    with pytest.raises(InputError, match="there is no 'pickle'"):
        Embedding.from_dict({**content, "how": "pickle:x"})
