"""One edit of a report's folder, its traces covered: `verify` notices, or its reason is here.

The forger owns the folder, writes SHA256SUMS anew, and has no ledger to write to.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from forgery import DELETED, change, edit, list_leaves, write_report

import groundfault
from groundfault import Evidence, InputError, Plan
from groundfault.auditing.report import SUMS, Report, parse_report, read_report, write_sums
from groundfault.auditing.report_schema import ReportData
from groundfault.auditing.stored_kinds import check_contents, find_kind
from groundfault.auditing.verification import check_writing, compare_reports
from groundfault.auditing.verification_checks import check_pages, make_pages
from groundfault.base.ledger import Ledger
from groundfault.cli.main import cli

# what an audit was asked to do: to ask otherwise gives another report, which may be as true
INPUTS = ("plan", "manifest", "robustness.splits", "schema_version")
FINDING, MODE = "findings.0", "modes.0"

EDITS: list[tuple[str, Any]] = [
    # how often, by whom and why the outcomes were looked at
    ("ledger.times", 1),
    ("ledger.plans", 1),
    ("ledger.libraries", 2),
    ("ledger.splits", 2),
    ("ledger.versions", 2),
    ("ledger.reasons", []),
    ("ledger.reasons.0", "routine"),
    ("ledger.reasons.1", "one more"),
    ("ledger.replay", True),
    ("ledger.holdout", True),
    ("ledger.all_outcomes", False),
    ("ledger.all_before", False),
    ("ledger.looks", []),
    ("ledger.looks.0", DELETED),
    ("ledger.looks.0.level", 0.01),
    ("ledger.looks.1.rule", "bonferroni"),
    ("ledger.overlapping", 1),
    ("ledger.overlap", 0.5),
    ("ledger.sentence", "all outcomes were looked at 1 time"),
    ("ledger.head", "0" * 64),
    ("ledger.path", "postgresql+psycopg://somebody.example/audits"),
    ("ledger.path", "../../elsewhere.db"),
    ("ledger", None),
    ("ledger", DELETED),
    ("guarantee", "family-wise error at most 10%"),
    # which part columns played
    ("manifest.roles.allow_leakage", []),
    ("manifest.roles.allow_leakage.1", "words"),
    ("manifest.roles.instrument", []),
    ("manifest.roles.instrument.1", "words"),
    ("manifest.roles.ignore.0", "words"),
    ("manifest.roles.post_outcome.0", "words"),
    ("manifest.roles.positive_is_good", True),
    ("manifest.roles.outcome", "hard"),
    ("manifest.roles.id", None),
    ("manifest.roles.group", "lang"),
    ("manifest.roles.status", "lang"),
    ("manifest.roles.split", "lang"),
    ("manifest.roles.model", "lang"),
    ("manifest.roles.null_outcome", "passed"),
    ("manifest.roles.numbered", True),
    # where it came from, and with what it was made
    ("manifest.sources.0", "other.csv"),
    ("manifest.sources", []),
    ("manifest.where", "words > 10"),
    ("manifest.models", ["gpt-x"]),
    ("manifest.compare", ["a", "b"]),
    ("manifest.own_rules.0", "hard"),
    ("manifest.derivation", {"kind": "taxonomy", "settings": {"outcome": "failures"}}),
    ("manifest.reading", {"reader": "inspect", "conflicts": "error"}),
    ("manifest.account", {}),
    ("manifest.python", "2.7.18"),
    ("manifest.numpy", "1.0"),
    ("manifest.polars", "0.1"),
    ("groundfault_version", "0.0.1"),
    ("schema_version", 1),
    ("schema_version", 3),
    ("judge_reason", "agreed on with the customer"),
    # the plan
    ("plan.alpha", "0.05"),
    ("plan.q", "0.05"),
    ("plan.seed", 0),
    ("plan.judge", "bonferroni"),
    ("plan.min_lift", "0.1"),
    ("plan.effect", "risk_ratio"),
    ("plan.holdout", "0.2"),
    ("plan.min_on", 20),
    ("plan.permutations", 9999),
    ("plan.correction", "stratified"),
    ("plan.within", ["lang"]),
    ("plan.depth", 2),
    ("plan.holdout_axis", "models"),
    # hashes
    ("hashes.evidence", "0" * 64),
    ("hashes.outcome", "0" * 64),
    ("hashes.library", "0" * 64),
    ("hashes.plan", "0" * 64),
    ("hashes.split", "0" * 64),
    # counts
    ("n", 1600),
    ("n_discovery", 80),
    ("n_holdout", 80),
    ("rows", 1600),
    ("unit", "group"),
    ("outcomes.0", "gpt-x"),
    ("error_rate", 0.1),
    ("statuses.refused", 40),
    ("candidates.size", 1),
    ("candidates.hypotheses", 1),
    ("candidates.tested", 1),
    ("candidates.effective", 1.0),
    ("candidates.sources.declared", 99),
    ("candidates.sources.instrument", DELETED),
    ("ineligible", {"few": 3}),
    # what it could have found, and how stable it is
    ("minimum_detectable_lift", 0.01),
    ("power.power", 0.99),
    ("power.minimum_detectable_lift", {}),
    ("conclusion", "All is well."),
    ("robustness", None),
    ("robustness.splits", 20),
    ("robustness.nonempty", 0.5),
    (f"{FINDING}.frequency", None),
    (f"{FINDING}.frequency", 0.5),
    ("baselines", {"fixed_lift": []}),
    ("judge", "bonferroni"),
    ("hints", ["Nothing to worry about."]),
    ("parts", "One benchmark."),
    ("grader", None),
    ("units", None),
    ("examples.hard", []),
    ("examples.hard.0", "q000"),
    ("examples", {}),
    # findings
    (f"{FINDING}.verdict", "not_replicated"),
    ("findings.1.verdict", "confirmed"),
    (f"{FINDING}.name", "easy"),
    (f"{FINDING}.rule", '"words" > 50'),
    (f"{FINDING}.meaning", "the sky is blue"),
    (f"{FINDING}.source", "declared by the customer"),
    (f"{FINDING}.outcome", "gpt-x"),
    (f"{FINDING}.reason", "stands"),
    (f"{FINDING}.sentence", "Errors are not more frequent."),
    (f"{FINDING}.full.on", 570),
    (f"{FINDING}.full.on_errors", 5.0),
    (f"{FINDING}.full.lift", 0.05),
    (f"{FINDING}.full.p", 9e-10),
    (f"{FINDING}.full.p_adjusted", 0.0009),
    (f"{FINDING}.full.interval.0", 0.5),
    (f"{FINDING}.discovery.p", 6.5e-11),
    (f"{FINDING}.discovery", {}),
    (f"{FINDING}.full", None),
    (f"{FINDING}.holdout", {"on": 1}),
    (f"{FINDING}.estimate", None),
    (f"{FINDING}.estimate.effect", 0.9),
    (f"{FINDING}.aliases", ["not easy"]),
    (f"{FINDING}.representative", "words > 50"),
    (f"{FINDING}.sensitivity", {"all_failed": "confirmed"}),
    (f"{FINDING}.opposite", "easy ones"),
    (f"{FINDING}.elsewhere", "elsewhere"),
    (f"{FINDING}.praise", "a field that is none"),
    (FINDING, DELETED),
    ("findings", []),
    # failure modes
    (f"{MODE}.rule", '"words" > 50'),
    (f"{MODE}.meaning", "the sky is blue"),
    (f"{MODE}.conditions.0", "the sky is blue"),
    (f"{MODE}.n", 570),
    (f"{MODE}.errors", 5.0),
    (f"{MODE}.n_outside", 1030),
    (f"{MODE}.errors_new", 5.0),
    (f"{MODE}.interval.1", 0.6),
    (f"{MODE}.p_marginal", 9e-9),
    (f"{MODE}.p_conditional", 9e-26),
    (f"{MODE}.context", "on Sundays"),
    (f"{MODE}.source", "a person"),
    (f"{MODE}.sample", []),
    (f"{MODE}.sample.0.id", "q000"),
    (f"{MODE}.sample.0.side", "passing"),
    (f"{MODE}.sample.0.loss", 0.0),
    (f"{MODE}.sample.0.texts.prompt", "Who is that?"),
    (MODE, DELETED),
    ("mode_search", None),
    ("mode_search.level", 0.01),
    ("mode_search.depth", 9),
    ("mode_search.columns.0", DELETED),
    ("mode_search.classes.0.rules", 9),
    ("mode_search.outcomes.0.covered_errors", 45.0),
    ("mode_search.detectable", {}),
    ("mode_search.remarks", ["All columns were searched."]),
]

# what no recomputation notices: the ledger's digest of report.json alone does
ATTESTED = {
    "groundfault_version": "another version words sentences in its own way",
    "judge_reason": "the recomputation is told the judge by its name",
}


# what an audit was told and what makes no difference here: the same, where there is no ledger
UNASKED = {
    "manifest.roles.allow_leakage.1": "the column would not have been refused anyway",
    "manifest.roles.null_outcome": "no outcome is empty",
    "robustness.splits": "twenty splits confirm the same, every time",
    "manifest.python": "any version gives the same numbers, or the recomputation differs",
    "manifest.numpy": "likewise",
    "manifest.polars": "likewise",
}


@dataclass
class Desk:
    """A report after two looks, its ledger, and what it was made from."""

    folder: Path
    ledger: Path
    content: dict[str, Any]
    report: Report
    again: ReportData
    pages: dict[str, str]
    forged: Path


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    home = tmp_path_factory.mktemp("edits")
    rng = np.random.default_rng(0)
    hard = rng.random(160) < 0.4
    table = {
        "id": [f"q{i:03d}" for i in range(160)],
        "error": (rng.random(160) < 0.1 + 0.6 * hard).astype(int),
        "hard": hard.astype(int),
        "words": rng.integers(1, 100, 160),
        "seconds": rng.random(160).round(3),
        "judge_score": rng.random(160).round(2),
        "prompt": [f"What is {i}?" for i in range(160)],
        "lang": rng.choice(["de", "en"], 160),
    }
    pl.DataFrame(table).write_csv(home / "t.csv")
    roles = {"instrument": ["judge_score"], "allow_leakage": ["seconds"]}
    evidence = Evidence.from_table(home / "t.csv", id="id", outcome="error", **roles)
    ledger = home / "ledger.db"
    groundfault.audit(evidence, ledger=ledger, modes=False)
    plan = Plan(seed=3)
    report = groundfault.audit(
        evidence, plan, ledger=ledger, reopen="a label was wrong", robustness=2
    )
    report.write(home / "report")
    shutil.copytree(home / "report", home / "forged")
    content = json.loads((home / "report" / "report.json").read_text(encoding="utf-8"))
    return Desk(
        home / "report",
        ledger,
        content,
        report,
        # one recomputation for all edits of what was computed: the same report a second time
        report.data,
        make_pages(report),
        home / "forged",
    )


def judge_forgery(desk: Desk, content: Any, ledger: Any) -> set[str]:
    """What verifying comes to of a folder with this report.json and digests that fit it."""
    write_report(desk.forged, content)
    try:
        stored = read_report(desk.forged)
    except InputError:
        return {"refused"}
    return {check.status for check in check_writing(desk.forged, stored, ledger)}


def test_there_are_many_kinds_of_edits(desk: Desk) -> None:
    assert len({path for path, _ in EDITS}) >= 120
    assert judge_forgery(desk, desk.content, desk.ledger) == {"passed"}, "and one that is none"


@pytest.mark.parametrize(("path", "value"), EDITS, ids=lambda part: f"{part!r:.40}")
def test_an_edit_is_noticed_by_the_ledger(path: str, value: Any, desk: Desk) -> None:
    edited = edit(desk.content, path, value)
    assert edited != desk.content
    statuses = judge_forgery(desk, edited, desk.ledger)
    # a report that says that nothing was recorded is not contradicted, and is no success
    assert statuses & {"failed", "refused", *(["unchecked"] if path == "ledger" else [])}


def test_every_value_that_was_computed_is_compared_without_a_ledger_too(desk: Desk) -> None:
    silent = set()
    for keys, value in list_leaves(desk.content):
        path = ".".join(map(str, keys))
        # further findings and examples have the same fields
        if path.startswith(INPUTS) or any(isinstance(key, int) and key > 1 for key in keys):
            continue
        try:
            edited = parse_report(edit(desk.content, keys, change(value))).data
        except InputError:
            continue
        if not compare_reports(edited, desk.again, same_version=True):
            silent.add(path)
    assert silent == ATTESTED.keys()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "value"),
    [each for each in EDITS if each[0].startswith(("manifest", "plan", "robustness"))],
    ids=lambda part: f"{part!r:.40}",
)
def test_what_an_audit_was_asked_to_do_is_recomputed(path: str, value: Any, desk: Desk) -> None:
    write_report(desk.forged, edit(desk.content, path, value))
    try:
        recomputation = groundfault.verify(desk.forged, ledger=None).checks[0]
    except groundfault.GroundfaultError:
        return
    assert (recomputation.status == "passed") == (path in UNASKED)


PAGES = {
    "another verdict": ("report.html", "Confirmed", "Refuted"),
    "another number": ("report.html", "57", "75"),
    "a script added": ("report.html", "</body>", "<script>alert(1)</script></body>"),
    "a style added": ("report.html", "</head>", "<style>h2{display:none}</style></head>"),
    "a link added": ("report.html", "</body>", "<a href='//example.org'>more</a></body>"),
    "a handler added": ("report.html", "<body", "<body onload='alert(1)'"),
    "a label of a figure": ("report.html", "</text>", " and more</text>"),
    "a mark of a figure added": ("report.html", "</svg>", "<text>all is well</text></svg>"),
    "a colour of a figure": ("report.html", "--bad", "--good"),
    "a comment": ("report.html", "</html>", "<!-- seen --></html>"),
    "emptied": ("report.html", None, ""),
    "a verdict in Markdown": ("report.md", "Confirmed", "Refuted"),
    "a heading in Markdown": ("report.md", "# ", "# Cleared: "),
    "openings in Markdown": ("report.md", "2 times", "1 time"),
    "HTML in Markdown": ("report.md", "\n", "\n<script>alert(1)</script>\n"),
    "Markdown emptied": ("report.md", None, ""),
    "a key twice": ("report.json", '"n": 160', '"n": 1600, "n": 160'),
    "another layout": ("report.json", "\n", "\n\n"),
    "a candidate's source": ("library.json", '"declared"', '"text"'),
    "a candidate's meaning": ("library.json", "hard holds", "it is easy"),
    "a field of the library": ("library.json", '"hash"', '"author": "me", "hash"'),
}


@pytest.mark.parametrize("name", PAGES)
def test_an_edit_of_a_page_is_noticed_without_a_ledger(name: str, desk: Desk) -> None:
    file, old, new = PAGES[name]
    path = desk.folder / file
    text = path.read_text(encoding="utf-8")
    forged = new if old is None else text.replace(old, new, 1)
    assert forged != text
    try:
        path.write_text(forged, encoding="utf-8")
        check = check_pages(desk.folder, desk.pages, attested=False)
        assert check.status == "failed"
        assert [line.split(":")[0] for line in check.differences] == [file]
    finally:
        path.write_text(text, encoding="utf-8")


def test_a_figure_drawn_with_other_fonts_is_no_forgery(desk: Desk, tmp_path: Path) -> None:
    for name, text in desk.pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    moved = re.sub(r'(<svg [^>]*? width=")', r"\g<1>1", desk.pages["report.html"], count=1)
    assert moved != desk.pages["report.html"]
    (tmp_path / "report.html").write_text(moved, encoding="utf-8")
    assert check_pages(tmp_path, desk.pages, attested=True).status == "passed"
    # nor is it certain that it is none
    assert check_pages(tmp_path, desk.pages, attested=False).status == "unchecked"


def remove_sums(folder: Path) -> None:
    (folder / SUMS).unlink()


def spoil_sums(folder: Path) -> None:
    (folder / SUMS).write_text("all is well\n")


def shorten_sums(folder: Path) -> None:
    (folder / SUMS).write_text((folder / SUMS).read_text().split("\n", 1)[1])


def lengthen_sums(folder: Path) -> None:
    (folder / "evil.js").write_text("alert(1)")
    write_sums(folder)


def lead_sums_outside(folder: Path) -> None:
    with (folder / SUMS).open("a") as stream:
        stream.write(f"{'0' * 64}  ../t.csv\n")


def remove_page(folder: Path) -> None:
    (folder / "report.html").unlink()


def remove_page_and_line(folder: Path) -> None:
    remove_page(folder)
    write_sums(folder)


def put_pipe(folder: Path) -> None:
    remove_page(folder)
    os.mkfifo(folder / "report.html")


def put_folder(folder: Path) -> None:
    remove_page(folder)
    (folder / "report.html").mkdir()


@pytest.mark.parametrize(
    "act",
    [
        remove_sums,
        spoil_sums,
        shorten_sums,
        lengthen_sums,
        lead_sums_outside,
        remove_page,
        remove_page_and_line,
        put_pipe,
        put_folder,
    ],
)
def test_files_that_come_and_go_are_noticed(act: Any, desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    shutil.copytree(desk.folder, folder)
    act(folder)
    files, _ = check_writing(folder, read_report(folder), desk.ledger)
    assert files.status == "failed"


def test_a_file_that_was_added_is_no_edit_of_the_others(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    shutil.copytree(desk.folder, folder)
    (folder / "notes.txt").write_text("to do")
    files, _ = check_writing(folder, read_report(folder), desk.ledger)
    assert files.status == "passed", "they are as they were written"
    contents = check_contents(folder, find_kind(folder))
    assert contents.differences == ("notes.txt: added",)


def test_a_ledger_that_came_with_the_report_is_asked_and_no_other(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GROUNDFAULT_LEDGER")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "report"
    shutil.copytree(desk.folder, folder)
    stored = read_report(folder)
    assert {c.status for c in check_writing(folder, stored, True)} == {"unchecked"}, "none came"
    (folder / "ledger.db").symlink_to(desk.ledger)
    assert {c.status for c in check_writing(folder, stored, True)} == {"unchecked"}, "a link"
    (folder / "ledger.db").unlink()
    shutil.copy(desk.ledger, folder)
    assert {c.status for c in check_writing(folder, stored, True)} == {"passed"}


@pytest.mark.parametrize(
    ("path", "value", "words", "status"),
    [
        (None, None, (), 0),
        (None, None, ("--ledger", "gone.db"), 3),
        pytest.param("ledger", None, (), 1, marks=pytest.mark.slow),
        pytest.param("ledger", None, ("--no-ledger",), 1, marks=pytest.mark.slow),
        pytest.param("error_rate", 0.1, (), 1, marks=pytest.mark.slow),
    ],
)
def test_the_command_says_what_came_out(
    path: str | None, value: Any, words: tuple[str, ...], status: int, desk: Desk
) -> None:
    write_report(desk.forged, edit(desk.content, path, value) if path else desk.content)
    if not path:
        shutil.copytree(desk.folder, desk.forged, dirs_exist_ok=True)
    ledger = words or ("--ledger", str(desk.ledger))
    result = CliRunner().invoke(cli, ["verify", str(desk.forged), *ledger])
    assert result.exit_code == status, result.output


@pytest.mark.parametrize(
    "body", [[], "x", 1, None, {}, {"files": 1}, {"files": {"x": []}}, {"outcome": []}]
)
@pytest.mark.parametrize("kind", ["holdout_opened", "report_written"])
def test_a_ledger_that_holds_anything_ends_in_no_traceback(
    kind: str, body: Any, desk: Desk, tmp_path: Path
) -> None:
    """A ledger that comes with a report may have been made for it, chain and all."""
    book, head = Ledger(tmp_path / "ledger.db"), ""
    for event in Ledger(desk.ledger).events():
        same = {"outcome": desk.content["hashes"]["outcome"], "opening": head}
        forged = {**same, **body} if isinstance(body, dict) else body
        head = book.append(event.kind, forged if event.kind == kind else event.body).hash
    for event in book.events():
        stored = edit(desk.content, "ledger.head", event.hash)
        assert judge_forgery(desk, stored, tmp_path / "ledger.db") != {"passed"}
