"""Files that are added to any stored result, and edits of the kinds that have no test of their own:
verify names them and fails, and what it cannot check it does not call reproduced.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

import groundfault
from groundfault import Case, Evidence
from groundfault.auditing.stored_kinds import KINDS
from groundfault.cli.main import cli
from groundfault.sequential import Certificate, Confirmation
from groundfault_lab.taxonomy import Taxonomy
from groundfault_lab.taxonomy.words.labelling import write_taxonomy

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0"
TABLE = "confirmed/evidence.csv --id item --outcome error"


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


def make_case(place: Path) -> None:
    rng = np.random.default_rng(2)
    lang = rng.choice(["de", "en", "fr", "it"], 200)
    error = rng.random(200) < np.where(lang == "de", 0.95, 0.04)
    columns = {"item": [f"q {i:03}" for i in range(200)], "lang": lang, "error": error.astype(int)}
    case = Case.create(
        place, Evidence.from_table(pl.DataFrame(columns), outcome="error", id="item")
    )
    case.audit()
    case.confirm(budget=6).run(case.look_up)
    case.write_confirmation()
    case.write_report()


def write_pages(place: Path, result: Certificate | Confirmation) -> None:
    place.mkdir()
    result.to_json(place / f"{type(result).__name__.lower()}.json")
    result.to_markdown(place / "report.md")
    result.to_html(place / "report.html")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result of each kind, by the name of its file, and what they are of."""
    home = tmp_path_factory.mktemp("kinds")
    for name in ("confirmed", "sequential", "imported"):
        shutil.copytree(STORED / name, home / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("GROUNDFAULT_LEDGER", "off")
        make_case(home / "case.json")
        run("audit", *TABLE.split(), "--out", "report.json")
        certificate = Certificate.load("sequential/certificate.json")
        here = msgspec.structs.replace(certificate, groundfault_version=version("groundfault"))
        write_pages(home / "certificate.json", here)
        write_pages(home / "confirmation.json", Confirmation.load("sequential/confirm.json"))
        shutil.copytree(STORED / "probe" / "package", home / "MANIFEST.json")
        taxonomy = Taxonomy.load(STORED / "taxonomy" / "fit")
        taxonomy = replace(taxonomy, groundfault_version=version("groundfault"))
        write_taxonomy(taxonomy, home / "taxonomy.json")
        run("import", "imported/logs", "-o", "evidence.json")
        run("gate", "report.json", "--json", "gate")
        (home / "gate.json").mkdir()
        shutil.move(home / "gate", home / "gate.json" / "gate.json")
        (home / "ledger.db").mkdir()
        shutil.copy(STORED / "confirmed" / "ledger.db", home / "ledger.db" / "ledger.db")
    return home


@pytest.fixture
def place(desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(desk, tmp_path / "desk", symlinks=True)
    monkeypatch.chdir(tmp_path / "desk")
    monkeypatch.setenv("GROUNDFAULT_LEDGER", "off")
    return tmp_path / "desk"


WHOLE = {"taxonomy.json": 3, "confirmation.json": 3}
"""Status of a whole result, of kinds of which something can be checked by no file."""


def add_page(folder: Path) -> str:
    (folder / "index.html").write_text("<p>Everything passed.</p>")
    return "index.html"


def add_hidden(folder: Path) -> str:
    (folder / ".htaccess").write_text("Redirect / https://example.org")
    return ".htaccess"


def add_folder(folder: Path) -> str:
    (folder / "assets" / "deep").mkdir(parents=True)
    (folder / "assets" / "deep" / "a.js").write_text("alert(1)")
    return "assets"


def add_empty_folder(folder: Path) -> str:
    (folder / "empty").mkdir()
    return "empty"


def add_link(folder: Path) -> str:
    (folder / "more").symlink_to("/etc")
    return "more"


ADDITIONS = [add_page, add_hidden, add_folder, add_empty_folder, add_link]


@pytest.mark.parametrize("kind", [kind.file for kind in KINDS])
def test_what_is_whole_is_not_blamed(kind: str, place: Path) -> None:
    result = run("verify", kind)
    assert result.exit_code == WHOLE.get(kind, 0), result.output
    assert "contents passed" in result.output


@pytest.mark.parametrize("kind", [kind.file for kind in KINDS])
def test_what_is_added_is_named(kind: str, place: Path) -> None:
    names = [add(place / kind) for add in ADDITIONS]
    result = run("verify", kind)
    assert result.exit_code == 1, result.output
    for name in names:
        assert f"differs: {name}" in result.output


@pytest.mark.parametrize("add", ADDITIONS)
def test_so_is_what_is_added_below_in_a_case(add: Callable[[Path], str], place: Path) -> None:
    parts = ("audit", "confirm", "report", "evidence", "evidence/fresh")
    names = [f"{part}/{add(place / 'case.json' / part)}" for part in parts]
    result = run("verify", "case.json")
    assert result.exit_code == 1, result.output
    for name in names:
        assert f"differs: {name}: added" in result.output


def test_the_ledger_of_a_report_may_lie_beside_it_and_nothing_of_another_name(place: Path) -> None:
    command = ["audit", *TABLE.split(), "--ledger", "mine.db", "--out", "recorded"]
    assert run(*command).exit_code == 0
    shutil.copy("mine.db", "recorded/mine.db")
    assert run("verify", "recorded", "--ledger", "mine.db").exit_code == 0
    shutil.copy("mine.db", "recorded/other.db")
    result = run("verify", "recorded", "--ledger", "mine.db")
    assert "differs: other.db: added" in result.output


Edit = tuple[str, str, str]
EDITS: dict[str, list[Edit]] = {
    "gate.json": [
        ("gate.json", '"passed": false', '"passed": true'),
        ("gate.json", '"new": \\[.*?\\n \\]', '"new": []'),
        ("gate.json", '"blind": false', '"blind": true'),
        ("gate.json", '"fail_on": "[^"]*"', '"fail_on": "lift > 5"'),
        ("gate.json", '"sentence": "', '"sentence": "Not '),
        ("gate.json", '"detectable": ', '"detectable": 0.0000'),
        ("gate.json", "[0-9a-f]{64}", "0" * 64),
    ],
    "taxonomy.json": [
        ("taxonomy.json", '"verdict": "', '"verdict": "Not true: '),
        ("taxonomy.json", '"published": true', '"published": false'),
        ("taxonomy.json", '"size": ', '"size": 1'),
        ("taxonomy.json", '"p": 0', '"p": 1'),
        ("taxonomy.json", '"coverage": ', '"coverage": 0.0'),
        ("taxonomy.json", '"by_the_papers_rule": ', '"by_the_papers_rule": 1'),
        ("taxonomy.json", '"failure": \\[\\s*', '"failure": [0.123, '),
        ("taxonomy.json", '"exemplars": \\[\\s*"', '"exemplars": ["other'),
        ("report.md", "\\d", "7"),
        ("report.html", "<p>", "<p>All is well. "),
    ],
    "MANIFEST.json": [
        ("rows.jsonl", '"mismatch"', '"match"'),
        ("tables.md", "\\d", "9"),
        ("tables.json", "\\d", "9"),
        ("README.md", "\\d", "9"),
        ("prompts.jsonl", "\\?", "!"),
        ("decisions.jsonl", '"yes"', '"no"'),
        ("bank.toml", "=", "= "),
        ("config.json", "\\d", "9"),
        ("MANIFEST.json", '"rows": ', '"rows": 1'),
    ],
    "evidence.json": [
        ("evidence.json", '"hash": "[^"]*"', '"hash": ""'),
        ("evidence.json", '"observations": ', '"observations": 1'),
        ("evidence.json", '"sha256": "[^"]*"', '"sha256": "0"'),
        ("evidence.json", '"reader": "lm_eval"', '"reader": "helm"'),
        ("evidence.json", '"harness": "', '"harness": "other '),
    ],
    "certificate.json": [
        ("certificate.json", '"verdict": "[^"]*"', '"verdict": "pass"'),
        ("report.html", "<p>", "<p>All is well. "),
    ],
    "confirmation.json": [
        ("report.md", "\\d", "7"),
        ("confirmation.json", '"labelled": ', '"labelled": 1'),
    ],
}


@pytest.mark.parametrize(
    ("kind", "name", "old", "new"),
    [(kind, *edit) for kind, edits in EDITS.items() for edit in edits],
)
def test_an_edit_is_never_reproduced(kind: str, name: str, old: str, new: str, place: Path) -> None:
    file = place / kind / name
    text = file.read_text(encoding="utf-8")
    edited = re.sub(old, lambda _: new, text, count=1, flags=re.DOTALL)
    assert edited != text, "it is an edit"
    file.write_text(edited, encoding="utf-8")
    result = run("verify", kind)
    assert result.exit_code in (1, 2), result.output


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"labelled": 11', '"labelled": 4'),
        ('"labelled": 11', '"labelled": 90'),
        ('"e_value": 10', '"e_value": 90'),
        ('"e_value": 10', '"e_value": 1'),
        ('"on": 6', '"on": 8'),
        ('"confirmed": true', '"confirmed": false'),
        ('"confirmed": \\[[^]]*\\]', '"confirmed": []'),
        ("of 10 after", "of 5 after"),
        ('"alpha": "0.1"', '"alpha": "0.01"'),
    ],
)
def test_a_confirmation_whose_pages_were_made_anew_contradicts_itself(
    old: str, new: str, place: Path
) -> None:
    file = place / "confirmation.json" / "confirmation.json"
    edited = re.sub(old, new, file.read_text(), count=1)
    assert edited != file.read_text()
    shutil.rmtree(file.parent)
    write_pages(file.parent, Confirmation.from_dict(json.loads(edited)))
    assert run("verify", "confirmation.json").exit_code == 1


def test_a_confirmation_is_held_against_the_labels_of_its_ledger(place: Path) -> None:
    rng = np.random.default_rng(5)
    lang = rng.choice(["de", "en"], 200)
    error = rng.random(200) < np.where(lang == "de", 0.9, 0.1)
    table = pl.DataFrame({"id": [f"q{i}" for i in range(200)], "lang": lang, "error": error})
    evidence = Evidence.from_table(table, outcome="error", id="id")
    audit = groundfault.sequential.SequentialConfirmation(
        evidence, candidates=[groundfault.Candidate("German", "lang = 'de'")], ledger="mine.db"
    )
    audit.run(audit.replay_score)
    assert audit.labelled
    write_pages(place / "mine", audit.result)
    status = {c.name: c.status for c in groundfault.verify("mine", ledger="mine.db").checks}
    assert status["ledger"] == "passed"
    assert groundfault.verify("mine", ledger="mine.db").verdict == "cannot be verified"
    with sqlite3.connect("mine.db") as base:
        (last,) = base.execute("SELECT max(seq) FROM groundfault_ledger").fetchone()
        base.execute("DELETE FROM groundfault_ledger WHERE seq = ?", (last,))
    assert groundfault.verify("mine", ledger="mine.db").verdict == "does NOT reproduce"


def test_arrays_of_a_taxonomy_are_held_against_its_clusters(place: Path) -> None:
    file = place / "taxonomy.json" / "arrays.npz"
    with np.load(file) as arrays:
        content = dict(arrays)
    content["passed"] = content["passed"][::-1]
    np.savez_compressed(file, **content)
    assert run("verify", "taxonomy.json").exit_code == 1


def test_rows_that_were_edited_with_their_hash_are_held_against_the_logs(place: Path) -> None:
    folder = place / "evidence.json"
    evidence = Evidence.from_logs(folder)
    table = pl.read_parquet(folder / "observations.parquet")
    edited = table.with_columns(pl.col(evidence.roles.outcome) * 0 + 1)
    edited.write_parquet(folder / "observations.parquet")
    card = json.loads((folder / "evidence.json").read_text())
    for digest in ("", None):
        # without a hash on the card it is not compared
        card["hash"] = digest if digest is not None else Evidence.from_logs(folder).hash
        (folder / "evidence.json").write_text(json.dumps(card))
    result = run("verify", "evidence.json")
    assert result.exit_code in (1, 3), result.output


def test_logs_that_changed_are_named(place: Path) -> None:
    (log, _) = sorted(Path("imported/logs").rglob("samples*.jsonl"))
    log.write_text(log.read_text().replace("1.0", "0.0", 1))
    result = run("verify", "evidence.json")
    assert result.exit_code == 1, result.output
    assert "differs: logs[0].sha256" in result.output


def test_a_gate_opens_no_report_elsewhere(place: Path) -> None:
    content = json.loads((place / "gate.json/gate.json").read_text())
    content["asked"]["files"][0][0] = "/etc/passwd"
    (place / "gate.json/gate.json").write_text(json.dumps(content))
    result = run("verify", "gate.json/gate.json")
    assert result.exit_code == 3, result.output
    assert "is not below this folder" in result.output


def test_a_gate_with_a_baseline_is_asked_again(place: Path) -> None:
    words = ["gate", "report.json", "--baseline", "confirmed/report", "--json", "g.json"]
    run(*words)
    assert run("verify", "g.json").exit_code == 0
    shutil.copytree("report.json", "other")
    assert groundfault.verify("g.json").reproduces
    shutil.copy("report.json/report.json", "confirmed/report/report.json")
    assert run("verify", "g.json").exit_code == 1
