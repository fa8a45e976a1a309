"""Run the steps of action.yml: ``audit`` reads the inputs, ``comment`` tells the pull request.

GitHub passes the inputs as environment variables. Text from data reaches the log only while
workflow commands are stopped, and reaches the comment without mentions.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any

MAX_ANNOTATIONS = 10  # of one kind that GitHub shows for a step
MAX_COMMENT = 60_000  # characters; GitHub takes 65,536
PAGE = 100  # comments in one answer of GitHub's


def main() -> int:
    """Run one step."""
    return {"audit": audit, "comment": comment}[sys.argv[1]]()


# ------------------------------------------------------------------------------------------- audit


def audit() -> int:
    """Audit, gate, and write the page, the summary, annotations and outputs."""
    folder = find_folder()
    folder.mkdir()
    report, page = str(folder / "report"), str(folder / "page.html")
    options, gate_options = (shlex.split(os.environ[name]) for name in ("OPTIONS", "GATE_OPTIONS"))
    if not any(word.startswith("--ledger") for word in options):
        options.append("--no-ledger")  # each build has outcomes of its own
    if os.environ["BASELINE"]:
        gate_options += ["--baseline", os.environ["BASELINE"]]
    patterns = filter(None, map(str.strip, os.environ["SOURCE"].splitlines()))
    matches = ((one, sorted(glob(one, recursive=True))) for one in patterns)  # noqa: PTH207
    # a pattern that matches no file is named in the error
    sources = [path for one, paths in matches for path in paths or [one]]
    no_text = ["--no-text"] * ("--no-text" in options)
    files = {f"--{kind}": str(folder / f"gate.{kind}") for kind in ("json", "markdown", "junit")}
    named = [word for pair in files.items() for word in pair]
    token = secrets.token_hex()
    print(f"::stop-commands::{token}", flush=True)
    status = run("audit", *options, "--out", report, "--", *sources)
    if not status:
        run("export", report, "--to", "html-explorer", "-o", page, *no_text)
        status = run("gate", report, *gate_options, *named)
    print(f"\n::{token}::", flush=True)
    if status not in (0, 1) or not Path(files["--json"]).exists():
        return status or 2
    summary = Path(files["--markdown"]).read_text(encoding="utf-8")
    append("GITHUB_STEP_SUMMARY", summary)
    append("GITHUB_OUTPUT", f"passed={'false' if status else 'true'}\nfolder={folder}\n")
    gate = json.loads(Path(files["--json"]).read_text(encoding="utf-8"))
    for line in annotate(gate["new"], summary, failed=bool(status)):
        print(line)
    return 0


def find_folder() -> Path:
    """Return the folder of this run's files; a second use of the action in one job has another."""
    return Path(os.environ["RUNNER_TEMP"]) / f"groundfault-{os.environ['GITHUB_ACTION']}"


def run(*words: str) -> int:
    """Run groundfault, and return its exit status."""
    return subprocess.run([sys.executable, "-m", "groundfault", *words], check=False).returncode


def append(variable: str, text: str) -> None:
    """Append text to a file that GitHub names by a variable."""
    with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
        file.write(text)


def annotate(new: list[dict[str, Any]], summary: str, *, failed: bool) -> Iterator[str]:
    """Yield a workflow command for the verdict, and for each failure that fails the gate."""
    verdict = escape(summary.splitlines()[0].lstrip("# "))
    yield f"::{'error' if failed else 'notice'} title=groundfault::{verdict}"
    for match in new[: MAX_ANNOTATIONS - 1]:
        title = escape(f"groundfault: {match['name']}").replace(":", "%3A").replace(",", "%2C")
        yield f"::error title={title}::{escape(match['sentence'])}"


def escape(text: str) -> str:
    """Escape text for the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# ----------------------------------------------------------------------------------------- comment


def comment() -> int:
    """Write the gate's summary as a comment, or edit the one of the run before."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    issues = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    thread = f"{issues}/{event['pull_request']['number']}/comments"
    marker = f"<!-- groundfault {os.environ['GITHUB_JOB']} {os.environ['GITHUB_ACTION']} -->"
    summary = (find_folder() / "gate.markdown").read_text(encoding="utf-8")
    if len(summary) > MAX_COMMENT:
        summary = summary[:MAX_COMMENT] + "\n\nShortened; the artifact has all.\n"
    # a zero-width space: text from data mentions nobody
    body = {"body": f"{marker}\n{summary}".replace("@", "@\u200b")}
    try:
        old = find_comment(thread, marker)
        if old is None:
            ask("POST", thread, body)
        else:
            ask("PATCH", f"{issues}/comments/{old}", body)
    except urllib.error.URLError as error:
        # a fork's token may not write, and that is no failure of the model
        print(f"::warning title=groundfault::no comment was written: {escape(str(error))}")
    return 0


def find_comment(thread: str, marker: str) -> int | None:
    """Return the number of the comment that a bot of this action wrote, if there is one."""
    number = 1
    while True:
        found = ask("GET", f"{thread}?per_page={PAGE}&page={number}")
        for one in found:
            if one["body"].startswith(marker) and one["user"]["type"] == "Bot":
                return int(one["id"])
        if len(found) < PAGE:
            return None
        number += 1


def ask(method: str, path: str, body: dict[str, str] | None = None) -> Any:
    """Send a request to GitHub, and return the answer."""
    request = urllib.request.Request(
        os.environ["GITHUB_API_URL"] + path,
        json.dumps(body).encode() if body else None,
        {
            "Authorization": f"Bearer {os.environ['TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main())
