"""Published packages: no response is in them, they depend on none, and they add up by
themselves.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from groundfault.base.ledger import Ledger
from groundfault.cli.main import cli
from groundfault.errors import InputError
from groundfault.models import Question, Response
from groundfault.probes import Bank, Grammar
from groundfault.probes.bank.bank import SHIPPED
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.probes.running.config import Config
from groundfault.probes.running.run import run
from groundfault.probes.running.runs import LEDGER
from groundfault.review import Decision, open_items
from groundfault_lab.pages.probe_page import set_tables
from groundfault_lab.probes.release import (
    FILES,
    INDEX,
    RELEASED,
    check,
    make_package,
    make_public_names,
    release,
)
from groundfault_studies.brittle import Brittle, Planted, Reviewer, plant

WINDOW = 20
NOTE = "ana@example.org thinks that this one is hard"


class Talkative(Brittle):
    """Says more than the answer, and sometimes what a prompt says."""

    async def answer(self, question: Question) -> Response:
        result = await super().answer(question)
        if result.text is None:
            return result
        prompt = question.messages[-1]["content"]
        content = hashlib.sha256(prompt.encode()).hexdigest()
        message = (
            f"Thinking aloud about case {content[:12]}, zebra {content[12:18]}.\n"
            if content[0] > "3"
            else prompt[:30] + "\n"
        )
        return Response(message + result.text, finish="stop")


def reviewed(folder: Path, target: Any, planted: Planted) -> ReviewedRuns:
    """Two policies and seeds, two blind reviews, an adjudication, unblinded."""
    config = Config(
        bank=SHIPPED / "bank.toml",
        grammar=SHIPPED / "grammar.toml",
        policies=["stratified", "caps, repeats"],
        seeds=[0, 1],
        iterations=4,
        batch=6,
        reviewers=2,
    )
    audit = ReviewedRuns(run(config, target, out=folder))
    audit.seal()
    for person in (
        Reviewer("ana", planted, 0.3),
        Reviewer("ben", planted, 0.3),
        Reviewer("cy", planted, 0.0, True),
    ):
        remaining = open_items(
            audit.queue, audit.decisions, person.name, adjudicate=person.adjudicates
        )
        created = [person.decide(item) for item in remaining]
        audit.store.add([Decision(**{**d.to_dict(), "note": NOTE}) for d in created])
    audit.unblind("ana", "finished")
    return audit


@pytest.fixture(scope="module")
def planted() -> Planted:
    return plant(Bank.shipped(), Grammar.shipped())


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory, planted: Planted) -> ReviewedRuns:
    return reviewed(
        tmp_path_factory.mktemp("released") / "runs", Talkative(planted, failing=0.0), planted
    )


@pytest.fixture(scope="module")
def public(audit: ReviewedRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release(audit, tmp_path_factory.mktemp("public") / "package", set_tables).parent


def windows(text: str) -> set[str]:
    return {text[i : i + WINDOW] for i in range(max(1, len(text) - WINDOW + 1))}


def test_no_response_is_in_the_package(audit: ReviewedRuns, public: Path) -> None:
    """Every response, and every 20 characters of one, unless prompts hold them: a prompt is
    published as it is.
    """
    texts = {name: (public / name).read_text(encoding="utf-8") for name in (*FILES, INDEX)}
    whole = "\n".join(texts.values()) + "\n".join(
        json.loads(f'"{text}"')
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', "\n".join(texts.values()))
    )
    prompts = "\n".join(row.prompt for row in audit.runs.rows)
    responses = {row.response for row in audit.runs.rows if row.response}
    assert len(responses) > 50
    assert any(
        prompts.count(response[:30]) for response in responses
    )  # echoes of prompts are among them
    for response in responses:
        assert response not in whole
        for part in windows(response):
            assert part not in whole or part in prompts, part
    assert "zebra" not in whole


def test_no_name_note_place_or_reading_is_in_the_package(audit: ReviewedRuns, public: Path) -> None:
    whole = "\n".join((public / name).read_text(encoding="utf-8") for name in (*FILES, INDEX))
    for secrets in (
        "ana",
        "ben",
        "example.org",
        str(audit.runs.folder),
        str(Path.home()),
        'extracted"',
        "the one number",
    ):
        assert not re.search(rf"\b{re.escape(secrets)}\b", whole), secrets
    reviewers = {
        json.loads(line)["reviewer"]
        for line in (public / "decisions.jsonl").read_text().splitlines()
    }
    assert reviewers == {"r1", "r2", "r3"}


def test_the_package_depends_on_responses_by_their_hash_alone(
    audit: ReviewedRuns, public: Path, planted: Planted, tmp_path: Path
) -> None:
    """Other responses, with the same signals and the same review, make the same package but for
    hashes.
    """

    class Other(Brittle):
        @property
        def name(self) -> str:
            return audit.runs.rows[0].model

        async def answer(self, question: Question) -> Response:
            result = await super().answer(question)
            return Response("Quite another preamble.\n" + str(result.text), finish="stop")

    other = reviewed(tmp_path / "runs", Other(planted, failing=0.0), planted)
    # reviewers slip by what they see: give both the same decisions, on the items of the same rows
    mine, theirs = make_package(audit), make_package(other)
    assert [row.id for row in mine.rows] == [row.id for row in theirs.rows]
    assert set(mine.hashes.values()).isdisjoint(theirs.hashes.values())
    same = replace(theirs, decisions=mine.decisions, items=mine.items, hashes=mine.hashes)
    assert same.texts(set_tables) == mine.texts(set_tables)


def test_hashes_are_of_the_responses_and_statuses_those_of_the_audit(
    audit: ReviewedRuns, public: Path
) -> None:
    content = [json.loads(line) for line in (public / "rows.jsonl").read_text().splitlines()]
    statuses = audit.statuses
    for row, line in zip(audit.runs.rows, content, strict=True):
        assert row.response is not None
        assert line["response_sha256"] == hashlib.sha256(row.response.encode()).hexdigest()
        assert line["audit"] == statuses[row.id]
    assert {line["audit"] for line in content} >= {"confirmed_model_error", "unaudited", "no_error"}


def test_a_package_checks_itself_and_its_making_is_on_record(
    audit: ReviewedRuns, public: Path
) -> None:
    result = check(public, set_tables)
    assert result.problems == ()
    assert (result.files, result.rows) == (len(FILES), len(audit.runs.rows))
    (event,) = Ledger(audit.runs.folder / LEDGER).events(RELEASED)
    assert event.body["package"] == hashlib.sha256((public / INDEX).read_bytes()).hexdigest()


def rehashed(folder: Path) -> None:
    """What somebody would do who wants a changed package to look whole."""
    index = json.loads((folder / INDEX).read_text())
    index["files"] = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES
    }
    (folder / INDEX).write_text(json.dumps(index))


def change_file(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            change_file("rows.jsonl", "confirmed_model_error", "no_error"),
            "rows.jsonl does not follow from rows and decisions",
        ),
        (
            change_file("decisions.jsonl", '"model_wrong": "yes"', '"model_wrong": "no"'),
            "does not follow from rows",
        ),
        (
            change_file("tables.json", '"confirmed": ', '"confirmed": 1'),
            "tables.json does not follow",
        ),
        (change_file("tables.md", "unique audited", "audited"), "tables.md does not follow"),
        (
            change_file("prompts.jsonl", '"prompt": "', '"prompt": "Please. '),
            "is not what bank and grammar make",
        ),
        (change_file("rows.jsonl", '"how":', '"response": "Answer: 5", "how":'), "amiss"),
        (change_file("config.json", '"valid": 486', '"valid": 485'), "tables.json does not follow"),
        (change_file("bank.toml", "racket", "bat"), "frozen as"),
        (
            lambda folder: (folder / "responses.jsonl").write_text("{}"),
            "responses.jsonl is no part of the package",
        ),
        (lambda folder: (folder / "rows.jsonl").write_text("[1]\n"), "cannot be read"),
        (lambda folder: (folder / "rows.jsonl").write_text("[" * 100_000), "cannot be read"),
        (
            change_file("bank.toml", "[[task]]", "# Answer: 5, said the model\n[[task]]"),
            "holds more than its tables",
        ),
        (
            change_file("config.json", '"seeds"', '"responses": ["Answer: 5"], "seeds"'),
            "config.json holds responses",
        ),
        (
            change_file("MANIFEST.json", '"counts"', '"responses": [], "counts"'),
            "MANIFEST.json holds responses",
        ),
    ],
)
def test_changes_are_noticed_even_with_new_hashes(
    public: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    folder = tmp_path / "package"
    shutil.copytree(public, folder)
    damage(folder)
    assert check(folder, set_tables).problems
    rehashed(folder)
    problems = check(folder, set_tables).problems
    assert message in " ".join(problems)


def test_other_tables_of_another_version_are_told_as_that(public: Path, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    shutil.copytree(public, folder)
    change_file(INDEX, '"groundfault": "', '"groundfault": "0.0.')(folder)
    assert check(folder, set_tables).problems == (), "what another version made alike reproduces"
    change_file("tables.md", "unique audited", "audited")(folder)
    rehashed(folder)
    first, second = check(folder, set_tables).problems
    assert "tables.md does not follow" in first
    assert re.match(r"it was made with groundfault 0\.0\.\S+, and this is ", second)


def test_no_damage_ends_in_a_traceback(public: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    folder = tmp_path / "package"
    for number in range(30):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(public, folder)
        place = folder / FILES[number % len(FILES)]
        data = bytearray(place.read_bytes())
        for at in rng.integers(len(data), size=1 + number // len(FILES)):
            data[at] = int(rng.integers(256))
        place.write_bytes(data)
        rehashed(folder)
        check(folder, set_tables)


def test_files_that_were_changed_or_taken_away_are_named(public: Path, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    shutil.copytree(public, folder)
    (folder / "README.md").write_text("nothing")
    (folder / "tables.md").unlink()
    assert set(check(folder, set_tables).problems) == {
        "README.md was changed after the package was made",
        "tables.md is missing",
    }
    with pytest.raises(InputError, match="holds no package"):
        check(tmp_path, set_tables)
    with pytest.raises(InputError, match="is not empty"):
        release(None, folder, set_tables)  # type: ignore[arg-type]


def test_models_are_named_without_servers_and_folders() -> None:
    names = [
        "openai/gpt-4o-mini",
        "openai/mine@http://user@10.0.0.3:8000/v1",
        'inspect/vllm/mine{"base_url": "http://10.0.0.3"}',
        "hf//home/ana/secret/qwen",
        "hf/~/models/qwen/",
        "hf/../models/qwen",
        "hf/Qwen/Qwen2.5-7B-Instruct",
        "inspect/hf//srv/phi",
        "hf/C:\\models\\phi",
        "replay:calls.db#0123456789ab",
    ]
    result = make_public_names(names)
    assert result["openai/mine@http://user@10.0.0.3:8000/v1"] == "openai/mine"
    assert result["hf/Qwen/Qwen2.5-7B-Instruct"] == "hf/Qwen/Qwen2.5-7B-Instruct"
    assert result["replay:calls.db#0123456789ab"] == "replay:calls.db#0123456789ab"
    assert result["inspect/hf//srv/phi"] == "inspect/hf/phi"
    assert sorted(v for k, v in result.items() if "qwen" in k) == [
        "hf/qwen",
        "hf/qwen (2)",
        "hf/qwen (3)",
    ]
    assert len(set(result.values())) == len(names)
    assert not any(
        part in name
        for name in result.values()
        for part in ("home", "ana", "10.0", "models", "srv")
    )


def test_a_package_without_a_review(tmp_path: Path, planted: Planted) -> None:
    config = Config(
        bank=SHIPPED / "bank.toml", grammar=SHIPPED / "grammar.toml", seeds=[0], iterations=1
    )
    audit = ReviewedRuns(run(config, Brittle(planted, failing=0.0), out=tmp_path / "runs"))
    place = release(audit, tmp_path / "package", set_tables).parent
    assert check(place, set_tables).problems == ()


# ----------------------------------------------------------------------------------------- commands


def invoke(*words: object) -> Any:
    return CliRunner().invoke(cli, ["lab", "probe", *map(str, words)])


def test_commands(audit: ReviewedRuns, tmp_path: Path) -> None:
    runs, page = audit.runs.folder, tmp_path / "report.html"
    result = invoke("report", runs, "--html", page, "--md", tmp_path / "report.md", "--json", "-")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["conclusions"]
    assert "</svg>" in page.read_text()
    result = invoke("report", runs, "--evidence", tmp_path / "rows.parquet")
    assert result.exit_code == 0, result.output
    assert "to judge the components" in result.output
    result = invoke("release", runs, "--out", tmp_path / "package")
    assert result.exit_code == 0, result.output
    result = invoke("release", "--check", tmp_path / "package")
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "reproduces")
    (tmp_path / "package" / "tables.md").write_text("x")
    assert invoke("release", "--check", tmp_path / "package").exit_code == 1


@pytest.mark.slow
def test_the_command_that_judges_components(audit: ReviewedRuns, tmp_path: Path) -> None:
    result = invoke("report", audit.runs.folder, "--audit", tmp_path / "audited")
    assert result.exit_code == 0, result.output
    assert "distractor = shortcut: " in result.output
    assert (tmp_path / "audited" / "components" / "report.html").exists()
    assert (tmp_path / "audited" / "families" / "report.html").exists()


def test_a_report_of_decisions_asks_why_it_opens_them(tmp_path: Path, planted: Planted) -> None:
    config = Config(
        bank=SHIPPED / "bank.toml", grammar=SHIPPED / "grammar.toml", seeds=[0], iterations=6
    )
    audit = ReviewedRuns(run(config, Brittle(planted, failing=0.0), out=tmp_path / "runs"))
    assert (
        invoke("report", tmp_path / "runs").exit_code == 0
    )  # before a review there is nothing to open
    audit.seal()
    assert (
        invoke("report", tmp_path / "runs").exit_code != 0
    )  # it would tell controls from mismatches
    audit.store.add([Reviewer("ana", planted).decide(item) for item in audit.queue.items])
    refused = invoke("report", tmp_path / "runs")
    assert refused.exit_code != 0
    assert "a report ends it" in str(refused.exception)
    assert not audit.unblindings
    assert invoke("report", tmp_path / "runs", "--unblind", "finished").exit_code == 0
    assert [event.body["reason"] for event in audit.unblindings] == ["finished"]
    assert invoke("report", tmp_path / "runs").exit_code == 0
    assert len(audit.unblindings) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", "{empty}"], "holds no runs"),
        (["report", "{runs}", "--control", "nobody"], "no run of 'nobody'"),
        (
            ["report", "{runs}", "--evidence", "x.parquet", "--policy", "caps, repeats"],
            "biased sample",
        ),
        (["release", "{runs}"], "--out DIR"),
        (["release", "{runs}", "--check", "--out", "x"], "goes with no other option"),
        (["release", "{empty}", "--check"], "holds no package"),
    ],
)
def test_bad_input_is_one_line(
    audit: ReviewedRuns, tmp_path: Path, words: list[str], message: str
) -> None:
    result = invoke(*(word.format(empty=tmp_path, runs=audit.runs.folder) for word in words))
    assert result.exit_code != 0
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
