"""The GitHub Action: its steps run here with the variables that GitHub sets, against a loopback
server that keeps comments as GitHub does; its metadata and our workflows fit the public schemas.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PAGE = ROOT / "docs" / "how-to" / "continuous-integration.md"
GIVEN = {"source": "*.csv", "options": "--id id --outcome error", "token": "t0p"}


class GitHub(ThreadingHTTPServer):
    """Keeps comments of one pull request."""

    def __init__(self, *comments: str, kind: str = "User", forbidden: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments = [
            {"id": i, "body": body, "user": {"type": kind}} for i, body in enumerate(comments)
        ]
        self.forbidden = forbidden

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: GitHub

    def do_GET(self) -> None:
        size, page = map(int, re.findall(r"=(\d+)", self.path))
        assert self.path.startswith("/repos/me/it/issues/7/comments?per_page=")
        self.answer(self.server.comments[(page - 1) * size : page * size])

    def do_POST(self) -> None:
        assert self.path == "/repos/me/it/issues/7/comments"
        one = {"id": len(self.server.comments), "user": {"type": "Bot"}, **self.read()}
        if not self.server.forbidden:
            self.server.comments.append(one)
        self.answer(one)

    def do_PATCH(self) -> None:
        number = int(self.path.removeprefix("/repos/me/it/issues/comments/"))
        self.server.comments[number].update(self.read())
        self.answer(self.server.comments[number])

    def read(self) -> dict[str, str]:
        body: dict[str, str] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return body

    def answer(self, content: Any) -> None:
        assert self.headers["Authorization"] == "Bearer t0p"
        self.send_response(403 if self.server.forbidden else 200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def serving(*comments: str, **settings: Any) -> Iterator[GitHub]:
    with GitHub(*comments, **settings) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class Job:
    """A job on a runner: a workspace, the files that GitHub names, and groundfault installed."""

    def __init__(self, place: Path) -> None:
        self.place, self.log, self.uploaded = place, "", Path()
        python = place / "temp" / "groundfault" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        (place / "event.json").write_text('{"pull_request": {"number": 7}}')

    def read(self, name: str) -> str:
        path = self.place / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def run(self, api: str = "", *, install: bool = False, **inputs: str) -> list[int]:
        """Run the steps as the runner does, and return the status of each."""
        # a new job has the files of the one before gone
        for path in ("temp/groundfault-__self", "out", "summary"):
            subprocess.run(["rm", "-rf", str(self.place / path)], check=True)
        given = {name.replace("_", "-"): value for name, value in (GIVEN | inputs).items()}
        defaults = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        values = defaults | given
        self.log, statuses = "", []
        for step in ACTION["runs"]["steps"][0 if install else 1 :]:
            if "if" in step:
                assert step["if"] == "inputs.comment == 'true' && github.event.pull_request"
                if values["comment"] != "true" or not api:
                    continue
            if "uses" in step:
                self.uploaded = Path(self.fill(step["with"]["path"], values))
                continue
            assert "${{" not in step["run"]  # text of inputs never becomes shell
            script = self.place / "step.sh"
            script.write_text(step["run"])
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                env={
                    **os.environ,
                    "RUNNER_TEMP": str(self.place / "temp"),
                    "GITHUB_ACTIONS": "true",
                    "GITHUB_ACTION": "__self",
                    "GITHUB_ACTION_PATH": str(ROOT),
                    "GITHUB_API_URL": api,
                    "GITHUB_EVENT_PATH": str(self.place / "event.json"),
                    "GITHUB_JOB": "audit",
                    "GITHUB_OUTPUT": str(self.place / "out"),
                    "GITHUB_REPOSITORY": "me/it",
                    "GITHUB_STEP_SUMMARY": str(self.place / "summary"),
                    **{k: self.fill(v, values) for k, v in step.get("env", {}).items()},
                },
                cwd=self.place,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            self.log += done.stdout
            statuses.append(done.returncode)
            if done.returncode:
                break
        return statuses

    def fill(self, text: str, values: dict[str, str]) -> str:
        outputs = dict(line.split("=", 1) for line in self.read("out").splitlines())
        known = {f"inputs.{name}": value for name, value in values.items()}
        known |= {f"steps.audit.outputs.{name}": value for name, value in outputs.items()}
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda match: known[match[1]], text)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def write(place: Path, failing: str = "", n: int = 300) -> None:
    """Write a table in which every fifth example fails, and of one language all but these."""
    rows = [
        f"{i},{lang},{int((lang == failing) != ((i // 3) % 5 == 0))}"
        for i, lang in ((i, ("de", "fr", "::error::@team %")[i % 3]) for i in range(n))
    ]
    place.write_text("\n".join(["id,lang,error", *rows]) + "\n")


def test_a_failing_run_annotates_summarises_comments_and_fails(job: Job) -> None:
    write(job.place / "t.csv", "::error::@team %")
    with serving(*["hello"] * 120) as github:
        assert job.run(github.url) == [0, 0, 1]
        assert len(github.comments) == 121
        body = str(github.comments[-1]["body"])
        assert body.startswith("<!-- groundfault audit __self -->\n### Gate failed")
        assert "@\u200bteam" in body
        assert "@team" not in body
        check_commands(job.log)
        # the next run edits it
        write(job.place / "t.csv")
        assert job.run(github.url) == [0, 0, 0]
        assert len(github.comments) == 121
        assert "### Gate passed" in str(github.comments[-1]["body"])
    assert "passed=true" in job.read("out")


def check_commands(log: str) -> None:
    """Check that text from data gives no workflow command."""
    stop, *middle = re.split(r"^::(?=stop-commands|[0-9a-f]{64}::)", log, flags=re.MULTILINE)
    assert stop == ""
    token = middle[0].splitlines()[0].removeprefix("stop-commands::")
    assert middle[1].startswith(f"{token}::")
    commands = [line for line in middle[1].splitlines()[1:] if line.startswith("::")]
    assert 2 <= len(commands) <= 10
    assert commands[0].startswith("::error title=groundfault::Gate failed")
    assert all(re.match(r"::error title=groundfault%3A [^:,]*::[^:]", x) for x in commands[1:])
    assert "%25" in commands[1]


@pytest.mark.slow
def test_everything_is_kept_in_one_folder(job: Job) -> None:
    write(job.place / "t.csv", "de")
    assert job.run(comment="false") == [0, 1]
    names = sorted(path.name for path in job.uploaded.iterdir())
    assert names == ["gate.json", "gate.junit", "gate.markdown", "page.html", "report"]
    assert "lang is de" in job.read("summary")
    assert "<script" in (job.uploaded / "page.html").read_text()


@pytest.mark.slow
def test_a_baseline_with_the_same_failures_passes(job: Job) -> None:
    write(job.place / "t.csv", "de")
    job.run()
    baseline = job.place / "baseline.json"
    baseline.write_bytes((job.uploaded / "report" / "report.json").read_bytes())
    assert job.run(baseline=str(baseline)) == [0, 0]
    write(job.place / "t.csv", "fr")
    assert job.run(baseline=str(baseline), gate_options="--level '0.05'") == [0, 1]
    assert "lang is fr" in job.log


def test_bad_input_stops_the_job_before_a_comment(job: Job) -> None:
    with serving() as github:
        assert job.run(github.url, source="absent.csv") == [2]
        assert github.comments == []
    assert "absent.csv" in job.log


@pytest.mark.slow
def test_a_token_that_may_not_write_is_a_warning(job: Job) -> None:
    write(job.place / "t.csv")
    with serving(forbidden=True) as github:
        assert job.run(github.url) == [0, 0, 0]
    assert "::warning title=groundfault::no comment was written" in job.log


@pytest.mark.slow
def test_a_comment_of_a_person_is_never_edited(job: Job) -> None:
    write(job.place / "t.csv")
    with serving("<!-- groundfault audit __self -->\nmine") as github:
        job.run(github.url)
        assert str(github.comments[0]["body"]).endswith("\nmine")
        assert len(github.comments) == 2


@pytest.mark.clients
def test_the_first_step_installs_what_the_others_run(job: Job) -> None:
    subprocess.run(["rm", "-rf", str(job.place / "temp" / "groundfault")], check=True)
    write(job.place / "t.csv", "de")
    os.environ.pop("PYTHONPATH", None)
    assert job.run(install=True) == [0, 0, 1]
    assert (job.place / "temp" / "groundfault" / "bin" / "groundfault").exists()


def check(schema: str, *files: Path) -> None:
    pytest.importorskip("check_jsonschema")
    words = ["-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, files)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_metadata_and_workflows_fit_the_schemas() -> None:
    check("github-actions", ROOT / "action.yml")
    check("github-workflows", *(ROOT / ".github" / "workflows").glob("*.yml"))


def recipes() -> dict[str, str]:
    """The YAML blocks of the page, by their first key."""
    found = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return {text.split(":")[0]: text for text in found}


def test_the_recipe_for_github_names_inputs_that_exist(tmp_path: Path) -> None:
    text = recipes()["name"]
    (tmp_path / "w.yml").write_text(text)
    check("github-workflows", tmp_path / "w.yml")
    used = yaml.safe_load(text)["jobs"]["audit"]["steps"][-1]
    assert set(used["with"]) <= set(ACTION["inputs"])
    required = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert required <= set(used["with"])


@pytest.mark.slow
def test_the_recipe_for_gitlab_runs(tmp_path: Path) -> None:
    text = recipes()["audit"]
    (tmp_path / ".gitlab-ci.yml").write_text(text)
    check("gitlab-ci", tmp_path / ".gitlab-ci.yml")
    recipe = yaml.safe_load(text)["audit"]
    write(tmp_path / "answers.csv", "de")
    (tmp_path / "evaluate.py").write_text("")
    lines = [line for line in recipe["script"] if not line.startswith("pip install")]
    assert len(lines) == len(recipe["script"]) - 1
    bin_folder = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(lines)],
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    artifacts = recipe["artifacts"]
    for path in (*artifacts["paths"], artifacts["reports"]["junit"]):
        assert (tmp_path / path).exists(), path
